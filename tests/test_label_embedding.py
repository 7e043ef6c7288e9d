"""Labels are texts; many tasks in one model."""

from __future__ import annotations

import itertools
import json
import random
import shutil

import numpy as np
import pytest
import tomli_w
import torch

import likewise
from likewise.encoders.sentence import load_encoder
from likewise.encoders.words import distinct_words
from likewise.errors import DataError, LikewiseError, RecipeError, UsageError
from likewise.evaluation.suites import Suite
from likewise.evaluation.tasks import Task
from likewise.kinds.building import build_encoder, build_relations
from likewise.kinds.context import RunContext
from likewise.kinds.labels import LabelsRunner, take_turns
from likewise.matchers import MATCHERS, make_matcher
from likewise.methods.label_embedding import LabelModel, label_loss, label_vectors, shorten
from likewise.recipes.reading import read_recipe
from likewise.recipes.run import jobs_of
from likewise.records import Relation
from likewise.schema.parts import EncoderSpec
from likewise.schema.recipe import parse_recipe
from likewise.schema.shipped import shipped_document
from tests.conftest import follow_card
from tests.tiny import WORDS

MOOD = {"praise": ["sings", "plays guitar", "reads a book"], "complaint": ["sleeps", "no never", "not or"]}
MOOD_RELATION = Relation.classes("mood", list(MOOD))
PLACE = {"kitchen": ["cooks soup", "eats bread"], "park": ["runs in the park", "the dog"]}


@pytest.mark.parametrize("name", MATCHERS)
def test_matchers_score_every_text_against_every_label(name):
    torch.manual_seed(1)
    matcher = make_matcher(name, 6, hidden=5)
    x, y = torch.randn(4, 6), torch.randn(3, 6)
    scores = matcher(x, y)
    assert scores.shape == (4, 3)
    alone = [[matcher(x[i : i + 1], y[j : j + 1]).item() for j in range(3)] for i in range(4)]
    torch.testing.assert_close(scores, torch.tensor(alone))
    same_choice = bool((scores - scores[:1]).var(dim=1).max() < 1e-9)
    assert same_choice == matcher.blind == (name == "concat-linear")


def test_interaction_is_linear_in_the_four_parts():
    matcher = make_matcher("interaction", 3)
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    parts = torch.cat([x[1], y[0], (x[1] - y[0]).abs(), x[1] * y[0]])
    torch.testing.assert_close(matcher(x, y)[1, 0], matcher.linear(parts)[0])


def test_concat_mlp_sees_texts_however_short_their_vectors_are():
    """With short vectors tanh is linear, and a linear layer ranks the labels alike for every text."""
    torch.manual_seed(1)
    matcher = make_matcher("concat-mlp", 32)
    x, y = torch.randn(64, 32), torch.randn(2, 32)
    margins = [(scores[:, 0] - scores[:, 1]).std() for scores in (matcher(x, y), matcher(0.01 * x, 0.01 * y))]
    torch.testing.assert_close(margins[0], margins[1])
    assert margins[0] > 0.01


def test_an_unknown_matcher_is_refused_by_name():
    with pytest.raises(UsageError, match="concat-mlp"):
        make_matcher("telepathy", 3)


def test_losses_agree_with_their_definitions():
    scores, gold = torch.tensor([[1.0, -1.0, 0.5], [0.0, 2.0, 0.0]]), torch.tensor([0, 1])
    p = scores.softmax(1)
    assert float(label_loss("softmax", scores, gold)) == pytest.approx(
        -(p[0, 0].log() + p[1, 1].log()).item() / 2
    )
    s = scores.sigmoid()
    own = torch.tensor([[True, False, False], [False, True, False]])
    both = -torch.where(own, s.log(), (1 - s).log()).sum(1).mean()
    assert float(label_loss("bce", scores, gold)) == pytest.approx(both.item())
    assert float(label_loss("positive", scores, gold)) == pytest.approx(
        -(s[0, 0].log() + s[1, 1].log()).item() / 2
    )


def test_positive_loss_never_lowers_a_wrong_label():
    scores = torch.zeros(2, 3, requires_grad=True)
    label_loss("positive", scores, torch.tensor([0, 2])).backward()
    assert (scores.grad[0, 1:] == 0).all()
    assert (scores.grad <= 0).all()


