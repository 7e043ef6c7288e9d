"""Make training steps from paraphrases: their linked phrases and negatives, drawn anew in each epoch.

    the pair itself     every link is a paraphrase; the same phrase of the first text with another phrase of
                        the second is a negative (in-paraphrase)
    with another text   every phrase of the first text with a phrase of a text that says something else

The draw depends only on (seed, epoch, pair), so a resumed run draws the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.encoders.features import TextFeatures
from likewise.errors import DataError
from likewise.kinds.chunks import Anchors
from likewise.methods.paraphrase import PARAPHRASE, PHRASE_CLASSES, RANDOM, WITHIN, InjectionModel
from likewise.phrases.joined import Joined, Joiner, PiecePair, PieceText
from likewise.training.sampler import Batches, Share, epoch_batches
from likewise.training.settings import FitSettings

# Which epoch's draw, which pair, whether it is shown with another text, and whether it only fills an empty
# rank.
PhraseItem = tuple[int, int, bool, bool]
Negatives = Literal["uniform", "near"]
# What is measured, in the order it is told.
_SHOWN = ("sentences", "phrases", *(f"phrases {name}" for name in PHRASE_CLASSES))
# The draw that dev sees: the same whenever it looks.
DEV_EPOCH = 2**31


@dataclass(frozen=True, slots=True)
class Drawn:
    """Two texts and pairs of their phrases: the phrases' numbers, k×2, and the class of each pair."""

    a: PieceText
    b: PieceText
    phrases: NDArray[np.int64]
    labels: NDArray[np.int64]
    paraphrase: bool


@dataclass(frozen=True, slots=True)
class PhraseRows:
    """The pairs of a run as tokens, and how negatives are drawn for them."""

    pairs: Sequence[PiecePair]
    seed: int
    negatives: Negatives = "uniform"

    def __len__(self) -> int:
        return len(self.pairs)

    def draw(self, item: PhraseItem) -> Drawn:
        """One example: a pair with its phrases, or its first text with the second text of another pair."""
        epoch, row, random, _ = item
        rng = np.random.default_rng([self.seed, epoch, row, int(random)])
        pair = self.pairs[row]
        if random:
            return _beside(pair.a, self._other(row, rng).b, rng)
        within = draw_within(pair, rng, near=self.negatives == "near")
        labels = np.array([PARAPHRASE] * len(pair.links) + [WITHIN] * len(within), dtype=np.int64)
        return Drawn(pair.a, pair.b, np.concatenate([pair.links, within]), labels, paraphrase=True)

    def _other(self, row: int, rng: np.random.Generator) -> PiecePair:
        """Another pair that does not share a text; otherwise the drawn pair might be a paraphrase."""
        mine = {self.pairs[row].a.text, self.pairs[row].b.text}
        for _ in range(100):
            other = self.pairs[int(rng.integers(len(self.pairs)))]
            if not {other.a.text, other.b.text} & mine:
                return other
        raise DataError(
            "every pair shares a text with every other pair, so no random pair can be drawn. "
            "Add pairs of other texts."
        )


def _beside(a: PieceText, b: PieceText, rng: np.random.Generator) -> Drawn:
    count = len(a.phrases) if len(b.phrases) else 0
    seconds = rng.integers(len(b.phrases), size=count) if count else np.zeros(0, dtype=np.int64)
    phrases = np.stack([np.arange(count), seconds], axis=1).astype(np.int64)
    return Drawn(a, b, phrases, np.full(count, RANDOM, dtype=np.int64), paraphrase=False)


