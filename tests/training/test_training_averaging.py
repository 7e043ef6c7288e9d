"""A running mean of the weights: what it is, and that the model gets its own back."""

from __future__ import annotations

import torch
from torch import nn

from likewise.training.averaging import WeightAverage


def test_average_follows_the_weights_and_lets_go_of_where_they_started():
    model = nn.Linear(3, 2)
    average = WeightAverage(model, 0.5)
    wanted = model.weight.detach().clone()
    for step in range(1, 30):
        with torch.no_grad():
            model.weight.add_(step)
        average.update(step)
        kept = min(0.5, (1 + step) / (10 + step))
        wanted = kept * wanted + (1 - kept) * model.weight.detach()
    torch.testing.assert_close(average.state()["weight"], wanted)


def test_average_stands_in_and_steps_back():
    model = nn.Linear(3, 2)
    average = WeightAverage(model, 0.9)
    first = model.weight.detach().clone()
    with torch.no_grad():
        model.weight.add_(1)
    own = model.weight.detach().clone()
    with average.in_place():
        torch.testing.assert_close(model.weight.detach(), first)
    torch.testing.assert_close(model.weight.detach(), own)
    average.leave()
    torch.testing.assert_close(model.weight.detach(), first)


def test_average_leaves_frozen_weights_alone():
    model = nn.Linear(3, 2)
    model.bias.requires_grad_(False)
    assert list(WeightAverage(model, 0.9).state()) == ["weight"]
