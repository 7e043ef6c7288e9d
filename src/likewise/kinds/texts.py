"""Read the texts of a stage without ratings: each distinct text once, without those of evaluation sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likewise.data import texts as data_texts
from likewise.errors import DataError, Problem
from likewise.kinds.base import Job
from likewise.kinds.leaks import SideFilter
from likewise.schema.distil import DistilStage

# Seeds share the sample of an entry, and so its vectors in the cache.
_SAMPLE = 1


def stage_texts(job: Job[DistilStage], notes: list[str]) -> list[str]:
    """The distinct texts of all data entries, in their order; `notes` receives what was left out."""
    leaks = SideFilter.of(job.stage, job.context.data_dir)
    found: dict[str, None] = {}
    for number, spec in enumerate(job.stage.data):
        texts = data_texts.read_texts(
            job.table(spec.source),
            columns=() if spec.text is None else (spec.text,),
            language=spec.language,
            data_dir=job.context.data_dir,
        )
        longest = spec.max_chars
        texts = [text for text in texts if text.strip() and (longest is None or len(text) <= longest)]
        if not texts:
            where = f"stage.{job.number}.data.{number}"
            raise DataError([Problem(where, f"{spec.source} has no text that is read", "remove the entry")])
        found.update(dict.fromkeys(_sampled(leaks.texts(spec.source, texts, notes), spec.limit)))
    if len(found) < 2:
        raise DataError("fewer than two texts are left. Check the files and what the leak filter dropped.")
    return list(found)


def _sampled(texts: Sequence[str], limit: int | None) -> Sequence[str]:
    """At most `limit` texts, drawn at random and left in their order."""
    if limit is None or len(texts) <= limit:
        return texts
    chosen = np.random.default_rng(_SAMPLE).permutation(len(texts))[:limit]
    return [texts[row] for row in np.sort(chosen)]
