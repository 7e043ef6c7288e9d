"""Phrase injection: training an encoder on aligned phrases of paraphrases before it is fine-tuned.

The paper is Arase & Tsujii, "Transfer Fine-Tuning: A BERT Case Study", EMNLP 2019, which injects phrasal
paraphrase relations into an encoder. The page is docs/methods/paraphrase.md.

There are two recipes, one after the other. A stage of kind `inject` trains the encoder on phrases. A stage
of kind `joint` then fine-tunes that encoder like any other.

    joint       [CLS] s [SEP] t [SEP] → h        spans of both texts from one encoding, h_1 for the sentences
    two-tower   s → h, u    t → h, v             spans from texts encoded apart, (u, v) for the sentences

    elaborate   max over a span     [h_s; h_t; h_s*h_t; |h_s−h_t|]
    simple      mean over a span    [h_s; h_t]
    cosine      mean over a span    cos(h_s, h_t), two towers only

    phrases     dropout → Linear → paraphrase, random, in-paraphrase
    sentences   dropout → Linear → random, paraphrase
    loss        cross-entropy of both, added; negatives are drawn anew each epoch

Texts that are encoded apart are compared by their cosine afterwards. `elaborate` features do not train that
cosine. `cosine` features do, and then a phrase pair is either a paraphrase or not. `anchor` keeps the
cosines of all texts of a step that are no paraphrases of each other where the starting encoder had them.

The heads are not part of the result, which is an encoder of the same size.

Where the parts are
    this file               InjectionModel: features of spans, heads, loss
    phrases/                phrases and their links; phrases/joined.py turns them into pieces
    data/paraphrases.py     pairs of texts that say the same
    data/links.py           phrase links of two texts
    schema/inject.py, kinds/inject.py, kinds/inject_steps.py    injection: keys, training, draws
    methods/joint.py, schema/joint.py, kinds/joint.py           fine-tuning: model, keys, training
    predict/injected.py, predict/joint.py                       saving, loading and asking both
    recipes                 paraphrase-injection, finetune

Not from the paper: the aligner, two towers, `cosine` features, the anchor, ratings learnt around their
mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise import ranks
from likewise.encoders.sentence import embedding_width, readable_length
from likewise.errors import ModelError
from likewise.losses import anchored

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Learns = Literal["both", "phrases", "sentences", "binary-phrases"]
Features = Literal["elaborate", "simple", "cosine"]

# The classes of a phrase pair by number; the binary task has the first and the last.
PHRASE_CLASSES = ("paraphrase", "random", "in-paraphrase")
PARAPHRASE, RANDOM, WITHIN = range(3)
_PARTS = {"elaborate": 4, "simple": 2}
# A head of `cosine` features reads the cosine times this; at the first step one of _EVEN means even odds.
_COSINE_SCALE, _EVEN = 20.0, 0.5


class InjectionModel(nn.Module):
    """An encoder with the two heads it is taught by."""

    family: ClassVar[str] = "injected"

    def __init__(
        self,
        encoder: SentenceTransformer,
        *,
        learns: Learns = "both",
        features: Features = "elaborate",
        two_tower: bool = False,
        dropout: float = 0.2,
        max_length: int = 128,
    ) -> None:
        super().__init__()
        self.encoder, self.learns, self.features, self.two_tower = encoder, learns, features, two_tower
        transformer = getattr(encoder[0], "auto_model", None)
        if transformer is None:
            raise ModelError(
                "phrase injection needs a transformer, but this encoder is none. Choose another."
            )
        self.max_length = readable_length(max_length, transformer)
        if two_tower:
            self.max_length = min(self.max_length, int(encoder.max_seq_length or self.max_length))
        width = int(transformer.config.hidden_size)
        self.anchor = 0.0  # weight of `losses.anchored`; a stage's setting
        self.dropout = nn.Dropout(dropout if features != "cosine" else 0.0)
        self.heads = nn.ModuleDict()
        if learns != "sentences":
            self.heads["phrases"] = self._head(width, 2 if self.binary else len(PHRASE_CLASSES), PARAPHRASE)
        if learns in ("both", "sentences"):
            sentence = embedding_width(encoder) if two_tower else width
            self.heads["sentences"] = self._head(sentence, 2, 1) if two_tower else nn.Linear(sentence, 2)
        self.to(encoder.device)

    def _head(self, width: int, classes: int, paraphrase: int) -> nn.Linear:
        """A layer over the features of two vectors; one over a cosine starts as its natural reading."""
        if self.features != "cosine":
            return nn.Linear(_PARTS[self.features] * width, classes)
        head = nn.Linear(1, classes)
        with torch.no_grad():
            head.weight.fill_(-0.5)
            head.bias.fill_(0.5 * _COSINE_SCALE * _EVEN)
            head.weight[paraphrase] *= -1
            head.bias[paraphrase] *= -1
        return head

    @property
    def binary(self) -> bool:
        """Whether phrase pairs are paraphrases or not, whatever kind of others they are."""
        return self.learns == "binary-phrases" or self.features == "cosine"

    @property
    def draws_random(self) -> bool:
        """Whether pairs of texts that do not belong together are shown."""
        return self.learns != "binary-phrases"

    def forward(
        self,
        inputs: dict[str, Tensor],
        spans: dict[str, Tensor],
        phrase_labels: Tensor,
        sentence_labels: Tensor,
        anchors: Tensor | None = None,
        idle: bool = False,
    ) -> dict[str, Tensor]:
        """The loss of a step, and the answers of both heads.

        `spans` holds the pieces of the first and the second span of each phrase pair, flat over the batch
        (`a`, `b`), and how many each span has (`a_sizes`, `b_sizes`). `anchors` are the starting encoder's
        vectors of all first texts, then of all second ones. An `idle` process fills in with an example that
        weighs nothing.
        """
        states, sentences, vectors = self._encode(inputs)
        losses, found = [], {}
        phrase_weight, row_weight = self._weights(idle, phrase_labels, sentence_labels, like=states)
        if "phrases" in self.heads and len(phrase_labels):
            scores = self.heads["phrases"](self.dropout(self._phrase_features(states, spans)))
            labels = (phrase_labels != PARAPHRASE).long() if self.binary else phrase_labels
            losses.append(functional.cross_entropy(scores, labels) * phrase_weight)
            found["phrases"] = scores
        if "sentences" in self.heads:
            scores = self.heads["sentences"](self.dropout(sentences))
            losses.append(functional.cross_entropy(scores, sentence_labels) * row_weight)
            found["sentences"] = scores
        if anchors is not None and vectors is not None:
            [first] = torch.nonzero(sentence_labels, as_tuple=True)
            held = anchored(vectors, anchors, first, first + len(sentence_labels))
            losses.append(self.anchor * held * row_weight)
        # A batch without any phrase still owes a gradient to processes that train side by side.
        nothing = 0.0 * torch.stack([p.sum() for p in self.heads.parameters()]).sum()
        return {"loss": torch.stack([*losses, nothing]).sum(), **found}

    def _weights(
        self, idle: bool, phrases: Tensor, sentences: Tensor, *, like: Tensor
    ) -> tuple[Tensor | float, Tensor | float]:
        """What this process's means weigh; dev is looked at by one process alone, which asks no other."""
        if not self.training:
            return 1.0, 1.0
        counts = (0, 0) if idle else (len(phrases), len(sentences))
        return ranks.weight_of(counts[0], like.detach()), ranks.weight_of(counts[1], like.detach())

    def _encode(self, inputs: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor | None]:
        """States of all pieces, what the sentences are judged by (B rows), vectors of texts encoded apart."""
        if not self.two_tower:
            states = self.encoder[0].auto_model(**inputs).last_hidden_state
            return states.float(), states[:, 0].float(), None
        found = self.encoder(dict(inputs))
        vectors = found["sentence_embedding"].float()
        u, v = vectors.chunk(2)
        return found["token_embeddings"].float(), pair_features(u, v, self.features), vectors

    def _phrase_features(self, states: Tensor, spans: dict[str, Tensor]) -> Tensor:
        how = "max" if self.features == "elaborate" else "mean"
        flat = states.reshape(-1, states.shape[-1])
        a, b = (pool_spans(flat, spans[side], spans[f"{side}_sizes"], how) for side in "ab")
        return pair_features(a, b, self.features)


def pool_spans(flat: Tensor, places: Tensor, sizes: Tensor, how: str) -> Tensor:
    """One vector per span: the max or mean over its pieces, given one span after the other; P×d."""
    return torch.segment_reduce(flat[places], how, lengths=sizes, unsafe=True)


def pair_features(a: Tensor, b: Tensor, features: Features) -> Tensor:
    """What a head reads of two vectors."""
    if features == "cosine":
        return _COSINE_SCALE * functional.cosine_similarity(a, b, dim=-1)[:, None]
    return torch.cat([a, b] if features == "simple" else [a, b, a * b, (a - b).abs()], dim=-1)
