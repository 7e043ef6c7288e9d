"""How well meaning survives a change of language: translated pairs, retrieval, probes and spread."""

from __future__ import annotations

from likewise.evaluation.crosslingual.data import PAIRS, CrosslingualData, load_crosslingual
from likewise.evaluation.crosslingual.measuring import (
    REPORT_FILES,
    CrosslingualResult,
    measure_crosslingual,
    run_crosslingual,
    write_report,
)
from likewise.evaluation.crosslingual.views import Views

__all__ = [
    "PAIRS",
    "REPORT_FILES",
    "CrosslingualData",
    "CrosslingualResult",
    "Views",
    "load_crosslingual",
    "measure_crosslingual",
    "run_crosslingual",
    "write_report",
]
