"""The predictions behind a result file, compressed beside it, so that tests can be repeated without training.

FOLDER/NAME.json             `predictions` names the runs and their tasks, and the sha256 of the file
FOLDER/NAME.predictions-HASH.npz
                             no pickle; predictions in single precision, rounded to a 10,000th of their spread

The hash is that of the file, so that new predictions exist beside old ones until NAME.json, which is written
last, names them. Files of earlier versions have no hash in their names.

    gold/TASK            (n,)  ratings, or labels as row numbers of labels/TASK
    rows/TASK            (n, 1) or (n, 2)  fingerprints of the texts, never the texts
    subsets/TASK         (n,)  if the task has subsets
    labels/TASK          (labels,)
    predicted/RUN/TASK   (n,)  RUN is the run's place in `runs`
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.disk import open_aside, own_turn, remove_file, write_json_aside
from likewise.errors import DataError, EvaluationError, LikewiseError, Problem, UsageError
from likewise.evaluation.aggregate import aggregate
from likewise.evaluation.protocol import Protocol
from likewise.evaluation.results import Predictions, SuiteResult, TaskResult
from likewise.evaluation.sharing import row_sharing
from likewise.experiments.related import Arrays, Run
from likewise.files import file_sha256, refuse_endless
from likewise.spelling import speaks_flags, spelt
from likewise.wording import listed

if TYPE_CHECKING:
    from likewise.experiments.summary import ExperimentResult

# Predictions that a result file remembers: those it names, and a few that it replaced.
_MOST_FORMER = 4
# What a reader takes in at most: bytes of both files, bytes when unpacked, arrays.
_MOST_BYTES, _MOST_UNPACKED, _MOST_ARRAYS = 2**28, 2**30, 2**17
# Bytes of the labels of a task's rows, each written out.
_MOST_LABELS = 2**28
_STEPS = 13  # rounded to their standard deviation by 2^13 or less: ranks stay but for near ties


@dataclass(frozen=True, slots=True)
class Gathered:
    """The predictions of an experiment's runs: arrays as above, and their description in the JSON."""

    about: Mapping[str, Any]
    arrays: Arrays


def gather(named: Iterable[tuple[str, str, int, Run]]) -> Gathered | None:
    """Gather the predictions of runs, given as (start, setting, seed, cells of the run with their arrays).

    Cells of earlier versions do not record their rows. The result is None if no cell does.
    """
    runs: list[dict[str, Any]] = []
    tasks: dict[str, dict[str, Any]] = {}
    given: dict[str, dict[str, NDArray[Any]]] = {}
    arrays: dict[str, NDArray[Any]] = {}
    for start, setting, seed, run in named:
        for source in dict.fromkeys(source for cell, _ in run for source in cell.get("results", {})):
            answers: dict[str, NDArray[Any]] = {}
            for cell, kept in run:
                found = cell.get("results", {}).get(source, {"tasks": []})
                for task in found["tasks"]:
                    if _same_rows(task, kept, tasks, arrays):
                        name, key = task["name"], f"{source}/{task['name']}"
                        answers[name] = kept.get(f"compared/{key}", kept[key])
                        protocol = found["protocol"]
            if answers:
                entry = {"start": start, "setting": setting, "seed": seed, "protocol": protocol}
                given[str(len(runs))] = answers
                runs.append(entry | {"tasks": list(answers)})
    if not runs:
        return None
    for name in tasks:
        _add_coded(name, given, arrays)
    return Gathered({"runs": runs, "tasks": tasks}, arrays)


def _same_rows(
    task: Mapping[str, Any],
    kept: Arrays,
    tasks: dict[str, dict[str, Any]],
    arrays: dict[str, NDArray[Any]],
) -> bool:
    """Whether a task's predictions are of known rows, and the same rows as in the first run."""
    name = task["name"]
    if f"rows/{name}" not in kept:
        return False
    if name not in tasks:
        told = ("relation", "metric", "n", "fingerprint", "pairs", "missing")
        tasks[name] = {key: task[key] for key in told}
        for part in ("gold", "rows", "subsets"):
            if f"{part}/{name}" in kept:
                arrays[f"{part}/{name}"] = kept[f"{part}/{name}"]
    return bool(tasks[name]["fingerprint"] == task["fingerprint"])


def _add_coded(
    name: str, given: Mapping[str, Mapping[str, NDArray[Any]]], arrays: dict[str, NDArray[Any]]
) -> None:
    """Add a task's predictions; labels are stored as numbers of the task's labels, which is shorter."""
    answers = {run: found[name] for run, found in given.items() if name in found}
    texts = [row for row in (arrays[f"gold/{name}"], *answers.values()) if row.dtype.kind == "U"]
    labels = np.unique(np.concatenate(texts)) if texts else np.asarray([], dtype=np.str_)
    if texts:
        arrays[f"labels/{name}"] = labels
    arrays[f"gold/{name}"] = _small(arrays[f"gold/{name}"], labels, exact=True)
    for run, row in answers.items():
        arrays[f"predicted/{run}/{name}"] = _small(row, labels)


