"""A recipe from a table's columns: what `likewise train pairs.csv` runs, printed before it does.

One graded relation is learnt as the shipped `similarity` recipe learns it. Several, or classes, get a head
each, as in the shipped relations recipes, trained together (multi-label).
"""

from __future__ import annotations

import logging
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import tomli_w

from likewise.data import count_rows, infer_relations, open_table
from likewise.data.columns import find_any_texts
from likewise.data.ratings import find_label_columns
from likewise.data.reading import find_named_corpus, no_rows
from likewise.data.values import is_missing, to_number
from likewise.errors import DataError, Problem
from likewise.recipes.reading import shipped_document
from likewise.recipes.schema import Recipe
from likewise.records import Relation

_log = logging.getLogger("likewise")

# So many rows are looked through for labels that are not learnt.
_LOOKED_AT = 10_000
# Below so many rows batches are small and epochs many, until about so many pairs were seen.
_FEW, _FEW_PAIRS_SEEN = 1000, 2500
# A joint encoder learns from the same rows for longer: on dev 12 epochs of 1,000 pairs are better than 4
# (experiments paraphrase-epochs-*), 32 hardly more.
_JOINT_ROWS_SEEN, _MOST_EPOCHS = 12_000, 20
# Beyond so many rows nothing above depends on how many there are.
_MANY = _JOINT_ROWS_SEEN // 4
# A list as tomli_w writes it, one entry a line, and how long it may be on one.
_LIST, _LINE = re.compile(r"\[\n((?:    [^\n]+,\n)+)\]"), 90
_TEXTS = ("text_a", "text_b")
_STAGE_KEYS = ("objective", "data", "dev", "filter_against", "name")


def infer_document(
    source: object,
    *,
    name: str,
    declared: Sequence[str] = (),
    text_a: str | None = None,
    text_b: str | None = None,
    data_dir: str | Path | None = None,
) -> dict[str, Any]:
    """A recipe document for one table of rated pairs; `name` is what the recipe calls the table."""
    texts = () if find_named_corpus(source) else _require_pairs(source, name, text_a, text_b)
    relations = infer_relations(source, declared=declared, text_a=text_a, text_b=text_b, data_dir=data_dir)
    if texts and relations and not declared:
        _tell_guesses(source, texts, relations)
    if not relations:
        raise _which_relation(source, name, relations, texts)
    entry: dict[str, Any] = {"source": name}
    entry |= {key: value for key, value in zip(_TEXTS, (text_a, text_b), strict=True) if value}
    stage = {
        "name": "pairs",
        "data": [entry],
        **_stage_defaults(relations, _count_rated(source, relations)),
        "objective": _objectives(relations),
    }
    return {
        "name": Path(name).name.partition(".")[0] or "pairs",
        "method": "regression" if _alone(relations) else "relations",
        "encoder": {"name": "default", "normalise": _alone(relations)},
        "relation": {relation.name: _relation_table(relation) for relation in relations},
        "stage": [stage],
    }


def _require_pairs(source: object, name: str, text_a: str | None, text_b: str | None) -> tuple[str, ...]:
    """The two text columns; of a table of single texts say who learns those."""
    found = find_any_texts(open_table(source).columns, text_a, text_b, source=name)
    if len(found) == 1:
        remedy = (
            "for pairs name both: --text-a NAME --text-b NAME; single texts are learnt by "
            f"likewise train finetune --data {shlex.quote(name)}"
        )
        raise DataError([Problem(name, f"only {found[0]!r} is known to hold texts", remedy)])
    return found


