"""What encoders are given: texts, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from likewise.errors import DataError, Problem
from likewise.wording import has_half_character

MAX_CHARS = 100_000


def check_texts(
    texts: Sequence[str],
    *,
    max_chars: int = MAX_CHARS,
    name: Callable[[int], str] = lambda index: f"text {index}",
) -> None:
    """Refuse what is not text, is empty, or is longer than anyone can mean."""
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(
                [Problem(name(index), f"is {type(text).__name__}, not a string", "convert it with str()")]
            )
        if not text.strip():
            raise DataError([Problem(name(index), "is empty", "leave it out")])
        if has_half_character(text):
            found = "holds half of a surrogate pair (bytes that are not UTF-8), which is no character"
            raise DataError([Problem(name(index), found, "give it as UTF-8, in a UTF-8 locale")])
        if len(text) > max_chars:
            raise DataError(
                [
                    Problem(
                        name(index),
                        f"has {len(text):,} characters, at most {max_chars:,} are taken",
                        "shorten it",
                    )
                ]
            )
