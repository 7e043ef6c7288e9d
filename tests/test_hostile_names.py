"""Names out of files: columns, relations, labels, experiments. A name is a name and never does anything."""

from __future__ import annotations

import csv
import json
import random
import re

import pytest

import likewise
from likewise.documents import parse_toml_value, split_path, to_file_name
from likewise.errors import LikewiseError, RecipeError, UsageError
from likewise.experiments.schema import read_experiment
from likewise.heads import parameter_name
from likewise.methods.label_embedding import LabelModel
from likewise.recipes.reading import read_recipe
from likewise.records import MAX_LABELS, MAX_NAME, Relation
from likewise.schema.recipe import MAX_RELATIONS, parse_recipe
from likewise.store.card import CardParts, as_code, model_card, python_example, relations_table
from tests.conftest import follow_card
from tests.tiny import WORDS

# One model learns them all: what torch, safetensors, TOML paths and file systems have rules about.
ODD = [
    *("avg.score", "avg%2Escore", "avg·score", "a.b.c", ".", "..", "/", "a/b", "training", "forward", "keys"),
    *(
        "type",
        "pop",
        "_modules",
        "a b",
        "😀",
        "Ähnlichkeit",
        "score",
        "Score",
        "%",
        "%00",
        "x:y",
        '"',
        "'",
        "\\",
    ),
]


@pytest.fixture(scope="module")
def odd_table(tmp_path_factory):
    """Rated pairs whose rating columns have odd names, all in one file."""
    rng, path = random.Random(0), tmp_path_factory.mktemp("odd") / "odd.csv"
    words = [word for word in WORDS if word.isalpha()]
    with path.open("w", newline="", encoding="utf8") as file:
        writer = csv.writer(file)
        writer.writerow(["text_a", "text_b", *ODD])
        for _ in range(60):
            a, b = " ".join(rng.sample(words, 4)), " ".join(rng.sample(words, 4))
            writer.writerow([a, b, *(round(rng.random() * 5, 2) for _ in ODD)])
    return path


@pytest.fixture(scope="module")
def odd_model(tiny_encoder, odd_table, tmp_path_factory):
    """A model of all of them, trained, saved and loaded."""
    folder = tmp_path_factory.mktemp("model") / "odd"
    changes = {"stage.0.max_steps": 2, "stage.0.weighting": "uncertainty"}
    likewise.train(odd_table, folder, encoder=str(tiny_encoder), overrides=changes, device="cpu")
    return folder


def test_train_takes_columns_of_any_name(odd_model):
    scores = likewise.load(odd_model, device="cpu").score([("a man", "a dog")])
    assert list(scores) == ODD
    # Every relation has a head of its own: no two names were taken for one.
    names = json.loads((odd_model / "likewise" / "model.json").read_text())["relations"]
    assert len({parameter_name(entry["name"]) for entry in names}) == len(ODD)


def test_train_cli_takes_a_dotted_relation_with_and_without_relation(
    here, tiny_encoder, tiny_pairs, tmp_path
):
    lines = tiny_pairs.read_text(encoding="utf8")
    (tmp_path / "dot.csv").write_text(lines.replace("similarity", "avg.score", 1), encoding="utf8")
    shared = ("--encoder", tiny_encoder, "--device", "cpu", "--set", "stage.0.max_steps=1")
    suite = '[[task]]\nname = "own"\nfile = "dot.csv"\nrelation = "avg.score:0..5"\n'
    (tmp_path / "own.toml").write_text(suite)
    for number, options in enumerate([("--relation", "avg.score:0..5"), ()]):
        code, said = here("train", "dot.csv", *options, *shared, "--output", f"m{number}")
        assert code == 0, said
        code, said = here("score", "dot.csv", "--model", f"m{number}", "--output", f"scored{number}.csv")
        assert code == 0
        assert "predicted_avg.score" in said
        code, said = here("evaluate", f"m{number}", "--suite", "own.toml", "--source", "cosine")
        assert code == 0
        assert "own" in said


