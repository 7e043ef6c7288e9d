"""Relations said in words: one head reads what each of them asks; a new one needs no new parameter."""

from __future__ import annotations

import csv
import json
import random
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import likewise
from likewise.encoders.features import TextFeatures
from likewise.encoders.sentence import load_encoder
from likewise.errors import RecipeError, UsageError
from likewise.evaluation.metrics import spearman
from likewise.folders import document_of
from likewise.heads import Layers
from likewise.kinds.pair_steps import PairCollate, RatedPairs
from likewise.methods.described import DescribedHead
from likewise.methods.pairs import Objective, PairModel
from likewise.records import Record, Relation
from likewise.registry import family_name

# Descriptions have words that no pair has: what they are read by can be told from what pairs are read by.
ALIKE = Relation.graded("alike", 0, 4, description="red and blue")
APART = Relation.graded("apart", -2, 2, description="never fast or slow")
NOUNS = ["man", "woman", "dog", "cat", "child", "band", "train", "river"]
VERBS = ["plays", "sings", "runs", "sleeps", "eats", "cooks", "reads", "writes"]
PAIRING = ("prod", "absdiff")
RECORDS = [
    Record(("the man plays", "the man sings"), {"alike": 3.0, "apart": -1.0}),
    Record(("a dog runs", "the man plays"), {"alike": 0.5, "apart": None}),
    Record(("a dog runs", "a cat runs"), {"alike": 2.0, "apart": 0.5}),
]


def described(relation, loss="mse", **options):
    return Objective(relation, "described", loss, pairing=PAIRING, **options)


def build(tiny_encoder, *objectives):
    torch.manual_seed(0)
    return PairModel(load_encoder(tiny_encoder, device="cpu"), objectives).eval()


def batch_of(model, records=RECORDS, active=("alike", "apart")):
    rated = RatedPairs(records, model.objectives)
    collate = PairCollate(rated, TextFeatures(model.encoder), chunked=True)
    return collate([(row, tuple(active), False) for row in range(len(records))])


@pytest.mark.parametrize("matcher", ["concat-mlp", "bilinear", "dot", "cosine", "interaction"])
@pytest.mark.parametrize("scale", [False, True])
def test_head_answers_with_a_share_of_the_scale_that_hangs_on_the_description(matcher, scale):
    torch.manual_seed(1)
    head = DescribedHead(10, 6, matcher=matcher, layers=Layers(scale=scale))
    features, one, other = torch.randn(5, 10), torch.randn(1, 6), torch.randn(1, 6)
    if scale:  # such layers begin at zero
        torch.nn.init.normal_(head.projection[-1].weight)
    first, second = head(features, one), head(features, other)
    assert first.shape == (5,)
    assert ((first > 0) & (first < 1)).all()
    apart = first.logit() - second.logit()
    assert apart.var() > 1e-5  # another relation, not the same one moved up or down
    first.sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in head.parameters())


@pytest.mark.parametrize("matcher", ["concat-mlp", "bilinear", "dot", "cosine", "interaction"])
def test_head_over_scaled_features_takes_a_first_step_of_ordinary_size(matcher):
    torch.manual_seed(1)
    head = DescribedHead(10, 6, matcher=matcher, layers=Layers(scale=True))
    (head(torch.randn(8, 10), torch.randn(1, 6)) - torch.rand(8)).square().mean().backward()
    size = torch.stack([p.grad.norm() for p in head.parameters() if p.grad is not None]).norm()
    assert 0 < size < 100  # the direction of a zero vector has no gradient but an explosion


def test_head_matches_a_hand_computed_number():
    head = DescribedHead(2, 2, matcher="dot")
    with torch.no_grad():
        head.projection.weight.copy_(torch.tensor([[1.0, 0.0], [2.0, -1.0]]))
        head.projection.bias.copy_(torch.tensor([0.5, 0.0]))
    found = head(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, -1.0]]))
    assert found.item() == pytest.approx(1 / (1 + np.exp(-(3.5 - 2.0))))


