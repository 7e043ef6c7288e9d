"""Recipes: every shipped one is read, built and run two steps.

Mistakes are reported all at once with their path.
"""

from __future__ import annotations

import re

import pytest

import likewise
from likewise.api import make_recipe
from likewise.errors import DataError, RecipeError, UsageError
from likewise.kinds.base import DevSet
from likewise.kinds.context import RunContext
from likewise.kinds.devscore import warn_if_falling
from likewise.kinds.sources import add_noise, load_source, move_value
from likewise.recipes.own import recipe_toml
from likewise.recipes.reading import read_recipe, recipe_from
from likewise.recipes.run import dry_run, run_recipe
from likewise.records import Record, Relation
from likewise.schema.parts import DataSpec
from likewise.schema.recipe import parse_recipe
from likewise.schema.shipped import shipped_document, shipped_recipes

REGRESSION = ["regression-nli", "regression-nli-then-sts", "regression-sts", "similarity"]
RELATIONS = [
    "infersent-nli",
    "relations-activity",
    "relations-described",
    "relations-infersent",
    "relations-sick",
    "relations-typed",
]
MULTILINGUAL = ["multilingual", "multilingual-paper"]
LABELS = [
    f"labels-{scenario}{kind}"
    for scenario in ("cardinality", "domain", "objective")
    for kind in ("", "-lstm")
]
PARAPHRASE = ("paraphrase-injection", "finetune")
# The recipes of the models that come with Likewise.
MODELS = [
    *(f"{kind}-{size}" for kind in ("full", "open") for size in ("base", "mini", "small")),
    "open-heads",
    "rated-teacher",
]
SHIPPED = sorted([*REGRESSION, *RELATIONS, *MULTILINGUAL, *LABELS, *PARAPHRASE, *MODELS])


def on_tiny_data(name, encoder, pairs, steps=2, vectors=None):
    """A shipped recipe with its data replaced by the tiny table, cut to a few steps.

    The table has one rating 0..5 and one of labels: every graded relation is put on the former's scale.
    """
    document = shipped_document(name)
    if isinstance(document["encoder"], dict) and document["encoder"].get("kind") == "bilstm":
        document["encoder"] |= {"vectors": str(vectors), "hidden": 8}
    else:
        document["encoder"] = {"name": str(encoder), "normalise": document["encoder"] == "raw"}
    columns = {}
    for relation, spec in document["relation"].items():
        graded = spec.get("kind", "graded") == "graded"
        columns[relation] = "similarity" if graded else "entailment"
        spec |= {"lo": 0, "hi": 5} if graded else {}
    for stage in document["stage"]:
        asked = {objective["relation"] for objective in stage["objective"]}
        entry = {"source": str(pairs), "columns": {relation: columns[relation] for relation in asked}}
        stage["data"] = [{**entry, "round": stage["data"][0].get("round", False)}]
        stage["dev"] = [entry]
        stage["filter_against"] = []
        stage["max_steps"] = steps
    return recipe_from(document, name)


def test_shipped_recipes_are_the_ones_we_know():
    assert shipped_recipes() == SHIPPED


@pytest.mark.parametrize("name", sorted([*REGRESSION, *RELATIONS]))
def test_shipped_recipe_is_read_built_and_run_two_steps(
    name, tiny_encoder, tiny_vectors, tiny_pairs, tmp_path
):
    recipe = on_tiny_data(name, tiny_encoder, tiny_pairs, vectors=tiny_vectors)
    report = run_recipe(recipe, tmp_path / "model", context=RunContext(device="cpu"))
    assert [stage["steps"] for stage in report.stages] == [2] * len(recipe.stage)
    scores = likewise.load(tmp_path / "model", device="cpu").score([("a man", "a dog")])
    assert list(scores) == [objective.relation for objective in recipe.stage[-1].objective]
    assert not (tmp_path / "model.run").exists()


