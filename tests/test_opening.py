"""Model folders are opened by one door: hostile and damaged ones are refused in one line, real ones load."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import likewise
from likewise.encoders.resolve import FETCHED, LEFT, fetch, local_folder, resolve
from likewise.encoders.sentence import load_encoder
from likewise.encoders.tokenizing import check_tokenizer
from likewise.encoders.words import average_encoder, bilstm_encoder
from likewise.errors import ModelError, UsageError
from tests.mutating import REMOVED, all_damage, damaged

MODELS = Path(__file__).parent / "frozen" / "models"
PAIR = ("a man sleeps", "a dog runs in the park")


@pytest.fixture
def model(tmp_path) -> Path:
    """A model of pairs as an earlier version saved it: a tiny BERT with mean pooling."""
    return Path(shutil.copytree(MODELS / "pairs", tmp_path / "model"))


@pytest.fixture
def alarm():
    """Ends a test that hangs."""

    def stop(*_):
        raise TimeoutError("the loader hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def edit(file: Path, **keys) -> None:
    document = json.loads(file.read_text(encoding="utf8")) if file.exists() else {}
    file.write_text(json.dumps({**document, **keys}), encoding="utf8")


def refused(folder: Path, *said: str) -> str:
    """The one line by which a folder is refused, by `load` and by `load_encoder` alike."""
    lines = []
    for open_it in (likewise.load, load_encoder):
        with pytest.raises(ModelError) as caught:
            open_it(folder, device="cpu")
        lines.append(str(caught.value))
        assert "\n" not in lines[-1]
        for part in said:
            assert part in lines[-1]
    return lines[0]


KERNEL = {"attn_implementation": "someone/kernel@main"}


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"model_kwargs": KERNEL}, "model_kwargs.attn_implementation"),
        ({"model_args": KERNEL}, "model_args.attn_implementation"),
        (
            {"model_kwargs": {"attn_implementation": "flash|someone/kernel:f"}},
            "model_kwargs.attn_implementation",
        ),
        ({"model_kwargs": {"attn_implementation": ["eager"]}}, "model_kwargs.attn_implementation"),
        (
            {"model_kwargs": {"attn_implementation": "flex_attention"}},
            "model_kwargs.attn_implementation",
        ),
        ({"model_kwargs": {"allow_all_kernels": True}}, "model_kwargs.allow_all_kernels"),
        ({"model_kwargs": {"use_kernels": True}}, "model_kwargs.use_kernels"),
        ({"model_kwargs": {"device_map": "disk"}}, "model_kwargs.device_map"),
        ({"model_kwargs": {"offload_folder": "/tmp/elsewhere"}}, "model_kwargs.offload_folder"),
        ({"model_kwargs": {"use_safetensors": False}}, "model_kwargs.use_safetensors"),
        ({"model_kwargs": {"weights_only": False}}, "model_kwargs.weights_only"),
        ({"model_kwargs": {"ignore_mismatched_sizes": True}}, "model_kwargs.ignore_mismatched_sizes"),
        ({"model_kwargs": {"trust_remote_code": True}}, "model_kwargs.trust_remote_code"),
        ({"model_kwargs": {"quantization_config": {}}}, "model_kwargs.quantization_config"),
        ({"model_kwargs": {"gguf_file": "x.gguf"}}, "model_kwargs.gguf_file"),
        ({"config_kwargs": KERNEL}, "config_kwargs.attn_implementation"),
        ({"config_args": {"trust_remote_code": True}}, "config_args.trust_remote_code"),
        ({"processor_kwargs": {"tokenizer_file": "/etc/passwd"}}, "processor_kwargs.tokenizer_file"),
        ({"tokenizer_args": {"tokenizer_type": "bert"}}, "tokenizer_args.tokenizer_type"),
        ({"processing_kwargs": {"chat_template": {}}}, "processing_kwargs.chat_template"),
        ({"tokenizer_name_or_path": "someone/else"}, "tokenizer_name_or_path"),
        ({"backend": "onnx"}, "backend"),
        ({"transformer_task": "text-generation"}, "transformer_task"),
        (
            {"modality_config": {"text": {"method": "save_pretrained", "method_output_name": "x"}}},
            "modality_config",
        ),
        ({"max_seq_length": -1}, "max_seq_length"),
    ],
)
def test_opening_refuses_arguments_for_the_loader_by_name(model, keys, named):
    edit(model / "sentence_bert_config.json", **keys)
    refused(model, "sentence_bert_config.json", named)


def test_opening_looks_at_every_name_that_file_may_have(model):
    (model / "sentence_bert_config.json").unlink()
    edit(model / "sentence_roberta_config.json", model_kwargs=KERNEL)
    refused(model, "sentence_roberta_config.json", "attn_implementation")


@pytest.mark.parametrize(
    "keys",
    [
        KERNEL,
        {"_attn_implementation": "flex_attention"},
        {"_attn_implementation": "someone/kernel"},
        {"_attn_implementation_internal": "someone/kernel"},
        {"attn_implementation": {"": "someone/kernel"}},
        {"attn_implementation": "flash_attention_2"},  # would be fetched where it is not installed
        {"experts_implementation": "someone/kernel"},
        {"text_config": KERNEL},
        {"layers": [KERNEL]},
        {"quantization_config": {"quant_method": "bitsandbytes"}},
        {"transformers_weights": "adapter_model.bin"},
        {"configuration_files": ["config.4.0.0.json"]},
        {"fusion_config": {"patch_embeddings": True}},
        {"kernel_config": {"x": "y"}},
        {"device_map": "disk"},
        {"model_type": "their_own", "auto_map": {"AutoConfig": "code.Config", "AutoModel": "code.Model"}},
        {"model_type": ["bert"]},
        {"dtype": "load"},
        {"torch_dtype": "int8"},
        {"num_labels": 10**10},
        {"vocab_size": 10**10},
        {"hidden_size": 10**9},
        {"num_hidden_layers": 10**6},
        {"max_position_embeddings": 10**9},
        {"relative_attention_num_buckets": 10**9},
        {"layer_norm_eps": 1e300},
    ],
    ids=lambda keys: ",".join(keys),
)
def test_opening_refuses_what_steers_the_loader_in_config_json(model, keys):
    (model / "code.py").write_text("raise SystemExit('code of the folder ran')")
    edit(model / "config.json", **keys)
    refused(model, "config.json")


def test_opening_never_follows_code_of_a_folder_whose_architecture_is_built_in(model, tmp_path):
    trace = tmp_path / "ran"
    (model / "code.py").write_text(f"open({str(trace)!r}, 'w')")
    edit(model / "config.json", auto_map={"AutoConfig": "code.Config", "AutoModel": "code.Model"})
    load_encoder(model, device="cpu")
    assert not trace.exists()


@pytest.mark.parametrize(
    ("file", "keys"),
    [
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["code.T", None]}}),
        ("tokenizer_config.json", {"init_inputs": ["x"]}),
        ("tokenizer_config.json", {"fast_tokenizer_files": ["../x.json"]}),
        ("tokenizer_config.json", {"vocab_file": "/etc/passwd"}),
        ("tokenizer_config.json", {"merges_file": "../x"}),
        ("tokenizer_config.json", {"gguf_file": "x"}),
        ("tokenizer_config.json", {"tokenizer_class": "os.system"}),
        ("tokenizer_config.json", {"extra_ids": 10**10}),
        ("tokenizer_config.json", {"model_max_length": -5}),
        ("special_tokens_map.json", {"vocab_file": "/etc/passwd"}),
        ("added_tokens.json", {"x": "y"}),
        ("config_sentence_transformers.json", {"model_type": "Theirs"}),
        ("config_sentence_transformers.json", {"prompts": ["query: "]}),
        ("config_sentence_transformers.json", {"default_prompt_name": "absent"}),
        ("1_Pooling/config.json", {"pooling_mode": "theirs"}),
        ("1_Pooling/config.json", {"embedding_dimension": 10**10}),
        ("1_Pooling/config.json", {"embedding_dimension": 33}),
        ("1_Pooling/config.json", {"unheard_of": 1}),
    ],
)
def test_opening_refuses_other_settings_by_name(model, file, keys):
    edit(model / file, **keys)
    refused(model, Path(file).name if len(keys) and "33" not in str(keys) else "width")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"type": "os.system"}, "os.system"),
        ({"type": "code.Module"}, "code.Module"),
        ({"type": "sentence_transformers.base.modules.router.Router"}, "Router"),
        ({"type": "sentence_transformers.util.misc.Pooling.x"}, "misc"),
        ({"type": "likewise.encoders.lstm.PaddedLSTM"}, "PaddedLSTM"),
        ({"path": "../elsewhere"}, "../elsewhere"),
        ({"path": "/etc"}, "/etc"),
        ({"path": "C:\\x"}, "leads out"),
        ({"path": "~/x"}, "leads out"),
        ({"name": "0"}, "its own path, type and name"),
        ({"name": "a.b"}, "name"),
        ({"unheard_of": 1}, "unheard_of"),
    ],
)
def test_opening_refuses_modules_of_others_and_elsewhere(model, keys, said):
    (model / "code.py").write_text("raise SystemExit('code of the folder ran')")
    listed = json.loads((model / "modules.json").read_text())
    listed[1].update(keys)
    (model / "modules.json").write_text(json.dumps(listed))
    refused(model, "modules.json", said)


@pytest.mark.parametrize(
    "function", ["builtins.print", "torch.hub.load", "torch.nn.modules.linear.Linear", 5]
)
def test_opening_refuses_an_activation_that_is_none_instead_of_another(tmp_path, function):
    folder = Path(shutil.copytree(MODELS / "multilingual", tmp_path / "model"))
    edit(folder / "2_Dense" / "config.json", activation_function=function)
    refused(folder, "2_Dense/config.json", "activation_function")


@pytest.mark.parametrize(
    "name",
    [
        "adapter_config.json",
        "processor_config.json",
        "preprocessor_config.json",
        "shard-00000-model-00001-of-00001.safetensors",
    ],
)
def test_opening_refuses_files_that_another_loader_would_take(model, name):
    (model / name).write_text("{}")
    refused(model, name)


@pytest.mark.parametrize(
    "name",
    [
        *("config.json", "modules.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"),
        *("README.md", "sentence_bert_config.json", "likewise/model.json", "likewise/heads.safetensors"),
        *("1_Pooling/config.json", "chat_template.jinja", "adapter_config.json"),
    ],
)
@pytest.mark.parametrize("what", ["pipe", "folder", "loop", "nowhere", "empty"])
def test_opening_neither_hangs_nor_breaks_on_what_is_no_file(model, name, what, alarm):
    path = model / name
    path.unlink(missing_ok=True)
    made = {
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "loop": lambda: path.symlink_to(path.name),
        "nowhere": lambda: path.symlink_to("absent"),
        "empty": path.touch,
    }
    made[what]()
    harmless = what in ("folder", "empty") and name in ("README.md", "chat_template.jinja")
    if harmless:
        likewise.load(model, device="cpu").score([PAIR])
        return
    with pytest.raises(ModelError) as caught:
        likewise.load(model, device="cpu")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"model_type": "bert", "model_type": "roberta"}', "occurs twice"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "deep"),
        (b"[" * 200_000, "config.json"),
        (b'{"a": ' + b"9" * 5000 + b"}", "config.json"),
        (b"\xff\xfe{}", "config.json"),
        (b"[]", "expected a table"),
        (b'"bert"', "expected a table"),
    ],
)
def test_opening_refuses_json_that_is_none_or_too_much(model, content, said):
    (model / "config.json").write_bytes(content)
    refused(model, "config.json", said)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "likewise/model.json", "README.md"])
def test_opening_refuses_files_that_fill_the_memory(model, name):
    with (model / name).open("r+b") as file:
        file.truncate(2**33)  # with holes: it takes no room here
    with pytest.raises(ModelError, match=Path(name).name):
        likewise.load(model, device="cpu")


# Pickles: what a loader would read decides, module by module.


def pickled(weights: Path, name: str = "pytorch_model.bin") -> None:
    torch.save(load_file(weights), weights.with_name(name))
    weights.unlink()


def test_opening_reads_no_pickle_beside_another_safetensors_file(model):
    shutil.copy(model / "model.safetensors", model / "other.safetensors")
    pickled(model / "model.safetensors")
    refused(model, "pickled weights")


def test_opening_reads_no_pickle_by_its_index(model):
    pickled(model / "model.safetensors", "pytorch_model-00001-of-00001.bin")
    (model / "pytorch_model.bin.index.json").write_text('{"metadata": {}, "weight_map": {}}')
    refused(model, "pytorch_model.bin.index.json", "pickled weights")


def test_opening_reads_no_pickle_through_a_linked_folder(tmp_path):
    folder = Path(shutil.copytree(MODELS / "multilingual", tmp_path / "model"))
    shutil.move(folder / "2_Dense", tmp_path / "elsewhere")
    pickled(tmp_path / "elsewhere" / "model.safetensors")
    (folder / "2_Dense").symlink_to(tmp_path / "elsewhere")
    refused(folder, "pickled weights")


@pytest.mark.parametrize("module", ["", "1_LSTM"])
def test_opening_reads_no_pickles_of_other_modules(tiny_vectors, tmp_path, module):
    made = bilstm_encoder(tiny_vectors, hidden=4, device="cpu")
    made.save(str(tmp_path / "saved"), create_model_card=False)
    place = tmp_path / "saved" / module
    shutil.copy(place / "model.safetensors", place / "other.safetensors")
    (place / "model.safetensors.index.json").write_text("{}")
    pickled(place / "model.safetensors")
    refused(tmp_path / "saved", "pickled weights")


@pytest.mark.parametrize(
    "shard", ["../model.safetensors", "/tmp/x.safetensors", "x.bin", "absent.safetensors"]
)
def test_opening_reads_shards_of_the_folder_only(model, shard):
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": shard}}
    (model / "model.safetensors").rename(model / "x.safetensors")
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(model, Path(shard).name)


def test_opening_reads_weights_in_shards(model):
    right = load_encoder(model, device="cpu").encode(["a dog"])
    names = list(load_file(model / "model.safetensors"))
    (model / "model.safetensors").rename(model / "model-00001-of-00001.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "model-00001-of-00001.safetensors")}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    assert (load_encoder(model, device="cpu").encode(["a dog"]) == right).all()


# Real folders still load.

TOKENIZERS = {
    "bert": {
        "added_tokens_decoder": {
            "0": {"content": "[PAD]", "lstrip": False, "normalized": False, "special": True}
        },
        "clean_up_tokenization_spaces": True,
        "cls_token": "[CLS]",
        "do_basic_tokenize": True,
        "do_lower_case": True,
        "mask_token": "[MASK]",
        "model_max_length": 512,
        "never_split": None,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "tokenizer_class": "BertTokenizer",
        "max_length": 128,
        "pad_to_multiple_of": None,
        "pad_token_type_id": 0,
        "padding_side": "right",
        "stride": 0,
        "truncation_side": "right",
        "truncation_strategy": "longest_first",
    },
    "roberta": {
        "add_prefix_space": False,
        "bos_token": {"__type": "AddedToken", "content": "<s>", "lstrip": False, "normalized": True},
        "errors": "replace",
        "trim_offsets": True,
        "special_tokens_map_file": "/home/somebody/.cache/x",
        "name_or_path": "roberta-base",
        "tokenizer_file": "/home/somebody/tokenizer.json",
        "model_max_length": 1000000000000000019884624838656,
    },
    "xlm-roberta": {
        "sp_model_kwargs": {},
        "tokenizer_class": "XLMRobertaTokenizerFast",
        "mask_token": {"content": "<mask>"},
    },
    "t5": {
        "extra_ids": 100,
        "additional_special_tokens": ["<extra_id_0>"],
        "legacy": True,
        "sp_model_kwargs": None,
    },
    "modernbert": {
        "model_input_names": ["input_ids", "attention_mask"],
        "extra_special_tokens": {},
        "backend": "tokenizers",
        "is_local": False,
    },
    "qwen": {
        "add_bos_token": False,
        "chat_template": "{% for message in messages %}{{ message }}{% endfor %}",
        "split_special_tokens": False,
        "extra_special_tokens": ["<|im_start|>"],
        "bos_token": None,
    },
    "gemma": {
        "spaces_between_special_tokens": False,
        "use_default_system_prompt": False,
        "image_token": "<image_soft_token>",
        "boi_token": "<start_of_image>",
        "processor_class": "Gemma3Processor",
        "add_eos_token": True,
        "init_inputs": [],
    },
    "deberta": {"vocab_type": "spm", "split_by_punct": False, "do_lower_case": False},
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_opening_takes_the_tokenizer_settings_of_real_models(tmp_path, name):
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(TOKENIZERS[name]))
    check_tokenizer(tmp_path)


def test_opening_takes_sensible_arguments_for_the_loader(model):
    edit(
        model / "sentence_bert_config.json",
        max_seq_length=32,
        do_lower_case=False,
        model_args={"attn_implementation": "eager", "add_pooling_layer": False, "torch_dtype": "float32"},
        tokenizer_args={"model_max_length": 32, "padding_side": "right"},
        config_args={"use_cache": False},
        processing_kwargs={"text": {"truncation": True}},
        unpad_inputs=None,
    )
    assert load_encoder(model, device="cpu").max_seq_length == 32


def test_opening_changes_nothing_about_a_real_model(minilm):
    from sentence_transformers import SentenceTransformer

    texts = ["A man is eating food.", "Ein Satz.", "x" * 3000]
    own, theirs = load_encoder(minilm, device="cpu"), SentenceTransformer(minilm, device="cpu")
    assert np.abs(own.encode(texts) - theirs.encode(texts)).max() < 1e-6
    assert own.max_seq_length == theirs.max_seq_length


def test_opening_leaves_random_numbers_and_training_flags_as_they_were(model):
    from sentence_transformers import SentenceTransformer

    flags = [module.training for module in SentenceTransformer(str(model), device="cpu").modules()]
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    encoder = load_encoder(model, device="cpu")
    assert torch.rand(1) == expected
    assert [module.training for module in encoder.modules()] == flags


def test_opening_never_reads_beyond_the_positions_of_a_network(model):
    edit(model / "sentence_bert_config.json", max_seq_length=500)
    encoder = load_encoder(model, device="cpu")
    assert encoder.max_seq_length == 64
    assert np.isfinite(encoder.encode(["dog " * 400])).all()


def test_opening_names_a_tokenizer_of_another_model(model):
    document = json.loads((model / "tokenizer.json").read_text())
    document["model"]["vocab"]["elephant"] = 5000
    (model / "tokenizer.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match="tokenizer gives tokens"):
        likewise.load(model, device="cpu").score([("an elephant", "a dog")])


def test_opening_averages_of_words_load_as_before(tiny_vectors, tmp_path):
    made = average_encoder(tiny_vectors, device="cpu")
    made.save(str(tmp_path / "saved"), create_model_card=False)
    assert (load_encoder(tmp_path / "saved", device="cpu").encode(["a dog"]) == made.encode(["a dog"])).all()


# The hub.


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Path:
    """An empty hub cache, and no network."""
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.delenv("LIKEWISE_MODELS", raising=False)
    return tmp_path / "hub"


def cached(hub: Path, source: Path) -> Path:
    """A model in the hub's cache as the hub's own library lays it out: files are links to blobs."""
    commit = "0" * 40
    repository = hub / "models--owner--name"
    snapshot = repository / "snapshots" / commit
    (repository / "blobs").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    for number, file in enumerate(sorted(path for path in source.rglob("*") if path.is_file())):
        blob = repository / "blobs" / str(number)
        shutil.copy(file, blob)
        place = snapshot / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(blob)
    return snapshot


def test_opening_takes_a_hub_model_from_the_cache_through_the_same_door(hub):
    snapshot = cached(hub, MODELS / "pairs")
    assert resolve("owner/name") == str(snapshot)
    assert fetch("owner/name") == str(snapshot)
    assert likewise.load("owner/name", device="cpu").relations[0].hi == 5
    (snapshot / "sentence_bert_config.json").unlink()
    edit(snapshot / "sentence_bert_config.json", model_kwargs=KERNEL)
    refused(Path("owner/name"), "attn_implementation")


@pytest.mark.parametrize(
    "name", ["owner/absent", "owner/na me", "owner/" + "x" * 300, "owner/\0", "~nobody/x/y"]
)
def test_opening_says_in_one_line_that_the_hub_has_no_such_model(hub, name):
    with pytest.raises(ModelError) as caught:
        local_folder(name)
    assert "\n" not in str(caught.value)
    with pytest.raises((ModelError, UsageError)):  # a name that can be none is a wrong argument
        likewise.load(name)


def test_opening_fetches_neither_pickles_nor_code():
    from huggingface_hub.utils import filter_repo_objects

    wanted = ["config.json", "model.safetensors", "1_Pooling/config.json", "vocab.txt", "likewise/model.json"]
    others = [
        "pytorch_model.bin",
        "modeling.py",
        "onnx/model.onnx",
        "onnx/config.json",
        "openvino/x.json",
        "x.pkl",
    ]
    taken = filter_repo_objects([*wanted, *others], allow_patterns=list(FETCHED), ignore_patterns=list(LEFT))
    assert list(taken) == wanted


# Every key of every file, damaged in every way.

SWEPT = [
    *(
        (name, "likewise/model.json")
        for name in ("pairs", "described", "joint", "labels", "multilingual", "taught")
    ),
    *(
        ("pairs", name)
        for name in ("config.json", "modules.json", "1_Pooling/config.json", "tokenizer_config.json")
    ),
    *(("pairs", name) for name in ("sentence_bert_config.json", "config_sentence_transformers.json")),
    ("joint", "config.json"),
    ("multilingual", "2_Dense/config.json"),
]


def sweep(folder: Path, file: str, share: int | None) -> None:
    """Damage a file, load the model and ask it: it answers, or says in one line what is wrong."""
    whole = json.loads((folder / file).read_text())
    # What a recipe said is not read again, nor what its stages measured: they are damaged as a whole.
    told = ("recipe", "stages")
    cases = [case for case in all_damage(whole) if len(case[0]) == 1 or case[0][0] not in told]
    if share is not None:
        cases = random.Random(f"{folder.name} {file}").sample(cases, min(share, len(cases)))
    lines: list[str] = []
    for place, value in cases:
        (folder / file).write_text(json.dumps(damaged(whole, place, value)))
        said = "left out" if value is REMOVED else repr(value)[:40]
        try:
            model = likewise.load(folder, device="cpu")
            rows = [PAIR] if 2 in model.texts else [PAIR[0]]
            scores = model.score(rows)
        except ModelError as error:
            lines.append(str(error))
        except Exception as error:
            raise AssertionError(f"{file}: {place} {said} gives {type(error).__name__}: {error}") from error
        else:
            assert all(isinstance(scores[name][0], str) or np.isfinite(scores[name][0]) for name in scores)
    assert lines
    assert not [line for line in lines if "\n" in line]


@pytest.mark.parametrize(("name", "file"), SWEPT)
def test_opening_survives_damage_to_any_key(tmp_path, name, file):
    sweep(Path(shutil.copytree(MODELS / name, tmp_path / name)), file, 25)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "file"), SWEPT)
def test_opening_survives_every_damage_to_every_key(tmp_path, name, file):
    sweep(Path(shutil.copytree(MODELS / name, tmp_path / name)), file, None)


@pytest.mark.parametrize(
    "keys",
    [
        {"hidden_size": 20_000},
        {"vocab_size": 30_000_000},
        {"max_position_embeddings": 1_000_000},
        {"num_hidden_layers": 300},
    ],
    ids=str,
)
def test_opening_takes_no_memory_for_a_network_that_is_not_in_the_file(model, keys):
    import resource

    edit(model / "config.json", **keys)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(model, "config.json", "describes a network")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000


def network_of(folder, config, **keys):
    """A tiny network of any architecture, with the tokenizer of another, that says something else."""
    from transformers import AutoModel

    AutoModel.from_config(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODELS / "pairs" / name, folder / name)
    load_encoder(folder, device="cpu")
    edit(folder / "config.json", **keys)


def tiny_config(kind, **keys):
    from transformers import AutoConfig

    sizes = {"vocab_size": 70, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    return AutoConfig.for_model(kind, **sizes, **keys)


TABLES = {
    "xglm": (
        {"d_model": 64, "num_layers": 1, "attention_heads": 2, "ffn_dim": 16},
        "max_position_embeddings",
    ),
    "ctrl": ({"n_embd": 64, "dff": 16, "n_layer": 1, "n_head": 2}, "n_positions"),
    "gptj": ({"n_embd": 256, "n_layer": 2, "n_head": 1, "rotary_dim": 64}, "n_positions"),
    "openai-gpt": ({"n_embd": 16, "n_layer": 1, "n_head": 2}, "n_positions"),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("positions", [2**24, 2**20])
def test_opening_takes_no_memory_for_tables_that_are_in_no_file(tmp_path, kind, positions):
    sizes, key = TABLES[kind]
    network_of(tmp_path / "m", tiny_config(kind, **sizes, **{key: 64}), **{key: positions})
    said = "larger than in any model" if positions == 2**24 else "numbers"
    _without_memory(tmp_path / "m", "config.json", said)


WINDOWS = {
    "longformer": (
        {"num_hidden_layers": 1, "intermediate_size": 16, "max_position_embeddings": 70},
        {"attention_window": [4]},
        {"attention_window": [2**24]},
        {"attention_window": [4096]},
    ),
    "longt5": ({"d_kv": 8, "d_ff": 16, "num_layers": 1}, {}, {"local_radius": 2**20}, {"local_radius": 4096}),
}


@pytest.mark.parametrize("kind", WINDOWS)
def test_opening_takes_no_memory_for_windows_that_texts_are_padded_to(tmp_path, kind):
    sizes, small, huge, large = WINDOWS[kind]
    heads = {"num_heads": 8} if kind == "longt5" else {"num_attention_heads": 8}
    width = {"d_model": 16} if kind == "longt5" else {"hidden_size": 16}
    network_of(tmp_path / "m", tiny_config(kind, **sizes, **small, **heads, **width), **huge)
    _without_memory(tmp_path / "m", "config.json", next(iter(huge)), "larger than in any model")
    edit(tmp_path / "m" / "config.json", **large)
    _without_memory(tmp_path / "m", "config.json", "4,096", "8 heads")


def _without_memory(folder, *said):
    """Refused before memory is taken for what the settings describe."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelError) as caught:
        load_encoder(folder, device="cpu")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000
    for part in said:
        assert part in str(caught.value)


