"""A cell, the unit of an experiment: a recipe with overrides and a seed, which is trained and measured.

A cell's file names everything that could change its numbers. A finished cell is not run again. Its
predictions are kept beside it (.npz, no pickle), so that tests can be repeated without training.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.answering import HEAD
from likewise.arguments import whole_number
from likewise.data.filecache import content_digest, content_key
from likewise.disk import own_turn
from likewise.errors import EvaluationError
from likewise.experiments.cellfiles import DamagedCellError, read_cell, write_cell
from likewise.experiments.schema import Added
from likewise.kinds.base import RULES
from likewise.naming import recipe_in_keys
from likewise.schema.recipe import parse_recipe
from likewise.spelling import spelt
from likewise.wording import listed, quoted

if TYPE_CHECKING:
    from likewise.evaluation.results import Predictions
    from likewise.evaluation.suites import Suite
    from likewise.predict import Answerer


_THREADS = "LIKEWISE_CELL_THREADS"
# What a cell's numbers do not depend on: where it is run, and what it is called.
_ASIDE = ("setting", "overrides", "data_dir", "device", "files")


@dataclass(frozen=True, slots=True)
class Cell:
    """What is run, and where. `recipe` is the whole recipe with overrides, seed and defaults.

    `content` holds hashes of the data files by name, `beside` hashes of everything else: the encoder's files,
    named corpora, folders. `files` lists all these files with their hashes. A `raw` cell measures the raw
    encoder. `add` names a task that is added after training.
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
    beside: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A short name that changes if and only if something changes that affects the numbers.

        A default that a later version changes makes another recipe, and a file with other rows is other data.
        Experiments that share a folder share cells that are the same training, whatever its name.
        Cells that were made by earlier rules are not used.
        """
        return f"v{RULES}-{self._stem}-{content_key(self._told(), length=12)}-s{self.seed}"

    @property
    def own_key(self) -> str:
        """The part of the key that depends only on the experiment file, not on the content of the data."""
        return f"{self._stem}-{content_key(self._told('content', 'beside'), length=12)}-s{self.seed}"

    def _told(self, *but: str) -> dict[str, Any]:
        """Everything that affects the numbers, without the fields in `but`."""
        told = {name: value for name, value in asdict(self).items() if name not in (*_ASIDE, *but)}
        return {**told, "recipe": recipe_in_keys(told["recipe"])}

    @property
    def _stem(self) -> str:
        name = str(self.recipe["name"]).lower()
        return "".join(c if c.isalnum() else "-" for c in name).strip("-")[:40]


def run_cell(cell: Cell, folder: Path, busy: str = "") -> Path:
    """Train and measure one cell unless it is finished; its file is written last, so a stopped cell has none.

    While another process trains it, this one waits, or raises BusyError with the message `busy`.
    """
    with own_turn(folder / f"{cell.key}.lock", busy):
        try:
            read_cell(folder, cell.key)
            return folder / f"{cell.key}.json"
        except DamagedCellError:  # or not there
            return _run(cell, folder)


def _run(cell: Cell, folder: Path) -> Path:
    import torch

    from likewise.experiments.added import run_with_added
    from likewise.kinds.context import RunContext
    from likewise.recipes.run import run_recipe, untrained
    from likewise.versions import commit, machine, versions

    if os.environ.get(_THREADS):
        torch.set_num_threads(whole_number(_THREADS, least=1))
    _refuse_changed(cell)
    started = time.monotonic()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    recipe = parse_recipe(dict(cell.recipe), cell.setting)
    context = RunContext(
        data_dir=cell.data_dir,
        device=cell.device,
        precision=cell.precision,
        kept_stages=folder / "stages",
        compare=False,
    )
    output = folder / f"{cell.key}-model" if _keep_models() else None
    try:
        if cell.raw:
            report = untrained(recipe, context)
        elif cell.add:
            report = run_with_added(recipe, Added(**cell.add), folder / "models", context=context)
        else:
            report = run_recipe(recipe, output, context=context, overwrite=True)
    except torch.OutOfMemoryError as error:
        raise EvaluationError(
            f"the GPU has no memory left. Run fewer trainings side by side ({spelt('workers')})."
        ) from error
    document: dict[str, Any] = {
        "setting": cell.setting,
        "seed": cell.seed,
        "overrides": dict(cell.overrides),
        "dev": report.stages[-1]["best_value"] if report.stages else None,
        "stages": report.stages,
        "recipe": recipe.model_dump(mode="json"),
        "versions": versions(),
        "commit": commit(),
        "machine": machine(),
        "device": _device_name(),
        "matmul": torch.get_float32_matmul_precision(),
        "train_seconds": time.monotonic() - started,
        "peak_memory_mib": _peak_memory(),
        "content": {**cell.content, **cell.beside},
    }
    arrays = None
    if cell.measure:
        measured, arrays = _measure(cell, report.predictor)
        document |= measured
    document["seconds"] = time.monotonic() - started
    _refuse_changed(cell)
    return write_cell(folder, cell.key, document, arrays)


def _refuse_changed(cell: Cell) -> None:
    """Raise an error if a file has changed since the cell was named by its content."""
    for name, digest in cell.files.items():
        try:
            same = content_digest(Path(name)) == digest
        except OSError:
            same = False
        if not same:
            found = f"{name} has changed since the experiment began, so the result of this run is not kept"
            raise EvaluationError(f"{found}. Run the same command again.")


def _measure(cell: Cell, predictor: Answerer) -> tuple[dict[str, Any], dict[str, Any]]:
    """The numbers of a trained model, and the predictions behind them."""
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
            compared = _compact(kept.predicted if kept.compared is None else kept.compared)
            if compared.dtype.kind != arrays[f"{source}/{name}"].dtype.kind:  # labels nearest to numbers
                arrays[f"compared/{source}/{name}"] = compared
            arrays |= _of_rows(name, kept)
        document = result.to_dict()
        document.pop("predictions", None)
        results[source] = document
    checks = {check["name"]: _check(check, predictor, cell, arrays) for check in cell.checks}
    return {"results": results, "checks": checks}, arrays


def _of_rows(name: str, kept: Predictions) -> dict[str, Any]:
    """What a test needs of a task's rows: ratings or labels, fingerprints of texts, and subsets."""
    found = {f"gold/{name}": _compact(kept.gold)}
    if kept.rows is not None:
        found[f"rows/{name}"] = kept.rows
    if any(kept.subsets):
        found[f"subsets/{name}"] = np.asarray(kept.subsets)
    return found