@pytest.mark.parametrize("name", MODELS)
def test_recipe_of_a_shipped_model_is_read_built_and_run_two_steps(name, tiny_encoder, tiny_pairs, tmp_path):
    document = shipped_document(name)
    document["encoder"] = str(tiny_encoder)
    labels = {"not_paraphrase": "contradiction", "paraphrase": "entailment"}
    mapped = {"paraphrase": {value: key for key, value in labels.items()}}
    graded = [one for one, spec in document["relation"].items() if spec.get("kind") != "classes"]
    columns = {**dict.fromkeys(graded, "similarity"), "entailment": "entailment", "paraphrase": "entailment"}
    for relation in graded:
        document["relation"][relation] |= {"lo": 0, "hi": 5}
    for stage in document["stage"]:
        asked = {objective["relation"] for objective in stage.get("objective", [{"relation": "similarity"}])}
        entry = {"source": str(tiny_pairs), "columns": {one: columns[one] for one in sorted(asked)}}
        if "paraphrase" in asked:
            entry["labels"] = mapped
        stage |= {"dev": [entry], "filter_against": [], "max_steps": 2, "data": [entry]}
        if stage.get("kind") == "distil":
            stage |= {"data": [{"source": str(tiny_pairs)}], "teachers": [str(tiny_encoder)], "batch_size": 8}
    report = run_recipe(recipe_from(document, name), tmp_path / "model", context=RunContext(device="cpu"))
    assert [stage["steps"] for stage in report.stages] == [2] * len(document["stage"])
    scores = likewise.load(tmp_path / "model", device="cpu").score([("a man", "a dog")])
    assert set(scores) == set(document["relation"])


@pytest.mark.realdata
@pytest.mark.parametrize("name", REGRESSION)
def test_shipped_recipe_plans_on_real_data(name, tiny_encoder, data_dir):
    recipe = read_recipe(name, encoder=str(tiny_encoder))
    lines = "\n".join(dry_run(recipe, context=RunContext(data_dir=data_dir, device="cpu")))
    if "nli" in name:
        # One of the 31,493 pairs at hand stands in the seven test sets; the filter finds it.
        assert "31,492 pairs" in lines
    if name != "regression-nli":
        assert "kept 951 of 5,749 rows of stsb/train" in lines
        assert "kept 4,367 of 4,500 rows of sick/train" in lines
        assert "5,318 pairs" in lines
    assert "dev set: kept 363 of 1,500 rows of stsb/dev" in lines
    assert "dev set: kept 486 of 500 rows of sick/trial" in lines


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("relations-activity", "kept 998 of 1,000 rows of human_activity_phrases/train"),
        ("relations-described", "kept 998 of 1,000 rows of human_activity_phrases/train"),
        ("relations-sick", "kept 4,407 of 4,500 rows of sick/train"),
    ],
)
def test_relations_recipe_drops_the_rows_that_stand_in_test(name, kept, tiny_encoder, data_dir):
    recipe = read_recipe(name, encoder=str(tiny_encoder))
    assert kept in "\n".join(dry_run(recipe, context=RunContext(data_dir=data_dir, device="cpu")))


def test_recipe_reports_all_problems_with_their_paths():
    document = shipped_document("similarity")
    document["stage"][0]["learning_rat"] = 1e-5
    document["stage"][0]["epochs"] = "many"
    document["stage"][0]["schedule"] = "alternating"
    document["encodr"] = "x"
    with pytest.raises(RecipeError) as caught:
        recipe_from(document, "mine.toml")
    text = str(caught.value)
    assert "mine.toml: stage.0.learning_rat: this is not a known key. Did you mean 'learning_rate'?" in text
    assert "mine.toml: stage.0.epochs" in text
    assert "mine.toml: stage.0.schedule" in text
    assert "mine.toml: encodr: this is not a known key. Did you mean 'encoder'?" in text


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "stage.0.objective.0.loss",
            "kl_grid",
            "stage.0.objective.0: loss 'kl_grid' fits heads distribution",
        ),
        ("stage.0.objective.0.k", 2.0, "has no option k"),
        ("stage.0.objective.0.relation", "mood", "'mood' is not one of the recipe's relations (similarity)"),
    ],
)
def test_recipe_objectives_are_checked_by_name(path, value, message, tiny_encoder, tiny_pairs):
    from likewise.kinds.building import build_objectives
    from likewise.recipes.reading import set_value

    document = shipped_document("similarity")
    document["stage"][0]["objective"] = [{"relation": "similarity", "head": "cosine", "loss": "mse"}]
    set_value(document, path, value)

    def build():
        recipe = recipe_from(document, "mine.toml")
        build_objectives(recipe, 0, recipe.stage[0].objective)

    with pytest.raises(RecipeError) as caught:
        build()
    assert message in str(caught.value)