def test_opening_takes_no_memory_for_a_layer_that_is_not_in_the_file(tmp_path):
    folder = Path(shutil.copytree(MODELS / "multilingual", tmp_path / "m"))
    edit(folder / "2_Dense" / "config.json", in_features=30_000, out_features=30_000)
    _without_memory(folder, "2_Dense/model.safetensors", "linear.weight")


@pytest.mark.parametrize("kind", ["LSTM", "CNN"])
def test_opening_takes_no_memory_for_a_word_encoder_that_is_not_in_the_file(tmp_path, tiny_vectors, kind):
    from sentence_transformers.sentence_transformer.modules import CNN, Pooling

    encoder = bilstm_encoder(tiny_vectors, hidden=4, device="cpu")
    if kind == "CNN":
        width = encoder[0].get_embedding_dimension()
        encoder = type(encoder)(modules=[encoder[0], CNN(width, 4), Pooling(12)], device="cpu")
    encoder.save(str(tmp_path / "m"), create_model_card=False)
    load_encoder(tmp_path / "m", device="cpu")
    large = {"LSTM": {"hidden_dim": 9000}, "CNN": {"out_channels": 2**20, "kernel_sizes": [1023]}}[kind]
    edit(tmp_path / "m" / f"1_{kind}" / f"{kind.lower()}_config.json", **large)
    _without_memory(tmp_path / "m", f"1_{kind}/model.safetensors")


