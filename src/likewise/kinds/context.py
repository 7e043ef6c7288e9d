"""Where a run reads, computes and reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.training.state import FitEvent

if TYPE_CHECKING:
    from likewise.encoders.external import TextFunction


@dataclass(frozen=True, slots=True)
class RunContext:
    """Where a run reads, computes and reports. Of its fields only device and precision affect the result."""

    data_dir: Path | str | None = None
    device: str | None = None
    precision: str = "fp32"
    trackers: tuple[str, ...] = ()
    tables: Mapping[str, object] = field(default_factory=dict)
    encoder: TextFunction | None = None
    # Files beside those that the recipe names, such as the recipe's own: no output may touch them.
    inputs: tuple[str, ...] = ()
    # Where finished stages over a frozen encoder are kept, for runs that begin with the same ones.
    kept_stages: Path | None = None
    # Whether the model is compared with the encoder before training when all is done.
    compare: bool = True
    tell: Callable[[str], None] = lambda line: None
    emit: Callable[[FitEvent], None] = lambda event: None
