"""Hunts: many examples of a surface through the command line, counted; a finding is shrunk and told."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.arena import Arena, Case


@dataclass(frozen=True, slots=True)
class Surface:
    """A kind of input: its name, the verbs that read it, and its examples over a folder of models."""

    name: str
    verbs: tuple[str, ...]
    cases: Callable[[Path], st.SearchStrategy[Case]]


@dataclass(slots=True)
class Tally:
    """What a hunt saw."""

    examples: int = 0
    accepted: int = 0
    refused: int = 0
    findings: list[str] = field(default_factory=list)
    longest: float = 0.0
    growth: int = 0
    seconds: float = 0.0


class FoundError(AssertionError):
    """A command did what none may do."""


def hunt(
    surface: Surface,
    arena: Arena,
    *,
    examples: int,
    number: int | None = None,
    shrink: bool = True,
    tell: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Run examples of a surface; `number` seeds them, None draws the same ones every time.

    With `shrink` the first finding is made small and raised; without, all are collected.
    """
    tally, start = Tally(), time.perf_counter()

    def run(case: Case) -> None:
        outcome, findings = arena.try_case(case)
        tally.examples += 1
        tally.accepted += not outcome.code and not outcome.died
        tally.refused += bool(outcome.code)
        tally.longest = max(tally.longest, outcome.seconds)
        tally.growth = max(tally.growth, outcome.growth)
        tell(tally)
        if findings:
            said = "\n".join([*findings, repr(case)])
            if shrink:
                raise FoundError(said)
            tally.findings.append(said)

    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    asked = settings(
        max_examples=examples,
        derandomize=number is None,
        database=None,
        deadline=None,
        phases=phases,
        print_blob=False,
        verbosity=Verbosity.quiet if not shrink else Verbosity.normal,
        suppress_health_check=list(HealthCheck),
    )
    test = asked(given(surface.cases(arena.models))(run))
    (test if number is None else seed(number)(test))()
    tally.seconds = time.perf_counter() - start
    return tally