def test_overrides_reach_a_dotted_name_in_quotes(here, tiny_encoder, tiny_pairs, tmp_path):
    lines = tiny_pairs.read_text(encoding="utf8")
    (tmp_path / "dot.csv").write_text(lines.replace("similarity", "avg.score", 1), encoding="utf8")
    options = ("--relation", "avg.score:0..5", "--encoder", tiny_encoder, "--dry-run")
    code, said = here("train", "dot.csv", *options, "--set", 'relation."avg.score".hi=9')
    assert code == 0
    assert "hi = 9" in said


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("stage.0.data", ["stage", "0", "data"]),
        ('relation."avg.score".hi', ["relation", "avg.score", "hi"]),
        ("relation.'avg.score'.hi", ["relation", "avg.score", "hi"]),
        ("relation.it's.hi", ["relation", "it's", "hi"]),
        ("a..b", ["a", "", "b"]),
    ],
)
def test_split_path_keeps_quoted_names_whole(path, steps):
    assert split_path(path) == steps


def test_parameter_name_is_another_for_every_name():
    names = [*ODD, "%2E", "%252E", "%25", "type%00", "keys%2500", "a%2Eb%2Ec", "%25.", "%.", ".2E"]
    made = [parameter_name(name) for name in names]
    assert len(set(made)) == len(names)
    assert not any("." in name for name in made)
    assert parameter_name("similarity:cosine:cosine") == "similarity:cosine:cosine"  # as saved models have it


def test_label_model_takes_tasks_that_torch_has_names_for(tiny_encoder):
    from likewise.encoders.sentence import load_encoder

    names = ["keys", "type", "training", "forward", "a.b", "topic"]
    tasks = [Relation.classes(name, ["yes", "no"]) for name in names]
    model = LabelModel(load_encoder(tiny_encoder, device="cpu"), tasks, matcher="one-hot")
    assert len(model.heads) == len(names)
    assert "heads.topic.weight" in model.matching_state()  # as saved models have it
    model.load_matching(model.matching_state())


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a\nb",
        "a\rb",
        "a\tb",
        "a\0b",
        "\x1b[31mred",
        "a\u2028b",
        "\ud800",
        "x" * (MAX_NAME + 1),
        None,
        3,
    ],
)
def test_relation_refuses_names_that_cannot_be_written_in_a_line(name):
    with pytest.raises(UsageError) as caught:
        Relation(name)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("labels", [["yes", "\ud800"], ["yes", None], ["yes", 3], [["a"], "b"]])
def test_relation_refuses_labels_that_are_no_text(labels):
    with pytest.raises(UsageError):
        Relation.classes("x", labels)


def test_relation_limits_its_labels():
    Relation.classes("x", [str(n) for n in range(MAX_LABELS)])
    with pytest.raises(UsageError, match=r"10,001 labels, at most 10,000 are taken"):
        Relation.classes("x", [str(n) for n in range(MAX_LABELS + 1)])


def recipe(**changes):
    """A small recipe as a mapping."""
    objective = {"relation": "similarity", "head": "cosine", "loss": "mse"}
    stage = {"data": [{"source": "pairs.csv"}], "objective": [objective]}
    return {"name": "mine", "relation": {"similarity": {}}, "stage": [stage], **changes}


FORBIDDEN = [
    "../../x",
    "/abs",
    "a/b",
    "a\\b",
    ".",
    "..",
    "",
    " ",
    "-rf",
    "a\nb",
    "a\0b",
    "x" * 201,
    "\x1b]0;x\a",
]


@pytest.mark.parametrize("name", FORBIDDEN)
def test_recipe_names_lead_nowhere(name):
    with pytest.raises(RecipeError, match="files are called by this name"):
        parse_recipe(recipe(name=name), "r.toml")


@pytest.mark.parametrize("name", ["similarity", "my recipe (v1.2), k=3", "Ähnlich-keit_2+", "日本"])
def test_recipe_names_may_be_any_words(name):
    assert parse_recipe(recipe(name=name), "r.toml").name == name