def _small(row: NDArray[Any], labels: NDArray[Any], *, exact: bool = False) -> NDArray[Any]:
    """Labels as numbers of labels; numbers in single precision and rounded, unless `exact`."""
    if row.dtype.kind == "U":
        return np.searchsorted(labels, row).astype(np.uint16)
    single = row.astype(np.float32)
    if exact or not np.isfinite(single).all():
        return single
    spread = float(single.astype(np.float64).std())
    if spread == 0.0:
        return single
    step = 2.0 ** (math.floor(math.log2(spread)) - _STEPS)
    return (np.round(single.astype(np.float64) / step) * step).astype(np.float32)


def _remedy() -> str:
    again = "--summary --overwrite" if speaks_flags() else "keep_predictions=True, and write its summary"
    return f"run the experiment again with {again} (finished runs are not trained again)"


def write_summary(result: ExperimentResult, folder: Path, *, replace: bool = True) -> list[Path]:
    """Write NAME.json and, if they were gathered, its predictions; returns the files written.

    If it is interrupted, NAME.json is either the old or the new one, and the predictions that it names exist.
    """
    folder.mkdir(parents=True, exist_ok=True)
    document, target = result.to_dict(), folder / f"{result.name}.json"
    written = [target]
    with own_turn(folder / f".{result.name}.json.lock"):
        if not replace and os.path.lexists(target):
            replacing = spelt("overwrite") if speaks_flags() else "replace=True"
            raise UsageError(f"{target} already exists. Choose another folder, or pass {replacing}.")
        known = _known_predictions(target)
        replaced = known
        if result.predictions is not None:
            beside, digest = _write_predictions(folder, result.name, result.predictions.arrays)
            if (
                known and known[0]["file"] == beside.name
            ):  # the same result again, perhaps after an interruption
                replaced = known[1:]
            document["predictions"] = {"file": beside.name, "sha256": digest, **result.predictions.about}
            # If this process is stopped before it removes them, the next one knows them from here.
            document["predictions"]["former"] = replaced
            written.append(beside)
        write_json_aside(target, document, replace=replace)
        for one in replaced:
            _remove_former(target, one)
    return written


def _write_predictions(folder: Path, name: str, arrays: Arrays) -> tuple[Path, str]:
    """Write arrays to a file that is named by its hash; a file that already exists is not written again."""
    held = io.BytesIO()
    np.savez_compressed(held, **dict[str, Any](sorted(arrays.items())))
    digest = hashlib.sha256(held.getbuffer()).hexdigest()
    path = folder / f"{name}.predictions-{digest[:12]}.npz"
    if not os.path.lexists(path):
        with open_aside(path, replace=False) as handle:
            handle.write(held.getbuffer())
    elif path.is_symlink() or not path.is_file() or file_sha256(path) != digest:
        raise UsageError(
            f"{path} already exists and holds something else. Move it, or choose another folder."
        )
    return path, digest


def _known_predictions(summary: Path) -> list[dict[str, str]]:
    """The predictions that a result file names, and then those that it replaced; empty if it has none."""
    try:
        about = _read_document(summary)["predictions"]
        entries = [about, *about.get("former", [])][:_MOST_FORMER]
        return [{"file": Path(one["file"]).name, "sha256": str(one["sha256"])} for one in entries]
    except (LikewiseError, LookupError, TypeError, AttributeError, OSError):
        return []


def _remove_former(summary: Path, known: Mapping[str, str]) -> None:
    """Remove predictions that a result file replaced, if they are unchanged and nothing names them."""
    path = summary.parent / known["file"]
    ours = path.name.startswith(f"{summary.stem}.predictions") and path.suffix == ".npz"
    if ours and path.is_file() and not path.is_symlink() and not _is_named(path):
        with suppress(OSError):  # somebody else removes it at this moment
            if file_sha256(path) == known["sha256"]:
                remove_file(path)


def _is_named(predictions: Path) -> bool:
    """Whether a result file, or a copy of one, still names these predictions."""
    for summary in predictions.parent.glob("*.json"):
        try:
            if _read_document(summary)["predictions"]["file"] == predictions.name:
                return True
        except (LikewiseError, LookupError, TypeError, OSError):
            continue
    return False


def read_run(
    summary: str | Path, setting: str, *, seed: int, start: str = "", source: str = ""
) -> SuiteResult:
    """Measure a run of a result file again from its predictions; `compare_results` takes the result.

    `summary` is the JSON file of `likewise experiment --summary`. `source` chooses among the sources of a run
    (cosine, head); by default it is the first.
    """
    path = Path(summary)
    document = _read_document(path)
    about = document.get("predictions")
    if not about:
        raise EvaluationError(f"no predictions are kept beside {path}; {_remedy()}")
    try:
        place = _find_run(path, about["runs"], setting=setting, seed=seed, start=start, source=source)
        run = about["runs"][place]
        wanted = [
            f"{part}/{name}"
            for name in run["tasks"]
            for part in ("gold", "rows", "subsets", "labels", f"predicted/{place}")
        ]
        arrays = _read_arrays(path.parent / Path(about["file"]).name, about["sha256"], wanted)
        return _as_result(str(document.get("suite", "")), run, about["tasks"], place, arrays)
    except (KeyError, TypeError, IndexError, ValueError, MemoryError) as error:
        if isinstance(error, LikewiseError):
            raise
        found = f"its description of the predictions does not fit them ({type(error).__name__}: {error})"
        raise _unreadable(path, found) from error


