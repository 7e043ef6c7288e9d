"""What must not move when the house is rearranged: plans, rows, steps, resume, model folders, cell keys.

`reference.json` and `models/` were written by the code before the kinds of stages had a seam. Where a value
must change, change it by hand and say why in CHANGELOG.md. `LIKEWISE_FREEZE=1 pytest tests/frozen` writes
them anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import likewise
from likewise.experiments.plan import ExperimentPlan
from likewise.experiments.schema import read_experiment
from likewise.kinds.context import RunContext
from likewise.recipes.run import dry_run, run_recipe
from likewise.schema.recipe import parse_recipe
from tests.frozen import sampling, worlds

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REFERENCE = HERE / "reference.json"
WRITE = os.environ.get("LIKEWISE_FREEZE") == "1"
RECIPES = worlds.recipes()
# One folder per family of models, written once and kept in the repository.
STORED = {
    "pairs": "pairs-twice",
    "described": "pairs-described",
    "multilingual": "parallel-refine",
    "labels": "labels",
    "joint": "joint-labels",
    "taught": "inject",
}
PAIRS = [("the old man plays guitar", "a woman sings in the park"), ("one cat sleeps", "one cat is not fast")]
TEXTS = ["the child runs in the park", "a new band cooks soup in the kitchen"]


@pytest.fixture(scope="module")
def world(tmp_path_factory, tiny_encoder):
    folder = tmp_path_factory.mktemp("world")
    worlds.build(folder, tiny_encoder)
    return folder


@pytest.fixture
def inside(world, monkeypatch, tmp_path):
    monkeypatch.chdir(world)
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    return world


def frozen(part: str, name: str, value: Any) -> None:
    """Compare a value with what was kept of it, or keep it."""
    known = json.loads(REFERENCE.read_text(encoding="utf8")) if REFERENCE.is_file() else {}
    value = json.loads(json.dumps(value))
    if WRITE:
        known.setdefault(part, {})[name] = value
        REFERENCE.write_text(
            json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf8"
        )
        return
    assert value == known[part][name]


def recipe_of(name: str) -> Any:
    return parse_recipe(json.loads(json.dumps(RECIPES[name])), name)


@pytest.mark.parametrize("name", RECIPES)
def test_plans_stay(inside, name):
    told: list[str] = []
    lines = dry_run(recipe_of(name), context=RunContext(device="cpu", tell=told.append))
    frozen("plans", name, {"plan": lines, "told": told})


@pytest.mark.parametrize("name", RECIPES)
def test_rows_reports_cards_and_what_is_told_stay(inside, name, tmp_path):
    told: list[str] = []
    recipe = recipe_of(name)
    report = run_recipe(recipe, tmp_path / "model", context=RunContext(device="cpu", tell=told.append))
    document = json.loads((tmp_path / "model" / "likewise" / "model.json").read_text(encoding="utf8"))
    # The family's name came with families that other packages offer; old folders load by their mark.
    assert document.pop("family")
    listed = document.pop("files")  # so did the list of its files
    assert document.pop("run")  # and the id of the run that made it
    shape = {
        key: value
        for key, value in document.items()
        if key not in ("created", "versions", "stages", "recipe")
    }
    frozen("told", name, [_masked(line) for line in told])
    frozen(
        "prints", name, [[stage["name"], stage["fingerprints"], stage["leakage"]] for stage in report.stages]
    )
    frozen(
        "reports",
        name,
        [[sorted(stage), stage["steps"], stage["pairs"], len(stage["history"])] for stage in report.stages],
    )
    frozen("documents", name, _without_measured(shape))
    frozen("recipes", name, document["recipe"])
    frozen("cards", name, _masked((tmp_path / "model" / "README.md").read_text(encoding="utf8")))
    files = sorted(
        str(file.relative_to(tmp_path / "model"))
        for file in (tmp_path / "model").rglob("*")
        if file.is_file()
    )
    frozen("files", name, files)
    assert sorted([*listed, "README.md", "likewise/model.json"]) == files


def _masked(text: str) -> str:
    """Without measured numbers, which differ between processors in their last digits."""
    return re.sub(r"at step [\d,]+", "at step #", re.sub(r"-?\d+\.\d+", "#", text))


def _without_measured(document: dict[str, Any]) -> dict[str, Any]:
    """A model.json without what was measured on dev: the lines to the scale and the gains."""

    def masked(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: masked(one) for key, one in value.items()}
        if isinstance(value, list):
            return [masked(one) for one in value]
        if isinstance(value, float):
            return "#"
        return _masked(value) if isinstance(value, str) else value

    measured = {key: masked(document[key]) for key in ("answers", "gains") if key in document}
    return {**document, **measured}


def test_steps_stay(inside):
    frozen("steps", "digests", sampling.digests())


class Stop(Exception):
    """Ends a run from inside."""


@pytest.mark.parametrize(
    "name",
    [
        "pairs",
        "pairs-multi-task",
        "pairs-described",
        "labels",
        "joint",
        "inject",
        "inject-towers",
        "parallel-refine",
    ],
)
def test_a_run_that_is_stopped_goes_on_bit_for_bit(inside, name, tmp_path):
    recipe = recipe_of(name)
    run_recipe(recipe, tmp_path / "whole", context=RunContext(device="cpu"))

    def stop(event: Any) -> None:
        if event.kind == "evaluate" and list((tmp_path / "torn.run").rglob("checkpoint-*")):
            raise Stop

    with pytest.raises(Stop):
        run_recipe(recipe, tmp_path / "torn", context=RunContext(device="cpu", emit=stop))
    assert not (tmp_path / "torn").exists()
    run_recipe(recipe, tmp_path / "torn", context=RunContext(device="cpu"), resume=True)
    whole, torn = weights_of(tmp_path / "whole"), weights_of(tmp_path / "torn")
    assert whole.keys() == torn.keys()
    assert [key for key in whole if whole[key].tobytes() != torn[key].tobytes()] == []


def weights_of(folder: Path) -> dict[str, Any]:
    found = {}
    for file in sorted(folder.rglob("*.safetensors")):
        found |= {f"{file.relative_to(folder)}:{name}": value for name, value in load_file(file).items()}
    return found


def answers(folder: Path) -> dict[str, Any]:
    """All that a model says of a few rows."""
    document = json.loads((folder / "likewise" / "model.json").read_text(encoding="utf8"))
    if "labels" in document:
        model = likewise.load_classifier(folder, device="cpu")
        said = {
            task.name: model.classify(TEXTS, task=task.name).probabilities.tolist()
            for task in model.relations
        }
        return said | {"encoded": np.asarray(model.encode(TEXTS))[:, :4].tolist()}
    model = likewise.load(folder, device="cpu")
    scores = model.score(PAIRS)
    said = {
        name: list(values) if isinstance(values, list) else values.tolist() for name, values in scores.items()
    }
    said |= {f"p {name}": values.tolist() for name, values in scores.probabilities.items()}
    return (
        said if "joint" in document else said | {"encoded": np.asarray(model.encode(TEXTS))[:, :4].tolist()}
    )


@pytest.mark.parametrize("family", STORED)
def test_stored_folders_answer_as_they_did(inside, family, tmp_path):
    stored = HERE / "models" / family
    if WRITE:
        shutil.rmtree(stored, ignore_errors=True)
        run_recipe(recipe_of(STORED[family]), stored, context=RunContext(device="cpu"))
        frozen("answers", family, answers(stored))
        return
    known = json.loads(REFERENCE.read_text(encoding="utf8"))["answers"][family]
    found = json.loads(json.dumps(answers(stored)))
    assert found.keys() == known.keys()
    for name, value in found.items():
        if isinstance(value[0], str):
            assert value == known[name]
        else:
            np.testing.assert_allclose(value, known[name], atol=2e-6, err_msg=name)


@pytest.mark.parametrize(
    "file", sorted((ROOT / "benchmarks" / "experiments").glob("*.toml")), ids=lambda file: file.stem
)
def test_cell_keys_stay(file, monkeypatch):
    monkeypatch.chdir(ROOT)
    plan = ExperimentPlan(read_experiment(file), None, "fp32", None)
    cells = [*plan.grid_cells(), *(cell for runs in plan.final_cells() for run in runs for cell in run)]
    keys = [cell.own_key for cell in cells]
    frozen("cells", file.stem, [len(keys), hashlib.sha256("\n".join(keys).encode()).hexdigest()[:24]])
