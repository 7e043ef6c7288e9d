"""Check the texts that encoders receive, before anything is computed."""

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
    """Raise an error for anything that is not a text, is empty, or is too long."""
    for index, text in enumerate(texts):
        if text is None or text != text or type(text).__name__ in ("NAType", "NaTType"):
            # The remedy for other types would turn it into the text "nan".
            raise DataError([Problem(name(index), f"it is missing ({text})", "leave it out")])
        if not isinstance(text, str):
            raise DataError(
                [Problem(name(index), f"it is {type(text).__name__}, not a string", "convert it with str()")]
            )
        if not text.strip():
            raise DataError([Problem(name(index), "the text is empty", "leave it out")])
        if has_half_character(text):
            found = "the text holds half of a surrogate pair (bytes that are not UTF-8)"
            raise DataError([Problem(name(index), found, "pass it as UTF-8, in a UTF-8 locale")])
        if len(text) > max_chars:
            raise DataError(
                [
                    Problem(
                        name(index),
                        f"the text has {len(text):,} characters, but at most {max_chars:,} are allowed",
                        "shorten it",
                    )
                ]
            )
