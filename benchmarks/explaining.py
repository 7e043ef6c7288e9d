"""Explanations judged by what people made: chunks left unlinked, scores of links, edits.

    python benchmarks/explaining.py --choose          # the bar of the least matched phrase, on edits of train
    python benchmarks/explaining.py

The second writes benchmarks/results/explaining.json. iSTS: F1 of chunks that people left unlinked (marks
alone not counted), Spearman of our strength with people's score of a link, on test. Counterfactual SNLI,
dev, spaCy's phrases: how often the least matched phrase of an edited sentence, against its original, covers
every new word.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from alignment import CHUNKED, Case, best_cosines, cases, linked, overlap, shared
from alignment_corpora import edited_words, read_edits
from likewise.encoders.sentence import load_encoder
from likewise.explain.matching import MATCHED, least_matched, word_matches
from likewise.phrases import scoring
from likewise.phrases.aligner import Aligner
from likewise.phrases.parsing import phraser
from likewise.phrases.spans import Phrases, nodes
from likewise.versions import versions

HERE = Path(__file__).parent
KINDS = ("hypothesis", "premise")


def chunk_numbers(encoder: str, name: str) -> dict[str, float]:
    """Unlinked chunks and strengths of one file of iSTS test."""
    group = cases(encoder, name, "test")
    strengths, shares, scores = zip(*(row for case in group for row in scored(case)), strict=True)
    return {
        "unlinked f1": unlinked_f1(group, linked(group, scoring.shipped())),
        "unlinked f1, best cosines": unlinked_f1(group, best_cosines(group)),
        "unlinked f1, overlap": unlinked_f1(group, overlap(group)),
        "strength spearman": round(float(spearmanr(strengths, scores)[0]), 4),
        "strength spearman, overlap": round(float(spearmanr(shares, scores)[0]), 4),
        "links": len(scores),
    }


def unlinked_f1(group: list[Case], links: Sequence[Any]) -> float:
    """F1 of the chunks that links leave out, against those that people left."""
    gold, mine = [], []
    for number, (case, found) in enumerate(zip(group, links, strict=True)):
        for side in (0, 1):
            gold.append({(number, chunk) for chunk in unlinked(case, case.gold, side)})
            mine.append({(number, chunk) for chunk in unlinked(case, found, side)})
    right = sum(len(g & m) for g, m in zip(gold, mine, strict=True))
    return round(2 * right / (sum(map(len, gold)) + sum(map(len, mine))), 4)


def unlinked(case: Case, links: Any, side: int) -> list[tuple[int, ...]]:
    """Chunks of one side that no link holds, marks left out."""
    chunks, words = ((case.pair.chunks_a, case.pair.words_a), (case.pair.chunks_b, case.pair.words_b))[side]
    taken = {link[side] for link in links}
    return [c for c in chunks if c not in taken and any(x.isalnum() for i in c for x in words[i])]


def scored(case: Case) -> list[tuple[float, float, float]]:
    """Our strength, the share of common words and people's score of every link that people made."""
    row = {chunk: i for i, chunk in enumerate(case.pair.chunks_a)}
    column = {chunk: j for j, chunk in enumerate(case.pair.chunks_b)}
    alike, common = case.chunk_cosines[1], shared(case)
    return [
        (
            float(alike[row[link.a], column[link.b]]),
            float(common[row[link.a], column[link.b]]),
            link.score,
        )
        for link in case.pair.links
        if link.score is not None
    ]


def edit_numbers(encoder: str, split: str, bars: list[float], *, pipeline: str) -> dict[str, Any]:
    """Per kind of sentence and bar: how often the least matched phrase covers the new words of an edit."""
    phrases, aligner = phraser(pipeline), Aligner(load_encoder(encoder))
    found: dict[str, Any] = {}
    for kind in KINDS:
        edits = read_edits(kind, split, data_dir=None)
        texts = phrases([text for edit in edits for text in (edit.original, edit.edited)])
        states = aligner.states_of(texts)
        tried: dict[float, list[tuple[bool, bool, float, float]]] = {bar: [] for bar in bars}
        for original, edited in zip(texts[::2], texts[1::2], strict=True):
            new = new_words(original, edited)
            if not new:
                continue
            a, b = states[original.text, original.words], states[edited.text, edited.words]
            matched, by_chance = word_matches(a, b)[1], drawn_covers(edited, new, known=original.tokens)
            for bar, rows in tried.items():
                odd = set(range(*(least_matched(edited, matched, bar, other=original.tokens) or (0, 0))))
                share = len(odd) / len(edited.words)
                rows.append((new <= odd, bool(new & odd), share, by_chance))
        names = ("covered", "touched", "share of the sentence", "covered by a drawn phrase")
        found[kind] = {
            str(bar): {
                "edits": len(rows),
                **dict(zip(names, np.round(np.mean(rows, axis=0), 4).tolist(), strict=True)),
            }
            for bar, rows in tried.items()
        }
    return found


def drawn_covers(edited: Phrases, new: set[int], *, known: Sequence[str]) -> float:
    """How often a phrase drawn from those with a word that the original lacks covers all new words."""
    old = {token.casefold() for token in known}
    strange = {i for i, token in enumerate(edited.tokens) if token.casefold() not in old}
    drawn = [set(range(*span)) for span in nodes(edited)[0] if strange & set(range(*span))]
    return sum(new <= one for one in drawn) / len(drawn) if drawn else 0.0


def new_words(original: Phrases, edited: Phrases) -> set[int]:
    """Words that an edit brought, marks left out."""
    new = edited_words(original.tokens, edited.tokens)
    return {i for i in new if any(letter.isalnum() for letter in edited.tokens[i])}


def main() -> None:
    """Choose or measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--encoder", default="minilm", help="folder, name under LIKEWISE_MODELS, hub id")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--phrases", default="spacy", help="who makes the phrases: spacy, or a pipeline")
    options = parser.parse_args()
    if options.choose:
        bars = [round(0.5 + 0.05 * step, 2) for step in range(9)]
        print(json.dumps(edit_numbers(options.encoder, "train", bars, pipeline=options.phrases), indent=1))
        return
    edits = edit_numbers(options.encoder, "dev", [MATCHED], pipeline=options.phrases)
    document = {
        "encoder": options.encoder,
        "chunks": {name: chunk_numbers(options.encoder, name) for name in CHUNKED},
        "bar": MATCHED,
        "edits": {kind: found[str(MATCHED)] for kind, found in edits.items()},
        "versions": versions(),
    }
    target = HERE / "results" / "explaining.json"
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf8")
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
