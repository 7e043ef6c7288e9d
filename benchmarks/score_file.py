"""Score a large file: memory, speed, and whether a run that is killed ends with the same file.

    LIKEWISE_DATA=corpora python benchmarks/score_file.py --pairs 100000

Pairs are built from the sentences of STS-B, SICK and Tatoeba: a rated pair where there is one, and otherwise
a sentence with another one, drawn with a seed. One run is undisturbed. Another is killed with SIGKILL twice,
each time a little after it finished a section, and continued with --resume. Both files must be the same to
the byte. Numbers go to benchmarks/results/score-file.json.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from likewise.data import read
from likewise.data.parallel import parallel_names, read_parallel
from likewise.versions import versions

RESULT = Path(__file__).resolve().parent / "results" / "score-file.json"
RATED = ("stsb/train", "stsb/dev", "stsb/test", "sick/train", "sick/trial", "sick/test")
# A kill comes so many seconds after a section was finished, in the middle of the next one.
LATER = 15.0


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended: its exit status (negative: a signal), its seconds, and its largest memory in MB."""

    status: int
    seconds: float
    megabytes: float


def main() -> None:
    """Build the pairs, score them undisturbed and disturbed, and write the numbers."""
    options = read_options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = folder / "pairs.csv"
        texts = write_pairs(table, options.pairs, options.seed)
        whole, parts = folder / "whole.csv", folder / "parts.csv"
        calm = None if options.only_killed else run(table, whole, options.model)
        killed = []
        for sections in (1, max(1, options.pairs // 30_000)):
            killed.append(run(table, parts, options.model, kill_after=sections, resume=bool(killed)))
            if parts.exists():
                sys.exit("the output was there before the run was killed: score more pairs")
        last = run(table, parts, options.model, resume=True)
        same = None if calm is None else whole.read_bytes() == parts.read_bytes()
        with parts.open(encoding="utf8", newline="") as file:
            numbers = [int(row["id"]) for row in csv.DictReader(file)]
        seconds = sum(one.seconds for one in (*killed, last)) if calm is None else calm.seconds
        ran = [one for one in (calm, *killed, last) if one is not None]
        found = {
            "pairs": options.pairs,
            "distinct_texts": texts,
            "model": options.model,
            "rows_written": len(numbers),
            "each_row_once_in_order": numbers == list(range(options.pairs)),
            "seconds": round(seconds, 1),
            "pairs_per_second": round(options.pairs / seconds, 1),
            "max_rss_mb": round(max(one.megabytes for one in ran), 1),
            "kills": [one.status for one in killed],
            "seconds_to_kill": [round(one.seconds, 1) for one in killed],
            "seconds_after_last_kill": round(last.seconds, 1),
            "same_bytes": same,
            "sha256": hashlib.sha256(parts.read_bytes()).hexdigest(),
            "left_over": sorted(path.name for path in folder.iterdir() if path not in (table, whole, parts)),
            "threads": os.environ.get("OMP_NUM_THREADS", ""),
            "load": round(os.getloadavg()[0], 1),
            "machine": platform.machine(),
            "versions": versions(),
        }
    print(json.dumps(found, indent=2))
    if same is False or not found["each_row_once_in_order"] or found["left_over"]:
        sys.exit("the two files differ, rows are missing or twice, or something was left over")
    RESULT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf8")


def read_options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--model", default="raw")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only-killed",
        action="store_true",
        help="leave the undisturbed run out, which takes half of the time",
    )
    return parser.parse_args()


def write_pairs(path: Path, count: int, seed: int) -> int:
    """Write pairs of real sentences to a CSV file. Returns the number of distinct texts."""
    rated = list(dict.fromkeys(pair for name in RATED for pair in pairs_of(name)))
    sentences = list(dict.fromkeys([*(text for pair in rated for text in pair), *other_sentences(2 * count)]))
    generator = random.Random(seed)
    pairs = rated[:count]
    while len(pairs) < count:
        pairs += [tuple(generator.sample(sentences, 2)) for _ in range(count - len(pairs))]
    generator.shuffle(pairs)
    with path.open("w", encoding="utf8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text_a", "text_b"])
        writer.writerows([number, *pair] for number, pair in enumerate(pairs))
    return len({text for pair in pairs for text in pair})


def pairs_of(name: str) -> Iterator[tuple[str, str]]:
    """The pairs of a rated corpus."""
    return ((record.a, record.b) for record in read(name, relations=()))


def other_sentences(count: int) -> list[str]:
    """English sentences of Tatoeba."""
    found: dict[str, None] = {}
    for name in parallel_names("tatoeba", "train"):
        text = read_parallel(name)
        if text.language_a == "en":
            found |= dict.fromkeys(islice(text.a, count))
        if len(found) >= count:
            break
    return list(found)


def run(table: Path, output: Path, model: str, *, kill_after: int = 0, resume: bool = False) -> Ran:
    """Score the table in a process of its own. It is killed a little after it has so many sections."""
    command = [sys.executable, "-m", "likewise", "score", str(table), "--model", model, "--device", "cpu"]
    command += ["--output", str(output), *(["--resume"] if resume else [])]
    started = time.monotonic()
    process = subprocess.Popen(command)
    part = output.with_name(output.name + ".part")
    when = None
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if kill_after and when is None and len(list(part.glob("answers-*.jsonl"))) >= kill_after:
            when = time.monotonic() + LATER
        if when is not None and time.monotonic() > when:
            os.kill(process.pid, signal.SIGKILL)
            when = float("inf")
        time.sleep(0.05)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, -signal.SIGKILL) or (process.returncode == 0) == bool(kill_after):
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return Ran(process.returncode, time.monotonic() - started, used.ru_maxrss / 1024)


if __name__ == "__main__":
    main()
