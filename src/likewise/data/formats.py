"""One reader per file format. Each takes (stream, name, fail) and returns (columns, rows).

jsonl    one JSON object per line; the first object names the columns
parquet  read in batches through pyarrow, which is imported only here

The readers for csv and tsv are in `delimited`, the one for xlsx is in `sheets`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, BinaryIO, NamedTuple

from likewise.data.lines import MAX_LINE, Lines
from likewise.data.parquetpages import GroupMemory, NotParquetError, byte_columns, group_memory
from likewise.data.rows import MAX_COLUMNS, Fail, Row, Unquoted
from likewise.errors import FormatError, Problem
from likewise.wording import clipped, counted, has_half_character, listed, quoted


class Parsed(NamedTuple):
    """The columns and rows of a file, the delimiter of a delimited one, what its reader guessed, and whether
    it begins with a byte-order mark of UTF-8.
    """

    columns: tuple[str, ...]
    rows: Iterator[Row]
    delimiter: str = ""
    notes: tuple[str, ...] = ()
    bom: bool = False


# The last argument is the delimiter that the user named.
Parser = Callable[[BinaryIO, str, Fail, str | None], Parsed]

_BATCH, _BATCH_BYTES = 1024, 2**26
# Of parquet: bytes of pages that are unpacked together, and of those with texts, which are copied several
# times; values in the lists of a batch, a page, a row group.
_PAGE_BYTES, _TEXT_BYTES, _LIST_BYTES = 2**29, 2**27, 2**29
_MOST_VALUES, _PAGE_VALUES, _GROUP_VALUES = 2**23, 2**24, 2**27


def parse_jsonl(stream: BinaryIO, name: str, fail: Fail, named: str | None = None) -> Parsed:
    """The rows of a file with one JSON object per line. A key that a row lacks is missing."""
    lines = Lines(stream, name, fail)
    objects = _json_objects(lines, fail)
    first = next(objects, None)
    if first is None:
        message = (
            "this holds no JSON object"
            if lines.number
            else "this is empty, but one JSON object per line is expected"
        )
        raise FormatError([Problem(name, message, "write one object per line")])

    def rows() -> Iterator[Row]:
        yield first
        yield from objects

    return Parsed(check_columns(list(first.fields), first.source), rows())


def _json_objects(lines: Lines, fail: Fail) -> Iterator[Row]:
    for line in lines:
        if not line.strip():
            continue
        try:
            fields = json.loads(line, object_pairs_hook=_unique_keys, parse_constant=Unquoted)
        except (ValueError, RecursionError) as error:
            fail(
                Problem(
                    lines.source,
                    f"this line is not a JSON object ({clipped(str(error))})",
                    "write one complete object per line",
                )
            )
            continue
        if isinstance(fields, dict):
            yield Row(fields, lines.source)
        else:
            found = f"this is a JSON {type(fields).__name__}, but an object is expected"
            fail(Problem(lines.source, found, "write one object per line"))


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("the same key occurs twice")
    return fields


def parse_parquet(stream: BinaryIO, name: str, fail: Fail, named: str | None = None) -> Parsed:
    """The rows of a parquet file, numbered from 1. The stream must be able to seek."""
    import pyarrow
    import pyarrow.parquet

    # A damaged file raises what its bytes happen to mean: over-large sizes, other types, no text.
    damage = (pyarrow.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError, MemoryError)
    try:
        # Pages as they are asked for, not whole row groups: those may be as large as the file.
        # Texts as a dictionary and its rows: one that every row repeats is held once.
        options = {"pre_buffer": False, "buffer_size": 2**20, "read_dictionary": byte_columns(stream)}
        file = pyarrow.parquet.ParquetFile(stream, **options)
        names = list(file.schema_arrow.names)
    except damage as error:
        raise FormatError([_not_parquet(name, error)]) from None
    columns = check_columns(names, name)
    if not columns:
        found = "the file has no columns, but columns with texts are expected"
        raise FormatError([Problem(name, found, "write it again with columns")])
    check_column_types(file.schema_arrow, name)

    def rows() -> Iterator[Row]:
        number = 0
        try:
            for batch in _batches(file, stream, name):
                for fields in batch_rows(batch, columns, name, number):
                    number += 1
                    yield Row(fields, f"{name}:{number}")
        except damage as error:
            raise FormatError([_not_parquet(f"{name}:{number + 1}", error)]) from None

    return Parsed(columns, rows())


def _batches(file: Any, stream: BinaryIO, name: str) -> Iterator[Any]:
    """The rows in batches of bounded memory, however small the file is and whatever its footer says."""
    groups = 0
    for number, group in enumerate(group_memory(stream)):
        groups += 1
        for batch in file.iter_batches(batch_size=_rows_at_once(group, name), row_groups=[number]):
            yield from bounded_parts(batch, name)
    if groups != file.num_row_groups:
        raise NotParquetError("its footer can be read in two ways")


def bounded_parts(batch: Any, name: str) -> Iterator[Any]:
    """A batch in parts whose texts fit into memory. Very long lists and texts are refused."""
    if sum(map(_count_values, batch.columns)) > _MOST_VALUES:
        found = f"{counted(batch.num_rows, 'row')} with lists of more than {_MOST_VALUES:,} values found"
        raise FormatError([Problem(name, found, "leave that column out")])
    for column, array in zip(batch.schema.names, batch.columns, strict=True):
        _refuse_long_text(array, column, name)
    yield from _small_parts(batch)


def _rows_at_once(group: GroupMemory, name: str) -> int:
    """How many rows fit into memory. A row group that does not fit in any way is refused."""
    texts = [column for column in group.columns if column.texts]
    for columns, most in ((group.columns, _PAGE_BYTES), (texts, _TEXT_BYTES)):
        largest = sum(column.largest for column in columns)
        if largest > most:
            column = max(columns, key=lambda one: one.largest)
            found = f"the pages of the columns unpack to {largest / 2**20:,.0f} MB at once, most of it in "
            found += f"{quoted(column.name)}, but at most {most // 2**20} MB are read"
            remedy = "write the file with smaller pages, or without that column"
            raise FormatError([Problem(name, found, remedy)])
    per_row = sum(column.shared + column.density for column in group.columns)
    rows = min(_BATCH, max(1, int(_BATCH_BYTES // max(1.0, per_row))))
    for column in group.columns:
        if column.values <= group.rows:
            continue
        # Any row may hold most of the column.
        too_many = column.most > _PAGE_VALUES or column.values > _GROUP_VALUES
        if too_many or column.unpacked > _LIST_BYTES or column.shared * column.most > _LIST_BYTES:
            found = f"column {quoted(column.name)} holds lists of {column.values:,} values in one row group"
            raise FormatError([Problem(name, found, "write smaller row groups, or leave that column out")])
        rows = min(rows, max(1, _MOST_VALUES * max(1, group.rows) // (2 * column.values)))
    return rows


def check_column_types(schema: Any, name: str) -> None:
    """Refuse columns of types whose memory is not bounded here, such as views and extensions of texts."""
    problems = []
    for field in schema:
        if (other := _unknown_type(field.type)) is not None:
            found = f"column {quoted(field.name)} has the type {clipped(str(other))}, which is not supported"
            problems.append(Problem(name, found, "write it as plain texts or numbers, or leave it out"))
    if problems:
        raise FormatError(problems)


def _unknown_type(kind: Any) -> Any:
    """The first type in a column's type that this module does not support, or None if it supports all."""
    import pyarrow

    known = pyarrow.types
    if isinstance(kind, pyarrow.BaseExtensionType):
        return None if known.is_fixed_size_binary(kind.storage_type) else kind
    if known.is_dictionary(kind):
        return _unknown_type(kind.value_type)
    listing = (known.is_list, known.is_large_list, known.is_fixed_size_list, known.is_struct, known.is_map)
    if any(is_kind(kind) for is_kind in listing):
        inner = (_unknown_type(kind.field(place).type) for place in range(kind.num_fields))
        return next((one for one in inner if one is not None), None)
    text = (known.is_string, known.is_large_string, known.is_binary, known.is_large_binary)
    plain = (*text, known.is_fixed_size_binary, known.is_null, known.is_boolean, known.is_integer)
    number = (known.is_floating, known.is_decimal, known.is_temporal)
    return None if any(is_kind(kind) for is_kind in (*plain, *number)) else kind


