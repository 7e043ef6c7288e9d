"""What teachers say of texts: their vectors from the cache on disk, and each text's nearest neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.answering import Vectors
from likewise.data.filecache import FileCache, content_key
from likewise.encoders.cache import EmbeddingCache
from likewise.encoders.external import external_encoder
from likewise.encoders.resolve import resolve
from likewise.encoders.sentence import load_encoder
from likewise.errors import DataError, Problem
from likewise.kinds.context import RunContext
from likewise.kinds.reading import texts_print
from likewise.methods.distillation import Taught
from likewise.training.state import FitEvent

# NearTexts that were found before, by the teachers' fingerprints and the texts.
_NEIGHBOURS = FileCache("neighbours", ".json", keep=8)
# Numbers of a block of similarities: its memory is four bytes for each.
_BLOCK_CELLS = 2**28
NearTexts = NDArray[np.int64]


def ask_teachers(
    names: Sequence[str], texts: Sequence[str], count: int, context: RunContext
) -> tuple[Taught, NearTexts]:
    """The teachers' joined vectors of texts, and the `count` nearest neighbours of each text, N×count."""
    found = [_vectors_of(name, texts, context) for name in names]
    taught = Taught.of([vectors for vectors, _ in found], list(names))
    count = min(count, len(texts) - 1)
    key = content_key([print for _, print in found], texts_print([(text, "") for text in texts]), count)
    kept = _NEIGHBOURS.read_json(key)
    if _fits(kept, len(texts), count):
        return taught, np.array(kept, dtype=np.int64)

    def progress(done: int) -> None:
        context.emit(FitEvent("neighbours", done, len(texts)))

    near = find_neighbours(taught, count, torch.device(_device(context)), progress)
    _NEIGHBOURS.write_json(key, near.tolist())
    return taught, near


def check_teacher(name: str) -> None:
    """Raise an error for a teacher that is not there, before any row is read; hub ids are looked up later."""
    if not name.endswith(".npz"):
        resolve(name)
    elif not Path(name).is_file():
        raise DataError([Problem(name, "there is no such file", "check the path in teachers")])


def _fits(kept: object, texts: int, count: int) -> bool:
    return isinstance(kept, list) and len(kept) == texts and len(kept[0]) == count


def _device(context: RunContext) -> str:
    if context.device is not None:
        return context.device
    return (
        str(torch.accelerator.current_accelerator() or "cpu") if torch.accelerator.is_available() else "cpu"
    )


def _vectors_of(name: str, texts: Sequence[str], context: RunContext) -> tuple[Vectors, str]:
    """A teacher's vectors, N×d, and the fingerprint of the teacher."""
    own_vectors = name.endswith(".npz")
    encoder = external_encoder(name) if own_vectors else load_encoder(name, device=context.device)
    cache = EmbeddingCache.of(encoder, name=name, precision=context.precision)
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        context.emit(FitEvent("encode", done, len(texts)))

    vectors = cache.matrix(texts, progress=advance)
    return vectors, cache.fingerprint


@torch.inference_mode()
def find_neighbours(
    taught: Taught, count: int, device: torch.device, progress: Callable[[int], None] = lambda done: None
) -> NearTexts:
    """The texts closest to each text by the teachers, closest first and without the text itself, N×count."""
    vectors = taught.vectors.to(device)
    vectors = vectors.float() if device.type == "cpu" else vectors
    texts = len(vectors)
    block = max(1, _BLOCK_CELLS // texts)
    near = np.empty((texts, count), dtype=np.int64)
    for start in range(0, texts, block):
        rows = torch.arange(start, min(start + block, texts), device=device)
        similar = vectors[rows] @ vectors.T
        similar[rows - start, rows] = -torch.inf
        near[start : start + block] = similar.topk(count, dim=1).indices.cpu().numpy()
        progress(min(start + block, texts))
    return near
