"""What a run remembers, tells and leaves behind, whichever loop it runs in.

RUN/final.safetensors    the weights that a stage ends with
RUN/done.json            its report, written after the weights, with their sha256
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from likewise import ranks
from likewise.disk import write_json_aside
from likewise.errors import ModelError
from likewise.training.checkpoints import (
    DamagedError,
    check_file,
    load_weights,
    refuse_lost_weights,
    save_weights,
)

_log = logging.getLogger("likewise")

_DONE, _FINAL, _DIGEST = "done.json", "final.safetensors", "final_sha256"


@dataclass(frozen=True, slots=True)
class FitEvent:
    """Something a caller may show: a step, an evaluation, a checkpoint, a run that goes on (`resume`)."""

    kind: str
    step: int
    total: int
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FitReport:
    """What a run did."""

    steps: int
    pairs: int
    seconds: float
    best_step: int
    best_value: float | None
    history: list[dict[str, float]]


def finish(model: nn.Module, run: Path, report: FitReport) -> None:
    """Leave the weights and the report of a stage that is done; weights that are lost are refused."""
    refuse_lost_weights(model, report.steps)
    if ranks.is_first():
        digest = save_weights(model, run / _FINAL)
        write_json_aside(run / _DONE, {**asdict(report), _DIGEST: digest})
    ranks.wait()


def finished_report(model: nn.Module, run: Path) -> FitReport | None:
    """The report of a stage that is done, its weights loaded; None if it is not, or is not whole."""
    report = ranks.from_first(_read_finished(run) if ranks.is_first() else None)
    if report is not None:
        load_weights(model, run / _FINAL)
    return report


def _read_finished(run: Path) -> FitReport | None:
    path = run / _DONE
    if not path.is_file():
        return None
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf8"))
        check_file(run / _FINAL, str(document.pop(_DIGEST)))
        return FitReport(**document)
    except PermissionError as error:
        raise ModelError(
            f"{path}: cannot be read ({error.strerror}); correct its permissions and run the same again"
        ) from error
    except DamagedError as error:
        why = str(error)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"{path}: is not the report of a finished stage ({type(error).__name__}: {error})"
    _log.warning("%s; this stage counts as not finished and goes on from its last checkpoint", why)
    return None