def _refuse_long_text(array: Any, column: str, name: str) -> None:
    """Refuse a text that is longer than a line of a text file may be, also in lists and structures."""
    from pyarrow import compute

    for lengths in map(_text_lengths, _leaves(array)):
        longest = compute.max(lengths).as_py() or 0
        if longest > MAX_LINE:
            found = f"column {quoted(column)} holds a text of {longest / 2**20:,.0f} MB, "
            found += f"but at most {MAX_LINE // 2**20} MB are read"
            raise FormatError([Problem(name, found, "leave that row or column out")])


def _small_parts(batch: Any) -> Iterator[Any]:
    """A batch, cut until the texts of each part fit into memory, since rows may refer to a dictionary."""
    size = sum(_text_bytes(leaf) for array in batch.columns for leaf in _leaves(array))
    if size <= _BATCH_BYTES or batch.num_rows < 2:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _small_parts(batch.slice(0, half))
    yield from _small_parts(batch.slice(half))


def _leaves(array: Any) -> list[Any]:
    """The columns of single values in a column: itself, or those in its lists and structures."""
    inside = _inside(array)
    return [leaf for one in inside for leaf in _leaves(one)] if inside else [array]


def _text_lengths(array: Any) -> Any:
    """The bytes of each distinct text of a column, or of each text. Other values give none."""
    import pyarrow
    from pyarrow import compute

    held = array.dictionary if pyarrow.types.is_dictionary(array.type) else array
    kind, known = held.type, pyarrow.types
    texts = (known.is_string, known.is_large_string, known.is_binary, known.is_large_binary)
    if any(is_kind(kind) for is_kind in (*texts, known.is_fixed_size_binary)):
        return compute.binary_length(held)
    return pyarrow.array([], pyarrow.int64())


