"""A scenario under every fault: run, looked at, gone on with, looked at again."""

from __future__ import annotations

import errno
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.faults.client import ForkServer, Ran
from tests.faults.replay import uncounted, unsynced
from tests.faults.scenarios import WORLDS, Scenario, command_of, offered
from tests.faults.shim import Call, Fault, Mode
from tests.faults.trees import (
    Tree,
    alike,
    below,
    differences,
    exact,
    exact_sizes,
    finished,
    is_working,
    plain_path,
)
from tests.faults.worlds import build_inputs

# Grows with every look at test data, so that no two runs leave the same.
_LOOKS = "looks/"
# Weights are drawn from torch's own generator, which benches in threads would share.
_BUILDING = threading.Lock()
# A call that is not refused for want of permission in the middle of a file.
_NAMED = ("open", "mkdir", "rename", "exchange", "unlink", "rmdir", "link", "symlink", "truncate", "chmod")


@dataclass(frozen=True, slots=True)
class Finding:
    """What was wrong after a fault: which call it hit, and what the state was."""

    scenario: str
    fault: Fault
    call: Call
    problems: tuple[str, ...]

    def __str__(self) -> str:
        lines = "\n".join(f"    {line}" for line in self.problems)
        call = replace(self.call, path=plain_path(self.call.path), to=plain_path(self.call.to))
        return f"{self.scenario}, call {call.n} ({call}), {self.fault}:\n{lines}"


@dataclass(slots=True)
class Count:
    """How a scenario fared: its calls, what was done to it, what was found."""

    scenario: str
    calls: int
    failures: int = 0
    kills: int = 0
    went_on: int = 0
    resumed: int = 0
    unsynced: tuple[str, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, other: Count) -> None:
        """Take in the count of another part of the same sweep."""
        self.failures += other.failures
        self.kills += other.kills
        self.went_on += other.went_on
        self.resumed += other.resumed
        self.findings += other.findings
        self.seconds += other.seconds

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "scenario": self.scenario,
            "calls": self.calls,
            "failures": self.failures,
            "kills": self.kills,
            "states": self.went_on,
            "resumed": self.resumed,
            "bad": len(self.findings),
            "unsynced": len(self.unsynced),
            "seconds": round(self.seconds, 1),
            "findings": [str(finding) for finding in self.findings],
        }


@dataclass(frozen=True, slots=True)
class Reference:
    """A scenario undisturbed: its calls, the state before, after, and after what follows."""

    calls: tuple[Call, ...]
    inputs: Tree
    before: Tree
    before_exact: Tree
    after: Tree
    end: Tree


