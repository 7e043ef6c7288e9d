"""Few labels: what eight examples of a label are worth, beside what costs nothing and beside SetFit.

    python benchmarks/few_labels.py zero --data-dir corpora
    python benchmarks/few_labels.py train --data-dir corpora --draws 1 2 3 4 5
    python benchmarks/few_labels.py setfit --data-dir corpora --draws 1 2 3 4 5
    python benchmarks/few_labels.py join RESULT…

The tasks and their label texts are in few_labels_tasks.toml. A draw is eight texts of each label, or all
where a label has fewer, without the texts that are in the test set. Test sets are whole.

zero     label texts alone; the templates are chosen among candidates on dev texts of the other tasks
train    `likewise train FILE --text text --label label` on each draw; logistic regression on the vectors of
         the encoder before training; the calibration error after 100 further texts fitted the temperature
setfit   the package setfit, which must be installed: 20 iterations of pairs, as in its paper, and its default
         sampling for the tasks with few labels
join     writes benchmarks/results/few-labels.json from the files of the other commands
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise.data import find_corpus, open_table, text_key
from likewise.data.corpora import load_corpus
from likewise.recipes.calibrate import calibration_error
from likewise.versions import machine, versions

HERE = Path(__file__).resolve().parent
TARGET = HERE / "results" / "few-labels.json"
EACH, CALIBRATING, DEV_ROWS, NONE_BELOW = 8, 100, 1000, 0.5
Rows = list[tuple[str, str]]
# The texts of Reuters are long: what the encoder would not read is cut off here.
MOST_CHARS = 2000
# SetFit pairs every text with every other; with 46 labels and more that is 130,000 pairs.
FEW_ENOUGH = 10
# Candidates of templates; each set is averaged. The first has none.
TEMPLATES: tuple[tuple[str, ...], ...] = (
    ("{}",),
    ("This text is about {}.",),
    ("The topic is {}.",),
    ("It is {}.",),
    ("It was {}.",),
    ("This is {}.",),
    ("This text is {}.",),
    ("a text about {}",),
    ("Category: {}",),
    ("The topic is {}.", "It is {}."),
    ("The topic is {}.", "It is {}.", "This text is about {}."),
)
TASKS = ("trec6", "trec50", "reuters46", "sst2")
# Texts of the second task have none of the labels of the first.
OUTSIDE = {"trec6": "sst2", "trec50": "sst2", "reuters46": "trec6", "sst2": "trec6"}
# Groups of tasks that share texts: one group chooses no template for itself.
KIN = (("trec6", "trec50"), ("sst2", "sst1"), ("reuters46",), ("imdb",), ("kitchen",))


def read_tasks(data_dir: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The train and test rows of the named tasks, and the texts of their labels."""
    said = tomllib.loads((HERE / "few_labels_tasks.toml").read_text(encoding="utf-8"))
    return {name: read_task(said[name], data_dir) for name in names}


def read_task(task: Mapping[str, Any], data_dir: Path) -> dict[str, Any]:
    """One task: rows of a file, whose labels may be several columns, or of a corpus of the catalogue."""
    splits = ("train",) if task.get("only_dev") else ("train", "test")
    if "file" in task:
        parts = {
            split: [
                (row.fields[task["text"][0]], ":".join(row.fields[one] for one in task["label"]))
                for row in open_table(str(data_dir / task["file"] / f"{split}.tsv.xz"))
            ]
            for split in splits
        }
        return {"test": [], **parts, "texts": task["texts"]}
    places = {
        "train": (task["corpus"], task.get("train", "train")),
        "test": tuple(task.get("test", f"{task['corpus']}/test").split("/")),
    }
    parts = {
        split: [
            (record.texts[0][:MOST_CHARS], str(record.values[task["relation"]]))
            for record in load_corpus(places[split][0], split=places[split][1], data_dir=data_dir)
        ]
        for split in splits
    }
    [own] = [one for one in find_corpus(task["corpus"]).relations if one.name == task["relation"]]
    texts = task.get("texts") or dict(zip(own.labels, map(list, own.label_texts), strict=True))
    return {"test": [], **parts, "texts": texts}


