"""Several processes, for real: one model, the same on all, and the same as one process makes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.training.two_ranks import train

HERE = Path(__file__).resolve().parent
RELATIONS = {
    "similarity": {"lo": 0, "hi": 5},
    "topic": {"lo": -2, "hi": 2},
    "entailment": {"kind": "classes", "labels": ["contradiction", "neutral", "entailment"]},
}
HEADS = {
    "similarity": ("distribution", "kl_grid"),
    "topic": ("scalar", "mse"),
    "entailment": ("classes", "cross_entropy"),
}


def recipe(encoder, pairs, schedule, relations):
    """A few steps over pairs with holes, in batches of 8 over all processes."""
    return {
        "name": "ranks",
        "encoder": str(encoder),
        "relation": {name: RELATIONS[name] for name in relations},
        "stage": [
            {
                "data": [{"source": str(pairs)}],
                "objective": [
                    {
                        "relation": name,
                        "head": HEADS[name][0],
                        "loss": HEADS[name][1],
                        "pairing": ["prod", "absdiff"],
                    }
                    for name in relations
                ],
                "schedule": schedule,
                "epochs": 2,
                "batch_size": 8,
                "optimiser": "sgd",
                "learning_rate": 0.1,
                "evaluate_every": 4,
            }
        ],
    }


@pytest.fixture(scope="module")
def still_encoder(tiny_encoder, tmp_path_factory):
    """The tiny encoder without dropout: ranks draw different masks, so equality needs none."""
    folder = tmp_path_factory.mktemp("still") / "encoder"
    shutil.copytree(tiny_encoder, folder)
    path = next(folder.rglob("config.json"))
    config = json.loads(path.read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    path.write_text(json.dumps(config))
    return folder


def launch(folder, document, name, processes, *, torchrun=False):
    """Train with so many processes, as forks or under torchrun; every rank's weights. One trains here."""
    (folder / "recipe.json").write_text(json.dumps(document))
    if processes == 1:
        train(folder, name)
    else:
        command = [sys.executable, str(HERE / "two_ranks.py"), str(folder), name, str(processes)]
        if torchrun:
            launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
            command = [sys.executable, *launcher, *command[1:-1]]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=280, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
    return [load_file(folder / f"{name}-rank{rank}.safetensors") for rank in range(processes)]


@pytest.mark.parametrize(
    ("schedule", "relations"),
    [
        ("multi-label", ["similarity", "topic", "entailment"]),
        pytest.param("multi-task", ["similarity", "topic", "entailment"], marks=pytest.mark.slow),
        pytest.param("single", ["topic"], marks=pytest.mark.slow),
    ],
)
def test_two_ranks_hold_the_same_weights_and_equal_one_rank(
    schedule, relations, still_encoder, tiny_pairs, tmp_path
):
    document = recipe(still_encoder, tiny_pairs, schedule, relations)
    first, second = launch(tmp_path, document, "two", 2, torchrun=True)
    for name, value in first.items():
        assert value.tobytes() == second[name].tobytes(), name
    (alone,) = launch(tmp_path, document, "one", 1)
    assert alone.keys() == first.keys()
    for name, value in alone.items():
        np.testing.assert_allclose(first[name], value, atol=1e-5, err_msg=name)
    assert (tmp_path / "two" / "likewise" / "model.json").is_file()
    assert not (tmp_path / "two.run").exists()


@pytest.mark.slow
def test_two_ranks_by_the_command_line_write_one_folder_and_speak_once(still_encoder, tiny_pairs, tmp_path):
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node=2",
        "-m",
        "likewise",
    ]
    command += ["train", str(tiny_pairs), "--encoder", str(still_encoder), "--output", "m", "--device", "cpu"]
    command += ["--set", "stage.0.max_steps=2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=280, env=environment, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("model: m") == 1
    assert done.stderr.count("stage 0") == 1
    assert "destroy_process_group" not in done.stderr
    assert (tmp_path / "m" / "likewise" / "model.json").is_file()


@pytest.mark.slow
def test_two_ranks_solve_exact_heads_and_write_once(still_encoder, tiny_pairs, tmp_path):
    document = recipe(still_encoder, tiny_pairs, "single", ["topic"])
    document["stage"][0] |= {"optimiser": "exact"}
    first, second = launch(tmp_path, document, "two", 2)
    assert all(value.tobytes() == second[name].tobytes() for name, value in first.items())
    assert (tmp_path / "two" / "likewise" / "model.json").is_file()


def texts_table(folder, rows):
    """Labelled texts of two kinds, of lengths that differ."""
    lines = ["text,pace"]
    for row in range(rows):
        pace = ("fast", "slow")[row % 2]
        lines.append(
            f"the {('dog', 'cat', 'man', 'child')[row % 4]} is {pace} in house {'new ' * (row % 5)},{pace}"
        )
    (folder / "texts.csv").write_text("\n".join(lines) + "\n")
    dev = ["text,pace", *(f"one band {word} {n},{word}" for n in range(6) for word in ("fast", "slow"))]
    (folder / "dev.csv").write_text("\n".join(dev) + "\n")


def idle_recipe(kind, encoder, folder):
    """A few steps of a kind whose loss is a mean over the rows of a process."""
    stage = {
        "kind": kind,
        "data": [{"source": str(folder / "texts.csv")}],
        "dev": [{"source": str(folder / "dev.csv")}],
        "epochs": 2,
        "batch_size": 8,
        "order": "random",
        "optimiser": "sgd",
        "learning_rate": 0.1,
    }
    if kind == "labels":
        stage["matcher"] = "dot"
    relation = {"pace": {"kind": "classes", "labels": ["fast", "slow"]}}
    return {"name": "idle", "encoder": str(encoder), "relation": relation, "stage": [stage]}


@pytest.mark.parametrize("kind", ["labels", pytest.param("joint", marks=pytest.mark.slow)])
def test_three_ranks_of_which_one_is_idle_equal_one_rank(kind, still_encoder, tmp_path):
    """18 rows in batches of 8: ranks get 3, 3 and 2, then 1, 1 and none; every row must count once."""
    texts_table(tmp_path, 18)
    equal_one_rank(tmp_path, idle_recipe(kind, still_encoder, tmp_path), 1e-5)


@pytest.mark.slow
def test_three_ranks_teach_no_phrase_twice(still_encoder, tmp_path):
    from tests.frozen import worlds

    (tmp_path / "world").mkdir()
    worlds.build(tmp_path / "world", still_encoder)
    document = worlds.recipes()["inject"]
    links = tmp_path / "world" / "links.jsonl"
    changes = {"batch_size": 11, "optimiser": "sgd", "learning_rate": 0.05, "dropout": 0.0, "epochs": 1}
    document["stage"][0] |= {
        "data": [{"source": str(links)}],
        "filter_against": [],
        "order": "random",
        **changes,
    }
    document["encoder"] = str(still_encoder)
    equal_one_rank(tmp_path, document, 1e-4)


def equal_one_rank(folder, document, tolerance):
    """Three processes end with the same weights as one another, and as one alone."""
    several = launch(folder, document, "three", 3)
    (alone,) = launch(folder, document, "one", 1)
    for name, value in alone.items():
        assert len({rank[name].tobytes() for rank in several}) == 1, name
        np.testing.assert_allclose(several[0][name], value, atol=tolerance, err_msg=name)
