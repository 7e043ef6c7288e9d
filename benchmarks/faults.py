"""Every verb that writes, failed and killed at every call that changes a file; benchmarks/results/faults.json

python benchmarks/faults.py --workers 2            about an hour; scenarios that are done are not run again
python benchmarks/faults.py --only train --anew    one scenario, again
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.faults.client import ForkServer, working_folder  # noqa: E402
from tests.faults.report import read_counts, write_counts  # noqa: E402
from tests.faults.scenarios import SCENARIOS, Scenario  # noqa: E402
from tests.faults.shim import build, compiler  # noqa: E402
from tests.faults.sweep import Bench, Count, Finding, faults_for, sample, sweep  # noqa: E402

RESULT = ROOT / "benchmarks" / "results" / "faults.json"
_EVERY_SECONDS = 20.0


class Progress:
    """Says now and then how far a scenario is, and each finding at once."""

    def __init__(self, name: str, total: int) -> None:
        self._name, self._total, self._done, self._bad = name, total, 0, 0
        self._said, self._lock = time.monotonic(), threading.Lock()

    def tell(self, finding: Finding) -> None:
        """Print a finding."""
        with self._lock:
            self._bad += 1
            print(finding, flush=True)

    def advance(self) -> None:
        """One more fault is examined."""
        with self._lock:
            self._done += 1
            if time.monotonic() - self._said > _EVERY_SECONDS:
                self._said = time.monotonic()
                print(f"{self._name}: {self._done:,} of {self._total:,} faults, {self._bad} bad", flush=True)


def run_scenario(benches: Sequence[Bench], scenario: Scenario, share: float) -> Count:
    """Examine a scenario on all benches side by side, each with its part of the faults."""
    started = time.monotonic()
    with ThreadPoolExecutor(len(benches)) as pool:
        references = list(pool.map(lambda bench: bench.reference(scenario), benches))
        if len({len(reference.calls) for reference in references}) > 1:
            raise RuntimeError(f"{scenario.name}: two undisturbed runs differ in their calls")
        faults = faults_for(references[0].calls)
        if share < 1:
            faults = sample(faults, share, 2, scenario.name)
        shown = Progress(scenario.name, len(faults))

        def part(number: int) -> Count:
            own = faults[number :: len(benches)]
            return sweep(benches[number], scenario, own, tell=shown.tell, advance=shown.advance)

        first, *others = pool.map(part, range(len(benches)))
    for other in others:
        first.add(other)
    first.findings.sort(key=lambda finding: finding.call.n)
    first.seconds = time.monotonic() - started
    return first


def main() -> None:
    """Run the scenarios that have no result yet and store each when it is done."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=2, help="scenarios' faults examined side by side")
    parser.add_argument("--only", nargs="*", help="names of scenarios; all if left out")
    parser.add_argument("--anew", action="store_true", help="run scenarios that have a result, too")
    parser.add_argument("--share", type=float, default=1.0, help="a share of the faults, for a quick look")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    if compiler() is None:
        sys.exit("no C compiler is here (cc, gcc or clang): the library that fails calls cannot be built")
    names = [scenario.name for scenario in SCENARIOS]
    if unknown := sorted(set(options.only or ()) - set(names)):
        sys.exit(f"no scenario is named {unknown[0]!r}; there are: {', '.join(names)}")
    done = {} if options.anew else read_counts(options.output)
    waiting = [s for s in SCENARIOS if s.name not in done and s.name in (options.only or names)]
    with ExitStack() as stack:
        base = stack.enter_context(working_folder())
        library = build(base)
        benches = []
        for number in range(options.workers):
            own = base / f"worker-{number}"
            server = stack.enter_context(ForkServer(library, own / "notes"))
            benches.append(Bench(server, own))
        bad = 0
        for scenario in waiting:
            count = run_scenario(benches, scenario, options.share)
            write_counts(options.output, [count])
            bad += len(count.findings)
            tried = f"{count.failures:,} failures and {count.kills:,} kills at {count.calls:,} calls"
            print(f"{count.scenario}: {tried}, {len(count.findings)} bad, {count.seconds:.0f} s", flush=True)
    print(f"{len(waiting)} scenarios, {bad} bad outcomes: {options.output}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
