"""Whether two versions of the code train the same weights: shipped recipes on real data, a few steps each.

    python benchmarks/same_weights.py ../old/src --data-dir corpora

Every recipe is trained by the other version and by this one, in processes of their own, on one thread.
Weights are compared bit for bit, rows by their fingerprints. What comes out goes to
benchmarks/results/same-weights.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# A recipe per kind of stage and per way that kinds follow each other; what is set keeps each under a minute.
RECIPES: dict[str, list[str]] = {
    "similarity": ["stage.0.max_steps=4", "stage.0.evaluate_every=2"],
    "relations-sick": ["stage.0.max_steps=4", "stage.0.evaluate_every=2"],
    "relations-activity": ["stage.0.max_steps=4", 'stage.0.schedule="multi-task"'],
    "labels-domain": ["stage.0.max_steps=3", "stage.0.max_words=40"],
    "finetune": ["stage.0.max_steps=3", 'stage.0.relation="stsb"', "stage.0.max_length=48"],
    "multilingual": [
        "stage.0.epochs=2",
        "stage.1.epochs=2",
        'stage.0.parallel=[{source="tatoeba/en-de_train", limit=300}]',
        'stage.1.parallel=[{source="tatoeba/en-de_train", limit=300}]',
        'stage.0.dev=[{source="stsb_multi_mt/en-de_dev", limit=200}]',
        'stage.1.data=[{source="stsb_multi_mt/en-de_train", limit=300}]',
        'stage.1.dev=[{source="stsb_multi_mt/en-de_dev", limit=200}]',
        "stage.0.filter_against=[]",
        'stage.1.filter_against=["stsb_multi_mt/en-de_test"]',
    ],
}


def train(source: Path, recipe: str, changes: list[str], folder: Path, data_dir: Path) -> dict[str, Any]:
    """Train with one version; hashes of all weights, and what the stages report of their rows."""
    command = [sys.executable, "-m", "likewise", "train", recipe, "--output", str(folder), "--no-evaluate"]
    # Its own name, which versions from before the name `raw` know too.
    command += ["--encoder", "all-MiniLM-L6-v2", "--data-dir", str(data_dir), "--device", "cpu"]
    for change in changes:
        command += ["--set", change]
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{recipe} by {source}:\n{done.stderr[-2000:]}")
    weights = {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*.safetensors"))
    }
    document = json.loads((folder / "likewise" / "model.json").read_text(encoding="utf8"))
    rows = [[stage["name"], stage["fingerprints"], stage["steps"]] for stage in document["stages"]]
    return {"weights": weights, "rows": rows}


def main() -> None:
    """Compare the recipes one by one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="the src folder of the other version")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--recipes", nargs="*", default=list(RECIPES))
    chosen = parser.parse_args()
    file = ROOT / "benchmarks" / "results" / "same-weights.json"
    results = json.loads(file.read_text(encoding="utf8")) if file.is_file() else {}
    for recipe in chosen.recipes:
        with tempfile.TemporaryDirectory() as folder:
            sides = [
                train(
                    source.resolve(), recipe, RECIPES[recipe], Path(folder) / name, chosen.data_dir.resolve()
                )
                for name, source in (("other", chosen.other), ("this", ROOT / "src"))
            ]
        files = len(sides[1]["weights"])
        results[recipe] = {"same_weights": sides[0]["weights"] == sides[1]["weights"], "files": files}
        results[recipe] |= {"same_rows": sides[0]["rows"] == sides[1]["rows"], "set": RECIPES[recipe]}
        print(recipe, results[recipe], flush=True)
        file.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
