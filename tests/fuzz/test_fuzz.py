"""Every surface through the command line: no traceback, no success on failure, nothing left behind.

A short run with the same examples every time; `make test-all` runs 2,000 examples of each surface.
"""

from __future__ import annotations

import os

import pytest

from tests.fuzz.building import build_arena
from tests.fuzz.hunting import hunt
from tests.fuzz.surfaces import SURFACES

SHORT, LONG = 25, 2000
pytestmark = pytest.mark.skipif(
    not hasattr(os, "memfd_create"), reason="memory and limits of a process are read as Linux has them"
)


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    """Models, tables and a process that runs commands."""
    made = build_arena(tmp_path_factory.mktemp("fuzz"))
    yield made
    made.close()


@pytest.mark.parametrize("surface", SURFACES)
def test_fuzz_every_surface_briefly(arena, surface):
    tally = hunt(SURFACES[surface], arena, examples=SHORT)
    assert tally.examples >= SHORT


@pytest.mark.slow
@pytest.mark.parametrize("surface", SURFACES)
def test_fuzz_every_surface_at_length(arena, surface):
    tally = hunt(SURFACES[surface], arena, examples=LONG, number=20261118)
    assert tally.examples >= LONG
    # A hunt in which every example is refused at the door would find nothing.
    assert tally.accepted >= LONG // 50