def test_overrides_leave_the_list_they_came_from_alone():
    from likewise.recipes.reading import set_value

    stages = [{"schedule": "multi-label"}]
    document: dict = {}
    set_value(document, "stage", stages)
    set_value(document, "stage.0.schedule", "multi-task")
    assert stages == [{"schedule": "multi-label"}]


def test_recipe_overrides_reach_lists_and_types():
    recipe = read_recipe(
        "similarity",
        overrides=["stage.0.learning_rate=3e-5", "stage.0.batch_size=8", "encoder.name=other/model"],
    )
    assert recipe.stage[0].learning_rate == 3e-5
    assert recipe.stage[0].batch_size == 8
    assert recipe.encoder.name == "other/model"
    with pytest.raises(
        UsageError, match=r"is not an entry of this list of length \d+\. Count entries from 0\."
    ):
        read_recipe("similarity", overrides=["stage.3.epochs=1"])
    with pytest.raises(UsageError, match="is not PATH=VALUE"):
        read_recipe("similarity", overrides=["stage.0.epochs"])


def test_recipe_absent_names_the_shipped_ones():
    found = r"neither a recipe file nor a shipped recipe\W+[Gg]ive the path .*, or one of .*similarity"
    with pytest.raises(RecipeError, match=found):
        read_recipe("similarty")
    with pytest.raises(RecipeError, match=r"there is no such recipe file\W+[Cc]heck the path"):
        read_recipe("nothing.toml")


def test_recipe_toml_is_read_back_equal(tmp_path):
    recipe = read_recipe("regression-nli-then-sts")
    (tmp_path / "r.toml").write_text(recipe_toml(recipe), encoding="utf8")
    assert read_recipe(str(tmp_path / "r.toml")) == recipe


def test_inferred_recipe_names_columns_ranges_and_heads(tiny_pairs):
    recipe, _ = make_recipe(str(tiny_pairs), relations=["similarity:0..5", "entailment:classes"])
    assert set(recipe.relation) == {"similarity", "entailment"}
    assert recipe.relation["entailment"].labels == ("contradiction", "entailment", "neutral")
    assert [(o.head, o.loss) for o in recipe.stage[0].objective] == [
        ("distribution", "kl_grid"),
        ("classes", "cross_entropy"),
    ]


def test_inferred_recipe_for_one_graded_column_follows_the_similarity_recipe(tiny_pairs):
    recipe, _ = make_recipe(str(tiny_pairs), relations=["similarity:0..5"])
    shipped = read_recipe("similarity")
    assert [o.loss for o in recipe.stage[0].objective] == [o.loss for o in shipped.stage[0].objective]
    assert recipe.stage[0].learning_rate == shipped.stage[0].learning_rate


@pytest.fixture
def scored(tmp_path):
    """Forty pairs with one rating, 0..1, by a name that no shipped recipe knows."""
    rows = "\n".join(f"the dog {i},a cat {i},{i / 40}" for i in range(40))
    (tmp_path / "mine.csv").write_text(f"sentence1,sentence2,score\n{rows}\n", encoding="utf8")
    return str(tmp_path / "mine.csv")


def test_data_override_learns_a_single_rating_column_as_the_recipe_learns_its_own(scored, tiny_encoder):
    told = []
    recipe, tables = make_recipe("similarity", data=scored, encoder=str(tiny_encoder), tell=told.append)
    own, [stage] = read_recipe("similarity").stage[0], recipe.stage
    assert {name: (spec.lo, spec.hi) for name, spec in recipe.relation.items()} == {"score": (0, 1)}
    assert [o.model_copy(update={"relation": "similarity"}) for o in stage.objective] == list(own.objective)
    assert {o.relation for o in stage.objective} == {"score"}
    assert told == [f"{scored} does not rate similarity, so the model will not answer it"]
    lines = dry_run(recipe, context=RunContext(device="cpu", tables=tables))
    assert any("learns score (" in line for line in lines)


def test_data_entry_maps_a_single_rating_column(scored, tiny_encoder):
    told = []
    changes = {"stage.0.data": [{"source": scored}], "stage.0.dev": [], "stage.0.filter_against": []}
    recipe = read_recipe("similarity", overrides=changes, encoder=str(tiny_encoder))
    dry_run(recipe, context=RunContext(device="cpu", tell=told.append))
    assert any("column 'score' (0..1) is read as similarity" in line for line in told)
    [*_, last] = load_source(DataSpec(source=scored), {"similarity": Relation.graded("similarity", 0, 5)})
    assert last.values == {"similarity": pytest.approx(5 * 39 / 40)}


