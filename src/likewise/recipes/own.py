"""Recipes for a user's table: what `--data` changes in a recipe, and the recipe that `train FILE` runs."""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tomli_w

from likewise.arguments import listed_names
from likewise.data.own import OwnTable
from likewise.errors import DataError, LikewiseError, Problem, UsageError
from likewise.recipes.reading import set_value
from likewise.registry import all_kinds, resolve_class
from likewise.schema.base import Adopted, Stage
from likewise.schema.recipe import Recipe, parse_recipe
from likewise.spelling import spelt, spelt_call, spelt_together

_log = logging.getLogger("likewise")
# The words for labels: one text or several for each.
LabelTexts = Mapping[str, str | Sequence[str]]

# A list as tomli_w writes it, one entry a line, and how long it may be on one.
_LIST, _LINE = re.compile(r"\[\n((?:    [^\n]+,\n)+)\]"), 90


def with_own_table(
    document: Mapping[str, Any],
    where: str,
    table: OwnTable,
    *,
    changes: Mapping[str, Any],
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """A recipe whose last stage that can learn from a user's table takes the table as its data.

    The other stages stay, as pre-training. The stage's own dev sets and leak filter and the recipe's
    evaluation are removed, because they belong to the recipe's data.
    """
    recipe = _settled(document, where, table, changes)
    known = {name: spec.model_dump(mode="json", exclude_unset=True) for name, spec in recipe.relation.items()}
    reasons = []
    for number, stage in reversed(list(enumerate(recipe.stage))):
        found = stage.adopt(table, known)
        if isinstance(found, Adopted):
            _tell(table, found, tell)
            return _adopting(recipe, document, number, found, known)
        reasons.append(f"stage.{number} ({stage.kind}): {found}")
    told = "; ".join(reversed(reasons))
    found = f"no stage of recipe {recipe.name} can learn from this table: {told}"
    raise DataError([Problem(table.name, found, _remedy(table, recipe))])


def _remedy(table: OwnTable, recipe: Recipe) -> str:
    """The remedy for a table that no stage can learn from."""
    if len(table.texts) == 1 and not any(1 in stage.texts for stage in recipe.stage):
        both = spelt_together(text_a="NAME", text_b="NAME")
        pairs = f"if the table holds pairs, name both text columns ({both})"
        return f"{pairs}; for single texts use the recipe finetune or labels-domain"
    if len(table.texts) == 2 and not any(2 in stage.texts for stage in recipe.stage):
        alone = spelt_call("train", table.name)
        return f"for pairs use the recipe similarity, relations-sick or finetune, or {alone}"
    if table.declared:
        return f"declare another column, leave {spelt('relations')} out, or use another recipe"
    declared = spelt("relations", "NAME:lo..hi")
    return f"declare what a column holds ({declared} or NAME:classes), or use another recipe"


def _settled(document: Mapping[str, Any], where: str, table: OwnTable, changes: Mapping[str, Any]) -> Recipe:
    """The recipe in which stages are tried: with the overrides, unless they fit only the adapted recipe."""
    changed = _filled(document, table)
    try:
        for path, value in changes.items():
            set_value(changed, path, value)
        return parse_recipe(changed, where)
    except LikewiseError:
        return parse_recipe(_filled(document, table), where)


def _filled(document: Mapping[str, Any], table: OwnTable) -> dict[str, Any]:
    """A recipe that can be validated although its stages may leave their data to the user's table."""
    made = copy.deepcopy(dict(document))
    for stage in made.get("stage") or ():
        if isinstance(stage, dict):
            for key, value in Stage.shape_of(stage).left_to(table.name).items():
                stage.setdefault(key, value)
    return made


def _tell(table: OwnTable, found: Adopted, tell: Callable[[str], None]) -> None:
    """Report what was guessed about the table and what is left out."""
    for line in table.guesses:
        _log.warning(line)
    for line in found.told:
        tell(line)


def _adopting(
    recipe: Recipe,
    document: Mapping[str, Any],
    number: int,
    found: Adopted,
    known: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    others = {
        name
        for place, stage in enumerate(recipe.stage)
        if place != number
        for name in (*(relation for _, relation in stage.named()), *stage.rates(known))
    }
    kept = {
        name: dict(spec) for name, spec in known.items() if name in others and name not in found.relations
    }
    stages = [dict(stage) for stage in document["stage"]]
    changed = {**stages[number], **found.stage}
    stages[number] = {key: value for key, value in changed.items() if value is not None}
    made = {key: value for key, value in document.items() if key not in ("evaluation", "relation")}
    made |= {"description": found.description} if found.description else {}
    # A stage that names no relation takes the first: it stays the first.
    relations = {**kept, **{name: dict(spec) for name, spec in found.relations.items()}}
    return {**made, **({"relation": relations} if relations else {}), "stage": stages}


def recipe_for_table(table: OwnTable) -> dict[str, Any]:
    """A whole recipe for a table, of the last registered stage kind that can learn from it."""
    reasons = []
    for name, kind in reversed(list(all_kinds().items())):
        found = resolve_class(kind.spec).infer(table)
        if not isinstance(found, str):
            for line in table.guesses:
                _log.warning(line)
            return dict(found)
        reasons.append(f"{name}: {found}")
    found = f"no kind of stage can learn from this table ({'; '.join(reasons)})"
    raise DataError([Problem(table.name, found)])


def with_label_texts(
    document: Mapping[str, Any],
    labels: LabelTexts | None,
    templates: str | Sequence[str] = (),
) -> dict[str, Any]:
    """A recipe with other texts for its labels, and with the templates into which they are put."""
    made = copy.deepcopy(dict(document))
    if labels:
        _say_labels(made, labels)
    said = listed_names(templates, "templates")
    if said:
        reading = [stage for stage in made["stage"] if "templates" in Stage.shape_of(stage).model_fields]
        if not reading:
            found = f"so {spelt('templates')} has no effect"
            raise UsageError(f"the recipe learns no labels of single texts, {found}.")
        for stage in reading:
            stage["templates"] = said
    return made


def _say_labels(document: dict[str, Any], labels: LabelTexts) -> None:
    """Put the texts of labels into the relations that have these labels."""
    for label, said in labels.items():
        texts = listed_names(said, f"the label texts of {label!r}")
        having = [spec for spec in document.get("relation", {}).values() if label in spec.get("labels", ())]
        if not having:
            known = ", ".join(
                name for spec in document.get("relation", {}).values() for name in spec.get("labels", ())
            )
            raise UsageError(
                f"{label!r} is not a label of the table or recipe ({known or 'it has none'}). Write "
                f"{spelt('labels', 'NAME = WORDS')} with a name that is in the column."
            )
        for spec in having:
            spec["texts"] = {**spec.get("texts", {}), label: texts}


def to_toml(document: Mapping[str, Any]) -> str:
    """A recipe document as TOML text, short lists on one line."""
    return _LIST.sub(_on_one_line, tomli_w.dumps(_without_none(document)))


def _on_one_line(found: re.Match[str]) -> str:
    line = "[" + ", ".join(entry.strip().rstrip(",") for entry in found[1].splitlines()) + "]"
    return line if len(line) <= _LINE else found[0]


def recipe_toml(recipe: Recipe) -> str:
    """A validated recipe as TOML, with the keys that were set and without those left to their defaults."""
    return to_toml(recipe.model_dump(mode="json", exclude_unset=True))


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(entry) for key, entry in value.items() if entry is not None}
    return [_without_none(entry) for entry in value] if isinstance(value, list | tuple) else value
