"""A recipe's `[update]`: the change of a transformer's weights is kept at a low rank.

    cut        all weights are trained; after the last stage the change of each matrix is cut to the rank
    training   adapters of the rank are trained instead of the weights (LoRA), and merged into them at the end

Both begin on the transformer as it is before the first step of a stage that trains it. A cut is made before
the last stage chooses the source of each relation, so that what is measured is what is saved.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from likewise.encoders.lowrank import factors, network_of, network_tensors
from likewise.errors import Problem, RecipeError, UsageError
from likewise.kinds.base import Carried, Job, by_seed
from likewise.schema.recipe import UpdateSpec
from likewise.wording import counted

if TYPE_CHECKING:
    from likewise.recipes.run import Jobs

_Tell = Callable[[str], None]
_TRAINING = "training"
_LORA = "likewise[lora]"


class WholeUpdate:
    """A recipe without `[update]`: nothing is limited."""

    def begin(self, job: Job[Any], carried: Carried) -> list[str]:
        """Prepare the transformer before the first step that trains it; returns lines of the plan."""
        return []

    def settling(self) -> Callable[[nn.Module], None] | None:
        """What limits the change after the last stage, before its model is measured; None if nothing does."""
        return None

    def finish(self) -> None:
        """Make the transformer an ordinary one again."""


class CutUpdate(WholeUpdate):
    """The change of every weight matrix is cut to a rank by a singular value decomposition."""

    def __init__(self, spec: UpdateSpec, tell: _Tell) -> None:
        self._rank, self._tell = spec.rank, tell
        self._network: nn.Module | None = None
        self._before: dict[str, Tensor] = {}

    def begin(self, job: Job[Any], carried: Carried) -> list[str]:
        """Remember the weights."""
        self._network = _only_transformer(carried)
        self._before = {name: one.detach().clone() for name, one in network_tensors(self._network).items()}
        cut = sum(_is_cut(tensor, self._rank) for tensor in self._before.values())
        return [
            f"update: after the last stage, the change of {cut:,} weight matrices of the encoder is cut to "
            f"rank {self._rank}"
        ]

    def settling(self) -> Callable[[nn.Module], None]:
        """The cut."""
        return lambda model: self._cut()

    @torch.no_grad()
    def _cut(self) -> None:
        """Cut the change of each matrix; changes of biases and LayerNorm weights stay."""
        if self._network is None:
            return
        whole = lost = 0.0
        for name, after in network_tensors(self._network).items():
            place = "cpu" if after.device.type == "mps" else after.device  # which has no double precision
            before = self._before[name].to(place)
            change = after.to(place).double() - before.double()
            norm = float(change.square().sum())
            whole += norm
            if norm and _is_cut(after, self._rank):
                left, right = factors(change, self._rank)
                kept = left @ right
                lost += float((change - kept).square().sum())
                after.copy_((before.double() + kept).to(after.dtype))
        share = math.sqrt(max(0.0, 1 - lost / whole)) if whole else 1.0
        self._tell(
            f"  the change of the encoder is cut to rank {self._rank}, which keeps {100 * share:.1f} % of it "
            "(Frobenius norm)"
        )


class AdapterUpdate(WholeUpdate):
    """Adapters of a rank on every linear layer of the transformer (LoRA), through the library peft."""

    def __init__(self, spec: UpdateSpec) -> None:
        self._rank, self._alpha = spec.rank, spec.alpha or float(spec.rank)
        self._network: nn.Module | None = None

    def begin(self, job: Job[Any], carried: Carried) -> list[str]:
        """Put the adapters on, drawn by the recipe's seed; the transformer's own weights are frozen."""
        from peft import LoraConfig, inject_adapter_in_model

        network = _only_transformer(carried)
        layers = [
            name
            for name, module in network.named_modules()
            if isinstance(module, nn.Linear) and not name.startswith("pooler.")
        ]
        if not layers:
            raise UsageError('the encoder has no linear layers for adapters. Use update.by = "cut".')
        config = LoraConfig(r=self._rank, lora_alpha=self._alpha, target_modules=layers, lora_dropout=0.0)
        with by_seed(job):
            inject_adapter_in_model(config, network)
        self._network = network
        trained = sum(one.numel() for one in network.parameters() if one.requires_grad)
        whole = sum(one.numel() for one in network.parameters()) - trained
        return [
            f"update: adapters of rank {self._rank} (LoRA, alpha {self._alpha:g}) on "
            f"{counted(len(layers), 'linear layer')} of the encoder are trained, {trained:,} numbers; its "
            f"own {whole:,} stay as they are"
        ]

    def finish(self) -> None:
        """Merge the adapters into the weights."""
        from peft.tuners.tuners_utils import BaseTunerLayer

        if self._network is None:
            return
        found = [
            (name, one) for name, one in self._network.named_modules() if isinstance(one, BaseTunerLayer)
        ]
        for name, layer in found:
            layer.merge(safe_merge=True)
            self._network.set_submodule(name, layer.get_base_layer())
        del self._network.peft_config


def update_of(jobs: Jobs) -> WholeUpdate:
    """The update of a recipe."""
    spec = jobs[0].recipe.update
    if spec is None:
        return WholeUpdate()
    return AdapterUpdate(spec) if spec.by == _TRAINING else CutUpdate(spec, jobs[0].context.tell)


def check_update(spec: UpdateSpec | None, *, moves: bool) -> None:
    """Raise an error for an update that cannot be made; `moves` says whether a stage trains the encoder."""
    if spec is None:
        return
    if not moves:
        found = "no stage of this recipe trains the encoder's weights, so there is no change to limit"
        raise RecipeError([Problem("update", found, "remove [update]")])
    if spec.by == _TRAINING and importlib.util.find_spec("peft") is None:
        raise UsageError(
            f"update.by = \"training\" needs the library peft. Install it: pip install '{_LORA}'"
        )


def _is_cut(tensor: Tensor, rank: int) -> bool:
    return tensor.dim() == 2 and rank < min(tensor.shape)


def _only_transformer(carried: Carried) -> nn.Module:
    """The transformer of a model; a second one beside it would be trained without a limit."""
    encoder: Any = carried.encoder()
    own = {id(parameter) for parameter in encoder.parameters()}
    for other in _transformers(carried.model()):
        if any(id(parameter) not in own for parameter in other.parameters()):
            raise UsageError(
                "[update] limits the change of one transformer, but this model trains a second one. Remove "
                '[update], or let both share one (label_encoder = "shared").'
            )
    for network in _transformers(encoder):
        if network is encoder:  # a classifier, which reads texts as one input
            backbone: nn.Module = network.base_model
            return backbone
    return network_of(encoder, "the encoder")


def _transformers(model: nn.Module) -> Iterator[Any]:
    from transformers import PreTrainedModel

    return (module for module in model.modules() if isinstance(module, PreTrainedModel))
