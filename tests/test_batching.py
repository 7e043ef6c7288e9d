"""Batches are a pure function of (seed, epoch), waste little padding and lose no row."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.data.batching import token_budget_batches, training_batches
from likewise.errors import UsageError

LENGTHS = np.random.default_rng(0).integers(3, 60, size=203).tolist()


@pytest.mark.parametrize("order", ["length", "random", "fixed"])
def test_training_batches_hold_every_row_once(order):
    batches = training_batches(LENGTHS, batch_size=16, seed=5, epoch=2, order=order)
    assert sorted(row for batch in batches for row in batch) == list(range(203))
    assert max(map(len, batches)) == 16


@pytest.mark.parametrize("order", ["length", "random"])
def test_training_batches_depend_on_seed_and_epoch_alone(order):
    first = training_batches(LENGTHS, batch_size=16, seed=5, epoch=2, order=order)
    assert first == training_batches(LENGTHS, batch_size=16, seed=5, epoch=2, order=order)
    assert first != training_batches(LENGTHS, batch_size=16, seed=5, epoch=3, order=order)
    assert first != training_batches(LENGTHS, batch_size=16, seed=6, epoch=2, order=order)


def test_training_batches_fixed_order_ignores_the_epoch():
    assert training_batches(LENGTHS, batch_size=8, seed=1, epoch=0, order="fixed") == training_batches(
        LENGTHS, batch_size=8, seed=1, epoch=9, order="fixed"
    )


def test_training_batches_by_length_pad_far_less():
    def padded(order):
        batches = training_batches(LENGTHS, batch_size=16, seed=1, epoch=0, order=order)
        return sum(len(batch) * max(LENGTHS[row] for row in batch) for batch in batches)

    assert padded("length") < 0.65 * padded("random")


def test_training_batches_keep_the_token_budget_and_their_number():
    counts = set()
    for epoch in range(5):
        batches = training_batches(LENGTHS, batch_size=64, seed=1, epoch=epoch, token_budget=600)
        counts.add(len(batches))
        assert all(
            2 * len(batch) * max(LENGTHS[row] for row in batch) <= 600 for batch in batches if len(batch) > 1
        )
    assert len(counts) == 1


def test_training_batches_weights_repeat_rows_in_proportion():
    weights = [3.0] * 50 + [0.5] * 153
    drawn = [
        row
        for epoch in range(20)
        for b in training_batches(LENGTHS, batch_size=16, seed=1, epoch=epoch, weights=weights)
        for row in b
    ]
    assert sum(row < 50 for row in drawn) / 20 == pytest.approx(150, abs=1)
    assert sum(row >= 50 for row in drawn) / 20 == pytest.approx(76.5, abs=1)


def test_training_batches_refuse_a_changing_number_of_steps():
    with pytest.raises(UsageError, match="token_budget needs order 'length'"):
        training_batches(LENGTHS, batch_size=16, seed=1, epoch=0, order="random", token_budget=500)


def test_token_budget_batches_cover_all_and_respect_the_budget():
    batches = list(token_budget_batches(LENGTHS, budget=256))
    assert sorted(i for batch in batches for i in batch) == list(range(203))
    assert all(len(batch) * max(LENGTHS[i] for i in batch) <= 256 for batch in batches)
    assert list(token_budget_batches([1000], budget=256)) == [[0]]
