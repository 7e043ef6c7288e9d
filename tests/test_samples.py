"""The bundled sample pairs: counts, ranges, and no pair or text in two splits."""

from __future__ import annotations

import csv
import unicodedata
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

import likewise

FOLDER = Path(likewise.__file__).parent / "samples"
COLUMNS = ["id", "kind", "text_a", "text_b", "similarity", "topic"]
ROWS = {"train": 270, "dev": 55, "test": 75}
KINDS = {
    "paraphrase": (55, 12, 16),
    "negation": (35, 7, 10),
    "numbers": (30, 6, 9),
    "word-order": (25, 5, 7),
    "detail": (35, 7, 10),
    "topic": (35, 7, 10),
    "unrelated": (35, 7, 10),
}
SPLITS = tuple(ROWS)
RATINGS = {"similarity": 5.0, "topic": 4.0}


def _read(split: str) -> list[dict[str, str]]:
    with (FOLDER / f"{split}.csv").open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        rows = list(reader)
        assert reader.fieldnames == COLUMNS
    return rows


def _key(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def _pair(row: dict[str, str]) -> frozenset[str]:
    return frozenset((_key(row["text_a"]), _key(row["text_b"])))


def _texts(split: str) -> set[str]:
    return {_key(row[side]) for row in _read(split) for side in ("text_a", "text_b")}


def _numbers(rows: list[dict[str, str]], kind: str, name: str) -> list[float]:
    return [float(row[name]) for row in rows if row["kind"] == kind and row[name]]


@pytest.mark.parametrize("split", SPLITS)
def test_there_are_enough_rows_of_every_kind(split):
    rows = _read(split)
    counts = Counter(row["kind"] for row in rows)
    assert len(rows) >= ROWS[split]
    assert set(counts) == set(KINDS)
    for kind, least in KINDS.items():
        assert counts[kind] >= least[SPLITS.index(split)], kind


@pytest.mark.parametrize("split", SPLITS)
def test_every_row_is_whole_and_clean(split):
    for row in _read(split):
        assert None not in row, row["id"]
        assert None not in row.values(), row["id"]
        for side in ("text_a", "text_b"):
            text = row[side]
            assert text == " ".join(text.split()), row["id"]
            assert text == unicodedata.normalize("NFC", text), row["id"]
            assert 3 <= len(text.split()) <= 30, row["id"]
        assert _key(row["text_a"]) != _key(row["text_b"]), row["id"]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("name", "top"), list(RATINGS.items()))
def test_ratings_are_thirds_within_their_scale(split, name, top):
    for row in _read(split):
        if row[name]:
            value = float(row[name])
            assert 0.0 <= value <= top, row["id"]
            assert abs(value - round(value * 3) / 3) < 0.005, row["id"]


def test_ratings_are_missing_only_in_train_and_never_both():
    missing = {
        split: [[name for name in RATINGS if not row[name]] for row in _read(split)] for split in SPLITS
    }
    assert not any(missing["dev"])
    assert not any(missing["test"])
    assert max(len(names) for names in missing["train"]) == 1
    counts = Counter(name for names in missing["train"] for name in names)
    assert 15 <= counts.total() <= 30
    assert min(counts[name] for name in RATINGS) >= 5


def test_ids_are_unique_and_name_their_split():
    ids = [(split, row["id"]) for split in SPLITS for row in _read(split)]
    assert all(name.startswith(f"{split}-") for split, name in ids)
    assert len({name for _, name in ids}) == len(ids)


def test_no_pair_occurs_twice():
    pairs = Counter(_pair(row) for split in SPLITS for row in _read(split))
    assert [sorted(pair) for pair, count in pairs.items() if count > 1] == []


@pytest.mark.parametrize(("one", "other"), list(combinations(SPLITS, 2)))
def test_no_text_occurs_in_two_splits(one, other):
    assert _texts(one) & _texts(other) == set()


@pytest.mark.parametrize("split", SPLITS)
def test_ratings_follow_the_kinds(split):
    rows = _read(split)
    assert min(_numbers(rows, "paraphrase", "similarity")) > max(_numbers(rows, "negation", "similarity"))
    assert max(_numbers(rows, "negation", "similarity")) <= 2.0
    assert min(_numbers(rows, "negation", "topic")) >= 3.33
    assert max(_numbers(rows, "numbers", "similarity")) < 4.0
    assert min(_numbers(rows, "word-order", "topic")) >= 3.33
    assert max(_numbers(rows, "unrelated", "similarity")) <= 0.67
    assert max(_numbers(rows, "unrelated", "topic")) <= 0.67


def test_word_order_pairs_hold_the_same_words_but_for_a_pronoun_or_article():
    for split in SPLITS:
        for row in _read(split):
            if row["kind"] == "word-order":
                one, other = (Counter(_words(row[side])) for side in ("text_a", "text_b"))
                assert ((one - other) | (other - one)).total() <= 2, row["id"]


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.casefold()).split()


# The reviews that `likewise demo` trains on.
REVIEWS = {"train": (384, 48), "dev": (63, 21), "test": (144, 18)}


def _reviews(split: str) -> list[dict[str, str]]:
    with (FOLDER / "reviews" / f"{split}.csv").open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        rows = list(reader)
        assert reader.fieldnames == ["id", "kind", "text_a", "text_b", "similarity", "opinion"]
    return rows


def _review_texts(split: str) -> set[str]:
    return {row[side] for row in _reviews(split) for side in ("text_a", "text_b")}


def _runs(text: str, length: int) -> set[tuple[str, ...]]:
    words = _words(text)
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


@pytest.mark.parametrize("split", list(REVIEWS))
def test_reviews_are_rated_by_the_rule_that_the_readme_states(split):
    rows = _reviews(split)
    pairs, things = REVIEWS[split]
    assert [row["id"] for row in rows] == [f"{split}-{number:03d}" for number in range(1, pairs + 1)]
    assert len({frozenset((row["text_a"], row["text_b"])) for row in rows}) == pairs
    # Six texts about each thing, nearly all of which are in some pair.
    assert 5 * things < len(_review_texts(split)) <= 6 * things
    missing = [name for row in rows for name in ("similarity", "opinion") if not row[name]]
    assert len(missing) == (24 if split == "train" else 0)
    for row in rows:
        similarity, opinion = (float(row[name]) if row[name] else None for name in ("similarity", "opinion"))
        assert similarity is not None or opinion is not None
        assert opinion in (None, 0, 1, 2, 3, 4)
        match row["kind"]:
            case "same-point":
                assert (similarity, opinion) in ((5, 4), (5, None), (None, 4)), row["id"]
            case "same-subject":
                assert None in (similarity, opinion) or similarity == 1 + opinion / 2, row["id"]
            case kind:
                assert (kind, similarity or 0) == ("other-subject", 0), row["id"]


def test_reviews_to_test_with_share_no_text_and_no_turn_of_phrase_with_the_others():
    others = _review_texts("train") | _review_texts("dev")
    known = set().union(*(_runs(text, 5) for text in others))
    for text in _review_texts("test"):
        assert not _runs(text, 5) & known, text
    assert not _review_texts("train") & _review_texts("dev")


def test_reviews_are_clean_and_are_not_the_other_sample():
    ours = set().union(*map(_review_texts, REVIEWS))
    for text in ours:
        assert text == " ".join(text.split())
        assert text == unicodedata.normalize("NFC", text)
        assert 3 <= len(text.split()) <= 30
    assert not {_key(text) for text in ours} & set().union(*map(_texts, SPLITS))
