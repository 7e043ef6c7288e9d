"""The arena of a hunt: models and tables that examples start from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.frozen import worlds
from tests.fuzz.arena import Arena

_FROZEN = Path(__file__).resolve().parents[1] / "frozen" / "models"


def build_models(folder: Path) -> Path:
    """A folder of models: the frozen ones, one just saved and its delta, the tables and an encoder."""
    from likewise.api import export, train

    for source in sorted(_FROZEN.iterdir()):
        shutil.copytree(source, folder / source.name)
    encoder = folder / "encoder"
    shutil.copytree(_FROZEN / "pairs", encoder, ignore=shutil.ignore_patterns("likewise", "README.md"))
    worlds.build(folder / "world", encoder)
    shutil.copytree(folder / "world", folder / "tables", ignore=shutil.ignore_patterns("encoder"))
    overrides = {"stage.0.max_steps": 1, "stage.0.save_every": 1}
    pairs = folder / "world" / "pairs.csv"
    train(pairs, folder / "fresh", encoder=encoder, device="cpu", overrides=overrides)
    far = {"stage.0.max_steps": 4, "stage.0.learning_rate": 1e-2, "stage.0.select": False}
    train(pairs, folder / "moved", encoder=encoder, device="cpu", overrides=far)
    export(folder / "moved", folder / "delta", base=encoder, rank=4)
    _without_hashes(folder / "delta" / "likewise" / "model.json")
    return folder


def _without_hashes(path: Path) -> None:
    """Take the list of files out of a model.json, so that what lies behind the hashes is reached."""
    document = json.loads(path.read_text(encoding="utf8"))
    del document["files"]
    path.write_text(json.dumps(document), encoding="utf8")


def build_arena(folder: Path) -> Arena:
    """An arena with its models, in an empty folder."""
    models = build_models(folder / "models")
    (folder / "examples").mkdir()
    return Arena(folder / "examples", models)
