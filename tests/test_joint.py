"""Fine-tuning of a joint encoder: pairs as one input, single texts, what is saved and who loads it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tomli_w
import torch
from typer.testing import CliRunner

import likewise
from likewise.api import make_recipe
from likewise.data import open_table
from likewise.errors import DataError, ModelError, RecipeError, UnknownNameError, UsageError
from likewise.evaluation.suites import Suite
from likewise.evaluation.tasks import Task
from likewise.kinds.context import RunContext
from likewise.methods.joint import load_joint
from likewise.predict import JointPredictor
from likewise.recipes.prepared import read_stages
from likewise.recipes.reading import read_recipe
from likewise.recipes.run import jobs_of
from likewise.records import Relation
from tests.conftest import follow_card

SAME = Relation.classes("same", ["no", "yes"])
ANIMALS = ["dog", "cat", "man", "woman", "child", "band", "train", "river"]


def pairs_table(folder, *, graded=False):
    """Pairs whose second text decides: a model that only saw the first would be right half the time."""
    lines = ["text_a,text_b,same"]
    for first in ANIMALS:
        for second in ANIMALS:
            for verb in ("runs", "sleeps"):
                value = (4 if verb == "runs" else 1) if graded else ("yes" if verb == "runs" else "no")
                lines.append(f"a {first} sings,the {second} {verb},{value}")
    file = folder / "pairs.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def recipe(encoder, source, relation, **stage) -> dict:
    return {
        "name": "joint",
        "encoder": {"name": str(encoder)},
        "relation": {"same": relation},
        "stage": [
            {
                "kind": "joint",
                "data": [{"source": str(source)}],
                "learning_rate": 5e-4,
                "batch_size": 16,
                "epochs": 10,
                "dev_share": 0,
                **stage,
            }
        ],
    }


def run(folder, document, name="model"):
    file = folder / f"{name}.toml"
    file.write_text(tomli_w.dumps(document))
    return likewise.train(str(file), folder / name, device="cpu")


CLASSES = {"kind": "classes", "labels": ["no", "yes"]}


@pytest.fixture(scope="module")
def trained(tmp_path_factory, tiny_encoder):
    folder = tmp_path_factory.mktemp("joint")
    run(folder, recipe(tiny_encoder, pairs_table(folder), CLASSES))
    return folder


def test_the_second_text_is_read_too(trained):
    model = likewise.load(trained / "model", device="cpu")
    asked = [
        (f"a {x} sings", f"the {y} {v}") for x in ANIMALS[:2] for y in ANIMALS for v in ("runs", "sleeps")
    ]
    found = model.score(asked)["same"]
    gold = ["yes" if b.endswith("runs") else "no" for _, b in asked]
    assert np.mean([x == y for x, y in zip(found, gold, strict=True)]) > 0.9


def test_labels_of_pairs_come_with_their_probabilities(trained, tmp_path, here):
    model = likewise.load(trained / "model", device="cpu")
    asked = [("a dog sings", "the dog runs"), ("a dog sings", "the cat sleeps")]
    scores = model.score(asked)
    logits = model.outputs(asked)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(scores.probabilities["same"], expected, rtol=1e-5)
    assert scores.chances(1) == {
        "same": dict(zip(("no", "yes"), scores.probabilities["same"][1], strict=True))
    }
    code, said = here("score", *asked[0], "--model", trained / "model", "--json")
    assert code == 0, said
    found = json.JSONDecoder().raw_decode(said)[0]["relations"]["same"]
    assert found["probabilities"] == pytest.approx(scores.chances(0)["same"], abs=1e-6)
    code, said = here("score", *asked[0], "--model", trained / "model")
    assert f"{found['value']} ({max(found['probabilities'].values()):.1%})" in said
    (tmp_path / "pairs.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in asked))
    code, said = here("score", "pairs.csv", "--model", trained / "model", "--output", "scored.csv")
    assert code == 0, said
    rows = [row.fields for row in open_table(tmp_path / "scored.csv")]
    assert list(rows[0]) == ["a", "b", "same", "p(same=no)", "p(same=yes)"]
    assert float(rows[1]["p(same=yes)"]) == pytest.approx(scores.chances(1)["same"]["yes"], abs=1e-6)


def test_it_loads_as_a_cross_encoder_and_says_the_same(trained):
    from sentence_transformers import CrossEncoder
    from transformers import AutoModelForSequenceClassification

    model = likewise.load(trained / "model", device="cpu")
    asked = [("a dog runs", "the dog runs"), ("a cat sleeps", "the river runs and runs and runs")]
    theirs = CrossEncoder(str(trained / "model"), device="cpu").predict(asked, show_progress_bar=False)
    np.testing.assert_allclose(theirs, model.outputs(asked), atol=1e-5)
    stock = AutoModelForSequenceClassification.from_pretrained(trained / "model")
    assert stock.config.id2label == {0: "no", 1: "yes"}


def test_numbers_come_on_their_own_scale_everywhere(tiny_encoder, tmp_path):
    from sentence_transformers import CrossEncoder
    from transformers import pipeline

    document = recipe(
        tiny_encoder, pairs_table(tmp_path, graded=True), {"lo": 0, "hi": 5}, epochs=30, learning_rate=1e-3
    )
    model = run(tmp_path, document)
    asked = [("a dog sings", "the dog runs"), ("a dog sings", "the dog sleeps")]
    found = model.score(asked)["same"]
    assert found[0] > found[1]
    assert 0 <= found.min()
    assert found.max() <= 5
    theirs = CrossEncoder(str(tmp_path / "model"), device="cpu").predict(asked, show_progress_bar=False)
    np.testing.assert_allclose(theirs, model.outputs(asked)[:, 0], atol=1e-5)
    stock = pipeline("text-classification", model=str(tmp_path / "model"), device="cpu")
    answers = [stock({"text": a, "text_pair": b})["score"] for a, b in asked]
    np.testing.assert_allclose(answers, model.outputs(asked)[:, 0], atol=1e-5)


@pytest.mark.parametrize(("lo", "step"), [(0, 1), (500, 100)])
def test_where_a_scale_lies_and_how_wide_it_is_changes_nothing(tiny_encoder, tmp_path, lo, step):
    """A head that starts at 0 with a small rate would learn where ratings lie before anything else."""
    file = tmp_path / "pairs.csv"
    rows = [f"a {x},the {y},{lo + step * (4 if x < y else 1)}" for x in ANIMALS for y in ANIMALS]
    file.write_text("text_a,text_b,same\n" + "\n".join(rows) + "\n")
    relation = {"lo": lo, "hi": lo + 5 * step, "step": step}
    model = run(tmp_path, recipe(tiny_encoder, file, relation, epochs=2, learning_rate=1e-4))
    found = (model.score([("a dog", "the cat"), ("a cat", "the dog")])["same"] - lo) / step
    assert found.min() > 1.5
    assert found.max() < 3.5
    raw = run(
        tmp_path, recipe(tiny_encoder, file, relation, epochs=2, learning_rate=1e-4, targets="raw"), "raw"
    )
    assert ((raw.score([("a dog", "the cat")])["same"] - lo) / step).max() < 1.0


def test_single_texts_are_read_where_a_row_holds_one(tiny_encoder, tmp_path, monkeypatch):
    file = tmp_path / "texts.csv"
    rows = [f"the {x} {v},{'yes' if v == 'runs' else 'no'}" for x in ANIMALS for v in ("runs", "sleeps")] * 3
    file.write_text("text,same\n" + "\n".join(rows) + "\n")
    model = run(tmp_path, recipe(tiny_encoder, file, CLASSES, epochs=20))
    assert model.model.texts == 1
    assert model.score([text for (text,) in [("the dog runs",), ("the dog sleeps",)]])[
        model.relations[0].name
    ] == ["yes", "no"]
    with pytest.raises(UsageError, match="single texts"):
        model.score([("a", "b")])
    loaded = likewise.load(tmp_path / "model", device="cpu")
    assert loaded.score([text for (text,) in [("the dog runs",)]])[loaded.relations[0].name] == ["yes"]
    classifier = likewise.load_classifier(tmp_path / "model", device="cpu")
    found = classifier.classify(["the dog runs", "the dog sleeps"])
    assert found.best == ["yes", "no"]
    assert model.classify(["the dog runs"]).best == ["yes"]
    assert model.score(["the dog runs"])["same"] == ["yes"]
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
    suite = f'[[task]]\nname = "own"\nfile = {str(file)!r}\nrelation = "same:classes"\n'
    (tmp_path / "suite.toml").write_text(suite)
    result = likewise.evaluate(loaded, tmp_path / "suite.toml", log=False)
    assert (result.tasks[0].metric, result.tasks[0].value) == ("accuracy", 100.0)
    follow_card(tmp_path / "model", monkeypatch)
    with pytest.raises(UsageError, match="answers no others"):
        classifier.classify("the dog", labels=["dog", "cat"])


@pytest.fixture(scope="module")
def rated_texts(tmp_path_factory, tiny_encoder):
    """A model of single texts and numbers, and the table it learnt from."""
    folder = tmp_path_factory.mktemp("rated")
    rows = [f"the {x} {v},{4 if v == 'runs' else 1}" for x in ANIMALS for v in ("runs", "sleeps")] * 3
    (folder / "texts.csv").write_text("text,same\n" + "\n".join(rows) + "\n")
    document = recipe(tiny_encoder, folder / "texts.csv", {"lo": 0, "hi": 5}, epochs=80, learning_rate=1e-3)
    run(folder, document)
    return folder


def test_numbers_of_single_texts_are_scored(rated_texts, monkeypatch):
    model = likewise.load(rated_texts / "model", device="cpu")
    high, low = model.score(["the dog runs", "the dog sleeps"])["same"]
    assert high > 3 > 2 > low
    assert len(model.score(rated_texts / "texts.csv")["same"]) == 48
    assert likewise.score(["the dog runs"], model=model)["same"][0] == pytest.approx(high)
    with pytest.raises(UsageError, match=r"reads single texts\. Pass a list of texts"):
        model.score([("the dog runs", "the dog sleeps")])
    with pytest.raises(UsageError, match=r"a number \(0..5\) and does not classify single texts\. Use score"):
        likewise.load_classifier(rated_texts / "model", device="cpu")
    follow_card(rated_texts / "model", monkeypatch)


def call(*arguments: object):
    """The command line, as what it printed and how it ended."""
    from likewise.cli import app

    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_single_texts_are_scored_on_the_command_line(rated_texts, tmp_path):
    model = rated_texts / "model"
    said = json.loads(call("score", "the dog runs", "--model", model, "--json").stdout)
    assert said["text"] == "the dog runs"
    assert said["relations"]["same"]["value"] > 3
    output = tmp_path / "scored.jsonl"
    assert call("score", rated_texts / "texts.csv", "--model", model, "--output", output).exit_code == 0
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert len(rows) == 48
    assert all((row["predicted_same"] > 2.5) is ("runs" in row["text"]) for row in rows)


@pytest.mark.parametrize(
    ("texts", "said"),
    [(("a dog", "a cat"), "reads one text"), (("text.csv",), "no such file"), (("",), "is empty")],
)
def test_what_a_model_of_single_texts_cannot_score(rated_texts, texts, said):
    result = call("score", *texts, "--model", rated_texts / "model")
    assert result.exit_code != 0
    assert said in f"{result.output} {result.exception}"


def test_a_joint_model_says_that_it_explains_and_encodes_nothing(trained):
    model = likewise.load(trained / "model", device="cpu")
    with pytest.raises(UsageError, match="no vectors of texts or words"):
        model.explain("a dog", "a cat")
    with pytest.raises(UsageError, match="Use an encoder instead"):
        model.encode(["a dog"])


def test_a_fine_tuned_model_may_be_fine_tuned_on_something_else(rated_texts, tmp_path):
    document = recipe(rated_texts / "model", pairs_table(tmp_path), CLASSES, max_steps=1)
    assert run(tmp_path, document).score([("a dog", "a cat")])["same"][0] in ("no", "yes")


def test_texts_may_come_as_a_series(rated_texts):
    import pandas as pd

    model = likewise.load(rated_texts / "model", device="cpu")
    texts = ["the dog runs", "the dog sleeps"]
    np.testing.assert_allclose(model.score(pd.Series(texts))["same"], model.score(texts)["same"])


def test_the_card_of_a_joint_model_is_right(trained, monkeypatch):
    follow_card(trained / "model", monkeypatch)
    assert "Also loads with `CrossEncoder`" in (trained / "model" / "README.md").read_text()


def test_the_encoder_that_is_given_is_the_one_that_starts(tiny_encoder, tmp_path):
    file = pairs_table(tmp_path)
    options = {"data": str(file), "relations": ["same:classes"], "overrides": {"stage.0.max_steps": 1}}
    model = likewise.train("finetune", encoder=Path(tiny_encoder), device="cpu", **options)
    assert model.about["recipe"]["encoder"]["name"] == str(tiny_encoder)
    for other in (model, len, 3):
        with pytest.raises(
            UsageError,
            match=rf"encoder is a {type(other).__name__}, which cannot be used here\. Give the name",
        ):
            likewise.train("finetune", encoder=other, device="cpu", **options)


def test_same_seed_same_model_and_another_differs(tiny_encoder, tmp_path):
    file = pairs_table(tmp_path)
    made = [
        run(tmp_path, {**recipe(tiny_encoder, file, CLASSES, epochs=1), "seed": seed}, name)
        for seed, name in ((1, "a"), (1, "b"), (2, "c"))
    ]
    found = [model.outputs([("a dog runs", "the cat runs")]) for model in made]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.allclose(found[0], found[2])


def test_a_sample_is_drawn_by_the_seed(tiny_encoder, tmp_path):
    file = pairs_table(tmp_path)
    reports = []
    for seed in (1, 1, 2):
        name = f"s{seed}{len(reports)}"
        run(tmp_path, {**recipe(tiny_encoder, file, CLASSES, epochs=1, sample=20), "seed": seed}, name)
        reports.append(json.loads((tmp_path / name / "likewise" / "model.json").read_text())["stages"][0])
    assert [report["pairs"] for report in reports] == [20, 20, 20]
    prints = [report["fingerprints"]["train"] for report in reports]
    assert prints[0] == prints[1] != prints[2]


def test_padding_does_not_change_an_answer(trained):
    model = likewise.load(trained / "model", device="cpu")
    short, long = ("a dog", "the dog"), ("a dog runs in the park near the river", "the child sings and sings")
    together, alone = model.outputs([short, long]), model.outputs([short])
    np.testing.assert_allclose(together[0], alone[0], atol=1e-5)


def test_of_two_long_texts_the_longer_is_cut(tiny_encoder):
    model = load_joint(tiny_encoder, SAME, max_length=12, device="cpu")
    [inputs] = model.cut([("a dog", "the cat " * 20)])
    assert len(inputs["input_ids"]) == 12
    tokens = model.tokenizer.convert_ids_to_tokens(inputs["input_ids"])
    assert tokens[:4] == ["[CLS]", "a", "dog", "[SEP]"]


@pytest.mark.parametrize(("values", "hinted"), [((0, 1), True), ((0, 2), True), ((0, 3), False)])
@pytest.mark.parametrize("finetune", [True, False])
def test_numbers_that_look_like_labels_are_pointed_out(tmp_path, values, hinted, finetune, caplog):
    file = tmp_path / "pairs.csv"
    rows = [f"a {x},the {y},{values[x < y]}" for x in ANIMALS for y in ANIMALS]
    file.write_text("text_a,text_b,same\n" + "\n".join(rows) + "\n")
    source = {"source": "finetune", "data": str(file)} if finetune else {"source": str(file)}
    make_recipe(**source)
    found = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    expected = 'If these are labels, declare them: relations=["same:classes"]'
    assert any(expected in line for line in found) is hinted
    caplog.clear()
    make_recipe(**source, relations=["same:classes"])
    assert not caplog.records


def test_rows_without_a_label_count_nowhere(tiny_encoder, tmp_path):
    rated = [f"a {x},the {y},{'yes' if x < y else 'no'}" for x in ANIMALS for y in ANIMALS]
    rows = [*rated, *(f"a {x} sings,the {y} runs,NA" for x in ANIMALS[:7] for y in ANIMALS)]
    (tmp_path / "pairs.csv").write_text("text_a,text_b,same\n" + "\n".join(rows) + "\n")
    told: list[str] = []
    model = likewise.train(
        "finetune",
        tmp_path / "m",
        data=str(tmp_path / "pairs.csv"),
        relations="same:classes",
        encoder=tiny_encoder,
        overrides={"stage.0.epochs": 1},
        device="cpu",
        tell=told.append,
    )
    assert "  left out 56 rows without a value for same" in told
    plan = ": 58 pairs, each read as one input; dev set: split-off dev (6 rows)"
    assert any(line.endswith(plan) for line in told)
    assert model.about["stages"][0]["pairs"] == 58
    [stage] = make_recipe("finetune", data=str(tmp_path / "pairs.csv"), relations="same:classes")[0].stage
    assert stage.epochs == 20


def rare_positives(folder) -> str:
    """Labels of which a dev of a few rows holds one kind alone."""
    file = folder / "rare.csv"
    rows = [f"a {x},the {y},{int(x == y == 'dog')}" for x in ANIMALS for y in ANIMALS]
    file.write_text("text_a,text_b,same\n" + "\n".join(rows) + "\n")
    return str(file)


def test_a_dev_that_tells_nothing_does_not_end_a_run_that_keeps_the_last_step(tiny_encoder, tmp_path):
    options = {"encoder": tiny_encoder, "device": "cpu", "data": rare_positives(tmp_path)}
    told: list[str] = []
    likewise.train("finetune", overrides={"stage.0.max_steps": 1}, tell=told.append, **options)
    found = "not measured on split-off dev: it has too few values of same, or they are all the same"
    assert any(found in line for line in told)
    with pytest.raises(DataError, match=r"raise stage.0.dev_share"):
        likewise.train("finetune", overrides={"stage.0.max_steps": 1, "stage.0.select": True}, **options)


def test_answers_that_are_all_alike_on_dev_count_as_the_worst(tiny_encoder, tmp_path):
    document = recipe(tiny_encoder, pairs_table(tmp_path), CLASSES, max_steps=1, dev_share=0.2)
    document["relation"]["same"] = {**CLASSES, "metric": "matthews"}
    document["stage"][0]["learning_rate"] = 1e-12
    model = run(tmp_path, document)
    assert model.about["stages"][0]["best_value"] == -1.0


def test_others_cut_long_texts_where_it_does(tiny_encoder, tmp_path):
    from sentence_transformers import CrossEncoder

    model = run(tmp_path, recipe(tiny_encoder, pairs_table(tmp_path), CLASSES, epochs=1, max_length=12))
    asked = [("a dog sings", "the cat runs " * 20)]
    theirs = CrossEncoder(str(tmp_path / "model"), device="cpu").predict(asked, show_progress_bar=False)
    np.testing.assert_allclose(theirs, model.outputs(asked), atol=1e-5)


def test_inputs_are_cut_at_the_transformer_s_positions(tiny_encoder, tmp_path):
    document = recipe(tiny_encoder, pairs_table(tmp_path), CLASSES, max_length=9999, max_steps=1)
    file = tmp_path / "recipe.toml"
    file.write_text(tomli_w.dumps(document))
    told: list[str] = []
    model = likewise.train(str(file), device="cpu", tell=told.append)
    positions = model.model.encoder.config.max_position_embeddings
    assert f"  inputs are cut at {positions} tokens, the encoder's maximum" in told
    assert model.score([("a dog sings", "the cat runs " * 500)])["same"][0] in ("no", "yes")


@pytest.mark.parametrize("name", ['my "best" model', "back\\slash"])
def test_the_card_of_a_folder_with_an_odd_name_runs(tiny_encoder, tmp_path, monkeypatch, name):
    file = tmp_path / "recipe.toml"
    document = recipe(tiny_encoder, pairs_table(tmp_path), CLASSES, max_steps=1)
    file.write_text(tomli_w.dumps(document))
    likewise.train(str(file), tmp_path / name, device="cpu")
    follow_card(tmp_path / name, monkeypatch)


@pytest.mark.parametrize("select", [True, False])
def test_the_card_says_which_step_was_kept(tiny_encoder, tmp_path, select):
    document = recipe(tiny_encoder, pairs_table(tmp_path), CLASSES, max_steps=2, dev_share=0.2, select=select)
    run(tmp_path, document)
    card = (tmp_path / "model" / "README.md").read_text()
    assert ("but the last step was kept" in card) is not select


def test_evaluated_on_the_tasks_that_ask_its_relation(trained, tmp_path):
    table = pairs_table(tmp_path)
    tasks = (
        Task("mine", relation=SAME, metric="accuracy", file=table),
        Task("other", relation=Relation.classes("other", ["no", "yes"]), metric="accuracy", file=table),
    )
    result = likewise.evaluate(
        likewise.load(trained / "model", device="cpu"), Suite("own", tasks, by_name=True), log=False
    )
    assert [task.name for task in result.tasks] == ["mine"]
    assert result.left_out == ("other",)
    assert result.tasks[0].value > 80
    with pytest.raises(UsageError, match="answers same of pairs"):
        likewise.evaluate(
            JointPredictor(likewise.load(trained / "model", device="cpu").model),
            Suite("own", tasks[1:], by_name=True),
            log=False,
        )


def test_a_pair_model_is_no_classifier(trained):
    with pytest.raises(ModelError, match="pairs of texts"):
        likewise.load_classifier(trained / "model", device="cpu")


def test_nothing_is_added_to_a_fine_tuned_model(trained, tmp_path):
    with pytest.raises(UsageError, match="fine-tuned on one relation"):
        likewise.update(trained / "model", tmp_path / "new", task="x", data=trained / "pairs.csv")
    assert not (tmp_path / "new").exists()


def test_what_it_cannot_answer_is_refused(trained):
    model = likewise.load(trained / "model", device="cpu")
    with pytest.raises(UnknownNameError, match="answers same"):
        model.score([("a", "b")], relation="similarity")
    with pytest.raises(UsageError, match="no cosine"):
        model.score([("a", "b")], source="cosine")


def test_one_value_everywhere_is_refused(tiny_encoder, tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("text_a,text_b,same\n" + "a dog,a cat,yes\nthe dog,the cat,yes\n" * 20)
    with pytest.raises(DataError, match="'same' is yes in all 40"):
        run(tmp_path, recipe(tiny_encoder, file, CLASSES))
    assert not (tmp_path / "model").exists()


def test_word_vectors_are_no_joint_encoder(tiny_vectors, tmp_path):
    document = recipe("x", pairs_table(tmp_path), CLASSES)
    document["encoder"] = {"kind": "average", "vectors": str(tiny_vectors)}
    with pytest.raises(RecipeError, match="is not a transformer, so it cannot read two texts as one input"):
        run(tmp_path, document)


def test_a_gpu_batch_is_a_function_of_its_rows(tiny_encoder):
    model = load_joint(tiny_encoder, SAME, device="cpu").eval()
    rows = model.cut([("a dog", "the cat"), ("a man sings in the park", "the woman")])
    padded = model.batch(rows)
    assert padded["input_ids"].shape == padded["attention_mask"].shape
    with torch.inference_mode():
        assert model.encoder(**padded).logits.shape == (2, 2)


@pytest.mark.parametrize("single", [False, True])
def test_an_own_table_is_fine_tuned_by_the_shipped_recipe(tiny_encoder, tmp_path, monkeypatch, single):
    monkeypatch.chdir(tmp_path)
    lines = ["note,kind"] if single else ["left,right,kind"]
    for number in range(30):
        texts = f"a {ANIMALS[number % 8]} runs {number}" if single else f"a dog {number},the cat {number}"
        lines.append(f"{texts},{'yes' if number % 2 else 'no'}")
    (tmp_path / "mine.csv").write_text("\n".join(lines) + "\n")
    columns = {"text_a": "note"} if single else {"text_a": "left", "text_b": "right"}
    model = likewise.train(
        "finetune", data="mine.csv", encoder=str(tiny_encoder), relations=["kind:classes"], device="cpu",
        overrides={"stage.0.epochs": 1}, **columns,
    )  # fmt: skip
    assert model.model.texts == (1 if single else 2)
    assert [relation.name for relation in model.relations] == ["kind"]
    assert model.relations[0].labels == ("no", "yes")


def test_an_own_table_of_several_ratings_is_asked_which(tiny_encoder, tmp_path):
    rows = "\n".join(f"a dog {n},the cat {n},{n % 5},{n % 3}" for n in range(20))
    (tmp_path / "mine.csv").write_text(f"text_a,text_b,near,far\n{rows}\n")
    with pytest.raises(DataError, match=r'relations=\["near'):
        likewise.train("finetune", data=str(tmp_path / "mine.csv"), encoder=str(tiny_encoder))


@pytest.mark.realdata
@pytest.mark.parametrize(("relation", "kept"), [("mrpc", "3,656 of 3,668"), ("stsb", "5,732 of 5,749")])
def test_shipped_rows_are_filtered_against_their_own_test_set(data_dir, relation, kept):
    recipe = read_recipe("finetune", overrides={"stage.0.relation": relation})
    [data] = read_stages(jobs_of(recipe, RunContext(data_dir=data_dir)))
    assert data.notes[0].startswith(f"leak filter: kept {kept} rows of {relation}/train; ")


@pytest.mark.realdata
@pytest.mark.parametrize(("source", "texts"), [("mrpc/dev", 2), ("cola/dev_in_domain", 1)])
def test_a_named_corpus_is_an_own_table_too(data_dir, monkeypatch, source, texts):
    monkeypatch.setenv("LIKEWISE_DATA", str(data_dir))
    recipe, tables = make_recipe("finetune", data=source)
    [data] = read_stages(jobs_of(recipe, RunContext(tables=tables)))
    assert {len(record.texts) for record in data.rows.train} == {texts}
    assert data.rows.train[0].values[next(iter(recipe.relation))] is not None


def test_a_new_head_is_not_reported_as_missing(tiny_encoder):
    script = (
        "from likewise.methods.joint import load_joint; from likewise.records import Relation; "
        f"load_joint({str(tiny_encoder)!r}, Relation.graded('same', 0, 5), device='cpu')"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "MISSING" not in result.stdout + result.stderr


def test_a_named_corpus_of_several_ratings_is_asked_which(data_dir):
    with pytest.raises(DataError, match="rates relatedness, entailment, but only one can be learnt"):
        make_recipe("finetune", data="sick/train", data_dir=data_dir)


def test_few_ratings_in_a_long_table_are_a_small_table():
    table = [{"a": f"a {n}", "b": f"b {n}", "score": n % 5 if n < 100 else None} for n in range(20_000)]
    [stage] = make_recipe("finetune", data=table, relations="score:0..4")[0].stage
    assert (stage.batch_size, stage.epochs) == (16, 20)
