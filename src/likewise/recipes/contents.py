"""Find and hash the files that a recipe reads; a result that is kept under the hash is reused only for them.

A name in a recipe leads to a file, a folder, the two files of a prefix, the splits of a corpus in the data
folder, or the corpora of a suite. The hashes are of the content, because another file may have the same size
and time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from likewise.data.corpora import Folder, split_files
from likewise.data.filecache import content_digest, content_key, files_in
from likewise.data.reading import find_named_corpus, name_splits
from likewise.encoders.resolve import possible_path, resolve
from likewise.errors import LikewiseError
from likewise.evaluation.suites import SUITES, suite_files
from likewise.naming import name_in_keys
from likewise.schema.parts import EncoderSpec
from likewise.schema.recipe import Recipe

Files = dict[str, list[Path]]


def recipe_files(recipe: Recipe, data_dir: Folder = None) -> Files:
    """The files behind every name of a recipe, including its encoder's."""
    names = [source for stage in recipe.stage for source in stage.sources()]
    found = source_files(names, data_dir)
    if encoder := encoder_files(recipe.encoder):
        found["the encoder"] = encoder
    for name in dict.fromkeys(name for stage in recipe.stage for name in stage.models()):
        if files := _model_files(name):
            found[f"the model {name_in_keys(name)}"] = files
    return found


def _model_files(name: str) -> list[Path]:
    """The files of a model that a stage reads; empty if it is not a folder on this machine."""
    try:
        own = possible_path(name)
        return _files_at(own if own is not None and os.path.isdir(own) else Path(resolve(name)))
    except LikewiseError:
        return []  # whoever opens it says why


def source_files(names: Iterable[str], data_dir: Folder = None) -> Files:
    """The files behind names of data and suites; names without files, such as hub names, are left out."""
    found = {name: _files_behind(name, data_dir) for name in dict.fromkeys(names)}
    return {name: files for name, files in found.items() if files}


def encoder_place(spec: EncoderSpec) -> Path | None:
    """The folder or file of an encoder; None if it is on the hub or does not exist."""
    try:
        name = resolve(spec.name) if spec.kind == "pretrained" else spec.vectors
    except LikewiseError:
        return None  # whoever opens it says why
    return Path(name) if name else None


def encoder_files(spec: EncoderSpec) -> list[Path]:
    """The files that an encoder is made of; empty if it is on the hub or does not exist."""
    place = encoder_place(spec)
    return [] if place is None else _files_at(place)


def digest_files(files: Iterable[Path], known: dict[Path, str], *, name: str = "") -> str:
    """One hash of the files behind a name, in order: of their content, and of their places in a folder.

    In a folder that is named, the names inside decide which files are read. Where it lies does not matter.
    `known` holds hashes that were computed before.
    """
    files = list(files)
    for file in files:
        if file not in known:
            known[file] = content_digest(file)
    folder = name if os.path.isdir(name) else ""
    if len(files) == 1 and not folder:
        return known[files[0]]
    folder = folder or os.path.commonpath([os.path.abspath(file.parent) for file in files] or [os.sep])
    named = [[os.path.relpath(os.path.abspath(file), folder), known[file]] for file in files]
    return content_key(*named, length=16)


def _files_behind(name: str, data_dir: Folder) -> list[Path]:
    files = [*_files_at(Path(name)), *suite_files(name, data_dir)]
    if name not in SUITES:
        splits = dict.fromkeys(name_splits(name))
        files += [file for split in splits for file in _corpus_files(split, data_dir)]
    return list(dict.fromkeys(files))


def _files_at(path: Path) -> list[Path]:
    """A file, the files of a folder, or the files whose names begin with a prefix of parallel text."""
    try:
        if path.is_file():
            return [path]
        if path.is_dir():
            return files_in(path)
        if path.name and path.parent.is_dir():
            begin = f"{path.name}."
            return sorted(
                file for file in path.parent.iterdir() if file.name.startswith(begin) and file.is_file()
            )
    except (OSError, ValueError):
        pass  # a name that no file can have
    return []


def _corpus_files(name: str, data_dir: Folder) -> list[Path]:
    try:
        named = find_named_corpus(name)
    except LikewiseError:
        return []  # whoever reads it says why
    if named is None:
        return []
    return split_files(*named, data_dir)
