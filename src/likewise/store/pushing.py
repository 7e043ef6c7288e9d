"""Pushing: put a model on the Hugging Face hub, as one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from torch import nn

from likewise.disk import scratch_folder
from likewise.errors import HubError, UsageError
from likewise.store.saving import save_model, training_of
from likewise.wording import clipped, ended, quoted

T = TypeVar("T")
# Of an earlier model in the same place; the rest of a repository belongs to its owner.
_OURS = "likewise/**"
_WHOLE = "A push is one commit: the repository holds either the old files or the new ones."


def push_model(
    model: nn.Module,
    repo_id: str,
    *,
    about: Mapping[str, Any],
    private: bool | None = None,
    token: str | None = None,
    message: str | None = None,
) -> str:
    """Put a model's folder into a repository as one commit, and return the repository's address.

    The repository is made if there is none. Files of an earlier model in `likewise/` are removed in the same
    commit. Other files stay.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(repo_id)
    except ValueError as error:
        reason = ended(" ".join(str(error).split()))
        raise UsageError(f"repo_id {quoted(repo_id)} is not the name of a repository. {reason}") from None
    hub = HfApi(token=token)
    with scratch_folder() as place:
        folder = save_model(model, place / "model", about=training_of(about, repo_id), name=repo_id)

        def send() -> str:
            address = hub.create_repo(repo_id, private=private, exist_ok=True)
            hub.upload_folder(
                repo_id=address.repo_id,
                folder_path=folder,
                commit_message=message or "Push a model of Likewise",
                delete_patterns=_OURS,
            )
            return str(address)

        return _saying_why(send, repo_id, token)


def _saying_why(send: Callable[[], T], repo_id: str, token: str | None) -> T:
    """Turn what can go wrong on the way to the hub into one message."""
    try:
        return send()
    except Exception as error:  # its HTTP library changes from version to version
        causes = list(_causes(error))
        reason = " ".join(" ".join(map(str, causes)).split())
        if token:
            reason = reason.replace(token, "…")
        found = f"{repo_id} was not pushed ({clipped(reason) or type(error).__name__})"
        raise HubError(f"{found}. {_remedy(causes)} {_WHOLE}") from None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and the errors that it came from."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _remedy(causes: Sequence[BaseException]) -> str:
    statuses = [getattr(getattr(one, "response", None), "status_code", None) for one in causes]
    status = next(filter(None, statuses), None)
    kinds = {kind.__name__ for one in causes for kind in type(one).__mro__}
    if status in (401, 403):
        return "Log in with `hf auth login`, or pass a token that may write there (token=…)."
    if status == 404:
        return "Correct the name, or pass a token that may write there (token=…)."
    if "OfflineModeIsEnabled" in kinds:
        return "Unset HF_HUB_OFFLINE."
    if {"TransportError", "ConnectionError"} & kinds:
        return "Check the connection, and try again."
    return "Try again later."