@pytest.mark.parametrize("name", FORBIDDEN)
def test_experiment_names_lead_nowhere(tmp_path, name):
    document = f'name = {json.dumps(name)}\nrecipe = "similarity"\n[[setting]]\nname = "a"\n'
    (tmp_path / "e.toml").write_text(document)
    with pytest.raises(RecipeError):
        read_experiment(tmp_path / "e.toml")


def test_experiment_settings_may_hold_a_slash_but_no_escape(tmp_path):
    text = 'name = "e"\nrecipe = "similarity"\n[[setting]]\nname = {}\n'
    (tmp_path / "e.toml").write_text(text.format('"rate / 4"'))
    assert read_experiment(tmp_path / "e.toml").setting[0].name == "rate / 4"
    (tmp_path / "e.toml").write_text(text.format(r'"\u001b[2J"'))
    with pytest.raises(RecipeError, match="no line break or other control character"):
        read_experiment(tmp_path / "e.toml")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("pairs", "pairs"),
        ("my pairs (1)", "my pairs (1"),
        ("a/b", "a-b"),
        ("..", "pairs"),
        ("\x1b[2J", "2J"),
        ("😀", "pairs"),
        ("x" * 300, "x" * 100),
        ("\udcff", "pairs"),
        ("", "pairs"),
    ],
)
def test_a_file_of_any_name_gives_a_recipe_with_a_name(text, made):
    assert to_file_name(text, "pairs") == made
    parse_recipe(recipe(name=made), "r.toml")


def test_recipe_limits_its_relations():
    relations = {f"r{n}": {} for n in range(MAX_RELATIONS + 1)}
    with pytest.raises(RecipeError, match=r"has 1,002 relations, but at most 1,000 can be learnt at once"):
        parse_recipe(recipe(relation={**relations, "similarity": {}}), "r.toml")


@pytest.mark.parametrize(
    "change",
    [
        {"seed": -1},
        {"seed": 2**32},
        {"seed": 10**30},
        {"stage.0.epochs": 1e300},
        {"stage.0.epochs": float("inf")},
        {"stage.0.epochs": float("nan")},
        {"stage.0.batch_size": 10**12},
        {"stage.0.max_steps": 10**30},
        {"stage.0.learning_rate": float("inf")},
        {"stage.0.objective.0.hidden": 10**10},
        {"encoder.hidden": 10**10},
        {"relation.similarity.hi": float("inf")},
        {"relation.similarity.lo": float("nan")},
    ],
    ids=str,
)
def test_recipe_refuses_numbers_that_nobody_means(change):
    with pytest.raises(RecipeError):
        read_recipe("similarity", overrides=change)


@pytest.mark.parametrize("seed", ["-1", "4294967296", "1e3", "99999999999999999999"])
def test_experiment_refuses_seeds_that_torch_does_not_take(tmp_path, seed):
    document = f'name = "e"\nrecipe = "similarity"\nseeds = [{seed}]\n[[setting]]\nname = "a"\n'
    (tmp_path / "e.toml").write_text(document)
    if seed == "1e3":
        assert read_experiment(tmp_path / "e.toml").seeds == (1000,)
        return
    with pytest.raises(RecipeError):
        read_experiment(tmp_path / "e.toml")


def test_set_values_of_any_form_are_values_or_texts():
    assert parse_toml_value("3e-5") == 3e-5
    assert parse_toml_value("[" * 5000) == "[" * 5000
    assert parse_toml_value("9" * 5000) == "9" * 5000
    assert parse_toml_value("1\nother = 2") == "1\nother = 2"


