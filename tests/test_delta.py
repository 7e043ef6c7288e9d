"""Delta folders: the change of an encoder's weights, joined with its base when it is loaded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import likewise
from likewise.encoders import delta as deltas
from likewise.encoders import resolve
from likewise.encoders.lowrank import factors, network_of, network_tensors, tensors_sha256
from likewise.encoders.manifest import describe_files
from likewise.encoders.sentence import load_encoder, with_layers, with_prompt, without_normalisation
from likewise.errors import LikewiseError, ModelError, UsageError
from likewise.predict.pairs import raw_model
from likewise.store import save_model
from likewise.store.delta import store_change

PAIRS = [("a man plays the guitar", "the woman sings"), ("one cat sleeps", "one cat is not fast")]
TEXTS = [text for pair in PAIRS for text in pair]
HUB_BASE = "intfloat/e5-small"


def train(encoder, pairs: Path, output: Path, **changes):
    """A model whose encoder has moved far in a few steps."""
    overrides = {"stage.0.learning_rate": 5e-3, "stage.0.select": False, "stage.0.max_steps": 6, **changes}
    return likewise.train(
        str(pairs),
        output,
        encoder=str(encoder),
        relations=["similarity:0..5", "topic:-2..2"],
        overrides=overrides,
        device="cpu",
        quiet=True,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory, tiny_encoder, tiny_pairs) -> Path:
    """A folder with an encoder `base`, a model that was trained from it, and its delta."""
    folder = tmp_path_factory.mktemp("delta")
    shutil.copytree(tiny_encoder, folder / "base")
    train(folder / "base", tiny_pairs, folder / "model")
    likewise.export(folder / "model", folder / "delta", rank=4)
    return folder


@pytest.fixture
def copy(place, tmp_path) -> Path:
    """A copy of the delta beside a copy of its base."""
    for name in ("base", "delta"):
        shutil.copytree(place / name, tmp_path / name)
    return tmp_path / "delta"


def encoder_of(model: Path):
    return likewise.load(model, device="cpu").model.encoder


def vectors(model: Path) -> np.ndarray:
    return np.asarray(likewise.load(model, device="cpu").encode(TEXTS))


def rewrite(folder: Path, *, tensors=None, base=None, drop=()) -> None:
    """Change a delta as a stranger would, with the hashes that belong to the change."""
    path = folder / "likewise" / "model.json"
    document = json.loads(path.read_text(encoding="utf8"))
    if tensors is not None:
        save_file(tensors, folder / "likewise" / "delta.safetensors")
    document["base"].update(base or {})
    for key in drop:
        del document["base"][key]
    document["files"] = describe_files(folder)
    path.write_text(json.dumps(document), encoding="utf8")


# What is kept, and what of it comes back.


def test_delta_of_full_rank_answers_as_the_whole_model(place, tmp_path):
    report = likewise.export(place / "model", tmp_path / "delta", base=str(place / "base"), rank=64)
    shutil.copytree(place / "base", tmp_path / "base")
    assert report.kept > 0.999999
    assert report.difference < 2e-3
    folders = (place / "model", tmp_path / "delta")
    whole, joined = (likewise.load(folder, device="cpu").score(PAIRS) for folder in folders)
    for relation in ("similarity", "topic"):
        assert np.allclose(np.asarray(whole[relation]), np.asarray(joined[relation]), atol=5e-3)


def test_delta_folder_is_small_and_says_what_it_needs(place):
    document = json.loads((place / "delta" / "likewise" / "model.json").read_text(encoding="utf8"))
    base = document["base"]
    assert (base["name"], base["rank"], base["storage"], base["max_length"]) == ("base", 4, "float16", 64)
    assert base["tensors"] == tensors_sha256(network_tensors(encoder_of(place / "base")[0].model))
    names = {path.name for path in (place / "delta").iterdir()}
    assert names == {"README.md", "likewise"}
    card = (place / "delta" / "README.md").read_text(encoding="utf8")
    assert "the change of the weights of `base`" in card
    assert "library_name: likewise" in card
    held = load_file(place / "delta" / "likewise" / "delta.safetensors")
    assert {name.rpartition(".")[2] for name in held} == {"left", "right", "change"}
    assert all(tensor.dtype == torch.float16 for tensor in held.values())
    heads = load_file(place / "delta" / "likewise" / "heads.safetensors")
    assert all(tensor.dtype == torch.float16 for tensor in heads.values())
    model = likewise.load(place / "delta", device="cpu").model
    assert all(tensor.dtype == torch.float32 for tensor in model.state_dict().values())


def test_delta_changes_matrices_by_the_rank_and_other_weights_wholly(place):
    before, whole, joined = (
        network_tensors(encoder_of(place / name)[0].model) for name in ("base", "model", "delta")
    )
    for name, old in before.items():
        change = (joined[name] - old).double()
        if old.dim() == 2:
            assert int((torch.linalg.svdvals(change) > 1e-5).sum()) <= 4, name
        else:
            assert torch.allclose(change, (whole[name] - old).double(), atol=1e-5), name


@pytest.mark.parametrize(("storage", "most"), [("float16", 5e-4), ("int8", 1.5e-2)])
def test_storage_loses_little_of_a_change(storage, most, tmp_path):
    torch.manual_seed(0)
    before = {"matrix": torch.randn(200, 120), "bias": torch.randn(120)}
    spread = torch.logspace(0, -3, 24)
    change = torch.randn(200, 24) * spread @ torch.randn(24, 120) * 1e-3
    after = {"matrix": before["matrix"] + change, "bias": before["bias"] + 1e-3}
    exact = (after["matrix"] - before["matrix"]).double()
    left, right = factors(exact, 8)
    cut = left @ right
    stored = store_change(before, after, rank=8, storage=storage)
    parts = {name.partition(".")[2]: part for name, part in stored.tensors.items() if name.startswith("m")}
    found = deltas._change({name: part.float() for name, part in parts.items()}).double()
    assert float((found - cut).norm() / cut.norm()) < most
    assert stored.kept == pytest.approx(float(cut.norm() / exact.norm()), abs=1e-3)


def test_storage_of_int8_is_half_the_size_and_loads(place, tmp_path):
    shutil.copytree(place / "base", tmp_path / "base")
    reports = [
        likewise.export(place / "model", tmp_path / storage, rank=4, storage=storage)
        for storage in ("float16", "int8")
    ]
    sizes = [(report.output / "likewise" / "delta.safetensors").stat().st_size for report in reports]
    held = load_file(tmp_path / "int8" / "likewise" / "delta.safetensors")
    assert {one.dtype for name, one in held.items() if name.endswith(("left", "right"))} == {torch.int8}
    assert sizes[1] < sizes[0]
    assert np.allclose(vectors(tmp_path / "int8"), vectors(tmp_path / "float16"), atol=0.1)


def test_settings_of_the_encoder_survive(place, tmp_path):
    from likewise.adapters import Layer

    encoder = load_encoder(place / "base", device="cpu", max_length=12)
    torch.manual_seed(1)
    encoder = with_layers(encoder, [Layer(torch.randn(16, 32), torch.randn(16), "tanh")])
    encoder = with_prompt(encoder, "a river : ")
    with torch.no_grad():
        for tensor in network_tensors(network_of(encoder, "")).values():
            tensor.add_(0.05 * torch.randn_like(tensor))
    save_model(raw_model(encoder), tmp_path / "model", about={})
    likewise.export(tmp_path / "model", tmp_path / "delta", base=str(place / "base"), rank=64)
    shutil.copytree(place / "base", tmp_path / "base")
    long = " ".join(TEXTS * 3)
    expected, found = (
        np.asarray(likewise.load(tmp_path / name, device="cpu").encode([*TEXTS, long]))
        for name in ("model", "delta")
    )
    assert found.shape == (5, 16)
    assert np.allclose(expected, found, atol=2e-2)
    joined = encoder_of(tmp_path / "delta")
    assert joined.max_seq_length == 12
    assert joined.prompts["likewise"] == "a river : "
    assert joined.default_prompt_name == "likewise"


def test_a_removed_normalisation_stays_removed(place, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize

    plain = load_encoder(place / "base", device="cpu")
    SentenceTransformer(modules=[*plain, Normalize()], device="cpu").save(
        str(tmp_path / "base"), create_model_card=False
    )
    encoder = without_normalisation(load_encoder(tmp_path / "base", device="cpu"))
    save_model(raw_model(encoder), tmp_path / "model", about={})
    report = likewise.export(tmp_path / "model", tmp_path / "delta", base=str(tmp_path / "base"))
    assert report.kept == 1.0  # nothing changed, and nothing is stored
    assert load_file(tmp_path / "delta" / "likewise" / "delta.safetensors") == {}
    assert [type(module).__name__ for module in encoder_of(tmp_path / "delta")] == ["Transformer", "Pooling"]
    assert np.allclose(vectors(tmp_path / "delta"), vectors(tmp_path / "model"), atol=1e-6)


def test_saved_again_it_is_a_whole_folder_for_sentence_transformers(place, tmp_path):
    from sentence_transformers import SentenceTransformer

    likewise.load(place / "delta", device="cpu").save(tmp_path / "whole")
    loaded = SentenceTransformer(str(tmp_path / "whole"), device="cpu")
    assert np.allclose(loaded.encode(TEXTS), vectors(place / "delta"), atol=1e-5)
    document = json.loads((tmp_path / "whole" / "likewise" / "model.json").read_text(encoding="utf8"))
    assert "base" not in document
    with pytest.raises((ValueError, OSError)):
        SentenceTransformer(str(place / "delta"), device="cpu")


def test_training_and_joint_training_start_from_a_delta(place, tiny_pairs, tmp_path):
    from likewise.methods.joint import load_joint
    from likewise.records import Relation

    trained = train(place / "delta", tiny_pairs, tmp_path / "next", **{"stage.0.max_steps": 1})
    assert (tmp_path / "next" / "model.safetensors").is_file()
    assert trained.score(PAIRS)
    joint = load_joint(place / "delta", Relation.graded("similarity", 0, 5), device="cpu")
    expected = network_tensors(encoder_of(place / "delta")[0].model)
    found = network_tensors(joint.encoder.base_model)
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_label_models_and_their_matchers_can_be_deltas(place, tmp_path):
    rows = [{"text": f"the {word} is {state}", "mood": state} for word in ("dog", "cat", "band", "man")
            for state in ("fast", "slow")] * 3  # fmt: skip
    likewise.train(
        rows,
        tmp_path / "labels",
        encoder=str(place / "base"),
        text="text",
        label="mood",
        device="cpu",
        quiet=True,
    )
    shutil.copytree(place / "base", tmp_path / "base")
    likewise.export(tmp_path / "labels", tmp_path / "delta", rank=64)
    expected, found = (
        likewise.load_classifier(tmp_path / name, device="cpu").classify(["the man is slow"]).probabilities
        for name in ("labels", "delta")
    )
    assert np.allclose(np.asarray(expected), np.asarray(found), atol=1e-2)


# The base.


def test_base_is_known_by_its_tensors_and_not_by_its_files(place, copy):
    network = load_encoder(place / "base", device="cpu")[0].model
    (copy.parent / "base" / "model.safetensors").unlink()
    network.save_pretrained(copy.parent / "base", max_shard_size="20KB")
    assert (copy.parent / "base" / "model.safetensors.index.json").is_file()
    assert np.allclose(vectors(copy), vectors(place / "delta"), atol=1e-6)


def test_base_hash_depends_on_names_shapes_and_values():
    one = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(2)}
    assert tensors_sha256(one) == tensors_sha256(dict(reversed(one.items())))
    assert tensors_sha256(one) == tensors_sha256({**one, "a": one["a"].double()})
    others = [{**one, "a": one["a"].view(3, 2)}, {**one, "b": torch.zeros(2)}, {"a": one["a"], "c": one["b"]}]
    assert len({tensors_sha256(other) for other in [one, *others]}) == 4


def test_another_base_is_an_error_that_says_which_is_needed(copy):
    path = copy.parent / "base" / "model.safetensors"
    tensors = load_file(path)
    name = next(name for name in tensors if name.endswith("query.weight"))
    save_file({**tensors, name: tensors[name] + 1}, path, metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"changes the weights of base .*but .*base holds other weights"):
        likewise.load(copy)


def test_missing_base_is_an_error_that_says_how_to_get_it(copy, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("LIKEWISE_MODELS", raising=False)
    shutil.rmtree(copy.parent / "base")
    with pytest.raises(ModelError, match=r"not on this machine\. Put its folder beside this one, or under"):
        likewise.load(copy)
    rewrite(copy, base={"name": "nobody/nothing-there"})
    with pytest.raises(
        ModelError, match=r"not on this machine. Download it \(hf download nobody/nothing-there"
    ):
        likewise.load(copy)


def test_only_bases_of_shipped_models_are_downloaded(copy, monkeypatch):
    asked: list[str] = []

    def fetch(name: str) -> str:
        asked.append(name)
        raise ModelError("no network")

    monkeypatch.setattr(deltas, "fetch", fetch)
    monkeypatch.setattr(deltas, "base_folders", lambda name, beside: iter(()))
    for name in (*resolve.BASES, "nobody/nothing-there"):
        rewrite(copy, base={"name": name})
        with pytest.raises(ModelError, match="not on this machine"):
            likewise.load(copy)
    assert asked == list(resolve.BASES)
    assert "likewise[weights]" in resolve.how_to_get(resolve.RAW_MODEL)


@pytest.mark.parametrize("folder", ["e5-small", HUB_BASE])
def test_base_is_found_under_the_folder_of_models_by_its_names(folder, copy, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_MODELS", str(tmp_path / "models"))
    (tmp_path / "models" / folder).parent.mkdir(parents=True)
    (copy.parent / "base").rename(tmp_path / "models" / folder)
    rewrite(copy, base={"name": HUB_BASE})
    assert likewise.load(copy, device="cpu").score(PAIRS)


def test_bases_of_shipped_models_have_other_names(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_MODELS", str(tmp_path))
    for name, base in (
        ("minilm", resolve.RAW_MODEL),
        ("mpnet", "sentence-transformers/all-mpnet-base-v2"),
    ):
        (tmp_path / name).mkdir()
        assert tmp_path / name in resolve.base_folders(base, tmp_path)
        assert resolve.base_name(name) == resolve.base_name(str(tmp_path / name)) == base
    assert resolve.base_name("raw") == resolve.RAW_MODEL
    assert resolve.base_name("owner/name") == "owner/name"
    assert resolve.base_name(str(tmp_path)) == tmp_path.name


def test_base_may_be_a_delta_but_not_a_deeper_one(place, tmp_path, tiny_pairs):
    for name in ("base", "delta"):
        shutil.copytree(place / name, tmp_path / name)
    train(tmp_path / "delta", tiny_pairs, tmp_path / "second", **{"stage.0.max_steps": 2})
    likewise.export(tmp_path / "second", tmp_path / "delta-2", rank=64)
    assert np.allclose(vectors(tmp_path / "delta-2"), vectors(tmp_path / "second"), atol=2e-2)
    with pytest.raises(LikewiseError, match="is a delta on a delta"):
        likewise.export(tmp_path / "second", tmp_path / "delta-3", base=str(tmp_path / "delta-2"))
    rewrite(tmp_path / "delta", base={"name": "delta-2"})
    with pytest.raises(ModelError, match="is a delta on a delta"):
        likewise.load(tmp_path / "delta-2")
    rewrite(tmp_path / "delta", base={"name": "delta"})
    with pytest.raises(ModelError, match="is a delta on a delta"):
        likewise.load(tmp_path / "delta")


# Names of shipped models.


@pytest.fixture
def shipped(place, tmp_path, monkeypatch) -> Path:
    """An installation that holds likewise-small."""
    monkeypatch.setattr(resolve, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setenv("LIKEWISE_MODELS", str(tmp_path / "models"))
    shutil.copytree(place / "delta", tmp_path / "shipped" / "likewise-small")
    shutil.copytree(place / "base", tmp_path / "models" / "e5-small")
    rewrite(tmp_path / "shipped" / "likewise-small", base={"name": HUB_BASE})
    return tmp_path


def test_shipped_models_load_by_name(shipped, tiny_pairs, monkeypatch):
    monkeypatch.chdir(shipped)
    model = likewise.load("likewise-small", device="cpu")
    assert [relation.name for relation in model.relations] == ["similarity", "topic"]
    assert model.save(shipped / "whole") == shipped / "whole"
    with pytest.raises(ModelError, match="likewise-mini is not part of this installation"):
        likewise.load("likewise-mini")
    assert train("likewise-small", tiny_pairs, shipped / "next", **{"stage.0.max_steps": 1}).score(PAIRS)


def test_shipped_model_is_a_base_by_its_name(shipped, tiny_pairs, monkeypatch):
    monkeypatch.chdir(shipped)
    train("likewise-small", tiny_pairs, shipped / "next", **{"stage.0.max_steps": 1})
    report = likewise.export("next", "next-delta", rank=64)
    assert report.base == "likewise-small"
    assert np.allclose(vectors(shipped / "next-delta"), vectors(shipped / "next"), atol=2e-2)


def test_shipped_model_without_its_base_says_what_to_install(shipped, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    shutil.rmtree(shipped / "models")
    with pytest.raises(
        ModelError, match=r"hf download intfloat/e5-small\), or put its folder under LIKEWISE"
    ):
        likewise.load("likewise-small")


# What the starting model has seen.


def test_plan_says_what_the_starting_model_was_trained_on(place, tiny_pairs, tmp_path, here):
    told: list[str] = []
    options = {"relations": ["similarity:0..5"], "device": "cpu", "overrides": {"stage.0.max_steps": 1}}
    shutil.copy(tiny_pairs, tmp_path / "more.csv")
    likewise.train(
        str(tmp_path / "more.csv"),
        tmp_path / "two",
        encoder=str(place / "delta"),
        tell=told.append,
        **options,
    )
    [line] = [line for line in told if "already trained" in line]
    assert line.endswith(f"was already trained by Likewise, on {tiny_pairs}")
    assert told.index(line) < next(at for at, one in enumerate(told) if one.startswith("stage 0"))
    likewise.export(tmp_path / "two", tmp_path / "two-delta", base=str(place / "base"), rank=4)
    for model in ("two", "two-delta"):
        code, said = here("train", tiny_pairs, "--encoder", model, "--relation", "topic:-2..2", "--dry-run")
        if model == "two-delta":
            assert code != 0  # its base is not beside it
            continue
        assert code == 0, said
        assert "was already trained by Likewise" in said
        assert "pairs.csv" in said
        assert "more.csv" in said
        assert "`likewise audit` finds shared texts" in said
    document = json.loads((tmp_path / "two-delta" / "likewise" / "model.json").read_text(encoding="utf8"))
    assert document["seen"] == [str(tiny_pairs)]


def test_plan_says_nothing_of_a_raw_encoder(place, tiny_pairs, tmp_path):
    told: list[str] = []
    likewise.train(
        str(tiny_pairs),
        tmp_path / "one",
        encoder=str(place / "base"),
        relations=["similarity:0..5"],
        overrides={"stage.0.max_steps": 1},
        device="cpu",
        tell=told.append,
    )
    assert not any("already trained" in line for line in told)


# Hostile folders.


def tensors_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "likewise" / "delta.safetensors")


QUERY = "encoder.layer.0.attention.self.query.weight"


def factors_of(
    t: dict[str, torch.Tensor], left: torch.Tensor, right: torch.Tensor
) -> dict[str, torch.Tensor]:
    return {**t, f"{QUERY}.left": left.half(), f"{QUERY}.right": right.half()}


HOSTILE = {
    "an unknown weight": (lambda t: {**t, "nothing.change": torch.zeros(3).half()}, "does not have"),
    "the pooler": (lambda t: {**t, "pooler.dense.bias.change": torch.zeros(32).half()}, "does not have"),
    "no weight at all": (lambda t: {**t, "change": torch.zeros(3).half()}, "does not have"),
    "another shape": (lambda t: {**t, f"{QUERY}.left": torch.zeros(31, 4).half()}, "of shape"),
    "other axes": (lambda t: {**t, f"{QUERY}.left": torch.zeros(32, 4, 1).half()}, "of shape"),
    "a rank above its own": (
        lambda t: factors_of(t, torch.zeros(32, 5), torch.zeros(5, 32)),
        "has rank 5, but at most 4",
    ),
    "rank zero": (lambda t: factors_of(t, torch.zeros(32, 0), torch.zeros(0, 32)), "has rank 0"),
    "half of the factors": (
        lambda t: {name: one for name, one in t.items() if name != f"{QUERY}.right"},
        "has the parts left",
    ),
    "both forms": (lambda t: {**t, f"{QUERY}.change": torch.zeros(32, 32).half()}, "has the parts change"),
    "another part": (lambda t: {**t, f"{QUERY}.middle": torch.zeros(1)}, "has the parts"),
    "factors of a bias": (
        lambda t: {
            **{k: v for k, v in t.items() if "query.bias" not in k},
            QUERY.replace("weight", "bias.left"): torch.zeros(32, 1).half(),
            QUERY.replace("weight", "bias.right"): torch.zeros(1).half(),
        },
        "has the parts left, right",
    ),
    "whole numbers": (lambda t: {**t, f"{QUERY}.left": torch.zeros(32, 4).to(torch.int8)}, "is I8"),
    "a large format": (lambda t: {**t, f"{QUERY}.left": torch.zeros(32, 4).double()}, "is F64"),
    "brain floats": (lambda t: {**t, f"{QUERY}.left": torch.zeros(32, 4).bfloat16()}, "is BF16"),
    "scales without int8": (
        lambda t: {**t, f"{QUERY}.left_scale": torch.ones(4), f"{QUERY}.right_scale": torch.ones(4)},
        "are not stored as float16",
    ),
    "not a number": (lambda t: {**t, f"{QUERY}.left": torch.full((32, 4), torch.nan).half()}, "not finite"),
    "an overflow": (
        lambda t: {
            **t, f"{QUERY}.left": torch.full((32, 4), 3e38), f"{QUERY}.right": torch.full((4, 32), 3e38)
        },
        "not finite",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_change_is_one_clear_error(case, copy):
    change, expected = HOSTILE[case]
    rewrite(copy, tensors=change(tensors_of(copy)))
    with pytest.raises(ModelError) as caught:
        likewise.load(copy)
    assert expected in str(caught.value)
    assert "delta.safetensors" in str(caught.value)


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ({"name": "../base"}, "is not allowed"),
        ({"name": "/etc"}, "is not allowed"),
        ({"name": "a/b/c"}, "is not allowed"),
        ({"name": ".."}, "is not allowed"),
        ({"name": 7}, "is not allowed"),
        ({"tensors": "abc"}, "is not allowed"),
        ({"rank": 0}, "is not allowed"),
        ({"rank": 2**40}, "is not allowed"),
        ({"storage": "int4"}, "is not allowed"),
        ({"storage": "int8"}, "is F16"),
        ({"max_length": -1}, "is not allowed"),
        ({"url": "https://example.org"}, "is not allowed"),
        ({"tensors": "0" * 64}, "holds other weights"),
    ],
)
def test_hostile_entry_of_the_base_is_one_clear_error(base, expected, copy):
    rewrite(copy, base=base)
    with pytest.raises(ModelError, match=expected):
        likewise.load(copy)


def test_hostile_files_beside_a_change_are_refused(copy):
    shutil.copy(copy.parent / "base" / "model.safetensors", copy / "model.safetensors")
    with pytest.raises(ModelError, match="unclear which is meant"):
        likewise.load(copy)
    (copy / "model.safetensors").unlink()
    modules = copy / "likewise" / "encoder" / "modules.json"
    entries = json.loads(modules.read_text(encoding="utf8"))
    for changed, expected in (
        ([{**entries[0], "type": "evil.Module"}], "is unknown"),
        ([{**entries[0], "type": "sentence_transformers.models.Pooling"}], "is a Transformer"),
        ([*entries, {**entries[0], "name": "9", "path": "9_T"}], "cannot come after"),
        ([entries[0], {**entries[1], "path": "../../.."}], "leads out of the folder"),
        ([entries[0], {**entries[1], "path": ""}], "cannot come after"),
    ):
        modules.write_text(json.dumps(changed), encoding="utf8")
        rewrite(copy)
        with pytest.raises(ModelError, match=expected):
            likewise.load(copy)


def test_damaged_delta_is_refused(copy):
    file = copy / "likewise" / "delta.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ModelError, match="is not the file that the model was saved with"):
        likewise.load(copy)
    file.write_bytes(whole[:100])
    rewrite(copy)
    with pytest.raises(ModelError, match="safetensors"):
        likewise.load(copy)
    file.unlink()
    rewrite(copy)
    with pytest.raises(ModelError, match=r"delta.safetensors is missing"):
        likewise.load(copy)
    (copy / "likewise" / "model.json").unlink()
    with pytest.raises(ModelError, match=r"model.json"):
        likewise.load(copy)


@pytest.mark.parametrize("drop", ["name", "tensors", "rank", "storage", "max_length"])
def test_incomplete_entry_of_the_base_is_refused(drop, copy):
    rewrite(copy, drop=[drop])
    with pytest.raises(ModelError, match=f"base.{drop} is missing"):
        likewise.load(copy)


# Exporting.


def test_export_refuses_a_base_of_another_shape_and_models_without_one(place, tmp_path, tiny_vectors):
    from likewise.encoders.words import average_encoder

    words = average_encoder(tiny_vectors, device="cpu")
    save_model(raw_model(words), tmp_path / "words", about={})
    with pytest.raises(LikewiseError, match="has no transformer"):
        likewise.export(tmp_path / "words", tmp_path / "out", base=str(place / "base"))
    with pytest.raises(UsageError, match="does not say which encoder it was trained from"):
        likewise.export(place / "base", tmp_path / "out")
    from transformers import AutoConfig, AutoModel

    shutil.copytree(place / "base", tmp_path / "small")
    config = AutoConfig.from_pretrained(place / "base", num_hidden_layers=1)
    AutoModel.from_config(config).save_pretrained(tmp_path / "small")
    with pytest.raises(UsageError, match="is no change of small"):
        likewise.export(place / "model", tmp_path / "out", base=str(tmp_path / "small"))
    assert not (tmp_path / "out").exists()


def test_export_refuses_a_base_that_reads_texts_differently(place, tmp_path):
    shutil.copytree(place / "base", tmp_path / "cased")
    tokenizer = tmp_path / "cased" / "tokenizer.json"
    document = json.loads(tokenizer.read_text(encoding="utf8"))
    document["normalizer"] = None
    tokenizer.write_text(json.dumps(document), encoding="utf8")
    with pytest.raises(UsageError, match="reads texts differently from the model"):
        likewise.export(place / "model", tmp_path / "out", base=str(tmp_path / "cased"))
    assert [path.name for path in tmp_path.iterdir()] == ["cased"]


def test_export_refuses_a_joint_model_and_wrong_options(place, tiny_pairs, tmp_path):
    likewise.train(
        "finetune",
        tmp_path / "joint",
        encoder=str(place / "base"),
        data=str(tiny_pairs),
        relations=["similarity:0..5"],
        overrides={"stage.0.max_steps": 1},
        device="cpu",
        quiet=True,
    )
    with pytest.raises(UsageError, match="no vectors of texts"):
        likewise.export(tmp_path / "joint", tmp_path / "out")
    for options, expected in (
        ({"rank": 0}, "rank is 0"),
        ({"storage": "int4"}, "storage 'int4' is unknown"),
        ({"to": "onnx"}, "to 'onnx' is unknown"),
    ):
        with pytest.raises(UsageError, match=expected):
            likewise.export(place / "model", tmp_path / "out", **options)


def test_export_replaces_only_models_and_never_an_input(place, tmp_path):
    for target, expected in ((place / "model", "is an input"), (place / "base", "is an input")):
        with pytest.raises(UsageError, match=expected):
            likewise.export(place / "model", target, base=str(place / "base"), overwrite=True)
    likewise.export(place / "model", tmp_path / "out", base=str(place / "base"), rank=2)
    with pytest.raises(UsageError, match="exists already"):
        likewise.export(place / "model", tmp_path / "out", base=str(place / "base"))
    told: list[str] = []
    likewise.export(
        place / "model", tmp_path / "out", base=str(place / "base"), rank=3, overwrite=True, tell=told.append
    )
    assert "Put its folder beside this one" in told[0]
    shutil.copytree(place / "base", tmp_path / "base")
    assert likewise.load(tmp_path / "out").about["base"]["rank"] == 3


def test_export_on_the_command_line(place, here, tmp_path):
    shutil.copytree(place / "base", tmp_path / "base")
    arguments = ("export", place / "model", "--to", "delta", "--base", "base", "--rank", 4)
    code, said = here(*arguments, "--output", "one", "--json")
    assert code == 0, said
    report = json.loads(said[said.index("{") : said.rindex("}") + 1])
    assert (report["base"], report["rank"], report["storage"], report["to"]) == (
        "base",
        4,
        "float16",
        "delta",
    )
    assert 0 < report["kept"] <= 1
    assert report["difference"] >= 0
    code, said = here(*arguments, "--output", "two", "--storage", "int8")
    assert code == 0, said
    assert "MB as a change of base; rank 4 in int8 keeps" in said
    assert "differ from the whole model's by at most" in said
    code, said = here("score", *PAIRS[0], "--model", "two", "--device", "cpu")
    assert code == 0, said
    code, said = here(*arguments, "--output", "two", "--storage", "int4")
    assert code == 2
    assert "--storage 'int4' is unknown" in said


def test_delta_of_a_delta_has_the_same_base_unless_another_is_named(place, tmp_path, monkeypatch):
    shutil.copytree(place / "base", tmp_path / "base")
    shutil.copytree(place / "delta", tmp_path / "delta")
    monkeypatch.chdir(tmp_path)
    assert likewise.export("delta", "again", rank=4).base == "base"


def test_delta_on_another_base_than_the_model_was_trained_from_is_told(place, tmp_path, monkeypatch):
    for folder in ("base", "delta"):
        shutil.copytree(place / folder, tmp_path / folder)
    shutil.copytree(place / "base", tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    likewise.export("delta", "again", base="./other", rank=4, tell=told.append)
    assert any("delta was trained from base, so its change from other is larger" in line for line in told)