def test_heads_that_cannot_answer_are_refused_with_a_remedy(tiny_encoder):
    with pytest.raises(UsageError, match=r"upper half of a scale. Use concat-mlp"):
        DescribedHead(4, 4, matcher="euclid")
    with pytest.raises(UsageError, match="has one hidden layer, but hidden names 2"):
        DescribedHead(4, 4, layers=Layers((8, 8)))
    with pytest.raises(UsageError, match="all relations would rank pairs alike"):
        build(tiny_encoder, described(ALIKE, matcher="concat-linear"))
    build(tiny_encoder, described(ALIKE, matcher="concat-linear", allow_blind=True))
    with pytest.raises(UsageError, match="cannot compare the texts"):
        build(tiny_encoder, Objective(ALIKE, "described", "mse", pairing=("u", "v"), matcher="bilinear"))
    with pytest.raises(UsageError, match="share one head"):
        build(tiny_encoder, described(ALIKE), described(APART, layers=Layers((5,))))
    with pytest.raises(UsageError, match=r"'mute' has no description.*under \[relation.mute\]"):
        build(tiny_encoder, described(Relation.graded("mute", 0, 4, description=" ")))
    with pytest.raises(UsageError, match="classes without an order"):
        described(Relation.classes("kind", ["a", "b"], description="x")).codec()


def test_all_described_relations_share_one_head(tiny_encoder):
    one = build(tiny_encoder, described(ALIKE))
    two = build(tiny_encoder, described(ALIKE), described(APART))
    assert list(one.heads) == list(two.heads) == ["described:concat-mlp:prod+absdiff"]
    assert [p.shape for p in one.parameters()] == [p.shape for p in two.parameters()]


def test_loss_counts_errors_in_steps_of_each_relations_own_scale(tiny_encoder):
    wide = Relation.graded("apart", -2, 2, step=0.5, description="never fast or slow")
    model = build(tiny_encoder, described(ALIKE), described(wide))
    batch = batch_of(model)
    with torch.no_grad():
        vectors = model.encode_chunks(batch["chunks"])
        said = model.encode_chunks([batch["descriptions"]])
        u, v = vectors[batch["a"]], vectors[batch["b"]]
        shares = [model.output(o, u, v, description=said[n : n + 1]) for n, o in enumerate(model.objectives)]
    alike = (4 * shares[0] - torch.tensor([3.0, 0.5, 2.0])) ** 2
    apart = ((4 * shares[1][[0, 2]] - 2 - torch.tensor([-1.0, 0.5])) / 0.5) ** 2
    assert model(**batch)["loss"].item() == pytest.approx((alike.mean() + apart.mean()).item(), rel=1e-5)


def test_gradient_reaches_the_encoding_of_the_description(tiny_encoder):
    model = build(tiny_encoder, described(ALIKE), described(APART))
    model(**batch_of(model, active=("alike",)))["loss"].backward()
    words = model.encoder[0].auto_model.embeddings.word_embeddings.weight.grad
    number = model.encoder.tokenizer.convert_tokens_to_ids
    assert words[number("blue")].abs().sum() > 0  # of the relation that was trained
    assert words[number("slow")].abs().sum() == 0  # of the one that was not
    assert words[number("man")].abs().sum() > 0


def test_each_description_is_encoded_once_a_step_and_only_if_asked_for(tiny_encoder):
    model = build(tiny_encoder, described(ALIKE), described(APART))
    assert len(batch_of(model)["descriptions"]["input_ids"]) == 2
    batch = batch_of(model, active=("apart",))
    assert batch["described"] == ["apart"]
    assert len(batch["descriptions"]["input_ids"]) == 1
    plain = build(tiny_encoder, Objective(ALIKE, "scalar", "mse"))
    assert "descriptions" not in batch_of(plain)


def test_a_missing_rating_leaves_the_shared_head_to_the_other_relations(tiny_encoder):
    holes = [Record(r.texts, {"alike": r.values["alike"], "apart": None}) for r in RECORDS]
    rated = Record(("a cat sleeps", "a dog sleeps"), {"alike": 1.0, "apart": 1.0})
    grads = []
    for active in (("alike", "apart"), ("alike",)):
        model = build(tiny_encoder, described(ALIKE), described(APART))
        pairs = RatedPairs([*holes, rated], model.objectives)
        collate = PairCollate(pairs, TextFeatures(model.encoder), chunked=True)
        model(**collate([(row, active, False) for row in range(3)]))["loss"].backward()
        grads.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert grads[0].keys() == grads[1].keys()
    assert any(grad.any() for name, grad in grads[0].items() if name.startswith("heads."))
    for name, grad in grads[0].items():
        torch.testing.assert_close(grad, grads[1][name], rtol=1e-4, atol=1e-6)


