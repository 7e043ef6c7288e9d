"""Losses: the contract for all of them by table; zones and boundaries of the regression losses."""

from __future__ import annotations

import pytest
import torch

from likewise.errors import UsageError
from likewise.losses import (
    LOSSES,
    anchored,
    cosent,
    infonce,
    kl_grid,
    l1,
    make_loss,
    mse_loss,
    pearson_loss,
    smooth_k2,
    translated_relu,
)

ALL = torch.ones(6, dtype=torch.bool)


def sample(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """An output that asks for a gradient and a target of the right shape for a loss."""
    generator = torch.Generator().manual_seed(3)
    head = LOSSES[name].heads[0]
    if head == "distribution":
        output = torch.log_softmax(torch.randn(6, 5, generator=generator, dtype=torch.double), -1)
        target = torch.softmax(torch.randn(6, 5, generator=generator, dtype=torch.double), -1)
    elif head == "classes":
        output = torch.randn(6, 3, generator=generator, dtype=torch.double)
        target = torch.tensor([0.0, 1, 2, 0, 1, 2], dtype=torch.double)
    elif head == "contrast":
        output = torch.rand(6, 6, generator=generator, dtype=torch.double)
        target = torch.ones(6, dtype=torch.double)
    else:
        output = torch.rand(6, generator=generator, dtype=torch.double) * 3
        target = torch.rand(6, generator=generator, dtype=torch.double)
    return output.requires_grad_(), target


@pytest.mark.parametrize("name", LOSSES)
def test_loss_gives_one_value_per_example_and_zero_where_masked(name):
    output, target = sample(name)
    values = LOSSES[name].function(output, target, ALL)
    assert values.shape == (6,)
    assert (values >= 0).all()
    mask = torch.tensor([True, False, True, True, False, True])
    masked = LOSSES[name].function(output, target, mask)
    assert (masked[~mask] == 0).all()
    (gradient,) = torch.autograd.grad(masked.sum(), output)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize(
    "name", [name for name in LOSSES if "cosine" in LOSSES[name].heads and name not in ("pearson", "cosent")]
)
def test_loss_of_a_number_is_zero_at_the_target(name):
    target = torch.tensor([0.0, 0.3, 1.0])
    values = LOSSES[name].function(target.clone(), target, torch.ones(3, dtype=torch.bool))
    assert torch.equal(values, torch.zeros(3))


def test_translated_relu_and_smooth_k2_reduce_to_l1_and_mse():
    output, target = torch.randn(50), torch.randn(50)
    mask = torch.ones(50, dtype=torch.bool)
    options = {"k": 1.0, "x0": 0.0, "boundary": "none"}
    assert torch.equal(translated_relu(output, target, mask, **options), l1(output, target, mask))
    assert torch.equal(smooth_k2(output, target, mask, **options), mse_loss(output, target, mask))


@pytest.mark.parametrize("loss", [translated_relu, smooth_k2])
@pytest.mark.parametrize("boundary", ["none", "safe"])
def test_zone_losses_match_finite_differences(loss, boundary):
    generator = torch.Generator().manual_seed(1)
    output = (torch.rand(40, generator=generator, dtype=torch.double) * 4 - 1).requires_grad_()
    target = torch.randint(0, 3, (40,), generator=generator).double()
    mask = torch.ones(40, dtype=torch.bool)
    assert torch.autograd.gradcheck(
        lambda x: loss(x, target, mask, k=2.5, x0=0.25, boundary=boundary, lo=0.0, hi=2.0),
        (output,),
        eps=1e-7,
        atol=1e-5,
    )


@pytest.mark.parametrize("loss", [translated_relu, smooth_k2])
def test_zone_losses_have_no_gradient_inside_the_zone(loss):
    output = torch.tensor([0.8, 1.0, 1.24], requires_grad=True)
    values = loss(output, torch.ones(3), torch.ones(3, dtype=torch.bool), k=3.0, x0=0.25, lo=0.0, hi=2.0)
    (gradient,) = torch.autograd.grad(values.sum(), output)
    assert torch.equal(values, torch.zeros(3))
    assert torch.equal(gradient, torch.zeros(3))


def test_smooth_k2_is_continuously_differentiable_at_x0():
    for side in (-1e-6, 1e-6):
        output = torch.tensor([1.25 + side], dtype=torch.double, requires_grad=True)
        values = smooth_k2(
            output, torch.ones(1).double(), torch.ones(1).bool(), k=2.0, x0=0.25, lo=0.0, hi=2.0
        )
        (gradient,) = torch.autograd.grad(values.sum(), output)
        assert abs(gradient.item()) < 1e-5


def _value_and_gradient(label: float, prediction: float, boundary: str) -> tuple[float, float]:
    output = torch.tensor([prediction], requires_grad=True)
    value = smooth_k2(
        output, torch.tensor([label]), torch.ones(1).bool(), k=1.0, x0=0.25, boundary=boundary, lo=0.0, hi=2.0
    )
    (gradient,) = torch.autograd.grad(value.sum(), output)
    return value.item(), gradient.item()


def test_safe_boundary_keeps_the_gradient_where_the_label_is_elsewhere():
    value, gradient = _value_and_gradient(2.0, -0.3, "safe")
    assert value > 0
    assert gradient < 0
    assert _value_and_gradient(0.0, -0.3, "safe") == (0.0, 0.0)
    assert _value_and_gradient(2.0, 2.9, "safe") == (0.0, 0.0)
    assert _value_and_gradient(0.0, 2.9, "safe")[1] > 0


def test_code_mask_is_dead_below_zero_and_open_above():
    assert _value_and_gradient(2.0, -0.3, "code-mask")[1] == 0.0
    assert _value_and_gradient(0.0, -0.3, "code-mask")[1] == 0.0
    assert _value_and_gradient(2.0, 2.9, "code-mask")[1] > 0.0


def test_paper_clamp_is_dead_on_both_sides():
    assert _value_and_gradient(2.0, -0.3, "paper-clamp")[1] == 0.0
    assert _value_and_gradient(0.0, 2.9, "paper-clamp")[1] == 0.0


def test_pearson_loss_averages_to_one_minus_pearson():
    from scipy.stats import pearsonr

    output, target = torch.randn(30, dtype=torch.double), torch.randn(30, dtype=torch.double)
    value = pearson_loss(output, target, torch.ones(30, dtype=torch.bool)).mean().item()
    assert value == pytest.approx(1 - pearsonr(output.numpy(), target.numpy()).statistic, abs=1e-9)


def test_pearson_loss_weighs_groups_alike_and_compares_within_them():
    from scipy.stats import pearsonr

    output, target = torch.randn(30, dtype=torch.double), torch.randn(30, dtype=torch.double)
    group = torch.tensor([0] * 6 + [1] * 24)
    target[:6] += 100  # another scale altogether
    value = pearson_loss(output, target, torch.ones(30, dtype=torch.bool), group=group).mean().item()
    each = [1 - pearsonr(output[group == g].numpy(), target[group == g].numpy()).statistic for g in (0, 1)]
    assert value == pytest.approx(sum(each) / 2, abs=1e-9)


def test_pearson_loss_leaves_out_groups_too_small_to_correlate():
    output = torch.randn(8, requires_grad=True)
    group = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
    values = pearson_loss(output, torch.randn(8), torch.ones(8, dtype=torch.bool), group=group)
    assert (values[:3] == 0).all()
    values.sum().backward()
    assert torch.isfinite(output.grad).all()


def test_cosent_compares_within_groups():
    output, target = torch.tensor([0.1, 0.9, 0.8, 0.2]), torch.tensor([1.0, 0.0, 1.0, 0.0])
    group = torch.tensor([0, 1, 1, 0])
    value = cosent(output, target, torch.ones(4, dtype=torch.bool), group=group)[0]
    expected = torch.log(1 + torch.exp(torch.tensor(20 * 0.1)) + torch.exp(torch.tensor(20 * 0.1)))
    assert value.item() == pytest.approx(expected.item(), rel=1e-4)


def test_cosent_equals_its_written_formula():
    output, target = torch.tensor([0.2, 0.9, 0.5]), torch.tensor([1.0, 0.0, 0.5])
    total = 1.0
    for i in range(3):
        for j in range(3):
            if target[i] > target[j]:
                total += float(torch.exp(20 * (output[j] - output[i])))
    value = cosent(output, target, torch.ones(3, dtype=torch.bool))
    assert value.tolist() == pytest.approx([torch.log(torch.tensor(total)).item()] * 3, rel=1e-5)


def test_infonce_trains_positives_only_and_uses_all_rows_as_negatives():
    output = torch.tensor([[0.9, 0.1], [0.3, 0.2]])
    values = infonce(output, torch.tensor([1.0, 0.0]), torch.ones(2, dtype=torch.bool), temperature=0.1)
    assert values[1] == 0
    assert values[0].item() == pytest.approx(-torch.log_softmax(output[0] / 0.1, -1)[0].item())


def test_kl_grid_treats_zero_mass_as_zero():
    output = torch.log_softmax(torch.zeros(1, 3), -1)
    value = kl_grid(output, torch.tensor([[1.0, 0.0, 0.0]]), torch.ones(1).bool())
    assert value.item() == pytest.approx(torch.log(torch.tensor(3.0)).item())


def test_make_loss_puts_a_cosine_on_the_relations_own_scale():
    loss = make_loss("smooth_k2", "cosine", lo=0.0, hi=5.0, k=1.0, x0=0.25)
    value = loss(torch.tensor([0.5]), torch.tensor([0.9]), torch.ones(1).bool())
    assert value.item() == pytest.approx((5 * 0.4 - 0.25) ** 2, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "options"), [("mse", {}), ("smooth_k2", {"k": 2.0, "x0": 0.25}), ("l1", {})]
)
def test_make_loss_counts_a_scalar_error_in_the_relations_steps(name, options):
    small, large = (
        make_loss(name, "scalar", lo=0.0, hi=4.0 * unit, unit=unit, **options) for unit in (1.0, 25.0)
    )
    output, target, mask = torch.tensor([0.4, 3.0]), torch.tensor([2.0, 3.1]), torch.ones(2).bool()
    assert torch.allclose(small(output, target, mask), large(25 * output, 25 * target, mask))