def test_ways_to_say_a_label_are_averaged():
    ways, owners = torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 5.0]]), torch.tensor([0, 0, 1])
    torch.testing.assert_close(label_vectors(ways, owners), torch.tensor([[2.0, 0.0], [0.0, 5.0]]))


def test_long_texts_keep_their_first_and_last_words():
    assert shorten("a b c d e f g", 4) == "a b f g"
    assert shorten("a b c d e f g", 5) == "a b c f g"
    assert shorten("a b", 4) == "a b"
    assert shorten("a b c", None) == "a b c"


def test_tasks_take_turns_until_every_batch_was_used_once():
    waiting = {"mood": [[n] for n in range(30)], "place": [[n] for n in range(10)]}
    steps = list(take_turns(waiting, np.random.default_rng(1)))
    for task, batches in waiting.items():
        assert [batch for name, batch in steps if name == task] == batches
    first = [name for name, _ in steps[:16]].count("place")
    assert 4 <= first <= 12  # tasks are drawn alike, whatever they have left
    assert steps == list(take_turns(waiting, np.random.default_rng(1)))


def sentences(kinds, count, seed):
    generator = random.Random(seed)
    rows = []
    for number in range(count):
        label = generator.choice(list(kinds))
        subject = generator.choice(["the man", "a woman", "one child"])
        rows.append((f"{subject} {generator.choice(kinds[label])} {number % 5}", label))
    return rows


@pytest.fixture
def tasks(tmp_path, tiny_encoder):
    """Two labelled files and a recipe of both."""
    for name, kinds in (("mood", MOOD), ("place", PLACE)):
        for part, count, seed in (("train", 160, 1), ("dev", 60, 2)):
            lines = [f"{text},{label}" for text, label in sentences(kinds, count, seed)]
            (tmp_path / f"{name}-{part}.csv").write_text(f"text,{name}\n" + "\n".join(lines) + "\n")
    (tmp_path / "tasks.toml").write_text(recipe_text(tmp_path, tiny_encoder))
    return tmp_path


def recipe_text(folder, encoder):
    files = [f'{{ source = "{folder}/{name}-PART.csv" }}' for name in ("mood", "place")]
    data = ", ".join(files)
    return f"""
name = "tiny-tasks"
method = "labels"
encoder = {{ name = "{encoder}", normalise = false }}
[relation.mood]
kind = "classes"
labels = ["praise", "complaint"]
texts = {{ praise = ["sings and plays", "a good book"] }}
[relation.place]
kind = "classes"
labels = ["kitchen", "park"]
[[stage]]
kind = "labels"
data = [{data.replace("PART", "train")}]
dev = [{data.replace("PART", "dev")}]
batch_size = 16
epochs = 6
learning_rate = 2e-3
head_learning_rate = 5e-3
"""


def train(tasks, output, **options):
    return likewise.train(str(tasks / "tasks.toml"), tasks / output, device="cpu", **options)


def accuracy(model, tasks, name):
    rows = [line.rsplit(",", 1) for line in (tasks / f"{name}-dev.csv").read_text().splitlines()[1:]]
    found = model.classify([text for text, _ in rows], task=name).best
    return float(np.mean([a == b for a, (_, b) in zip(found, rows, strict=True)]))


@pytest.mark.parametrize("label_encoder", ["shared", "own"])
def test_two_tasks_are_learnt_by_one_model_and_survive_saving(tasks, label_encoder, monkeypatch):
    told = []
    model = train(tasks, "model", overrides={"stage.0.label_encoder": label_encoder}, tell=told.append)
    assert accuracy(model, tasks, "mood") > 0.9
    assert accuracy(model, tasks, "place") > 0.9
    follow_card(tasks / "model", monkeypatch)
    again = likewise.load_classifier(tasks / "model", device="cpu")
    texts = ["the man sings 1", "a woman sleeps 2"]
    for task in ("mood", "place"):
        np.testing.assert_allclose(
            again.classify(texts, task=task).probabilities,
            model.classify(texts, task=task).probabilities,
            atol=1e-5,
        )
    answers = again.classify(texts, task="mood")
    assert answers.labels == ("praise", "complaint")
    np.testing.assert_allclose(answers.probabilities.sum(axis=1), 1)
    assert answers.best == ["praise", "complaint"]
    assert next(iter(answers)).keys() == {"praise", "complaint"}
    assert any(
        "learns mood (2 labels), place (2 labels) with matcher concat-mlp and loss softmax" in line
        for line in told
    )
    document = json.loads((tasks / "model" / "likewise" / "model.json").read_text())
    assert document["relations"][0]["texts"] == [["sings and plays", "a good book"], ["complaint"]]


