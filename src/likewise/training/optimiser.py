"""Optimiser and learning rate: parameter groups, layer-wise decay and warm-up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from likewise.encoders.sentence import transformer_layers
from likewise.errors import UsageError
from likewise.methods.regression import rate_factor
from likewise.methods.relations import infersent_factor
from likewise.training.settings import FitSettings


def make_optimiser(model: Any, settings: FitSettings) -> torch.optim.Optimizer:
    """AdamW or SGD over parameter groups of equal rate and decay; biases and LayerNorms are not decayed.

    With layer_decay < 1, the learning rate is multiplied by it once per transformer layer from the top down.
    Embeddings and heads keep the full rate, as in the code of Zhang & Li 2024.
    """
    freeze(model, settings.freeze)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    layers = {prefix: depth for depth, prefix in enumerate(reversed(transformer_layers(model.encoder)))}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            key = (_rate(name, layers, settings), _decay(name, parameter, settings))
            groups.setdefault(key, []).append(parameter)
    if not groups:
        raise UsageError(
            "no parameter is left to train. Shorten the freeze list, or, for an average of word vectors, set "
            "encoder.train_vectors = true."
        )
    table = [{"params": group, "lr": rate, "weight_decay": decay} for (rate, decay), group in groups.items()]
    if settings.optimiser == "sgd":
        return torch.optim.SGD(table, lr=settings.learning_rate, momentum=settings.momentum)
    # One fused pass over the parameters: a sixth of a small model's step on a CPU otherwise goes into the
    # update.
    return torch.optim.AdamW(table, lr=settings.learning_rate, betas=(0.9, 0.999), eps=1e-8, fused=True)


def freeze(model: nn.Module, prefixes: tuple[str, ...]) -> None:
    """Freeze parameters whose names begin with a prefix, such as "encoder.0.model.embeddings"."""
    for prefix in prefixes:
        matched = [p for name, p in model.named_parameters() if name.startswith(prefix)]
        if not matched:
            raise UsageError(
                f"freeze {prefix!r} matches no parameter. Names of parameters begin with encoder., heads. or "
                "matcher."
            )
        for parameter in matched:
            parameter.requires_grad_(False)


def _rate(name: str, layers: dict[str, int], settings: FitSettings) -> float:
    if name.startswith(("heads.", "balance.", "matcher.")):
        return settings.head_learning_rate or settings.learning_rate
    for prefix, depth in layers.items():
        if name.startswith("encoder." + prefix):
            return float(settings.learning_rate * settings.layer_decay**depth)
    return settings.learning_rate


def _decay(name: str, parameter: nn.Parameter, settings: FitSettings) -> float:
    plain = parameter.ndim < 2 or "layernorm" in name.lower() or name.endswith("bias")
    return 0.0 if plain else settings.weight_decay


def make_rate_schedule(
    optimiser: torch.optim.Optimizer,
    settings: FitSettings,
    total: int,
    *,
    steps_per_epoch: int,
    shrinks: Callable[[], int],
) -> LambdaLR:
    """The learning-rate schedule over `total` optimiser steps.

    `shrinks` returns the number of evaluation steps without improvement; only `infersent` uses it.
    """

    def factor(step: int) -> float:
        if settings.rate_schedule == "infersent":
            return infersent_factor(step // steps_per_epoch, shrinks())
        if settings.rate_schedule in ("paper", "code"):
            return rate_factor(step, total, schedule=settings.rate_schedule)
        rising = round(total * settings.warmup)
        if step < rising:
            return (step + 1) / (rising + 1)
        if settings.rate_schedule == "constant":
            return 1.0
        done = (step - rising) / max(1, total - rising)
        if settings.rate_schedule == "cosine":
            return 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))
        return max(0.0, 1.0 - done)

    return LambdaLR(optimiser, factor)
