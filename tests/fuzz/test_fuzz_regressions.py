"""What fuzzing found, each as the smallest example of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.frozen import worlds
from tests.fuzz.documents import to_toml

FROZEN = Path(__file__).resolve().parents[1] / "frozen" / "models"
ROWS = "text_a,text_b\nthe old man runs,a woman sleeps\n"


@pytest.mark.parametrize("empty", ["train.csv", "test.csv"])
def test_audit_refuses_a_file_without_rows(here, tmp_path, empty):
    for name in ("train.csv", "test.csv"):
        (tmp_path / name).write_text("text_a,text_b\n" if name == empty else ROWS)
    code, said = here("audit", "train.csv", "--against", "test.csv", "--output", "clean.csv")
    assert code == 1
    assert f"{empty}: this has columns (text_a, text_b) but no rows" in said
    assert not (tmp_path / "clean.csv").exists()


def test_score_lets_no_library_print_among_the_answers(here, tmp_path):
    """tokenizers prints the keys of added tokens that it does not know to standard output."""
    shutil.copytree(FROZEN / "pairs", tmp_path / "m")
    path = tmp_path / "m" / "tokenizer.json"
    document = json.loads(path.read_text(encoding="utf8"))
    document["added_tokens"][1]["j"] = 7
    path.write_text(json.dumps(document), encoding="utf8")
    code, said = here("score", "a man", "a woman", "--model", "m", "--device", "cpu", "--json")
    assert code == 1
    assert "tokenizer.json: added_tokens" in said


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("start = []", "start"),
        ("sources = []", "sources"),
        ('grid = {"stage.0.epochs" = []}', "grid.stage.0.epochs"),
        ('setting = [{name = "a", grid = {"stage.0.epochs" = []}}]', "setting.0.grid.stage.0.epochs"),
    ],
)
def test_experiment_refuses_lists_without_an_entry(here, tmp_path, line, place):
    """Nothing would be run or measured; the first three ended as a bug, or as a success without a number."""
    setting = "" if line.startswith("setting") else '[[setting]]\nname = "a"\nstages = 0\n'
    (tmp_path / "e.toml").write_text(f'name = "small"\nrecipe = "similarity"\n{line}\n{setting}')
    code, said = here("experiment", "e.toml")
    assert code == 2, said
    assert f"e.toml: {place}: " in said
    assert "at least 1 item" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "t.csv", "--dry-run", "--set=" + "x" * 100_000),
        ("classify", "a text", "--labels=" + "x" * 100_000),
        ("classify", "a text", "--labels=x," + "=" * 100_000),
        ("score", "x" * 100_000),
        ("explain", "x" * 100_000),
    ],
)
def test_messages_quote_a_part_of_a_long_argument(here, tmp_path, arguments):
    (tmp_path / "t.csv").write_text(ROWS.replace("\n", ",similarity\n", 1).replace("sleeps", "sleeps,1"))
    code, said = here(*arguments)
    assert code in (1, 2)
    assert len(said) < 2000


@pytest.mark.parametrize(
    ("check", "code", "told"),
    [
        (
            {"relation": "nothing"},
            2,
            "check.0.relation: 'nothing' is not a relation of the recipe (similarity)",
        ),
        ({"metric": "nothing"}, 2, "check.0.metric: "),
        ({"source": "unrated.csv"}, 1, "unrated.csv has no ratings of 'similarity'"),
    ],
)
def test_experiment_says_what_a_check_lacks(here, tmp_path, check, code, told):
    """A relation that is not the recipe's was a bug after the training, as was a file without it."""
    worlds.build(tmp_path, FROZEN / "pairs")
    (tmp_path / "unrated.csv").write_text("text_a,text_b,other\na man,a woman,1\na cat,a dog,2\n")
    recipe = worlds.recipes()["pairs-exact"]
    (tmp_path / "recipe.toml").write_text(to_toml(recipe))
    task = {"name": "t", "file": "test.csv", "relation": "similarity:0..5"}
    (tmp_path / "suite.toml").write_text(to_toml({"task": [task]}))
    known = {"name": "own", "source": "test.csv", "relation": "similarity", "metric": "pearson"}
    experiment = {"name": "e", "recipe": "recipe.toml", "seeds": [1], "suite": "suite.toml"}
    document = {**experiment, "setting": [{"name": "a"}], "check": [{**known, **check}]}
    (tmp_path / "e.toml").write_text(to_toml(document))
    found, said = here("experiment", "e.toml", "--device", "cpu")
    assert found == code, said
    assert told in said