def test_labels_never_seen_are_answered(tasks):
    model = train(tasks, "model")
    found = model.classify("a woman cooks soup 3", labels=["kitchen", "park"])
    known = model.classify("a woman cooks soup 3", task="place")
    np.testing.assert_allclose(found.probabilities, known.probabilities, atol=1e-6)
    said = model.classify(
        "a woman cooks soup 3", labels={"indoors": ["kitchen", "bread"], "outdoors": "park"}
    )
    assert said.labels == ("indoors", "outdoors")
    with pytest.raises(UsageError, match="either a task"):
        model.classify("a woman", task="mood", labels=["x", "y"])
    with pytest.raises(UsageError, match=r"no task 'weather'\. Choose one of mood, place"):
        model.classify("a woman", task="weather")
    with pytest.raises(LikewiseError, match="at least two"):
        model.classify("a woman", labels=["one"])
    with pytest.raises(DataError, match="is empty"):
        model.classify(" ", task="mood")


def test_the_printed_form_gives_every_text_the_same_label(tasks):
    told = []
    overrides = {"stage.0.matcher": "concat-linear", "stage.0.loss": "positive", "stage.0.select": False}
    model = train(tasks, "model", overrides=overrides, tell=told.append)
    texts = [text for text, _ in sentences(MOOD, 40, 7)]
    assert len(set(model.classify(texts, task="mood").best)) == 1
    assert any("every text gets the same label" in line for line in told)


def test_one_hot_heads_learn_without_label_texts(tasks):
    model = train(tasks, "model", overrides={"stage.0.matcher": "one-hot"})
    assert accuracy(model, tasks, "mood") > 0.9
    again = likewise.load_classifier(tasks / "model", device="cpu")
    assert accuracy(again, tasks, "place") == accuracy(model, tasks, "place")
    with pytest.raises(UsageError, match="cannot read labels"):
        again.classify("a woman", labels=["x", "y"])


def test_bce_gives_each_label_its_own_probability(tasks):
    model = train(tasks, "model", overrides={"stage.0.loss": "bce"})
    found = model.classify([text for text, _ in sentences(MOOD, 9, 4)], task="mood").probabilities
    assert (np.abs(found.sum(axis=1) - 1) > 1e-6).any()


