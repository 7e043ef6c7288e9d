"""Alignments against those people made: fit the aligner's weights, choose its bars on dev, measure on test.

    python benchmarks/alignment.py --fit --encoder minilm --encoder mpnet
    python benchmarks/alignment.py --encoder minilm --encoder mpnet
    python benchmarks/alignment.py --speed --encoder minilm

The first writes src/likewise/phrases/weights.toml, the second benchmarks/results/alignment.json, the third
alignment-speed.json: pairs of MTRef dev a second, states at hand, one thread.
Weights of words come from MTRef train, their bar from MTRef and Wiki dev; weights and bar of spans from iSTS
train, both kinds of texts together. Word states are kept in runs/alignment. Beside our links stand mutual
best cosines and plain overlap. F1 is over all links of a file; of MTRef and Wiki the sure links count.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from alignment_corpora import ChunkedPair, WordLinkedPair, read_chunked, read_word_links
from likewise.encoders.sentence import load_encoder
from likewise.phrases import scoring
from likewise.phrases.aligner import Aligner
from likewise.phrases.measures import (
    context_measures,
    cosines,
    means,
    mutual,
    span_measures,
    word_measures,
)
from likewise.phrases.parsing import phraser
from likewise.phrases.scoring import Scoring, Weights, chance
from likewise.phrases.states import WordLayers, WordStates
from likewise.phrases.trees import best_matching
from likewise.records import Array
from likewise.versions import versions

HERE = Path(__file__).parent
KEPT = Path("runs") / "alignment"
CHUNKED = ("headlines", "images")
WORDS = ("mtref", "wiki")
Links = set[tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """A pair of texts with its word states and what people linked."""

    pair: ChunkedPair | WordLinkedPair
    a: WordLayers
    b: WordLayers

    @property
    def gold(self) -> Links:
        """Linked chunks, or the sure links of words."""
        if isinstance(self.pair, ChunkedPair):
            return {(link.a, link.b) for link in self.pair.links}
        return set(self.pair.sure)

    @property
    def cosines(self) -> Array:
        """Of words with words."""
        return cosines(self.a.middle, self.b.middle)

    @property
    def chunk_cosines(self) -> list[Array]:
        """Of chunk means with chunk means, in the middle and in the last layer."""
        chunks_a, chunks_b = self.pair.chunks_a, self.pair.chunks_b
        return [cosines(means(x, chunks_a), means(y, chunks_b)) for x, y in zip(self.a, self.b, strict=True)]


@cache
def cases(encoder: str, name: str, split: str, rows: int | None = None) -> list[Case]:
    """Pairs of a corpus with their states, encoded once and kept."""
    read: Callable[..., Any] = read_chunked if name in CHUNKED else read_word_links
    pairs = read(name, split, data_dir=None)[:rows]
    file = KEPT / f"{encoder}-{name}-{split}-{len(pairs)}.npz"
    if not file.is_file():
        states = WordStates(load_encoder(encoder))
        texts = [words for pair in pairs for words in (pair.words_a, pair.words_b)]
        found = states([" ".join(words) for words in texts], [offsets(words) for words in texts])
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(
            file,
            middle=np.concatenate([one.middle for one in found]).astype(np.float16),
            last=np.concatenate([one.last for one in found]).astype(np.float16),
            ends=np.cumsum([len(one.middle) for one in found]),
        )
    kept = np.load(file)
    parts = [np.split(kept[layer].astype(np.float32), kept["ends"][:-1]) for layer in WordLayers._fields]
    layers = [WordLayers(*both) for both in zip(*parts, strict=True)]
    return [Case(pair, layers[2 * i], layers[2 * i + 1]) for i, pair in enumerate(pairs)]


def offsets(words: Sequence[str]) -> list[tuple[int, int]]:
    """Where words stand in a text that joins them by blanks."""
    found, at = [], 0
    for word in words:
        found.append((at, at + len(word)))
        at += len(word) + 1
    return found


# Fitting


def fit(encoders: Sequence[str], rows: int) -> Scoring:
    """Weights from train, bars from dev."""
    train = [case for e in encoders for case in cases(e, "mtref", "train", rows)]
    own = [word_measures(c.pair.words_a, c.pair.words_b, c.cosines) for c in train]
    words = logistic(own, [marked(c) for c in train], [counted(c) for c in train])
    around = [with_context(measures, words) for measures in own]
    context = logistic(around, [marked(c) for c in train], [counted(c) for c in train])
    dev = [[c for e in encoders for c in cases(e, name, "dev")] for name in WORDS]
    both = Scoring(words, context, context)
    likely = [[word_logits(case, both) for case in group] for group in dev]
    context = with_best_bar(context, dev, lambda g, bar: [cells(logits > bar) for logits in likely[g]])
    spans, chunked = fit_spans(encoders, words, context)
    ours = Scoring(words, context, spans)
    gains = [[spans.logits(chunk_measures(case, ours)) for case in group] for group in chunked]
    spans = with_best_bar(spans, chunked, lambda g, bar: matched(chunked[g], [x - bar for x in gains[g]]))
    return Scoring(words, context, spans)


def fit_spans(encoders: Sequence[str], words: Weights, context: Weights) -> tuple[Weights, list[list[Case]]]:
    """Weights of spans, from chunks that people linked or left."""
    groups = [[c for e in encoders for c in cases(e, name, "train")] for name in CHUNKED]
    half = Scoring(words, context, context)
    train = [case for group in groups for case in group]
    measures = [chunk_measures(case, half) for case in train]
    gold = [
        np.array([[(x, y) in case.gold for y in case.pair.chunks_b] for x in case.pair.chunks_a], dtype=bool)
        for case in train
    ]
    return logistic(measures, gold, [np.ones_like(g) for g in gold]), groups


def logistic(measures: list[Array], gold: list[np.ndarray], kept: list[np.ndarray]) -> Weights:
    """Logistic regression over all cells that count."""
    from sklearn.linear_model import LogisticRegression

    x = np.concatenate([m[k] for m, k in zip(measures, kept, strict=True)])
    y = np.concatenate([g[k] for g, k in zip(gold, kept, strict=True)])
    middle, spread = x.mean(0), x.std(0) + 1e-9
    model = LogisticRegression(max_iter=2000).fit((x - middle) / spread, y)
    weights = model.coef_[0] / spread
    return Weights(tuple(weights.tolist()), float(model.intercept_[0] - weights @ middle), 0.0)


def with_best_bar(
    weights: Weights, groups: Sequence[Sequence[Case]], link: Callable[[int, float], list[Links]]
) -> Weights:
    """The bar, in steps of .1, with the best mean F1; `link` gives the links of a group above a bar."""
    bars = [round(float(bar), 1) for bar in np.arange(-2, 2.01, 0.1)]
    scores = {bar: np.mean([f1(link(g, bar), group) for g, group in enumerate(groups)]) for bar in bars}
    best = max(bars, key=lambda bar: (float(scores[bar]), -abs(bar)))
    print(f"bar {best}: mean F1 {scores[best]:.4f}, at 0 {scores[0.0]:.4f}")
    return Weights(weights.weights, weights.constant, best)


def marked(case: Case) -> np.ndarray:
    """True where people link words for sure."""
    found = np.zeros(case.cosines.shape, dtype=bool)
    for i, j in case.gold:
        found[i, j] = True
    return found


def counted(case: Case) -> np.ndarray:
    """False where people say possible: neither right nor wrong to learn from."""
    found = np.ones(case.cosines.shape, dtype=bool)
    for i, j in case.pair.possible:
        found[i, j] = False
    return found


def with_context(own: Array, words: Weights) -> Array:
    """Measures of words and of the first guess."""
    first = words.logits(own)
    return np.concatenate([own, context_measures(first, mutual(first, 0.0))], axis=-1)


def word_logits(case: Case, ours: Scoring) -> Array:
    """Log odds of all word links."""
    return ours.word_logits(case.pair.words_a, case.pair.words_b, case.cosines)


def chunk_measures(case: Case, ours: Scoring) -> Array:
    """Measures of chunks against chunks."""
    pair = case.pair
    likely = chance(word_logits(case, ours))
    return span_measures(
        pair.words_a, pair.words_b, pair.chunks_a, pair.chunks_b, *case.chunk_cosines, likely
    )


# Linking


def linked(group: Sequence[Case], ours: Scoring) -> list[Links]:
    """Our links: of words, or of given chunks."""
    if isinstance(group[0].pair, ChunkedPair):
        return matched(group, [ours.spans.logits(chunk_measures(case, ours)) for case in group])
    return [cells(word_logits(case, ours) > 0) for case in group]


def matched(group: Sequence[Case], gains: Sequence[Array]) -> list[Links]:
    """Chunks linked by their gains: two flat trees, so the aligner's first pass is one matching."""
    return [named(best_matching(gain)[1], case) for case, gain in zip(group, gains, strict=True)]


