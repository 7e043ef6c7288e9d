"""Model folders: equal after a round trip, plain sentence-transformers outside, damage named in one line."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import likewise
from likewise.errors import DataError, ModelError, UsageError
from likewise.predict import Predictor
from tests.conftest import follow_card

TEXTS = ["a man plays guitar", "the dog sleeps", "two children eat bread in the kitchen , not soup"]
PAIRS = [(TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[2]), (TEXTS[0], TEXTS[0])]


@pytest.fixture(scope="module")
def folder(tiny_encoder, tiny_pairs, tmp_path_factory):
    """A trained two-relation model."""
    target = tmp_path_factory.mktemp("models") / "my-model"
    likewise.train(
        tiny_pairs,
        target,
        encoder=str(tiny_encoder),
        relations=["similarity:0..5", "topic:-2..2", "entailment:classes"],
        overrides={"stage.0.epochs": 1, "stage.0.keep_start": False},
        device="cpu",
    )
    return target


def test_saved_model_gives_the_same_vectors_in_sentence_transformers(folder):
    own = likewise.load(folder, device="cpu").encode(TEXTS)
    theirs = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    assert np.abs(own - theirs).max() < 1e-5


def test_saved_model_scores_the_same_after_loading(folder):
    first, second = (likewise.load(folder, device="cpu") for _ in range(2))
    one, two = first.score(PAIRS), second.score(PAIRS)
    assert list(one) == ["similarity", "topic", "entailment"]
    assert np.array_equal(one["similarity"], two["similarity"])
    assert one["entailment"] == two["entailment"]
    assert set(one["entailment"]) <= {"contradiction", "neutral", "entailment"}
    assert ((one["topic"] >= -2) & (one["topic"] <= 2)).all()


def test_saved_model_holds_only_safe_files_and_says_what_it_is(folder):
    assert not [f for f in folder.rglob("*") if f.suffix in (".bin", ".pt", ".pth", ".pkl", ".pickle")]
    document = json.loads((folder / "likewise" / "model.json").read_text())
    assert [r["name"] for r in document["relations"]] == ["similarity", "topic", "entailment"]
    sources = document["source"]
    assert sources["entailment"] == "head"
    assert {name: answer["source"] for name, answer in document["answers"].items()} == {
        name: source for name, source in sources.items() if name != "entailment"
    }
    assert document["versions"]["torch"]
    card = (folder / "README.md").read_text()
    assert f"| topic | -2..2 | {sources['topic']} |" in card


@pytest.mark.parametrize("line", [[1.0, 100.0], [1.0, 1e30], [5e-324, 2.0], [1e30, 0.0], [1.0, -100.0]])
def test_lines_that_lead_to_no_answer_on_the_scale_are_refused(folder, tmp_path, line):
    """They are numbers that dev chose, and the one learnt thing in a file that has no checksum."""
    edited = tmp_path / "edited"
    shutil.copytree(folder, edited)
    document = json.loads((edited / "likewise" / "model.json").read_text())
    document["answers"]["similarity"]["lines"]["cosine"] = line
    (edited / "likewise" / "model.json").write_text(json.dumps(document))
    with pytest.raises(
        ModelError, match=r"answers\.(similarity does not lead to the relation's scale|lines = )"
    ):
        likewise.load(edited, device="cpu")


def test_the_card_of_a_pair_model_is_right(folder, monkeypatch):
    follow_card(folder, monkeypatch)
    assert "Also loads with `SentenceTransformer`" in (folder / "README.md").read_text()


def test_score_of_a_named_relation_and_of_an_unknown_one(folder):
    model = likewise.load(folder, device="cpu")
    assert list(model.score(PAIRS, relation="topic")) == ["topic"]
    with pytest.raises(UsageError, match="does not answer relation 'actor'"):
        model.score(PAIRS, relation="actor")
    with pytest.raises(UsageError, match="the scores hold no relation 'actor'"):
        model.score(PAIRS)["actor"]
    assert "actor" not in model.score(PAIRS)
    assert model.score(PAIRS).get("actor") is None


@pytest.mark.parametrize("form", ["list", "frame", "dataset", "file", "rows"])
def test_score_takes_lists_frames_datasets_and_files(folder, form, tmp_path):
    import datasets
    import pandas as pd

    model = likewise.load(folder, device="cpu")
    rows = [{"sentence1": a, "sentence2": b} for a, b in PAIRS]
    if form == "file":
        pd.DataFrame(rows).to_csv(tmp_path / "p.csv", index=False)
    sources = {
        "list": PAIRS,
        "rows": rows,
        "frame": pd.DataFrame(rows),
        "dataset": datasets.Dataset.from_list(rows),
        "file": tmp_path / "p.csv",
    }
    assert np.allclose(model.score(sources[form])["similarity"], model.score(PAIRS)["similarity"])


def test_train_takes_frames_and_keeps_the_model_in_memory(tiny_encoder, tiny_pairs):
    import pandas as pd

    frame = pd.read_csv(tiny_pairs)[["text_a", "text_b", "similarity"]]
    model = likewise.train(frame, encoder=str(tiny_encoder), overrides={"stage.0.max_steps": 2}, device="cpu")
    assert isinstance(model, Predictor)
    assert [r.name for r in model.relations] == ["similarity"]


def test_raw_encoder_answers_similarity_by_cosine(tiny_encoder):
    model = likewise.load(tiny_encoder, device="cpu")
    scores = model.score(PAIRS)
    u, v = (model.encode([pair[i] for pair in PAIRS]) for i in (0, 1))
    cosine = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    assert scores["similarity"] == pytest.approx(cosine, abs=1e-5)
    assert scores.source == {"similarity": "cosine"}
    assert scores.relations[0].scale == "-1..1"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("likewise/model.json", b"{"),
        ("likewise/model.json", b'{"format": 99}'),
        ("likewise/heads.safetensors", b"short"),
        ("modules.json", b"[]"),
        ("tokenizer.json", b"{}"),
    ],
)
def test_damaged_folder_is_named_in_one_line(folder, tmp_path, file, content):
    shutil.copytree(folder, tmp_path / "damaged")
    (tmp_path / "damaged" / file).write_bytes(content)
    with pytest.raises(ModelError) as caught:
        likewise.load(tmp_path / "damaged", device="cpu")
    assert "damaged" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_existing_folder_is_not_overwritten(folder, tiny_pairs, tiny_encoder):
    with pytest.raises(UsageError, match="exists already"):
        likewise.train(tiny_pairs, folder, encoder=str(tiny_encoder), device="cpu")


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (("", "x"), "pair 0, text a: the text is empty"),
        (("x", "y" * 100_001), "100,001 characters"),
        (("x", 3), "but a text is expected"),
    ],
)
def test_score_refuses_what_is_no_text(tiny_encoder, pair, message):
    model = likewise.load(tiny_encoder, device="cpu")
    with pytest.raises(DataError, match=message):
        model.score([pair])


def test_evaluate_by_head_measures_classes_and_ordered_labels(
    folder, tiny_encoder, tiny_pairs, monkeypatch, tmp_path
):
    from likewise.evaluation.suites import Suite
    from likewise.evaluation.tasks import Task
    from likewise.records import Relation

    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    labels = ["contradiction", "neutral", "entailment"]
    classes = Task(
        "classes", file=tiny_pairs, relation=Relation.classes("entailment", labels), metric="accuracy"
    )
    graded = Task("graded", file=tiny_pairs, relation=Relation.graded("similarity", 0, 5))
    result = likewise.evaluate(folder, Suite("mixed", (classes, graded)), source="head", device="cpu")
    assert 0 <= result["classes"].value <= 100
    assert -100 <= result["graded"].value <= 100
    ordered = likewise.train(
        tiny_pairs,
        encoder=str(tiny_encoder),
        relations=["entailment:contradiction<neutral<entailment"],
        overrides={"stage.0.max_steps": 3},
        device="cpu",
    )
    task = Task(
        "ordered", file=tiny_pairs, relation=Relation.ordered("entailment", labels), metric="accuracy"
    )
    assert 0 <= likewise.evaluate(ordered, Suite("one", (task,)), source="head").tasks[0].value <= 100


def test_evaluate_by_head_refuses_a_relation_the_model_does_not_answer(folder, tiny_pairs):
    from likewise.evaluation.suites import Suite
    from likewise.evaluation.tasks import Task
    from likewise.records import Relation

    task = Task("typo", file=tiny_pairs, relation=Relation.graded("similarty", 0, 5))
    with pytest.raises(UsageError, match="asks for 'similarty', but the model answers similarity, topic"):
        likewise.evaluate(folder, Suite("mine", (task,)), source="head", device="cpu")


def test_train_with_a_last_batch_too_small_to_correlate(tiny_encoder):
    rows = [(f"the dog {i}", f"a cat {i}", i % 6) for i in range(74)]
    frame = [{"text_a": a, "text_b": b, "similarity": float(s)} for a, b, s in rows]
    model = likewise.train(
        frame,
        encoder=str(tiny_encoder),
        relations=["similarity:0..5"],
        overrides={"stage.0.epochs": 1, "stage.0.keep_start": False, "stage.0.dev_share": 0.1},
        device="cpu",
    )
    assert model.about["stages"][0]["pairs"] in (66, 67)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"trackers": ["nobody"]}, "tracker 'nobody'"), ({"device": "tpu9"}, "device 'tpu9'")],
)
def test_train_refuses_unknown_names_before_writing(tiny_pairs, tiny_encoder, tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        likewise.train(tiny_pairs, tmp_path / "m", encoder=str(tiny_encoder), **{"device": "cpu", **options})
    assert not list(tmp_path.iterdir())


def test_saved_bilstm_keeps_its_padding_rule(tiny_vectors, tmp_path):
    from likewise.encoders.words import bilstm_encoder, padding_of
    from likewise.methods.pairs import Objective, PairModel
    from likewise.records import Relation
    from likewise.store import save_model

    encoder = bilstm_encoder(tiny_vectors, hidden=12, padding="infersent-v1", device="cpu")
    model = PairModel(encoder, [Objective(Relation.graded("similarity", 0, 5), "cosine", "mse")])
    save_model(model, tmp_path / "m", about={})
    again = likewise.load(tmp_path / "m", device="cpu").model
    assert padding_of(again.encoder) == "infersent-v1"
    assert np.abs(again.encoder.encode(TEXTS) - encoder.encode(TEXTS)).max() < 1e-6
    SentenceTransformer(str(tmp_path / "m"), device="cpu").encode(TEXTS)  # padding-safe, but it loads


def test_evaluate_says_which_labels_the_model_never_saw(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    rows = "the cat,a dog,neutral\na man,the man,unclear\na dog,the dog,unclear\n"
    (tmp_path / "test.csv").write_text(f"text_a,text_b,entailment\n{rows}")
    (tmp_path / "suite.toml").write_text(
        'name = "s"\n[[task]]\nname = "t"\nfile = "test.csv"\nmetric = "accuracy"\n'
        'relation = "entailment:neutral|unclear"\n'
    )
    result = likewise.evaluate(folder, tmp_path / "suite.toml", source="head", device="cpu")
    assert result.notes == (
        "t: 2 of 3 rows have a label that the model never saw ('unclear'). They count as wrong.",
    )
    assert result.notes[0] in result.to_text()
    assert result.predictions == {}
