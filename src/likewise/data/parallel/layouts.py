"""Layouts of parallel text in files, and which two columns or files hold which languages.

table           a header names the columns: csv, tsv, jsonl, parquet, or any other source of `open_table`
headerless      tab separated without a header: columns are numbers, counted from 1
moses           two files side by side: x.en and x.de, or their prefix x
tatoeba         Tatoeba's export of one pair of languages
tatoeba-export  Tatoeba's whole export: its folder, or (sentences, links)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from likewise.data.columns import find_text_columns, missing_column
from likewise.data.compression import split_endings
from likewise.data.parallel.languages import Language, find_language, look_up
from likewise.data.parallel.plain import RawPairs, field_pairs, find_side, find_stored, moses_pairs
from likewise.data.parallel.tatoeba import LINKS, PAIR_FIELDS, SENTENCES, is_pair_export, linked_pairs
from likewise.data.rows import Table
from likewise.data.tables import open_table
from likewise.errors import DataError, Problem, UsageError
from likewise.wording import listed

Layout = Literal["auto", "table", "headerless", "moses", "tatoeba", "tatoeba-export"]
Columns = Sequence[str] | Sequence[int]
Couple = tuple[Language, Language]

_TEXT_ENDINGS = frozenset({".tsv", ".tab", ".txt", ".csv"})
# Column names that are language codes too, but mostly number the rows.
_ROW_NUMBERS = frozenset({"id", "no"})
_NAME_LANGUAGES = 'name the languages: languages = ["en", "de"]'
_NAME_BOTH = (
    'name the languages: languages = ["en", "de"]; if the columns have other names, add '
    'columns = ["NAME", "NAME"]'
)
_NAME_COLUMNS = (
    'name the columns: columns = ["en", "de"], or by number if there is no header: columns = [1, 2]'
)


@dataclass(frozen=True, slots=True)
class OpenedParallel:
    """Parallel text that is about to be read. Messages name each side by its entry in `files` and `sides`."""

    name: str
    languages: Couple
    files: tuple[str, str]
    sides: tuple[str, str]
    pairs: RawPairs

    @property
    def places(self) -> tuple[str, ...]:
        """The name of each side: its file, with its column if both sides are in one file."""
        if self.files[0] != self.files[1]:
            return self.files
        return tuple(f"{file}, {side}" for file, side in zip(self.files, self.sides, strict=True))


def open_layout(
    source: object,
    languages: Sequence[str] | None,
    *,
    columns: Columns | None = None,
    layout: Layout = "auto",
    name: str | None = None,
) -> OpenedParallel:
    """Open parallel text in the given layout, or in the layout that the source's form and names show."""
    if layout not in get_args(Layout):
        raise UsageError(f"there is no layout {layout!r}. Choose one of {', '.join(get_args(Layout))}.")
    for option, given in (("languages", languages), ("columns", columns)):
        if given is not None and (isinstance(given, str) or len(given) != 2):
            raise UsageError(
                f"{option} is {given!r}, but it must hold two entries, one for each side of a pair."
            )
    paths = _to_paths(source)
    if layout == "auto":
        layout = _find_layout(paths, languages, columns)
    if layout == "table":
        return _open_columns(open_table(source, name=name), languages, columns)
    if layout == "moses":
        return _open_moses(_moses_files(paths, languages), languages, name)
    if layout == "tatoeba-export":
        return _open_export(_export_files(paths), languages, name)
    if len(paths) != 1:
        raise UsageError(f"layout {layout!r} needs one file. Pass its path.")
    return _open_fields(paths[0], languages, columns, name, tatoeba=layout == "tatoeba")


def _to_paths(source: object) -> list[Path]:
    """The source as paths, or an empty list if it is something else, such as a frame or standard input."""
    if isinstance(source, str | Path):
        return [] if str(source) == "-" else [Path(source)]
    if isinstance(source, list | tuple) and all(isinstance(part, str | Path) for part in source):
        return [Path(part) for part in source]
    return []


def _find_layout(paths: Sequence[Path], languages: Sequence[str] | None, columns: Columns | None) -> Layout:
    if len(paths) > 1:
        return "tatoeba-export" if "links" in paths[-1].name else "moses"
    if not paths:
        return "table"
    path = paths[0]
    if path.is_dir():
        return "tatoeba-export" if find_stored(path / LINKS) else "table"
    if not path.is_file():
        return "moses" if languages and any(find_side(path, code) for code in languages) else "table"
    if columns is not None:
        return "headerless" if isinstance(columns[0], int) else "table"
    return "tatoeba" if split_endings(path)[0] in _TEXT_ENDINGS and is_pair_export(path) else "table"


def _to_languages(languages: Sequence[str] | None, source: str) -> Couple:
    if languages is None:
        raise DataError([Problem(source, "the two languages are unknown", _NAME_LANGUAGES)])
    return find_language(languages[0], source=source), find_language(languages[1], source=source)


def _open_moses(
    files: tuple[Path, Path], languages: Sequence[str] | None, name: str | None
) -> OpenedParallel:
    first, second = files
    if languages is None:
        languages = [split_endings(file)[0].removeprefix(".") for file in files]
    couple = (
        find_language(languages[0], source=str(first)),
        find_language(languages[1], source=str(second)),
    )
    names = first.name, second.name
    return OpenedParallel(
        name or ", ".join(names), couple, names, ("text", "text"), moses_pairs(first, second)
    )