def _tell_guesses(source: object, texts: Sequence[str], relations: Sequence[Relation]) -> None:
    """No label is passed over, and no number that may be one is read as a scale, without a word."""
    table = open_table(source)
    used = [*texts, *(relation.name for relation in relations)]
    rows = list(islice(table, _LOOKED_AT))
    for column, labels in find_label_columns(rows, [c for c in table.columns if c not in used]).items():
        shown = ", ".join(labels[:3]) + (", …" if len(labels) > 3 else "")
        option = _relation_option(column, "classes")
        _log.warning("column %r (%s) is not learnt; if it is a label: %s", column, shown, option)
    for relation in relations:
        cells = (row.fields.get(relation.name) for row in rows)
        values = {to_number(cell) for cell in cells if not is_missing(cell)}
        # 0 and 1 mostly mean no and yes, 0 to 2 the classes of NLI.
        if relation.kind == "graded" and values and values <= {0, 1, 2}:
            shown = ", ".join(f"{value:g}" for value in (0, 1, 2) if value in values)
            scale, option = relation.scale, _relation_option(relation.name, "classes")
            said = "column %r holds only %s, read as a scale %s that rises with likeness; as labels: %s"
            _log.warning(said, relation.name, shown, scale, option)


def _count_rated(source: object, relations: Sequence[Relation]) -> int | None:
    """How many rows of a table have a rating, as far as settings depend on it; None where nobody can tell.

    Rows without one do not count: a few ratings in a long table are still a small table.
    """
    if count_rows(source) is None:
        return None
    names = [relation.name for relation in relations]
    rated = (1 for row in open_table(source) if any(not is_missing(row.fields.get(name)) for name in names))
    return sum(islice(rated, _MANY))


def kind_of_stage(document: Mapping[str, Any]) -> str:
    """What a recipe's first stage does: "joint", "inject", …; nothing for rated pairs."""
    stages = document.get("stage") or [{}]
    return str(stages[0].get("kind", "")) if isinstance(stages[0], Mapping) else ""


def with_own_paraphrases(
    document: Mapping[str, Any],
    source: object,
    *,
    name: str,
    texts: tuple[str | None, str | None] = (None, None),
) -> dict[str, Any]:
    """A recipe that teaches phrases with a user's own table of paraphrases, or file of links, as its data.

    Its leak filter goes too: it is against corpora that only those of the recipe's own data may have.
    """
    entry = {"source": name, **{key: column for key, column in zip(_TEXTS, texts, strict=True) if column}}
    stage = {**document["stage"][0], "data": [entry], "filter_against": []}
    rows = count_rows(source)
    if rows is not None and rows < _FEW:
        stage["batch_size"] = 16  # in batches of 100 a small table would be a step or two an epoch
    # Once an epoch: in steps a small table would be looked at too seldom to stop by.
    stage.pop("evaluate_every", None)
    said = f"Phrase alignments of {name} taught to a joint encoder; its size stays the same"
    return {**document, "description": said, "stage": [stage, *document["stage"][1:]]}


def with_own_task(
    document: Mapping[str, Any],
    source: object,
    *,
    name: str,
    declared: Sequence[str] = (),
    texts: tuple[str | None, str | None] = (None, None),
    data_dir: str | Path | None = None,
) -> dict[str, Any]:
    """A joint recipe with a user's own table of pairs or single texts in place of its data and relations."""
    named = find_named_corpus(source)
    columns = () if named else open_table(source).columns
    found = named[0].texts if named else find_any_texts(columns, *texts, source=name)
    relations = infer_relations(
        source,
        declared=declared,
        text_a=texts[0],
        text_b=texts[1],
        data_dir=data_dir,
        pairs=len(found) == 2,
    )
    if len(relations) != 1:
        raise _which_relation(source, name, relations, found)
    [relation] = relations
    if not named and not declared:
        _tell_guesses(source, found, relations)
    # A named corpus knows its own columns.
    entry = {"source": name, **({} if named else dict(zip(_TEXTS, found, strict=False)))}
    stage = {**document["stage"][0], "relation": relation.name, "data": [entry], "dev": []}
    stage |= {"filter_against": [], "dev_share": 0.1, **_joint_settings(_count_rated(source, relations))}
    kept = {key: value for key, value in document.items() if key != "evaluation"}
    return {**kept, "relation": {relation.name: _relation_table(relation)}, "stage": [stage]}


