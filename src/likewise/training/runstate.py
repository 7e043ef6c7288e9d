"""The state of selection and early stopping in a run, which every checkpoint holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class RunState:
    """The state of selection and early stopping; `best_sha256` is the hash of the best weights' file.

    `best_value` may be that of step 0, the starting model. `peak` is the best value after step 0; patience
    counts the evaluation steps since it.
    """

    best_step: int = -1
    best_value: float = -math.inf
    peak: float = -math.inf
    since_best: int = 0
    not_better: int = 0
    stopped: bool = False
    shrinks: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    best_sha256: str = ""

    @classmethod
    def read(cls, held: object) -> RunState:
        """Read the state from a checkpoint; raises a ValueError for unknown entries and wrong values."""
        known = {one.name: one.default for one in fields(cls) if one.name != "history"}
        if not isinstance(held, Mapping) or not set(held) <= {*known, "history"}:
            raise ValueError("it has unknown entries in the state of selection")
        for name, default in known.items():
            value = held.get(name, default)
            fits = _is_number(value) if isinstance(default, float) else type(value) is type(default)
            if not fits:
                raise ValueError(f"{name} = {value!r} is of the wrong kind")
        history = held.get("history", [])
        if not (isinstance(history, list) and all(map(_is_entry, history))):
            raise ValueError("history is not a list of evaluation steps with numbers")
        if held.get("stopped") and not history:
            raise ValueError("training is marked as stopped, but there is no history")
        return cls(**held)

    def is_better(self, value: float) -> bool:
        """Whether a dev value is better than the best so far; NaN never is."""
        return math.isfinite(value) and value > self.best_value

    def climbs(self, value: float) -> bool:
        """Whether a dev value is better than `peak`; if so, it becomes `peak`."""
        if not (math.isfinite(value) and value > self.peak):
            return False
        self.peak = value
        return True


def _is_entry(entry: object) -> bool:
    """Whether this is an entry of the history: numbers by name, the step among them."""
    return isinstance(entry, dict) and "step" in entry and all(map(_is_number, entry.values()))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
