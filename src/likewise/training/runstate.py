"""What selection and early stopping remember of a run, which every checkpoint carries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class RunState:
    """What selection and early stopping remember; `best_sha256` is that of the best weights' file.

    `best_value` may be that of step 0, the model before training. `peak` is the best that training reached,
    which is what patience waits for.
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
        """The state that a checkpoint holds; a ValueError says what is no part of one, or of another kind."""
        known = {one.name: one.default for one in fields(cls) if one.name != "history"}
        if not isinstance(held, Mapping) or not set(held) <= {*known, "history"}:
            raise ValueError("holds other entries than selection remembers")
        for name, default in known.items():
            value = held.get(name, default)
            fits = _is_number(value) if isinstance(default, float) else type(value) is type(default)
            if not fits:
                raise ValueError(f"holds {name} = {value!r}")
        history = held.get("history", [])
        if not (isinstance(history, list) and all(map(_is_entry, history))):
            raise ValueError("holds a history that is none")
        if held.get("stopped") and not history:
            raise ValueError("says that training has stopped, and holds no history")
        return cls(**held)

    def is_better(self, value: float) -> bool:
        """Whether a dev value beats the best so far; one that is no number never does."""
        return math.isfinite(value) and value > self.best_value

    def climbs(self, value: float) -> bool:
        """Whether a dev value beats all that training reached so far, which it then is itself."""
        if not (math.isfinite(value) and value > self.peak):
            return False
        self.peak = value
        return True


def _is_entry(entry: object) -> bool:
    """Whether this is an entry of the history: numbers by name, the step among them."""
    return isinstance(entry, dict) and "step" in entry and all(map(_is_number, entry.values()))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
