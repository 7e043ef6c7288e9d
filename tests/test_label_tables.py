"""Labels of single texts without a recipe: train FILE, templates, labels added to a task, calibration."""

from __future__ import annotations

import csv
import json
import random
import shutil

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

import likewise
from likewise.answering import NONE_OF_THESE
from likewise.errors import DataError, ModelError, RecipeError, UsageError
from likewise.methods.label_embedding import (
    LabelModel,
    contrast_loss,
    fit_calibration,
    held_loss,
    label_ways,
)
from likewise.records import Relation
from likewise.schema.labels import DEFAULT_TEMPLATES, label_settings, words_of

SAID = {
    "house_work": ["cooks soup", "eats bread", "a kitchen table", "the slow kitchen"],
    "outdoor": ["runs in the park", "the dog in the street", "a river in the morning", "soccer in the park"],
    "MusicRoom": ["plays piano", "sings with a guitar", "the band plays", "an old guitar"],
}
# A few steps that change the weights without taking time.
QUICK = {"stage.0.epochs": 2}


def write_tickets(path, *, each=6, labels=SAID, seed=1, mixed=False):
    """Tickets of each label; `mixed` ones are others, and most of them have the first label."""
    rng = random.Random(seed)
    with path.open("w", newline="", encoding="utf8") as file:
        writer = csv.writer(file)
        writer.writerow(["ticket", "intent"])
        for label in labels:
            for number in range(each):
                words = " ".join(rng.sample(["red", "old", "fast", "two", "blue"], 2))
                said = SAID.get(label, ["no one"] * 4)[number % 4]
                label_of_row = next(iter(labels)) if mixed and number % 3 else label
                writer.writerow([f"{said} {words} {number + 100 * mixed}", label_of_row])
    return path


@pytest.fixture(scope="module")
def intents(tiny_encoder, tmp_path_factory):
    """A model that was trained on eighteen tickets, with its folder and its table."""
    folder = tmp_path_factory.mktemp("intents")
    table = write_tickets(folder / "tickets.csv")
    model = likewise.train(
        table,
        folder / "model",
        text="ticket",
        label="intent",
        encoder=str(tiny_encoder),
        overrides=QUICK,
    )
    return model, folder


def test_a_table_of_labelled_texts_is_learnt_without_a_recipe(intents):
    model, folder = intents
    [task] = model.relations
    assert (task.name, set(task.labels)) == ("intent", set(SAID))
    said = dict(zip(task.labels, task.label_texts, strict=True))
    assert said == {"house_work": ("house work",), "outdoor": ("outdoor",), "MusicRoom": ("music room",)}
    stage = json.loads((folder / "model/likewise/model.json").read_text())["recipe"]["stage"][0]
    # With six examples of a label none is spared for dev, and the last step is kept.
    assert (stage["dev_share"], stage["select"], stage["matcher"]) == (0, False, "cosine")
    assert tuple(stage["templates"]) == DEFAULT_TEMPLATES
    loaded = likewise.load(folder / "model")
    texts = ["cooks soup", "plays piano"]
    np.testing.assert_allclose(
        loaded.classify(texts).probabilities, model.classify(texts).probabilities, atol=1e-6
    )


def test_training_begins_at_the_zero_shot_classifier(intents, tiny_encoder, tmp_path):
    """Step 0 answers as the raw encoder does with the same labels."""
    table = write_tickets(tmp_path / "tickets.csv")
    start = likewise.train(
        table,
        text="ticket",
        label="intent",
        encoder=str(tiny_encoder),
        overrides={"stage.0.max_steps": 1, "stage.0.learning_rate": 1e-12},
    )
    [task] = start.relations
    raw = likewise.load_classifier(str(tiny_encoder))
    labels = dict(zip(task.labels, task.label_texts, strict=True))
    texts = ["cooks soup", "the band plays", "a dog"]
    np.testing.assert_allclose(
        start.classify(texts).probabilities, raw.classify(texts, labels=labels).probabilities, atol=1e-4
    )


