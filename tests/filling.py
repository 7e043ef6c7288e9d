"""A process that fills an embedding cache: filling.py ENCODER FOLDER FIRST LAST SHARD [file-size limit]."""

from __future__ import annotations

import resource
import signal
import sys

from likewise.encoders.cache import EmbeddingCache
from likewise.encoders.sentence import load_encoder
from likewise.errors import DataError


def main() -> None:
    """Encode texts number FIRST to LAST, shard by shard."""
    encoder, folder, first, last, shard, *limit = sys.argv[1:]
    cache = EmbeddingCache.of(load_encoder(encoder, device="cpu"), name="tiny", folder=folder)
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit[0]), int(limit[0])))
    try:
        cache.fill([f"the dog {n}" for n in range(int(first), int(last))], shard=int(shard))
    except DataError as error:
        sys.stdout.write(f"{error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
