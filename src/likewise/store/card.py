"""The model card: the README.md of a model folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from likewise.records import Relation


def model_card(name: str, document: Mapping[str, Any]) -> str:
    """The README of a model folder, from what was measured and nothing else."""
    lines = [
        "---",
        "library_name: sentence-transformers",
        "tags: [likewise, sentence-similarity]",
        "---",
        f"# {name}",
        "",
    ]
    lines += [
        "Trained with Likewise. It answers:",
        "",
        "| relation | scale | answered by | description |",
        "|---|---|---|---|",
    ]
    for entry in document["relations"]:
        relation = Relation.from_dict(entry)
        source = document["source"][relation.name]
        lines.append(f"| {relation.name} | {relation.scale} | {source} | {relation.description or '–'} |")
    lines += ["", "```python", "import likewise", f'model = likewise.load("{name}")']
    lines += ['model.score([("first text", "second text")])', "```", ""]
    for stage in document.get("stages", []):
        best = stage.get("best_value")
        lines.append(
            f"- stage `{stage['name']}`: {stage['pairs']:,} pairs, {stage['steps']:,} steps"
            + (f", best dev score {best:.4f} at step {stage['best_step']:,}" if best is not None else "")
        )
        lines += [f"  - {line}" for line in stage.get("leakage", [])]
    lines += ["", _how_it_loads(document), ""]
    return "\n".join(lines)


def _how_it_loads(document: Mapping[str, Any]) -> str:
    if "encoder_function" in document:
        name = document["encoder_function"]["name"]
        return f"Holds layers only: load it with the encoder `{name}`, likewise.load(folder, encoder=…)."
    if document.get("recipe", {}).get("encoder", {}).get("peepholes"):
        return "Its LSTM has peepholes, which sentence-transformers does not know: load it with likewise."
    return "Loads with `SentenceTransformer` too: heads in `likewise/` are ignored there, and lost on saving."
