"""The trivial baseline of the multilingual method: subtract each language's mean vector.

    python benchmarks/language_means.py --encoder intfloat/multilingual-e5-small --prompt "query: " \
        --data-dir corpora --output benchmarks/results/language-means.json

It must be told the language of a text. Means come from training text alone: translated STS-B train sentences
of every language, ratings unread. Pearson and Spearman per language pair, raw and with means subtracted.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from likewise.data import load_corpus
from likewise.encoders.cache import EmbeddingCache
from likewise.encoders.sentence import load_encoder
from likewise.evaluation.metrics import compute
from likewise.evaluation.suites import LANGUAGE_PAIRS

CORPUS = "stsb_multi_mt"


def cosines(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """cos of rows."""
    lengths = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
    made: np.ndarray = (u * v).sum(axis=1).astype(np.float64) / lengths
    return made


def main() -> None:
    """Measure both, print, write where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--encoder", default="intfloat/multilingual-e5-small")
    parser.add_argument("--prompt", default="query: ")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    encoder = load_encoder(options.encoder)
    cache = EmbeddingCache.of(
        encoder, name=options.encoder, prompt=options.prompt, precision=options.precision
    )
    codes = sorted({code for pair in LANGUAGE_PAIRS for code in pair.split("-")})
    means = {}
    for code in codes:
        records = load_corpus(CORPUS, f"{code}_train", data_dir=options.data_dir)
        means[code] = cache.matrix(sorted({text for r in records for text in r.texts})).mean(axis=0)
    result = {}
    for pair in LANGUAGE_PAIRS:
        first, second = pair.split("-")
        records = load_corpus(CORPUS, f"{pair}_test", data_dir=options.data_dir)
        gold = [r.values["similarity"] for r in records]
        u, v = cache.matrix([r.a for r in records]), cache.matrix([r.b for r in records])
        raw, moved = cosines(u, v), cosines(u - means[first], v - means[second])
        result[pair] = {
            f"{metric} {name}": compute(metric, gold, scores)  # type: ignore[arg-type]
            for metric in ("pearson", "spearman")
            for name, scores in (("raw", raw), ("means subtracted", moved))
        }
        print(pair, {name: round(value, 3) for name, value in result[pair].items()})
    crossed = [values for pair, values in result.items() if pair != "en-en"]
    average = {name: float(np.mean([values[name] for values in crossed])) for name in crossed[0]}
    print("14 cross-lingual pairs", {name: round(value, 3) for name, value in average.items()})
    if options.output:
        document = {"encoder": options.encoder, "pairs": result, "average": average}
        options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
