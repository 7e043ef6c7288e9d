"""Where hostile inputs are laid out and commands run over them, and what every command must keep to."""

from __future__ import annotations

import json
import math
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOST_SECONDS = 20.0
MOST_GROWTH = 2**30
# An error that quotes what it found quotes a part of it.
LONGEST_MESSAGE = 20_000
_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended, what it said, and what it took; `died` is a signal or the words of a timeout."""

    code: int = 0
    out: str = ""
    err: str = ""
    seconds: float = 0.0
    growth: int = 0
    died: str = ""


Judge = Callable[[Outcome, Path], Iterator[str]]


def _no_further_check(outcome: Outcome, folder: Path) -> Iterator[str]:
    return iter(())


@dataclass(frozen=True, slots=True)
class Case:
    """One example: files, a command over them, and what is known of the answer without asking likewise.

    `models` are folders that are laid out from those of the arena, `files` are written over them; None leaves
    a file out. `must_fail` says why the command cannot succeed, if it cannot. `writes` are names that the
    command may leave behind if it succeeds, `keeps` those that it may leave in any case. `judge` looks at a
    success. With `twice` a success must say the same again where the random numbers differ: weights that no
    file holds would show.
    """

    arguments: tuple[str, ...]
    files: Mapping[str, bytes | None]
    models: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    must_fail: str = ""
    writes: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    twice: bool = False
    judge: Judge = _no_further_check

    def __repr__(self) -> str:
        shown = {
            name: content if content is None or len(content) < 3000 else content[:3000] + b"..."
            for name, content in self.files.items()
        }
        return f"Case({' '.join(map(repr, self.arguments))}, {shown}, must_fail={self.must_fail!r})"


class Worker:
    """The process that runs commands (`worker.py`)."""

    def __init__(self, model: Path, home: Path) -> None:
        self._model, self._home = model, home
        self._process: subprocess.Popen[bytes] | None = None
        self._child = 0

    def run(
        self, arguments: tuple[str, ...], folder: Path, stdin: bytes = b"", *, chance: int = 0
    ) -> Outcome:
        """Run one command in a folder; `chance` seeds the generators of random numbers."""
        if self._process is None:
            self._start()
        asked = {"arguments": arguments, "folder": str(folder), "stdin": stdin.decode("latin1")}
        self._send({**asked, "chance": chance})
        answer = self._answer(MOST_SECONDS + 2)
        if answer is None:
            self._kill_child()
            return Outcome(died=f"it took more than {MOST_SECONDS:.0f} s")
        if "died" in answer:
            return Outcome(died=f"the process ended by {answer['died']}")
        return Outcome(**answer)

    def refresh(self) -> None:
        """Run the next command in a child that ran none before."""
        if self._process is not None:
            self._send({"fresh": True})

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            # Its child reads the end of standard input, ends, and so does the process.
            self._process.communicate()
            self._process = None

    def _start(self) -> None:
        folders = {name: str(self._home / name) for name in ("HOME", "TMPDIR", "LIKEWISE_CACHE")}
        for folder in folders.values():
            Path(folder).mkdir(parents=True, exist_ok=True)
        quiet = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LIKEWISE_")}
        self._process = subprocess.Popen(
            [sys.executable, str(_HERE / "worker.py"), str(self._model)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**kept, **folders, **quiet, "COLUMNS": "110"},
            bufsize=0,
        )

    def _send(self, request: Mapping[str, Any]) -> None:
        content = json.dumps(request).encode()
        self._process.stdin.write(len(content).to_bytes(4, "big") + content)  # type: ignore[union-attr]

    def _answer(self, seconds: float) -> dict[str, Any] | None:
        """The answer to a command; None if it takes too long. Starting is given its own time."""
        while True:
            answer = self._read(seconds if self._child else 300)
            if answer is None:
                return None
            if "child" not in answer:
                return answer
            self._child = answer["child"]

    def _read(self, seconds: float) -> dict[str, Any] | None:
        stream = self._process.stdout  # type: ignore[union-attr]
        if not select.select([stream], [], [], seconds)[0]:
            return None
        length = int.from_bytes(self._exactly(stream, 4), "big")
        found: dict[str, Any] = json.loads(self._exactly(stream, length))
        return found

    def _exactly(self, stream: Any, size: int) -> bytes:
        content = b""
        while len(content) < size:
            block = stream.read(size - len(content))
            if not block:
                raise RuntimeError("the process that runs commands is gone")
            content += block
        return content

    def _kill_child(self) -> None:
        if self._child:
            try:
                os.kill(self._child, signal.SIGKILL)
            except ProcessLookupError:
                return
            self._read(10)  # that it died


class Arena:
    """A folder for examples, the models they start from, and a worker."""

    def __init__(self, folder: Path, models: Path) -> None:
        self.folder, self.models = folder, models
        self.worker = Worker(models / "pairs", folder / "home")
        self._number = 0

    def try_case(self, case: Case) -> tuple[Outcome, list[str]]:
        """Run a case; its outcome and what is wrong with it, which a second, fresh process must confirm."""
        outcome, findings = self._try_once(case)
        if findings:
            self.worker.refresh()
            outcome, again = self._try_once(case)
            findings = again
            self.worker.refresh()
        return outcome, findings

    def close(self) -> None:
        """End the worker and remove the examples."""
        self.worker.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _try_once(self, case: Case) -> tuple[Outcome, list[str]]:
        self._number += 1
        folder = self.folder / f"e{self._number}"
        self._lay_out(case, folder)
        before = contents(folder)
        outcome = self.worker.run(case.arguments, folder, case.stdin)
        findings = [*misbehaviour(outcome, case), *_changes(before, contents(folder), case, outcome)]
        findings += [f"left in TMPDIR: {name}" for name in os.listdir(self.folder / "home" / "TMPDIR")]
        if not outcome.code and not outcome.died:
            findings += case.judge(outcome, folder)
            if (
                case.twice
                and self.worker.run(case.arguments, folder, case.stdin, chance=1).out != outcome.out
            ):
                findings.append("asked again, it answers otherwise")
        shutil.rmtree(folder)
        shutil.rmtree(self.folder / "home" / "TMPDIR")
        (self.folder / "home" / "TMPDIR").mkdir()
        return outcome, findings

    def _lay_out(self, case: Case, folder: Path) -> None:
        folder.mkdir()
        for place, name in case.models.items():
            source = self.models / name
            for file in source.rglob("*"):
                if file.is_file():
                    target = folder / place / file.relative_to(source)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.link(file, target)
        for name, content in case.files.items():
            target = folder / name
            target.unlink(missing_ok=True)
            if content is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with what it holds, every other thing with nothing."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


def misbehaviour(outcome: Outcome, case: Case) -> Iterator[str]:
    """What no command may do, whatever it is given."""
    if outcome.died:
        yield outcome.died
        return
    if "Traceback (most recent call last)" in outcome.err + outcome.out:
        yield f"a traceback: {outcome.err[-1500:]}"
    elif outcome.code not in (0, 1, 2):
        yield f"exit code {outcome.code}: {outcome.err[-500:]}"
    if outcome.code and not (outcome.err + outcome.out).strip():
        yield f"exit code {outcome.code} without a word"
    if "not enough memory" in outcome.err:
        yield f"it wants all memory: {outcome.err[-300:]}"
    if outcome.growth > MOST_GROWTH:
        yield f"memory grew by {outcome.growth / 2**20:,.0f} MB"
    if outcome.seconds > MOST_SECONDS:
        yield f"it took {outcome.seconds:.1f} s"
    if len(outcome.err) > LONGEST_MESSAGE:
        yield f"a message of {len(outcome.err):,} characters: {outcome.err[:300]}"
    if case.must_fail and not outcome.code:
        yield f"exit code 0 although {case.must_fail}"


def _changes(
    before: Mapping[str, bytes], after: Mapping[str, bytes], case: Case, outcome: Outcome
) -> Iterator[str]:
    """Files that are not as they were, and files that a command left behind."""
    allowed = case.keeps + (() if outcome.code or outcome.died else case.writes)
    for name, content in before.items():
        if after.get(name) != content:
            yield f"the input {name} was changed"
    for name in after.keys() - before.keys():
        if not any(name == one or name.startswith(f"{one}/") for one in allowed):
            yield f"left behind: {name}"


def not_plain_json(text: str) -> str:
    """Why a text is not JSON of finite numbers alone; nothing if it is."""

    def refuse(constant: str) -> float:
        raise ValueError(f"{constant} is no JSON")

    try:
        document = json.loads(text, parse_constant=refuse)
    except ValueError as error:
        return f"the output is not JSON ({error}): {text[:200]}"
    return _not_finite(document)


def _not_finite(value: Any) -> str:
    if isinstance(value, dict):
        return next(filter(None, map(_not_finite, value.values())), "")
    if isinstance(value, list):
        return next(filter(None, map(_not_finite, value)), "")
    return f"{value} in the output" if isinstance(value, float) and not math.isfinite(value) else ""
