"""How clear the way through the house is, before and after its kinds had a seam."""

from __future__ import annotations

from tabling.common import markdown, read


def house() -> str:
    """Files, lines, switches and ways, as `benchmarks/house.py` counted them."""
    found = read("house")
    before, after = found["before"], found["after"]

    def row(name: str, *keys: str) -> list[str]:
        values = []
        for side in (before, after):
            value = side
            for key in keys:
                value = value[key]
            values.append(f"{value:,}")
        return [name, *values]

    kinds = [
        ", ".join(f"{kind} {count}" for kind, count in side["naming"].items()) for side in (before, after)
    ]
    rows = [
        row("places that tell kinds apart", "switches"),
        row("… outside the registry, `schema/`, `kinds/` and `predict/`", "switches_outside"),
        ["files that name a kind's classes", *kinds],
        row("`train FILE`: functions", "way", "train FILE", "functions"),
        row("`train FILE`: files", "way", "train FILE", "files"),
        row("`train FILE`: times its table is opened", "way", "train FILE", "opened"),
        row("`score FILE`: functions", "way", "score FILE", "functions"),
        row("`score FILE`: files", "way", "score FILE", "files"),
        row("files of `src`", "files"),
        row("lines of `src`", "lines"),
    ]
    return markdown(["", "before", "after"], rows)
