"""Files of links with a share of them led astray: does teaching phrases need alignments that are right?

    python benchmarks/noise_links.py runs/injection/links-* --share 0.5 --output runs/injection/noise50
    python benchmarks/inject.py minilm --ways both --links runs/injection/noise50/*.gz --suffix noise50

A link that is led astray keeps its first phrase; the second becomes another one of the same text, drawn from
those that are linked or listed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from likewise.data.links import Link, LinkedPair, read_links, write_links


def main() -> None:
    """Write each file again, noised, under its own name in another folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--share", type=float, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(given.files):
        rng = np.random.default_rng([given.seed, number])
        count = write_links(given.output / file.name, noised(file, given.share, rng))
        print(f"{given.output / file.name}: {count:,} pairs, {given.share:.0%} of their links astray")


def noised(file: Path, share: float, rng: np.random.Generator) -> Iterator[LinkedPair]:
    """The pairs of a file with a share of their links led astray."""
    for pair in read_links(file):
        phrases = sorted({link.b for link in pair.links} | set(pair.spans_b))
        links = {}
        for link in pair.links:
            others = [span for span in phrases if span != link.b]
            astray = others and rng.random() < share
            b = others[rng.integers(len(others))] if astray else link.b
            links[link.a, b] = Link(link.a, b)
        yield replace(pair, links=tuple(links.values()))


if __name__ == "__main__":
    main()
