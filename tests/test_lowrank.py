"""A recipe's [update]: the change of the encoder's weights has a low rank, cut at the end or trained so."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import likewise
from likewise.encoders.lowrank import network_tensors
from likewise.encoders.sentence import load_encoder
from likewise.errors import RecipeError, UsageError
from likewise.kinds.context import RunContext
from likewise.recipes import lowrank
from likewise.recipes.run import dry_run, run_recipe
from likewise.schema.recipe import Recipe, parse_recipe
from likewise.training import callbacks

RANK = 3
TEXTS = ["a man plays the guitar", "the woman sings", "one cat sleeps"]
WAYS = ["cut", "training"]
MOODS = [
    {"text": f"the {word} is {state}", "mood": state, "pace": pace}
    for word in ("dog", "cat", "band", "man")
    for state, pace in (("fast", "new"), ("slow", "old"))
] * 3


def document(encoder: Path, pairs: Path, by: str | None, *, stages: int = 2) -> dict:
    """A recipe of one or two stages that moves its encoder far."""
    stage = {
        "data": [{"source": str(pairs)}],
        "objective": [
            {"relation": "similarity", "loss": "pearson"},
            {"relation": "topic", "head": "scalar", "loss": "mse", "pairing": ["prod", "absdiff"]},
        ],
        "max_steps": 6,
        "evaluate_every": 2,
        "save_every": 2,
        "learning_rate": 1e-2,
        "select": True,
        "keep_start": False,
    }
    return {
        "name": "low",
        "encoder": str(encoder),
        "relation": {"similarity": {"lo": 0, "hi": 5}, "topic": {"lo": -2, "hi": 2}},
        "stage": [stage] * stages,
        **({"update": {"rank": RANK, "by": by}} if by else {}),
    }


def recipe_of(*arguments, **options) -> Recipe:
    return parse_recipe(document(*arguments, **options), "test")


def run(recipe: Recipe, output: Path, *, told: list[str] | None = None, **options):
    tell = (lambda line: None) if told is None else told.append
    return run_recipe(recipe, output, context=RunContext(device="cpu", tell=tell), **options)


def changes(model: Path, encoder: Path) -> dict[str, torch.Tensor]:
    """The change of each weight of the transformer."""
    before, after = (network_tensors(load_encoder(name, device="cpu")[0].model) for name in (encoder, model))
    assert set(before) == set(after)
    return {name: (after[name] - before[name]).double() for name in before}


def ranks(found: dict[str, torch.Tensor]) -> dict[str, int]:
    """The rank of the change of each matrix, apart from the rounding to single precision."""
    matrices = {name: one for name, one in found.items() if one.dim() == 2}
    return {name: int((torch.linalg.svdvals(one) > 1e-5).sum()) for name, one in matrices.items()}


@pytest.fixture(scope="module", params=WAYS)
def trained(request, tmp_path_factory, tiny_encoder, tiny_pairs):
    """A model of two stages, one of each way, with what was told."""
    folder, told = tmp_path_factory.mktemp(request.param), []
    report = run(recipe_of(tiny_encoder, tiny_pairs, request.param), folder / "model", told=told)
    return request.param, folder / "model", told, report


def test_change_has_at_most_the_rank(trained, tiny_encoder):
    by, model, _, _ = trained
    found = changes(model, tiny_encoder)
    assert max(ranks(found).values()) == RANK
    moved = {name for name, change in found.items() if change.abs().max() > 0}
    if by == "training":
        assert moved == {name for name in found if found[name].dim() == 2 and "embeddings" not in name}
    else:
        assert {"embeddings.word_embeddings.weight", "encoder.layer.0.output.LayerNorm.weight"} <= moved


def test_change_without_an_update_has_a_higher_rank(tiny_encoder, tiny_pairs, tmp_path):
    run(recipe_of(tiny_encoder, tiny_pairs, None, stages=1), tmp_path / "model")
    assert max(ranks(changes(tmp_path / "model", tiny_encoder)).values()) > 2 * RANK


def test_saved_model_is_an_ordinary_one(trained):
    from sentence_transformers import SentenceTransformer

    _, model, _, report = trained
    loaded = SentenceTransformer(str(model), device="cpu")
    assert not [name for name, _ in loaded.named_parameters() if "lora" in name]
    expected = np.asarray(likewise.load(model, device="cpu").encode(TEXTS))
    assert np.allclose(loaded.encode(TEXTS), expected, atol=1e-6)
    assert np.allclose(np.asarray(report.predictor.encode(TEXTS)), expected, atol=1e-6)


def test_plan_and_report_say_what_is_limited(trained):
    by, _, told, _ = trained
    [line] = [one for one in told if one.startswith("update:")]
    if by == "cut":
        assert line.endswith(f"of the encoder is cut to rank {RANK}")
        assert sum("which keeps" in one and "of it (Frobenius norm)" in one for one in told) == 1
    else:
        # Two layers of six linear layers each, 32 or 64 wide; the pooler is left out.
        assert f"adapters of rank {RANK} (LoRA, alpha {RANK}) on 12 linear layers" in line
        assert f"{2 * (4 * 64 + 2 * 96) * RANK:,} numbers" in line


def test_delta_of_the_same_rank_loses_nothing(trained, tiny_encoder, tmp_path):
    _, model, _, _ = trained
    shutil.copytree(tiny_encoder, tmp_path / "encoder")
    report = likewise.export(model, tmp_path / "delta", base=str(tmp_path / "encoder"), rank=RANK)
    assert report.kept > 0.99999
    assert report.difference < 5e-3


def test_measured_is_what_is_saved(tiny_encoder, tiny_pairs, tmp_path):
    """The report of the last stage has the dev value of the weights after the cut."""
    told: list[str] = []
    recipe = recipe_of(tiny_encoder, tiny_pairs, "cut", stages=1)
    events = []
    context = RunContext(device="cpu", tell=told.append, emit=events.append)
    report = run_recipe(recipe, tmp_path / "model", context=context)
    stage = report.stages[-1]
    last = [event for event in events if event.kind == "evaluate"][-1]
    assert last.step == stage["best_step"]
    assert last.values["score"] == stage["best_value"]
    assert [event.step for event in events if event.kind == "evaluate"] == [0, 2, 4, 6, stage["best_step"]]
    before = next(entry for entry in stage["history"] if entry["step"] == stage["best_step"])
    assert before["score"] != stage["best_value"]


class Stop(Exception):
    """Ends a run from inside."""


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("checkpoint", [1, 3])
def test_resumed_run_equals_an_uninterrupted_one(
    by, checkpoint, tiny_encoder, tiny_pairs, tmp_path, monkeypatch
):
    recipe = recipe_of(tiny_encoder, tiny_pairs, by)
    run(recipe, tmp_path / "whole")
    write, written = callbacks.write_checkpoint, []

    def stopping(*arguments, **options):
        written.append(write(*arguments, **options))
        if len(written) == checkpoint:
            raise Stop
        return written[-1]

    monkeypatch.setattr(callbacks, "write_checkpoint", stopping)
    with pytest.raises(Stop):
        run(recipe, tmp_path / "resumed")
    monkeypatch.setattr(callbacks, "write_checkpoint", write)
    run(recipe, tmp_path / "resumed", resume=True)
    for name in ("model.safetensors", "likewise/heads.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "resumed" / name).read_bytes()


@pytest.mark.parametrize("by", WAYS)
def test_run_that_was_stopped_after_its_last_step_is_finished(
    by, tiny_encoder, tiny_pairs, tmp_path, monkeypatch
):
    from likewise.recipes.run import Target

    recipe = recipe_of(tiny_encoder, tiny_pairs, by)
    run(recipe, tmp_path / "whole")
    save = Target.save

    def stopping(self, model, about):
        raise Stop

    monkeypatch.setattr(Target, "save", stopping)
    with pytest.raises(Stop):
        run(recipe, tmp_path / "resumed")
    monkeypatch.setattr(Target, "save", save)
    run(recipe, tmp_path / "resumed", resume=True)
    assert (tmp_path / "whole" / "model.safetensors").read_bytes() == (
        tmp_path / "resumed" / "model.safetensors"
    ).read_bytes()


@pytest.mark.parametrize("by", WAYS)
def test_other_kinds_follow_the_same_update(by, tiny_encoder, tiny_pairs, tmp_path):
    common = {"encoder": str(tiny_encoder), "device": "cpu", "quiet": True}
    changed = {
        "stage.0.learning_rate": 1e-2,
        "stage.0.keep_start": False,
        "update.rank": RANK,
        "update.by": by,
    }
    likewise.train(MOODS, tmp_path / "labels", text="text", label="mood", overrides=changed, **common)
    assert 0 < max(ranks(changes(tmp_path / "labels", tiny_encoder)).values()) <= RANK
    likewise.train(
        "finetune",
        tmp_path / "joint",
        data=str(tiny_pairs),
        relations=["similarity:0..5"],
        overrides={**changed, "stage.0.max_steps": 4},
        **common,
    )
    from likewise.methods.joint import load_joint
    from likewise.records import Relation

    joint = load_joint(tmp_path / "joint", Relation.graded("similarity", 0, 5), device="cpu")
    before = network_tensors(load_encoder(tiny_encoder, device="cpu")[0].model)
    after = network_tensors(joint.encoder.base_model)
    found = {name: (after[name] - before[name]).double() for name in before}
    assert 0 < max(ranks(found).values()) <= RANK


def test_heads_are_solved_over_the_cut_encoder(tiny_encoder, tiny_pairs, tmp_path):
    wanted = document(tiny_encoder, tiny_pairs, "cut")
    exact = {"relation": "topic", "head": "scalar", "loss": "mse", "pairing": ["prod", "absdiff"]}
    wanted["stage"] = [
        wanted["stage"][0],
        {"data": wanted["stage"][0]["data"], "objective": [exact], "optimiser": "exact"},
    ]
    run(parse_recipe(wanted, "test"), tmp_path / "model")
    assert max(ranks(changes(tmp_path / "model", tiny_encoder)).values()) == RANK


def test_dry_run_says_what_is_limited(tiny_encoder, tiny_pairs):
    for by in WAYS:
        lines = dry_run(recipe_of(tiny_encoder, tiny_pairs, by), context=RunContext(device="cpu"))
        assert lines[0].startswith("update:")
        assert lines[1].startswith("stage 0")


# What is refused, and what stays as it was.


def test_recipe_without_an_update_is_written_as_before(tiny_encoder, tiny_pairs):
    recipe = recipe_of(tiny_encoder, tiny_pairs, None)
    assert "update" not in recipe.model_dump(mode="json")
    assert "update" not in json.loads(recipe.model_dump_json())
    again = recipe_of(tiny_encoder, tiny_pairs, "cut").model_dump(mode="json")
    assert again["update"] == {"rank": RANK, "by": "cut", "alpha": None}
    assert parse_recipe(again, "test").update == recipe_of(tiny_encoder, tiny_pairs, "cut").update


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({}, r"update\.rank"),
        ({"rank": 0}, r"update\.rank"),
        ({"rank": 4, "by": "magic"}, r"update\.by"),
        ({"rank": 4, "alpha": 8}, r"alpha: is 8, but only by = .training. has adapters"),
        ({"rank": 4, "size": 8}, r"update\.size: this is not a known key"),
    ],
)
def test_wrong_updates_are_refused_by_their_path(update, expected, tiny_encoder, tiny_pairs):
    wanted = {**document(tiny_encoder, tiny_pairs, None), "update": update}
    with pytest.raises(RecipeError, match=expected):
        parse_recipe(wanted, "test")


def test_update_needs_a_transformer_that_is_trained(tiny_encoder, tiny_pairs, tiny_vectors, tmp_path):
    wanted = document(tiny_encoder, tiny_pairs, "cut")
    wanted["encoder"] = {"kind": "average", "vectors": str(tiny_vectors)}
    with pytest.raises(RecipeError, match=r"needs a transformer, but encoder\.kind is 'average'"):
        parse_recipe(wanted, "test")
    frozen = {"kind": "refine", "data": [{"source": str(tiny_pairs)}]}
    only = {"relation": {"similarity": {"lo": 0, "hi": 5}}, "stage": [frozen]}
    recipe = parse_recipe({**document(tiny_encoder, tiny_pairs, "cut"), **only}, "test")
    with pytest.raises(RecipeError, match="no stage of this recipe trains the encoder"):
        run(recipe, tmp_path / "model")


def test_second_transformer_is_refused(tiny_encoder, tmp_path):
    with pytest.raises(UsageError, match="trains a second one"):
        likewise.train(
            MOODS,
            tmp_path / "labels",
            text="text",
            label="mood",
            encoder=str(tiny_encoder),
            overrides={"update.rank": 2, "stage.0.label_encoder": "own"},
            device="cpu",
            quiet=True,
        )


def test_hot_update_says_that_it_trains_all_weights(tiny_encoder, tmp_path):
    with (tmp_path / "rows.csv").open("w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, MOODS[0])
        writer.writeheader()
        writer.writerows(MOODS)
    likewise.train(
        str(tmp_path / "rows.csv"),
        tmp_path / "one",
        text="text",
        label="mood",
        encoder=str(tiny_encoder),
        overrides={"update.rank": 2},
        device="cpu",
        quiet=True,
    )
    told: list[str] = []
    likewise.update(
        tmp_path / "one",
        tmp_path / "two",
        task="pace",
        data=str(tmp_path / "rows.csv"),
        text="text",
        mode="hot",
        device="cpu",
        tell=told.append,
    )
    assert any("[update] is not applied here" in line for line in told)


def test_missing_library_is_named(tiny_encoder, tiny_pairs, tmp_path, monkeypatch):
    monkeypatch.setattr(lowrank.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'likewise\[lora\]'"):
        run(recipe_of(tiny_encoder, tiny_pairs, "training"), tmp_path / "model")
    assert not list(tmp_path.iterdir())
