"""The data of the crosslingual evaluation, by name: translated STS-B and the Tatoeba test of LASER."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from likewise.data import load_corpus
from likewise.data.corpora import DATA_VARIABLE, data_roots
from likewise.data.parallel import find_language, read_parallel
from likewise.errors import DataError, Problem, UsageError
from likewise.evaluation.crosslingual.language_pairs import split_pair
from likewise.evaluation.crosslingual.probes import choose_sentences
from likewise.evaluation.crosslingual.retrieval import Parallel
from likewise.evaluation.crosslingual.row_bootstrap import SAMPLES
from likewise.evaluation.suites import LANGUAGE_PAIRS
from likewise.records import Record
from likewise.spelling import spelt

PAIRS = LANGUAGE_PAIRS
CORPUS = "stsb_multi_mt"
RETRIEVAL_FOLDER = "tatoeba_laser"


@dataclass(frozen=True, slots=True)
class CrosslingualData:
    """The data that is measured: records per language pair (all of the same rows), parallel texts, probe
    sentences.

    `probe` holds the same sentences in each language. The three names describe the data in the protocol.
    """

    pairs: Mapping[str, Sequence[Record]]
    parallel: Sequence[Parallel] = ()
    probe: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pairs_name: str = "rated pairs"
    parallel_name: str = "parallel text"
    probe_name: str = "parallel text"
    notes: tuple[str, ...] = ()

    def texts(self) -> Iterable[str]:
        """All texts, including repeats."""
        for records in self.pairs.values():
            for record in records:
                yield from record.texts
        for parallel in self.parallel:
            yield from parallel.a
            yield from parallel.b
        for column in self.probe.values():
            yield from column

    def protocol(self) -> Iterable[str]:
        """What the numbers mean, one line for each part that is measured."""
        yield (
            f"protocol: pearson ×100 and spearman ×100 of the cosine, {self.pairs_name}; averages "
            f"are plain means, with intervals from {SAMPLES:,} resamples of the rows, the same in "
            "all pairs"
        )
        if self.parallel:
            yield f"retrieval: nearest neighbour by cosine, per cent, {self.parallel_name}"
        if self.probe:
            sentences = len(next(iter(self.probe.values())))
            yield (
                f"language probe: logistic regression, {self.probe_name}, {sentences:,} sentences "
                f"in each of {len(self.probe)} languages, trained on half of them and tested on the "
                "others, per cent; nearest: the language of the nearest vector"
            )


def load_crosslingual(
    pairs: Sequence[str] = PAIRS,
    retrieval_languages: Sequence[str] | None = None,
    *,
    data_dir: Path | str | None = None,
) -> CrosslingualData:
    """Translated STS-B test for the pairs, its dev sentences for the probe, and Tatoeba for retrieval."""
    if not pairs or len(set(pairs)) != len(pairs):
        raise UsageError(
            f"found the language pairs {list(pairs)}, but one or more different ones are needed."
        )
    records = {name: load_corpus(CORPUS, _split(name, "test"), data_dir=data_dir) for name in pairs}
    languages = list(dict.fromkeys(code for name in pairs for code in split_pair(name)))
    probe: dict[str, list[str]] = {}
    if len(languages) > 1:
        dev = {code: load_corpus(CORPUS, f"{code}_dev", data_dir=data_dir) for code in languages}
        probe = choose_sentences({code: [record.a for record in dev[code]] for code in languages})
    files, notes = _retrieval_files(retrieval_languages, data_dir)
    parallel = [read_parallel(path, keep_identical=True, keep_repeated=True) for path in files]
    return CrosslingualData(
        records,
        parallel,
        probe,
        "translated STS-B test, first and second sentence in the two languages",
        "Tatoeba (LASER's test)",
        "translated STS-B dev",
        notes,
    )


def _split(pair: str, part: str) -> str:
    first, second = split_pair(pair)
    return f"{first}_{part}" if first == second else f"{first}-{second}_{part}"


def _retrieval_files(
    languages: Sequence[str] | None, data_dir: Path | str | None
) -> tuple[list[Path], tuple[str, ...]]:
    """The retrieval files of the languages, and a note if none are found."""
    if languages is not None and not languages:
        return [], ()
    roots = data_roots(data_dir)
    found: dict[str, Path] = {}
    for root in roots:
        for path in sorted((root / RETRIEVAL_FOLDER).glob("*-eng.tsv*")):
            found.setdefault(find_language(path.name.split("-")[0], source=str(path)).code, path)
    if languages is None:
        note = (
            f"retrieval was not measured: {RETRIEVAL_FOLDER} is not in "
            f"{', '.join(map(str, roots)) or 'any folder'}"
        )
        return [found[code] for code in sorted(found)], () if found else (note,)
    wanted = list(dict.fromkeys(find_language(code, source="retrieval language").code for code in languages))
    absent = [code for code in wanted if code not in found]
    if absent:
        message = (
            f"there is no parallel text for {', '.join(absent)}. Available are: "
            f"{', '.join(sorted(found)) or 'none'}"
        )
        remedy = f"name the folder that holds it with {spelt('data_dir', 'DIR')} or {DATA_VARIABLE}"
        raise DataError([Problem(RETRIEVAL_FOLDER, message, remedy)])
    return [found[code] for code in wanted], ()
