"""A head that reads the description of a relation: one matcher for all described relations.

    pair         features B×F → one projection    → X  B×m
    description  the encoder of the texts         → Y  1×m
    answer       sigmoid(matcher(X, Y))           → B, 0..1, mapped to lo..hi of the relation

The description is an input, as labels are in `label_embedding`. A relation is therefore added by describing
it in words, without a new parameter. The answer is a share of the scale, so relations with different scales
share the head. No paper has this: it applies label embedding to relations (docs/methods/relations.md).
"""

from __future__ import annotations

from torch import Tensor, nn

from likewise.errors import UsageError
from likewise.heads import PLAIN, Head, Layers
from likewise.matchers import make_matcher
from likewise.records import Form, Relation

DESCRIBED = "described"
DEFAULT_MATCHER = "concat-mlp"
# Linear in X: over features that never let the two texts meet they could not compare them.
_LINEAR = frozenset({"bilinear", "dot", "concat-linear"})
# Asking for the direction of X: it must not begin at zero, which has none.
_DIRECTED = frozenset({"cosine", "concat-mlp"})


class DescribedHead(Head):
    """B×F and 1×m → B, the share of the scale on which a pair stands."""

    form: Form = "unit"

    def __init__(
        self, features: int, width: int, *, matcher: str = DEFAULT_MATCHER, layers: Layers = PLAIN
    ) -> None:
        super().__init__()
        if matcher == "euclid":
            raise UsageError(
                "matcher 'euclid' never gives a value above 0, so answers could not reach the upper half of "
                f"a scale. Use {DEFAULT_MATCHER}."
            )
        if len(layers.hidden) > 1:
            raise UsageError(
                f"head 'described' has one hidden layer, but hidden names {len(layers.hidden)}. Name one."
            )
        self.linear = matcher in _LINEAR
        self.projection = Layers(scale=layers.scale).build(features, width)
        if matcher in _DIRECTED and isinstance(self.projection, nn.Sequential):
            self.projection[-1].reset_parameters()  # type: ignore[operator]
        self.matcher = make_matcher(matcher, width, hidden=layers.hidden[0] if layers.hidden else None)

    @property
    def blind(self) -> bool:
        """Whether the description only moves all answers up or down, so that all relations rank alike."""
        return self.matcher.blind

    def forward(self, features: Tensor, description: Tensor) -> Tensor:
        """Shares of the scale, B."""
        scores: Tensor = self.matcher(self.projection(features), description)
        return scores[:, 0].sigmoid()


def check_description(relation: Relation) -> None:
    """Refuse a relation that says nothing to a head that reads."""
    if not relation.description.strip():
        raise UsageError(
            f"relation {relation.name!r} has no description, which head 'described' needs. Describe the "
            f'relation in words: description = "…" under [relation.{relation.name}].'
        )