def _moses_files(paths: Sequence[Path], languages: Sequence[str] | None) -> tuple[Path, Path]:
    if len(paths) == 2:
        return paths[0], paths[1]
    if len(paths) != 1:
        raise UsageError("layout 'moses' needs two files. Pass (x.en, x.de), or x and the languages.")
    prefix = paths[0]
    couple = _to_languages(languages, str(prefix))
    absent = [prefix.with_name(f"{prefix.name}.{language.code}") for language in couple]
    sides = [find_side(prefix, code) for code in languages or ()]
    # A file that is not there is named when it is opened.
    return sides[0] or absent[0], sides[1] or absent[1]


def _open_export(files: Sequence[Path], languages: Sequence[str] | None, name: str | None) -> OpenedParallel:
    *sentences, links = files
    couple = _to_languages(languages, links.name)
    pairs = linked_pairs(sentences, links, couple)
    return OpenedParallel(
        name or links.name, couple, (links.name, links.name), ("sentence", "translation"), pairs
    )


def _export_files(paths: Sequence[Path]) -> Sequence[Path]:
    if len(paths) == 1 and paths[0].is_dir():
        return [find_stored(paths[0] / file) or paths[0] / file for file in (SENTENCES, LINKS)]
    if len(paths) < 2:
        raise UsageError(
            f"layout 'tatoeba-export' needs a folder, or ({SENTENCES}, {LINKS}). Pass one of these."
        )
    return paths


def _open_fields(
    path: Path, languages: Sequence[str] | None, columns: Columns | None, name: str | None, *, tatoeba: bool
) -> OpenedParallel:
    """Columns by number: the ones that were named, or Tatoeba's columns, or the first two."""
    first, second = columns or ((2, 4) if tatoeba else (1, 2))
    if not isinstance(first, int) or not isinstance(second, int) or min(first, second) < 1 or first == second:
        found = f"columns is {[first, second]!r}, but {path.name} has no header"
        raise UsageError(f"{found}. Give two different numbers, counted from 1.")
    shown = name or path.name
    couple = _to_languages(languages, shown)
    pairs = field_pairs(path, (first, second), name=shown, titles=PAIR_FIELDS if tatoeba else ())
    return OpenedParallel(shown, couple, (shown, shown), (f"column {first}", f"column {second}"), pairs)


def _open_columns(table: Table, languages: Sequence[str] | None, columns: Columns | None) -> OpenedParallel:
    couple = None if languages is None else _to_languages(languages, table.name)
    if columns is not None:
        first, second = _check_columns(table, *map(str, columns))
    elif couple is not None:
        first, second = _columns_of(table, couple)
    else:
        first, second = _language_columns(table)
    if couple is None:
        couple = _to_languages([_without_number(first), _without_number(second)], table.name)

    def pairs() -> RawPairs:
        for fields, source in table:
            yield fields.get(first), fields.get(second), int(source.rpartition(":")[2])

    return OpenedParallel(table.name, couple, (table.name, table.name), (first, second), pairs())


def _check_columns(table: Table, first: str, second: str) -> tuple[str, str]:
    absent = [column for column in (first, second) if column not in table.columns]
    if absent:
        raise DataError(
            [missing_column(column, table.columns, table.name, _NAME_COLUMNS) for column in absent]
        )
    if first == second:
        raise DataError([Problem(table.name, f"both texts come from column {first!r}", _NAME_COLUMNS)])
    return first, second


def _columns_of(table: Table, couple: Couple) -> tuple[str, str]:
    """The columns named after two languages, or else a well-known couple such as source and target."""
    named = _by_language(table)
    first = _column_of(couple[0], named)
    second = _column_of(couple[1], {column: named[column] for column in named if column != first})
    if first and second:
        return first, second
    try:
        return find_text_columns(table.columns, source=table.name)
    except DataError:
        wanted = " and ".join(repr(language.code) for language in couple)
        found = f"no two columns have known names for {wanted}. The columns are {listed(table.columns)}"
        raise DataError([Problem(table.name, found, _NAME_COLUMNS)]) from None


def _column_of(language: Language, named: Mapping[str, Language]) -> str | None:
    exact = [column for column, other in named.items() if other.code == language.code]
    alike = [column for column, other in named.items() if other.base == language.base]
    return next(iter(exact + alike), None)


def _language_columns(table: Table) -> tuple[str, str]:
    """The two columns whose names are language codes."""
    named = list(_by_language(table))
    if len(named) > 2:
        named = [column for column in named if column.lower() not in _ROW_NUMBERS]
    if len(named) == 2:
        return named[0], named[1]
    found = (
        f"{len(named)} columns are named after a language, but two are expected. The columns "
        f"are {listed(table.columns)}"
    )
    raise DataError([Problem(table.name, found, _NAME_BOTH)])


def _by_language(table: Table) -> Mapping[str, Language]:
    """The columns that are named after a language, with that language."""
    named = {column: look_up(_without_number(column)) for column in table.columns}
    return {column: language for column, language in named.items() if language is not None}


def _without_number(column: str) -> str:
    """The language in a column's name. Two columns of one language are en1 and en2."""
    return column.rstrip("12")
