"""PairModel: shapes, shared heads, masks; with one relation every schedule is the same step."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from likewise.encoders.features import TextFeatures
from likewise.encoders.sentence import load_encoder
from likewise.errors import UsageError
from likewise.heads import HEADS, Layers, UnitSpread, make_head
from likewise.kinds.pair_steps import PairCollate, RatedPairs
from likewise.methods.pairs import Objective, PairModel
from likewise.pairing import PARTS, Pairing
from likewise.records import Record, Relation

SIMILARITY, TOPIC = Relation.graded("similarity", 0, 5), Relation.graded("topic", -2, 2)
LABEL = Relation.classes("label", ["no", "yes"])
RECORDS = [
    Record(("a man plays guitar", "the man plays piano"), {"similarity": 3.4, "topic": 1.0, "label": "yes"}),
    Record(("a dog runs", "a man plays guitar"), {"similarity": 0.2, "topic": None, "label": "no"}),
    Record(
        ("a dog runs", "the old dog sleeps near the river"), {"similarity": 2.0, "topic": 0.5, "label": None}
    ),
]


def batch_of(model: PairModel, records=RECORDS, active=("similarity", "topic", "label"), chunked=True):
    rated = RatedPairs(records, model.objectives)
    collate = PairCollate(rated, TextFeatures(model.encoder), chunked=chunked)
    return collate([(row, tuple(active), False) for row in range(len(records))])


def build(tiny_encoder, objectives) -> PairModel:
    torch.manual_seed(0)
    return PairModel(load_encoder(tiny_encoder, device="cpu"), objectives).eval()


@pytest.mark.parametrize("part", PARTS)
def test_pairing_width_is_what_it_makes(part):
    pairing = Pairing([part])
    assert pairing(torch.randn(4, 7), torch.randn(4, 7)).shape == (4, pairing.width(7))


def test_pairing_knows_when_the_texts_never_meet():
    assert not Pairing(["u", "v"]).interacts
    assert Pairing(["u", "v", "absdiff"]).interacts
    with pytest.raises(UsageError, match="Choose different parts"):
        Pairing(["u", "u"])


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize(
    "layers",
    [Layers(), Layers((5,)), Layers((6, 5), "none"), Layers((6, 5), "relu"), Layers(scale=True)],
)
def test_head_output_has_the_shape_its_codec_reads(name, layers):
    cosine = name in ("cosine", "contrast")
    if cosine and layers.hidden:
        with pytest.raises(UsageError):
            make_head(name, 1, outputs=1, layers=layers)
        return
    head = make_head(name, 1 if cosine else 9, outputs=4, layers=layers)
    output = head(torch.randn(3, 1 if cosine else 9))
    assert output.shape == ((3, 4) if name in ("distribution", "classes") else (3,))
    assert head.linear == (layers.hidden == () or layers.activation == "none")
    if name == "distribution":
        assert torch.allclose(head.read(output).sum(-1), torch.ones(3))


def test_scaled_parts_have_spread_one_and_dead_columns_stay_small():
    torch.manual_seed(0)
    layer = UnitSpread(5)
    parts = [torch.randn(500, 2) * 5.0 + 3.0, torch.randn(500, 3) * torch.tensor([0.2, 0.2, 0.0])]
    assert not layer.measured
    assert torch.equal(layer(torch.cat(parts, -1)), torch.cat(parts, -1))
    layer.measure(parts)
    scaled = layer(torch.cat(parts, -1))
    assert layer.measured
    spread = scaled.var(0, unbiased=False)
    assert spread.mean().item() == pytest.approx(1.0, abs=1e-4)
    assert spread[:2].sum().item() == pytest.approx(spread[2:].sum().item(), abs=1e-4)
    moved = torch.cat(parts, -1) + 0.01
    assert (layer(moved) - scaled).abs().max() < 0.1  # a dead column that wakes up does not drown the others


def test_head_linear_matches_a_hand_computed_number():
    head = make_head("scalar", 2, outputs=1)
    with torch.no_grad():
        head.layers.weight.copy_(torch.tensor([[2.0, -1.0]]))
        head.layers.bias.fill_(0.5)
    assert head(torch.tensor([[3.0, 4.0]])).item() == 2.5


def test_model_refuses_a_linear_head_that_cannot_compare(tiny_encoder):
    with pytest.raises(UsageError, match="cannot compare the texts"):
        build(tiny_encoder, [Objective(SIMILARITY, "scalar", "mse", pairing=("u", "v"))])
    build(tiny_encoder, [Objective(SIMILARITY, "scalar", "mse", pairing=("u", "v"), allow_blind=True)])
    build(tiny_encoder, [Objective(SIMILARITY, "scalar", "mse", pairing=("u", "v"), layers=Layers((8,)))])


def test_model_encodes_each_distinct_text_once(tiny_encoder):
    model = build(tiny_encoder, [Objective(SIMILARITY, "cosine", "mse")])
    batch = batch_of(model)
    assert sum(len(chunk["input_ids"]) for chunk in batch["chunks"]) == 4


def test_model_loss_does_not_depend_on_chunks(tiny_encoder):
    model = build(tiny_encoder, [Objective(SIMILARITY, "scalar", "smooth_k2")])
    records = RECORDS * 8
    whole, cut = batch_of(model, records, chunked=False), batch_of(model, records, chunked=True)
    assert model(**whole)["loss"].item() == pytest.approx(model(**cut)["loss"].item(), abs=1e-6)


def test_model_loss_is_the_weighted_sum_of_observed_means(tiny_encoder):
    objectives = [Objective(SIMILARITY, "scalar", "mse", weight=2.0), Objective(TOPIC, "scalar", "mse")]
    model = build(tiny_encoder, objectives)
    batch = batch_of(model)
    with torch.no_grad():
        vectors = model.encode_chunks(batch["chunks"])
        u, v = vectors[batch["a"]], vectors[batch["b"]]
        similarity = (model.output(objectives[0], u, v) - torch.tensor([3.4, 0.2, 2.0])) ** 2
        topic = (model.output(objectives[1], u, v)[[0, 2]] - torch.tensor([1.0, 0.5])) ** 2
    expected = 2 * similarity.mean() + topic.mean()
    assert model(**batch)["loss"].item() == pytest.approx(expected.item(), rel=1e-5)


def test_model_masked_relation_leaves_its_head_untouched(tiny_encoder):
    objectives = [Objective(SIMILARITY, "scalar", "mse"), Objective(TOPIC, "distribution", "kl_grid")]
    model = build(tiny_encoder, objectives)
    records = [RECORDS[1]]
    rated = RatedPairs([*records, RECORDS[0]], objectives)
    batch = PairCollate(rated, TextFeatures(model.encoder), chunked=True)(
        [(0, ("similarity", "topic"), False)]
    )
    model(**batch)["loss"].backward()
    head = model.heads[objectives[1].head_key]
    assert all(p.grad is None or not p.grad.any() for p in head.parameters())
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
    assert any(p.grad.any() for p in model.heads[objectives[0].head_key].parameters())


def test_model_inactive_relation_gets_no_gradient(tiny_encoder):
    objectives = [Objective(SIMILARITY, "scalar", "mse"), Objective(TOPIC, "scalar", "mse")]
    model = build(tiny_encoder, objectives)
    model(**batch_of(model, active=("similarity",)))["loss"].backward()
    assert all(p.grad is None for p in model.heads[objectives[1].head_key].parameters())


def test_model_one_relation_single_equals_multi_label_bit_for_bit(tiny_encoder):
    model = build(tiny_encoder, [Objective(SIMILARITY, "scalar", "smooth_k2")])
    other = copy.deepcopy(model)
    model(**batch_of(model, active=("similarity",)))["loss"].backward()
    batch = batch_of(other)
    batch["active"] = None
    other(**batch)["loss"].backward()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert (one.grad is None) == (two.grad is None)
        assert one.grad is None or torch.equal(one.grad, two.grad)


def test_model_objectives_on_the_same_head_share_it(tiny_encoder):
    model = build(
        tiny_encoder, [Objective(SIMILARITY, "scalar", "mse"), Objective(SIMILARITY, "scalar", "pearson")]
    )
    assert len(model.heads) == 1


def test_model_next_stage_keeps_heads_of_the_same_shape(tiny_encoder):
    model = build(tiny_encoder, [Objective(SIMILARITY, "scalar", "mse")])
    before = [p.clone() for p in model.heads.parameters()]
    model.set_objectives(
        [Objective(SIMILARITY, "scalar", "smooth_k2"), Objective(LABEL, "classes", "cross_entropy")]
    )
    assert torch.equal(next(iter(model.heads.parameters())), before[0])
    assert len(model.heads) == 2


def test_model_answers_on_the_relations_scale(tiny_encoder):
    objectives = [
        Objective(SIMILARITY, "cosine", "mse"),
        Objective(TOPIC, "distribution", "kl_grid"),
        Objective(LABEL, "classes", "cross_entropy"),
    ]
    model = build(tiny_encoder, objectives)
    u, v = torch.randn(5, 32), torch.randn(5, 32)
    similarity, topic, label = (model.answer(o, u, v) for o in objectives)
    expected = 5 * np.clip(torch.nn.functional.cosine_similarity(u, v).numpy(), 0, 1)
    assert similarity == pytest.approx(expected, abs=1e-5)
    assert ((topic >= -2) & (topic <= 2)).all()
    assert set(label) <= {"no", "yes"}


def test_infonce_objective_sees_the_whole_batch(tiny_encoder):
    model = build(tiny_encoder, [Objective(SIMILARITY, "contrast", "infonce", options={"positive": 0.5})])
    loss = model(**batch_of(model))["loss"]
    loss.backward()
    assert loss.item() > 0