def test_labels_in_words_and_templates_reach_the_model(tiny_encoder, tmp_path):
    table = write_tickets(tmp_path / "tickets.csv")
    model = likewise.train(
        table,
        text="ticket",
        label="intent",
        labels={"outdoor": ["the park", "the street"]},
        templates="in the {} .",
        encoder=str(tiny_encoder),
        overrides=QUICK,
    )
    assert dict(zip(model.relations[0].labels, model.relations[0].label_texts, strict=True))["outdoor"] == (
        "the park",
        "the street",
    )
    assert model.model.templates == ("in the {} .",)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"text": "ticket", "label": "intent", "labels": {"nowhere": "x"}}, "'nowhere' is not a label"),
        ({"text": "ticket", "label": "intent", "text_a": "ticket"}, "table of single texts"),
        ({"text": "ticket", "label": "nothing"}, "nothing"),
        ({"text": "ticket", "label": "intent", "templates": "no place"}, "exactly once"),
    ],
)
def test_arguments_that_do_not_fit_the_table_are_refused(tmp_path, tiny_encoder, arguments, found):
    table = write_tickets(tmp_path / "tickets.csv")
    with pytest.raises((UsageError, DataError, RecipeError), match=found):
        likewise.train(table, encoder=str(tiny_encoder), **arguments)


def test_words_of_label_names():
    assert [words_of(name) for name in ("card_arrival", "CardArrival", "top-up.failed", "USA", "…")] == [
        "card arrival",
        "card arrival",
        "top up failed",
        "usa",
        "…",
    ]


def test_few_examples_get_many_epochs_and_no_dev_set():
    assert label_settings(96, 12) == {"epochs": 20, "dev_share": 0, "select": False}
    assert label_settings(3000, 6) == {"epochs": 4}
    assert label_settings(None, 6) == {}


def test_every_label_text_stands_in_every_template():
    task = Relation.classes("t", ["a", "b"], texts=(("x", "y"), ("z",)))
    assert label_ways(task, ("is {}", "{}!")) == [
        ("is x", 0),
        ("x!", 0),
        ("is y", 0),
        ("y!", 0),
        ("is z", 1),
        ("z!", 1),
    ]
    assert label_ways(task) == [("x", 0), ("y", 0), ("z", 1)]


def test_contrast_loss_agrees_with_its_definition():
    torch.manual_seed(1)
    x, y, gold = torch.randn(4, 5), torch.randn(3, 5), torch.tensor([0, 2, 0, 2])
    vectors = torch.nn.functional.normalize(torch.cat([x, y[[0, 2]]]), dim=1)
    labels = [0, 2, 0, 2, 0, 2]
    total = 0.0
    for i in range(6):
        same = [j for j in range(6) if j != i and labels[j] == labels[i]]
        below = sum(torch.exp(vectors[i] @ vectors[k] / 0.1) for k in range(6) if k != i)
        total += sum(-torch.log(torch.exp(vectors[i] @ vectors[j] / 0.1) / below) for j in same) / len(same)
    assert float(contrast_loss(x, gold, y)) == pytest.approx(float(total) / 6, rel=1e-5)


def test_held_loss_is_zero_at_the_start_and_two_at_right_angles():
    start = torch.eye(3)
    assert float(held_loss(5 * start, start)) == pytest.approx(0)
    assert float(held_loss(start.roll(1, 0), start)) == pytest.approx(2)


def test_calibration_without_offsets_is_the_temperature_of_the_cross_entropy(monkeypatch):
    monkeypatch.setattr("likewise.methods.label_embedding._OFFSET_PENALTY", 1e6)
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(400, 4)) * 3
    gold = np.array([rng.choice(4, p=softmax(row / 2)) for row in scores])
    found = fit_calibration(scores, gold)
    best = minimize_scalar(
        lambda t: -log_softmax(scores / t, axis=1)[np.arange(400), gold].mean(),
        bounds=(0.1, 10),
        method="bounded",
    ).x
    assert found.temperature == pytest.approx(best, rel=1e-3)
    assert found.temperature == pytest.approx(2, rel=0.2)
    assert np.abs(found.offsets).max() < 1e-3


def test_calibration_learns_that_a_label_is_frequent():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(600, 3))
    gold = np.array([rng.choice(3, p=softmax(row + np.array([1.5, 0, 0]))) for row in scores])
    offsets = np.array(fit_calibration(scores, gold).offsets)
    assert offsets[0] - offsets[1:].mean() == pytest.approx(1.5, abs=0.4)