def _find_run(
    path: Path, runs: Sequence[Mapping[str, Any]], *, setting: str, seed: int, start: str, source: str
) -> int:
    for place, run in enumerate(runs):
        named = (run["setting"], run["seed"], run["start"]) == (setting, seed, start)
        if named and source in ("", run["protocol"]["source"]):
            return place
    known = listed(
        dict.fromkeys(f"{run['start']} {run['setting']} seed {run['seed']}".strip() for run in runs)
    )
    asked = f"{start} {setting} seed {seed}".strip() + (f" by {source}" if source else "")
    raise EvaluationError(f"{path} has no predictions of {asked!r}. Choose one of {known}.")


def _as_result(
    suite: str, run: Mapping[str, Any], tasks: Mapping[str, Any], place: int, arrays: Arrays
) -> SuiteResult:
    protocol = Protocol(**run["protocol"])
    kept, results = {}, []
    for name in run["tasks"]:
        one, about = _predictions(name, place, arrays), tasks[name]
        found = aggregate(
            about["metric"],
            protocol.aggregation,
            gold=one.gold,
            predicted=one.predicted,
            subsets=one.subsets,
            sharing=row_sharing(len(one.gold), texts=one.texts),
        )
        told = {key: about[key] for key in ("metric", "n", "fingerprint", "missing", "pairs")}
        results.append(TaskResult.shown(name, about["relation"], found=found, **told))
        kept[name] = one
    return SuiteResult(suite, protocol, tuple(results), predictions=kept)


def _predictions(name: str, place: int, arrays: Arrays) -> Predictions:
    """The stored rows of one task; raises an error for shapes that do not fit each other."""
    labels = arrays.get(f"labels/{name}")
    rows_named = sum(len(arrays[f"{part}/{name}"]) for part in ("gold", f"predicted/{place}"))
    if labels is not None and labels.dtype.itemsize * rows_named > _MOST_LABELS:
        raise ValueError(f"{name}: labels have up to {labels.dtype.itemsize // 4:,} characters in every row")
    gold, predicted = (
        labels[row] if row.dtype.kind == "u" and labels is not None else row.astype(np.float64)
        for row in (arrays[f"gold/{name}"], arrays[f"predicted/{place}/{name}"])
    )
    rows = arrays[f"rows/{name}"]
    subsets = arrays.get(f"subsets/{name}", np.full(len(gold), ""))
    fits = gold.ndim == subsets.ndim == 1 and rows.ndim == 2 and rows.shape[1] in (1, 2)
    if not fits or not len(gold) == len(rows) == len(subsets) or predicted.shape != gold.shape:
        raise ValueError(f"{name}: {gold.shape} ratings, {predicted.shape} predictions, {rows.shape} rows")
    texts = tuple(tuple(row) for row in rows.tolist())
    return Predictions(gold, predicted, tuple(subsets.tolist()), texts, rows=rows)


def _read_document(path: Path) -> dict[str, Any]:
    _check_size(path)
    try:
        found = json.loads(path.read_text(encoding="utf8"))
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, f"this file is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise _unreadable(path, "this is not a result file")
    return found


def _check_size(path: Path) -> None:
    refuse_endless(path)
    try:
        size = path.stat().st_size
    except OSError as error:
        raise _unreadable(path, f"this file cannot be read ({error.strerror})") from error
    if size > _MOST_BYTES:
        raise _unreadable(path, f"this file has {size:,} bytes, but at most {_MOST_BYTES:,} are read")


def _unreadable(path: Path, found: str) -> DataError:
    return DataError([Problem(str(path), found, _remedy())])


def _read_arrays(path: Path, digest: str, wanted: Sequence[str]) -> Arrays:
    """Those of the wanted arrays that are in a file; the file's hash must be the one in the JSON."""
    _check_size(path)
    if file_sha256(path) != digest:
        raise _unreadable(path, "this is not the file that its result file was written with")
    try:
        with zipfile.ZipFile(path) as parts:
            entries = parts.infolist()
        unpacked = sum(entry.file_size for entry in entries)
        if len(entries) > _MOST_ARRAYS or unpacked > _MOST_UNPACKED:
            found = f"this file holds {len(entries):,} arrays of {unpacked:,} bytes, too much for predictions"
            raise _unreadable(path, found)
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in wanted if name in file.files}
    except LikewiseError:
        raise
    except Exception as error:  # zipfile, zlib and numpy have a class each for what may be wrong
        raise _unreadable(path, f"this file cannot be read ({type(error).__name__}: {error})") from error
