"""One cell of an experiment: a recipe with overrides and a seed, trained, measured, written down.

A cell's file names everything that could change its numbers; a cell that is there already is not run again.
Predictions stand beside it (.npz, no pickle), so that tests can be redone without training.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.answering import HEAD
from likewise.data import write_json_aside
from likewise.data.aside import path_aside
from likewise.data.filecache import content_key
from likewise.errors import EvaluationError, LikewiseError
from likewise.experiments.schema import Added
from likewise.schema.recipe import parse_recipe

if TYPE_CHECKING:
    from likewise.evaluation.suites import Suite
    from likewise.predict import Answerer


# What a cell's numbers do not depend on: where it is run, and what it is called.
_ASIDE = ("setting", "overrides", "data_dir", "device")
# Of the first form of keys: what was left out where it was empty, and suites that had another name.
_LATER = ("add", "raw")
_FORMER_SUITES = {"language-pairs": "crosslingual"}


@dataclass(frozen=True, slots=True)
class Cell:
    """What is run, and where. `recipe` is the whole recipe, overrides, seed and defaults applied.

    `content` says what the files hold that it reads, by name. A `raw` cell measures the recipe's encoder as
    it is; `add` names a task that is added after training.
    """

    setting: str
    recipe: Mapping[str, Any]
    overrides: Mapping[str, Any]
    seed: int
    suite: str
    sources: tuple[str, ...]
    checks: tuple[Mapping[str, str], ...]
    measure: bool
    device: str | None
    precision: str
    data_dir: str | None
    raw: bool = False
    add: Mapping[str, Any] | None = None
    content: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A short name that changes with anything that changes the numbers, and with nothing else.

        A default that a later version changes is another recipe, and a file with other rows is other data.
        Experiments that share a folder share the cells that are the same training, whatever they call it.
        """
        content = {name: value for name, value in asdict(self).items() if name not in _ASIDE}
        return f"v2-{self._stem}-{content_key(content, length=12)}-s{self.seed}"

    @property
    def former_key(self) -> str:
        """The key of the cell in the first form: without the recipe's defaults and the files' content."""
        recipe = parse_recipe(dict(self.recipe), self.setting)
        content = {name: value for name, value in asdict(self).items() if name not in (*_ASIDE, "content")}
        content |= {
            "recipe": recipe.model_dump(mode="json", exclude_defaults=True),
            "suite": _FORMER_SUITES.get(self.suite, self.suite),
        }
        content = {name: value for name, value in content.items() if value or name not in _LATER}
        text = json.dumps(content, sort_keys=True, default=str)
        return f"{self._stem}-{hashlib.sha256(text.encode()).hexdigest()[:12]}-s{self.seed}"

    @property
    def _stem(self) -> str:
        name = str(self.recipe["name"]).lower()
        return "".join(c if c.isalnum() else "-" for c in name).strip("-")[:40]


def take_former(cell: Cell, folder: Path) -> bool:
    """Take over what a cell left under its former key, if it was the same training; whether it was.

    What it was trained by stands in its file, defaults and all: if a default has changed since, it is another
    one.
    """
    former = folder / f"{cell.former_key}.json"
    try:
        kept = json.loads(former.read_text(encoding="utf8"))
        same = parse_recipe(kept["recipe"], former.name) == parse_recipe(dict(cell.recipe), cell.setting)
    except (OSError, ValueError, KeyError, LikewiseError):
        return False
    if not same:
        return False
    arrays = former.with_suffix(".npz")
    if arrays.is_file():
        with path_aside(folder / f"{cell.key}.npz") as copy:
            shutil.copyfile(arrays, copy)
    write_json_aside(folder / f"{cell.key}.json", kept)
    return True


