"""Tables of the keys of a recipe, from the specs in src/likewise/schema: `<!-- table keys:NAME -->`.

NAME is a part of a recipe (PARTS), a kind of stage, or a table of keys that several kinds share (SHARED). A
key with the same values and the same description in several kinds is in a shared table, with its default for
each kind. The table of a kind has the other keys.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Union

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from likewise.registry import DEFAULT_KIND, KINDS, resolve_class
from likewise.schema.base import Stage, TrainedStage
from likewise.schema.distil import TextsSpec
from likewise.schema.frozen import ParallelSpec, SplitWeights
from likewise.schema.inject import ParaphraseSpec
from likewise.schema.pairs import ObjectiveSpec
from likewise.schema.parts import DataSpec, EncoderSpec, RelationSpec, Word2VecSpec
from likewise.schema.recipe import EvaluationSpec, Recipe, UpdateSpec
from tabling.common import markdown

# The parts of a recipe besides its stages.
PARTS: dict[str, type[BaseModel]] = {
    "recipe": Recipe,
    "encoder": EncoderSpec,
    "word2vec": Word2VecSpec,
    "relation": RelationSpec,
    "data": DataSpec,
    "objective": ObjectiveSpec,
    "translations": ParallelSpec,
    "weights": SplitWeights,
    "paraphrases": ParaphraseSpec,
    "texts": TextsSpec,
    "evaluation": EvaluationSpec,
    "update": UpdateSpec,
}
# One and several of what a key may hold, and the heading of docs/recipes.md that describes it.
_LINKED: dict[Any, tuple[str, str, str]] = {
    EncoderSpec: ("table", "tables", "encoder"),
    Word2VecSpec: ("table", "tables", "encoder"),
    RelationSpec: ("table", "tables", "relation"),
    EvaluationSpec: ("table", "tables", "evaluation"),
    UpdateSpec: ("table", "tables", "update"),
    Stage: ("table", "tables", "stages"),
    DataSpec: ("entry", "entries", "data-and-dev-entries"),
    ObjectiveSpec: ("table", "tables", "objective"),
    ParallelSpec: ("entry", "entries", "kind-parallel"),
    SplitWeights: ("table", "tables", "kind-parallel"),
    ParaphraseSpec: ("entry", "entries", "kind-inject"),
    TextsSpec: ("entry", "entries", "kind-distil"),
}
_PLAIN: dict[Any, tuple[str, str]] = {
    str: ("string", "strings"),
    int: ("integer", "integers"),
    float: ("number", "numbers"),
    bool: ("`true`, `false`", "booleans"),
}
# The kinds that come with Likewise; packages may add others.
SHIPPED = {name: entry for name, entry in KINDS.items() if str(entry.spec).startswith("likewise.")}
# Tables of keys that kinds share, with those kinds.
SHARED = {
    "every-kind": tuple(SHIPPED),
    "rows": ("pairs", "labels", "joint"),
    "optimisation": ("pairs", "labels", "joint", "inject", "distil"),
    "frozen": ("parallel", "refine"),
}
_KIND = "kind"


def keys(name: str) -> str:
    """The table of a part, of keys that kinds share, or of a kind."""
    if name in PARTS:
        rows = [_row(key, field) for key, field in PARTS[name].model_fields.items()]
    elif name in SHARED:
        rows = [_shared_row(name, key) for table, key in shared() if table == name]
    else:
        rows = [_row(key, field) for key, field in _spec(name).model_fields.items() if is_own(name, key)]
    return markdown(["key", "values", "default", "what it does"], rows)


@cache
def shared() -> dict[tuple[str, str], tuple[str, ...]]:
    """The keys of the shared tables, (table, key), each with the kinds that it is the same in."""
    found: dict[tuple[str, str], tuple[str, ...]] = {("every-kind", _KIND): SHARED["every-kind"]}
    for table, kinds in SHARED.items():
        everywhere = {key for where, key in found if where == "every-kind"}
        for key in dict.fromkeys(key for kind in kinds for key in _spec(kind).model_fields):
            same = _same(kinds, key)
            fewest = len(kinds) if table == "every-kind" else 2
            if key not in everywhere and len(same) >= fewest and _belongs(table, key):
                found[table, key] = same
    return found


def is_own(kind: str, key: str) -> bool:
    """Whether a key is in the table of its kind, because no shared table describes it."""
    return not any(key == name and kind in same for (_, name), same in shared().items())


def _belongs(table: str, key: str) -> bool:
    """Whether a key may be in a table: what stages of rows add to an optimiser's keys has one of its own."""
    if table in ("rows", "optimisation"):
        return (key in TrainedStage.__annotations__) == (table == "rows")
    return True


