"""The model card: the README.md of a model folder, from what was measured and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likewise.records import Relation
from likewise.wording import counted, dev_score


@dataclass(frozen=True, slots=True)
class CardParts:
    """What a family says on the cards of its models.

    `tag` is the hub's word for the task, `use` the lines on how it is asked, `loads` the sentence on what
    else loads the folder, `row` what a training row is called.
    """

    tag: str
    use: Sequence[str]
    loads: str
    row: str = "pair"


def model_card(name: str, document: Mapping[str, Any], parts: CardParts) -> str:
    """What the model answers, how it is asked, what it learnt from, what else loads it."""
    lines = [
        "---",
        "library_name: sentence-transformers",
        f"tags: [likewise, {parts.tag}]",
        "---",
        f"# {name}",
        "",
        *parts.use,
        "",
        *_stages(document, parts.row),
        "",
        parts.loads,
        "",
    ]
    return "\n".join(lines)


def relations_table(document: Mapping[str, Any]) -> list[str]:
    """The relations that a model answers, as a table."""
    return [
        "Trained with Likewise. It answers:",
        "",
        "| relation | scale | answered by | description |",
        "|---|---|---|---|",
        *(_row(Relation.from_dict(entry), document["source"]) for entry in document["relations"]),
    ]


def pair_example(name: str) -> list[str]:
    """How pairs are scored in Python."""
    return python_example(name, "load", 'score([("first text", "second text")])')


def text_example(name: str, task: Relation) -> list[str]:
    """How single texts are classified in Python."""
    return python_example(name, "load_classifier", f'classify(["a text"], task={_quoted(task.name)})')


def python_example(name: str, load: str, ask: str) -> list[str]:
    """Lines of Python that load a model and ask it."""
    loads = f"model = likewise.{load}({_quoted(name)})"
    return ["```python", "import likewise", loads, f"model.{ask}", "```"]


def _quoted(text: str) -> str:
    """A text between double quotes, as Python and the reader want it."""
    return json.dumps(text, ensure_ascii=False)


def _row(relation: Relation, source: Mapping[str, str]) -> str:
    scale = relation.scale.replace("|", "\\|")
    return f"| {relation.name} | {scale} | {source[relation.name]} | {relation.description or '–'} |"


def _stages(document: Mapping[str, Any], row: str) -> list[str]:
    lines = []
    recipe = document.get("recipe", {}).get("stage", [])
    for number, stage in enumerate(document.get("stages", [])):
        selects = number >= len(recipe) or recipe[number].get("select", True)
        best = stage.get("best_value")
        lines.append(
            f"- stage `{stage['name']}`: {counted(stage['pairs'], row)}, {counted(stage['steps'], 'step')}"
            + (
                f", best dev score {dev_score(best)} at step {stage['best_step']:,}"
                if best is not None
                else ""
            )
            + (", the last step kept" if best is not None and not selects else "")
        )
        lines += [f"  - {line}" for line in stage.get("leakage", [])]
    return lines