HOSTILE = [
    "a | b",
    "x\n## heading",
    "```\nimport os\n```",
    "<script>alert(1)</script>",
    "[click](javascript:alert(1))",
    "![x](http://example.org/x.png)",
    "---\nlicense: mit\n---",
    '"); import os; os.system("x',
    "\x1b[31m",
    "\u202eevil",
    "\udcff",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_card_shows_names_as_text(text):
    about = {"kind": "graded", "lo": 0.0, "hi": 5.0, "step": 1.0}
    entry = {"name": "plain", "description": text.replace("\udcff", "?"), **about}
    stage = {"name": text, "pairs": 3, "steps": 2, "leakage": [text]}
    document = {"relations": [entry], "source": {"plain": "head"}, "stages": [stage], "recipe": {}}
    use = [*relations_table(document), "", *python_example(text, "load", "score([])")]
    card = model_card(text, document, CardParts("sentence-similarity", use, f"loads {as_code(text)}"))
    card.encode("utf8")
    lines = card.splitlines()
    assert lines[:4] == [
        "---",
        "library_name: sentence-transformers",
        "tags: [likewise, sentence-similarity]",
        "---",
    ]
    assert lines.count("---") == 2
    assert card.count("```") == 2
    assert not any(line.startswith("## ") for line in lines)
    before, _, after = (part for part in card.split("```"))
    prose = re.sub("`[^`]*`", "", before + after)
    assert "<script" not in prose
    assert "](" not in prose.replace("\\](", "")
    assert "\x1b" not in card
    row = next(line for line in lines if line.startswith("| plain"))
    assert row.replace("\\|", "").count("|") == 5


def test_card_of_a_folder_with_an_odd_name_runs(tiny_encoder, tiny_pairs, tmp_path, monkeypatch):
    folder = tmp_path / 'a "`b` \\ 😀'
    likewise.train(
        tiny_pairs,
        folder,
        relations="similarity:0..5",
        encoder=str(tiny_encoder),
        overrides={"stage.0.max_steps": 1},
        device="cpu",
    )
    follow_card(folder, monkeypatch)


@pytest.mark.parametrize(
    "text",
    [
        *("x:0..inf", "x:-inf..5", "x:nan..5", "x:-inf..nan", "x:5..0", "x:1..1", "x:1e308..-1e308"),
        *("x:-1e308..1e308", "x:0..1e300", "x:0..1e-9", "x:..", "x:0..", "x:a..b", "x", ":0..5", "x:", ""),
    ],
)
def test_relation_refuses_scales_that_are_none(text):
    with pytest.raises(UsageError):
        Relation.parse(text)


def test_relation_takes_a_wide_scale_without_a_grid_of_its_size():
    relation = Relation.parse("x:0..1e9")
    assert len(relation.grid) == 2
    assert relation.check(123_456_789.0) == 123_456_789.0


@pytest.mark.parametrize("step", [1e-9, 1e-300, 0, -1, float("nan"), float("inf"), None, "1"])
def test_relation_refuses_steps_without_end(step):
    with pytest.raises(UsageError):
        Relation("x", lo=0.0, hi=5.0, step=step)


@pytest.mark.parametrize(
    "positions", [(0, float("inf")), (float("nan"), 1), (0, 1e300), ("a", "b"), (1, 0), (0, 10**400)]
)
def test_relation_refuses_positions_that_are_no_numbers(positions):
    with pytest.raises(UsageError):
        Relation.ordered("x", ["low", "high"], positions)


def test_huge_scale_from_the_command_line_takes_no_memory(here, tiny_encoder, tiny_pairs, tmp_path):
    options = ("--relation", "similarity:0..1e9", "--relation", "topic:-2..2", "--dry-run")
    code, said = here("train", tiny_pairs, *options, "--encoder", tiny_encoder, "--device", "cpu")
    assert code == 0, said


def test_library_errors_are_likewise_errors():
    with pytest.raises(LikewiseError):
        Relation.graded("x", "0", [])


def test_experiment_refuses_grids_and_seeds_that_nobody_means(tmp_path):
    grid = "\n".join(f'"stage.0.k{n}" = {list(range(100))}' for n in range(6))
    file = tmp_path / "e.toml"
    file.write_text(
        f'name = "e"\nrecipe = "r.toml"\nseeds = {list(range(2000))}\n'
        f'[[setting]]\nname = "s"\n[grid]\n{grid}\n'
    )
    with pytest.raises(RecipeError) as caught:
        read_experiment(file)
    assert "1,000,000,000,000 points" in str(caught.value)
    assert "2,000 seeds" in str(caught.value)
