"""Vectors of a frozen encoder kept on disk: every text is encoded once, whatever run asks for it.

    FOLDER/PRINT/about.json         which encoder: name, width, prompt
    FOLDER/PRINT/*.safetensors      shards: keys N×16 (hash of the text), vectors N×d
    FOLDER/NAME/*                   files found by what they were made of (`data.filecache`), as `identities`,
                                    the PRINTs of weights that were hashed before

PRINT is a hash of everything a vector depends on: weights, modules, prompt, longest text, precision. A
shard is written under another name and renamed, so it is whole or not there; writers never touch each other's
shards, so two processes may fill one cache, and at worst keep a text twice. Reading maps files into memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.answering import Vectors
from likewise.data.aside import open_aside, write_json_aside
from likewise.data.filecache import (
    CACHE_VARIABLE,
    FileCache,
    cache_home,
    clear_kept,
    content_key,
    kept_bytes,
)
from likewise.encoders.features import TextFeatures, default_prompt
from likewise.encoders.sentence import embedding_width
from likewise.encoders.vectors import encode_texts
from likewise.errors import DataError, Problem

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Texts encoded before a shard is written: what a crash can cost.
SHARD = 8192
# Matrices above this size are laid out in a file and mapped, not held.
HELD_BYTES = 2**30
_KEY = 16
_IDENTITIES = FileCache("identities", ".json")
Keys = NDArray[np.bytes_]


def default_folder() -> Path:
    """Where vectors are kept unless a recipe or LIKEWISE_CACHE says otherwise."""
    return cache_home()


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells one encoder's vectors from another's, and how wide they are."""

    fingerprint: str
    width: int
    prompt: str | None


def identify(encoder: SentenceTransformer, prompt: str | None = None, precision: str = "fp32") -> Identity:
    """An encoder's identity, from everything that its vectors depend on."""
    # The prompt that texts really get, so that another one never finds these vectors.
    prompt = prompt or default_prompt(encoder)
    digest = hashlib.blake2b(digest_size=12)
    modules = [type(module).__name__ for module in encoder]
    settings: list[object] = [getattr(module, "get_config_dict", dict)() for module in encoder]
    about = [modules, settings, encoder.max_seq_length, prompt, precision]
    digest.update(json.dumps(about, default=str, sort_keys=True).encode())
    # No pooling mode reads BERT's pooler, and a checkpoint without one is given a new one at every start.
    read = {name: value for name, value in encoder.state_dict().items() if ".pooler." not in name}
    for name, value in sorted(read.items()):
        digest.update(name.encode())
        digest.update(memoryview(value.detach().cpu().contiguous().view(-1).numpy()).cast("B"))
    return Identity(digest.hexdigest(), embedding_width(encoder), prompt)


def remembered_identity(key: Sequence[object], find: Callable[[], Identity]) -> Identity:
    """The identity found before for what `key` says, or found now: the weights need not be read for it."""
    name = content_key(*key)
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Identity(**json.loads(_IDENTITIES.path(name).read_text(encoding="utf8")))
    found = find()
    _IDENTITIES.write(name, lambda path: write_json_aside(path, found), optional=True)
    return found


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """What a cache holds for one encoder."""

    name: str
    fingerprint: str
    width: int
    texts: int
    bytes: int


