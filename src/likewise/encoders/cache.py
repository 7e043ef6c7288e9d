"""A cache on disk for the vectors of frozen encoders: each text is encoded only once, for all runs.

    FOLDER/PRINT/about.json         the encoder's name, width and prompt, for people
    FOLDER/PRINT/*.safetensors      shards of vectors, each with its checksum (`encoders.shards`)
    FOLDER/NAME/*                   files named by a hash of what they were made from (`data.filecache`), such
                                    as `identities`: the PRINTs of weights that were hashed before

PRINT is a hash of everything that a vector depends on: weights, modules, the networks' configuration,
tokenizer, prompt, maximum length, precision, and whether long texts are read in windows. Writers never change
each other's shards, so several processes can fill one cache; at worst they keep a text twice. A damaged shard
is reported and removed, and its texts are encoded again. If the folder cannot be written, vectors stay in
memory until the process ends.
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

from likewise.answering import CUT, Long, Vectors
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
from likewise.encoders.features import OVERLAP, TextFeatures, default_prompt
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
from likewise.errors import DataError, ModelError, Problem

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
_CHANGED = "{}: its files were changed while they were read. Run the command again."
# What an encoder's folder is called: its PRINT.
_PRINT = re.compile("[0-9a-f]{24}")


def default_folder() -> Path:
    """The folder of the cache, unless a recipe or LIKEWISE_CACHE names another one."""
    return cache_home()


@dataclass(frozen=True, slots=True)
class Identity:
    """The fingerprint that identifies an encoder's vectors, and their width."""

    fingerprint: str
    width: int
    prompt: str | None


def identify(
    encoder: SentenceTransformer, prompt: str | None = None, precision: str = "fp32", long: Long = CUT
) -> Identity:
    """Compute an encoder's identity from everything that its vectors depend on."""
    # The prompt that texts really get, so that another one never finds these vectors.
    prompt = prompt or default_prompt(encoder)
    digest = hashlib.blake2b(digest_size=12)
    about = [_PRINT_VERSION, settings_of(encoder), prompt, precision]
    if long != CUT:  # vectors of texts that are cut keep the name that they always had
        about.append([long, OVERLAP])
    digest.update(json.dumps(about, sort_keys=True).encode())
    # No pooling mode reads BERT's pooler, and a checkpoint without one is given a new one at every start.
    read = {name: value for name, value in encoder.state_dict().items() if ".pooler." not in name}
    for name, value in sorted(read.items()):
        digest.update(name.encode())
        digest.update(memoryview(value.detach().cpu().contiguous().view(-1).numpy()).cast("B"))
    return Identity(digest.hexdigest(), embedding_width(encoder), prompt)


def remembered_identity(
    key: Sequence[object], find: Callable[[], Identity], *, unchanged: Callable[[], bool] = lambda: True
) -> Identity:
    """The identity that is cached under `key`, or computed now; with a cached one no weights are read.

    `unchanged` is asked after `find` has read the weights: whether they still are what `key` was made from.
    """
    name = content_key(_PRINT_VERSION, *key)
    with contextlib.suppress(TypeError):
        kept = _IDENTITIES.read_json(name)
        if kept is not None:
            return Identity(**kept)
    found = find()
    if not unchanged():
        raise ModelError(_CHANGED.format("the encoder"))
    _IDENTITIES.write_json(name, found)
    return found


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """The vectors that a cache holds for one encoder; only the size of a damaged entry is known."""

    name: str
    fingerprint: str
    width: int
    texts: int
    bytes: int


