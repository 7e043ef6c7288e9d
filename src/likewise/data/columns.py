"""Find the columns that hold the texts."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from likewise.data.rows import Repeated
from likewise.errors import DataError, Problem
from likewise.spelling import spelt, spelt_together
from likewise.wording import listed, quoted

# Well-known couples, the most telling first; compared without case.
COUPLES = (
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("text_1", "text_2"),
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("sentence_a", "sentence_b"),
    ("sent1", "sent2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("phrase1", "phrase2"),
    ("string1", "string2"),
    ("a", "b"),
    ("s1", "s2"),
    ("q1", "q2"),
    ("t1", "t2"),
    ("source", "target"),
    ("src", "tgt"),
    ("left", "right"),
    ("query", "document"),
    ("query", "passage"),
    ("question", "answer"),
    ("anchor", "positive"),
    ("text", "hypothesis"),
    ("original", "paraphrase"),
    ("en1", "en2"),
)
SINGLES = (
    "text",
    "sentence",
    "text_a",
    "content",
    "document",
    "body",
    "question",
    "query",
    "title",
    "phrase",
)


def find_text_columns(
    columns: Sequence[str], text_a: str | None = None, text_b: str | None = None, *, source: str = "table"
) -> tuple[str, str]:
    """The two text columns: the ones that were named, or a well-known couple of names among the columns."""
    for keyword, named in (("text_a", text_a), ("text_b", text_b)):
        if named is not None and named not in columns:
            remedy = f"name an existing column with {spelt(keyword, 'NAME')}"
            raise DataError([missing_column(named, columns, source, remedy)])
    if text_a is not None and text_a == text_b:
        problem = Problem(
            source,
            f"both texts come from column {text_a!r}",
            f"name two columns: {spelt_together(text_a='NAME', text_b='NAME')}",
        )
        raise DataError([problem])
    if text_a is not None and text_b is not None:
        return require_single(text_a, columns, source), require_single(text_b, columns, source)
    by_name = {column.casefold(): column for column in reversed(columns)}
    for first, second in COUPLES:
        couple = by_name.get(first), by_name.get(second)
        if couple[0] is None or couple[1] is None:
            continue
        if text_a in (None, couple[0]) and text_b in (None, couple[1]):
            return require_single(couple[0], columns, source), require_single(couple[1], columns, source)
    raise DataError([_no_couple(columns, source)])


def find_text_column(
    columns: Sequence[str], text: str | None = None, *, source: str = "table", option: str = "text_a"
) -> str:
    """The text column of single texts: the named one, a well-known name, or the only column.

    `option` is the keyword of the option that names it.
    """
    if text is not None and text not in columns:
        raise DataError(
            [missing_column(text, columns, source, f"name an existing column with {spelt(option, 'NAME')}")]
        )
    if text is not None:
        return require_single(text, columns, source)
    by_name = {column.casefold(): column for column in reversed(columns)}
    for name in SINGLES:
        if name in by_name:
            return require_single(by_name[name], columns, source)
    if len(columns) == 1:
        return columns[0]
    found = f"no column has a known name for texts. The columns are {listed(columns)}"
    raise DataError([Problem(source, found, f"name the text column: {spelt(option, 'NAME')}")])


def find_any_texts(
    columns: Sequence[str], text_a: str | None = None, text_b: str | None = None, *, source: str = "table"
) -> tuple[str, ...]:
    """The two text columns of a table of pairs, or the one text column of a table of single texts."""
    try:
        return find_text_columns(columns, text_a, text_b, source=source)
    except RepeatedError:
        raise
    except DataError:
        if text_b is not None or (text_a is not None and text_a not in columns):
            raise
        try:
            return (find_text_column(columns, text_a, source=source),)
        except RepeatedError:
            raise
        except DataError:
            found = f"no column has a known name for texts. The columns are {listed(columns)}"
            one, two = spelt("text_a", "NAME"), spelt_together(text_a="NAME", text_b="NAME")
            labelled = spelt_together(text="NAME", label="NAME")
            remedy = (
                f"name the text columns: {one} for single texts, {two} for pairs; to train on labelled "
                f"texts, name both columns: {labelled}"
            )
            raise DataError([Problem(source, found, remedy)]) from None


class RepeatedError(DataError):
    """A column that is asked for stands several times in the header."""


def require_single(name: str, columns: Sequence[str], source: str, remedy: str = "rename one of them") -> str:
    """The name of a column that is asked for. One that several columns have is an error."""
    found = next((column for column in columns if column == name), name)
    if isinstance(found, Repeated):
        problem = Problem(f"{source}:1", f"two columns have the same name: {quoted(name)}", remedy)
        raise RepeatedError([problem])
    return found


def missing_column(name: str, columns: Sequence[str], source: str, remedy: str) -> Problem:
    """The problem of a missing column, with the nearest existing name."""
    folded = {column.casefold(): column for column in columns}
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    hint = f" (did you mean {quoted(folded[close[0]])}?)" if close else ""
    return Problem(
        source, f"there is no column {quoted(name)}{hint}. The columns are {listed(columns)}", remedy
    )


def _no_couple(columns: Sequence[str], source: str) -> Problem:
    found = f"no two columns have known names for texts. The columns are {listed(columns)}"
    return Problem(source, found, f"name the text columns: {spelt_together(text_a='NAME', text_b='NAME')}")
