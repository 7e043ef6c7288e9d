"""Train by a recipe given as JSON, and leave the final weights of every rank in a file.

Under torchrun, or alone: `two_ranks.py FOLDER NAME`. `two_ranks.py FOLDER NAME 3` makes the three processes
itself, as torchrun would but from one that has imported everything, which takes a fifth of the time.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file


def train(folder: Path, name: str) -> None:
    """Train by the recipe.json of a folder, and save this rank's weights beside it."""
    from likewise import ranks
    from likewise.kinds.context import RunContext
    from likewise.recipes.run import run_recipe
    from likewise.schema.recipe import parse_recipe

    recipe = parse_recipe(json.loads((folder / "recipe.json").read_text()), "test")
    report = run_recipe(recipe, folder / name, context=RunContext(device="cpu"))
    rank = os.environ.get("RANK", "0")
    weights = {
        name: value.clone().contiguous() for name, value in report.predictor.model.state_dict().items()
    }
    save_file(weights, folder / f"{name}-rank{rank}.safetensors")
    ranks.leave()


def fork_ranks(folder: Path, name: str, processes: int) -> int:
    """Train in so many forks of this process; 0 if all of them ended well."""
    import likewise.api  # noqa: F401

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    sizes = {"WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes)}
    children = []
    for rank in map(str, range(processes)):
        if (child := os.fork()) == 0:
            os.environ |= address | sizes | {"RANK": rank, "LOCAL_RANK": rank}
            code = 1
            try:
                train(folder, name)
                code = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    return int(any([os.waitpid(child, 0)[1] for child in children]))


if __name__ == "__main__":
    torch.set_num_threads(1)
    here, model, *several = sys.argv[1:]
    if several:
        sys.exit(fork_ranks(Path(here), model, int(several[0])))
    train(Path(here), model)
