"""Run under torchrun: train by a recipe given as JSON, and leave this rank's final weights in a file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file


def main() -> None:
    """Arguments: folder (with recipe.json) and the model folder's name."""
    from likewise import ranks
    from likewise.kinds.context import RunContext
    from likewise.recipes.run import run_recipe
    from likewise.schema.recipe import parse_recipe

    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    recipe = parse_recipe(json.loads((folder / "recipe.json").read_text()), "test")
    report = run_recipe(recipe, folder / sys.argv[2], context=RunContext(device="cpu"))
    rank = os.environ.get("RANK", "0")
    weights = {
        name: value.clone().contiguous() for name, value in report.predictor.model.state_dict().items()
    }
    save_file(weights, folder / f"{sys.argv[2]}-rank{rank}.safetensors")
    ranks.leave()


if __name__ == "__main__":
    main()