def test_sources_rescale_and_round_as_the_paper_does(tmp_path):
    sick, target = Relation.graded("relatedness", 1, 5), Relation.graded("similarity", 0, 5)
    spec = DataSpec(source="x", round=True)
    assert move_value(3.0, sick, target, spec) == 2.0  # 5(3−1)/4 = 2.5, halves to even
    assert move_value(4.2, sick, target, spec) == 4.0
    assert move_value(4.2, sick, target, DataSpec(source="x")) == pytest.approx(4.0)
    assert move_value(None, sick, target, spec) is None


@pytest.mark.realdata
def test_sources_reproduce_the_rounded_label_counts(data_dir):
    from collections import Counter

    relations = {"similarity": Relation.graded("similarity", 0, 5)}
    stsb = load_source(DataSpec(source="stsb/train", round=True), relations, data_dir=data_dir)
    sick = load_source(
        DataSpec(source="sick/train", round=True, columns={"similarity": "relatedness"}),
        relations,
        data_dir=data_dir,
    )
    assert [Counter(r.values["similarity"] for r in stsb)[float(k)] for k in range(6)] == [
        615,
        810,
        939,
        1322,
        1461,
        602,
    ]
    assert [Counter(r.values["similarity"] for r in sick)[float(k)] for k in range(6)] == [
        303,
        193,
        705,
        1258,
        1437,
        604,
    ]


def test_noise_replaces_the_share_it_says_and_never_by_the_same_label():
    relation = Relation.ordered("e", ["contradiction", "neutral", "entailment"])
    records = [Record(("a", "b"), {"e": "neutral"}) for _ in range(4000)]
    noisy = add_noise(records, {"e": relation}, 0.2, seed=3)
    changed = [r.values["e"] for r in noisy if r.values["e"] != "neutral"]
    assert len(changed) / 4000 == pytest.approx(0.2, abs=0.02)
    assert changed.count("contradiction") / len(changed) == pytest.approx(0.5, abs=0.06)
    assert noisy == add_noise(records, {"e": relation}, 0.2, seed=3)


def test_split_off_dev_shares_no_text(tiny_encoder, tmp_path):
    from likewise.data.keys import text_key
    from likewise.data.splits import split_rows

    records = [Record((f"Text {i}", f"other {i // 2}"), {"s": 1.0}) for i in range(60)]
    chosen, clean = split_rows(records, 0.2, seed=1)
    assert clean
    assert len(chosen) == 12
    rest = [record for row, record in enumerate(records) if row not in chosen]
    sides = [
        {text_key(t) for r in part for t in r.texts} for part in (rest, [records[row] for row in chosen])
    ]
    assert not sides[0] & sides[1]
    with pytest.raises(DataError, match="too few"):
        split_rows(records[:5], 0.2, seed=1)


CHAIN = "a,b,s\n" + "".join(f"the cat {n} runs,the cat {n + 1} runs,{n % 6}\n" for n in range(60))


def chained(tiny_encoder, folder, **keys):
    """A checked recipe on rows of which each shares a text with the next."""
    (folder / "chain.csv").write_text(CHAIN, encoding="utf-8")
    stage = {
        "kind": "pairs",
        "data": [{"source": str(folder / "chain.csv"), "text_a": "a", "text_b": "b"}],
        "objective": [{"relation": "s", "head": "scalar", "loss": "mse", "pairing": ["prod", "absdiff"]}],
        "max_steps": 1,
        "dev_share": 0.2,
        **keys,
    }
    document = {
        "name": "chain",
        "encoder": {"name": str(tiny_encoder)},
        "relation": {"s": {"lo": 0, "hi": 5}},
        "stage": [stage],
    }
    return parse_recipe(document, "chain")


def test_dev_by_text_shares_no_text_with_the_training_rows(tiny_encoder, tmp_path):
    def plan(**keys):
        recipe = chained(tiny_encoder, tmp_path, **keys)
        return "\n".join(dry_run(recipe, context=RunContext(device="cpu")))

    by_row = plan()
    assert 'so it may share texts with the training rows; dev_by = "text" prevents that' in by_row
    by_text = plan(dev_by="text")
    assert "may share texts" not in by_text
    told = re.search(r"left out (\d+) rows that have one text in common with the dev set", by_text)
    assert told is not None
    assert 0 < int(told[1]) <= 12


