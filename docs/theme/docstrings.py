"""Docstrings as the reference shows them: aligned columns of names and meanings become lists."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROW = re.compile(r"(\S+) {2,}(\S.*)")


class AlignedColumns(griffe.Extension):
    """Turn blocks of `name    meaning` lines, which Markdown would run together, into lists."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = "\n\n".join(map(listed, obj.docstring.value.split("\n\n")))


def listed(block: str) -> str:
    """A block as a list if each of its lines is a row of two columns."""
    rows = [ROW.fullmatch(line) for line in block.split("\n")]
    if not all(rows):
        return block
    return "\n".join(f"- `{row[1]}`: {row[2]}" for row in rows if row)
