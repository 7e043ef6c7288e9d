"""Relation and Codec: values survive encoding; SentEval's encoder loses the mass it is known to lose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import UsageError, ValueRangeError
from likewise.records import Codec, Relation, nearest_labels

RANGES = [(0, 5), (1, 5), (0, 4), (-2, 2)]


@pytest.mark.parametrize(("lo", "hi"), RANGES)
@pytest.mark.parametrize("form", ["value", "unit", "grid"])
@given(share=st.floats(0, 1))
def test_codec_decodes_what_it_encoded(lo, hi, form, share):
    value = lo + share * (hi - lo)
    codec = Codec(Relation.graded("r", lo, hi), form)
    assert codec.decode(codec.encode(value)[None])[0] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(("lo", "hi"), RANGES)
@given(share=st.floats(0, 1))
def test_codec_grid_is_a_distribution_on_two_neighbours(lo, hi, share):
    target = Codec(Relation.graded("r", lo, hi), "grid").encode(lo + share * (hi - lo))
    assert target.sum() == pytest.approx(1.0)
    assert (target >= 0).all()
    filled = np.flatnonzero(target)
    assert len(filled) <= 2
    assert filled[-1] - filled[0] <= 1


@pytest.mark.parametrize(("lo", "hi"), RANGES)
@pytest.mark.parametrize("beyond", [-0.01, 0.01, 7.0, float("inf")])
def test_codec_refuses_values_outside_the_range(lo, hi, beyond):
    value = hi + beyond if beyond > 0 else lo + beyond
    with pytest.raises(ValueRangeError, match=r"pairs\.csv:7: r is .*, but the scale is"):
        Codec(Relation.graded("r", lo, hi), "value").encode(value, "pairs.csv:7")


def test_codec_senteval_mode_loses_mass_below_one_and_the_default_does_not():
    relation = Relation.graded("similarity", 0, 5)
    # SentEval's grid is 1..K: on 0..5 with six points it treats 0.4 as if half of its weight lay off the
    # grid.
    assert Codec(relation, "grid", senteval=True).encode(0.4).sum() == pytest.approx(0.4)
    assert Codec(relation, "grid").encode(0.4).sum() == pytest.approx(1.0)
    on_its_own_scale = Relation.graded("relatedness", 1, 5)
    assert np.allclose(
        Codec(on_its_own_scale, "grid", senteval=True).encode(3.25),
        Codec(on_its_own_scale, "grid").encode(3.25),
    )


def test_codec_missing_value_is_nan_in_every_form():
    relation = Relation.graded("r", 0, 5)
    for form in ("value", "unit", "grid"):
        assert np.isnan(Codec(relation, form).encode(None)).all()
        assert np.isnan(Codec(relation, form).encode(float("nan"))).all()
    assert np.isnan(Codec(Relation.classes("c", ["x", "y"]), "class").encode(None)).all()


def test_relation_ordered_labels_take_any_spacing():
    relation = Relation.ordered("e", ["contradiction", "neutral", "entailment"], [0, 1.5, 4])
    codec = Codec(relation, "value")
    assert [codec.encode(label)[0] for label in relation.labels] == [0, 1.5, 4]
    assert nearest_labels(relation, np.array([-3.0, 0.74, 0.76, 2.7, 2.8, 9.0])) == [
        "contradiction",
        "contradiction",
        "neutral",
        "neutral",
        "entailment",
        "entailment",
    ]
    assert Codec(relation, "grid").encode("neutral").tolist() == [0, 1, 0]


def test_relation_classes_have_no_number():
    relation = Relation.classes("c", ["yes", "no"])
    assert Codec(relation, "class").decode(Codec(relation, "class").encode("no")[None]) == ["no"]
    with pytest.raises(UsageError, match="classes without an order"):
        Codec(relation, "value")
    with pytest.raises(ValueRangeError, match="is 'maybe', but it must be one of yes, no"):
        relation.check("maybe")


@pytest.mark.parametrize(
    ("text", "scale"),
    [("s:0..5", "0..5"), ("a:-2..2", "-2..2"), ("e:no|yes", "no | yes"), ("o:a<b<c", "a < b < c")],
)
def test_relation_parses_the_command_line_form(text, scale):
    assert Relation.parse(text).scale == scale


@pytest.mark.parametrize("text", ["similarity", "s:", ":0..5", "s:5..0", "s:x..y", "s:one"])
def test_relation_refuses_what_it_cannot_read(text):
    with pytest.raises(UsageError):
        Relation.parse(text)


def test_relation_survives_json():
    for relation in (
        Relation.graded("a", -2, 2),
        Relation.ordered("b", ["x", "y"], [0, 3]),
        Relation.classes("c", "xyz"),
    ):
        assert Relation.from_dict(relation.to_dict()) == relation


def test_relation_names_a_value_that_is_no_number():
    with pytest.raises(ValueRangeError, match="f:3: s is 'high', which is not a number"):
        Relation.graded("s", 0, 5).check("high", "f:3")