def best_cosines(group: Sequence[Case], layer: int = 0) -> list[Links]:
    """The baseline: mutual best cosines, of words or of chunk means in the middle (0) or last (1) layer."""
    return [
        named(cells(mutual(case.chunk_cosines[layer], -1.0)), case)
        if isinstance(case.pair, ChunkedPair)
        else cells(mutual(case.cosines, -1.0))
        for case in group
    ]


def overlap(group: Sequence[Case]) -> list[Links]:
    """The other baseline: mutual best share of common words (chunks), or equal words."""
    return [
        named(cells(mutual(shared(case), 0.0)), case)
        if isinstance(case.pair, ChunkedPair)
        else cells(mutual(equal_words(case), 0.0))
        for case in group
    ]


def shared(case: Case) -> Array:
    """Jaccard's share of words of chunks, marks left out."""
    sets_a = [said(case.pair.words_a, chunk) for chunk in case.pair.chunks_a]
    sets_b = [said(case.pair.words_b, chunk) for chunk in case.pair.chunks_b]
    return np.array([[len(x & y) / max(len(x | y), 1) for y in sets_b] for x in sets_a])


def said(words: Sequence[str], chunk: Sequence[int]) -> set[str]:
    """Words of a chunk without its marks."""
    return {words[i].casefold() for i in chunk if any(letter.isalnum() for letter in words[i])}


