"""A folder that `save_to_disk` of the package `datasets` wrote. Its rows are read where they lie.

    FOLDER/state.json            names the files of rows, which lie beside it
    FOLDER/data-*.arrow          rows as a stream of Arrow messages: a schema, then batches
    FOLDER/dataset_dict.json     of several splits: their names, each a folder like the above

Nothing else in the folder is read: neither features, which may name files to open, nor a format. A message is
read only if its size is plausible and nothing in it is packed, and a batch is checked before its values are.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from likewise.data.formats import batch_rows, bounded_parts, check_column_types, check_columns
from likewise.data.memory import choose_split
from likewise.data.opened import note_file
from likewise.data.rows import Fail, Row, Table
from likewise.errors import FormatError, Problem
from likewise.files import refuse_endless

_STATE, _SPLITS = "state.json", "dataset_dict.json"
_LARGEST_JSON, _LARGEST_HEADER, _LARGEST_BATCH, _MOST_ROWS = 2**24, 2**24, 2**29, 2**22
# Fields of the tables Message and RecordBatch of Arrow's format, and the kinds of messages.
_END = b"\xff\xff\xff\xff\0\0\0\0"
_KIND, _HEADER, _BODY, _PACKED = 1, 2, 3, 3
_SCHEMA_MESSAGE, _BATCH_MESSAGE = 1, 3


def is_saved_dataset(folder: Path) -> bool:
    """Whether `save_to_disk` wrote a folder."""
    return (folder / _STATE).is_file() or (folder / _SPLITS).is_file()


def saved_table(folder: Path, *, split: str | None = None, name: str | None = None) -> Table:
    """The table of a saved dataset, or of one of its splits."""
    place = folder
    if (folder / _SPLITS).is_file():
        if (folder / _STATE).is_file():
            raise _damaged(folder, f"it holds both {_STATE} and {_SPLITS}")
        names = _list(_read(folder / _SPLITS).get("splits"), folder / _SPLITS)
        places = {_plain_name(one, folder / _SPLITS): folder / one for one in names}
        place = choose_split(places, split, str(folder))
    files = _arrow_files(place)
    if not files:
        raise _damaged(place, "it holds no rows")
    columns = _columns(files[0])
    for file in files[1:]:
        if _columns(file) != columns:
            raise _damaged(file, "its columns are not those of the file before")

    def scan(fail: Fail) -> Iterator[Row]:
        for file in files:
            yield from _rows(file, columns)

    return Table(name or folder.name, columns, scan)


def _arrow_files(place: Path) -> list[Path]:
    """The files of rows that a saved dataset names, each of which must lie in its folder."""
    state, found = place / _STATE, []
    document = _read(state)
    if document.get("_indices_data_files"):
        raise _damaged(state, "it selects rows by a file of indices, which is not read")
    for entry in _list(document.get("_data_files"), state):
        file = place / _plain_name(entry.get("filename") if isinstance(entry, dict) else None, state)
        if file in found:
            raise _damaged(state, f"it names {file.name} twice")
        if not file.is_file():
            refuse_endless(file)
            raise _damaged(file, "it is missing")
        found.append(file)
    return found


def _columns(file: Path) -> tuple[str, ...]:
    """The columns of a file."""
    with _reading(file) as stream:
        return check_columns(list(_schema(stream, file).names), file.name)


def _rows(file: Path, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a file, numbered from 1."""
    import pyarrow

    number = 0
    with _reading(file) as stream:
        schema = _schema(stream, file)
        while message := _message(stream, _BATCH_MESSAGE):
            batch = pyarrow.ipc.read_record_batch(
                pyarrow.ipc.read_message(pyarrow.py_buffer(message)), schema
            )
            if batch.num_rows > _MOST_ROWS:
                raise ValueError(f"a batch of {batch.num_rows:,} rows")
            batch.validate(full=True)
            for part in bounded_parts(batch, file.name):
                for fields in batch_rows(part, columns, file.name, number):
                    number += 1
                    yield Row(fields, f"{file.name}:{number}")


