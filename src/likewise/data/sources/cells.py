"""Members of a bundle as rows of cells, or as one text: what every layout is read with."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from likewise.data.sources.bundle import Bundle, Member
from likewise.errors import FormatError, Problem

RowFields = dict[str, object]

# No review, story or list of captions is longer than this; the files are read whole, one after the other.
_LARGEST_FILE = 256 * 2**20
_BLOCK = 2**16


def table(
    bundle: Bundle,
    *,
    member: str,
    delimiter: str = "\t",
    quoted: bool = False,
    columns: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    take: Sequence[str] = (),
    where: Mapping[str, str] | None = None,
) -> Iterator[RowFields]:
    """Rows of a delimited file, with its header or with the given columns.

    `rename` gives columns other names, `take` chooses columns after that, and `where` keeps rows by the value
    of a published column. A row that lacks cells is an error.
    """
    name = bundle.require(member).name
    rows = cell_rows(bundle, member, delimiter, quoted=quoted)
    names = list(columns) or [cell.strip() for cell in next(rows, (0, []))[1]]
    wanted = {key: (rename or {}).get(key, key) for key in names}
    for number, cells in rows:
        if len(cells) < len(names) - (1 if names[-1:] == ["label"] else 0):
            found = f"there are {len(cells)} fields, but {len(names)} are expected ({', '.join(names)})"
            raise FormatError([Problem(f"{name}:{number}", found, "use the file as published")])
        row = dict(zip_longest(names, cells[: len(names)], fillvalue=""))
        if any(row.get(column) != value for column, value in (where or {}).items()):
            continue
        fields: RowFields = {wanted[column]: cell.strip() for column, cell in row.items()}
        yield {column: fields.get(column, "") for column in take} if take else fields


def cell_rows(
    bundle: Bundle, member: str, delimiter: str, *, quoted: bool
) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row that is not blank, with the number of its line."""
    lines = bundle.lines(member)
    if not quoted:
        yield from ((n, line.split(delimiter)) for n, line in enumerate(lines, start=1) if line.strip())
        return
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter)
    try:
        yield from ((reader.line_num, cells) for cells in reader if cells)
    except csv.Error as error:
        problem = Problem(f"{member}:{reader.line_num}", f"this is no CSV ({error})", "download it again")
        raise FormatError([problem]) from None


def whole_text(bundle: Bundle, member: Member, *, encoding: str = "utf-8", errors: str = "strict") -> str:
    """All text of a member, which may not be larger than any published file is."""
    blocks, size = [], 0
    with bundle.open(member) as stream:
        # By blocks: one call for the largest file would reserve as much memory for the smallest.
        while size <= _LARGEST_FILE and (block := stream.read(_BLOCK)):
            blocks.append(block)
            size += len(block)
    content = b"".join(blocks)
    if size > _LARGEST_FILE:
        found = f"this has more than {_LARGEST_FILE // 2**20} MiB, which no published file has"
        raise FormatError([Problem(member.name, found, "download it again")])
    try:
        return content.decode(encoding, errors)
    except UnicodeDecodeError as error:
        found = f"this is not {encoding.upper()} ({error.reason})"
        raise FormatError([Problem(member.name, found, "download it again")]) from None
