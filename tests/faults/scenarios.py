"""The verbs that are failed and killed: what each is run on, what it writes, how it is gone on with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import typer.main

from likewise.cli import app

_CPU = ("--device", "cpu")

# Verbs (or functions `module:name`) that are run undisturbed before a scenario, by the name of their world.
WORLDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "plain": (),
    "old result": (("tests.faults.writers:old_result",),),
    "old summary": (("tests.faults.writers:old_summary",),),
    "model": (("train", "inputs/other.toml", "--output", "inputs/model", *_CPU),),
    "old model": (("train", "inputs/other.toml", "--output", "out/model", *_CPU),),
    "model, old model": (
        ("train", "inputs/other.toml", "--output", "inputs/model", *_CPU),
        ("train", "inputs/quick.toml", "--output", "out/model", *_CPU),
    ),
    "labels": (("train", "inputs/labels.toml", "--output", "inputs/model", *_CPU),),
    "labels, old model": (
        ("train", "inputs/labels.toml", "--output", "inputs/model", *_CPU),
        ("train", "inputs/other.toml", "--output", "out/model", *_CPU),
    ),
    "vectors": (("train", "inputs/frozen.toml", "--output", "inputs/model", *_CPU),),
    "old split": (
        ("data", "split", "inputs/pairs.csv", "--output", "out/parts", "--dev", "0.1", "--seed", "9"),
    ),
    "old audit": (
        ("audit", "inputs/pairs.csv", "--against", "inputs/many.csv", "--output", "out/clean.csv"),
    ),
    "old scores": (
        ("train", "inputs/other.toml", "--output", "inputs/model", *_CPU),
        ("score", "inputs/test.csv", "--model", "inputs/model", "--output", "out/scored.csv", *_CPU),
    ),
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """A verb in a world. What it writes is `outputs` (each of them old or new as a whole), `each` (folders
    whose files are old or new one by one) and `loose` (folders that are judged only when it ends with 0)."""

    name: str
    arguments: tuple[str, ...]
    world: str = "plain"
    outputs: tuple[str, ...] = ()
    each: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    # Added where the verb offers it.
    options: tuple[str, ...] = ()
    # How one goes on where a run folder lies there; else the same command, then as its message says.
    resume: tuple[str, ...] = ()
    # Further verbs, run after the one that was disturbed was gone on with.
    then: tuple[tuple[str, ...], ...] = ()
    # A function `module:name` that is run instead of a verb.
    call: str = ""
    # Whether the file system can exchange two folders in one step.
    exchange: bool = True


def _score(name: str, file: str, world: str = "model", **more: object) -> Scenario:
    command = ("score", "inputs/many.csv", "--model", "inputs/model", "--output", file, *_CPU)
    return Scenario(name, command, world, outputs=(file,), **more)  # type: ignore[arg-type]


def _train(name: str, recipe: str, *more: str, world: str = "plain", **options: object) -> Scenario:
    command = ("train", f"inputs/{recipe}.toml", "--output", "out/model", *_CPU, *more)
    return Scenario(name, command, world, outputs=("out/model",), **options)  # type: ignore[arg-type]


def _update(name: str, *more: str, world: str = "labels", resume: tuple[str, ...] = ()) -> Scenario:
    command = ("update", "inputs/model", "inputs/places.csv", "--task", "place", "--output", "out/model")
    return Scenario(name, (*command, *_CPU, *more), world, outputs=("out/model",), resume=resume)


_SCORE_MODEL = ("score", "inputs/many.csv", "--model", "out/model", "--output", "out/scored.csv", *_CPU)
_SPLIT = ("data", "split", "inputs/pairs.csv", "--output", "out/parts", "--dev", "0.1")
_AUDIT = ("audit", "inputs/pairs.csv", "--against", "inputs/test.csv", "--output", "out/clean.csv")
_MODEL = ("--model", "inputs/model", *_CPU)
_CLASSIFY = ("classify", "inputs/texts.csv", *_MODEL, "--task", "mood", "--output", "out/sorted.csv")
_EXPLAIN = ("explain", "inputs/test.csv", *_MODEL, "--phrases", "rules", "--output", "out/links.jsonl")
_EXPORT = ("export", "inputs/model", "--rank", "4", "--output", "out/model", "--overwrite")
_CELLS = ("--output", "out/cells", "--summary", "out/summary", *_CPU)

SCENARIOS = (
    Scenario("data split", _SPLIT, outputs=("out/parts",)),
    Scenario("data split over old", _SPLIT, "old split", outputs=("out/parts",), options=("--overwrite",)),
    Scenario("audit", _AUDIT, outputs=("out/clean.csv",)),
    Scenario("audit over old", _AUDIT, "old audit", outputs=("out/clean.csv",), options=("--overwrite",)),
    _score("score csv", "out/scored.csv"),
    _score("score csv.gz", "out/scored.csv.gz"),
    _score("score parquet", "out/scored.parquet"),
    _score("score over old", "out/scored.csv", "old scores", options=("--overwrite",)),
    _score(
        "score in sections",
        "out/scored.csv",
        resume=("--resume",),
        call="tests.faults.writers:score_in_sections",
    ),
    Scenario("classify", _CLASSIFY, "labels", outputs=("out/sorted.csv",)),
    Scenario("explain", _EXPLAIN, "model", outputs=("out/links.jsonl",)),
    Scenario(
        "evaluate",
        ("evaluate", "inputs/model", "--suite", "inputs/suite.toml", "--output", "out/result.json", *_CPU),
        "model",
        outputs=("out/result.json",),
    ),
    Scenario("cache clear", ("cache", "clear"), "vectors", loose=("cache",)),
    Scenario(
        "cache clear, then train",
        ("cache", "clear"),
        "vectors",
        loose=("cache",),
        then=(("train", "inputs/frozen.toml", "--output", "out/model", *_CPU),),
    ),
    _train("train", "two"),
    _train("train, then score", "one", then=(_SCORE_MODEL,)),
    _train("train over old", "one", "--overwrite", world="old model", resume=("--resume",)),
    _train(
        "train over old, no exchange",
        "quick",
        "--overwrite",
        world="old model",
        resume=("--resume",),
        exchange=False,
    ),
    _train("train frozen, cache filling", "frozen"),
    _update("update zero over old", "--mode", "zero", "--overwrite", world="labels, old model"),
    _update("update hot", "--mode", "hot", "--rehearse", "0.5"),
    _update(
        "update hot over old",
        "--mode",
        "hot",
        "--overwrite",
        world="labels, old model",
        resume=("--resume",),
    ),
    Scenario("export over old", _EXPORT, "model, old model", outputs=("out/model",)),
    Scenario(
        "experiment", ("experiment", "inputs/experiment.toml", *_CELLS), each=("out/cells", "out/summary")
    ),
    Scenario(
        "experiment summary over old",
        (),
        "old summary",
        each=("out/summary",),
        call="tests.faults.writers:new_summary",
    ),
    Scenario(
        "experiment, kept stages",
        ("experiment", "inputs/experiment-frozen.toml", *_CELLS),
        each=("out/cells", "out/summary"),
    ),
)


def offered(arguments: tuple[str, ...], option: str) -> bool:
    """Whether the verb of a command line has an option."""
    command: Any = typer.main.get_command(app)
    for word in arguments:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command = inner
    return any(option in parameter.opts for parameter in command.params)


def command_of(scenario: Scenario) -> list[str]:
    """The command line, with those of its options that the verb offers."""
    return [*scenario.arguments, *(o for o in scenario.options if offered(scenario.arguments, o))]