@cache
def _spec(kind: str) -> type[Stage]:
    found: type[Stage] = resolve_class(SHIPPED[kind].spec)
    return found


def _same(kinds: Sequence[str], key: str) -> tuple[str, ...]:
    """Most of the kinds that have a key: those in which its values and its description are the same."""
    alike: dict[tuple[str, str], list[str]] = {}
    for kind in kinds:
        if (field := _spec(kind).model_fields.get(key)) is not None:
            alike.setdefault((_values_of(field), field.description or ""), []).append(kind)
    return tuple(max(alike.values(), key=len))


def _shared_row(table: str, key: str) -> list[str]:
    """A key with its default, other defaults by kind, and the kinds that lack it."""
    if key == _KIND:
        what = Stage.model_fields[key].description or ""
        return [f"`{key}`", ", ".join(f"`{kind}`" for kind in SHIPPED), f'`"{DEFAULT_KIND}"`', what]
    first, *others = shared()[table, key]
    name, values, default, what = _row(key, _spec(first).model_fields[key])
    defaults = {kind: _default(_spec(kind).model_fields[key]) for kind in others}
    default = "; ".join([default, *(f"`{kind}`: {one}" for kind, one in defaults.items() if one != default)])
    lacking = [f"`{kind}`" for kind in SHARED[table] if key not in _spec(kind).model_fields]
    return [name, values, default, f"{what} Not a key of {' and '.join(lacking)}." if lacking else what]


def _row(key: str, field: FieldInfo) -> list[str]:
    return [f"`{key}`", _values_of(field), _default(field), (field.description or "").replace("|", "\\|")]


def _default(field: FieldInfo) -> str:
    """A default as TOML writes it; a dash if there is none, or a whole table."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "–" if value is None or isinstance(value, BaseModel) else f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return "{}" if isinstance(value, dict) else f"{value:g}".replace("e-0", "e-")


def _values_of(field: FieldInfo) -> str:
    return _values(field.annotation, field.metadata)


def _values(annotation: Any, limits: Iterable[Any] = (), *, several: bool = False) -> str:
    """What a key may hold, in words, in the singular or the plural."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _values(arguments[0], [*arguments[1:], *limits], several=several)
    if origin in (Union, types.UnionType):
        given = [one for one in arguments if one is not types.NoneType]
        return " or ".join(_values(one, limits, several=several) for one in given)
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in arguments)
    if origin is tuple:
        count = "" if arguments[-1] is Ellipsis else f"{len(arguments)} "
        return f"{'lists' if several else 'list'} of {count}{_values(arguments[0], several=True)}"
    if origin is dict:
        return f"table of {_values(arguments[1], several=True)} by name"
    if annotation in _LINKED:
        one, more, heading = _LINKED[annotation]
        return f"[{more if several else one}](#{heading})"
    return " and ".join([_PLAIN[annotation][several], *_limits(limits)]).replace(" and ", " ", 1)


def _limits(limits: Iterable[Any]) -> list[str]:
    """The limits of a number: > 0, ≤ 100."""
    found = []
    for one in limits:
        if isinstance(one, FieldInfo):
            found += _limits(one.metadata)
        for limit, sign in ((Gt, ">"), (Ge, "≥"), (Lt, "<"), (Le, "≤")):
            if isinstance(one, limit):
                value = getattr(one, limit.__name__.lower())
                found.append(f"{sign} {value:,}".replace("-", "−"))
    return found
