"""How clear the way through the house is: files, lines, switches between kinds, what two jobs pass through.

    python benchmarks/house.py after                       measure this checkout
    python benchmarks/house.py before --source ../old/src  measure another one by the same rules

Numbers go to benchmarks/results/house.json under the name given, and `benchmarks/tables.py` puts them into
docs/design.md.

switches   isinstance, match, type(…) is, hasattr/getattr probes, comparisons with a kind's name
           (tests/switching.py)
kind       files of src that name a stage kind's spec, runner or model, or compare its name
way        functions and files of likewise that `train FILE` and `score FILE` call, counted by a profile hook
opened     how often `train FILE` opens its table
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.switching import find_switches  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "house.json"
# By what a kind of stage is called in code, before and after there was a seam.
NAMED = {
    "pairs": r"StageSpec|PairsStage|PairsRunner|PairModel|Predictor|PairsFamily|pair_stages",
    "labels": r"LabelStageSpec|LabelsStage|LabelsRunner|LabelModel|Classifier|LabelsFamily|label_stages"
    r"|load_labels",
    "joint": r"JointStageSpec|JointStage|JointRunner|JointModel|JointPredictor|JointFamily|load_joint\w*",
    "inject": r"InjectStageSpec|InjectStage|InjectRunner|InjectionModel|InjectedFamily",
    "parallel": r"ParallelStageSpec|ParallelStage|ParallelRunner|run_parallel|frozen_stages",
    "refine": r"RefineStageSpec|RefineStage|RefineRunner|run_refine|frozen_stages",
}
# Runs in a process of its own, so that another checkout's code can be measured.
FOLLOW = """
import json, sys, threading
source, arguments = sys.argv[1], json.loads(sys.argv[2])
sys.path.insert(0, source)
table = arguments[1]
seen, opened = set(), 0

def hook(frame, event, argument):
    code = frame.f_code
    if event == "call" and "/likewise/" in code.co_filename and not code.co_name.startswith("<"):
        seen.add((code.co_filename.rpartition("/likewise/")[2], code.co_qualname))

import builtins, io, pathlib
real = io.open
def counted(file, *rest, **more):
    global opened
    opened += str(file).endswith(table)
    return real(file, *rest, **more)
builtins.open = io.open = counted

import importlib, pkgutil, likewise
# Everything is imported first: what a job calls is counted, not what loading defines.
for found in pkgutil.walk_packages(likewise.__path__, "likewise."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
from likewise.cli import main
threading.setprofile(hook); sys.setprofile(hook)
sys.argv = ["likewise", *arguments]
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
finally:
    sys.setprofile(None)
print("FOUND " + json.dumps({"functions": len(seen), "files": len({file for file, _ in seen}), "opened":
opened}))
"""


def measure(source: Path) -> dict[str, Any]:
    """All numbers of a checkout's `src`."""
    files = sorted((source / "likewise").rglob("*.py"))
    places = {
        str(file.relative_to(source / "likewise")): len(found)
        for file in files
        if (found := find_switches(file))
    }
    allowed = ("schema/", "kinds/", "predict/")
    return {
        "files": len(files),
        "lines": sum(len(file.read_text(encoding="utf8").splitlines()) for file in files),
        "switches": sum(places.values()),
        "switches_outside": sum(n for file, n in places.items() if not file.startswith(allowed)),
        "switching_files": places,
        "naming": {kind: _naming(files, names) for kind, names in NAMED.items()},
        "way": {"train FILE": follow(source, train=True), "score FILE": follow(source, train=False)},
    }


def _naming(files: list[Path], names: str) -> int:
    """How many files know a kind: they name its spec, its runner, its model or what answers."""
    known = re.compile(rf"\b(?:{names})\b")
    return sum(bool(known.search(file.read_text(encoding="utf8"))) for file in files)


def follow(source: Path, *, train: bool) -> dict[str, int]:
    """What `train FILE` or `score FILE` passes through, on the bundled sample and the default model."""
    sample = next((source / "likewise" / "samples").glob("*.csv"))
    with tempfile.TemporaryDirectory() as folder:
        with sample.open(encoding="utf8", newline="") as file:
            rows = list(csv.reader(file))[:61]
        with (Path(folder) / "pairs.csv").open("w", encoding="utf8", newline="") as file:
            csv.writer(file).writerows(rows)
        arguments = ["train", "pairs.csv", "--output", "model", "--set", "stage.0.max_steps=2"]
        if not train:
            arguments = ["score", "pairs.csv", "--output", "out.csv"]
        command = [sys.executable, "-c", FOLLOW, str(source), json.dumps(arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    found: dict[str, int] = json.loads(done.stdout.rpartition("FOUND ")[2].splitlines()[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="before or after")
    parser.add_argument("--source", type=Path, default=ROOT / "src")
    chosen = parser.parse_args()
    known = json.loads(RESULTS.read_text(encoding="utf8")) if RESULTS.is_file() else {}
    known[chosen.name] = measure(chosen.source.resolve())
    RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf8")
    shown = {key: value for key, value in known[chosen.name].items() if key != "switching_files"}
    print(json.dumps(shown, indent=1))


if __name__ == "__main__":
    main()
