"""Adapters fold into stock layers exactly, and an encoder with them loads anywhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from likewise.adapters import Convolution, Prelayer, Projection, Refinement, fold
from likewise.encoders.sentence import load_encoder, with_layers, with_prompt
from likewise.errors import UsageError

WIDTH = 12


def apply_layers(layers, x):
    """Vectors through folded layers."""
    for layer in layers:
        x = layer(x)
    return x


def stirred(module):
    """The module with weights that are not those it starts with."""
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.5)
    return module


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("hidden", [None, 5, 40])
def test_refinement_with_residual_folds_exactly_into_two_layers(activation, hidden):
    refine = stirred(Refinement(WIDTH, hidden=hidden, activation=activation))
    layers = fold([refine])
    x = torch.randn(50, WIDTH)
    assert len(layers) == 2
    torch.testing.assert_close(apply_layers(layers, x), refine(x), rtol=1e-5, atol=1e-5)


def test_everything_in_a_row_folds_into_as_few_layers_as_it_has_bends():
    chain = [
        stirred(Prelayer(WIDTH, "tanh")),
        stirred(Projection(WIDTH)),
        stirred(Convolution(WIDTH, 3)),
        stirred(Refinement(WIDTH)),
    ]
    x = torch.randn(50, WIDTH)
    wanted = x
    for adapter in chain:
        wanted = adapter(wanted)
    layers = fold(chain)
    assert [layer.activation for layer in layers] == ["tanh", "relu", "identity"]
    torch.testing.assert_close(apply_layers(layers, x), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_convolution_is_a_banded_matrix(kernel):
    convolution = stirred(Convolution(WIDTH, kernel))
    [layer] = convolution.layers()
    far = np.abs(np.subtract.outer(np.arange(WIDTH), np.arange(WIDTH))) > kernel // 2
    assert not layer.weight.numpy()[far].any()
    x = torch.randn(9, WIDTH)
    torch.testing.assert_close(layer(x), convolution(x))


@pytest.mark.parametrize("adapter", [Projection(WIDTH), Convolution(WIDTH), Refinement(WIDTH)])
def test_adapters_start_as_the_identity(adapter):
    x = torch.randn(9, WIDTH)
    torch.testing.assert_close(adapter(x), x)


def test_what_cannot_be_folded_is_refused():
    with pytest.raises(UsageError, match="residual around tanh"):
        Refinement(WIDTH, activation="tanh")
    with pytest.raises(UsageError, match="must be odd"):
        Convolution(WIDTH, 4)
    with pytest.raises(UsageError, match="a prelayer without an activation changes nothing"):
        Prelayer(WIDTH, "identity")


def test_an_encoder_with_layers_saves_and_loads_as_stock_modules(tiny_encoder, tmp_path):
    encoder = with_prompt(load_encoder(tiny_encoder, device="cpu"), "query: ")
    width = encoder.get_embedding_dimension()
    refine = stirred(Refinement(width, activation="gelu"))
    longer = with_layers(encoder, fold([refine]))
    longer.save(str(tmp_path / "model"))
    other = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    texts = ["the dog", "a cat sat"]
    with torch.no_grad():
        wanted = refine(torch.from_numpy(encoder.encode(texts))).numpy()
    np.testing.assert_allclose(other.encode(texts), wanted, rtol=1e-4, atol=1e-4)
    # The prompt travels with the folder.
    assert np.abs(other.encode(texts, prompt="") - wanted).max() > 1e-3
