"""Words of any text: where they lie, and that nothing is lost or said twice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.phrases.words import split_words


def said(text: str) -> list[str]:
    return [text[start:end] for start, end in split_words(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \n\t\u3000", []),
        ("I don't know.", ["I", "don't", "know", "."]),
        ("a well-known dog’s tail", ["a", "well-known", "dog’s", "tail"]),
        ("'quoted' dogs' -5 a--b", ["'", "quoted", "'", "dogs", "'", "-", "5", "a", "-", "-", "b"]),
        ("3.5 or 1,000.25, at 12:30.", ["3.5", "or", "1,000.25", ",", "at", "12:30", "."]),
        ("the U.S. and e.g. plan B.", ["the", "U.S.", "and", "e.g.", "plan", "B", "."]),
        ("Wait... what?!", ["Wait", ".", ".", ".", "what", "?", "!"]),
        ("$38b (5%)", ["$", "38b", "(", "5", "%", ")"]),
        ("snake_case COVID-19", ["snake_case", "COVID-19"]),
        ("l'été, cafe\u0301", ["l'été", ",", "cafe\u0301"]),
    ],
)
def test_words_of_latin_text(text, words):
    assert said(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我喜歡ABC。", ["我", "喜", "歡", "ABC", "。"]),
        ("コーヒー", ["コー", "ヒー"]),
        ("한국어 단어", ["한국어", "단어"]),
        ("ภาษาไทย\u200bสวย", ["ภาษาไทย\u200b", "สวย"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("צה״ל שלום!", ["צה״ל", "שלום", "!"]),
        ("\u200fمی\u200cخواهم، ٣٫٥", ["\u200fمی\u200cخواهم", "،", "٣٫٥"]),
    ],
)
def test_words_of_other_scripts(text, words):
    assert said(text) == words


ENGLAND = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"


@pytest.mark.parametrize(
    "emoji", ["👍", "👍🏽", "👨\u200d👩\u200d👧\u200d👦", "❤️\u200d🔥", "🇩🇪", "1️⃣", "#️⃣", ENGLAND], ids=ascii
)
def test_words_keep_an_emoji_whole(emoji):
    assert said(f"so{emoji}{emoji} !") == (
        # A keycap is a digit, and digits hang together with letters.
        ["so" + emoji * 2, "!"] if emoji[0].isdigit() else ["so", emoji, emoji, "!"]
    )


@pytest.mark.parametrize("text", ["\u0301", "\ufeffHello", "a \u200d b", "\x00", "\ud800", "\U000e0001", "🇩"])
def test_words_of_odd_characters_lose_nothing(text):
    assert "".join(said(text)) == text.replace(" ", "")


ODD = st.sampled_from("aB1é\u0301'’-.,: \n我カー한ไท\u200b\u200d\ufe0f👩🏽🇩🇪♂$%_ש״\u200f\x00\ud800")


@settings(max_examples=100)
@given(st.one_of(st.text(), st.text(ODD)))
def test_words_are_in_order_apart_and_cover_all_but_space(text):
    words = split_words(text)
    at = 0
    for start, end in words:
        assert at <= start < end <= len(text)
        assert not any(map(str.isspace, text[start:end]))
        assert not text[at:start].strip()
        at = end
    assert not text[at:].strip()


@pytest.mark.parametrize("part", ["'", "a-", "a.", "1,", "\u0301", "👩\u200d", "a.b"])
def test_words_of_a_long_text_without_spaces(part):
    """A pattern that goes back over what it has read would not come to an end here."""
    assert sum(end - start for start, end in split_words(part * 100_000)) == 100_000 * len(part)
