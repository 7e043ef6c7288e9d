"""The arena of a hunt: models and tables that examples start from."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.frozen import worlds
from tests.fuzz.arena import Arena

_FROZEN = Path(__file__).resolve().parents[1] / "frozen" / "models"


def build_models(folder: Path) -> Path:
    """A folder of models: the frozen ones, one that was just saved, the tables, the tables and an encoder."""
    from likewise.api import train

    for source in sorted(_FROZEN.iterdir()):
        shutil.copytree(source, folder / source.name)
    encoder = folder / "encoder"
    shutil.copytree(_FROZEN / "pairs", encoder, ignore=shutil.ignore_patterns("likewise", "README.md"))
    worlds.build(folder / "world", encoder)
    shutil.copytree(folder / "world", folder / "tables", ignore=shutil.ignore_patterns("encoder"))
    overrides = {"stage.0.max_steps": 1, "stage.0.save_every": 1}
    train(
        folder / "world" / "pairs.csv",
        folder / "fresh",
        encoder=encoder,
        device="cpu",
        overrides=overrides,
    )
    return folder


def build_arena(folder: Path) -> Arena:
    """An arena with its models, in an empty folder."""
    models = build_models(folder / "models")
    (folder / "examples").mkdir()
    return Arena(folder / "examples", models)