def test_opening_looks_at_the_tokenizer_of_static_vectors(tmp_path, tiny_encoder):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tiny_encoder / "tokenizer.json"))
    static = StaticEmbedding(tokenizer, embedding_dim=8)
    SentenceTransformer(modules=[static], device="cpu").save(str(tmp_path / "m"), create_model_card=False)
    load_encoder(tmp_path / "m", device="cpu")
    (file,) = (tmp_path / "m").rglob("tokenizer.json")
    step = {"type": "Replace", "pattern": {"Regex": "."}, "content": "a" * 100}
    edit(file, normalizer={"type": "Sequence", "normalizers": [step] * 4})
    refused(tmp_path / "m", "tokenizer.json", "normalizer")


BOMBS = {
    "an empty expression": [{"type": "Replace", "pattern": {"Regex": ""}, "content": "a"}] * 30,
    "a long prefix": [{"type": "Prepend", "prepend": "a" * 100_000}],
    "bytes as characters": [{"type": "ByteLevel"}] * 20,
    "many steps": [{"type": "Lowercase"}] * 5000,
    "a long mapping": [
        {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(bytes(4) + b"a" * 9999).decode()}
    ],
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_opening_refuses_a_normalizer_that_blows_texts_up(model, bomb):
    edit(model / "tokenizer.json", normalizer={"type": "Sequence", "normalizers": BOMBS[bomb]})
    refused(model, "tokenizer.json", "normalizer")


def test_opening_refuses_a_pre_tokenizer_that_blows_texts_up(model):
    steps = [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}] * 20
    edit(model / "tokenizer.json", pre_tokenizer={"type": "Sequence", "pretokenizers": steps})
    refused(model, "tokenizer.json", "pre_tokenizer")


