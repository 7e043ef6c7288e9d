"""The model card: the README.md of a model folder, from what was measured and nothing else."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from likewise.records import Relation
from likewise.wording import counted, dev_score

_PAIR = 'score([("first text", "second text")])'


def model_card(name: str, document: Mapping[str, Any]) -> str:
    """What the model answers, how it is asked, what it learnt from, what else loads it."""
    lines = [
        "---",
        "library_name: sentence-transformers",
        f"tags: [likewise, {_tag(document)}]",
        "---",
        f"# {name}",
        "",
        *_use(name, document),
        "",
        *_stages(document),
        "",
        _how_it_loads(document),
        "",
    ]
    return "\n".join(lines)


def _tag(document: Mapping[str, Any]) -> str:
    return "text-classification" if {"labels", "joint"} & document.keys() else "sentence-similarity"


def _use(name: str, document: Mapping[str, Any]) -> list[str]:
    """What it answers, and the lines of Python that ask it."""
    if "injected" in document:
        return _use_of_taught(name, two_tower=bool(document["injected"].get("two_tower")))
    load, ask = "load", _PAIR
    if "labels" in document or document.get("joint", {}).get("texts") == 1:
        first = Relation.from_dict(document["relations"][0])
        load, ask = "load_classifier", f'classify(["a text"], task={_quoted(first.name)})'
        if not first.labels:
            load, ask = "load", 'score(["a text"])'
    return [
        "Trained with Likewise. It answers:",
        "",
        "| relation | scale | answered by | description |",
        "|---|---|---|---|",
        *(_row(Relation.from_dict(entry), document["source"]) for entry in document["relations"]),
        "",
        *_python(name, load, ask),
    ]


def _use_of_taught(name: str, *, two_tower: bool) -> list[str]:
    """An encoder that was taught phrases: its cosine is the answer, or it is to be fine-tuned."""
    if two_tower:
        said = "An encoder that Likewise taught phrases of paraphrases, texts apart. Its cosine answers:"
        return [said, "", *_python(name, "load", _PAIR)]
    return [
        "An encoder that Likewise taught phrases of paraphrases. It answers nothing yet; fine-tune it:",
        "",
        "```bash",
        f"likewise train finetune --encoder {shlex.quote(name)} --data ratings.csv --output my-model",
        "```",
    ]


def _python(name: str, load: str, ask: str) -> list[str]:
    loads = f"model = likewise.{load}({_quoted(name)})"
    return ["```python", "import likewise", loads, f"model.{ask}", "```"]


def _quoted(text: str) -> str:
    """A text between double quotes, as Python and the reader want it."""
    return json.dumps(text, ensure_ascii=False)


def _row(relation: Relation, source: Mapping[str, str]) -> str:
    scale = relation.scale.replace("|", "\\|")
    return f"| {relation.name} | {scale} | {source[relation.name]} | {relation.description or '–'} |"


def _stages(document: Mapping[str, Any]) -> list[str]:
    lines = []
    recipe = document.get("recipe", {}).get("stage", [])
    single = "labels" in document or document.get("joint", {}).get("texts") == 1
    row = "text" if single else "pair"
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


def _how_it_loads(document: Mapping[str, Any]) -> str:
    if "encoder_function" in document:
        name = document["encoder_function"]["name"]
        return f"Holds layers only: load it with the encoder `{name}`, likewise.load(folder, encoder=…)."
    if document.get("recipe", {}).get("encoder", {}).get("peepholes"):
        return "Its LSTM has peepholes, which sentence-transformers does not know: load it with likewise."
    if document.get("joint", {}).get("texts") == 1:
        return 'Loads with transformers too: `pipeline("text-classification", model=folder)`.'
    if "joint" in document:
        return "Loads with `CrossEncoder` and with transformers' `AutoModelForSequenceClassification` too."
    return "Loads with `SentenceTransformer` too: heads in `likewise/` are ignored there, and lost on saving."
