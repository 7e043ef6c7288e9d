"""Plain tables: rows of cells as aligned text or Markdown, the first column left, the others right."""

from __future__ import annotations

from collections.abc import Sequence

# A header and rows of cells.
TextTable = tuple[tuple[str, ...], list[tuple[str, ...]]]


def align(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """One line per row under the header. Columns are two blanks apart, without trailing blanks."""
    widths = [max(len(row[at]) for row in (header, *rows)) for at in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The same table in Markdown. Bars inside cells are escaped."""
    lines = [
        "| " + " | ".join(cell.strip().replace("|", "\\|") for cell in row) + " |" for row in (header, *rows)
    ]
    return [lines[0], "|" + "|".join(["---", *["---:"] * (len(header) - 1)]) + "|", *lines[1:]]


def p_value(p: float) -> str:
    """A p-value as it is printed: three digits, never a zero."""
    return "< .001" if p < 0.001 else f"{p:.3f}"
