"""Every verb that writes, failed and killed at the calls that change files.

By default a seeded sample of the faults, with the marker slow every one of them. LIKEWISE_FAULTS_REPORT names
a JSON file that takes the counts.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.report import write_counts
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.sweep import Bench, Count, faults_for, sample, sweep

# Of the faults of a scenario, how many are tried in a default run.
SHARE, LEAST = 0.02, 2
# Each of these takes half a minute and writes with what others of the list write with: `experiment` as its
# summaries do, `update` as `train over old` does. `make test-all` runs them.
LONG = ("experiment", "experiment, kept stages", "update hot over old", "train frozen, cache filling")


def _tried(bench: Bench, scenario: Scenario, *, every: bool) -> Count:
    calls = bench.reference(scenario).calls
    faults = faults_for(calls) if every else sample(calls, SHARE, LEAST, scenario.name)
    count = sweep(bench, scenario, faults)
    if named := os.environ.get("LIKEWISE_FAULTS_REPORT"):
        write_counts(Path(named), [count])
    return count


def _told(count: Count) -> str:
    return "\n".join([f"{len(count.findings)} bad outcomes", *map(str, count.findings)])


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.name in LONG else [])
        for one in SCENARIOS
    ],
)
def test_faults_a_sample_leaves_old_or_new(bench, scenario):
    count = _tried(bench, scenario, every=False)
    assert not count.findings, _told(count)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_faults_every_call_leaves_old_or_new(bench, scenario):
    count = _tried(bench, scenario, every=True)
    assert not count.findings, _told(count)
