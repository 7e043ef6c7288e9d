"""Damaged weights are never answered: names, shapes and numbers fit, files are those that were saved."""

from __future__ import annotations

import json
import logging
import os
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import likewise
from likewise.answering import Answers
from likewise.encoders import manifest
from likewise.encoders.lstm import lstm_encoder
from likewise.encoders.sentence import load_encoder
from likewise.encoders.weights import read_header, read_tensors
from likewise.encoders.words import average_encoder, bilstm_encoder
from likewise.errors import EvaluationError, ModelError, UsageError
from likewise.records import Relation
from likewise.store import save_model
from tests import forks

MODELS = Path(__file__).parent / "frozen" / "models"
PAIRS = [("a man sleeps", "a dog runs in the park")]
LAYER = "encoder.layer.1."


SIZES = {"layers": 1, "attention_heads": 2, "ffn_dim": 16}


def copy_of(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(MODELS / name, tmp_path / name))


def rewrite(file: Path, change) -> None:
    """Save the tensors of a file again after a change, with the note that transformers asks for."""
    tensors = load_file(file)
    with safe_open(file, "pt") as opened:
        notes = opened.metadata()
    changed = change(tensors)
    save_file(tensors if changed is None else changed, file, metadata=notes)


def without(tensors, part):
    return {name: value for name, value in tensors.items() if part not in name}


def refused(folder: Path, *said: str) -> str:
    with pytest.raises(ModelError) as caught:
        likewise.load(folder, device="cpu").score(PAIRS)
    line = str(caught.value)
    assert "\n" not in line
    for part in said:
        assert part in line
    return line


def with_nan(tensors):
    next(value for name, value in tensors.items() if value.is_floating_point()).view(-1)[0] = torch.nan
    return tensors


def with_infinity(tensors):
    tensors["embeddings.word_embeddings.weight"][3, 3] = -torch.inf
    return tensors


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: without(t, LAYER), "encoder.layer.1.attention"),
        (lambda t: without(t, "word_embeddings"), "embeddings.word_embeddings.weight"),
        (lambda t: {f"x.{name}": value for name, value in t.items()}, "which the file does not hold"),
        (
            lambda t: {name.replace("layer.1", "layer.7"): value for name, value in t.items()},
            "encoder.layer.1",
        ),
        (
            lambda t: {**t, "encoder.layer.2.output.dense.bias": torch.zeros(32)},
            "encoder.layer.2.output.dense.bias",
        ),
        (lambda t: {**t, "embeddings.unheard_of": torch.zeros(1)}, "embeddings.unheard_of"),
        (lambda t: {**t, "bert.embeddings.unheard_of": torch.zeros(1)}, "embeddings.unheard_of"),
        (lambda t: {**t, "embeddings.LayerNorm.weight": torch.zeros(31)}, "damaged"),
        (lambda t: {**t, "embeddings.word_embeddings.weight": torch.zeros(71, 32)}, "damaged"),
        (with_nan, "not finite"),
        (with_infinity, "not finite"),
        (lambda t: {}, "which the file does not hold"),
    ],
)
def test_weights_of_a_transformer_are_all_there_and_fit(tmp_path, change, said):
    folder = copy_of("pairs", tmp_path)
    rewrite(folder / "model.safetensors", change)
    refused(folder, said)