def test_a_described_relation_is_not_answered_without_its_description(tiny_encoder):
    model = build(tiny_encoder, described(ALIKE))
    with pytest.raises(UsageError, match="answered by its description"):
        model.answer(model.objectives[0], torch.randn(2, 32), torch.randn(2, 32))


def ratings(first, second):
    """How alike two sentences of a noun and a verb are, and, on another scale, how far apart."""
    (noun, verb), (other_noun, other_verb) = (s.split()[1:] for s in (first, second))
    alike = 2.5 * (noun == other_noun) + 1.5 * (verb == other_verb)
    return {"alike": alike, "apart": 2 - alike, "noun": float(noun == other_noun)}


def rows(count, seed):
    generator = random.Random(seed)

    def sentence():
        return f"the {generator.choice(NOUNS[:4])} {generator.choice(VERBS[:4])}"

    made = []
    while len(made) < count:
        first = sentence()
        noun, verb = first.split()[1:]
        other = sentence().split()[1:]
        second = f"the {noun if generator.random() < 0.4 else other[0]} "
        second += verb if generator.random() < 0.4 else other[1]
        made.append((first, second, ratings(first, second)))
    return made


def write(path, content, names):
    with path.open("w", newline="", encoding="utf8") as file:
        writer = csv.writer(file)
        writer.writerow(["text_a", "text_b", *names])
        writer.writerows([a, b, *(values[name] for name in names)] for a, b, values in content)


def recipe_text(folder, encoder):
    head = 'loss = "mse", pairing = ["prod", "absdiff"], scale_features = true'
    return f"""
name = "tiny-described"
method = "relations"
encoder = {{ name = "{encoder}", normalise = false }}
[relation.alike]
lo = 0
hi = 4
description = "{ALIKE.description}"
[relation.apart]
lo = -2
hi = 2
description = "{APART.description}"
[[stage]]
data = [{{ source = "{folder}/train.csv" }}]
dev = [{{ source = "{folder}/dev.csv" }}]
objective = [
  {{ relation = "alike", head = "described", {head} }},
  {{ relation = "apart", head = "described", {head} }},
]
batch_size = 16
epochs = 6
order = "random"
learning_rate = 1e-3
head_learning_rate = 5e-3
keep_start = false
"""


def make_study(folder, encoder):
    """Rated pairs of two relations that say the opposite, pairs of a third, and a recipe of the two."""
    write(folder / "train.csv", rows(160, 1), ["alike", "apart"])
    write(folder / "dev.csv", rows(60, 2), ["alike", "apart"])
    write(folder / "new.csv", rows(60, 3), ["noun"])
    (folder / "study.toml").write_text(recipe_text(folder, encoder))
    return folder


@pytest.fixture
def study(tmp_path, tiny_encoder):
    """Rated pairs and a recipe, nothing trained yet."""
    return make_study(tmp_path, tiny_encoder)


def train(study, output="model", **options):
    return likewise.train(str(study / "study.toml"), study / output, device="cpu", **options)


def agreement(model, relation, seed=4):
    test = rows(80, seed)
    found = model.score([(a, b) for a, b, _ in test], relation=relation)[relation]
    return spearman([values[relation] for *_, values in test], found)


@pytest.mark.parametrize("schedule", ["multi-label", "multi-task"])
def test_one_head_answers_opposite_questions_by_their_descriptions(study, schedule):
    told = []
    model = train(study, overrides={"stage.0.schedule": schedule}, tell=told.append)
    assert agreement(model, "alike") > 0.7
    assert agreement(model, "apart") > 0.7
    pairs = [(a, b) for a, b, _ in rows(30, 5)]
    scores = model.score(pairs)
    assert spearman(scores["alike"], scores["apart"]) < -0.7
    assert scores["alike"].min() >= 0
    assert scores["apart"].min() < 0
    assert any("alike (described head, mse loss), apart (described head, mse loss)" in line for line in told)
    again = likewise.load(study / "model", device="cpu")
    assert [r.description for r in again.relations] == [ALIKE.description, APART.description]
    for name in ("alike", "apart"):
        np.testing.assert_array_equal(again.score(pairs)[name], scores[name])
    assert again.source("apart") == "head"
    assert family_name(document_of(study / "model")) == "pairs"


