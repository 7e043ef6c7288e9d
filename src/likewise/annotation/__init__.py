"""The round trip of annotation: choose the pairs to rate next, and read the ratings that people gave."""

from __future__ import annotations

from likewise.annotation.importing import ImportReport, import_annotations
from likewise.annotation.selection import NextPairs, next_pairs

__all__ = ["ImportReport", "NextPairs", "import_annotations", "next_pairs"]
