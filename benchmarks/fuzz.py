"""Hostile inputs through the command line: how many examples of each surface, and what they did.

    python benchmarks/fuzz.py --output benchmarks/results/fuzz.json
    python benchmarks/fuzz.py --surface CSV TSV --output benchmarks/results/fuzz.json    these again

Examples come from hypothesis (`tests/fuzz`), in several runs with seeds of their own, and every one is a
command: `likewise score`, `data check`, `train --dry-run`, … A finding is a traceback, another exit code than
0, 1 or 2, an exit code of 0 where an independent reader finds the input damaged, an output that is not whole,
more than 1 GB of memory beyond what the process had or 20 s, an input that was changed, or a file that was
left behind. Findings are confirmed in a fresh process. About twenty minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from likewise.data import write_json_aside
from likewise.versions import versions

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.fuzz.arena import MOST_GROWTH, MOST_SECONDS, Arena  # noqa: E402
from tests.fuzz.building import build_arena  # noqa: E402
from tests.fuzz.hunting import Surface, Tally, hunt  # noqa: E402
from tests.fuzz.surfaces import SURFACES  # noqa: E402

EVERY = 100


def measure(surface: Surface, arena: Arena, examples: int, seeds: list[int]) -> dict[str, Any]:
    """One surface over all seeds, as the result file has it."""
    tallies = []
    for seed in seeds:
        share = -(-examples // len(seeds))
        tallies.append(
            hunt(surface, arena, examples=share, number=seed, shrink=False, tell=tell(surface.name))
        )
    print(file=sys.stderr)
    return {
        "surface": surface.name,
        "verbs": list(surface.verbs),
        "examples": sum(tally.examples for tally in tallies),
        "accepted": sum(tally.accepted for tally in tallies),
        "refused": sum(tally.refused for tally in tallies),
        "findings": [finding[:4000] for tally in tallies for finding in tally.findings],
        "longest_seconds": round(max(tally.longest for tally in tallies), 3),
        "largest_growth_mb": round(max(tally.growth for tally in tallies) / 2**20, 1),
        "seconds": round(sum(tally.seconds for tally in tallies), 1),
    }


def tell(name: str) -> Any:
    """A line that grows with the examples, on standard error."""

    def line(tally: Tally) -> None:
        if tally.examples % EVERY == 0:
            found = f"{tally.examples:,} examples, {len(tally.findings)} findings"
            print(f"\r{name}: {found}", end="", file=sys.stderr, flush=True)

    return line


def main() -> None:
    """Run every surface and write the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--examples", type=int, default=2000, help="of each surface, over all seeds")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--surface", nargs="+", choices=list(SURFACES), help="all if left out")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    found = read_others(options.output) if options.surface else {}
    with tempfile.TemporaryDirectory() as folder:
        arena = build_arena(Path(folder))
        try:
            for name in options.surface or SURFACES:
                found[name] = measure(SURFACES[name], arena, options.examples, options.seeds)
                seen = f"{found[name]['examples']:,} examples, {len(found[name]['findings'])} findings"
                print(f"{name}: {seen}", flush=True)
                if options.output is not None:
                    write_json_aside(
                        options.output,
                        to_document([found[name] for name in SURFACES if name in found], options.seeds),
                    )
        finally:
            arena.close()
    sys.exit(1 if any(one["findings"] for one in found.values()) else 0)


def read_others(path: Path | None) -> dict[str, dict[str, Any]]:
    """The surfaces that a result file holds, by name."""
    if path is None or not path.is_file():
        return {}
    return {one["surface"]: one for one in json.loads(path.read_text(encoding="utf8"))["surfaces"]}


def to_document(found: list[dict[str, Any]], seeds: list[int]) -> dict[str, Any]:
    """The result of the surfaces that are done."""
    return {
        "versions": versions(),
        "seeds": seeds,
        "limits": {"seconds": MOST_SECONDS, "growth_mb": MOST_GROWTH // 2**20},
        "examples": sum(one["examples"] for one in found),
        "findings": sum(len(one["findings"]) for one in found),
        "surfaces": found,
    }


if __name__ == "__main__":
    main()