class EmbeddingCache:
    """The vectors of one encoder by text; missing ones are computed and added."""

    def __init__(
        self,
        open_encoder: Callable[[], SentenceTransformer],
        identity: Identity,
        *,
        name: str,
        folder: str | Path | None = None,
        precision: str = "fp32",
        long: Long = CUT,
    ) -> None:
        self._open, self.identity, self._precision, self._long = open_encoder, identity, precision, long
        self.width, self.fingerprint = identity.width, identity.fingerprint
        self.folder = Path(folder or default_folder()) / self.fingerprint
        self._about = {"name": name, "width": self.width, "prompt": identity.prompt}
        self._verified = False
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
        long: Long = CUT,
    ) -> EmbeddingCache:
        """The cache of a loaded encoder."""
        identity = identify(encoder, prompt, precision, long)
        return cls(lambda: encoder, identity, name=name, folder=folder, precision=precision, long=long)

    def matrix(
        self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None, shard: int = SHARD
    ) -> Vectors:
        """The vectors of texts, N×d, in the given order; missing ones are encoded and added to the cache.

        A large matrix is mapped from a temporary file.
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
        """Encode the texts that are missing, add them, and return their number."""
        distinct = list(dict.fromkeys(texts))
        waiting = self._collect(self._shards(), text_keys(distinct), None)
        if progress is not None and len(distinct) > len(waiting):
            progress(len(distinct) - len(waiting))
        return sum(len(part[0]) for part in self._encode([distinct[row] for row in waiting], progress, shard))

    def _encode(
        self, texts: Iterable[str], progress: Callable[[int], None] | None, shard: int
    ) -> Iterator[tuple[Keys, Vectors]]:
        """Encode texts and add them to the cache, shard by shard."""
        # Similar lengths share a shard, and so a batch.
        new = sorted(texts, key=len)
        for start in range(0, len(new), shard):
            part, encoder = new[start : start + shard], self._open()
            self._verify(encoder)
            features = TextFeatures(encoder, self.identity.prompt, long=self._long)
            vectors = encode_texts(
                encoder, part, precision=self._precision, features=features, progress=progress
            )
            keys = text_keys(part)
            self._keep(keys, vectors)
            yield keys, vectors

    def _verify(self, encoder: SentenceTransformer) -> None:
        """Refuse an encoder that is not the one of this cache: its files changed after they were hashed."""
        if self._verified:
            return
        now = identify(encoder, self.identity.prompt, self._precision, self._long)
        if now.fingerprint != self.fingerprint:
            raise ModelError(_CHANGED.format(self._about["name"]))
        self._verified = True

    def _collect(
        self, shards: Sequence[tuple[Keys, Vectors]], keys: Keys, into: Vectors | None
    ) -> NDArray[np.intp]:
        """Copy the vectors of keys into a matrix and return the rows that are in no shard.

        Each shard's keys are looked up among the wanted keys, so each stored vector is visited once.
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
        """Write a shard; if that fails, keep it in memory and warn once."""
        if not self._held:
            try:
                if not _is_about(self.folder / _ABOUT, self.width):
                    write_json_aside(self.folder / _ABOUT, self._about, ours=True)
                write_shard(self.folder, keys, vectors)
                return
            except UnwritableError as error:
                again = "the vectors are not saved, so the next run encodes these texts again"
                _log.warning("%s; %s", error, again)
        order = np.argsort(keys)
        self._held.append((keys[order], vectors[order]))

    def _shards(self) -> list[tuple[Keys, Vectors]]:
        """All undamaged shards; damaged ones are reported and removed."""
        found = list(self._held)
        sweep(self.folder)
        for path in shards_in(self.folder):
            try:
                found.append(open_shard(path, self.width))
            except FileNotFoundError:
                continue  # somebody clears the cache
            except OSError as error:
                _log.warning("%s cannot be read (%s), so its texts are encoded again", path, error.strerror)
            except DamagedShardError as error:
                _log.warning("%s; it is removed, and its texts are encoded again", error)
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
        return found


def cache_entries(folder: str | Path | None = None) -> list[CacheEntry]:
    """The content of the cache, one entry per encoder; the shards' checksums are not verified."""
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
    """Remove all encoders' vectors and everything else in the cache; returns the number of freed bytes.

    Only files of Likewise are removed, one by one. Processes that read or write them are not disturbed, and
    an interrupted call is completed by the next one.
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
    """The size of everything that is cached beside the vectors: prepared rows, alignments, identities."""
    return kept_bytes(Path(folder or default_folder()))


def _entry_folders(folder: str | Path | None) -> list[Path]:
    """The folders that are named by a PRINT."""
    try:
        found = sorted(Path(folder or default_folder()).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        place = str(folder or default_folder())
        problem = Problem(place, f"this folder cannot be read ({error.strerror})", "check its permissions")
        raise DataError([problem]) from error
    return [path for path in found if _PRINT.fullmatch(path.name) and path.is_dir() and not path.is_symlink()]


def _our_files(place: Path) -> list[Path]:
    """The files in an encoder's folder that Likewise wrote: shards by name, about.json by its content."""
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
    """Whether Likewise wrote an about.json: it has our keys, or is damaged and is beside our shards."""
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
    """The position of each wanted key among the sorted known keys; −1 if it is missing."""
    if not len(known):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[place] == wanted, place, -1)


def _lay(part: tuple[Keys, Vectors], wanted: Keys, rows: NDArray[np.intp], into: Vectors) -> None:
    """Copy new vectors into their rows; `wanted` are the sorted keys of the rows."""
    keys, vectors = part
    first, end = (np.searchsorted(wanted, keys, side=side) for side in ("left", "right"))
    for row, start, stop in zip(vectors, first, end, strict=True):
        into[rows[start:stop]] = row


def _allocate(shape: tuple[int, int], folder: Path) -> Vectors:
    """An empty matrix in memory, or in an unnamed file whose space is reserved first.

    The file is in the cache's folder or else in the system's folder for temporary files.
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
            found = f"there is no space for {size / 2**30:.1f} GiB of vectors ({error.strerror})"
            remedy = f"free some space, or set {CACHE_VARIABLE} to another folder"
            problem = problem or Problem(str(place), found, remedy)
    raise DataError([problem] if problem else [])
