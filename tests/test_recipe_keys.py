"""Every key of a recipe is described where it is defined, and docs/recipes.md has all of them."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from likewise.registry import KINDS, resolve_class
from likewise.schema.recipe import parse_recipe

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "recipes.md").read_text(encoding="utf8")
# What other tests and packages register is described elsewhere.
SHIPPED = sorted(name for name, entry in KINDS.items() if str(entry.spec).startswith("likewise."))


@pytest.fixture
def keys(monkeypatch):
    """The module that writes the tables."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("tabling.keys")


def rows_of(table: str) -> list[str]:
    """The keys in a table of the page."""
    found = re.search(rf"<!-- table keys:{table} -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
    assert found, f"docs/recipes.md has no table keys:{table}"
    return re.findall(r"^\| `(\w+)` \|", found[1], re.MULTILINE)


@pytest.mark.parametrize("kind", SHIPPED)
def test_keys_of_every_kind_are_described_and_on_the_page(keys, kind):
    fields = resolve_class(KINDS[kind].spec).model_fields
    assert [key for key, field in fields.items() if not (field.description or "").endswith(".")] == []
    tables = [kind, *(name for name, kinds in keys.SHARED.items() if kind in kinds)]
    assert set(fields) == {key for key in fields for table in tables if key in rows_of(table)}


def test_keys_of_a_kind_are_in_one_table(keys):
    for kind in SHIPPED:
        own = set(rows_of(kind))
        for (table, key), kinds in keys.shared().items():
            assert not (kind in kinds and key in own), f"{key} is in keys:{table} and in keys:{kind}"


def test_keys_of_every_part_are_described_and_on_the_page(keys):
    for name, part in keys.PARTS.items():
        fields = part.model_fields
        assert [key for key, field in fields.items() if not (field.description or "").endswith(".")] == []
        assert rows_of(name) == list(fields)


def test_keys_are_described_by_every_stage_that_is_a_kind_of_them():
    from likewise.schema.base import OptimisedStage

    class LateStage(OptimisedStage):
        epochs: float = 7

    assert LateStage.model_fields["epochs"].description == OptimisedStage.model_fields["epochs"].description
    assert LateStage.model_fields["epochs"].default == 7


def test_key_tables_show_values_and_the_defaults_of_other_kinds(keys):
    optimisation = keys.keys("optimisation")
    assert "| `batch_size` | integer > 0 and ≤ 1,000,000 | `16`; `joint`: `32` |" in optimisation
    assert '| `optimiser` | `adamw`, `sgd` | `"adamw"` |' in optimisation
    assert "Not a key of `joint` and `distil`. |" in optimisation
    assert "| `margin` | number ≥ −1 and < 1 | `0` |" in keys.keys("parallel")
    assert "| `source` | string or list of 2 strings | required |" in keys.keys("translations")
    assert "| `texts` | table of lists of strings by name | `{}` |" in keys.keys("relation")


def test_links_of_the_page_lead_to_its_headings():
    headings = re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    known = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert {anchor for anchor in re.findall(r"\]\(#([^)]+)\)", PAGE)} <= known


def test_the_annotated_recipe_is_valid():
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    [recipe] = [block for block in blocks if "[[stage]]" in block]
    assert parse_recipe(tomllib.loads(recipe), "docs/recipes.md").stage[0].patience == 3
