"""Read texts without ratings: each distinct text once, without those of evaluation sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from likewise.data import open_table, read
from likewise.data.catalogue import is_parallel_corpus
from likewise.data.columns import find_any_texts
from likewise.data.parallel import parallel_names, read_parallel
from likewise.errors import DataError, Problem
from likewise.kinds.base import Job
from likewise.kinds.leaks import SideFilter, side_texts
from likewise.schema.distil import DistilStage, TextsSpec

# Seeds share the sample of an entry, and so its vectors in the cache.
_SAMPLE = 1


def read_texts(job: Job[DistilStage], notes: list[str]) -> list[str]:
    """The distinct texts of all data entries, in their order; `notes` receives what was left out."""
    leaks = SideFilter.of(job.stage, job.context.data_dir)
    found: dict[str, None] = {}
    for number, spec in enumerate(job.stage.data):
        texts = list(dict.fromkeys(text for text in _texts_of(job, spec) if text.strip()))
        if spec.max_chars is not None:
            texts = [text for text in texts if len(text) <= spec.max_chars]
        if not texts:
            problem = Problem(f"stage.{job.number}.data.{number}", f"{spec.source} has no text", "remove it")
            raise DataError([problem])
        kept = leaks.texts(spec.source, texts, notes)
        found.update(dict.fromkeys(_sampled(kept, spec.limit)))
    if len(found) < 2:
        raise DataError("fewer than two texts are left. Check the files and what the leak filter dropped.")
    return list(found)


def _texts_of(job: Job[DistilStage], spec: TextsSpec) -> Iterator[str]:
    table, data_dir = job.table(spec.source), job.context.data_dir
    if spec.language is not None:
        yield from _one_language(spec, spec.language, data_dir)
    elif spec.text is not None:
        for record in read(table, relations=(), text_a=spec.text, data_dir=data_dir, pairs=False):
            yield record.a
    elif isinstance(table, str):
        yield from side_texts([table], data_dir=data_dir)
    else:
        opened = open_table(table)
        pairs = len(find_any_texts(opened.columns, source=opened.name)) == 2
        for record in read(table, relations=(), pairs=pairs):
            yield from record.texts


def _one_language(spec: TextsSpec, language: str, data_dir: Any) -> Iterator[str]:
    """One side of parallel text."""
    if not is_parallel_corpus(spec.source):
        found = f"language {language!r} is given, but {spec.source} is not a corpus of translations"
        raise DataError([Problem(spec.source, found, "remove the key language")])
    for part in [spec.source] if "/" in spec.source else parallel_names(spec.source):
        parallel = read_parallel(part, data_dir=data_dir)
        sides = {parallel.language_a: parallel.a, parallel.language_b: parallel.b}
        if language not in sides:
            found = f"{part} has no language {language!r}; its languages are {', '.join(sides)}"
            raise DataError([Problem(part, found, "correct the key language")])
        yield from sides[language]


def _sampled(texts: Sequence[str], limit: int | None) -> Sequence[str]:
    """At most `limit` texts, drawn at random and left in their order."""
    if limit is None or len(texts) <= limit:
        return texts
    chosen = np.random.default_rng(_SAMPLE).permutation(len(texts))[:limit]
    return [texts[row] for row in np.sort(chosen)]
