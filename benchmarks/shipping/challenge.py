"""The challenge set: sentences that differ in one respect, such as a negation or a number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.answering import COSINE
from likewise.evaluation import challenge, challenge_result
from shipping.asked import Asked
from shipping.parts import gain
from shipping.rows import Rows, valued
from shipping.similarity import SIMILARITY


class Challenge:
    """The share of items in rightful order, and the accuracy of labels: over all items and by phenomenon."""

    name = "challenge"

    def __init__(self) -> None:
        self._items: tuple[challenge.ChallengeItem, ...] = ()

    @property
    def items(self) -> tuple[challenge.ChallengeItem, ...]:
        """The items that come with the package, read once."""
        self._items = self._items or challenge.read_challenge()
        return self._items

    def texts(self, asked: Asked, rows: Rows) -> Iterable[str]:
        """The three sentences of every item."""
        return (text for item in self.items for text in (item.text, item.same, item.other))

    def facts(self, rows: Rows) -> dict[str, Any]:
        """The number of items by phenomenon."""
        return {"items": dict(Counter(item.phenomenon for item in self.items))}

    def measure(self, asked: Asked, rows: Rows, raw: Asked | None) -> dict[str, Any] | str:
        """Every share, and the difference of the similarity from the raw cosine."""
        if 2 not in asked.model.texts:
            return "it answers single texts"
        result = challenge.measure_challenge(asked.model, self.items, keep_predictions=True)
        if COSINE in result.overall.shares:
            asked.outcomes[self.name] = in_order(result, COSINE)
        told = {
            "all": shares(result.overall),
            "phenomena": {one.name: shares(one) for one in result.phenomena},
            "fingerprint": result.fingerprint,
            "notes": list(result.notes),
        }
        if raw is not None and self.name in raw.outcomes:
            measure = SIMILARITY if SIMILARITY in result.overall.shares else COSINE
            told["against_raw"] = {measure: gain(in_order(result, measure), raw.outcomes[self.name])}
        return told


def shares(found: challenge_result.Phenomenon) -> dict[str, Any]:
    """The shares of some items by question, beside what the commonest label reaches."""
    return {
        measure: valued(share.value, share.interval, majority=share.majority)
        for measure, share in found.shares.items()
    }


def in_order(result: challenge_result.ChallengeResult, measure: str) -> NDArray[np.float64]:
    """For each item 1 if the pair with the same meaning has the higher value, and .5 for a tie."""
    said = np.array([answers[measure] for answers in (result.predictions or {}).values()], dtype=np.float64)
    order: NDArray[np.float64] = (np.sign(said[:, 0] - said[:, 1]) + 1) / 2
    return order