class Bench:
    """One fork server and one world that is laid out anew for every run."""

    def __init__(self, server: ForkServer, base: Path) -> None:
        self._server, self._base = server, base
        self.world = base / "world"
        self._references: dict[str, Reference] = {}
        self._went_on: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[str, ...]] = {}
        self.resumed = 0

    def reference(self, scenario: Scenario) -> Reference:
        """What the scenario does and leaves when nothing disturbs it."""
        if scenario.name not in self._references:
            self._references[scenario.name] = self._undisturbed(scenario)
        return self._references[scenario.name]

    def run(
        self, arguments: Sequence[str], fault: Fault | None = None, *, scenario: Scenario | None = None
    ) -> Ran:
        """Run a verb in the world as it lies there, as a scenario runs it if one is given."""
        how = {} if scenario is None else {"call": scenario.call, "exchange": scenario.exchange}
        return self._server.run(self.world, list(arguments), fault, **how)  # type: ignore[arg-type]

    def lay_out(self, name: str) -> None:
        """Put the world into the state in which a scenario begins."""
        template = self._base / "templates" / name.replace(" ", "-")
        if not template.is_dir():
            self._build(name, template)
        shutil.rmtree(self.world, ignore_errors=True)
        # With times: rows that were prepared before are found by the times of their files.
        shutil.copytree(template, self.world, symlinks=True)

    def _build(self, name: str, template: Path) -> None:
        if name == "plain":
            shutil.rmtree(self.world, ignore_errors=True)
            with _BUILDING:
                build_inputs(self.world)
        else:
            # Made in the place in which it will be used: outputs may name it.
            self.lay_out("plain")
            for line in WORLDS[name]:
                self._must(line, Scenario(name, (), call=line[0]) if ":" in line[0] else None)
        shutil.copytree(self.world, template, symlinks=True)

    def _must(self, arguments: Sequence[str], scenario: Scenario | None = None) -> Ran:
        ran = self.run(arguments, scenario=scenario)
        if ran.status != 0:
            raise RuntimeError(f"{' '.join(arguments)} ended undisturbed with {ran.status}:\n{ran.said}")
        return ran

    def _undisturbed(self, scenario: Scenario) -> Reference:
        self.lay_out(scenario.world)
        inputs, before_exact, before = exact(self.world / "inputs"), exact(self.world), self._state()
        ran = self._must(command_of(scenario), scenario)
        after = self._state()
        if lines := uncounted(ran.calls, before_exact, exact_sizes(self.world)):
            raise RuntimeError(f"{scenario.name}: written by calls that the shim does not see: {_few(lines)}")
        for line in scenario.then:
            self._must(line)
        return Reference(ran.calls, inputs, before, before_exact, after, self._state())

    def _state(self) -> dict[str, str]:
        return {name: held for name, held in alike(self.world).items() if not name.startswith(_LOOKS)}

    def examine(self, scenario: Scenario, fault: Fault) -> Finding | None:
        """Disturb a run once and say what is wrong with what it leaves; None where nothing is."""
        reference = self.reference(scenario)
        self.lay_out(scenario.world)
        ran = self.run(command_of(scenario), fault, scenario=scenario)
        problems = [*self._wrong_end(ran, fault), *self._wrong_call(ran, reference, fault)]
        problems += self._wrong_state(scenario, reference, ran)
        problems += self._go_on(scenario, reference)
        if not problems:
            return None
        [hit] = [*ran.calls, *reference.calls[len(ran.calls) :]][fault.n - 1 : fault.n] or [
            Call(fault.n, "?", "")
        ]
        return Finding(scenario.name, fault, hit, tuple(problems))

    def _wrong_end(self, ran: Ran, fault: Fault) -> Iterable[str]:
        if ran.status is None:
            yield "it did not end"
        if "Traceback" in ran.said:
            yield f"a traceback: {ran.said.strip().splitlines()[-1]}"
        if fault.kills and ran.status != -9:
            yield f"it was to be killed and ended with {ran.status}"
        elif not fault.kills and (ran.status or 0) < 0:
            yield f"it died of signal {-(ran.status or 0)}"

    def _wrong_call(self, ran: Ran, reference: Reference, fault: Fault) -> Iterable[str]:
        """The n-th call is the same one in every run, or a sweep over n would leave some out."""
        if len(ran.calls) < fault.n:
            yield f"there was no call {fault.n}: the run is not the same every time"
        elif ran.calls[fault.n - 1].kind != reference.calls[fault.n - 1].kind:
            yield f"call {fault.n} is {reference.calls[fault.n - 1]} in an undisturbed run: it varies"

    def _wrong_state(self, scenario: Scenario, reference: Reference, ran: Ran) -> Iterable[str]:
        if lines := differences(exact(self.world / "inputs"), reference.inputs):
            yield f"inputs changed: {'; '.join(lines)}"
        found, found_exact = self._state(), exact(self.world)
        whole = True
        for place in scenario.outputs:
            new = finished(below(reference.after, place))
            now = finished(below(found, place))
            is_new = now == new
            is_old = finished(below(found_exact, place)) == finished(below(reference.before_exact, place))
            whole = whole and is_new
            if not scenario.exchange and not now:
                is_old = self._is_held(place, reference)
            if not is_new and not is_old:
                yield f"{place} is neither old nor new: {_few(differences(now, new))}"
        for place in scenario.each:
            for name, held in finished(below(reference.after, place)).items():
                whole = whole and found.get(name) == held
                old = found_exact.get(name) == reference.before_exact.get(name)
                if name in found and found[name] != held and not old:
                    yield f"{name} is neither old nor new"
        for place in scenario.loose:
            whole = whole and finished(below(found, place)) == finished(below(reference.after, place))
        if ran.status == 0 and not whole:
            yield "it ended with 0, and what it should have done is not done"

    def _is_held(self, place: str, reference: Reference) -> bool:
        """Whether an old folder lies, bit for bit, where the next write finds it and puts it back."""
        old = {name[len(place) :]: held for name, held in below(reference.before_exact, place).items()}
        kept = (self.world / place).parent.glob(".likewise-*/replaced")
        return any({"": "folder", **{f"/{n}": h for n, h in exact(one).items()}} == old for one in kept)

    def _go_on(self, scenario: Scenario, reference: Reference) -> tuple[str, ...]:
        """Go on from the state that is left; one like it that was gone on from before would say the same."""
        key = scenario.name, tuple(sorted(self._state().items()))
        if key not in self._went_on:
            self._went_on[key] = tuple(self._wrong_after(scenario, reference))
        return self._went_on[key]

    @property
    def states(self) -> int:
        """How many different states were gone on from."""
        return len(self._went_on)

    def _wrong_after(self, scenario: Scenario, reference: Reference) -> Iterable[str]:
        out = self.world / "out"
        has_run = any([*out.glob("*.run"), *out.glob("*.part")])
        command = [*command_of(scenario), *(scenario.resume if has_run else ())]
        for arguments in (command, *map(list, scenario.then)):
            ran = self._as_told(arguments, scenario)
            if "Traceback" in ran.said:
                yield f"going on, a traceback: {ran.said.strip().splitlines()[-1]}"
            if ran.status != 0:
                yield f"going on ended with {ran.status}: {_few(ran.said.strip().splitlines()[-4:])}"
                return
        lines = differences(self._state(), reference.end)
        if "cache" not in scenario.loose:
            lines = [line for line in lines if not is_other_cache(line)]
        if lines:
            yield f"after going on: {_few(lines)}"
        if changed := differences(exact(self.world / "inputs"), reference.inputs):
            yield f"going on changed inputs: {'; '.join(changed)}"

    def _as_told(self, arguments: list[str], scenario: Scenario) -> Ran:
        """Run a command, and where it is refused, again as the message says, as a user would."""
        ran = self.run(arguments, scenario=scenario)
        for _ in range(3):
            if ran.status == 0:
                break
            told = advised(arguments, ran.said)
            if told is None:
                break
            arguments = told
            ran = self.run(arguments, scenario=scenario)
        self.resumed += ran.status == 0 and "--resume" in arguments
        return ran


