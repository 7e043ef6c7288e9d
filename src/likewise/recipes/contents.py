"""What the files hold that a recipe reads: who keeps a result by it finds it only while they are the same.

A name in a recipe leads to a file, a folder, the two files of a prefix, the splits of a corpus in the data
folder, or the corpora of a suite. Hashes are of content: size and time may be those of another file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from likewise.data.corpora import Folder, split_files
from likewise.data.filecache import content_digest, content_key, files_in
from likewise.data.reading import find_named_corpus, name_splits
from likewise.encoders.resolve import resolve
from likewise.errors import LikewiseError
from likewise.evaluation.suites import SUITES, suite_files
from likewise.schema.parts import EncoderSpec
from likewise.schema.recipe import Recipe

Files = dict[str, list[Path]]


def recipe_files(recipe: Recipe, data_dir: Folder = None) -> Files:
    """The files behind every name of a recipe, those of its encoder among them."""
    names = [source for stage in recipe.stage for source in stage.sources()]
    found = source_files(names, data_dir)
    if encoder := encoder_files(recipe.encoder):
        found["the encoder"] = encoder
    for name in dict.fromkeys(name for stage in recipe.stage for name in stage.models()):
        if files := _model_files(name):
            found[f"the model {name}"] = files
    return found


def _model_files(name: str) -> list[Path]:
    """The files of a model that a stage reads; none if it is no folder here."""
    try:
        return _files_at(Path(name) if os.path.isdir(name) else Path(resolve(name)))
    except LikewiseError:
        return []  # whoever opens it says why


def source_files(names: Iterable[str], data_dir: Folder = None) -> Files:
    """The files behind names of data and suites; a name that leads to none, as to the hub, is left out."""
    found = {name: _files_behind(name, data_dir) for name in dict.fromkeys(names)}
    return {name: files for name, files in found.items() if files}


def encoder_place(spec: EncoderSpec) -> Path | None:
    """The folder or file of an encoder; None if it lies on the hub, or nowhere."""
    try:
        name = resolve(spec.name) if spec.kind == "pretrained" else spec.vectors
    except LikewiseError:
        return None  # whoever opens it says why
    return Path(name) if name else None


def encoder_files(spec: EncoderSpec) -> list[Path]:
    """The files that an encoder is made of; none if it lies on the hub, or nowhere."""
    place = encoder_place(spec)
    return [] if place is None else _files_at(place)


def digest_files(files: Iterable[Path], known: dict[Path, str]) -> str:
    """One hash of what several files hold, in their order; `known` remembers those that were read already."""
    digests = []
    for file in files:
        if file not in known:
            known[file] = content_digest(file)
        digests.append(known[file])
    return digests[0] if len(digests) == 1 else content_key(*digests, length=16)


def _files_behind(name: str, data_dir: Folder) -> list[Path]:
    files = [*_files_at(Path(name)), *suite_files(name, data_dir)]
    if name not in SUITES:
        splits = dict.fromkeys(name_splits(name))
        files += [file for split in splits for file in _corpus_files(split, data_dir)]
    return list(dict.fromkeys(files))


def _files_at(path: Path) -> list[Path]:
    """A file, the files of a folder, or those that begin as a prefix of parallel text does."""
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
