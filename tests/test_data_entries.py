"""Data entries that map labels or give all rows one answer; relations that a stage does not learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import likewise
from likewise.encoders.sentence import load_encoder
from likewise.errors import DataError
from likewise.kinds.base import Shared
from likewise.kinds.context import RunContext
from likewise.kinds.pairs import PairsRunner
from likewise.losses import anchored
from likewise.methods.pairs import Objective, PairModel
from likewise.recipes.run import jobs_of
from likewise.records import Relation
from likewise.schema.recipe import parse_recipe

NLI = (
    "text_a,text_b,entailment\na dog runs,an old dog runs,neutral\na cat sleeps,no cat sleeps,contradiction\n"
)
SAME = "text_a,text_b\na man sings,a man is singing\nthe dog eats,a dog eats\n"


def document(entries, **keys):
    return {
        "name": "entries",
        "encoder": keys.pop("encoder", "raw"),
        "relation": {
            "entailment": {"kind": "classes", "labels": ["contradiction", "neutral", "entailment"]},
            "paraphrase": {"kind": "classes", "labels": ["no", "yes"]},
        },
        "stage": [
            {
                "data": entries,
                "dev_share": 0.4,
                "objective": [
                    {
                        "relation": name,
                        "head": "classes",
                        "loss": "cross_entropy",
                        "pairing": ["absdiff", "prod"],
                    }
                    for name in ("entailment", "paraphrase")
                ],
                **keys,
            }
        ],
    }


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    more = "".join(f"a dog runs {n},a man sings {n},entailment\n" for n in range(12))
    Path("nli.csv").write_text(NLI + more)
    Path("same.csv").write_text(SAME)


def rows_of(entries):
    [job] = jobs_of(parse_recipe(document(entries), "here"), RunContext(device="cpu"))
    data = PairsRunner().read(job, Shared())
    return [*data.rows.train, *(record for entry in data.dev for record in entry.records)]


def test_an_entry_maps_labels_of_one_relation_to_those_of_another(files):
    labels = {"paraphrase": {"contradiction": "no", "neutral": "no"}}
    entry = {"source": "nli.csv", "columns": {"paraphrase": "entailment", "entailment": "entailment"}}
    rows = rows_of([{**entry, "labels": labels}])
    found = {(row.values["entailment"], row.values["paraphrase"]) for row in rows}
    assert found == {("neutral", "no"), ("contradiction", "no"), ("entailment", None)}


def test_an_entry_gives_all_rows_of_an_unrated_table_one_answer(files):
    rows = rows_of([{"source": "nli.csv"}, {"source": "same.csv", "constant": {"paraphrase": "yes"}}])
    same = [row for row in rows if "same.csv" in row.source]
    assert [row.values for row in same] == [{"paraphrase": "yes"}] * 2
    assert {row.texts for row in same} == {
        ("a man sings", "a man is singing"),
        ("the dog eats", "a dog eats"),
    }


def test_an_entry_refuses_a_constant_that_is_no_answer(files):
    with pytest.raises(DataError, match=r"constant of same\.csv.*maybe"):
        rows_of([{"source": "nli.csv"}, {"source": "same.csv", "constant": {"paraphrase": "maybe"}}])


def test_new_keys_of_an_entry_are_not_written_unless_set():
    dumped = parse_recipe(document([{"source": "x.csv"}]), "here").model_dump(mode="json")
    [entry] = dumped["stage"][0]["data"]
    assert not {"labels", "constant"} & set(entry)
    full = parse_recipe(document([{"source": "x.csv", "constant": {"paraphrase": "yes"}}]), "here")
    assert full.model_dump(mode="json")["stage"][0]["data"][0]["constant"] == {"paraphrase": "yes"}


def test_a_relation_without_weight_is_answered_but_not_learnt(files, tiny_encoder):
    made = document([{"source": "nli.csv"}], encoder=str(tiny_encoder), max_steps=2)
    made["relation"] = {"entailment": made["relation"]["entailment"], "similarity": {"lo": 0, "hi": 5}}
    objectives = made["stage"][0]["objective"][:1]
    cosine = {"relation": "similarity", "head": "cosine", "loss": "mse", "weight": 0.0}
    made["stage"][0]["objective"] = [*objectives, cosine]
    import tomli_w

    Path("recipe.toml").write_text(tomli_w.dumps(made))
    model = likewise.train("recipe.toml", device="cpu", overrides={"stage.0.freeze": ["encoder"]})
    raw = likewise.load(str(tiny_encoder))
    pairs = [("a dog runs", "a cat sleeps"), ("a man sings", "a man reads")]
    cosines = raw.score(pairs)["similarity"]
    np.testing.assert_allclose(model.score(pairs)["similarity"], 5 * np.clip(cosines, 0, 1), atol=1e-4)


def test_anchor_holds_the_cosines_of_pairs_that_only_heads_rate():
    before = torch.eye(4)
    now = before.clone()
    now[1] = torch.tensor([0.6, 0.8, 0.0, 0.0])  # only pair (0, 1) has moved, by 0.6
    a, b = torch.tensor([0, 2]), torch.tensor([1, 3])
    everything_free = anchored(now, before, a, b)
    assert everything_free.item() == pytest.approx(0.0)
    one_is_free = anchored(now, before, a, b, torch.tensor([True, False]))
    assert one_is_free.item() == pytest.approx(0.0)
    held = anchored(now, before, a, b, torch.tensor([False, False]))
    assert held.item() == pytest.approx(0.36 / 2)


def test_anchor_holds_pairs_of_relations_without_weight_or_without_targets(tiny_encoder):
    encoder = load_encoder(tiny_encoder, device="cpu")
    labels = Relation.classes("kind", ("no", "yes"))
    learnt = Objective(labels, "classes", "cross_entropy", pairing=("absdiff", "prod"))
    rated = Relation.graded("similarity", 0, 5)
    targets = {learnt.target_key: torch.tensor([[1.0], [0.0]])}
    for weight, said, free in [(1.0, True, True), (0.0, True, False), (1.0, False, False)]:
        cosine = Objective(rated, "cosine", "mse", weight=weight)
        model = PairModel(encoder, [cosine, learnt])
        known = {**targets, cosine.target_key: torch.tensor([[0.5], [torch.nan]])} if said else targets
        assert model._rated_by_cosine(known).tolist() == [free, False]


def test_a_wholly_frozen_encoder_is_trained_without_dropout(tiny_encoder):
    model = PairModel(
        load_encoder(tiny_encoder, device="cpu"), [Objective(Relation.graded("s", 0, 5), "cosine", "mse")]
    )
    assert model.train().encoder.training
    model.encoder.requires_grad_(False)
    assert not model.train().encoder.training
    assert model.training