@pytest.mark.parametrize("layers", [1, 3])
def test_weights_of_another_depth_than_config_says_are_refused(tmp_path, layers):
    folder = copy_of("pairs", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": layers}))
    refused(folder, f"encoder.layer.{min(layers, 2)}")


def test_weights_of_a_real_model_cut_short_are_refused(minilm, tmp_path):
    folder = Path(shutil.copytree(minilm, tmp_path / "minilm"))
    rewrite(folder / "model.safetensors", lambda t: without(without(t, "layer.4."), "layer.5."))
    refused(folder, "encoder.layer.4", "more tensors")


@pytest.mark.parametrize(
    "change",
    [
        lambda t: {**t, "cls.predictions.bias": torch.zeros(70), "cls.seq_relationship.bias": torch.zeros(2)},
        lambda t: {**t, "embeddings.position_ids": torch.arange(64)[None]},
        lambda t: {f"bert.{name}": value for name, value in t.items()},
        lambda t: {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            ): value
            for name, value in t.items()
        },
        lambda t: without(t, "pooler."),
        lambda t: {name: value.to(torch.bfloat16) for name, value in t.items()},
    ],
    ids=["heads of pre-training", "position ids", "prefix", "gamma and beta", "no pooler", "bf16"],
)
def test_weights_of_raw_checkpoints_load(tmp_path, change):
    folder = copy_of("pairs", tmp_path)
    right = load_encoder(folder, device="cpu").encode(["a dog"])
    rewrite(folder / "model.safetensors", change)
    assert np.abs(load_encoder(folder, device="cpu").encode(["a dog"]) - right).max() < 0.05


def test_weights_are_judged_by_transformers_where_names_are_translated(tmp_path):
    from transformers import AutoModel, NomicBertConfig, PreTrainedTokenizerFast

    config = NomicBertConfig(
        vocab_size=70, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48
    )
    AutoModel.from_config(config).save_pretrained(tmp_path)
    PreTrainedTokenizerFast.from_pretrained(MODELS / "pairs").save_pretrained(tmp_path)
    load_encoder(tmp_path, device="cpu")
    rewrite(tmp_path / "model.safetensors", lambda t: without(t, "layers.1."))
    with pytest.raises(ModelError, match=r"layers\.1"):
        load_encoder(tmp_path, device="cpu")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: without(t, "classifier."), "classifier.bias, classifier.weight"),
        (lambda t: {**t, "classifier.bias": t["classifier.bias"][:2]}, "classifier.bias"),
        (lambda t: without(t, "pooler."), "pooler"),
        (lambda t: without(t, LAYER), "encoder.layer.1"),
        (lambda t: {**t, "bert.encoder.layer.2.output.dense.bias": torch.zeros(32)}, "encoder.layer.2"),
        (with_nan, "not finite"),
    ],
)
def test_weights_of_a_joint_model_are_all_there_and_fit(tmp_path, change, said):
    folder = copy_of("joint", tmp_path)
    rewrite(folder / "model.safetensors", change)
    refused(folder, said)


@pytest.mark.parametrize("kind", ["m2m_100", "prophetnet", "pegasus_x", "marian", "blenderbot-small"])
@pytest.mark.parametrize("headed", [False, True])
def test_weights_of_a_translator_are_said_to_be_unreadable_and_not_damaged(tmp_path, kind, headed):
    """sentence-transformers finds none of the encoder's tensors, and would leave all of them at random."""
    from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM

    halves = ("encoder", "decoder")
    sizes = {f"{half}_{name}": n for half in halves for name, n in SIZES.items()}
    sizes |= {
        f"num_{half}_{name}": n for half in halves for name, n in (("layers", 1), ("attention_heads", 2))
    }
    known = AutoConfig.for_model(kind).to_dict()
    sizes = {name: size for name, size in sizes.items() if name in known}
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    width = {"hidden_size": 16} if kind == "prophetnet" else {"d_model": 16}
    config = AutoConfig.for_model(kind, vocab_size=70, max_position_embeddings=64, **sizes, **tokens, **width)
    build = AutoModelForSeq2SeqLM if headed else AutoModel
    build.from_config(config).save_pretrained(tmp_path / "m")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODELS / "pairs" / name, tmp_path / "m" / name)
    line = refused(tmp_path / "m", kind, "has an encoder and a decoder", "Use another model.")
    assert "damaged" not in line