def _check(check: Mapping[str, str], predictor: Answerer, cell: Cell, arrays: dict[str, Any]) -> float:
    from likewise.data import load_records
    from likewise.evaluation.metrics import compute, get_metric
    from likewise.records import nearest_labels

    relation = next((r for r in predictor.relations if r.name == check["relation"]), None)
    if relation is None:
        answered = listed(one.name for one in predictor.relations)
        found = f"check {quoted(check['name'])}: the model answers {answered}, not {check['relation']!r}"
        raise EvaluationError(f"{found}. Name a relation that the recipe trains.")
    records = load_records(check["source"], data_dir=cell.data_dir)
    if not all(relation.name in record.values for record in records):
        found = f"check {quoted(check['name'])}: {check['source']} has no ratings of {relation.name!r}"
        raise EvaluationError(f"{found}. Name another file or corpus.")
    gold = [record.values[relation.name] for record in records]
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
    """Numbers in single precision, labels as fixed-width text; both can be stored without pickle."""
    row = np.asarray(list(values))
    return row.astype(np.float32) if row.dtype.kind == "f" else row


def _ranks_by_labels(suite: Suite, predictor: Answerer) -> bool:
    """Whether the suite ranks pairs that the model answers by labels."""
    answered = predictor.answer([], predictor.relations[0].name, source=HEAD)
    ranked = any(task.default_metric not in ("", "accuracy") for task in suite.tasks)
    return answered.probabilities is not None and ranked


def _peak_memory() -> float | None:
    """The peak GPU memory of this process in MiB; None on a CPU."""
    import torch

    return torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else None


def _keep_models() -> bool:
    return os.environ.get("LIKEWISE_KEEP_MODELS") == "1"


def _device_name() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