def test_dev_by_leaves_the_hashes_of_old_recipes_alone(tiny_encoder, tmp_path):
    plain, said, other = (
        chained(tiny_encoder, tmp_path, **keys).stage[0].model_dump(mode="json")
        for keys in ({}, {"dev_by": "row"}, {"dev_by": "text"})
    )
    assert "dev_by" not in plain
    assert plain == said
    assert other == {**plain, "dev_by": "text"}


def test_dev_by_fits_no_dev_set_that_is_named(tiny_encoder, tmp_path):
    for keys in ({"dev": [{"source": "x.csv"}]}, {"fold": [1, 3]}):
        found = rf"dev_by: says how a dev set is split off, but `{next(iter(keys))}` already says what"
        with pytest.raises(RecipeError, match=found):
            chained(tiny_encoder, tmp_path, dev_by="text", **keys)
    stage = chained(tiny_encoder, tmp_path, dev_by="text").stage[0]
    assert stage.with_fold((1, 3)).dev_by == "row"


def test_cosine_of_a_ranking_loss_is_settled_on_the_relations_scale(tiny_encoder, tiny_pairs):
    import numpy as np

    from likewise.data import load_records
    from likewise.evaluation.metrics import spearman

    recipe = on_tiny_data("similarity", tiny_encoder, tiny_pairs, steps=5)
    model = run_recipe(recipe, None, context=RunContext(device="cpu")).predictor
    records = load_records(tiny_pairs, relations=[Relation.graded("similarity", 0, 5)])
    gold = np.array([r.values["similarity"] for r in records])
    pairs = [r.texts for r in records]
    answers, cosines = model.score(pairs)["similarity"], model.cosines(pairs)
    assert abs(answers.mean() - gold.mean()) < 0.3
    assert ((answers > 0) & (answers < 5)).all()
    assert spearman(answers, cosines) == pytest.approx(1.0)


def line_of(cosines, ratings):
    """The line from cosine to a scale of 0 to 5 that a dev set of these pairs gives."""
    import numpy as np

    from likewise.kinds.answers import choose_answers
    from likewise.kinds.devscore import Measured

    similarity = Relation.graded("similarity", 0, 5)
    dev = [Record((f"a {i}", f"b {i}"), {"similarity": rating}) for i, rating in enumerate(ratings)]
    found = choose_answers(
        lambda _: {"cosine": np.array(cosines)}, [DevSet("dev", dev)], [Measured(similarity, "spearman")]
    )
    return found["similarity"], similarity


def test_answers_beyond_the_ends_of_the_scale_keep_the_ranks_of_the_cosine():
    import numpy as np

    answer, similarity = line_of([0.60, 0.62, 0.65, 0.66], [0.0, 1.5, 4.0, 5.0])
    cosines = np.linspace(-0.2, 1.0, 400)
    answers = answer.values({"cosine": cosines}, similarity)
    slope, offset = answer.lines["cosine"]
    assert (slope * cosines + offset > 5).sum() > 20
    assert (slope * cosines + offset < 0).sum() > 20
    assert ((answers > 0) & (answers < 5)).all()
    assert (np.diff(answers) > 0).all()
    middle = (answers > 0.1) & (answers < 4.9)
    assert answers[middle] == pytest.approx((slope * cosines + offset)[middle])


def test_anchor_of_an_untrained_encoder_is_refused():
    bilstm = {"kind": "bilstm", "vectors": "glove100"}
    with pytest.raises(
        RecipeError, match=r"stage.0.anchor: is 3, but encoder kind 'bilstm' starts untrained"
    ):
        read_recipe("similarity", overrides={"encoder": bilstm})
    assert read_recipe("similarity", overrides={"encoder": bilstm, "stage.0.anchor": 0.0})