def _which_relation(
    source: object, name: str, relations: Sequence[Relation], texts: Sequence[str]
) -> DataError:
    """It is not clear what is to be learnt: say what there is to choose from."""
    if relations:
        several = ", ".join(relation.name for relation in relations)
        found = f"rates {several}, and one relation is learnt"
        remedy = " or ".join(
            _relation_option(relation.name, relation.scale if relation.kind == "graded" else "classes")
            for relation in relations
        )
    else:
        table = open_table(source)
        if next(iter(table), None) is None:
            return DataError([no_rows(table)])
        columns = [column for column in table.columns if column not in texts]
        found = f"no column looks like a rating; beside the texts it has {', '.join(columns) or 'none'}"
        remedy = f"for labels {_relation_option(columns[0] if columns else 'NAME', 'classes')}"
    return DataError([Problem(name, found, f"name it: {remedy}")])


def _relation_option(name: str, scale: str) -> str:
    """What the command line takes, fit to be copied into a shell."""
    return f"--relation {shlex.quote(f'{name}:{scale}')}"


def _stage_defaults(relations: Sequence[Relation], rows: int | None) -> dict[str, Any]:
    shipped = shipped_document("similarity" if _alone(relations) else "relations-activity")["stage"][0]
    settings = {key: value for key, value in shipped.items() if key not in _STAGE_KEYS}
    return settings if rows is None else settings | settings_for_few(rows)


def settings_for_few(rows: int) -> dict[str, Any]:
    """Batch size and epochs of a small table: in the shipped ones it would be a handful of steps."""
    if rows >= _FEW:
        return {}
    return {"batch_size": 16, "epochs": min(_MOST_EPOCHS, max(4, math.ceil(_FEW_PAIRS_SEEN / max(1, rows))))}


def _joint_settings(rows: int | None) -> dict[str, Any]:
    """The same for a joint encoder; None, a table whose length is not known, counts as long."""
    if rows is None:
        return {}
    epochs = min(_MOST_EPOCHS, math.ceil(_JOINT_ROWS_SEEN / max(1, rows)))
    return settings_for_few(rows) | ({"epochs": epochs} if epochs > 4 else {})


def _alone(relations: Sequence[Relation]) -> bool:
    return len(relations) == 1 and relations[0].kind == "graded"


def _objectives(relations: Sequence[Relation]) -> list[dict[str, Any]]:
    if _alone(relations):
        shipped = shipped_document("similarity")["stage"][0]["objective"]
        return [{**objective, "relation": relations[0].name} for objective in shipped]
    return [_head_of(relation) for relation in relations]


def _head_of(relation: Relation) -> dict[str, Any]:
    """Head and loss as in the shipped recipes, and the cosine: with few rows it is most of what is known.

    A label may depend on which text comes first, so its head sees both.
    """
    if relation.kind == "classes":
        made = {
            "head": "classes",
            "loss": "cross_entropy",
            "pairing": ["u", "v", "absdiff", "prod", "cosine"],
        }
    else:
        made = {"head": "distribution", "loss": "kl_grid", "pairing": ["prod", "absdiff", "cosine"]}
    return {"relation": relation.name, **made, "scale_features": True}


def _relation_table(relation: Relation) -> dict[str, Any]:
    if relation.kind == "graded":
        table: dict[str, Any] = {"lo": relation.lo, "hi": relation.hi}
        return table if relation.step == 1 else {**table, "step": relation.step}
    table = {"kind": relation.kind, "labels": list(relation.labels)}
    return table if relation.kind == "classes" else {**table, "positions": list(relation.positions)}


def to_toml(document: Mapping[str, Any]) -> str:
    """A recipe document as TOML text, short lists on one line."""
    return _LIST.sub(_on_one_line, tomli_w.dumps(_without_none(document)))


def _on_one_line(found: re.Match[str]) -> str:
    line = "[" + ", ".join(entry.strip().rstrip(",") for entry in found[1].splitlines()) + "]"
    return line if len(line) <= _LINE else found[0]


def recipe_toml(recipe: Recipe) -> str:
    """A validated recipe as TOML, with what was said and without what was left to defaults."""
    return to_toml(recipe.model_dump(mode="json", exclude_unset=True))


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(entry) for key, entry in value.items() if entry is not None}
    return [_without_none(entry) for entry in value] if isinstance(value, list | tuple) else value