class EmbeddingCache:
    """Vectors of one encoder by text; missing ones are computed and kept."""

    def __init__(
        self,
        open_encoder: Callable[[], SentenceTransformer],
        identity: Identity,
        *,
        name: str,
        folder: str | Path | None = None,
        precision: str = "fp32",
    ) -> None:
        self._open, self.identity, self._precision = open_encoder, identity, precision
        self.width, self.fingerprint = identity.width, identity.fingerprint
        self.folder = Path(folder or default_folder()) / self.fingerprint
        self.folder.mkdir(parents=True, exist_ok=True)
        about = self.folder / "about.json"
        if not about.is_file():
            write_json_aside(about, {"name": name, "width": self.width, "prompt": identity.prompt})
        _same_width(about, self.width)

    @classmethod
    def of(
        cls,
        encoder: SentenceTransformer,
        *,
        name: str,
        prompt: str | None = None,
        folder: str | Path | None = None,
        precision: str = "fp32",
    ) -> EmbeddingCache:
        """The cache of an encoder that is at hand."""
        identity = identify(encoder, prompt, precision)
        return cls(lambda: encoder, identity, name=name, folder=folder, precision=precision)

    def matrix(
        self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None, shard: int = SHARD
    ) -> Vectors:
        """Vectors of texts, N×d, in the order given; those not kept yet are encoded and kept first.

        A large matrix is mapped from a file that vanishes with it.
        """
        keys = text_keys(texts)
        made = _allocate((len(texts), self.width), self.folder)
        waiting = self._collect(keys, made)
        if progress is not None and len(texts) > len(waiting):
            progress(len(texts) - len(waiting))
        if len(waiting):
            self._encode(dict.fromkeys(texts[row] for row in waiting), progress, shard)
            waiting = self._collect(keys, made)
        if len(waiting):
            raise DataError(
                [Problem(str(self.folder), "lost vectors while they were read", "run the same command again")]
            )
        return made

    def fill(
        self, texts: Iterable[str], *, progress: Callable[[int], None] | None = None, shard: int = SHARD
    ) -> int:
        """Encode and keep the texts that are not here; how many there were."""
        distinct = list(dict.fromkeys(texts))
        waiting = self._collect(text_keys(distinct), None)
        if progress is not None and len(distinct) > len(waiting):
            progress(len(distinct) - len(waiting))
        return self._encode([distinct[row] for row in waiting], progress, shard)

    def _encode(self, texts: Iterable[str], progress: Callable[[int], None] | None, shard: int) -> int:
        # Similar lengths share a shard, and so a batch.
        new = sorted(texts, key=len)
        for start in range(0, len(new), shard):
            part, encoder = new[start : start + shard], self._open()
            features = TextFeatures(encoder, self.identity.prompt)
            vectors = encode_texts(
                encoder, part, precision=self._precision, features=features, progress=progress
            )
            self._keep(text_keys(part), vectors)
        return len(new)

    def _collect(self, keys: Keys, into: Vectors | None) -> NDArray[np.intp]:
        """Lay the vectors of keys into a matrix, row by row; the rows that are in no shard.

        Shards are looked up in the keys, not the keys in every shard: each kept vector is met once.
        """
        distinct, place = np.unique(keys, return_inverse=True)
        shard_of, row_of = np.full(len(distinct), -1), np.zeros(len(distinct), dtype=np.int64)
        shards = list(self._shards())
        for number, (shard_keys, _) in enumerate(shards):
            found = _find(distinct, shard_keys)
            here = found >= 0
            shard_of[found[here]], row_of[found[here]] = number, np.flatnonzero(here)
        shard_of, row_of = shard_of[place], row_of[place]
        if into is not None:
            by_shard = np.argsort(shard_of, kind="stable")
            ends = np.searchsorted(shard_of[by_shard], np.arange(len(shards) + 1))
            for (_, vectors), start, end in zip(shards, ends[:-1], ends[1:], strict=True):
                rows = by_shard[start:end]
                into[rows] = vectors[row_of[rows]]
        return np.flatnonzero(shard_of < 0)

    def _keep(self, keys: Keys, vectors: Vectors) -> None:
        from safetensors.numpy import save

        order = np.argsort(keys)
        raw = keys[order].view(np.uint8).reshape(len(keys), _KEY)
        content = save({"keys": raw, "vectors": np.ascontiguousarray(vectors[order], dtype=np.float32)})
        with open_aside(self.folder / f"{secrets.token_hex(8)}.safetensors") as file:
            file.write(content)

    def _shards(self) -> Iterator[tuple[Keys, Vectors]]:
        for path in sorted(self.folder.glob("*.safetensors")):
            keys, vectors = _map_shard(path)
            if vectors.shape[1] != self.width:
                raise DataError([_foreign(path, vectors.shape[1], self.width)])
            yield keys, vectors