def equal_words(case: Case) -> Array:
    """1 for equal words, a little more where they stand at the same place."""
    a, b = case.pair.words_a, case.pair.words_b
    return np.array(
        [
            [(u.casefold() == v.casefold()) * (2 - abs(i / len(a) - j / len(b))) for j, v in enumerate(b)]
            for i, u in enumerate(a)
        ]
    )


def cells(chosen: np.ndarray) -> Links:
    """Numbers of the cells that are set."""
    return {(int(i), int(j)) for i, j in np.argwhere(chosen)}


def named(pairs: Any, case: Case) -> Links:
    """Pairs of chunk numbers as pairs of chunks."""
    return {(case.pair.chunks_a[i], case.pair.chunks_b[j]) for i, j in pairs}


def f1(found: Sequence[Links], group: Sequence[Case]) -> float:
    """F1 over all links of a file."""
    gold = [case.gold for case in group]
    right = sum(len(f & g) for f, g in zip(found, gold, strict=True))
    return 2 * right / max(sum(map(len, found)) + sum(map(len, gold)), 1)


def token_f1(found: Sequence[Links], group: Sequence[Case]) -> float:
    """F1 over the pairs of words that linked chunks hold."""
    spread = [{(i, j) for x, y in links for i in x for j in y} for links in found]
    gold = [{(i, j) for x, y in case.gold for i in x for j in y} for case in group]
    right = sum(len(f & g) for f, g in zip(spread, gold, strict=True))
    return 2 * right / max(sum(map(len, spread)) + sum(map(len, gold)), 1)


