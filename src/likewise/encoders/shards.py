"""Shards: files of vectors with the hashes of their texts. A shard is named by a checksum of its content.

    CHECKSUM.safetensors    keys N×16 (hashes of texts), vectors N×d; 32 hexadecimal digits of its sha256

A shard is written whole or not at all. Its checksum is verified when a process first reads it, because a
changed byte would change answers unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import struct
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.answering import Vectors
from likewise.disk import open_aside
from likewise.errors import DataError

KEY = 16
Keys = NDArray[np.bytes_]
_CHECKSUM = 32
_NAME = re.compile(rf"[0-9a-f]{{{_CHECKSUM}}}\.safetensors")
# Earlier versions named their shards by chance, and wrote them under a name that begins with a dot.
_FORMER = re.compile(r"[0-9a-f]{16}\.safetensors|\.[0-9a-f]{16}\.safetensors\.[0-9a-f]+\.partial")


class DamagedShardError(DataError):
    """A shard has changed since it was written; the cache decides what to do about it."""


def text_keys(texts: Sequence[str]) -> Keys:
    """A 16-byte hash of each text, exact to the character."""
    raw = b"".join(hashlib.blake2b(text.encode("utf8"), digest_size=KEY).digest() for text in texts)
    return np.frombuffer(raw, dtype=f"S{KEY}")


def write_shard(folder: Path, keys: Keys, vectors: Vectors) -> Path:
    """Write vectors with their sorted keys to a file that is named by its checksum."""
    from safetensors.numpy import save

    order = np.argsort(keys)
    raw = keys[order].view(np.uint8).reshape(len(keys), KEY)
    content = save({"keys": raw, "vectors": np.ascontiguousarray(vectors[order], dtype=np.float32)})
    path = folder / f"{hashlib.sha256(content).hexdigest()[:_CHECKSUM]}.safetensors"
    with open_aside(path, ours=True) as file:
        file.write(content)
    return path


def shards_in(folder: Path) -> list[Path]:
    """The shards of a folder that are named by a checksum, in the order of their names."""
    return sorted(path for path in folder.glob("*.safetensors") if _NAME.fullmatch(path.name))


def is_ours(name: str) -> bool:
    """Whether a file has the name of a shard, of this or an earlier version."""
    return bool(_NAME.fullmatch(name) or _FORMER.fullmatch(name))


def open_shard(path: Path, width: int) -> tuple[Keys, Vectors]:
    """Verify a shard's checksum and map its keys and vectors."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise DamagedShardError(f"{path} is not a regular file")
    if not _is_whole(str(path), found.st_ino, found.st_size, found.st_mtime_ns):
        raise DamagedShardError(f"{path} has changed since it was written")
    keys, vectors = _map(path)
    if vectors.shape[1] != width:
        raise DamagedShardError(f"{path} holds vectors of width {vectors.shape[1]} instead of {width}")
    return keys, vectors


def count_texts(path: Path) -> int:
    """The number of texts that a shard declares; 0 if it cannot be read."""
    try:
        return len(_map(path)[0])
    except (OSError, DamagedShardError):
        return 0


@lru_cache(maxsize=1 << 16)
def _is_whole(path: str, inode: int, size: int, changed: int) -> bool:
    """Whether a file's content has the checksum of its name; computed once per state of the file."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return os.path.basename(path).startswith(digest[:_CHECKSUM])


def _map(path: Path) -> tuple[Keys, Vectors]:
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(size, path.stat().st_size)))
        count, width = header["vectors"]["shape"]
        places = {name: 8 + size + header[name]["data_offsets"][0] for name in ("keys", "vectors")}
        keys = np.memmap(path, f"S{KEY}", "r", offset=places["keys"], shape=(count,))
        vectors = np.memmap(path, np.float32, "r", offset=places["vectors"], shape=(count, width))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError, struct.error) as error:
        raise DamagedShardError(f"{path} is not a shard of vectors ({error})") from error
    return keys, vectors