def _schema(stream: BinaryIO, file: Path) -> Any:
    import pyarrow

    schema = pyarrow.ipc.read_schema(pyarrow.py_buffer(_message(stream, _SCHEMA_MESSAGE)))
    check_column_types(schema, file.name)
    _refuse_shared(schema, file.name)
    return schema


@contextmanager
def _reading(file: Path) -> Iterator[BinaryIO]:
    """An open file of rows; a damaged one raises what its bytes happen to mean."""
    import pyarrow

    note_file(file)
    try:
        with file.open("rb") as stream:
            yield stream
    except FormatError:
        raise
    except (
        *(pyarrow.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError, MemoryError),
        struct.error,
    ) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise _damaged(file, f"this is not a whole file of Arrow batches ({reason})") from None


def _refuse_shared(schema: Any, name: str) -> None:
    """Refuse types whose values need no bytes of their own, so that few bytes can hold very many."""
    from pyarrow import types

    def shared(kind: Any, *, inside: bool) -> bool:
        if types.is_dictionary(kind) or types.is_fixed_size_list(kind) or (inside and types.is_null(kind)):
            return True
        return any(shared(kind.field(place).type, inside=True) for place in range(kind.num_fields))

    for field in schema:
        if shared(field.type, inside=False):
            found = f"column {field.name!r} has the type {field.type}, which is not supported here"
            raise FormatError([Problem(name, found, "save it as plain texts or numbers, or leave it out")])


def _message(stream: BinaryIO, kind: int) -> bytes:
    """The next message of a stream, with its body; empty at the end."""
    start = stream.read(8)
    if start == _END and not stream.read(1):
        return b""
    if len(start) < 8:
        raise ValueError("it was cut short")
    mark, size = struct.unpack("<iI", start)
    if mark != -1 or size > _LARGEST_HEADER:
        raise ValueError("the header of a message is wrong")
    header = stream.read(size)
    at = _root(header)
    body = int(_number(header, at, _BODY, "<q"))
    if _number(header, at, _KIND, "<B") != kind or not 0 <= body <= _LARGEST_BATCH:
        raise ValueError("a message is of another kind, or too large")
    if kind == _BATCH_MESSAGE:
        inner = _offset(header, at, _HEADER)
        if inner == 0 or _offset(header, inner + _int(header, inner), _PACKED):
            raise ValueError("its batches are packed; save it without compression")
    content = stream.read(body)
    if len(header) < size or len(content) < body:
        raise ValueError("it was cut short")
    return start + header + content


# Flatbuffers: a table begins with the distance back to a list of the places of its fields.


def _int(data: bytes, at: int, form: str = "<I") -> int:
    return int(struct.unpack_from(form, data, at)[0])


def _root(data: bytes) -> int:
    return _int(data, 0)


def _offset(data: bytes, table: int, field: int) -> int:
    """The place of a field, or 0 if the table lacks it."""
    places = table - _int(data, table, "<i")
    if places < 0 or 4 + 2 * field >= _int(data, places, "<H"):
        return 0
    inside = _int(data, places + 4 + 2 * field, "<H")
    return table + inside if inside else 0


def _number(data: bytes, table: int, field: int, form: str) -> int:
    at = _offset(data, table, field)
    return _int(data, at, form) if at else 0


def _read(path: Path) -> dict[str, Any]:
    """A JSON object in a dataset's folder."""
    refuse_endless(path)
    note_file(path)
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_LARGEST_JSON))
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _damaged(path, "it cannot be read as a JSON object")
    return found


def _list(found: object, path: Path) -> list[Any]:
    if not isinstance(found, list):
        raise _damaged(path, "a list in it is missing")
    return found


def _plain_name(name: object, path: Path) -> str:
    """A name in a dataset's folder; a path could lead anywhere."""
    if not isinstance(name, str) or not name or name in (".", "..") or "/" in name or "\0" in name:
        raise _damaged(path, f"it names {str(name)[:80]!r}, but rows must lie beside it")
    return name


def _damaged(path: Path, found: str) -> FormatError:
    return FormatError([Problem(str(path), found, "save the dataset again with save_to_disk")])
