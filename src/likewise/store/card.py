"""The model card, README.md in a model folder. It contains only what was measured.

Names, labels and descriptions come from other people's files. On the card they are text, never markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likewise.records import Relation
from likewise.wording import counted, dev_score

# What Markdown or HTML would read; a line of ours has none of it outside code.
_MARKUP = re.compile(r"[\\`*|\[\]<>&]")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
# Control characters, marks that turn the direction of writing around, halves of surrogate pairs.
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class CardParts:
    """What a model family writes on the cards of its models.

    `tag` is the hub's name of the task. `use` are the lines that show how to ask the model. `loads` is the
    sentence on other libraries that load the folder. `row` is the noun for a training row.
    """

    tag: str
    use: Sequence[str]
    loads: str
    row: str = "pair"


def model_card(name: str, document: Mapping[str, Any], parts: CardParts) -> str:
    """The model card: what the model answers, how to use it, its training data, and what else loads it."""
    base = document.get("base")
    lines = [
        "---",
        *(["library_name: sentence-transformers"] if base is None else _on_the_hub(base)),
        f"tags: [likewise, {parts.tag}]",
        "---",
        f"# {as_text(name)}",
        "",
        *parts.use,
        "",
        *_stages(document, parts.row),
        "",
        *_gains(document),
        _one_line(parts.loads if base is None else _how_a_delta_loads(base)),
        "",
    ]
    return "\n".join(lines)


def _on_the_hub(base: Mapping[str, Any]) -> list[str]:
    """What the hub is told of a delta; the base is named only if it is a hub model."""
    named = [f"base_model: {base['name']}"] if "/" in base["name"] else []
    return ["library_name: likewise", *named]


def _how_a_delta_loads(base: Mapping[str, Any]) -> str:
    """The line of the card that says what a folder without weights needs."""
    return (
        f"This folder holds the change of the weights of {as_code(base['name'])}, and not the weights. Load "
        "it with `likewise.load`, which joins the two. `SentenceTransformer` cannot load it. For a folder "
        'that it loads, save the loaded model again: `model.save("whole-model")`.'
    )


def relations_table(document: Mapping[str, Any]) -> list[str]:
    """The relations that a model answers, as a table."""
    trained = "This model was trained with Likewise. It answers these relations:"
    return [
        trained
        if document.get("recipe")
        else "This encoder was saved by Likewise. It answers this relation:",
        "",
        "| relation | scale | source | description |",
        "|---|---|---|---|",
        *(_row(Relation.from_dict(entry), document["source"]) for entry in document["relations"]),
    ]


def pair_example(name: str) -> list[str]:
    """Python lines that score pairs."""
    return python_example(name, "load", 'score([("first text", "second text")])')


def text_example(name: str, task: Relation) -> list[str]:
    """Python lines that classify single texts."""
    return python_example(name, "load_classifier", f'classify(["a text"], task={_quoted(task.name)})')


def python_example(name: str, load: str, ask: str) -> list[str]:
    """Python lines that load a model and ask it."""
    loads = f"model = likewise.{load}({_quoted(name)})"
    return ["```python", "import likewise", loads, f"model.{ask}", "```"]


def as_text(text: str) -> str:
    """A text inside Markdown, such as in a table cell, that reads as it is and is never markup."""
    return _MARKUP.sub(_escaped, _one_line(text))


def as_code(text: str) -> str:
    """A text between backticks, with none of its own."""
    return f"`{_one_line(text).replace('`', chr(39))}`"


def _one_line(text: str) -> str:
    """A text in one line, with invisible characters spelt out."""
    return _UNSEEN.sub(_spelt, " ".join(text.splitlines()))


def _spelt(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def _escaped(found: re.Match[str]) -> str:
    return _ENTITIES.get(found[0]) or f"\\{found[0]}"


def _quoted(text: str) -> str:
    """A text between double quotes, for Python and for the reader. No backtick can end its block."""
    written = json.dumps(text, ensure_ascii=False).replace("`", "\\x60")
    return _UNSEEN.sub(_spelt, written)


def _row(relation: Relation, source: Mapping[str, str]) -> str:
    cells = (relation.name, relation.scale, source[relation.name], relation.description or "–")
    return f"| {' | '.join(map(as_text, cells))} |"


def _gains(document: Mapping[str, Any]) -> list[str]:
    """The gains of training, relation by relation."""
    lines = [f"- {as_text(gain['sentence'])}" for gain in document.get("gains", [])]
    title = "Results before and after training, on the dev set that also selected the step:"
    return [title, "", *lines, ""] if lines else []


def _stages(document: Mapping[str, Any], row: str) -> list[str]:
    lines = []
    recipe = document.get("recipe", {}).get("stage", [])
    for number, stage in enumerate(document.get("stages", [])):
        selects = number >= len(recipe) or recipe[number].get("select", True)
        best = stage.get("best_value")
        seen = f"{counted(stage['pairs'], stage.get('unit', row))}, {counted(stage['steps'], 'step')}"
        lines.append(
            f"- stage {as_code(stage['name'])}: {seen}"
            + (
                f", best dev score {dev_score(best)} at step {stage['best_step']:,}"
                if best is not None
                else ""
            )
            + (", but the last step was kept" if best is not None and not selects else "")
        )
        lines += [f"  - {as_text(line)}" for line in stage.get("leakage", [])]
    return lines
