"""Checks of where output may be written: never over an input, and never over files that Likewise did not
write.

Every verb that writes checks here before it starts, so that hours of work do not end at a file that exists
already. A folder is replaced only if it is a model of ours, known by its likewise/model.json, and holds
nothing else. A run folder is replaced only if it bears our mark.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from likewise.errors import UsageError
from likewise.files import STANDARD_INPUT, file_sha256, is_file_on
from likewise.spelling import spelt

RUN_MARK = "likewise-run.json"
# All that a run folder may hold: the mark, the lock, and in a folder for each stage weights and JSON.
_RUN_FILES = re.compile(
    rf"{re.escape(RUN_MARK)}|lock|stage-\d+/(checkpoint-\d{{8}}/)?(COMPLETE|[\w-]+\.(safetensors|json))"
    r"|(.*/)?\.likewise-[0-9a-f]{16}/.*"
)
# Folders of earlier versions do not list their files: these are the names that they were written with.
_FORMER_FILES = (
    *("README.md", "modules.json", "config.json", "config_sentence_transformers.json"),
    *("sentence_bert_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "vocab.txt", "vocab.json", "merges.txt", "added_tokens.json"),
    *("sentencepiece.bpe.model", "spiece.model", "unigram.json", "whitespacetokenizer_config.json"),
    *(
        "wordembedding_config.json",
        "lstm_config.json",
        "peephole_lstm_config.json",
        "model.safetensors.index.json",
    ),
)
# Files of a model folder that its own list leaves out: the list itself, and the card, which people edit.
_BESIDE = ("likewise/model.json", "README.md")
_LARGEST_MARK = 64 * 2**20
_FORMER_MODULE = re.compile(r"^(likewise/layers/)?\d+_[A-Z][A-Za-z]+/")
_FORMER_OWN = re.compile(r"likewise/(model\.json|\w+\.safetensors)")
_SHOWN = 3


def check_output_file(
    output: Path, *, inputs: Iterable[object] = (), overwrite: bool = False, option: str | None = None
) -> None:
    """Refuse an output file that is an input, or that exists already and may not be replaced."""
    option = option or spelt("output")
    _refuse_impossible(output, option)
    for path in _paths(inputs):
        if is_same(output, path):
            raise UsageError(
                f"{option} {output} is an input of this command. Choose another name for the output."
            )
        if os.path.isdir(path) and _real(path) in _real(output).parents:
            raise UsageError(f"{option} {output} lies in {path}, which is an input. Choose another folder.")
    if os.path.isdir(output):
        raise UsageError(f"{option} {output} is a folder. Name a file in it.")
    if os.path.isfile(output) and not overwrite:
        raise UsageError(
            f"{option} {output} exists already. Choose another name, or replace it with {spelt('overwrite')}."
        )


def check_model_folder(output: Path, *, inputs: Iterable[object] = (), overwrite: bool = False) -> None:
    """Refuse a model folder that would replace an input, or anything but a model of ours."""
    _refuse_impossible(output, spelt("output"))
    check_beside_inputs(output, inputs)
    if not _there(output) or is_empty_folder(output):
        return
    if not os.path.isdir(output):
        raise UsageError(
            f"{spelt('output')} {output} is a file, but a model is a folder. Choose another name."
        )
    _refuse_foreign(output, _foreign_in_model(output), "a model that Likewise wrote")
    if not overwrite:
        remedy = f"Choose another {spelt('output')}, or replace it with {spelt('overwrite')}"
        raise UsageError(f"{output} exists already. {remedy}.")


def check_run_folder(work: Path) -> None:
    """Refuse to start a new run in a folder that is not a run of ours."""
    if _there(work):
        _refuse_foreign(work, _foreign_in_run(work), "a run of Likewise")


def is_empty_folder(folder: Path) -> bool:
    """Whether a folder exists and is empty."""
    try:
        return os.path.isdir(folder) and not os.listdir(folder)
    except OSError:
        return False


def is_model_folder(folder: Path) -> bool:
    """Whether a folder is a model of ours and holds nothing else."""
    return os.path.isdir(folder) and _foreign_in_model(folder) == []


def model_print(folder: Path) -> str:
    """What tells the model in a folder from any other one; "" if there is none."""
    try:
        return file_sha256(folder / "likewise" / "model.json")
    except OSError:
        return ""


def is_run_folder(work: Path) -> bool:
    """Whether a folder is a run of ours and holds nothing else."""
    return os.path.isdir(work) and _foreign_in_run(work) == []


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False


def check_beside_inputs(output: Path, inputs: Iterable[object]) -> None:
    """Refuse a folder that is an input, holds an input, or lies inside one."""
    here = _real(output)
    for path in _paths(inputs):
        there = _real(path)
        if there == here:
            raise UsageError(
                f"{spelt('output')} {output} is an input of this command. Choose another name for the output."
            )
        if here in there.parents:
            raise UsageError(
                f"{spelt('output')} {output} holds {path}, which is an input. Choose a folder beside it."
            )
        if os.path.isdir(there) and there in here.parents:
            raise UsageError(
                f"{spelt('output')} {output} lies inside {path}, which is an input. Choose a folder "
                "beside it."
            )


def check_outside_inputs(output: Path, inputs: Iterable[object]) -> None:
    """Refuse a folder that is an input folder or lies inside one."""
    here = _real(output)
    for path in _paths(inputs):
        if os.path.isdir(path) and (_real(path) == here or _real(path) in here.parents):
            raise UsageError(
                f"{spelt('output')} {output} lies in {path}, which is an input. Choose another folder."
            )


def _refuse_impossible(output: Path, option: str) -> None:
    if "\0" in str(output):
        raise UsageError(
            f"{option}: the name holds a NUL character, which file names cannot hold. Choose another name."
        )


def _refuse_foreign(folder: Path, foreign: list[str] | None, what: str) -> None:
    if foreign is None:
        raise UsageError(
            f"{folder} is not {what}, so it was not replaced. Choose another {spelt('output')}, or remove "
            "the folder yourself."
        )
    if foreign:
        more = f" and {len(foreign) - _SHOWN:,} more" if len(foreign) > _SHOWN else ""
        raise UsageError(
            f"{folder} also holds files that Likewise did not write "
            f"({', '.join(foreign[:_SHOWN])}{more}), so it was not replaced. Move them away, or "
            f"choose another {spelt('output')}."
        )


def _foreign_in_model(folder: Path) -> list[str] | None:
    """The files in a model folder that we did not write, or None if it is not a model folder of ours."""
    document = read_mark(folder / "likewise" / "model.json")
    if document is None or "format" not in document:
        return None
    listed = document.get("files")
    known = {*listed, *_BESIDE} if isinstance(listed, dict) else None
    return [name for name in _names(folder) if not (_is_former(name) if known is None else name in known)]


def _is_former(name: str) -> bool:
    # A module has a folder of its own (1_Pooling, 2_Dense); the labels' own encoder is a model once more.
    inside = name.removeprefix("likewise/label_encoder/")
    module = _FORMER_MODULE.sub("", inside)
    if _FORMER_OWN.fullmatch(name) or inside in _FORMER_FILES:
        return True
    return module != inside and module in _FORMER_FILES and module != "README.md"


def _foreign_in_run(work: Path) -> list[str] | None:
    """The entries of a run folder that we did not make, or None if it bears no mark of ours."""
    mark = read_mark(work / RUN_MARK)
    if mark is None or mark.get("likewise") != "run":
        return None
    return [name for name in _names(work) if not _RUN_FILES.fullmatch(name) or (work / name).is_symlink()]


def read_mark(path: Path) -> dict[str, Any] | None:
    """A JSON object that marks a folder as ours, or None if there is none."""
    try:
        if not os.path.isfile(path) or path.stat().st_size > _LARGEST_MARK:
            return None
        found = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _names(folder: Path) -> Iterator[str]:
    """The files of a folder by their paths inside it, including model.json and the files that list others."""
    for where, folders, files in os.walk(folder):
        # A link may lead anywhere: it counts as one thing, and nobody of ours made it.
        linked = [name for name in folders if (Path(where) / name).is_symlink()]
        for name in sorted([*files, *linked]):
            yield (Path(where) / name).relative_to(folder).as_posix()


def _paths(inputs: Iterable[object]) -> Iterator[Path]:
    """The inputs that are files or folders on this machine. Names of corpora and tables in memory are left
    out.
    """
    for found in inputs:
        if isinstance(found, str) and found == "-":  # a frame compares each of its cells
            yield from (STANDARD_INPUT,) if is_file_on(0) else ()
        elif isinstance(found, str | os.PathLike) and str(found):
            path = Path(os.path.expanduser(found))
            # A model may also be called by its name in the user's folder of models.
            for place in (path, Path(os.environ.get("LIKEWISE_MODELS", "")) / path):
                if os.path.exists(place):
                    yield place
                    break


def _real(path: Path) -> Path:
    """Where a path leads, through all links."""
    return Path(os.path.realpath(path))


def _there(path: Path) -> bool:
    """Whether a name is taken, also by a broken link."""
    return os.path.lexists(path)