def test_descriptions_are_encoded_once_per_predictor(study, monkeypatch):
    import likewise.encoders.vectors as vectors

    train(study, overrides={"stage.0.max_steps": 2})
    model = likewise.load(study / "model", device="cpu")
    seen, encode = [], vectors.encode_texts

    def count(encoder, texts, **options):
        seen.extend(texts)
        return encode(encoder, texts, **options)

    monkeypatch.setattr(vectors, "encode_texts", count)
    for _ in range(3):
        model.score([("the man plays", "the dog sings")])
    assert seen.count(ALIKE.description) == 1
    assert seen.count(APART.description) == 1


def test_folders_written_before_matchers_could_be_chosen_still_load(study):
    train(study, overrides={"stage.0.max_steps": 2})
    file = study / "model" / "likewise" / "model.json"
    document = json.loads(file.read_text())
    for objective in document["objectives"]:
        assert objective.pop("matcher") == "concat-mlp"
    file.write_text(json.dumps(document))
    assert set(likewise.load(study / "model", device="cpu").score([("a man", "a dog")])) == {"alike", "apart"}


def test_a_relation_without_a_description_is_refused_by_name_and_leaves_no_trace(study):
    with pytest.raises(RecipeError) as caught:
        train(study, overrides={"relation.apart.description": " "})
    text = str(caught.value)
    assert text.startswith("stage.0.objective.1: relation 'apart' has no description")
    assert 'description = "…" under [relation.apart]' in text
    assert not list(study.glob("model*"))
    with pytest.raises(RecipeError, match="matcher"):
        train(study, overrides={"stage.0.objective.0.matcher": "euclid"})


def test_words_of_descriptions_belong_to_a_vocabulary_taken_from_the_data(study, tiny_vectors):
    encoder = {"kind": "bilstm", "vectors": str(tiny_vectors), "hidden": 8, "words": "data"}
    model = train(study, overrides={"encoder": encoder, "stage.0.max_steps": 2})
    known, other = model.encode(["red", "blue"])
    assert not np.array_equal(known, other)
    unknown, other = model.encode(["guitar", "soup"])  # neither in the data nor in a description
    np.testing.assert_array_equal(unknown, other)


def weights(folder):
    """All tensors of a model folder."""
    return {
        f"{file.relative_to(folder)}/{name}": value
        for file in sorted(folder.rglob("*.safetensors"))
        for name, value in load_file(file).items()
    }