def _text_bytes(array: Any) -> int:
    """The bytes of the texts that a column's rows refer to. Each distinct text counts once."""
    import pyarrow
    from pyarrow import compute

    lengths = _text_lengths(array)
    if pyarrow.types.is_dictionary(array.type) and len(lengths):
        lengths = lengths.take(array.indices.unique().drop_null())
    return int(compute.sum(lengths).as_py() or 0)


def _count_values(array: Any) -> int:
    """The number of values in a column's cells, and in the lists and structures inside them."""
    return len(array) + sum(map(_count_values, _inside(array)))


def _inside(array: Any) -> list[Any]:
    """The inner columns of lists, maps and structures. Single values have none."""
    import pyarrow

    kind, known = array.type, pyarrow.types
    if known.is_map(kind):
        return [array.keys, array.items]
    if known.is_struct(kind):
        return list(array.flatten())
    if known.is_list(kind) or known.is_large_list(kind) or known.is_fixed_size_list(kind):
        return [array.flatten()]
    return []


def batch_rows(batch: Any, columns: Sequence[str], name: str, before: int) -> Iterator[dict[str, Any]]:
    """The rows of a batch as plain values. `before` is the number of rows ahead of it."""
    cells = []
    for column, array in zip(columns, batch.columns, strict=True):
        try:
            cells.append(_plain(array))
        except UnicodeDecodeError as error:
            place = f"{name}:{before + 1} to {before + batch.num_rows}"
            found = f"column {quoted(column)} holds bytes that are not UTF-8 ({error.reason})"
            raise FormatError([Problem(place, found, "write the texts as UTF-8")]) from None
    for values in zip(*cells, strict=True):
        yield dict(zip(columns, values, strict=True))


def _plain(array: Any) -> list[Any]:
    """A column as plain values, as `to_pylist` gives them, but with one text in memory for all its
    occurrences.
    """
    import pyarrow

    kind, known = array.type, pyarrow.types
    if known.is_dictionary(kind):
        places = array.indices.to_pylist()
        texts = {place: array.dictionary[place].as_py() for place in set(places) if place is not None}
        return [None if place is None else texts[place] for place in places]
    if not any(known.is_dictionary(one.type) or known.is_nested(one.type) for one in _inside(array)):
        return list(array.to_pylist())
    there = array.is_valid().to_pylist()
    if known.is_struct(kind):
        names = [field.name for field in kind]
        rows = zip(*map(_plain, array.flatten()), strict=True)
        return [
            dict(zip(names, row, strict=True)) if is_there else None
            for is_there, row in zip(there, rows, strict=True)
        ]
    if known.is_map(kind):
        inner: Iterator[Any] = zip(_plain(array.keys), _plain(array.items), strict=True)
        lengths = [end - start for start, end in pairwise(array.offsets.to_pylist())]
    else:
        inner = iter(_plain(array.flatten()))
        lengths = [length or 0 for length in array.value_lengths().to_pylist()]
    return [
        list(islice(inner, length)) if is_there else None
        for is_there, length in zip(there, lengths, strict=True)
    ]


def _not_parquet(source: str, error: Exception) -> Problem:
    reason = clipped((str(error) or type(error).__name__).splitlines()[0])
    return Problem(source, f"this is not a whole parquet file ({reason})", "copy it again, or write it again")


def check_columns(columns: Sequence[object], source: str) -> tuple[str, ...]:
    """The column names as text. Equal names, or more columns than MAX_COLUMNS, are an error."""
    if len(columns) > MAX_COLUMNS:
        found = f"there are {len(columns):,} columns, but at most {MAX_COLUMNS:,} are read"
        raise FormatError(
            [Problem(source, found, "keep only the columns that you need, or check the line ends")]
        )
    names = tuple(str(column) for column in columns)
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise FormatError(
            [
                Problem(
                    source,
                    f"two columns have the same name: {listed(map(quoted, twice))}",
                    "rename one of them",
                )
            ]
        )
    for name in names:
        if has_half_character(name):
            found = f"the column name {quoted(name)} holds half of a surrogate pair, which is not a character"
            raise FormatError([Problem(source, found, "write it as UTF-8")])
    return names
