"""Write the tables of README and docs from benchmarks/results: between `<!-- table NAME -->` and `<!-- end
-->`.

python benchmarks/tables.py            rewrite
python benchmarks/tables.py --check    fail if a page is not what the results say
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
MARKED = re.compile(r"(<!-- table ([\w:.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def read(name: str) -> dict[str, Any]:
    """One result file."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf8"))
    return found


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def spread(setting: dict[str, Any], column: str) -> str:
    """Mean ± half of the 95 % t interval."""
    mean, interval = setting["mean"][column], setting["interval"][column]
    return f"{mean:.2f}" if interval is None else f"{mean:.2f} ± {(interval[1] - interval[0]) / 2:.2f}"


def experiment(name: str) -> str:
    """Every setting of an experiment: the seven tasks, average with interval, dev, chosen grid point."""
    result = read(name)
    tests = {(t["start"], t["setting"]): t["p"] for t in result["tests"] if t["column"] == "average"}
    rows = []
    for setting in result["settings"]:
        p = tests.get((setting["start"], setting["setting"]))
        chosen = ", ".join(
            f"{key.rpartition('.')[2]} {value:g}" for key, value in setting["overrides"].items()
        )
        dev = [value for value in setting["dev"] if value is not None]
        rows.append(
            [
                f"{setting['setting']} {setting['start']}".strip(),
                *(f"{setting['mean'][task]:.2f}" for task in TASKS if task in setting["mean"]),
                f"**{spread(setting, 'average')}**",
                "–" if p is None else f"{p:.3f}",
                f"{100 * sum(dev) / len(dev):.2f}",
                chosen or "–",
                str(len(setting["seeds"])),
            ]
        )
    return markdown(
        ["setting", *TASKS, "average", f"p against {result['baseline']}", "dev", "chosen on dev", "seeds"],
        rows,
    )


def headline() -> str:
    """The README's table: raw and trained encoders on sts7."""
    rows = []
    for model, raw in (("minilm", "sts7-minilm"), ("mpnet", "sts7-mpnet")):
        shown = {"minilm": "all-MiniLM-L6-v2", "mpnet": "all-mpnet-base-v2"}[model]
        if (RESULTS / f"{raw}.json").is_file():
            values = {task["name"]: task["value"] for task in read(raw)["tasks"]}
            rows.append(
                [
                    shown,
                    "as published",
                    *(f"{values[t]:.1f}" for t in TASKS),
                    f"{read(raw)['average']:.2f}",
                    "–",
                ]
            )
        for name, label in (
            (f"similarity-{model}", "`similarity`"),
            (f"similarity-{model}-leak", "the same, leak let in"),
        ):
            if (RESULTS / f"{name}.json").is_file():
                setting = read(name)["settings"][0]
                cells = [f"{setting['mean'][t]:.1f}" for t in TASKS]
                rows.append([shown, label, *cells, spread(setting, "average"), str(len(setting["seeds"]))])
    return markdown(["encoder", "training", *TASKS, "average", "seeds"], rows)


def speed() -> str:
    """Training speed against the peer."""
    result = read("train_speed")
    rows = []
    for precision, ratio in result["ratio"].items():
        runs = {r["side"]: r for r in result["runs"] if r["precision"] == precision}
        rows.append(
            [
                precision,
                f"**{ratio['median']:.2f}×**",
                ", ".join(f"{value:.2f}" for value in ratio["each"]),
                *(f"{runs[side]['dev']:.2f}" for side in ("likewise", "sentence-transformers")),
            ]
        )
    return markdown(
        ["precision", "pairs/s ratio", "each turn", "dev, Likewise", "dev, sentence-transformers"], rows
    )


TABLES: dict[str, Callable[[], str]] = {"headline": headline, "speed": speed}


def make(name: str) -> str:
    """A table by its marker: a name of ours, or `experiment:RESULT`."""
    kind, _, argument = name.partition(":")
    return experiment(argument) if kind == "experiment" else TABLES[name]()


def main() -> None:
    """Rewrite or check all pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        old = page.read_text(encoding="utf8")
        new = MARKED.sub(lambda m: m.group(1) + make(m.group(2)) + m.group(3), old)
        if new != old:
            stale.append(str(page.relative_to(ROOT)))
            if not check:
                page.write_text(new, encoding="utf8")
    if stale:
        print(("stale: " if check else "rewritten: ") + ", ".join(stale))
    if check and stale:
        sys.exit(1)


if __name__ == "__main__":
    main()
