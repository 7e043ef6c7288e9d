"""What reading long texts whole, in windows, gains and costs."""

from __future__ import annotations

from typing import Any

from tabling.common import markdown, read

_TASKS = {
    "last": "find the document by a paraphrase of its last sentence (Wikipedia)",
    "first": "find the document by a paraphrase of its first sentence (Wikipedia)",
    "title": "find the article by its title (Reuters)",
    "topic": "topic of an article (Reuters)",
    "sentiment": "sentiment of a review (IMDB)",
}


def windows() -> str:
    """Accuracy of the raw encoder on texts beyond its limit, cut and in windows."""
    result = read("long_texts")
    rows = []
    for task, name in _TASKS.items():
        found = result[task]
        free = found.get("by_chance", found.get("majority"))
        p = found["p"]
        shown = "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")
        rows.append(
            [
                name,
                f"{found['texts']}",
                f"{100 * free:.1f}",
                _share(found["cut"]),
                _share(found["chunk"]),
                shown,
            ]
        )
    header = ["task", "long texts", "chance or majority", "`cut`", "`chunk`", "p of the difference"]
    return markdown(header, rows)


def _share(found: dict[str, Any]) -> str:
    """An accuracy in % with its 95 % interval."""
    return f"{100 * found['accuracy']:.1f} ({100 * found['low']:.0f} to {100 * found['high']:.0f})"