TEXT, MARKER = ({"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "X", "type_id": 0}})


def template(single, *, ids=1, pair=None):
    """A post-processor that puts the marker X, of so many ids, where it stands."""
    marker = {"id": "X", "ids": [1] * ids, "tokens": ["[UNK]"] * ids}
    other = {"Sequence": {"id": "B", "type_id": 1}}
    pieces = {"single": single, "pair": [*(pair or [TEXT]), other]}
    return {"type": "TemplateProcessing", **pieces, "special_tokens": {"X": marker}}


def in_sequence(*steps):
    return {"type": "Sequence", "processors": list(steps)}


@pytest.mark.parametrize(
    "step",
    [
        template([MARKER] * 60 + [TEXT], ids=20_000),
        template([MARKER] * 2000 + [TEXT]),
        template([TEXT] * 200_000),
        template([TEXT], pair=[MARKER] * 60 + [TEXT], ids=1000),
        in_sequence(in_sequence(template([MARKER, TEXT], ids=10_000))),
        in_sequence(template([TEXT] * 4), template([TEXT] * 4)),
        in_sequence(*[{"type": "ByteLevel"}] * 1000),
    ],
    ids=["ids", "markers", "texts", "pairs", "nested", "twice", "steps"],
)
def test_opening_refuses_a_post_processor_that_blows_texts_up(model, step):
    edit(model / "tokenizer.json", post_processor=step)
    refused(model, "tokenizer.json", "post_processor")


def test_opening_takes_a_post_processor_that_adds_a_few_markers(model):
    step = in_sequence(template([MARKER, TEXT, MARKER, TEXT], ids=3))
    edit(model / "tokenizer.json", post_processor=step)
    assert len(load_encoder(model, device="cpu").tokenizer("the dog")["input_ids"]) == 10


@pytest.mark.parametrize("file", ["tokenizer_config.json", "config.json"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("processor_class", "Qwen2_5OmniForConditionalGeneration"),
        ("processor_class", "RagRetriever"),
        ("tokenizer_class", "RagTokenizer"),
        ("tokenizer_class", "RagTokenizerFast"),
    ],
)
def test_opening_refuses_classes_that_load_others(model, file, key, value):
    edit(model / file, **{key: value})
    refused(model, file, key)


@pytest.mark.parametrize("kind", ["rag", "qwen2_5_omni", "wav2vec2", "clip", "whisper", "encoder-decoder"])
def test_opening_refuses_what_is_no_model_of_texts(model, kind):
    edit(model / "config.json", model_type=kind)
    refused(model, "config.json", "model_type", "is not a text model")


@pytest.mark.parametrize(
    "kind",
    "bert roberta mpnet distilbert xlm-roberta albert electra deberta deberta-v2 modernbert t5 mt5 camembert "
    "nomic_bert qwen2 qwen3 mistral llama gemma2 gemma3_text xlnet gte jina_embeddings_v3 longt5 led "
    "splinter".split(),
)
def test_opening_knows_the_architectures_of_common_encoders(kind):
    from likewise.encoders.architecture import _text_models

    assert kind in _text_models()


@pytest.mark.parametrize(
    "keys",
    [
        {"model_type": "gpt_neo", "attention_types": [[["global"], 400_000_000]]},
        {"model_type": "albert", "inner_group_num": 300_000},
        {"model_type": "mobilebert", "num_feedforward_networks": 300_000},
    ],
    ids=str,
)
def test_opening_refuses_counts_that_a_library_would_unroll(model, keys):
    edit(model / "config.json", **keys)
    refused(model, "config.json", "larger than in any model")


@pytest.mark.parametrize(
    "keys",
    [{"padding": "max_length", "max_length": 10**8}, {"truncation": False}, {"padding": False}],
    ids=str,
)
def test_opening_refuses_inputs_of_any_length(model, keys):
    edit(model / "sentence_bert_config.json", processing_kwargs={"text": keys})
    refused(model, "sentence_bert_config.json", "processing_kwargs.text")


def test_opening_refuses_a_vocabulary_that_is_cut_short(model):
    document = json.loads((model / "tokenizer.json").read_text(encoding="utf8"))
    words = document["model"]["vocab"]
    document["model"]["vocab"] = {word: place for word, place in words.items() if place < 6}
    (model / "tokenizer.json").write_text(json.dumps(document), encoding="utf8")
    refused(model, "cut short")
    (model / "tokenizer.json").rename(model / "vocab_notes.txt")
    refused(model, "vocabulary is missing")


def test_opening_a_model_that_is_replaced_meanwhile_is_told(model, tmp_path, monkeypatch):
    from likewise.predict import pairs

    other = tmp_path / "other"
    shutil.copytree(model, other)
    edit(other / "likewise" / "model.json", created="later")
    read = pairs.load_encoder

    def replaced(name, **options):
        model.rename(tmp_path / "away")
        other.rename(model)
        return read(name, **options)

    monkeypatch.setattr(pairs, "load_encoder", replaced)
    with pytest.raises(ModelError, match="was replaced while it was being loaded"):
        likewise.load(model, device="cpu")


def test_opening_runs_no_template_of_a_folder(model):
    way = {"method": "forward", "method_output_name": "last_hidden_state"}
    (model / "chat_template.jinja").write_text("{{ 'x ' * 1500000000 }}", encoding="utf8")
    edit(model / "sentence_bert_config.json", modality_config={"text": way, "message": way})
    refused(model, "sentence_bert_config.json", "modality_config")


def test_opening_refuses_a_tokenizer_that_does_not_know_the_unknown(model):
    document = json.loads((model / "tokenizer.json").read_text(encoding="utf8"))
    changed = {**document, "model": {**document["model"], "dropout": 0.5}}
    (model / "tokenizer.json").write_text(json.dumps(changed), encoding="utf8")
    refused(model, "tokenizer.json", "model")
    document["model"]["unk_token"] = "[NEVER]"
    (model / "tokenizer.json").write_text(json.dumps(document), encoding="utf8")
    refused(model, "tokenizer.json", "model")


def test_opening_knows_steps_from_an_epsilon(model):
    edit(model / "config.json", num_train_steps=10_000)
    load_encoder(model, device="cpu")
    edit(model / "config.json", layer_norm_eps=10)
    refused(model, "config.json", "layer_norm_eps")


def test_opening_refuses_a_tensor_that_stands_in_two_shards(model):
    weights = load_file(model / "model.safetensors")
    (model / "model.safetensors").unlink()
    first = next(iter(weights))
    save_file(weights, model / "a.safetensors", metadata={"format": "pt"})
    save_file({first: torch.randn_like(weights[first])}, model / "b.safetensors", metadata={"format": "pt"})
    names = {name: "a.safetensors" for name in weights if name != first} | {first: "b.safetensors"}
    edit(model / "model.safetensors.index.json", metadata={}, weight_map=names)
    refused(model, "is also in another file")


def test_opening_refuses_modules_in_hidden_folders(tmp_path):
    folder = Path(shutil.copytree(MODELS / "multilingual", tmp_path / "m"))
    modules = json.loads((folder / "modules.json").read_text(encoding="utf8"))
    (folder / modules[2]["path"]).rename(folder / ".git_Dense")
    modules[2]["path"] = ".git_Dense"
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf8")
    refused(folder, "modules.json", "is hidden")


UPDATES = {
    "labels": ("tempo.csv", "--labels", "fast, slow"),
    "described": ("--describe", "a fast dog", "--scale", "0..5"),
}


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize(
    ("notes", "said"),
    [
        ({"stages": None, "versions": None}, ""),
        ({"recipe": None}, "was not trained by Likewise, so it cannot be updated"),
        ({"recipe": {"encoder": 5}}, "model.json"),
        ({"recipe": {"name": ["x"]}}, "model.json"),
        ({"stages": [{"kind": 7}]}, "model.json: stages.0.best_step is missing"),
        ({"stages": [{"name": 7}]}, "model.json: stages.0.name = 7 is not allowed"),
        ({"stages": [{"leakage": "much"}]}, "model.json: stages.0.leakage"),
    ],
    ids=str,
)
def test_opening_a_model_to_update_reads_its_notes_or_says_what_is_wrong(tmp_path, here, name, notes, said):
    folder = Path(shutil.copytree(MODELS / name, tmp_path / "m"))
    document = json.loads((folder / "likewise" / "model.json").read_text(encoding="utf8"))
    if "leakage" in str(notes):
        notes = {"stages": [{**document["stages"][0], **notes["stages"][0]}]}
    edit(folder / "likewise" / "model.json", **notes)
    rows = [f"the man runs {number},{label}" for number in range(20) for label in ("fast", "slow")]
    (tmp_path / "tempo.csv").write_text("\n".join(["text,tempo", *rows]) + "\n", encoding="utf8")
    code, told = here(
        *("update", "m", "--task", "tempo", *UPDATES[name], "--mode", "zero", "--output", "new"),
        *("--device", "cpu"),
    )
    assert "bug" not in told
    assert code == (0 if not said else code)
    assert code in (0, 1, 2)
    assert said in told
    assert (tmp_path / "new").exists() == (not said)