def test_a_joint_model_with_a_label_too_many_is_refused(tmp_path):
    folder = copy_of("joint", tmp_path)
    document = json.loads((folder / "likewise" / "model.json").read_text())
    document["relations"][0]["labels"].append("perhaps")
    (folder / "likewise" / "model.json").write_text(json.dumps(document))
    refused(folder, "classifier")


def test_a_joint_model_begins_a_head_where_a_checkpoint_has_none(tmp_path):
    from likewise.methods.joint import load_joint

    folder = copy_of("joint", tmp_path)
    assert load_joint(folder, Relation.classes("x", ["a", "b"]), device="cpu").begun == {
        "classifier.weight",
        "classifier.bias",
    }
    rewrite(folder / "model.safetensors", lambda t: without(t, LAYER))
    with pytest.raises(ModelError, match=r"encoder\.layer\.1"):
        load_joint(folder, Relation.classes("x", ["a", "b"]), device="cpu")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("pairs", "likewise/heads.safetensors"),
        ("described", "likewise/heads.safetensors"),
        ("multilingual", "2_Dense/model.safetensors"),
        ("multilingual", "likewise/language.safetensors"),
    ],
)
@pytest.mark.parametrize("how", ["missing", "too many", "shape", "nan", "none", "gone", "cut"])
def test_weights_of_heads_and_layers_are_exact(tmp_path, name, file, how):
    folder = copy_of(name, tmp_path)
    path = folder / file
    first = sorted(load_file(path))[0]
    changes = {
        "missing": lambda t: {key: value for key, value in t.items() if key != first},
        "too many": lambda t: {**t, "unheard_of": torch.zeros(1)},
        "shape": lambda t: {**t, first: torch.zeros(3, 1, 1)},
        "nan": with_nan,
        "none": lambda t: {f"x.{key}": value for key, value in t.items()},
    }
    if how == "gone":
        path.unlink()
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:-4])
    else:
        rewrite(path, changes[how])
    if "language" in file and how == "gone":
        likewise.load(folder, device="cpu")  # not every model has one; a list of files would tell
        return
    refused(folder, "damaged")


def test_a_matcher_that_is_not_whole_is_refused(tiny_encoder, tmp_path):
    from likewise.methods.label_embedding import LabelModel

    task = Relation.classes("mood", ["slow", "fast"])
    save_model(LabelModel(load_encoder(tiny_encoder, device="cpu"), [task]), tmp_path / "m", about={})
    file = tmp_path / "m" / "likewise" / "matcher.safetensors"
    likewise.load(tmp_path / "m", device="cpu")
    unlisted(tmp_path / "m")
    rewrite(file, lambda t: without(t, "out.bias"))
    with pytest.raises(ModelError, match=r"matcher\.out\.bias"):
        likewise.load(tmp_path / "m", device="cpu")