def draw_within(pair: PiecePair, rng: np.random.Generator, *, near: bool = False) -> NDArray[np.int64]:
    """For every link, draw a phrase of the second text that is not linked with the link's first phrase.

    With `near`, it is drawn from the phrases that overlap the linked one (its parts and the phrases that
    contain it), if there are any.
    """
    found = []
    linked: dict[int, set[int]] = {}
    links = pair.links.tolist()
    for first, second in links:
        linked.setdefault(first, set()).add(second)
    spans = pair.b.phrases.tolist()
    for first, second in links:
        free = [number for number in range(len(spans)) if number not in linked[first]]
        if near:
            start, end = spans[second]
            free = [n for n in free if spans[n][0] < end and spans[n][1] > start] or free
        if free:
            found.append((first, free[int(rng.integers(len(free)))]))
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def fitting(pairs: Sequence[PiecePair], joiner: Joiner, max_length: int) -> list[PiecePair]:
    """The pairs that are short enough to be read whole, so that no phrase is cut off."""
    return [p for p in pairs if len(p.a.ids) + len(p.b.ids) + joiner.markers <= max_length]


@dataclass(frozen=True, slots=True)
class PhraseSteps:
    """The steps of an epoch: every pair once, and once more with another text if random pairs are wanted."""

    pairs: Sequence[PiecePair]
    settings: FitSettings
    random: bool

    def count(self) -> int:
        """The number of steps in an epoch."""
        return len(self._batches(0))

    def _batches(self, epoch: int) -> list[list[int]]:
        sizes = [len(pair.a.ids) + len(pair.b.ids) for pair in self.pairs]
        return epoch_batches(sizes * 2 if self.random else sizes, self.settings, epoch)

    def of_epoch(self, epoch: int) -> Iterator[list[PhraseItem]]:
        """The steps of one epoch."""
        count = len(self.pairs)
        for rows in self._batches(epoch):
            yield [(epoch, row % count, row >= count, False) for row in rows]


def idle_phrases(items: Sequence[PhraseItem]) -> list[PhraseItem]:
    """The example that an idle process computes; it has no weight."""
    return [(*items[0][:3], True)]


def phrase_batches(model: InjectionModel, rows: PhraseRows, settings: FitSettings, share: Share) -> Batches:
    """The batches of aligned paraphrases."""
    anchors = None
    if model.two_tower and settings.anchor:
        model.anchor = settings.anchor
        texts = [text for pair in rows.pairs for text in (pair.a.text, pair.b.text)]
        features = TextFeatures(model.encoder)
        features.add(texts)
        anchors = Anchors(model.encoder, texts, features)
    steps = PhraseSteps(rows.pairs, settings, model.draws_random)
    collate = PhraseCollate(rows, Joiner(model.encoder.tokenizer), model, anchors)
    return Batches(len(rows), steps.count(), steps.of_epoch, collate, idle_phrases)


class PhraseCollate:
    """Turn examples into the arguments of InjectionModel.forward."""

    def __init__(
        self, rows: PhraseRows, joiner: Joiner, model: InjectionModel, anchors: Anchors | None = None
    ) -> None:
        self._rows, self._joiner, self._anchors = rows, joiner, anchors
        self._two_tower, self._max_length = model.two_tower, model.max_length

    def __call__(self, items: Sequence[PhraseItem]) -> dict[str, Any]:
        drawn = [self._fit(self._rows.draw(item)) for item in items]
        inputs, starts = self._inputs(drawn)
        padded = self._joiner.batch(inputs)
        width = padded["input_ids"].shape[1]
        flat: dict[str, list[NDArray[np.int64]]] = {"a": [], "b": []}
        for number, one in enumerate(drawn):
            for side, column, text in (("a", 0, one.a), ("b", 1, one.b)):
                row, start = starts[side][number]
                flat[side].append(text.phrases[one.phrases[:, column]] + (row * width + start))
        spans: dict[str, torch.Tensor] = {}
        for side, runs in flat.items():
            places, sizes = _unroll(np.concatenate(runs))
            spans |= {side: torch.from_numpy(places), f"{side}_sizes": torch.from_numpy(sizes)}
        batch = {
            "inputs": padded,
            "spans": spans,
            "phrase_labels": torch.from_numpy(np.concatenate([one.labels for one in drawn])),
            "sentence_labels": torch.tensor([int(one.paraphrase) for one in drawn]),
            "idle": items[0][3],
        }
        if self._anchors is None:
            return batch
        texts = [one.a.text for one in drawn] + [one.b.text for one in drawn]
        return {**batch, "anchors": self._anchors.take(texts)}

    def _inputs(self, drawn: Sequence[Drawn]) -> tuple[list[Joined], dict[str, list[tuple[int, int]]]]:
        """The inputs of a batch, and for each example the input and the token at which each text starts."""
        if not self._two_tower:
            inputs = [self._joiner.join(one.a.ids, one.b.ids) for one in drawn]
            sides = {
                side: [(row, one.starts[number]) for row, one in enumerate(inputs)]
                for number, side in enumerate("ab")
            }
            return inputs, sides
        inputs = [self._joiner.join(ids) for ids in [d.a.ids for d in drawn] + [d.b.ids for d in drawn]]
        starts = [(row, one.starts[0]) for row, one in enumerate(inputs)]
        return inputs, {"a": starts[: len(drawn)], "b": starts[len(drawn) :]}

    def _fit(self, drawn: Drawn) -> Drawn:
        """Cut the second text and drop its cut phrases if both texts together are too long."""
        room = self._max_length - self._joiner.markers - len(drawn.a.ids)
        if self._two_tower or len(drawn.b.ids) <= room:
            return drawn
        kept = drawn.b.phrases[drawn.phrases[:, 1], 1] <= room
        short = replace(drawn.b, ids=drawn.b.ids[:room])
        return replace(drawn, b=short, phrases=drawn.phrases[kept], labels=drawn.labels[kept])