def run_cell(cell: Cell, folder: Path) -> Path:
    """Train and measure one cell; the file is written last, so an interrupted cell leaves none."""
    import torch

    from likewise.experiments.added import run_with_added
    from likewise.kinds.context import RunContext
    from likewise.recipes.run import run_recipe, untrained
    from likewise.versions import versions

    target = folder / f"{cell.key}.json"
    if target.is_file():
        return target
    threads = os.environ.get("LIKEWISE_CELL_THREADS")
    if threads:
        torch.set_num_threads(int(threads))
    started = time.monotonic()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    recipe = parse_recipe(dict(cell.recipe), cell.setting)
    context = RunContext(
        data_dir=cell.data_dir, device=cell.device, precision=cell.precision, kept_stages=folder / "stages"
    )
    output = folder / f"{cell.key}-model" if _keep_models() else None
    try:
        if cell.raw:
            report = untrained(recipe, context)
        elif cell.add:
            report = run_with_added(recipe, Added(**cell.add), folder / "models", context=context)
        else:
            report = run_recipe(recipe, output, context=context)
    except torch.OutOfMemoryError as error:
        raise EvaluationError(
            "the GPU has no memory left; run fewer cells side by side (--workers)"
        ) from error
    document: dict[str, Any] = {
        "setting": cell.setting,
        "seed": cell.seed,
        "overrides": dict(cell.overrides),
        "dev": report.stages[-1]["best_value"] if report.stages else None,
        "stages": report.stages,
        "recipe": recipe.model_dump(mode="json"),
        "versions": versions(),
        "device": _device_name(),
        "matmul": torch.get_float32_matmul_precision(),
        "train_seconds": time.monotonic() - started,
        "peak_memory_mib": _peak_memory(),
    }
    if cell.measure:
        document |= _measure(cell, report.predictor, folder)
    document["seconds"] = time.monotonic() - started
    write_json_aside(target, document)
    return target


def _measure(cell: Cell, predictor: Answerer, folder: Path) -> dict[str, Any]:
    from likewise.api import evaluate_suite
    from likewise.evaluation.asking import answered_source
    from likewise.evaluation.suites import get_suite

    arrays: dict[str, Any] = {}
    results: dict[str, Any] = {}
    suite = get_suite(cell.suite)
    # A model without vectors of pairs answers by its own source, whatever is asked.
    for source in dict.fromkeys(answered_source(predictor, asked) for asked in cell.sources):
        if source == HEAD and not suite.by_name and _ranks_by_labels(suite, predictor):
            continue  # a class head has no number to rank pairs by; its accuracy is a check
        result = evaluate_suite(
            predictor, suite, source=source, data_dir=cell.data_dir, keep_predictions=True
        )
        for name, kept in result.predictions.items():
            arrays[f"{source}/{name}"] = _compact(kept.predicted)
            arrays[f"gold/{name}"] = _compact(kept.gold)
        document = result.to_dict()
        document.pop("predictions", None)
        results[source] = document
    checks = {check["name"]: _check(check, predictor, cell, arrays) for check in cell.checks}
    aside = folder / f"{cell.key}.npz.partial"
    with aside.open("wb") as file:
        np.savez_compressed(file, **arrays)
    aside.rename(folder / f"{cell.key}.npz")
    return {"results": results, "checks": checks}


def _check(check: Mapping[str, str], predictor: Answerer, cell: Cell, arrays: dict[str, Any]) -> float:
    from likewise.data import load_records
    from likewise.evaluation.metrics import compute, get_metric
    from likewise.records import nearest_labels

    records = load_records(check["source"], data_dir=cell.data_dir)
    relation = next(r for r in predictor.relations if r.name == check["relation"])
    gold = [record.values[check["relation"]] for record in records]
    answers: Any = predictor.score([record.texts for record in records], relation=relation.name)[
        relation.name
    ]
    arrays[f"check/{check['name']}"] = np.asarray(answers)
    if (
        relation.kind == "ordered"
        and get_metric(check["metric"]).compares_labels
        and not isinstance(answers, list)
    ):
        answers = nearest_labels(relation, answers)
    return compute(check["metric"], gold, answers) * get_metric(check["metric"]).scale


def _compact(values: Any) -> Any:
    """Numbers in single precision, labels as fixed-width text: neither needs a pickle."""
    row = np.asarray(list(values))
    return row.astype(np.float32) if row.dtype.kind == "f" else row


def _ranks_by_labels(suite: Suite, predictor: Answerer) -> bool:
    """Whether pairs that are to be ranked would be answered by labels."""
    answered = predictor.answer([], predictor.relations[0].name, source=HEAD)
    ranked = any(task.default_metric not in ("", "accuracy") for task in suite.tasks)
    return answered.probabilities is not None and ranked


def _peak_memory() -> float | None:
    """Most GPU memory this process held, in MiB; None on a CPU."""
    import torch

    return torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else None


def _keep_models() -> bool:
    return os.environ.get("LIKEWISE_KEEP_MODELS") == "1"


def _device_name() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
