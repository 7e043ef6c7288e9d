"""One fork server and one bench for all fault tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.client import ForkServer, working_folder
from tests.faults.shim import build, compiler
from tests.faults.sweep import Bench


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    """Where scenarios are run; skipped, with the reason, where no C compiler builds the shim."""
    if compiler() is None:
        pytest.skip("no C compiler is here (cc, gcc or clang): the library that fails calls cannot be built")
    with working_folder() as base, ForkServer(build(base), base / "notes") as server:
        yield Bench(server, base)