def free_rows(task: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The training texts of each label that are not in the test set, by their key."""
    taken = {text_key(text) for text, _ in task["test"]}
    found: dict[str, dict[str, str]] = {}
    for text, label in task["train"]:
        if (key := text_key(text)) not in taken:
            found.setdefault(label, {}).setdefault(key, text)
    return found


def draw(task: Mapping[str, Any], seed: int, each: int = EACH) -> Rows:
    """Eight texts of each label."""
    rng, rows = random.Random(seed), []
    for label, texts in sorted(free_rows(task).items()):
        known = list(texts.values())
        rows += [(text, label) for text in rng.sample(known, min(each, len(known)))]
    return rows


def further(task: Mapping[str, Any], drawn: Rows, seed: int) -> Rows:
    """A hundred more texts of the training set, as they come, for the temperature."""
    used = {text_key(text) for text, _ in drawn}
    left = [
        (text, label)
        for label, texts in sorted(free_rows(task).items())
        for key, text in texts.items()
        if key not in used
    ]
    return random.Random(1000 + seed).sample(left, min(len(left), CALIBRATING))


def accuracy(said: Sequence[str], rows: Rows) -> float:
    """The share of right labels in %."""
    return 100 * float(np.mean([one == label for one, (_, label) in zip(said, rows, strict=True)]))


def error_of(found: Any, rows: Rows) -> float:
    """The expected calibration error of answers."""
    return calibration_error(found.probabilities, np.array([found.labels.index(label) for _, label in rows]))


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", choices=("zero", "train", "setfit", "join"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--draws", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    parser.add_argument("--each", type=int, default=EACH, help="examples of a label")
    parser.add_argument("--encoder", default="raw")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--dev", type=int, metavar="N", help="measure on N training rows instead of test")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    if args.command == "join":
        join(args.files)
        return
    lines: list[dict[str, Any]] = []
    if args.command == "zero":
        lines = zero_shot(read_tasks(args.data_dir, [name for group in KIN for name in group]), args)
    else:
        tasks = read_tasks(
            args.data_dir,
            list(dict.fromkeys([*args.tasks, *(OUTSIDE[one] for one in args.tasks if one in OUTSIDE)])),
        )
        for name in args.tasks:
            for seed in args.draws:
                rows = draw(tasks[name], seed, args.each)
                test = held(tasks[name], rows, args.dev) if args.dev else tasks[name]["test"]
                one = train_once if args.command == "train" else setfit_once
                others = [text for text, _ in tasks[OUTSIDE[name]]["test"][:500]] if name in OUTSIDE else []
                for line in one(tasks[name], rows, test, seed, args, others):
                    about = {"task": name, "draw": seed, "each": args.each, "examples": len(rows)}
                    about |= {"measured on": f"{len(test)} training rows" if args.dev else "test"}
                    lines.append({**about, "settings": args.overrides, **line})
                    print(json.dumps(lines[-1]), file=sys.stderr, flush=True)
                    save(lines, args.output)
    save(lines, args.output)


def held(task: Mapping[str, Any], drawn: Rows, count: int) -> Rows:
    """Training rows outside a draw, the same for every draw as far as they go: for choosing settings."""
    used = {text_key(text) for text, _ in drawn}
    left = [
        (text, label)
        for label, texts in sorted(free_rows(task).items())
        for key, text in texts.items()
        if key not in used
    ]
    random.Random(7).shuffle(left)
    return left[:count]


def zero_shot(tasks: Mapping[str, Mapping[str, Any]], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Accuracy without training; the templates of a task are those that were best on the other tasks."""
    from likewise.predict import load_classifier

    model = load_classifier(args.encoder)
    dev: dict[str, list[float]] = {}
    for name, task in tasks.items():
        rows = held(task, [], DEV_ROWS)
        texts = [text for text, _ in rows]
        dev[name] = [
            accuracy(model.classify(texts, labels=task["texts"], templates=list(t)).best, rows)
            for t in TEMPLATES
        ]
    lines = []
    for name in TASKS:
        task = tasks[name]
        kin = next(group for group in KIN if name in group)
        others = [group for group in KIN if group != kin]
        means = [
            float(np.mean([np.mean([dev[one][place] for one in group]) for group in others]))
            for place in range(len(TEMPLATES))
        ]
        chosen = int(np.argmax(means))
        texts = [text for text, _ in task["test"]]
        fitting = further(task, [], 1)
        for setting, templates in (
            ("no template", TEMPLATES[0]),
            ("default templates", TEMPLATES[-1]),
            ("chosen", TEMPLATES[chosen]),
        ):
            asked = {"labels": task["texts"], "templates": list(templates)}
            found = model.classify(texts, **asked)
            line = {
                "task": name,
                "method": f"zero-shot, {setting}",
                "templates": list(templates),
                "accuracy": accuracy(found.best, task["test"]),
                "ece": error_of(found, task["test"]),
                "dev": dict(zip(map(" / ".join, TEMPLATES), dev[name], strict=True)),
            }
            with model.saying(list(templates)):
                relation = model.wanted(None, task["texts"])
                model.calibrate(relation, *map(list, zip(*fitting, strict=True)))
            after = model.classify(texts, **asked)
            model.model.calibrations.clear()
            line["ece fitted"] = error_of(after, task["test"])
            lines.append(line)
            print(json.dumps({k: v for k, v in line.items() if k != "dev"}), file=sys.stderr, flush=True)
    return lines


def train_once(
    task: Mapping[str, Any],
    rows: Rows,
    test: Rows,
    seed: int,
    args: argparse.Namespace,
    outsiders: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """One training by `likewise train`, and logistic regression on the encoder's vectors."""
    from sklearn.linear_model import LogisticRegression

    import likewise
    from likewise.data import TableWriter

    texts = [text for text, _ in test]
    encoder = likewise.load(args.encoder)
    x, y = encoder.encode([text for text, _ in rows]), [label for _, label in rows]
    regression = LogisticRegression(max_iter=1000).fit(x, y)
    measured = encoder.encode(texts)
    lines = [
        {
            "method": "logistic regression on the vectors",
            "accuracy": accuracy(list(regression.predict(measured)), test),
        },
        *stronger_baselines(encoder, rows, further(task, rows, seed), measured, test),
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "examples.csv"
        with TableWriter(file, ["text", "label"]) as writer:
            for text, label in rows:
                writer.write_row({"text": text, "label": label})
        started = time.monotonic()
        model = likewise.train(
            file,
            text="text",
            label="label",
            labels=task["texts"],
            encoder=args.encoder,
            overrides=args.overrides,
            seed=seed,
            quiet=True,
        )
        seconds = time.monotonic() - started
    found = model.classify(texts)
    line = {
        "method": "likewise",
        "accuracy": accuracy(found.best, test),
        "seconds": round(seconds, 1),
        "ece": error_of(found, test),
    }
    # With all training texts in the draw, none is left to calibrate on.
    if fitting := further(task, rows, seed):
        line["temperature"] = model.calibrate(
            model.relations[0], [text for text, _ in fitting], [label for _, label in fitting]
        )
        after = model.classify(texts)
        line["ece fitted"] = error_of(after, test)
        line["accuracy fitted"] = accuracy(after.best, test)
        # Texts of another task have none of these labels.
        if outsiders:
            line["kept"] = 100 * float((after.probabilities.max(axis=1) >= NONE_BELOW).mean())
            other = model.classify(outsiders).probabilities.max(axis=1)
            line["outsiders found"] = 100 * float((other < NONE_BELOW).mean())
    return [*lines, line]


def stronger_baselines(
    encoder: Any, rows: Rows, more: Rows, measured: Any, test: Rows
) -> list[dict[str, Any]]:
    """Logistic regression with less regularisation, and with the labels that calibration has too."""
    from sklearn.linear_model import LogisticRegression

    x = encoder.encode([text for text, _ in [*rows, *more]])
    y = [label for _, label in [*rows, *more]]
    lines = []
    for method, count in (
        ("logistic regression, C = 10", len(rows)),
        ("logistic regression on 8 and the 100", len(y)),
    ):
        fitted = LogisticRegression(C=10, max_iter=2000).fit(x[:count], y[:count])
        lines.append({"method": method, "accuracy": accuracy(list(fitted.predict(measured)), test)})
    return lines


def setfit_once(
    task: Mapping[str, Any],
    rows: Rows,
    test: Rows,
    seed: int,
    args: argparse.Namespace,
    outsiders: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """SetFit on the same rows and encoder."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments, __version__

    from likewise.encoders.resolve import resolve

    names = sorted(task["texts"])
    table = {"text": [text for text, _ in rows], "label": [names.index(label) for _, label in rows]}
    lines = []
    for iterations in (20, None) if len(names) <= FEW_ENOUGH else (20,):
        with tempfile.TemporaryDirectory() as folder:
            settings = TrainingArguments(
                batch_size=16,
                num_epochs=1,
                num_iterations=iterations,
                seed=seed,
                report_to="none",
                show_progress_bar=False,
                save_strategy="no",
                output_dir=folder,
            )
            model = SetFitModel.from_pretrained(str(resolve(args.encoder)))
            started = time.monotonic()
            Trainer(model=model, args=settings, train_dataset=Dataset.from_dict(table)).train()
            seconds = time.monotonic() - started
        said = [names[int(number)] for number in model.predict([text for text, _ in test])]
        sampling = "20 iterations" if iterations else "default sampling"
        lines.append(
            {
                "method": f"SetFit {__version__}, {sampling}",
                "accuracy": accuracy(said, test),
                "seconds": round(seconds, 1),
            }
        )
    return lines


def save(lines: Sequence[dict[str, Any]], output: Path | None) -> None:
    """Write the runs so far, after a line about where they ran."""
    if output is not None:
        about = {"versions": versions(), "machine": device_name()}
        output.write_text("".join(json.dumps(one) + "\n" for one in ({"about": about}, *lines)))


def device_name() -> str:
    """The accelerator of the run, or the processor."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else str(machine()["processor"])


def join(files: Sequence[Path]) -> None:
    """One result file from the files of runs."""
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    about = [line["about"] for line in lines if "about" in line]
    if any(one != about[0] for one in about[1:]):
        raise SystemExit("the files come from different versions or machines")
    runs = [line for line in lines if "about" not in line]
    TARGET.write_text(json.dumps({**about[0], "runs": runs}, indent=1, sort_keys=True) + "\n")
    print(f"{TARGET}: {len(runs)} runs")


if __name__ == "__main__":
    main()
