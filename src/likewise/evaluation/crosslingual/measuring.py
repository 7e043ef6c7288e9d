"""The crosslingual evaluation: translated pairs, retrieval, probes and spread, independent of any model.

It compares **views** of texts (see `views`): the model's vectors and, if there is one, those of its frozen
encoder. `load_crosslingual` reads the data by name, `measure_crosslingual` measures the data it is given, and
`run_crosslingual` does both.

    pairs      translated STS-B test: Pearson and Spearman of the cosine per language pair
    retrieval  Tatoeba, the test of LASER: the nearest sentence of the other language, both ways
    probes     translated STS-B dev, the same sentences in all languages of the pairs: can the language still
               be recognised? And for language vectors, Pearson with the ratings: do they hold meaning?
    spread     how cosines spread at each rating
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from likewise.disk import write_json_aside, write_text_aside
from likewise.errors import EvaluationError, MissingExtraError
from likewise.evaluation.crosslingual.data import PAIRS, CrosslingualData, load_crosslingual
from likewise.evaluation.crosslingual.language_pairs import (
    AverageResult,
    PairResult,
    PairScores,
    TrainedLanguages,
    measure_pairs,
    score_pairs,
)
from likewise.evaluation.crosslingual.probes import MeaningProbe, ProbeResult, probe_languages, probe_meaning
from likewise.evaluation.crosslingual.retrieval import (
    RetrievalAverage,
    RetrievalResult,
    average_retrieval,
    measure_retrieval,
)
from likewise.evaluation.crosslingual.spread import Spread, measure_spread
from likewise.evaluation.crosslingual.tables import tables
from likewise.evaluation.crosslingual.views import TextVectors, Views
from likewise.evaluation.results import NOT_AUDITED
from likewise.evaluation.tables import align, markdown

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CrosslingualResult:
    """All parts of the evaluation, with numbers as they are shown (×100, per cent). `scores` are kept for
    the plot.
    """

    pairs: tuple[PairResult, ...]
    averages: tuple[AverageResult, ...]
    retrieval: tuple[RetrievalResult, ...]
    retrieval_averages: tuple[RetrievalAverage, ...]
    probes: tuple[ProbeResult, ...]
    meaning: MeaningProbe | None
    spread: tuple[Spread, ...]
    protocol: tuple[str, ...]
    notes: tuple[str, ...] = ()
    overlap: str = NOT_AUDITED
    scores: PairScores | None = field(default=None, compare=False, repr=False)

    def __getitem__(self, name: str) -> PairResult:
        """The result of a language pair such as "en-de"."""
        for pair in self.pairs:
            if pair.name == name:
                return pair
        raise EvaluationError(
            f"there is no language pair {name!r}. Choose one of "
            f"{', '.join(pair.name for pair in self.pairs)}."
        )

    def average(self, name: str = "cross-lingual") -> AverageResult:
        """The average with this name."""
        for found in self.averages:
            if found.name == name:
                return found
        raise EvaluationError(
            f"there is no average {name!r}. Choose one of {', '.join(found.name for found in self.averages)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form, without the cosines of single rows."""
        return {
            "suite": "crosslingual",
            "protocol": list(self.protocol),
            "overlap": self.overlap,
            "pairs": [asdict(pair) for pair in self.pairs],
            "averages": [{**asdict(found), "pairs": list(found.pairs)} for found in self.averages],
            "retrieval": [
                {
                    **asdict(found),
                    "name": found.name,
                    "mean": found.model.mean,
                    "difference": found.difference,
                }
                for found in self.retrieval
            ],
            "retrieval_averages": [asdict(found) for found in self.retrieval_averages],
            "probes": [asdict(found) for found in self.probes],
            "meaning": asdict(self.meaning) if self.meaning else None,
            "spread": [{**asdict(found), "bins": [asdict(b) for b in found.bins]} for found in self.spread],
            "notes": list(self.notes),
        }

    def to_text(self) -> str:
        """Aligned plain tables, with notes and protocol below."""
        parts = ["\n".join(align(*table)) for table in tables(self)]
        return "\n\n".join([*parts, "\n".join([*self.notes, *self.protocol, self.overlap])])

    def to_markdown(self, plot: str = "") -> str:
        """The same as a report in Markdown, with the plot of the spread if its file is named."""
        parts = ["\n".join(markdown(*table)) for table in tables(self)]
        image = [f"![Cosine against rated similarity, raw encoder and model]({plot})"] if plot else []
        words = "\n".join(f"- {line}" for line in (*self.notes, *self.protocol, self.overlap))
        return "\n\n".join(["# Crosslingual evaluation", *parts, *image, words]) + "\n"


