"""WeightAverage: a running mean of the weights, which is measured on dev and becomes the trained model.

    mean ← d·mean + (1 − d)·weights after every step, d = min(decay, (1 + step) / (10 + step))

The decay is low at first, so that the weights of the starting model soon lose their share in the mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """The running mean of a model's trained parameters."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._model, self._decay = model, decay
        self._mean = {name: value.detach().clone() for name, value in self._trained()}

    def _trained(self) -> list[tuple[str, nn.Parameter]]:
        return [(name, value) for name, value in self._model.named_parameters() if value.requires_grad]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the weights after a step to the mean."""
        kept = min(self._decay, (1 + step) / (10 + step))
        for name, value in self._trained():
            self._mean[name].lerp_(value, 1 - kept)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the mean into the model while the block runs."""
        own = {name: value.detach().clone() for name, value in self._trained()}
        self.leave()
        try:
            yield
        finally:
            self._put(own)

    def leave(self) -> None:
        """Put the mean into the model."""
        self._put(self._mean)

    def state(self) -> dict[str, Tensor]:
        """The mean, for a checkpoint."""
        return {name: value.cpu().contiguous() for name, value in self._mean.items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a checkpoint's mean."""
        for name, value in self._mean.items():
            value.copy_(state[name])

    @torch.no_grad()
    def _put(self, values: Mapping[str, Tensor]) -> None:
        for name, value in self._trained():
            value.copy_(values[name])
