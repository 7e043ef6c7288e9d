"""Texts beyond the encoder's limit: counted and told, and read whole in windows on request."""

from __future__ import annotations

import csv
import json
import logging

import numpy as np
import pytest
import tomli_w
from sentence_transformers.sentence_transformer.modules import Dense, Normalize

import likewise
from likewise.answering import CutTexts
from likewise.encoders.cache import EmbeddingCache, identify
from likewise.encoders.features import TextFeatures
from likewise.encoders.sentence import load_encoder, with_modules, with_prompt
from likewise.encoders.vectors import Encoding, encode_texts
from likewise.encoders.words import bilstm_encoder
from likewise.errors import UsageError
from likewise.methods.multilingual import FrozenPart
from likewise.predict.pairs import Predictor, raw_model

# The tiny encoder reads 64 tokens: 62 words between two markers. A window begins 55 words after the former.
LIMIT, ROOM, STEP = 64, 62, 55
PLAIN = (
    "man woman dog cat child band train river guitar piano book bread soup soccer park street house".split()
)
REMEDY = 'Use long="chunk" to read them whole.'


def words(count: int, seed: int = 0) -> str:
    return " ".join(np.random.default_rng(seed).choice(PLAIN, count))


LONG, SHORT = words(150), words(20, 1)


@pytest.fixture(scope="module")
def encoder(tiny_encoder):
    return load_encoder(tiny_encoder, device="cpu")


def by_hand(encoder, text: str) -> np.ndarray:
    """The mean of the vectors of the windows as texts of their own, by the words that each adds."""
    split = text.split()
    windows = [(0, 62), (55, 117), (110, 150)]
    vectors = encode_texts(encoder, [" ".join(split[start:end]) for start, end in windows])
    return np.average(vectors, axis=0, weights=[62, 55, 33])


def whole(encoder, texts, **options) -> np.ndarray:
    return encode_texts(encoder, texts, features=TextFeatures(encoder, long="chunk", **options))


def test_chunk_is_the_weighted_mean_of_its_windows(encoder):
    np.testing.assert_allclose(whole(encoder, [LONG])[0], by_hand(encoder, LONG), atol=1e-6)