@pytest.mark.parametrize(
    ("name", "head", "options", "message"),
    [
        ("smoothk2", "scalar", {}, "is not one of"),
        ("kl_grid", "scalar", {}, "fits heads distribution"),
        ("mse", "scalar", {"k": 2}, "has no option k"),
    ],
)
def test_make_loss_refuses_by_name(name, head, options, message):
    with pytest.raises(UsageError, match=message):
        make_loss(name, head, **options)


def test_anchored_counts_only_unrated_pairs():
    before = torch.eye(3)
    now = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    rated = anchored(now, before, torch.tensor([0]), torch.tensor([1]))
    assert rated.item() == 0.0  # the only cosine that moved is the rated one
    other = anchored(now, before, torch.tensor([0]), torch.tensor([2]))
    assert other.item() == pytest.approx(2 * 1.0 / 4)


@pytest.mark.parametrize("rows", [1, 3])
def test_pearson_loss_of_a_tiny_batch_still_has_a_gradient(rows):
    output = torch.randn(rows, requires_grad=True)
    value = pearson_loss(
        output, torch.randn(rows), torch.ones(rows, dtype=torch.bool), group=torch.zeros(rows)
    ).sum()
    value.backward()
    assert value.item() == 0.0
    assert torch.equal(output.grad, torch.zeros(rows))
