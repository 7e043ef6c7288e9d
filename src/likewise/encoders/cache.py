"""Vectors of a frozen encoder kept on disk: every text is encoded once, whatever run asks for it.

    FOLDER/PRINT/about.json         which encoder: name, width, prompt; for people
    FOLDER/PRINT/*.safetensors      shards of vectors, each with its checksum (`encoders.shards`)
    FOLDER/NAME/*                   files found by what they were made of (`data.filecache`), as `identities`,
                                    the PRINTs of weights that were hashed before

PRINT is a hash of everything a vector depends on: weights, modules, the networks' configuration, tokenizer,
prompt, longest text, precision. Writers never touch each other's shards, so two processes may fill one cache,
and at worst keep a text twice. A shard that is damaged is said to be, removed, and its texts are encoded
again. Where nothing can be written, vectors stay in memory for as long as the process lives.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.answering import Vectors
from likewise.data.filecache import (
    CACHE_VARIABLE,
    FileCache,
    cache_home,
    clear_kept,
    content_key,
    kept_bytes,
)
from likewise.disk import UnwritableError, make_folder, saying_why, sweep, write_json_aside
from likewise.encoders.computing import settings_of
from likewise.encoders.features import TextFeatures, default_prompt
from likewise.encoders.sentence import embedding_width
from likewise.encoders.shards import (
    DamagedShardError,
    Keys,
    count_texts,
    is_ours,
    open_shard,
    shards_in,
    text_keys,
    write_shard,
)
from likewise.encoders.vectors import encode_texts
from likewise.errors import DataError, Problem

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_log = logging.getLogger("likewise")

# Raised when a PRINT takes in more, or reads it otherwise: what was kept under the former ones is not found.
_PRINT_VERSION = 2
# Texts encoded before a shard is written: what a crash can cost.
SHARD = 8192
# Matrices above this size are laid out in a file and mapped, not held.
HELD_BYTES = 2**30
_IDENTITIES = FileCache("identities", ".json")
_ABOUT = "about.json"
# What an encoder's folder is called: its PRINT.
_PRINT = re.compile("[0-9a-f]{24}")


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
    about = [_PRINT_VERSION, settings_of(encoder), prompt, precision]
    digest.update(json.dumps(about, sort_keys=True).encode())
    # No pooling mode reads BERT's pooler, and a checkpoint without one is given a new one at every start.
    read = {name: value for name, value in encoder.state_dict().items() if ".pooler." not in name}
    for name, value in sorted(read.items()):
        digest.update(name.encode())
        digest.update(memoryview(value.detach().cpu().contiguous().view(-1).numpy()).cast("B"))
    return Identity(digest.hexdigest(), embedding_width(encoder), prompt)


def remembered_identity(key: Sequence[object], find: Callable[[], Identity]) -> Identity:
    """The identity found before for what `key` says, or found now: the weights need not be read for it."""
    name = content_key(_PRINT_VERSION, *key)
    with contextlib.suppress(TypeError):
        kept = _IDENTITIES.read_json(name)
        if kept is not None:
            return Identity(**kept)
    found = find()
    _IDENTITIES.write_json(name, found)
    return found


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """What a cache holds for one encoder; of a damaged entry only the room it takes is known."""

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
        self._about = {"name": name, "width": self.width, "prompt": identity.prompt}
        # What could not be written, for as long as this process lives.
        self._held: list[tuple[Keys, Vectors]] = []

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
        """Vectors of texts, N×d, in the order given; those not kept yet are encoded and kept too.

        A large matrix is mapped from a file that vanishes with it.
        """
        keys = text_keys(texts)
        made = _allocate((len(texts), self.width), self.folder)
        waiting = self._collect(self._shards(), keys, made)
        if progress is not None and len(texts) > len(waiting):
            progress(len(texts) - len(waiting))
        waiting = waiting[np.argsort(keys[waiting], kind="stable")]
        for part in self._encode(dict.fromkeys(texts[row] for row in sorted(waiting)), progress, shard):
            # Laid out as they come: whoever clears the cache meanwhile takes nothing away.
            _lay(part, keys[waiting], waiting, made)
        return made

    def fill(
        self, texts: Iterable[str], *, progress: Callable[[int], None] | None = None, shard: int = SHARD
    ) -> int:
        """Encode and keep the texts that are not here; how many there were."""
        distinct = list(dict.fromkeys(texts))
        waiting = self._collect(self._shards(), text_keys(distinct), None)
        if progress is not None and len(distinct) > len(waiting):
            progress(len(distinct) - len(waiting))
        return sum(len(part[0]) for part in self._encode([distinct[row] for row in waiting], progress, shard))

    def _encode(
        self, texts: Iterable[str], progress: Callable[[int], None] | None, shard: int
    ) -> Iterator[tuple[Keys, Vectors]]:
        """Encode texts and keep them, shard by shard."""
        # Similar lengths share a shard, and so a batch.
        new = sorted(texts, key=len)
        for start in range(0, len(new), shard):
            part, encoder = new[start : start + shard], self._open()
            features = TextFeatures(encoder, self.identity.prompt)
            vectors = encode_texts(
                encoder, part, precision=self._precision, features=features, progress=progress
            )
            keys = text_keys(part)
            self._keep(keys, vectors)
            yield keys, vectors

    def _collect(
        self, shards: Sequence[tuple[Keys, Vectors]], keys: Keys, into: Vectors | None
    ) -> NDArray[np.intp]:
        """Lay the vectors of keys into a matrix, row by row; the rows that are in no shard.

        Shards are looked up in the keys, not the keys in every shard: each kept vector is met once.
        """
        distinct, place = np.unique(keys, return_inverse=True)
        shard_of, row_of = np.full(len(distinct), -1), np.zeros(len(distinct), dtype=np.int64)
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
        """Write a shard; where that cannot be done, hold it and say so once."""
        if not self._held:
            try:
                if not _is_about(self.folder / _ABOUT, self.width):
                    write_json_aside(self.folder / _ABOUT, self._about, ours=True)
                write_shard(self.folder, keys, vectors)
                return
            except UnwritableError as error:
                again = "the vectors are not kept, and the next run encodes these texts again"
                _log.warning("%s; %s", error, again)
        order = np.argsort(keys)
        self._held.append((keys[order], vectors[order]))

    def _shards(self) -> list[tuple[Keys, Vectors]]:
        """Every shard that is whole; one that is not is said to be and removed."""
        found = list(self._held)
        sweep(self.folder)
        for path in shards_in(self.folder):
            try:
                found.append(open_shard(path, self.width))
            except FileNotFoundError:
                continue  # somebody clears the cache
            except OSError as error:
                _log.warning("%s cannot be read (%s); its texts are encoded again", path, error.strerror)
            except DamagedShardError as error:
                _log.warning("%s; it is removed, and its texts are encoded again", error)
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
        return found


def cache_entries(folder: str | Path | None = None) -> list[CacheEntry]:
    """What the cache holds, one entry per encoder; shards are counted, not compared with their checksums."""
    return [entry for place in _entry_folders(folder) if (entry := _entry(place)) is not None]


def _entry(place: Path) -> CacheEntry | None:
    about = _read_about(place / _ABOUT)
    files = _our_files(place)
    shards = [path for path in files if path.suffix == ".safetensors"]
    if not files:
        return None
    return CacheEntry(
        str(about.get("name", "(unknown)")),
        place.name,
        _whole_number(about.get("width")),
        sum(count_texts(path) for path in shards),
        sum(_size(path) for path in files),
    )


def clear_cache(folder: str | Path | None = None) -> int:
    """Remove every encoder's vectors and all that is kept beside them; the bytes that were freed.

    File by file, and only files that are ours: whoever reads them goes on reading, whoever writes goes on
    writing, and what a kill leaves is removed by the next call.
    """
    home = Path(folder or default_folder())
    freed = 0
    for place in _entry_folders(home):
        with saying_why(place):
            sweep(place)
            # The shards first: what is left of an entry is still found as one.
            for path in sorted(_our_files(place), key=lambda path: path.name == _ABOUT):
                size = _size(path)
                path.unlink(missing_ok=True)
                freed += size
        with contextlib.suppress(OSError):  # somebody writes into it, or somebody else's files are in it
            place.rmdir()
    return freed + clear_kept(home)


def prepared_bytes(folder: str | Path | None = None) -> int:
    """The room that all takes that is kept beside the vectors: prepared data, alignments, identities."""
    return kept_bytes(Path(folder or default_folder()))


def _entry_folders(folder: str | Path | None) -> list[Path]:
    """The folders that are called by a PRINT."""
    try:
        found = sorted(Path(folder or default_folder()).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        place = str(folder or default_folder())
        problem = Problem(place, f"cannot be read ({error.strerror})", "check its permissions")
        raise DataError([problem]) from error
    return [path for path in found if _PRINT.fullmatch(path.name) and path.is_dir() and not path.is_symlink()]


def _our_files(place: Path) -> list[Path]:
    """The files of an encoder's folder that we wrote: shards by their names, about.json by what it says."""
    try:
        files = [path for path in sorted(place.iterdir()) if path.is_file() and not path.is_symlink()]
    except OSError:
        return []
    called = [path for path in files if is_ours(path.name)]
    # A name alone proves nothing in a folder of the user's: what a file holds does, or the about.json beside.
    marked = any(path.name == _ABOUT and _says_ours(path, False) for path in files)
    shards = [path for path in called if marked or path.suffix == ".partial" or count_texts(path)]
    return shards + [path for path in files if path.name == _ABOUT and _says_ours(path, bool(shards))]