def _unroll(runs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every place of half-open runs one after the other, and how many each has."""
    sizes = runs[:, 1] - runs[:, 0]
    before = np.cumsum(sizes) - sizes
    places = np.arange(sizes.sum()) - np.repeat(before - runs[:, 0], sizes)
    return places.astype(np.int64), sizes.astype(np.int64)


@torch.inference_mode()
def phrase_accuracy(
    model: InjectionModel, rows: PhraseRows, joiner: Joiner, *, batch_size: int = 100, precision: str = "fp32"
) -> dict[str, float]:
    """Accuracy on held-out pairs, with the same draw of negatives in every call.

    `score` is the accuracy on phrases, or on sentences if no phrases are learnt.
    """
    from likewise.encoders.sentence import autocast_settings

    settings = FitSettings(batch_size=batch_size, order="length")
    steps = PhraseSteps(rows.pairs, settings, model.draws_random)
    collate = PhraseCollate(rows, joiner, model)
    right: dict[str, list[bool]] = {}
    training = model.training
    model.eval()
    device = str(model.encoder.device)
    for items in steps.of_epoch(DEV_EPOCH):
        batch = _to(collate(items), device)
        with torch.autocast(**autocast_settings(precision, device)):
            found = model(**batch)
        _count(model, batch, found, right)
    model.train(training)
    numbers = {name: float(np.mean(right[name])) for name in _SHOWN if name in right}
    return {"score": numbers.get("phrases", numbers.get("sentences", 0.0)), **numbers}


def _count(
    model: InjectionModel, batch: dict[str, Any], found: dict[str, Any], right: dict[str, list[bool]]
) -> None:
    if "sentences" in found:
        hits = (found["sentences"].argmax(-1) == batch["sentence_labels"]).tolist()
        right.setdefault("sentences", []).extend(hits)
    if "phrases" in found:
        labels, answers = batch["phrase_labels"], found["phrases"].argmax(-1)
        right_answers = (labels != PARAPHRASE).long() if model.binary else labels
        hits = (answers == right_answers).tolist()
        right.setdefault("phrases", []).extend(hits)
        for label, hit in zip(labels.tolist(), hits, strict=True):
            right.setdefault(f"phrases {PHRASE_CLASSES[label]}", []).append(hit)


def _to(batch: Any, device: str) -> Any:
    if isinstance(batch, dict):
        return {name: _to(value, device) for name, value in batch.items()}
    return batch.to(device) if isinstance(batch, torch.Tensor) else batch