def test_chunk_of_an_encoder_that_normalises_has_unit_length(encoder):
    unit = with_modules(encoder, [*encoder, Normalize()])
    mean = by_hand(unit, LONG)
    assert np.linalg.norm(mean) < 0.9999
    np.testing.assert_allclose(whole(unit, [LONG])[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_chunk_leaves_texts_within_the_limit_as_they_are(encoder):
    texts = [SHORT, words(ROOM), "a dog"]
    np.testing.assert_allclose(whole(encoder, texts), encode_texts(encoder, texts), atol=1e-6)


def test_chunk_reads_what_lies_beyond_the_limit(encoder):
    other = " ".join([*LONG.split()[:-1], "soup" if LONG.split()[-1] != "soup" else "dog"])
    cut, read = encode_texts(encoder, [LONG, other]), whole(encoder, [LONG, other])
    assert np.abs(cut[0] - cut[1]).max() < 1e-6 < np.abs(read[0] - read[1]).max()


def test_chunk_puts_the_prompt_before_every_window(tiny_encoder):
    prompted = with_prompt(load_encoder(tiny_encoder, device="cpu"), "a red book : ")
    features = TextFeatures(prompted, long="chunk")
    features.add([LONG])
    before = prompted.tokenizer("a red book :")["input_ids"][:-1]
    rows = [features.batch([part.key])["input_ids"][0].tolist() for part in features.parts(LONG)]
    assert len(rows) == 3
    assert all(row[: len(before)] == before and row[-1] == 3 and len(row) <= LIMIT for row in rows)
    assert sum(part.weight for part in features.parts(LONG)) == 150


def test_chunk_works_for_word_vectors(tiny_vectors):
    encoder = bilstm_encoder(tiny_vectors, hidden=6, max_length=LIMIT, device="cpu")
    np.testing.assert_allclose(whole(encoder, [LONG])[0], by_hand(encoder, LONG), atol=1e-6)
    features = TextFeatures(encoder)
    features.add([LONG, SHORT, words(ROOM), words(ROOM + 1)])
    assert features.cut == {hash(LONG), hash(words(ROOM + 1))}


def test_chunk_encodes_each_distinct_window_once_and_a_megabyte_in_little(encoder, monkeypatch):
    rows = []
    forward = type(encoder).forward
    monkeypatch.setattr(
        type(encoder),
        "forward",
        lambda self, inputs, **more: rows.append(len(inputs["input_ids"])) or forward(self, inputs, **more),
    )
    done = []
    found = Encoding(encoder, long="chunk").encode(
        ["dog " * 250_000, "dog " * 310, "dog"], progress=done.append
    )
    # The full window of dogs, the last window of each long text, and the short text.
    assert sum(rows) == 4
    assert sum(done) == 3
    assert found.shape == (3, 32)
    assert np.isfinite(found).all()


def test_chunk_in_groups_gives_the_same_vectors(encoder, monkeypatch):
    texts = [LONG, SHORT, words(200, 3), words(90, 4)]
    together = Encoding(encoder, long="chunk").encode(texts)
    monkeypatch.setattr("likewise.encoders.vectors._GROUP_CHARS", 500)
    monkeypatch.setattr("likewise.encoders.features._WINDOW_CHARS", 500)
    np.testing.assert_allclose(Encoding(encoder, long="chunk").encode(texts), together, atol=1e-6)


def test_count_knows_a_text_that_just_fits(encoder):
    features = TextFeatures(encoder)
    features.add([words(ROOM), words(ROOM + 1)])
    assert features.cut == {hash(words(ROOM + 1))}


def test_count_is_told_once_by_every_verb(tiny_encoder, caplog):
    model = likewise.load(tiny_encoder, device="cpu")
    line = f"1 of 2 texts is longer than 64 tokens; only its beginning was read. {REMEDY}"
    # The second time the vectors come from the cache of the model.
    for ask in (lambda: model.score([(LONG, SHORT)] * 3), lambda: model.score(LONG, SHORT)):
        caplog.clear()
        ask()
        assert caplog.messages == [line]
    caplog.clear()
    model.encode([LONG, SHORT, LONG])
    assert caplog.messages == [line]
    caplog.clear()
    likewise.load_classifier(tiny_encoder, device="cpu").classify([LONG, SHORT], labels=["dog", "cat"])
    assert caplog.messages == [line]
    caplog.clear()
    model.score(SHORT, "a dog")
    likewise.load(tiny_encoder, device="cpu", long="chunk").score([(LONG, SHORT)])
    assert not caplog.messages


def test_count_of_an_explanation_names_no_option(tiny_encoder, caplog):
    model = likewise.load(tiny_encoder, device="cpu")
    found = model.explain([(LONG, "a dog sings"), ("a cat", "a dog sings")], phrases="rules")
    assert caplog.messages == ["1 of 3 texts is longer than 64 tokens; only its beginning was read."]
    assert "beyond the encoder's limit of 64 tokens" in found[0].notes[0]


def _count_and_fail(cut: CutTexts) -> None:
    cut.count([LONG], {hash(LONG)})
    raise UsageError("it fails")


def test_count_ends_with_an_error_and_begins_again():
    cut, told = CutTexts(64), []
    with pytest.raises(UsageError), cut.telling(told.append):
        _count_and_fail(cut)
    with cut.telling(told.append), cut.telling(told.append):
        cut.count([SHORT], ())
    assert told == []
    with cut.telling(told.append), cut.telling(told.append):
        cut.count([LONG, SHORT, LONG], {hash(LONG)})
    assert told == ["1 of 2 texts is longer than 64 tokens; only its beginning was read."]


def test_count_gives_up_the_total_of_very_many_texts(monkeypatch):
    monkeypatch.setattr("likewise.answering._MOST_COUNTED", 3)
    cut = CutTexts(64)
    cut.count(range(5), {hash(3), hash(4)})
    assert str(cut.found()) == "2 texts are longer than 64 tokens; only their beginning was read."


def write(path, rows, columns=("text_a", "text_b")):
    with path.open("w", newline="", encoding="utf8") as file:
        csv.writer(file).writerows([columns, *rows])


def test_score_of_a_file_tells_once_and_chunk_reads_whole(here, tmp_path, tiny_encoder, monkeypatch):
    monkeypatch.setattr("likewise.cli.answering.WINDOW", 2)
    write(tmp_path / "pairs.csv", [(words(80, seed), SHORT) for seed in range(5)])
    ask = ("score", "pairs.csv", "--model", tiny_encoder, "--device", "cpu", "--output")
    code, said = here(*ask, "cut.csv")
    assert code == 0
    assert said.count("5 of 6 texts are longer than 64 tokens") == 1
    code, said = here(*ask, "whole.csv", "--long", "chunk")
    assert code == 0
    assert "longer than" not in said
    assert (tmp_path / "cut.csv").read_text() != (tmp_path / "whole.csv").read_text()
    code, said = here(*ask, "x.csv", "--long", "windows")
    assert code == 2
    assert "--long 'windows' is unknown. Choose cut or chunk." in said


def test_classify_of_a_file_tells_once(here, tmp_path, tiny_encoder):
    write(tmp_path / "texts.csv", [(LONG,), (SHORT,)], ["text"])
    ask = ("classify", "texts.csv", "--labels", "dog, cat", "--model", tiny_encoder, "--device", "cpu")
    code, said = here(*ask)
    assert code == 0
    assert said.count("1 of 2 texts is longer than 64 tokens") == 1
    assert "longer than" not in here(*ask, "--long", "chunk")[1]


def test_evaluate_counts_in_its_json_and_warns(tiny_encoder, tmp_path, here, caplog):
    rows = [(words(70, n), words(9, n), n % 5) for n in range(12)]
    write(tmp_path / "test.csv", rows, ["text_a", "text_b", "similarity"])
    ask = ("evaluate", tiny_encoder, "--data", "test.csv", "--relation", "similarity:0..5", "--device", "cpu")
    with caplog.at_level(logging.WARNING, "likewise"):
        code, _ = here(*ask, "--output", "cut.json")
    assert code == 0
    assert [line for line in caplog.messages if "12 of 24 texts are longer than 64 tokens" in line]
    code, _ = here(*ask, "--output", "whole.json", "--long", "chunk")
    assert code == 0
    cut, read = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("cut", "whole"))
    assert cut["cut_texts"] == {"texts": 12, "of": 24, "tokens": 64}
    assert read["cut_texts"] is None
    assert cut["tasks"][0]["value"] != read["tasks"][0]["value"]


def test_long_is_refused_for_a_model_that_is_loaded(tiny_encoder):
    model = likewise.load(tiny_encoder, device="cpu")
    for ask in (likewise.score, likewise.evaluate):
        with pytest.raises(UsageError, match="loaded already"):
            ask([("a dog", "a cat")], model=model, long="chunk") if ask is likewise.score else ask(
                model, long="chunk"
            )
    read = likewise.score([(LONG, SHORT)], model=tiny_encoder, long="chunk")["similarity"]
    assert read[0] != model.score([(LONG, SHORT)])["similarity"][0]


def test_joint_models_count_pairs_and_refuse_windows(tiny_encoder, tmp_path, here, caplog):
    rows = [(words(3, n), words(40 if n == 7 else 4, n), "yes" if n % 2 else "no") for n in range(16)]
    write(tmp_path / "pairs.csv", rows, ["text_a", "text_b", "same"])
    document = {
        "name": "joint",
        "encoder": {"name": str(tiny_encoder)},
        "relation": {"same": {"kind": "classes", "labels": ["no", "yes"]}},
        "stage": [
            {
                "kind": "joint",
                "data": [{"source": str(tmp_path / "pairs.csv")}],
                "max_length": 32,
                "max_steps": 1,
                "dev_share": 0,
            }
        ],
    }
    (tmp_path / "joint.toml").write_text(tomli_w.dumps(document))
    code, said = here("train", "joint.toml", "--output", "model", "--device", "cpu")
    assert code == 0, said
    assert "1 of 16 training pairs is longer than 32 tokens; only its beginning is read" in said
    model = likewise.load(tmp_path / "model", device="cpu")
    model.score([row[:2] for row in rows])
    assert caplog.messages[-1] == "1 of 16 pairs is longer than 32 tokens; only its beginning was read."
    with pytest.raises(UsageError, match=r"long=.chunk. pools the vectors.*reads its texts as one input"):
        likewise.load(tmp_path / "model", device="cpu", long="chunk")


@pytest.mark.parametrize("kind", ["pairs", "labels"])
def test_train_tells_in_the_plan_and_tokenizes_once(tiny_encoder, tmp_path, here, kind, monkeypatch):
    asked = []
    add = TextFeatures._add_window
    monkeypatch.setattr(
        TextFeatures, "_add_window", lambda self, texts: asked.extend(texts) or add(self, texts)
    )
    rows = [(words(80 if n < 3 else 5, n), words(4, n + 50), n % 5) for n in range(20)]
    dev = [(words(6, n + 100), words(7, n + 100), n % 5) for n in range(9)]
    if kind == "labels":
        for name, part in (("train", rows), ("dev", dev)):
            labelled = [(a, ("dog", "cat")[n % 2]) for a, _, n in part]
            write(tmp_path / f"{name}.csv", labelled, ["text", "same"])
        relation = {"same": {"kind": "classes", "labels": ["dog", "cat"]}}
        texts = [row[0] for row in rows]
        own = {}
    else:
        for name, part in (("train", rows), ("dev", dev)):
            write(tmp_path / f"{name}.csv", part, ["text_a", "text_b", "similarity"])
        relation = {"similarity": {"lo": 0, "hi": 5}}
        texts = [text for row in rows for text in row[:2]]
        own = {"objective": [{"relation": "similarity", "head": "cosine", "loss": "mse"}]}
    sources = {
        name: [{"source": str(tmp_path / f"{file}.csv")}]
        for name, file in (("data", "train"), ("dev", "dev"))
    }
    stage = {"kind": kind, **sources, "max_steps": 1, **own}
    document = {"name": "x", "encoder": {"name": str(tiny_encoder)}, "relation": relation, "stage": [stage]}
    (tmp_path / "x.toml").write_text(tomli_w.dumps(document))
    code, said = here("train", "x.toml", "--output", "model", "--device", "cpu")
    assert code == 0, said
    line = f"3 of {len(set(texts))} training texts are longer than 64 tokens; only their beginning is read"
    assert said.count(line) == 1
    assert sorted(text for text in asked if text in texts) == sorted(set(texts))


def test_cache_keeps_windows_apart_and_cut_vectors_where_they_were(encoder, tmp_path):
    cut = EmbeddingCache.of(encoder, name="e", folder=tmp_path)
    read = EmbeddingCache.of(encoder, name="e", folder=tmp_path, long="chunk")
    assert cut.fingerprint == identify(encoder).fingerprint != read.fingerprint
    np.testing.assert_allclose(cut.matrix([LONG]), encode_texts(encoder, [LONG]), atol=1e-6)
    np.testing.assert_allclose(read.matrix([LONG]), whole(encoder, [LONG]), atol=1e-6)


def test_layers_over_a_frozen_encoder_read_its_pooled_vectors(encoder, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path))
    model = raw_model(with_modules(encoder, [*encoder, Dense(32, 8)]))
    model.frozen = FrozenPart(len(encoder))
    cut, read = Predictor(model), Predictor(model, long="chunk")
    views = read.views([LONG, SHORT])
    np.testing.assert_allclose(views["raw"][0], by_hand(encoder, LONG), atol=1e-6)
    np.testing.assert_allclose(read.encode([LONG, SHORT]), views["model"], atol=1e-6)
    expected = np.dot(*(v / np.linalg.norm(v) for v in views["model"]))
    assert read.score(LONG, SHORT)["similarity"][0] == pytest.approx(expected, abs=1e-5)
    assert not caplog.messages
    cut.score([(LONG, SHORT)], source="cosine")
    assert caplog.messages == [
        f"1 of 2 texts is longer than 64 tokens; only its beginning was read. {REMEDY}"
    ]


def test_texts_without_a_known_token_are_told(tiny_encoder, caplog):
    model = likewise.load(str(tiny_encoder), device="cpu")
    found = model.score([("🦄🦄", "💤"), ("a dog", "the cat")])
    assert found["similarity"][0] == pytest.approx(1)
    assert "2 texts have no token that the encoder knows" in caplog.text
    caplog.clear()
    model.score([("a dog", "the cat 🦄")])
    assert "no token" not in caplog.text
