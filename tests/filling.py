"""A process that fills an embedding cache: filling.py ENCODER FOLDER FIRST LAST SHARD [file-size limit]."""

from __future__ import annotations

import resource
import signal
import sys

from likewise.encoders.cache import EmbeddingCache
from likewise.encoders.sentence import load_encoder


def main() -> None:
    """Encode texts number FIRST to LAST, shard by shard."""
    encoder, folder, first, last, shard, *limit = sys.argv[1:]
    cache = EmbeddingCache.of(load_encoder(encoder, device="cpu"), name="tiny", folder=folder)
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit[0]), int(limit[0])))
    texts = [f"the dog {n}" for n in range(int(first), int(last))]
    made = cache.matrix(texts, shard=int(shard))
    again = cache.matrix(texts, shard=int(shard))
    sys.stdout.write(f"equal: {bool((made == again).all())}\n")


if __name__ == "__main__":
    main()