def is_other_cache(line: str) -> bool:
    """Whether a difference is that a cache keeps less, or in other files; what is half written is another.

    What it could not keep is made again when somebody needs it, alone or together with more.
    """
    what, _, name = line.partition(": ")
    return name.startswith("cache/") and (what == "missing" or not is_working(name))


def advised(arguments: list[str], said: str) -> list[str] | None:
    """The command with the option that a message names; None where it names none that is new."""
    if "--resume" in arguments and "leave --resume out" in said.lower():
        return [word for word in arguments if word != "--resume"]
    for option in ("--resume", "--overwrite"):
        if option in said and option not in arguments and offered(tuple(arguments), option):
            return [*(word for word in arguments if word != "--resume"), option]
    return None


def faults_for(calls: Sequence[Call]) -> list[Fault]:
    """Every fault of a sweep: at each call a kill, a full disk from there on, an error that passes.

    A write is also cut in half, before a kill and by itself; a name is also refused.
    """
    found = []
    for call in calls:
        found.append(Fault(call.n, Mode.KILL))
        found.append(Fault(call.n, Mode.FAIL_ONCE, errno.EIO))
        if call.kind not in ("unlink", "rmdir", "chmod"):
            found.append(Fault(call.n, Mode.FAIL_ON, errno.ENOSPC))
        if call.kind in _NAMED:
            found.append(Fault(call.n, Mode.FAIL_ONCE, errno.EACCES))
        if call.kind == "write" and call.size > 1:
            found.append(Fault(call.n, Mode.KILL_SHORT))
            found.append(Fault(call.n, Mode.SHORT))
    return found


def sample(calls: Sequence[Call], share: float, least: int, seed: str) -> list[Fault]:
    """A share of the faults, the same for a seed; kills and failures by turns.

    What has not been tried comes first: every kind of fault at every kind of call, before any comes twice.
    """
    kinds = {call.n: call.kind for call in calls}
    rng = random.Random(seed)
    faults = faults_for(calls)
    count = max(least, round(share * len(faults)))
    rng.shuffle(faults)
    seen: Counter[tuple[str, Mode, int]] = Counter()
    rank = {}
    for fault in faults:
        kind = kinds[fault.n], fault.mode, fault.error
        rank[fault] = seen[kind]
        seen[kind] += 1
    faults.sort(key=lambda fault: rank[fault])
    kills = [fault for fault in faults if fault.kills]
    fails = [fault for fault in faults if not fault.kills]
    turns = [fault for both in zip(kills, fails, strict=False) for fault in both]
    return turns[:count]


def sweep(
    bench: Bench,
    scenario: Scenario,
    faults: Sequence[Fault],
    *,
    tell: Callable[[Finding], None] = lambda finding: None,
    advance: Callable[[], None] = lambda: None,
) -> Count:
    """Examine a scenario under each of the faults."""
    calls = bench.reference(scenario).calls
    count = Count(scenario.name, len(calls), unsynced=tuple(unsynced(calls)))
    started = time.monotonic()
    states, resumed = bench.states, bench.resumed
    for fault in faults:
        finding = bench.examine(scenario, fault)
        count.kills += fault.kills
        count.failures += not fault.kills
        if finding is not None:
            count.findings.append(finding)
            tell(finding)
        advance()
    count.went_on, count.resumed = bench.states - states, bench.resumed - resumed
    count.seconds = time.monotonic() - started
    return count


def _few(lines: Sequence[str], most: int = 6) -> str:
    more = f"; and {len(lines) - most} more" if len(lines) > most else ""
    return "; ".join(lines[:most]) + more
