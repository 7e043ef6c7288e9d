"""Word vectors with fewer columns: the first principal components of others, as a folder beside them.

    python benchmarks/smaller_vectors.py glove100 50

The folder glove100-50 then shows what width is worth: `encoder.vectors = "glove100-50"` in a recipe of LSTMs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from likewise.encoders.resolve import local_model


def main() -> None:
    name, width = sys.argv[1], int(sys.argv[2])
    source = Path(local_model(name) or name)
    vectors = np.load(source / "vectors.npy")
    centre = vectors - vectors.mean(axis=0)
    _, directions = np.linalg.eigh(centre.T @ centre)
    kept = directions[:, ::-1][:, :width]
    target = source.with_name(f"{source.name}-{width}")
    target.mkdir(exist_ok=True)
    # The same length on average, so that one learning rate suits both.
    smaller = vectors @ kept
    smaller *= np.linalg.norm(vectors, axis=1).mean() / np.linalg.norm(smaller, axis=1).mean()
    np.save(target / "vectors.npy", smaller.astype(np.float32))
    (target / "words.txt").write_bytes((source / "words.txt").read_bytes())
    print(f"{target}: {smaller.shape[0]:,} words, {width} of {vectors.shape[1]} columns")


if __name__ == "__main__":
    main()