def test_a_run_that_died_goes_on_as_if_nothing_had_happened(tasks, monkeypatch):
    whole = train(tasks, "whole")
    monkeypatch.setattr(
        "likewise.kinds.labels.stage_report", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        train(tasks, "torn")
    monkeypatch.undo()
    stage = tasks / "torn.run" / "stage-0"
    (stage / "done.json").unlink()
    shutil.rmtree(sorted(stage.glob("checkpoint-*"))[-1])
    torn = train(tasks, "torn", resume=True)
    texts = [text for text, _ in sentences(MOOD, 20, 3)]
    np.testing.assert_array_equal(
        whole.classify(texts, task="mood").probabilities, torn.classify(texts, task="mood").probabilities
    )


def test_any_encoder_classifies_untaught_by_the_cosine(tiny_encoder):
    model = likewise.load_classifier(tiny_encoder, device="cpu")
    found = model.classify(["the dog", "a book"], labels=["the dog", "a book"])
    assert found.best == ["the dog", "a book"]
    assert model.relations == ()


def test_models_of_pairs_and_of_labels_are_not_mistaken_for_each_other(tasks, tiny_encoder, tiny_pairs):
    train(tasks, "labels")
    with pytest.raises(UsageError, match="reads single texts"):
        likewise.load(tasks / "labels", device="cpu").score([("the dog", "a cat")])
    likewise.train(
        str(tiny_pairs),
        tasks / "pairs",
        encoder=str(tiny_encoder),
        device="cpu",
        overrides={"stage.0.epochs": 1},
    )
    with pytest.raises(UsageError, match="does not classify single texts"):
        likewise.load(tasks / "pairs", device="cpu").classify(["the dog"], labels=["dog", "cat"])


def test_a_model_of_pairs_compares_texts_with_labels_by_its_vectors(tiny_pairs, tiny_encoder, tmp_path):
    pairs = likewise.train(
        tiny_pairs,
        tmp_path / "pairs",
        encoder=tiny_encoder,
        device="cpu",
        overrides={"stage.0.max_steps": 3, "stage.0.keep_start": False},
    )
    texts, labels = ["the dog runs", "a cat sleeps"], ["a dog", "the cat sleeps", "bread"]
    model = likewise.load_classifier(tmp_path / "pairs", device="cpu")
    found = model.classify(texts, labels=labels, templates="{}").probabilities
    text_vectors, label_vectors = (pairs.encode(some) for some in (texts, labels))
    cosines = [cosine(vector, label_vectors) for vector in text_vectors]
    assert [list(np.argsort(row)) for row in found] == [list(np.argsort(row)) for row in cosines]
    with pytest.raises(UsageError, match=r"no tasks of its own\. Give labels in words"):
        model.classify(texts, task="similarity")
    with pytest.raises(UsageError, match="nothing of its own to save"):
        model.save(tmp_path / "classifier")


def cosine(vector, others):
    return others @ vector / np.linalg.norm(others, axis=1) / np.linalg.norm(vector)


def test_bad_tasks_are_refused(tiny_encoder, tasks):
    encoder = load_encoder(tiny_encoder, device="cpu")
    mood = Relation.classes("mood", ["good", "bad"])
    with pytest.raises(UsageError, match="two tasks have the name mood"):
        LabelModel(encoder, [mood, mood])
    with pytest.raises(UsageError, match="a task needs labels"):
        LabelModel(encoder, [Relation("similarity")])
    with pytest.raises(UsageError, match="must hold one or more texts for each label"):
        Relation.classes("mood", ["good", "bad"], texts=(("good",), ("",)))
    with pytest.raises(RecipeError, match=r"relation.mood.texts: 'nice' is not one of the relation's labels"):
        train(tasks, "model", overrides={"relation.mood.texts": {"nice": "nice"}})
    data = [{"source": "x"}]
    mixed = [{"data": data, "objective": [{"relation": "mood"}]}, {"kind": "labels", "data": data}]
    with pytest.raises(
        RecipeError,
        match="kind 'labels' cannot follow kind 'pairs': it must come first or follow another stage",
    ):
        train(tasks, "model", overrides={"stage": mixed})
    (tasks / "mood-train.csv").write_text("text,mood\nthe man,praise\na woman,praise\n")
    with pytest.raises(DataError, match="all 2 training texts have the label 'praise'"):
        train(tasks, "model")
    assert not (tasks / "model").exists()


@pytest.mark.parametrize("peepholes", [False, True])
def test_the_papers_lstm_learns_both_tasks_and_survives_saving(tasks, peepholes):
    words = sorted(
        {word for kinds in (MOOD, PLACE) for ways in kinds.values() for way in ways for word in way.split()}
    )
    vectors = tasks / "words"
    vectors.mkdir()
    (vectors / "words.txt").write_text("\n".join([*words, *MOOD, *PLACE]) + "\n")
    np.save(
        vectors / "vectors.npy", np.random.default_rng(1).normal(size=(len(words) + 4, 16)).astype("float32")
    )
    encoder = {"kind": "lstm", "vectors": str(vectors), "hidden": 16, "peepholes": peepholes, "words": "data"}
    overrides = {
        "encoder": {**encoder, "train_vectors": True},
        "stage.0.label_encoder": "own",
        "stage.0.epochs": 12,
    }
    model = train(tasks, "model", overrides={**overrides, "stage.0.learning_rate": 1e-2})
    assert accuracy(model, tasks, "mood") > 0.9
    again = likewise.load_classifier(tasks / "model", device="cpu")
    assert accuracy(again, tasks, "place") == accuracy(model, tasks, "place")


@pytest.mark.parametrize("kind", ["lstm", "average"])
def test_dropout_acts_in_training_alone_and_leaves_no_trace_in_the_folder(tmp_path, kind):
    vectors = tmp_path / "words"
    vectors.mkdir()
    (vectors / "words.txt").write_text("one\ntwo\nthree\n")
    np.save(vectors / "vectors.npy", np.ones((3, 8), dtype="float32"))
    spec = EncoderSpec(kind=kind, vectors=str(vectors), hidden=8 if kind == "lstm" else None, dropout=0.5)
    encoder = build_encoder(spec, device="cpu", seed=1, words=None)
    features = encoder.preprocess(["one two three"])
    key = "token_embeddings" if kind == "lstm" else "sentence_embedding"

    def looked_up():
        return encoder[0](dict(features))[key].detach()

    encoder.eval()
    plain = looked_up()
    assert torch.equal(plain, looked_up())
    encoder.train()
    torch.manual_seed(1)
    dropped = looked_up()
    kept = dropped[plain != 0] != 0
    assert 0 < kept.float().mean() < 1
    torch.testing.assert_close(dropped[dropped != 0], 2 * plain[dropped != 0])
    assert not torch.equal(dropped, looked_up())
    encoder.save(str(tmp_path / "saved"))
    again = load_encoder(tmp_path / "saved", device="cpu")
    again.train()
    assert torch.equal(again[0](dict(features))[key], plain)


def test_a_file_of_texts_is_classified_on_the_command_line(tasks, here):
    train(tasks, "model")
    (tasks / "mail.csv").write_text("id,text\n1,the man sings 3\n2,a woman sleeps 1\n")
    code, said = here("classify", "mail.csv", "--model", "model", "--task", "mood", "--output", "sorted.csv")
    assert code == 0
    assert "2 texts classified" in said
    lines = (tasks / "sorted.csv").read_text().splitlines()
    assert lines[0] == "id,text,mood,p(praise),p(complaint)"
    assert [line.split(",")[2] for line in lines[1:]] == ["praise", "complaint"]
    labels = "praise | sings, complaint"
    _, said = here("classify", "the man sings 3", "--model", "model", "--labels", labels, "--json")
    answer, _ = json.JSONDecoder().raw_decode(said[said.index("{") :])
    assert set(answer["probabilities"]) == {"praise", "complaint"}
    code, said = here("classify", "the man", "--model", "model", "--labels", "a, b, a")
    assert code
    assert "names a label twice" in said


def test_labels_of_a_corpus_are_those_of_the_catalogue(tasks):
    recipe = read_recipe(
        str(tasks / "tasks.toml"), overrides={"relation.topic": {"corpus": "reuters46/topic"}}
    )
    topic = build_relations(recipe)["topic"]
    assert len(topic.labels) == 46
    assert dict(zip(topic.labels, topic.label_texts, strict=True))["acq"] == ("mergers and acquisitions",)
    wrong = read_recipe(str(tasks / "tasks.toml"), overrides={"relation.topic": {"corpus": "reuters46/mood"}})
    with pytest.raises(RecipeError, match="has no relation 'mood'; its relations are topic"):
        build_relations(wrong)


def test_a_suite_of_texts_is_answered_by_the_matcher(tasks):
    file = tasks / "mood-dev.csv"
    task = Task("Mood", file=file, relation=MOOD_RELATION, metric="accuracy", text_a="text", texts=1)
    model = train(tasks, "model")
    result = likewise.evaluate(model, Suite("mine", (task,)), log=False)
    assert result.tasks[0].value == pytest.approx(100 * accuracy(model, tasks, "mood"))
    assert "scores from matcher" in result.to_text()
    with pytest.raises(UsageError, match="pairs of texts"):
        likewise.evaluate(model, "sts7", log=False)


def say_in_tiny_words(document):
    """Labels that the tiny encoder can tell apart: it knows none of their own words."""
    words = [" ".join(pair) for pair in itertools.permutations(WORDS[:10], 2)]
    for name, relation in build_relations(parse_recipe(document, "x")).items():
        document["relation"][name]["texts"] = dict(zip(relation.labels, words, strict=False))


@pytest.mark.parametrize("scenario", ["cardinality", "domain", "objective"])
@pytest.mark.parametrize("kind", ["", "-lstm"])
def test_shipped_recipes_train_on_tiny_data(tasks, tiny_encoder, scenario, kind):
    document = shipped_document(f"labels-{scenario}{kind}")
    if kind:
        vectors = tasks / "words"
        vectors.mkdir()
        said = [
            " ".join(ways)
            for task in build_relations(parse_recipe(document, "x")).values()
            for ways in task.label_texts
        ]
        known = sorted(distinct_words(["the man woman sings sleeps", *said]))
        (vectors / "words.txt").write_text("\n".join(known) + "\n")
        table = np.random.default_rng(1).normal(size=(len(known), 8)).astype("float32")
        np.save(vectors / "vectors.npy", table)
        document["encoder"] |= {"vectors": str(vectors), "hidden": 8}
    else:
        document["encoder"]["name"] = str(tiny_encoder)
        say_in_tiny_words(document)
    [stage] = document["stage"]
    names = list(document["relation"])
    rows = sentences(MOOD, 30, 1)
    for name in names:
        first, second = build_relations(parse_recipe(document, "x"))[name].labels[:2]
        lines = [f"{text},{first if label == 'praise' else second}" for text, label in rows]
        (tasks / f"{name}.csv").write_text(f"text,{name}\n" + "\n".join(lines) + "\n")
    stage |= {"data": [{"source": str(tasks / f"{name}.csv")} for name in names], "filter_against": []}
    stage |= {"dev": stage["data"], "max_steps": 4}
    (tasks / "shipped.toml").write_text(tomli_w.dumps({**document, "evaluation": {}}))
    model = likewise.train(str(tasks / "shipped.toml"), device="cpu")
    assert [task.name for task in model.relations] == names
    for task in model.relations:
        assert model.classify("the man sings", task=task.name).probabilities.shape == (1, len(task.labels))


def test_training_on_the_command_line_measures_what_the_recipe_asks_for(tasks, here):
    (tasks / "suite.toml").write_text(
        'name = "mine"\ntexts = 1\n[[task]]\nname = "Mood"\nfile = "mood-dev.csv"\n'
        'relation = "mood:praise|complaint"\nmetric = "accuracy"\n'
    )
    recipe = (tasks / "tasks.toml").read_text() + '[evaluation]\nsuite = "suite.toml"\n'
    (tasks / "tasks.toml").write_text(recipe)
    code, said = here("train", "tasks.toml", "--output", "model", "--device", "cpu")
    assert code == 0, said
    assert "scores from matcher" in said
    code, said = here("evaluate", "model", "--suite", "suite.toml", "--device", "cpu")
    assert code == 0, said
    assert "Mood" in said


# Names that mislead: what a model guesses without training is wrong.
SPEED = {"slow": ["runs in the park", "plays guitar"], "fast": ["sleeps", "reads a book"]}


@pytest.fixture
def trained(tasks):
    """A model of two tasks, and labelled texts of a third."""
    train(tasks, "model")
    lines = [f"{text},{label}" for text, label in sentences(SPEED, 120, 5)]
    (tasks / "speed.csv").write_text("text,speed\n" + "\n".join(lines) + "\n")
    return tasks


def files(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_zero_update_names_labels_and_changes_no_parameter(trained, here):
    before = files(trained / "model")
    code, said = here("update", "model", "speed.csv", "--task", "speed", "--mode", "zero", "--output", "new")
    assert code == 0, said
    assert files(trained / "model") == before
    after = files(trained / "new")
    weights = [name for name in before if name.endswith(".safetensors")]
    assert len(weights) == 2
    assert all(before[name] == after[name] for name in weights)
    new = likewise.load_classifier(trained / "new", device="cpu")
    assert [task.name for task in new.relations] == ["mood", "place", "speed"]
    assert new.classify("a woman sleeps 1", task="speed").labels == ("fast", "slow")


@pytest.mark.parametrize("rehearse", [0.0, 0.5])
def test_hot_update_learns_the_new_task_and_says_what_the_old_ones_lost(trained, here, rehearse):
    arguments = ("--task", "speed", "--mode", "hot", "--rehearse", rehearse, "--output", "new", "--json")
    code, said = here("update", "model", "speed.csv", *arguments)
    assert code == 0, said
    report, _ = json.JSONDecoder().raw_decode(said[said.index("{\n") :])
    names = [name for name in report["after"] if name != "score"]
    assert {name.split()[1] for name in names} == {"mood", "place", "speed"}
    assert set(report["before"]) == set(report["after"])
    # The epoch is chosen by all tasks: what is forgotten counts against what is learnt.
    assert report["after"]["score"] > report["before"]["score"]
    if rehearse:
        assert min(report["after"][name] for name in names) > 0.8


def test_hot_update_may_leave_the_encoder_alone(trained, here):
    arguments = ("--task", "speed", "--freeze", "encoder", "--output", "new")
    code, said = here("update", "model", "speed.csv", *arguments)
    assert code == 0, said
    weights = [files(trained / name)["model.safetensors"] for name in ("model", "new")]
    assert weights[0] == weights[1]


def test_cold_update_trains_all_tasks_again(trained, here):
    code, said = here("update", "model", "speed.csv", "--task", "speed", "--mode", "cold", "--output", "new")
    assert code == 0, said
    new = likewise.load_classifier(trained / "new", device="cpu")
    assert accuracy(new, trained, "mood") > 0.9
    assert new.classify("a woman sleeps 1", task="speed").best == ["fast"]


def test_updates_that_cannot_be_made_change_nothing(trained, here, tiny_encoder):
    for arguments, reason in (
        (("model", "speed.csv", "--task", "mood"), "already answers 'mood'. Choose another --task"),
        (
            (str(tiny_encoder), "speed.csv", "--task", "speed"),
            "was not trained by Likewise, so it cannot be updated",
        ),
        (("model", "speed.csv", "--task", "tempo"), "tempo"),
        (("model", "speed.csv", "--task", "speed", "--mode", "warm"), "is not one of zero, hot, cold"),
    ):
        code, said = here("update", *arguments, "--output", "new")
        assert code, said
        assert reason in said
        assert not (trained / "new").exists()
    train(trained, "fixed", overrides={"stage.0.matcher": "one-hot"})
    code, said = here("update", "fixed", "speed.csv", "--task", "speed", "--output", "new")
    assert code
    assert "has a fixed layer per task and cannot read labels" in said


@pytest.fixture
def comparison(tasks):
    """An experiment over both tasks, without settings: recipe and suite stand in it."""
    recipe = (tasks / "tasks.toml").read_text()
    for name in ("mood", "place"):  # each file says which task it labels, so that tasks can be taken apart
        for part in ("train", "dev"):
            source = f'source = "{tasks}/{name}-{part}.csv"'
            recipe = recipe.replace(source, f'{source}, columns = {{ {name} = "{name}" }}')
    (tasks / "tasks.toml").write_text(recipe)
    asked = [
        f'[[task]]\nname = "{name}"\nfile = "{tasks}/{name}-dev.csv"\nmetric = "accuracy"\n'
        f'relation = "{name}:{"|".join(kinds)}"\n'
        for name, kinds in (("mood", MOOD), ("place", PLACE))
    ]
    (tasks / "suite.toml").write_text('name = "mine"\ntexts = 1\n' + "".join(asked))
    return f"""
name = "compare"
recipe = "{tasks}/tasks.toml"
suite = "{tasks}/suite.toml"
sources = ["matcher"]
seeds = [1]
"""


def rows_of(folder, experiment):
    (folder / "compare.toml").write_text(experiment)
    result = likewise.experiment(folder / "compare.toml", folder / "cells", device="cpu")
    return {row.setting: row for row in result.rows}


def test_joint_against_single_against_one_hot_against_untrained(tasks, comparison):
    """The paper's comparison: all tasks at once, one by one, without label texts, without training."""
    settings = """
[[setting]]
name = "joint"
[[setting]]
name = "single"
each = "relation"
[[setting]]
name = "one-hot"
set = { "stage.0.matcher" = "one-hot" }
[[setting]]
name = "untrained"
stages = 0
"""
    rows = rows_of(tasks, comparison + settings)
    assert rows["single"].models == 2
    assert set(rows["single"].metrics) == {"mood", "place"}
    for setting in ("joint", "one-hot"):
        assert min(rows[setting].numbers[name][0] for name in ("mood", "place")) > 90
    assert rows["untrained"].numbers["mood"][0] < 90


def test_a_task_that_comes_later_is_measured_before_and_after(tasks, comparison):
    """Table 4's comparison: without the task, its labels named, trained on, all tasks from the start."""
    modes = {
        "before": 'mode = "before"',
        "zero": 'mode = "zero"',
        "hot": 'mode = "hot"',
        "rehearsed": 'mode = "hot", rehearse = 0.5',
        "hot, no encoder": 'mode = "hot", set = { freeze = ["encoder"] }',
    }
    settings = "".join(
        f'[[setting]]\nname = "{name}"\nadd = {{ task = "place", {mode} }}\n' for name, mode in modes.items()
    )
    rows = rows_of(tasks, comparison + '[base]\n"stage.0.epochs" = 20\n' + settings)
    assert set(rows["before"].metrics) == {"mood"}
    assert rows["zero"].numbers["mood"] == rows["before"].numbers["mood"]
    assert rows["hot"].numbers["place"][0] > max(90, rows["zero"].numbers["place"][0])
    assert rows["rehearsed"].numbers["mood"][0] > 90
    assert rows["hot, no encoder"].numbers != rows["hot"].numbers
    # The model before is trained once; what an update costs is told apart from it.
    assert len([p for p in (tasks / "cells" / "models").iterdir() if p.is_dir()]) == 1
    assert rows["hot"].steps < rows["rehearsed"].steps
    assert rows["zero"].fit_seconds == rows["before"].fit_seconds


@pytest.mark.parametrize(
    ("add", "said"),
    [
        ('{ task = "speed", mode = "zero" }', "speed"),
        ('{ task = "place", mode = "warm" }', "warm"),
        ('{ task = "place", mode = "hot", rehearse = 2 }', "rehearse"),
    ],
)
def test_a_task_that_cannot_come_later_is_named(tasks, comparison, add, said):
    with pytest.raises(LikewiseError, match=said):
        rows_of(tasks, comparison + f'[[setting]]\nname = "x"\nadd = {add}\n')


def test_a_rehearsed_update_of_a_sentence_encoder_is_gentle():
    [job] = jobs_of(read_recipe("labels-domain"), RunContext())
    [lstm] = jobs_of(read_recipe("labels-domain-lstm"), RunContext())

    def settings(job, *fixed, rehearsed=True):
        return LabelsRunner().settings_for(job, 1000, rehearsed=rehearsed, fixed=fixed)

    slower = settings(job)
    assert slower.learning_rate == pytest.approx(job.stage.learning_rate / 5)
    assert slower.average == 0.99
    assert settings(job, "learning_rate") is job.stage
    assert settings(job, "average") is job.stage
    assert settings(job, "epochs") == slower
    assert settings(job, rehearsed=False) is job.stage
    assert settings(lstm) is lstm.stage


def stopped_update(folder, mode):
    """An update that is stopped once it has written a checkpoint."""

    def stop(event):
        if event.kind == "checkpoint":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hot_update(folder, "torn", mode=mode, emit=stop)
    assert not (folder / "torn").exists()
    assert (folder / "torn.run").is_dir()


def hot_update(folder, output, **options):
    return likewise.update(
        *(folder / "model", folder / output),
        **{"task": "speed", "data": folder / "speed.csv", "rehearse": 0.5, "device": "cpu", **options},
    )


def weights_of(folder):
    return {name: data for name, data in files(folder).items() if name.endswith(".safetensors")}


@pytest.mark.parametrize("mode", ["hot", "cold"])
def test_an_update_that_was_stopped_goes_on_bit_for_bit(trained, mode):
    hot_update(trained, "whole", mode=mode)
    stopped_update(trained, mode)
    with pytest.raises(UsageError, match="Continue it with resume=True"):
        hot_update(trained, "torn", mode=mode)
    hot_update(trained, "torn", mode=mode, resume=True)
    assert weights_of(trained / "torn") == weights_of(trained / "whole")
    assert not (trained / "torn.run").exists()


@pytest.mark.parametrize("changed", ["rows", "model", "rehearse"])
def test_an_update_goes_on_only_from_what_it_was_begun_with(trained, changed):
    stopped_update(trained, "hot")
    options = {}
    if changed == "rows":
        text = (trained / "speed.csv").read_text()
        (trained / "speed.csv").write_text(text.replace(",fast", ",slow", 3))
    elif changed == "model":
        train(trained, "model", overrides={"seed": 5}, overwrite=True)
    else:
        options = {"rehearse": 0.25}
    with pytest.raises(UsageError, match=r"changed since|started with another"):
        hot_update(trained, "torn", resume=True, **options)
    assert (trained / "torn.run").is_dir()
    assert not (trained / "torn").exists()


def test_an_update_that_was_stopped_after_its_model_was_complete_is_done(trained, monkeypatch):
    monkeypatch.setattr("likewise.recipes.update.remove_run", lambda work: None)
    hot_update(trained, "torn")
    monkeypatch.undo()
    assert (trained / "torn.run").is_dir()
    found = hot_update(trained, "torn", resume=True)
    assert [task.name for task in found.model.relations] == ["mood", "place", "speed"]
    assert not (trained / "torn.run").exists()