# Measuring


def measure(encoder: str) -> dict[str, Any]:
    """All numbers of one encoder on test, with train (or dev) beside them."""
    ours, found = scoring.shipped(), {}
    for name in (*CHUNKED, *WORDS):
        for split in ("train" if name in CHUNKED else "dev", "test"):
            group = cases(encoder, name, split)
            ways = {
                "ours": linked(group, ours),
                "best cosines": best_cosines(group),
                **({"best cosines, last layer": best_cosines(group, 1)} if name in CHUNKED else {}),
                "overlap": overlap(group),
            }
            found[f"{name} {split}"] = {
                way: {
                    "f1": round(f1(links, group), 4),
                    **({"token f1": round(token_f1(links, group), 4)} if name in CHUNKED else {}),
                }
                for way, links in ways.items()
            }
    return found


def speed(encoder: str, pairs: int = 400, repeats: int = 5) -> dict[str, Any]:
    """Pairs a second, phrases of spaCy and states at hand: links of words, both passes over the trees."""
    aligner = Aligner(load_encoder(encoder))
    texts = [
        " ".join(words)
        for pair in read_word_links("mtref", "dev", data_dir=None)[:pairs]
        for words in (pair.words_a, pair.words_b)
    ]
    phrased = phraser("spacy")(texts)
    states = aligner.states_of(phrased)
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        for a, b in zip(phrased[::2], phrased[1::2], strict=True):
            aligner.align(a, b, states[a.text, a.words], states[b.text, b.words])
        found.append(round(pairs / (time.perf_counter() - started), 1))
    words = round(float(np.mean([len(one.words) for one in phrased])), 1)
    return {"encoder": encoder, "pairs": pairs, "words a text": words, "pairs a second": sorted(found)}


def main() -> None:
    """Fit or measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--encoder", action="append", help="folder, name under LIKEWISE_MODELS, hub id")
    parser.add_argument("--fit", action="store_true", help="write weights.toml")
    parser.add_argument("--speed", action="store_true", help="write results/alignment-speed.json")
    parser.add_argument("--rows", type=int, default=1200, help="of MTRef train")
    options = parser.parse_args()
    encoders = options.encoder or ["minilm"]
    if options.fit:
        scoring.FILE.write_text(as_toml(fit(encoders, options.rows), encoders), encoding="utf8")
        print(f"written: {scoring.FILE}")
        return
    if options.speed:
        document = {"runs": [speed(name) for name in encoders], "versions": versions()}
        (HERE / "results" / "alignment-speed.json").write_text(json.dumps(document, indent=1) + "\n")
        print(json.dumps(document["runs"]))
        return
    target = HERE / "results" / "alignment.json"
    started = time.perf_counter()
    kept = json.loads(target.read_text(encoding="utf8"))["encoders"] if target.is_file() else {}
    document = {"encoders": kept | {name: measure(name) for name in encoders}, "versions": versions()}
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf8")
    print(json.dumps(document["encoders"], indent=1))
    print(f"written: {target}, {time.perf_counter() - started:.0f} s")


def as_toml(ours: Scoring, encoders: Sequence[str]) -> str:
    """The weights file."""
    lines = [
        "# Weights of the phrase aligner, fitted to links people made: MTRef and iSTS train; bars by dev.",
        f"# python benchmarks/alignment.py --fit {' '.join(f'--encoder {name}' for name in encoders)}",
    ]
    for part, names in scoring.MEASURES.items():
        weights: Weights = getattr(ours, part)
        lines += ["", f"[{part}]", f"constant = {weights.constant:.4f}", f"bar = {weights.bar:.1f}"]
        lines += [f"{name} = {value:.4f}" for name, value in zip(names, weights.weights, strict=True)]
    return re.sub(r"-0\.0000\b", "0.0000", "\n".join(lines)) + "\n"


if __name__ == "__main__":
    main()
