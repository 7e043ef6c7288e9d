"""Near-duplicates: texts, or pairs, that share nearly all their words. All are found, with few comparisons.

Two texts are near-duplicates if their sets of words (`data.keys.text_words`) have a Jaccard similarity |x ∩
y| / |x ∪ y| of at least t. Words are ordered by how many of the indexed texts hold them, the rarest first. If
x and y are near-duplicates, the first |x| − ⌈t|x|⌉ + 1 words of x and the first |y| − ⌈t|y|⌉ + 1 words of y
have one in common (prefix filtering: Chaudhuri et al. 2006, Bayardo et al. 2007). For t = .9 and a text of
fewer than ten words this prefix is the rarest word alone, so a single lookup settles most texts. The places
of that word in x and y bound the number of words they can share after it (Xiao et al. 2008), so that texts of
one template are not all compared with each other.

With the 18,850 pairs of sts7 in the index, one busy core compares 20,000 pairs a second, or 5 million in four
minutes (benchmarks/leaks.py).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from likewise.data.keys import text_words
from likewise.errors import UsageError

NEAR = 0.9
# Division rounds: a bound a hair too high would lose a near-copy, one too low only costs a comparison.
_SLACK = 1e-9
_NOTHING: dict[tuple[int, int], list[int]] = {}

Words = frozenset[str]
RowKey = tuple[str, ...]


class TextIndex:
    """An index of texts that finds the near-duplicates of another text. Only the indexed texts take memory.

    Texts of the same words count as one, with one number.
    """

    def __init__(self, texts: Iterable[str], *, near: float = NEAR) -> None:
        self._near = require_near(near)
        self.numbers: dict[Words, int] = {}
        for text in texts:
            self.numbers.setdefault(text_words(text), len(self.numbers))
        self._texts = list(self.numbers)
        counts = Counter(word for words in self._texts for word in words)
        ranked = sorted(counts, key=lambda word: (counts[word], word))
        self._rank = {word: rank for rank, word in enumerate(ranked)}
        # word → (size of a text, place of the word in it) → numbers of texts; the first words alone.
        self._first: dict[str, dict[tuple[int, int], list[int]]] = defaultdict(dict)
        for number, words in enumerate(self._texts):
            size = len(words)
            for place, word in self._prefix(words):
                self._first[word].setdefault((size, place), []).append(number)

    def near(self, text: str) -> set[int]:
        """The numbers of the indexed texts that are near-duplicates of this one."""
        words = text_words(text)
        size, near = len(words), self._near
        low, high = near * size - _SLACK, size / near + _SLACK
        found = set()
        for place, word in self._prefix(words):
            for (other_size, other_place), numbers in self._first.get(word, _NOTHING).items():
                if not low <= other_size <= high:
                    continue
                # So many words must be shared, and after these places so many are left.
                least = near / (1 + near) * (size + other_size) - _SLACK
                if min(size - place, other_size - other_place) < least:
                    continue
                for number in numbers:
                    shared = len(words & self._texts[number])
                    if shared / (size + other_size - shared) >= near:
                        found.add(number)
        return found

    def _prefix(self, words: Words) -> Sequence[tuple[int, str]]:
        """The rarest words of a text with their places. Every near-duplicate has one of them.

        Words of no indexed text are the rarest: they take the first places and are left out.
        """
        least = math.ceil(self._near * len(words) - _SLACK)
        rank = self._rank
        known = [word for word in words if word in rank]
        length = len(known) - least + 1
        if length <= 0 or not known:
            return ()
        unknown = len(words) - len(known)
        if length == 1:
            return ((unknown, min(known, key=rank.__getitem__)),)
        return list(enumerate(sorted(known, key=rank.__getitem__)[:length], unknown))


class RowIndex:
    """An index of rows of one or two texts, each with a key, that finds the near-duplicates of another
    row.
    """

    def __init__(self, rows: Sequence[tuple[Sequence[str], RowKey]], *, near: float = NEAR) -> None:
        self._texts = TextIndex((text for texts, _ in rows for text in texts), near=near)
        self._keys: dict[tuple[int, ...], set[RowKey]] = defaultdict(set)
        self._partners: dict[int, set[int]] = defaultdict(set)
        for texts, key in rows:
            numbers = [self._texts.numbers[text_words(text)] for text in texts]
            self._keys[tuple(sorted(numbers))].add(key)
            if len(numbers) == 2:
                self._partners[numbers[0]].add(numbers[1])
                self._partners[numbers[1]].add(numbers[0])

    def near(self, texts: Sequence[str]) -> set[RowKey]:
        """The keys of the rows that are near-duplicates of this one, text by text, in one of the two
        orders.
        """
        first = self._texts.near(texts[0])
        if not first:
            return set()
        if len(texts) == 1:
            return {key for number in first for key in self._keys.get((number,), ())}
        second = self._texts.near(texts[1])
        return {
            key
            for number in first
            for other in self._partners.get(number, set()) & second
            for key in self._keys[min(number, other), max(number, other)]
        }


def require_near(near: float) -> float:
    """Check the threshold of near-duplicates: above 0 and at most 1."""
    if 0 < near <= 1:
        return near
    raise UsageError(
        f"the threshold of near-duplicates is {near:g}, but a Jaccard similarity above 0 and at "
        f"most 1 is expected, such as {NEAR}."
    )
