"""Answers to the first rows of a file, kept beside the output until all rows are answered.

    out.csv.part/
      likewise-answers.json    the mark: what was asked, by hashes of the input and the model
      answers-000000.jsonl     the answers to a section of rows, one line each; null where a row has none. The
                               last line is the hash of the others.
      done.json                the hash of the output, written just before the output takes its name
      lock                     held while a process is working

A section is either complete or absent, so that after a kill the work goes on with the first section that is
missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from likewise.disk import folder_aside, locked, open_aside, remove_folder, sweep, to_json, write_json_aside
from likewise.errors import UsageError
from likewise.files import file_sha256
from likewise.outputs import read_mark
from likewise.spelling import spelt
from likewise.wording import sentence

_MARK, _DONE, _LOCK = "likewise-answers.json", "done.json", "lock"
_FILES = re.compile(rf"{re.escape(_MARK)}|{_DONE}|{_LOCK}|answers-\d{{6}}\.jsonl")
_WORKING = re.compile(r"\.likewise-[0-9a-f]{16}")
_LONGEST_LINE = 2**20
# The key of the last line of a section, which holds the hash of the others.
_END = "sha256"

Answered = Sequence[Any] | None
Mark = Mapping[str, Any]


class Journal:
    """The finished sections of answers to one output. `describe` makes the mark when it is needed."""

    def __init__(self, output: Path, describe: Callable[[], Mark]) -> None:
        self.folder = journal_folder(output)
        self._output, self._describe = output, describe
        self._held = ExitStack()
        self.sections = 0

    def begin(self, *, resume: bool, overwrite: bool) -> None:
        """Take up the sections that are there, or remove them, as the user said."""
        sweep(self.folder.parent)
        if not os.path.lexists(self.folder):
            return
        if not is_journal(self.folder):
            raise UsageError(
                f"{self.folder} is not a folder of answers that Likewise wrote. Move it away, or choose "
                f"another {spelt('output')}."
            )
        if not resume and not overwrite:
            raise UsageError(
                f"{self.folder} holds the answers of an unfinished run. Continue it with "
                f"{spelt('resume')}, or start over with {spelt('overwrite')}."
            )
        self._hold()
        if not resume:
            self.remove()
            return
        self._check_same()
        while (self.folder / _section(self.sections)).is_file():
            self.sections += 1

    def keep(self, answers: Sequence[Answered]) -> None:
        """Keep the answers to the next section of rows."""
        if not os.path.isdir(self.folder):
            mark = to_json(self._describe(), indent=1) + "\n"
            with folder_aside(self.folder) as place:
                (place / _MARK).write_text(mark, encoding="utf8")
            self._hold()
        digest = hashlib.sha256()
        with open_aside(self.folder / _section(self.sections), ours=True) as file:
            for one in answers:
                line = (to_json(one) + "\n").encode("utf-8")
                digest.update(line)
                file.write(line)
            file.write((to_json({_END: digest.hexdigest()}) + "\n").encode("utf-8"))
        self.sections += 1

    def read(self, number: int) -> Iterator[Answered]:
        """The answers to a finished section."""
        path = self.folder / _section(number)
        if not _is_whole(path):
            raise UsageError(f"{path} is damaged. {sentence(_start_over())}")
        with path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                found = json.loads(line)
                if isinstance(found, list | None):
                    yield found

    def note_done(self, whole: Path) -> None:
        """Remember what the output holds, just before it takes its name."""
        if os.path.isdir(self.folder):
            write_json_aside(self.folder / _DONE, {"sha256": file_sha256(whole)}, ours=True)

    def remove(self) -> None:
        """Remove the folder, because its answers are in the output or are not wanted."""
        remove_folder(self.folder, may_go=is_journal)
        self.close()
        self.sections = 0

    def close(self) -> None:
        """Let go of the folder."""
        self._held.close()

    def _hold(self) -> None:
        sweep(self.folder)
        remedy = f"Wait until it ends, or choose another {spelt('output')}."
        busy = f"{self.folder} is in use by another process. {remedy}"
        self._held.enter_context(locked(self.folder / _LOCK, busy))

    def _check_same(self) -> None:
        kept, asked = read_mark(self.folder / _MARK) or {}, json.loads(to_json(self._describe()))
        other = sorted(name for name in {*kept, *asked} if kept.get(name) != asked.get(name))
        if other:
            raise UsageError(
                f"{self.folder} was begun differently ({', '.join(other)}). Resume with the same input, "
                f"model and options, or {_start_over()}."
            )


def journal_folder(output: Path) -> Path:
    """The folder of the answers to an output that is not complete yet."""
    real = Path(os.path.realpath(output))
    return real.with_name(real.name + ".part")


def is_journal(folder: Path) -> bool:
    """Whether a folder holds answers of ours and nothing else."""
    if os.path.islink(folder) or (read_mark(folder / _MARK) or {}).get("likewise") != "answers":
        return False
    with os.scandir(folder) as entries:
        return all(
            _WORKING.fullmatch(one.name)
            if one.is_dir(follow_symlinks=False)
            else _FILES.fullmatch(one.name) and not one.is_symlink()
            for one in entries
        )


def is_done(output: Path) -> bool:
    """Whether an output is complete and only its folder of answers is left. Whose answers they are is not
    said: `Journal.begin` compares that.
    """
    folder = journal_folder(output)
    sweep(folder.parent)
    done = read_mark(folder / _DONE) if is_journal(folder) else None
    return done is not None and output.is_file() and done.get("sha256") == file_sha256(output)


def _is_whole(path: Path) -> bool:
    """Whether a section has its end, with the hash of the lines before it."""
    digest, last = hashlib.sha256(), b""
    with path.open("rb") as file:
        while line := file.readline(_LONGEST_LINE):
            digest.update(last)
            last = line
    return last == (to_json({_END: digest.hexdigest()}) + "\n").encode("utf-8")


def _section(number: int) -> str:
    return f"answers-{number:06d}.jsonl"


def _start_over() -> str:
    return f"start over with {spelt('overwrite')} and without {spelt('resume')}"