def text_keys(texts: Sequence[str]) -> Keys:
    """A 16-byte hash of each text, exact to the character."""
    raw = b"".join(hashlib.blake2b(text.encode("utf8"), digest_size=_KEY).digest() for text in texts)
    return np.frombuffer(raw, dtype=f"S{_KEY}")


def cache_entries(folder: str | Path | None = None) -> list[CacheEntry]:
    """What the cache holds, one entry per encoder."""
    found = []
    for about in sorted(Path(folder or default_folder()).glob("*/about.json")):
        document = json.loads(about.read_text(encoding="utf8"))
        shards = list(about.parent.glob("*.safetensors"))
        found.append(
            CacheEntry(
                document["name"],
                about.parent.name,
                document["width"],
                sum(len(_map_shard(path)[0]) for path in shards),
                sum(path.stat().st_size for path in shards),
            )
        )
    return found


def clear_cache(folder: str | Path | None = None) -> int:
    """Remove every encoder's vectors and all that is kept beside them; the bytes that were freed."""
    home = Path(folder or default_folder())
    freed = sum(entry.bytes for entry in cache_entries(home)) + prepared_bytes(home)
    for entry in cache_entries(home):
        shutil.rmtree(home / entry.fingerprint, ignore_errors=True)
    clear_kept(home)
    return freed


def prepared_bytes(folder: str | Path | None = None) -> int:
    """The room that all takes that is kept beside the vectors: prepared data, alignments, identities."""
    return kept_bytes(Path(folder or default_folder()))


def _find(known: Keys, wanted: Keys) -> NDArray[np.intp]:
    """The place of each wanted key among sorted ones, −1 where it is not."""
    if not len(known):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[place] == wanted, place, -1)


def _map_shard(path: Path) -> tuple[Keys, Vectors]:
    """Keys and vectors of a shard, mapped; a damaged file is named with what to do."""
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(size))
        count, width = header["vectors"]["shape"]
        places = {name: 8 + size + header[name]["data_offsets"][0] for name in ("keys", "vectors")}
        keys = np.memmap(path, f"S{_KEY}", "r", offset=places["keys"], shape=(count,))
        vectors = np.memmap(path, np.float32, "r", offset=places["vectors"], shape=(count, width))
    except (OSError, ValueError, KeyError, struct.error) as error:
        raise DataError(
            [Problem(str(path), f"is not a shard of vectors ({error})", "delete it: it is made again")]
        ) from None
    return keys, vectors


def _allocate(shape: tuple[int, int], folder: Path) -> Vectors:
    """An empty matrix, held or in a nameless file of the folder, whose room is taken beforehand."""
    size = 4 * shape[0] * shape[1]
    if size <= HELD_BYTES:
        return np.empty(shape, dtype=np.float32)
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            found = f"has no room for {size / 2**30:.1f} GiB of vectors ({error.strerror})"
            raise DataError([Problem(str(folder), found, f"free some, or set {CACHE_VARIABLE}")]) from None
        return np.memmap(file, np.float32, "r+", shape=shape)


def _same_width(about: Path, width: int) -> None:
    try:
        found = json.loads(about.read_text(encoding="utf8"))["width"]
    except (OSError, ValueError, KeyError) as error:
        raise DataError([Problem(str(about), f"cannot be read ({error})", "likewise cache clear")]) from None
    if found != width:
        raise DataError([_foreign(about, found, width)])


def _foreign(path: Path, found: int, width: int) -> Problem:
    message = f"holds vectors of width {found}, this encoder's have {width}: another encoder wrote it"
    return Problem(str(path), message, "likewise cache clear")