def files(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


NOUN = ("--task", "noun", "--describe", "one dog or one cat", "--scale")


def test_zero_update_describes_a_relation_and_changes_no_parameter(study, here):
    train(study)
    before = files(study / "model")
    code, said = here("update", "model", *NOUN, "-2..2", "--mode", "zero", "--output", "new")
    assert code == 0, said
    assert files(study / "model") == before
    assert same(weights(study / "model"), weights(study / "new"))
    code, said = here("score", "the man plays", "the man sings", "--model", "new", "--json")
    answer = json.loads(said[said.index("{") :])["relations"]
    assert list(answer) == ["alike", "apart", "noun"]
    assert answer["noun"]["scale"] == "-2..2"
    assert answer["noun"]["source"] == "head"
    old, new = (likewise.load(study / name, device="cpu") for name in ("model", "new"))
    pairs = [(a, b) for a, b, _ in rows(20, 6)]
    scores = new.score(pairs)
    for name in ("alike", "apart"):
        np.testing.assert_array_equal(scores[name], old.score(pairs)[name])
    shares = [(scores[r.name] - r.lo) / (r.hi - r.lo) for r in new.relations]
    assert not np.allclose(shares[2], shares[0])
    assert not np.allclose(shares[2], shares[1])
    # A description that is already known is answered as it is known.
    arguments = ("--task", "again", "--describe", ALIKE.description, "--scale", "0..4", "--mode", "zero")
    code, said = here("update", "model", *arguments, "--output", "twin")
    assert code == 0, said
    twin = likewise.load(study / "twin", device="cpu").score(pairs, source="head")
    np.testing.assert_array_equal(twin["again"], twin["alike"])
    arguments = ("--task", "dark", "--describe", "the old wer", "--scale", "0..4", "--mode", "zero")
    code, said = here("update", "model", *arguments, "--output", "dark")
    assert code == 0, said
    assert "dark: the encoder does not know these words of the description: wer" in said


@pytest.mark.parametrize("rehearse", [0.0, 0.5])
def test_hot_update_learns_the_relation_and_says_what_the_old_ones_lost(study, here, rehearse):
    train(study)
    arguments = ("--rehearse", rehearse, "--output", "new", "--json", "--epochs", 10)
    code, said = here("update", "model", "new.csv", *NOUN, "0..1", *arguments)
    assert code == 0, said
    assert f"training on 54 rows of noun and {80 if rehearse else 0} rehearsed rows" in said
    report, _ = json.JSONDecoder().raw_decode(said[said.index("{\n") :])
    assert set(report["before"]) == set(report["after"])
    for number in ("spearman alike dev.csv", "spearman apart dev.csv", "spearman noun split-off dev"):
        assert number in report["after"]
    old, new = weights(study / "model"), weights(study / "new")
    assert {name: value.shape for name, value in old.items()} == {n: v.shape for n, v in new.items()}
    assert not same(old, new)
    model = likewise.load(study / "new", device="cpu")
    assert agreement(model, "noun") > 0.7
    if rehearse:
        assert agreement(model, "alike") > 0.7
    recipe = json.loads((study / "new" / "likewise" / "model.json").read_text())["recipe"]
    assert recipe["relation"]["noun"]["description"] == "one dog or one cat"
    assert [o["relation"] for o in recipe["stage"][0]["objective"]] == ["alike", "apart", "noun"]


def test_hot_update_may_leave_the_encoder_alone_and_leaves_other_heads(study, here):
    own = {"relation": "apart", "head": "distribution", "loss": "kl_grid", "pairing": ["prod", "absdiff"]}
    train(study, overrides={"stage.0.objective.1": own})
    code, said = here(
        "update", "model", "new.csv", *NOUN, "0..1", "--freeze", "encoder", "--epochs", 2, "--output", "new"
    )
    assert code == 0, said
    old, new = weights(study / "model"), weights(study / "new")
    moved = {name for name in old if not torch.equal(old[name], new[name])}
    assert moved
    assert all("/described:" in name for name in moved)
    assert "spearman alike dev.csv" in said
    assert "before" in said


def test_cold_update_trains_all_relations_again_and_does_not_lose_one_silently(study, here):
    train(study)
    code, said = here("update", "model", "new.csv", *NOUN, "0..1", "--mode", "cold", "--output", "new")
    assert code == 0, said
    model = likewise.load(study / "new", device="cpu")
    assert agreement(model, "alike") > 0.7
    assert [relation.name for relation in model.relations] == ["alike", "apart", "noun"]
    here("update", "model", *NOUN, "0..1", "--mode", "zero", "--output", "zero")
    arguments = ("--task", "verb", "--describe", "three", "--scale", "0..1", "--column", "noun")
    code, said = here("update", "zero", "new.csv", *arguments, "--mode", "cold", "--output", "lost")
    assert code
    assert "noun was added without ratings" in said
    code, said = here(
        "update", "zero", "new.csv", *arguments, "--rehearse", 0.3, "--epochs", 1, "--output", "kept"
    )
    assert code == 0, said
    model = likewise.load(study / "kept", device="cpu")
    assert [relation.name for relation in model.relations] == ["alike", "apart", "noun", "verb"]


def test_an_ordered_relation_is_added_by_its_labels_and_from_python(study):
    train(study, overrides={"stage.0.max_steps": 2})
    report = likewise.update(
        study / "model",
        study / "new",
        task="follows",
        describe="is one new today",
        scale="no<maybe<yes",
        mode="zero",
        device="cpu",
    )
    assert report.output == study / "new"
    follows = report.model.relations[-1]
    assert (follows.kind, follows.labels, follows.hi) == ("ordered", ("no", "maybe", "yes"), 2.0)
    found = report.model.score([("the man plays", "the dog sings")])["follows"]
    assert 0 <= found[0] <= 2
    again = likewise.load(study / "new", device="cpu").score([("the man plays", "the dog sings")])
    np.testing.assert_array_equal(again["follows"], found)


@pytest.fixture(scope="module")
def models(tmp_path_factory, tiny_encoder):
    """A described model, one with a head per relation, one of labels, and files that do not fit."""
    study = make_study(tmp_path_factory.mktemp("models"), tiny_encoder)
    quick = {"stage.0.max_steps": 2}
    train(study, overrides=quick)
    own = [{"relation": name, "head": "scalar", "loss": "mse"} for name in ("alike", "apart")]
    train(study, "plain", overrides={**quick, "stage.0.objective": own})
    (study / "mood.csv").write_text("text,mood\n" + "the man sings,new\na dog sleeps,old\n" * 20)
    mood = {"kind": "classes", "labels": ["new", "old"]}
    stage = {"kind": "labels", "data": [{"source": str(study / "mood.csv")}], "max_steps": 2}
    stage["dev"] = stage["data"]
    train(study, "labels", overrides={"relation": {"mood": mood}, "stage": [stage]})
    (study / "empty.csv").write_text("text_a,text_b,noun\n")
    (study / "nothing.csv").write_text("")
    write(study / "few.csv", rows(5, 1), ["noun"])
    write(study / "other.csv", rows(20, 1), ["alike", "apart"])
    (study / "raw").symlink_to(tiny_encoder)
    return study


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ("plain", *NOUN, "0..1", "--mode", "zero"),
            "none that reads descriptions, so it cannot learn 'noun' later. Train a model with head = ",
        ),
        (("plain", "new.csv", *NOUN, "0..1"), "none that reads descriptions"),
        (("raw", *NOUN, "0..1", "--mode", "zero"), "was not trained by Likewise, so it cannot be updated"),
        (
            ("model", "--task", "alike", "--describe", "x", "--scale", "0..1", "--mode", "zero"),
            "the model already answers 'alike'. Choose another --task NAME.",
        ),
        (("model", "new.csv", "--task", "noun", "--scale", "0..1"), "question in words: --describe QUESTION"),
        (("model", "--task", "noun", "--describe", " ", "--scale", "0..1", "--mode", "zero"), "--describe"),
        (("model", "new.csv", "--task", "noun", "--describe", "x"), "noun has no scale. Give --scale lo..hi"),
        (
            ("model", *NOUN, "no|yes", "--mode", "zero"),
            "--scale 'no|yes' is not a scale. Give --scale lo..hi",
        ),
        (
            ("model", "--task", "noun", "--describe", "wer weiß", "--scale", "0..1", "--mode", "zero"),
            "knows no word of the description (wer, weiß). Use other words.",
        ),
        (("model", *NOUN, "4..0", "--mode", "zero"), "the range 4..0 is empty"),
        (
            ("model", *NOUN, "0..1"),
            "--mode hot trains on rated pairs, but no file is given. Name a file of rated pairs",
        ),
        (
            ("model", "new.csv", *NOUN, "0..1", "--mode", "zero"),
            "new.csv is given. Leave it out, or use --mode hot.",
        ),
        (("model", *NOUN, "0..1", "--mode", "warm"), "is not one of zero, hot, cold"),
        (("model", "empty.csv", *NOUN, "0..1"), "no rows"),
        (("model", "nothing.csv", *NOUN, "0..1"), "nothing.csv"),
        (
            ("model", "few.csv", *NOUN, "0..1"),
            "few.csv: has 5 rated pairs, but a part of them becomes the dev set, which takes 10 or more",
        ),
        (("model", "absent.csv", *NOUN, "0..1"), "absent.csv"),
        (
            ("model", "other.csv", *NOUN, "0..1"),
            "no ratings of noun; its columns are text_a, text_b, alike, apart",
        ),
        (("model", "new.csv", *NOUN, "3..4"), "but the scale is 3 to 4"),
        (
            ("model", "new.csv", *NOUN, "0..1", "--labels", "a, b"),
            "answers pairs, so a new relation needs a description and a scale, not labels",
        ),
        (("model", "new.csv", *NOUN, "0..1", "--freeze", "roof"), "freeze 'roof' matches no parameter"),
        (("labels", "mood.csv", *NOUN, "0..1"), "classifies texts, so a new task needs labels"),
        (("labels", "--task", "tone"), "task 'tone' has no labelled texts"),
    ],
)
def test_updates_that_cannot_be_made_say_why_and_write_nothing(models, tmp_path, here, arguments, reason):
    shutil.copytree(models, tmp_path, dirs_exist_ok=True, symlinks=True)
    before = {path.name for path in tmp_path.iterdir()}
    code, said = here("update", *arguments, "--output", "made")
    assert code, said
    assert reason in " ".join(said.split())
    assert "Traceback" not in said
    assert {path.name for path in tmp_path.iterdir()} == before