def run_crosslingual(
    views: Views,
    *,
    data_dir: Path | str | None = None,
    pairs: Sequence[str] = PAIRS,
    retrieval_languages: Sequence[str] | None = None,
    trained_pairs: Iterable[str] = (),
    seen_languages: Iterable[str] = (),
    seed: int = 1,
    progress: Say | None = None,
) -> CrosslingualResult:
    """Load the data by name and measure all of it. `views` is called once, with all distinct texts.

    `retrieval_languages` None takes all languages in the data folder, and () takes none. `trained_pairs`
    (rated pairs, such as "en-de") and `seen_languages` (of any stage) mark what was held out. If they are
    empty, that is unknown and nothing is marked.
    """
    data = load_crosslingual(pairs, retrieval_languages, data_dir=data_dir)
    return measure_crosslingual(
        views,
        data,
        trained_pairs=trained_pairs,
        seen_languages=seen_languages,
        seed=seed,
        progress=progress,
    )


def measure_crosslingual(
    views: Views,
    data: CrosslingualData,
    *,
    trained_pairs: Iterable[str] = (),
    seen_languages: Iterable[str] = (),
    seed: int = 1,
    progress: Say | None = None,
) -> CrosslingualResult:
    """The same for data in memory. Without parallel text or probe sentences those parts are left out."""
    say = progress or (lambda line: None)
    trained = TrainedLanguages.read(trained_pairs, seen_languages)
    say(f"encoding the texts of {len(data.pairs)} language pairs, {len(data.parallel)} parallel texts")
    vectors = TextVectors(views, data.texts())
    say(f"{len(data.pairs)} language pairs")
    scores = score_pairs(vectors, data.pairs)
    results, averages = measure_pairs(scores, trained, rng=np.random.default_rng(seed))
    retrieval = measure_retrieval(vectors, data.parallel, trained, progress=progress)
    say(f"language probe, {len(data.probe)} languages")
    probes = probe_languages(vectors, data.probe, rng=np.random.default_rng(seed)) if data.probe else ()
    return CrosslingualResult(
        results,
        averages,
        retrieval,
        average_retrieval(retrieval),
        probes,
        probe_meaning(scores, rng=np.random.default_rng(seed)),
        measure_spread(scores),
        tuple(data.protocol()),
        data.notes,
        scores=scores,
    )


REPORT_FILES = ("crosslingual.md", "crosslingual.json", "spread.svg", "spread.png")


def write_report(result: CrosslingualResult, folder: Path | str, *, replace: bool = True) -> tuple[Path, ...]:
    """Write crosslingual.md, crosslingual.json, spread.svg and spread.png. Returns the files that were
    written.

    Without matplotlib there is no plot, and the report says so.
    """
    from likewise.evaluation.crosslingual.spread_plot import draw_spread

    target = Path(folder)
    plots: list[Path] = []
    missing = ""
    if result.scores is not None:
        try:
            for path in (target / "spread.svg", target / "spread.png"):
                draw_spread(result.scores, path, replace=replace)
                plots.append(path)
        except MissingExtraError as error:
            missing = f"\nThere is no plot: {error}\n"
    page, numbers = target / "crosslingual.md", target / "crosslingual.json"
    write_text_aside(page, result.to_markdown(plots[0].name if plots else "") + missing, replace=replace)
    write_json_aside(numbers, result.to_dict(), replace=replace)
    return page, numbers, *plots
