"""Sentences and their translations in: tables, Moses pairs, Tatoeba exports; languages named and checked."""

from __future__ import annotations

from likewise.data.parallel.detection import find_mismatch
from likewise.data.parallel.languages import Language, find_language
from likewise.data.parallel.reading import ParallelText, ReadReport, read_parallel

__all__ = ["Language", "ParallelText", "ReadReport", "find_language", "find_mismatch", "read_parallel"]