def test_calibrated_probabilities_are_saved_and_lost_with_another_label(intents, tmp_path):
    _, folder = intents
    checked = write_tickets(tmp_path / "checked.csv", each=10, seed=5, mixed=True)
    before = (folder / "model/likewise/model.json").read_bytes()
    report = likewise.calibrate(
        str(folder / "model"), checked, tmp_path / "calibrated", text="ticket", label="intent"
    )
    assert (report.task, report.texts) == ("intent", 30)
    assert (folder / "model/likewise/model.json").read_bytes() == before
    loaded = likewise.load(tmp_path / "calibrated")
    scores = loaded.label_scores(loaded.relations[0], ["cooks soup"])
    fitted = loaded.model.calibrations["intent"]
    np.testing.assert_allclose(
        loaded.classify(["cooks soup"]).probabilities,
        softmax(scores / fitted.temperature + np.array(fitted.offsets), axis=1),
        rtol=1e-5,
    )
    likewise.update(
        str(tmp_path / "calibrated"),
        tmp_path / "more",
        task="intent",
        add_labels={"sleep": "sleeps at night"},
    )
    more = likewise.load(tmp_path / "more")
    assert more.relations[0].labels[-1] == "sleep"
    assert not more.model.calibrations


def test_calibration_of_an_untrained_encoder_keeps_its_labels(tiny_encoder, tmp_path):
    checked = write_tickets(tmp_path / "checked.csv", each=10, mixed=True)
    likewise.calibrate(
        str(tiny_encoder),
        checked,
        tmp_path / "model",
        text="ticket",
        label="intent",
        labels={"outdoor": "the park"},
    )
    loaded = likewise.load(tmp_path / "model")
    [task] = loaded.relations
    assert dict(zip(task.labels, task.label_texts, strict=True))["outdoor"] == ("the park",)
    assert loaded.classify(["a dog"]).labels == task.labels


def test_calibration_names_what_it_cannot_use(intents, tmp_path):
    _, folder = intents
    few = write_tickets(tmp_path / "few.csv", each=2, mixed=True)
    with pytest.raises(DataError, match="6 labelled texts, but 20"):
        likewise.calibrate(str(folder / "model"), few, tmp_path / "out", text="ticket")
    other = write_tickets(tmp_path / "other.csv", each=12, labels=[*SAID, "unknown"])
    with pytest.raises(DataError, match=r"other.csv:38: label 'unknown' is not one of the task's"):
        likewise.calibrate(str(folder / "model"), other, tmp_path / "out", text="ticket")
    with pytest.raises(DataError, match="did not make the probabilities better"):
        likewise.calibrate(
            str(folder / "model"),
            write_tickets(tmp_path / "right.csv", each=7, seed=9, mixed=False),
            tmp_path / "out",
            text="ticket",
        )
    assert not (tmp_path / "out").exists()


def test_calibration_leaves_out_texts_that_were_trained_on(intents, tmp_path):
    _, folder = intents
    told = []
    with pytest.raises(DataError, match="0 labelled texts, but 20"):
        likewise.calibrate(
            str(folder / "model"),
            folder / "tickets.csv",
            tmp_path / "out",
            task="intent",
            text="ticket",
            tell=told.append,
        )
    assert told == ["18 texts left out, because the model was trained on them"]


def test_a_label_is_added_without_data(intents, tmp_path):
    model, folder = intents
    likewise.update(str(folder / "model"), tmp_path / "new", task="intent", add_labels={"sleep": "sleeps"})
    new = likewise.load(tmp_path / "new")
    assert new.relations[0].labels == (*model.relations[0].labels, "sleep")
    x = "cooks soup"
    np.testing.assert_array_equal(new.encode([x]), likewise.load(folder / "model").encode([x]))