def test_a_run_without_output_leaves_nothing_behind(tiny_encoder, tiny_pairs, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    recipe = on_tiny_data("similarity", tiny_encoder, tiny_pairs)
    with pytest.raises(KeyboardInterrupt):
        run_recipe(recipe, None, context=RunContext(device="cpu", emit=_interrupt))
    assert list(tmp_path.iterdir()) == []


def _interrupt(event):
    raise KeyboardInterrupt


def test_exact_heads_are_solved_and_saved_like_trained_ones(tiny_encoder, tiny_pairs, tmp_path):
    import numpy as np

    from likewise.data import load_records

    document = {
        "name": "frozen",
        "encoder": str(tiny_encoder),
        "relation": {
            "similarity": {"lo": 0, "hi": 5},
            "topic": {"lo": -2, "hi": 2},
            "entailment": {"kind": "classes", "labels": ["contradiction", "neutral", "entailment"]},
        },
        "stage": [
            {
                "data": [{"source": str(tiny_pairs)}],
                "objective": [
                    {
                        "relation": "similarity",
                        "head": "scalar",
                        "loss": "mse",
                        "pairing": ["prod", "absdiff"],
                    },
                    {"relation": "topic", "head": "scalar", "loss": "mse", "pairing": ["prod", "absdiff"]},
                    {
                        "relation": "entailment",
                        "head": "classes",
                        "loss": "cross_entropy",
                        "pairing": ["prod", "absdiff"],
                    },
                ],
                "optimiser": "exact",
            }
        ],
    }
    before = likewise.load(tiny_encoder, device="cpu").encode(["a man plays guitar"])
    report = run_recipe(recipe_from(document, "x"), tmp_path / "m", context=RunContext(device="cpu"))
    assert report.stages[0]["steps"] == 0
    assert len(report.stages[0]["history"]) == 3 * 6
    model = likewise.load(tmp_path / "m", device="cpu")
    assert np.array_equal(model.encode(["a man plays guitar"]), before)  # the encoder stayed as it was
    pairs = [
        record.texts for record in load_records(tiny_pairs, relations=[Relation.graded("similarity", 0, 5)])
    ]
    again = report.predictor.score(pairs)
    assert np.allclose(model.score(pairs)["similarity"], again["similarity"])
    assert set(model.score(pairs)["entailment"]) <= {"contradiction", "neutral", "entailment"}
    document["stage"][0]["objective"][0] |= {"head": "distribution", "loss": "kl_grid"}
    found = r"has distribution \+ kl_grid, but .* solves only classes \+ cross_entropy, scalar \+ mse,"
    with pytest.raises(UsageError, match=found):
        run_recipe(recipe_from(document, "x"), None, context=RunContext(device="cpu"))


def test_ratings_borrowed_from_another_scale_choose_nothing_that_answers(tiny_encoder):
    from likewise.encoders.sentence import load_encoder
    from likewise.kinds.answers import let_dev_choose
    from likewise.kinds.devscore import Measured, rates_another
    from likewise.methods.pairs import Objective, PairModel
    from likewise.predict.pairs import Predictor

    follows = Relation.ordered("follows", ("no", "yes"))
    model = PairModel(load_encoder(tiny_encoder), [Objective(follows, "contrast", "infonce")])
    borrowed = [Record((f"the cat {i}", f"a dog {i}"), {"follows": i / 2}) for i in range(8)]
    sets = [DevSet("borrowed", borrowed)]
    measured = Measured(follows, "spearman", borrowed=rates_another(follows, sets))
    let_dev_choose(Predictor(model), sets, [measured])
    assert measured.borrowed
    assert model.answers == {}


@pytest.mark.parametrize(
    ("rows", "batch", "epochs", "dev_share"),
    [(60, 16, 20, 0.25), (280, 16, 9, 0.18), (500, 16, 5, 0.1), (3000, 64, 4, 0.1)],
)
def test_inferred_recipe_gives_small_tables_enough_steps_and_dev_rows(
    tmp_path, rows, batch, epochs, dev_share
):
    lines = "".join(f"the dog {i},a cat {i},{i % 6}\n" for i in range(rows))
    (tmp_path / "p.csv").write_text(f"text_a,text_b,similarity\n{lines}", encoding="utf8")
    stage = make_recipe(str(tmp_path / "p.csv"), relations=["similarity:0..5"])[0].stage[0]
    assert (stage.batch_size, stage.epochs, stage.dev_share) == (batch, epochs, dev_share)


@pytest.mark.parametrize(
    ("best", "metric", "warned"),
    [
        (-0.8, "spearman", True),
        (-0.1, "spearman", False),
        (-1.0, "spearman", False),  # answers all alike
        (-0.8, "mse", False),
        (None, "pearson", False),
    ],
)
def test_a_model_that_learnt_the_wrong_way_round_is_said(best, metric, warned, caplog):
    warn_if_falling(best, [Relation.graded("distance", 0, 5, metric=metric)])
    assert ("answers fall where ratings rise" in caplog.text) is warned
