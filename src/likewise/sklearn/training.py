"""Train a model for an estimator: its parameters as keys of a recipe, rows in memory, silence by default."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.errors import UsageError
from likewise.wording import quoted

if TYPE_CHECKING:
    from likewise.predict import Answerer

# The parameters of an estimator that are keys of a stage, under the same name.
_KEYS = ("epochs", "learning_rate", "batch_size")
_MOST_SEED = 2**32 - 1


def train_rows(
    source: Any, rows: Sequence[Mapping[str, Any]], options: Mapping[str, Any], **more: Any
) -> Answerer:
    """Train by a recipe (`source` names one) or by the one for a table of such rows (None), in memory.

    `options` are the parameters of the estimator. `more` goes to `likewise.train`; its `overrides` are
    defaults, which the parameters of the estimator replace.
    """
    import likewise

    stage = f"stage.{_stages(source) - 1}"
    set_here = {f"{stage}.{key}": _plain(options[key]) for key in _KEYS if options[key] is not None}
    overrides = {**more.pop("overrides", {}), **set_here, **_own(options["overrides"])}
    where: dict[str, Any] = {"data": rows} if source is not None else {}
    with quietly():
        return likewise.train(
            rows if source is None else source,
            encoder=options["encoder"],
            overrides=overrides,
            seed=seed_of(options["random_state"]),
            device=options["device"],
            precision=options["precision"],
            **where,
            quiet=not options["verbose"],
            **more,
        )


def seed_of(random_state: Any) -> int | None:
    """The seed that a `random_state` stands for; None leaves it to the recipe, whose seed is fixed."""
    if random_state is None or isinstance(random_state, int | np.integer):
        return None if random_state is None else int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_MOST_SEED, dtype=np.uint32))
    raise UsageError(
        f"random_state is {quoted(random_state, most=60)}, but it must be a whole number, a numpy "
        "RandomState or None."
    )


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Keep the progress bars of transformers off the terminal while a model is trained or loaded."""
    from transformers.utils import logging as advice

    shown = advice.is_progress_bar_enabled()
    advice.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            advice.enable_progress_bar()


def _stages(source: Any) -> int:
    """The number of stages of the recipe; parameters set keys of the last one, which takes the rows."""
    if source is None:
        return 1
    from likewise.recipes.reading import named_document

    return max(1, len(named_document(source)[0].get("stage") or ()))


def _own(overrides: Any) -> dict[str, Any]:
    if overrides is not None and not isinstance(overrides, Mapping):
        raise UsageError(
            f"overrides is {quoted(overrides, most=60)}, but it must be a dict from recipe keys to values, "
            'such as {"stage.0.warmup": 0}.'
        )
    return {str(key): _plain(value) for key, value in (overrides or {}).items()}


def _plain(value: Any) -> Any:
    """A Python number for a numpy one: the values of a parameter grid are often taken from an array."""
    return value.item() if isinstance(value, np.generic) else value
