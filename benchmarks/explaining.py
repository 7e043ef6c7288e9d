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
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from alignment import CHUNKED, Case, cases, linked
from alignment_corpora import edited_words, read_edits
from likewise.encoders.sentence import load_encoder
from likewise.explain.matching import MATCHED, least_matched, word_matches
from likewise.phrases import scoring
from likewise.phrases.aligner import Aligner
from likewise.phrases.parsing import phraser
from likewise.phrases.spans import Phrases
from likewise.versions import versions

HERE = Path(__file__).parent
KINDS = ("hypothesis", "premise")


def chunk_numbers(encoder: str, name: str) -> dict[str, float]:
    """Unlinked chunks and strengths of one file of iSTS test."""
    group = cases(encoder, name, "test")
    links = linked(group, scoring.shipped())
    gold, mine = [], []
    for number, (case, found) in enumerate(zip(group, links, strict=True)):
        for side in (0, 1):
            gold.append({(number, chunk) for chunk in unlinked(case, case.gold, side)})
            mine.append({(number, chunk) for chunk in unlinked(case, found, side)})
    right = sum(len(g & m) for g, m in zip(gold, mine, strict=True))
    strengths, scores = zip(*(pair for case in group for pair in scored(case)), strict=True)
    return {
        "unlinked f1": round(2 * right / (sum(map(len, gold)) + sum(map(len, mine))), 4),
        "strength spearman": round(float(spearmanr(strengths, scores)[0]), 4),
        "links": len(scores),
    }


def unlinked(case: Case, links: Any, side: int) -> list[tuple[int, ...]]:
    """Chunks of one side that no link holds, marks left out."""
    chunks, words = ((case.pair.chunks_a, case.pair.words_a), (case.pair.chunks_b, case.pair.words_b))[side]
    taken = {link[side] for link in links}
    return [c for c in chunks if c not in taken and any(x.isalnum() for i in c for x in words[i])]


def scored(case: Case) -> list[tuple[float, float]]:
    """Our strength and people's score of every link that people made."""
    row = {chunk: i for i, chunk in enumerate(case.pair.chunks_a)}
    column = {chunk: j for j, chunk in enumerate(case.pair.chunks_b)}
    alike = case.chunk_cosines[1]
    return [
        (float(alike[row[link.a], column[link.b]]), link.score)
        for link in case.pair.links
        if link.score is not None
    ]


def edit_numbers(encoder: str, split: str, bars: list[float]) -> dict[str, Any]:
    """Per kind of sentence and bar: how often the least matched phrase covers the new words of an edit."""
    phrases, aligner = phraser("spacy"), Aligner(load_encoder(encoder))
    found: dict[str, Any] = {}
    for kind in KINDS:
        edits = read_edits(kind, split, data_dir=None)
        texts = phrases([text for edit in edits for text in (edit.original, edit.edited)])
        states = aligner.states_of(texts)
        tried: dict[float, list[tuple[bool, bool, float]]] = {bar: [] for bar in bars}
        for original, edited in zip(texts[::2], texts[1::2], strict=True):
            new = new_words(original, edited)
            if not new:
                continue
            a, b = states[original.text, original.words], states[edited.text, edited.words]
            matched = word_matches(a, b)[1]
            for bar, rows in tried.items():
                odd = set(range(*(least_matched(edited, matched, bar, other=original.tokens) or (0, 0))))
                rows.append((new <= odd, bool(new & odd), len(odd) / len(edited.words)))
        names = ("covered", "touched", "share of the sentence")
        found[kind] = {
            str(bar): {
                "edits": len(rows),
                **dict(zip(names, np.round(np.mean(rows, axis=0), 4).tolist(), strict=True)),
            }
            for bar, rows in tried.items()
        }
    return found


def new_words(original: Phrases, edited: Phrases) -> set[int]:
    """Words that an edit brought, marks left out."""
    new = edited_words(original.tokens, edited.tokens)
    return {i for i in new if any(letter.isalnum() for letter in edited.tokens[i])}


def main() -> None:
    """Choose or measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--encoder", default="minilm", help="folder, name under LIKEWISE_MODELS, hub id")
    parser.add_argument("--choose", action="store_true")
    options = parser.parse_args()
    if options.choose:
        bars = [round(0.5 + 0.05 * step, 2) for step in range(9)]
        print(json.dumps(edit_numbers(options.encoder, "train", bars), indent=1))
        return
    document = {
        "encoder": options.encoder,
        "chunks": {name: chunk_numbers(options.encoder, name) for name in CHUNKED},
        "bar": MATCHED,
        "edits": {k: v[str(MATCHED)] for k, v in edit_numbers(options.encoder, "dev", [MATCHED]).items()},
        "versions": versions(),
    }
    target = HERE / "results" / "explaining.json"
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf8")
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
