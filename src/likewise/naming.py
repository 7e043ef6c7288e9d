"""The names of models that are no paths: `raw` is an encoder as published, `default` stands for a model.

`default` is the model that answers when none is named. Another model may become the default one, but what
was trained and measured before must keep its meaning. A recipe therefore never keeps the word: when a recipe
is read, `default` is replaced by the name of the model that it stands for. Everything that is written
(model.json, the mark of a run, the result of an experiment) names that model.

Only documents from before the name `raw` hold the word, and they mean that encoder by it. So the word itself
tells an old document from a new one, and `kept_recipe` reads it as `raw`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# all-MiniLM-L6-v2 as it was published.
RAW = "raw"
DEFAULT = "default"
# The model that `default` stands for. Only this line changes when another model becomes the default one.
DEFAULT_NAME = "likewise-mini"
# A file or folder of such a name in the working folder is not meant by it; ./raw is.
RESERVED = frozenset({RAW, DEFAULT, DEFAULT_NAME})
# The key of a stage that named a model, besides `encoder.name`, when recipes still kept `default`.
_STAGE_KEY = "aligner"


def settled_name(name: str) -> str:
    """A model's name, with the model that `default` stands for in its place."""
    return DEFAULT_NAME if name == DEFAULT else name


def kept_recipe(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe in a document that Likewise wrote: what old documents call `default` is `raw`."""
    return _renamed(recipe, DEFAULT, RAW)


def recipe_in_keys(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe as the keys of results and stages are made from it.

    The raw encoder stands in the keys as `default`, as it always did: what was kept before it got the name
    `raw` is found again. The model that `default` means in recipes cannot be mistaken for it, because
    recipes hold its own name.
    """
    return _renamed(recipe, RAW, DEFAULT)


def name_in_keys(name: str) -> str:
    """A model's name as the keys of results hold it."""
    return DEFAULT if name == RAW else name


def _renamed(recipe: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """A recipe with another name for one model. Values of other types than a recipe has stay as they are."""
    made = dict(recipe)
    encoder, stages = recipe.get("encoder"), recipe.get("stage")
    if isinstance(encoder, Mapping):
        made["encoder"] = _with_name(encoder, "name", old, new)
    elif encoder == old:
        made["encoder"] = new
    if isinstance(stages, list | tuple):
        made["stage"] = [
            _with_name(stage, _STAGE_KEY, old, new) if isinstance(stage, Mapping) else stage
            for stage in stages
        ]
    return made


def _with_name(table: Mapping[str, Any], key: str, old: str, new: str) -> dict[str, Any]:
    return {**table, key: new} if table.get(key) == old else dict(table)