def _without_memory(folder, *said):
    """Refused before memory is taken for what the settings describe."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelError) as caught:
        likewise.load(folder, device="cpu")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
    for part in said:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("name", "change", "file"),
    [
        (
            "pairs",
            lambda document: document["objectives"][0].update(
                head="scalar",
                loss="mse",
                layers={"hidden": [12_000] * 2, "activation": "none", "scale": True},
            ),
            "heads.safetensors",
        ),
        (
            "described",
            lambda document: [one["layers"].update(hidden=[2**20]) for one in document["objectives"]],
            "heads.safetensors",
        ),
        (
            "labels",
            lambda document: document["labels"].update(matcher="concat-mlp", hidden=2**20),
            "matcher.safetensors",
        ),
    ],
)
def test_weights_of_heads_are_compared_before_memory_is_taken(tmp_path, name, change, file):
    folder = copy_of(name, tmp_path)
    document = json.loads((folder / "likewise" / "model.json").read_text())
    change(document)
    (folder / "likewise" / "model.json").write_text(json.dumps(document))
    _without_memory(folder, file)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the library's own
def test_weights_of_a_joint_models_head_are_compared_before_memory_is_taken(tmp_path):
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    folder = copy_of("joint", tmp_path)
    before = json.loads((folder / "config.json").read_text())
    sizes = {key: before[key] for key in ("vocab_size", "hidden_size", "num_attention_heads", "id2label")}
    few = {"num_hidden_layers": 1, "intermediate_size": 16, "type_vocab_size": 2, "pad_token_id": 0}
    DebertaV2ForSequenceClassification(DebertaV2Config(**sizes, **few)).save_pretrained(folder)
    likewise.load(folder, device="cpu")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "pooler_hidden_size": 15_000}))
    _without_memory(folder, "config.json", "describes a network")


@pytest.mark.parametrize("kind", ["bilstm", "lstm", "peepholes", "average"])
@pytest.mark.parametrize("how", ["missing", "too many", "nan", "shape"])
def test_weights_of_word_encoders_are_exact(tiny_vectors, tmp_path, kind, how):
    made = {
        "bilstm": lambda: bilstm_encoder(tiny_vectors, hidden=4, device="cpu"),
        "lstm": lambda: lstm_encoder(tiny_vectors, hidden=4, device="cpu"),
        "peepholes": lambda: lstm_encoder(tiny_vectors, hidden=4, peepholes=True, device="cpu"),
        "average": lambda: average_encoder(tiny_vectors, device="cpu"),
    }[kind]()
    made.save(str(tmp_path / "saved"), create_model_card=False)
    assert load_encoder(tmp_path / "saved", device="cpu") is not None
    for file in sorted((tmp_path / "saved").rglob("model.safetensors")):
        whole = file.read_bytes()
        first = sorted(load_file(file))[0]
        changes = {
            "missing": lambda t, first=first: {key: value for key, value in t.items() if key != first},
            "too many": lambda t: {**t, "unheard_of": torch.zeros(1)},
            "nan": with_nan,
            "shape": lambda t, first=first: {**t, first: torch.zeros(2, 3, 1)},
        }
        rewrite(file, changes[how])
        with pytest.raises(ModelError, match="damaged"):
            load_encoder(tmp_path / "saved", device="cpu")
        file.write_bytes(whole)


# The header of a safetensors file.


def described(**tensors) -> bytes:
    header = json.dumps(tensors).encode()
    return struct.pack("<Q", len(header)) + header


F32 = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 10**9) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 2) + b"{]",
        described(x=F32),
        described(x=F32) + b"\0" * 5,
        described(x=F32, y=F32) + b"\0" * 4,
        described(x=F32, y={**F32, "data_offsets": [8, 12]}) + b"\0" * 12,
        described(x={**F32, "data_offsets": [-4, 0]}) + b"\0" * 4,
        described(x={**F32, "shape": [2]}) + b"\0" * 4,
        described(x={**F32, "shape": [2**62, 4]}) + b"\0" * 4,
        described(x={**F32, "shape": [1] * 9}) + b"\0" * 4,
        described(x={**F32, "shape": ["1"]}) + b"\0" * 4,
        described(x={**F32, "shape": [True]}) + b"\0" * 4,
        described(x={**F32, "dtype": "F128"}) + b"\0" * 4,
        described(x={"dtype": "F32"}) + b"\0" * 4,
        described(x=None),
        described(**{"x" * 600: F32}) + b"\0" * 4,
        struct.pack("<Q", 200_000) + b"[" * 200_000,
    ],
)
def test_weights_whose_header_lies_are_refused(tmp_path, content):
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"x\.safetensors") as caught:
        read_header(path)
    assert "\n" not in str(caught.value)


def test_weights_are_read_as_they_are(tmp_path):
    tensors = {
        "a": torch.randn(3, 4),
        "b": torch.arange(5, dtype=torch.float16),
        "c": torch.zeros(0, 2),
        "d": torch.full((9,), 3e38),
    }
    save_file(tensors, tmp_path / "x.safetensors")
    assert read_header(tmp_path / "x.safetensors") == {
        name: tuple(one.shape) for name, one in tensors.items()
    }
    found = read_tensors(tmp_path / "x.safetensors")  # the sum of d overflows, its numbers are finite
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    save_file({"a": torch.arange(5)}, tmp_path / "y.safetensors")
    with pytest.raises(ModelError, match="the tensor a is stored as I64, not as floats"):
        read_tensors(tmp_path / "y.safetensors")


# Which files a model was saved with.


def unlisted(folder: Path) -> None:
    """Make a folder one of an earlier version."""
    file = folder / "likewise" / "model.json"
    document = json.loads(file.read_text())
    document.pop("files", None)
    file.write_text(json.dumps(document))


@pytest.fixture
def saved(tmp_path, tiny_encoder, caplog, monkeypatch) -> Path:
    """A model that this version saved."""
    from likewise.predict.pairs import raw_model

    monkeypatch.setattr(manifest, "_told", set())
    monkeypatch.delenv("LIKEWISE_VERIFY", raising=False)
    caplog.set_level(logging.INFO, logger="likewise")
    return save_model(raw_model(load_encoder(tiny_encoder, device="cpu")), tmp_path / "saved", about={})


def test_a_saved_model_lists_its_files_and_loads_without_a_word(saved, caplog):
    listed = json.loads((saved / "likewise" / "model.json").read_text())["files"]
    there = {path.relative_to(saved).as_posix() for path in saved.rglob("*") if path.is_file()}
    assert set(listed) == there - {"README.md", "likewise/model.json"}
    assert listed["model.safetensors"]["bytes"] == (saved / "model.safetensors").stat().st_size
    (saved / "README.md").write_text("my own words")
    likewise.load(saved, device="cpu")
    assert not caplog.records


@pytest.mark.parametrize("file", ["model.safetensors", "likewise/heads.safetensors"])
def test_changed_weights_of_a_saved_model_are_refused(saved, file):
    content = bytearray((saved / file).read_bytes())
    content[-2] ^= 1  # one bit: all names, shapes and numbers are still in order
    (saved / file).write_bytes(content)
    refused(saved, file, "is not the file that the model was saved with")
    (saved / file).unlink()
    refused(saved, file, "is missing")


def test_a_changed_bit_passes_the_quick_check_and_a_changed_size_does_not(saved, monkeypatch):
    content = bytearray((saved / "model.safetensors").read_bytes())
    content[-2] ^= 1
    (saved / "model.safetensors").write_bytes(content)
    monkeypatch.setenv("LIKEWISE_VERIFY", "quick")
    likewise.load(saved, device="cpu")
    rewrite(saved / "model.safetensors", lambda t: {**t, "cls.bias": torch.zeros(4)})
    refused(saved, "is not the file that the model was saved with")
    monkeypatch.setenv("LIKEWISE_VERIFY", "never")
    with pytest.raises(UsageError, match="LIKEWISE_VERIFY"):
        likewise.load(saved, device="cpu")


def test_another_changed_file_is_told_in_one_line(saved, caplog):
    settings = saved / "sentence_bert_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "max_seq_length": 16}))
    for _ in range(2):
        assert likewise.load(saved, device="cpu").limits.row_tokens == 16
    (record,) = caplog.records
    assert "sentence_bert_config.json changed since the model was saved" in record.getMessage()


def test_settings_that_nobody_saved_are_told_in_one_line(saved, caplog):
    (saved / "special_tokens_map.json").write_text('{"cls_token": "man"}', encoding="utf8")
    (saved / "notes.txt").write_text("mine", encoding="utf8")
    (saved / "plot.json").write_text("{}", encoding="utf8")
    with caplog.at_level("WARNING"):
        likewise.load(saved, device="cpu")
    (line,) = [r.getMessage() for r in caplog.records if r.name == "likewise"]
    assert "special_tokens_map.json was not there when the model was saved" in line
    assert "notes" not in line
    assert "plot" not in line


BROKEN = "a\nerror: b\r\u2028.{}"


def test_files_whose_names_hold_line_breaks_are_told_in_one_line(saved, caplog):
    (saved / BROKEN.format("model")).write_text("{}")
    likewise.load(saved, device="cpu")
    [record] = caplog.records
    assert record.getMessage().splitlines() == [record.getMessage()]
    assert r"a\nerror: b\r\u2028.model was not there" in record.getMessage()


@pytest.mark.parametrize("what", ["weights", "pipe"])
def test_files_whose_names_hold_line_breaks_are_refused_in_one_line(saved, what):
    if what == "weights":
        (saved / BROKEN.format("safetensors")).write_text("x")
    else:
        os.mkfifo(saved / BROKEN.format("txt"))
    assert r"a\nerror: b\r\u2028." in refused(saved)


def test_weights_that_nobody_saved_are_refused(saved):
    shutil.copytree(saved, saved / "likewise" / "label_encoder", ignore=shutil.ignore_patterns("likewise"))
    refused(saved, "label_encoder/model.safetensors", "was not there when the model was saved")


def test_a_model_without_a_list_of_files_loads_with_one_line(saved, caplog):
    unlisted(saved)
    for _ in range(2):
        likewise.load(saved, device="cpu")
    (record,) = caplog.records
    assert "without checksums" in record.getMessage()


@pytest.mark.parametrize(
    "files",
    [
        [],
        "x",
        {"model.safetensors": 1},
        {"model.safetensors": {"bytes": 1, "sha256": "x"}},
        {"../../x": {"bytes": 1, "sha256": "0" * 64}},
        {"/etc/passwd": {"bytes": 1, "sha256": "0" * 64}},
    ],
)
def test_a_damaged_list_of_files_is_refused(saved, files):
    file = saved / "likewise" / "model.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "files": files}))
    refused(saved, "model.json")


# Answers.


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_answers_that_are_not_finite_are_an_error(value):
    relation, labelled = Relation("similarity", hi=5), Relation.classes("x", ["a", "b"])
    with pytest.raises(EvaluationError, match="1 of 2 answers are not finite numbers, the first in row 2"):
        Answers(relation, "head", np.array([1.0, value]))
    with pytest.raises(EvaluationError, match="row 1"):
        Answers(labelled, "head", ["a", "b"], np.array([[0.5, value], [0.5, 0.5]]))


def test_weights_that_overflow_give_no_answer(tmp_path):
    folder = copy_of("joint", tmp_path)
    name = "bert.encoder.layer.0.output.dense.weight"
    rewrite(folder / "model.safetensors", lambda t: {**t, name: torch.full_like(t[name], 3e38)})
    refused(folder, "not finite")


def test_nan_weights_end_the_command_line_in_one_line(tmp_path, here):
    folder = copy_of("joint", tmp_path)
    rewrite(folder / "model.safetensors", with_nan)
    code, said = here("score", *PAIRS[0], "--model", folder)
    assert code == 1
    assert "not finite" in said
    assert "Traceback" not in said


def test_the_command_line_says_that_an_old_model_has_no_checksums(tmp_path):
    folder = copy_of("pairs", tmp_path)
    result = forks.run("score", *PAIRS[0], "--model", folder, check=True)
    assert result.stderr.count("without checksums") == 1
    assert "checksums" not in result.stdout


@pytest.mark.parametrize(
    ("old", "new"), [("word_embeddings.weight", "word_embeddings.gamma"), ("dense.bias", "dense.beta")]
)
def test_weights_under_a_name_that_transformers_does_not_translate_are_refused(minilm, tmp_path, old, new):
    """It would draw those tensors at random, and the model would answer."""
    folder = tmp_path / "m"
    shutil.copytree(minilm, folder)
    rewrite(folder / "model.safetensors", lambda t: {k.replace(old, new): v for k, v in t.items()})
    refused(folder, old.rpartition(".")[0])


def test_weights_of_a_layer_norm_may_have_their_old_names(minilm, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(minilm, folder)
    names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}

    def rename(tensors):
        for old, new in names.items():
            tensors = {name.replace(old, new): tensor for name, tensor in tensors.items()}
        return tensors

    rewrite(folder / "model.safetensors", rename)
    expected = likewise.load(minilm, device="cpu").score(PAIRS)["similarity"]
    np.testing.assert_array_equal(likewise.load(folder, device="cpu").score(PAIRS)["similarity"], expected)


def test_a_trained_model_without_its_document_is_not_taken_for_a_plain_encoder(tmp_path):
    folder = copy_of("pairs", tmp_path)
    (folder / "likewise" / "model.json").unlink()
    refused(folder, "model.json: the file is missing")


def test_a_normalizer_that_blows_texts_up_is_refused(minilm, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(minilm, folder)
    file = folder / "tokenizer.json"
    document = json.loads(file.read_text())
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 200}
    document["normalizer"] = {"type": "Sequence", "normalizers": [step] * 5}
    file.write_text(json.dumps(document))
    refused(folder, "tokenizer.json", "normalizer")


def test_a_tokenizer_that_gives_up_ends_the_command_line_in_one_line(tiny_encoder, tmp_path, here):
    folder = tmp_path / "m"
    shutil.copytree(tiny_encoder, folder)
    file = folder / "tokenizer.json"
    document = json.loads(file.read_text())
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    document["pre_tokenizer"] = split
    file.write_text(json.dumps(document))
    code, said = here("score", "a" * 40 + "b", "x", "--model", folder)
    assert code == 1
    assert "tokenizer failed on a text" in said
    assert "Traceback" not in said


def test_weights_that_stand_twice_under_one_name_are_refused(tiny_encoder, tmp_path):
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "m"))
    file = folder / "model.safetensors"
    weights = load_file(file)
    others = {f"bert.{name}": torch.randn_like(tensor) for name, tensor in weights.items()}
    save_file({**weights, **others}, file, metadata={"format": "pt"})
    refused(folder, "both tensors for the same place")


@pytest.mark.parametrize("kind", [torch.bool, torch.int8])
def test_weights_that_are_whole_numbers_are_refused(tiny_encoder, tmp_path, kind):
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "m"))
    file = folder / "model.safetensors"
    weights = {name: tensor.to(kind) for name, tensor in load_file(file).items()}
    save_file(weights, file, metadata={"format": "pt"})
    refused(folder, "stored as")


def test_weights_too_large_for_single_precision_are_refused(tiny_encoder, tmp_path):
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "m"))
    file = folder / "model.safetensors"
    weights = {name: tensor.double() for name, tensor in load_file(file).items()}
    weights["embeddings.word_embeddings.weight"][9] = 1e300
    save_file(weights, file, metadata={"format": "pt"})
    refused(folder, "not finite")


@pytest.mark.parametrize("saved_by", ["likewise", "others"])
def test_a_model_without_its_vocabulary_does_not_answer(tiny_encoder, saved, tmp_path, saved_by):
    folder = saved
    if saved_by == "others":
        folder = Path(shutil.copytree(tiny_encoder, tmp_path / "m"))
    (folder / "tokenizer.json").unlink()
    refused(folder, "vocabulary is missing")


@pytest.mark.parametrize("name", ["modules.json", "1_Pooling/config.json", "tokenizer_config.json"])
def test_a_saved_model_without_one_of_its_files_does_not_answer(saved, name):
    (saved / name).unlink()
    refused(saved, name, "is missing")


def test_an_empty_list_of_files_vouches_for_no_weights(saved):
    document = json.loads((saved / "likewise" / "model.json").read_text())
    (saved / "likewise" / "model.json").write_text(json.dumps({**document, "files": {}}))
    refused(saved, "model.safetensors", "was not there when the model was saved")