def _says_ours(about: Path, beside_shards: bool) -> bool:
    """Whether an about.json is ours: it says what ours say, or is damaged and lies beside our shards."""
    try:
        found = json.loads(about.read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError):
        return beside_shards
    return beside_shards or (isinstance(found, dict) and {"name", "width", "prompt"} <= set(found))


def _read_about(about: Path) -> dict[str, Any]:
    try:
        found = json.loads(about.read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_about(about: Path, width: int) -> bool:
    return _read_about(about).get("width") == width


def _whole_number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # somebody else removed it


def _find(known: Keys, wanted: Keys) -> NDArray[np.intp]:
    """The place of each wanted key among sorted ones, −1 where it is not."""
    if not len(known):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[place] == wanted, place, -1)


def _lay(part: tuple[Keys, Vectors], wanted: Keys, rows: NDArray[np.intp], into: Vectors) -> None:
    """Lay vectors that were just made into the rows that wait for them; `wanted` are their keys, sorted."""
    keys, vectors = part
    first, end = (np.searchsorted(wanted, keys, side=side) for side in ("left", "right"))
    for row, start, stop in zip(vectors, first, end, strict=True):
        into[rows[start:stop]] = row


def _allocate(shape: tuple[int, int], folder: Path) -> Vectors:
    """An empty matrix, held or in a nameless file, whose room is taken beforehand.

    The file lies in the cache's folder, or else where the system keeps what is for the moment.
    """
    size = 4 * shape[0] * shape[1]
    if size <= HELD_BYTES:
        return np.empty(shape, dtype=np.float32)
    problem: Problem | None = None
    for place in (folder, Path(tempfile.gettempdir())):
        try:
            make_folder(place)
            with tempfile.TemporaryFile(dir=place) as file:
                os.posix_fallocate(file.fileno(), 0, size)
                return np.memmap(file, np.float32, "r+", shape=shape)
        except OSError as error:
            found = f"has no room for {size / 2**30:.1f} GiB of vectors ({error.strerror})"
            problem = problem or Problem(str(place), found, f"free some, or set {CACHE_VARIABLE}")
    raise DataError([problem] if problem else [])
