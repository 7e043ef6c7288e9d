"""Read sentences and their translations: tables, Moses pairs, Tatoeba exports and corpora, with a language
check.
"""

from __future__ import annotations

from likewise.data.catalogue import parallel_names
from likewise.data.parallel.detection import find_mismatch
from likewise.data.parallel.languages import Language, find_language
from likewise.data.parallel.reading import ParallelText, ReadReport, read_parallel

__all__ = [
    "Language",
    "ParallelText",
    "ReadReport",
    "find_language",
    "find_mismatch",
    "parallel_names",
    "read_parallel",
]
