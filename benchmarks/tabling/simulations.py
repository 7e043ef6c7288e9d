"""How often tests err and intervals hold, from simulations whose truth is known."""

from __future__ import annotations

from typing import Any

from tabling.common import markdown, read

# What counts as holding: 5 % and 95 %, give or take what a few thousand draws and small samples allow.
ERRORS, COVERAGES = (0.04, 0.06), (0.93, 0.97)
_OFTEN = 0.1


def statistics() -> str:
    """Test sets by kind, metric and size: old and new error and coverage in %; misses of the bar are bold."""
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for cell in read("statistics")["cells"]:
        groups.setdefault((cell["rows"], cell["metric"], cell["n"]), []).append(cell)
    rows = []
    for (kind, metric, n), cells in groups.items():
        told = [cell for cell in cells if cell["told"] >= _OFTEN]
        new = _range(told, "error", ERRORS) if told else "cannot tell"
        ends = [
            _range(cells, "error_old", None),
            new,
            _range(cells, "coverage_old", None),
            _range(cells, "coverage", COVERAGES),
        ]
        rows.append([kind, metric, f"{n:,}", *ends])
    header = ["rows", "metric", "n", "error, before", "error, now", "coverage, before", "coverage, now"]
    return markdown(header, rows)


def missed() -> list[dict[str, Any]]:
    """The cells whose new test or interval misses the bar."""
    cells = read("statistics")["cells"]
    return [cell for cell in cells if _misses(cell, "error", ERRORS) or _misses(cell, "coverage", COVERAGES)]


def _misses(cell: dict[str, Any], key: str, bar: tuple[float, float]) -> bool:
    rare = key == "error" and cell["told"] < _OFTEN
    return cell[key] is not None and not rare and not bar[0] <= cell[key] <= bar[1]


def _range(cells: list[dict[str, Any]], key: str, bar: tuple[float, float] | None) -> str:
    values = sorted(cell[key] for cell in cells if cell[key] is not None)
    if not values:
        return "–"
    ends = list(dict.fromkeys(f"{100 * value:.1f}" for value in (values[0], values[-1])))
    shown = "–".join(ends)
    return f"**{shown}**" if bar and not (bar[0] <= values[0] and values[-1] <= bar[1]) else shown