@pytest.mark.parametrize("mode", ["hot", "cold"])
def test_a_label_is_added_with_its_texts(intents, tmp_path, mode):
    _, folder = intents
    rows = tmp_path / "sleep.csv"
    rows.write_text("ticket,intent\nsleeps slow,sleep\nsleeps in the house,sleep\nno one sleeps,sleep\n")
    likewise.update(
        str(folder / "model"),
        tmp_path / "new",
        task="intent",
        add_labels={"sleep": ["sleeps", "not in the morning"]},
        data=rows,
        text="ticket",
        mode=mode,
        overrides={"epochs": 40, "learning_rate": 1e-3},
    )
    new = likewise.load(tmp_path / "new")
    # The new label is learnt, and the old ones are not forgotten.
    assert new.classify(["sleeps slow", "cooks soup red old 0"]).best == ["sleep", "house_work"]
    recipe = json.loads((tmp_path / "new/likewise/model.json").read_text())["recipe"]
    assert [entry["source"] for entry in recipe["stage"][0]["data"]] == [
        str(folder / "tickets.csv"),
        str(rows),
    ]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"task": "mood", "add_labels": {"a": "b"}}, "no task 'mood'"),
        ({"task": "intent", "add_labels": {"outdoor": "b"}}, "has the label 'outdoor' already"),
        ({"task": "intent", "add_labels": {"a": "outdoor"}}, "same for the encoder"),
        ({"task": "intent", "add_labels": {"a": "b"}, "mode": "hot"}, "no file is given"),
    ],
)
def test_a_label_that_cannot_be_added_is_refused(intents, tmp_path, arguments, found):
    _, folder = intents
    with pytest.raises(UsageError, match=found):
        likewise.update(str(folder / "model"), tmp_path / "new", **arguments)
    assert not (tmp_path / "new").exists()


def test_none_of_these_stands_for_texts_below_the_threshold(intents):
    model, _ = intents
    found = model.classify(["cooks soup", "two"], none_below=1.0)
    assert found.best == [NONE_OF_THESE] * 2
    assert found.probabilities.sum(axis=1) == pytest.approx([1, 1])
    assert NONE_OF_THESE not in model.classify(["cooks soup"], none_below=0.0).best
    with pytest.raises(UsageError, match="none_below"):
        model.classify(["cooks soup"], none_below=2)


def test_templates_can_be_changed_for_one_call(intents, tiny_encoder):
    model, _ = intents
    plain = model.classify(["two dogs"], templates=["{}"]).probabilities
    assert not np.allclose(plain, model.classify(["two dogs"]).probabilities)
    assert model.model.templates == DEFAULT_TEMPLATES
    fixed = LabelModel(model.model.encoder, model.relations, matcher="one-hot")
    from likewise.predict.labels import Classifier

    with pytest.raises(UsageError, match="reads no label texts"):
        Classifier(fixed).classify(["two"], templates=["{}"])


def test_commands_train_classify_calibrate_and_add_a_label(here, tmp_path, tiny_encoder):
    write_tickets(tmp_path / "tickets.csv")
    write_tickets(tmp_path / "checked.csv", each=10, seed=3, mixed=True)
    code, said = here(
        *("train", "tickets.csv", "--text", "ticket", "--label", "intent", "--encoder", tiny_encoder),
        *("--labels", "outdoor = the park | the street", "--output", "model", "--set", "stage.0.epochs=1"),
    )
    assert code == 0, said
    assert "all 18 texts are trained on" in said
    code, said = here("classify", "the band plays", "--model", "model", "--none-below", "1")
    assert code == 0
    assert said.startswith(NONE_OF_THESE)
    code, said = here(
        *("calibrate", "model", "checked.csv", "--text", "ticket", "--output", "calibrated", "--json")
    )
    assert code == 0, said
    assert json.loads(said[said.index("{") :])["texts"] == 30
    code, said = here(
        *("update", "calibrated", "--task", "intent", "--add-label", "gift card = an old card"),
        *("--output", "more"),
    )
    assert code == 0, said
    assert "calibrated again" in said
    code, said = here("classify", "checked.csv", "--text", "ticket", "--model", "more", "--output", "out.csv")
    assert code == 0, said
    header = (tmp_path / "out.csv").read_text().splitlines()[0]
    assert header == "ticket,intent,predicted_intent,p(MusicRoom),p(house_work),p(outdoor),p(gift card)"


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("templates", ["no place"], "exactly once"),
        ("templates", "{}", "not allowed"),
        ("calibrations", {"intent": {"temperature": 0, "offsets": [0, 0, 0]}}, "not allowed"),
        ("calibrations", {"intent": {"temperature": 1, "offsets": [0]}}, "does not fit"),
        ("calibrations", {"other": {"temperature": 1, "offsets": [0, 0, 0]}}, "does not fit"),
        ("calibrations", {"intent": {"temperature": 1}}, "does not fit"),
    ],
)
def test_templates_and_calibrations_of_a_folder_are_checked(intents, tmp_path, key, value, found):
    _, folder = intents
    shutil.copytree(folder / "model", tmp_path / "model")
    path = tmp_path / "model/likewise/model.json"
    document = json.loads(path.read_text())
    document["labels"][key] = value
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match=found):
        likewise.load(tmp_path / "model")
