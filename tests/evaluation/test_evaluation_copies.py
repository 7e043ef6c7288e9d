"""Near-copies: the index finds exactly what comparing every text with every other finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.data.keys import text_words
from likewise.errors import UsageError
from likewise.evaluation import copies
from likewise.evaluation.copies import RowIndex, TextIndex

VOCABULARY = [f"w{number}" for number in range(14)]
THRESHOLDS = st.sampled_from([0.1, 0.3, 0.5, 2 / 3, 0.7, 0.8, 0.9, 0.95, 1.0])


def sentence(words):
    return " ".join(words)


short = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6).map(sentence)
# Long ones that differ in a word or two of about twenty: at .9 the bounds are what decides.
long = st.lists(st.sampled_from([*VOCABULARY, *"abcdefghij"]), min_size=17, max_size=40).map(sentence)
other = st.sampled_from(
    ["?!", "🙂", "今日はとても寒い", "今日はとても寒いね", "It's", "its", "Café", "cafe\u0301"]
)
texts = st.one_of(short, long, other)


def jaccard(first: str, second: str) -> float:
    x, y = text_words(first), text_words(second)
    return len(x & y) / len(x | y)


@given(st.lists(texts, min_size=1, max_size=12), st.lists(texts, min_size=1, max_size=6), THRESHOLDS)
def test_copies_of_texts_are_those_of_comparing_all_with_all(known, asked, near):
    index = TextIndex(known, near=near)
    for text in asked:
        found = index.near(text)
        for one in known:
            assert (index.numbers[text_words(one)] in found) == (jaccard(text, one) >= near)


@given(
    st.lists(st.tuples(texts, texts), min_size=1, max_size=10),
    st.lists(st.tuples(texts, texts), min_size=1, max_size=4),
    THRESHOLDS,
)
def test_copies_of_pairs_are_those_of_comparing_all_with_all(known, asked, near):
    index = RowIndex([(pair, (str(number),)) for number, pair in enumerate(known)], near=near)
    for a, b in asked:
        expected = {
            (str(number),)
            for number, (c, d) in enumerate(known)
            if min(jaccard(a, c), jaccard(b, d)) >= near or min(jaccard(a, d), jaccard(b, c)) >= near
        }
        assert index.near((a, b)) == expected


def test_copies_at_the_threshold_count():
    """9 of 10 words are .9 exactly, in binary too; 8 of 9 are less."""
    nine = sentence(VOCABULARY[:9])
    ten = sentence(VOCABULARY[:10])
    assert TextIndex([nine]).near(ten)
    assert TextIndex([ten]).near(nine)
    eight = sentence(VOCABULARY[:8])
    assert not TextIndex([nine]).near(eight)
    assert not TextIndex([eight]).near(nine)


def test_copies_of_one_text_are_no_copies_of_pairs():
    index = RowIndex([(("a b c",), ("one",)), (("a b c", "d e f"), ("two",))])
    assert index.near(("C b A",)) == {("one",)}
    assert index.near(("f e d", "c b a")) == {("two",)}
    assert index.near(("a b c", "a b c")) == set()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's FINE,  isn't it?", {"it", "s", "fine", "isn", "t"}),
        ("Ｆｕｌｌ width, Straße", {"full", "width", "strasse"}),
        ("cafe\u0301 café", {"café"}),
        ("नमस्ते दुनिया", {"नमसत", "दनय"}),
        ("東京タワー", {"東京", "京タ", "タワ", "ワー"}),
        ("GPT4は東", {"gpt4", "は東"}),
        ("雨", {"雨"}),
        ("?! ?!", {"?!?!"}),
        (" ", set()),
    ],
)
def test_words_of_a_text(text, words):
    assert text_words(text) == words


def test_words_of_a_language_without_blanks_tell_long_texts_apart():
    """Letters alone would not: any two long Thai texts hold nearly all of them."""
    letters = [chr(code) for code in range(0x0E01, 0x0E2F)]
    forth, back = "".join(letters * 3), "".join(reversed(letters * 3))
    assert set(forth) == set(back)
    assert jaccard(forth, back) < 0.1


@pytest.mark.parametrize("near", [0, -0.5, 1.01, 90, float("nan")])
def test_copies_refuse_what_is_no_jaccard_similarity(near):
    with pytest.raises(UsageError, match="above 0 and at most 1 is expected, such as 0"):
        TextIndex(["a"], near=near)


def test_copies_of_many_texts_of_one_template_are_found_without_comparing_them_all(monkeypatch):
    """Every text shares all words but one with 5,000 others, which is not enough."""
    compared = []

    class Counted(frozenset):
        def __and__(self, other):
            compared.append(other)
            return super().__and__(other)

    monkeypatch.setattr(copies, "text_words", lambda text: Counted(text_words(text)))
    template = "a man and a woman are in the old house near the park number{}"
    index = TextIndex(template.format(number) for number in range(5_000))
    asked = [template.format(number) for number in range(4_950, 5_050)]
    assert [len(index.near(text)) for text in asked] == [1] * 50 + [0] * 50
    assert len(compared) == 50
