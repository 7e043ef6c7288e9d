"""The embedding cache: nothing encoded twice, never corrupt, whoever else writes and whatever breaks."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from likewise import disk
from likewise.data.filecache import KEPT, FileCache, cache_home, content_key
from likewise.data.links import LinkedPair, read_links, write_links
from likewise.disk import write_json_aside
from likewise.encoders import cache as module
from likewise.encoders import shards
from likewise.encoders.cache import (
    EmbeddingCache,
    Identity,
    cache_entries,
    clear_cache,
    default_folder,
    identify,
    prepared_bytes,
    remembered_identity,
)
from likewise.encoders.sentence import load_encoder, with_prompt
from likewise.encoders.vectors import encode_texts
from likewise.encoders.words import average_encoder, bilstm_encoder
from likewise.errors import DataError, ModelError, UsageError
from tests import forks

MODELS = Path(__file__).parent / "frozen" / "models"
FILLING = Path(__file__).with_name("filling.py")
TEXTS = [f"the dog {n}" for n in range(60)]


@pytest.fixture
def encoder(tiny_encoder):
    return load_encoder(tiny_encoder, device="cpu")


def open_cache(encoder, folder, **options):
    return EmbeddingCache.of(encoder, name="tiny", folder=folder, **options)


def filling(encoder, folder, *numbers):
    """A process of its own that fills the cache."""
    return forks.Fork(encoder, folder, *numbers, script=FILLING)


def test_cache_gives_the_encoders_vectors_in_order_and_encodes_once(encoder, tmp_path, monkeypatch):
    cache = open_cache(encoder, tmp_path)
    wanted = [*TEXTS[:40], *TEXTS[:5]]
    assert np.allclose(cache.matrix(wanted, shard=16), encode_texts(encoder, wanted), atol=1e-6)
    assert len(list(cache.folder.glob("*.safetensors"))) == 3
    told = []
    assert cache.fill(TEXTS, progress=told.append) == 20
    assert sum(told) == 60
    monkeypatch.setattr(module, "encode_texts", lambda *a, **k: pytest.fail("encoded again"))
    again = open_cache(encoder, tmp_path).matrix(TEXTS)
    assert np.allclose(again, encode_texts(encoder, TEXTS), atol=1e-6)


def test_cache_of_many_texts_is_mapped_not_held(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "HELD_BYTES", 100)
    cache = open_cache(encoder, tmp_path)
    found = cache.matrix(TEXTS)
    assert isinstance(found, np.memmap)
    assert np.allclose(found, encode_texts(encoder, TEXTS), atol=1e-6)
    assert {path.suffix for path in cache.folder.iterdir()} == {".json", ".safetensors"}


def test_cache_tells_encoders_apart_by_weights_and_prompt(encoder, tiny_encoder, tmp_path):
    other = load_encoder(tiny_encoder, device="cpu")
    assert identify(other) == identify(encoder)
    assert identify(encoder, "query: ") != identify(encoder)
    assert identify(encoder, precision="bf16") != identify(encoder)
    parameter = next(other.parameters())
    parameter.data[0] += 1e-3
    assert identify(other) != identify(encoder)
    plain = open_cache(encoder, tmp_path).matrix(TEXTS[:3])
    prompted = open_cache(encoder, tmp_path, prompt="the cat ").matrix(TEXTS[:3])
    assert not np.allclose(plain, prompted)
    assert np.allclose(
        prompted, open_cache(encoder, tmp_path).matrix([f"the cat {t}" for t in TEXTS[:3]]), atol=1e-5
    )


def test_an_encoders_own_prompt_is_part_of_the_fingerprint(tiny_encoder, encoder, tmp_path):
    asked = open_cache(encoder, tmp_path, prompt="query: ")
    prompted = with_prompt(load_encoder(tiny_encoder, device="cpu"), "query: ")
    assert open_cache(prompted, tmp_path).fingerprint == asked.fingerprint
    assert open_cache(encoder, tmp_path).fingerprint != asked.fingerprint
    np.testing.assert_array_equal(open_cache(prompted, tmp_path).matrix(TEXTS), asked.matrix(TEXTS))


def test_fingerprint_leaves_out_a_pooler_that_is_made_anew_at_every_start(encoder):
    before = identify(encoder)
    poolers = [value for name, value in encoder.state_dict().items() if ".pooler." in name]
    assert poolers
    with torch.no_grad():
        for value in poolers:
            value.normal_()
    assert identify(encoder) == before


def test_cache_filled_by_two_processes_at_once_is_whole(encoder, tiny_encoder, tmp_path):
    both = [filling(tiny_encoder, tmp_path, first, first + 40, 4) for first in (0, 20)]
    for process in both:
        process.communicate(timeout=120)
    assert [process.returncode for process in both] == [0, 0]
    cache = open_cache(encoder, tmp_path)
    assert cache.fill(TEXTS) == 0
    assert np.allclose(cache.matrix(TEXTS), encode_texts(encoder, TEXTS), atol=1e-6)


def test_cache_survives_a_kill_in_the_middle(encoder, tiny_encoder, tmp_path):
    process = filling(tiny_encoder, tmp_path, 0, 4000, 4)
    folder = tmp_path / identify(encoder).fingerprint
    deadline = time.monotonic() + 120
    while len(list(folder.glob("*.safetensors"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    cache = open_cache(encoder, tmp_path)
    assert cache.fill(TEXTS) <= 60 - 8
    assert np.allclose(cache.matrix(TEXTS), encode_texts(encoder, TEXTS), atol=1e-6)


def test_cache_on_a_full_disk_says_so_once_and_goes_on_without_keeping(encoder, tiny_encoder, tmp_path):
    cache = open_cache(encoder, tmp_path)
    cache.fill(TEXTS[:8])
    before = sorted(cache.folder.iterdir())
    process = filling(tiny_encoder, tmp_path, 8, 60, 13, 500)  # no file may grow beyond 500 bytes
    said = "".join(process.communicate(timeout=120))
    assert process.returncode == 0
    assert "equal: True" in said
    assert said.count("cannot be written (File too large)") == 1
    assert said.count("the vectors are not saved, so the next run encodes these texts again") == 1
    assert sorted(cache.folder.iterdir()) == before
    assert cache.fill(TEXTS[:8]) == 0


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 1
    path.write_bytes(content)


def cut(path, at):
    path.write_bytes(path.read_bytes()[: int(at * path.stat().st_size)])


@pytest.mark.parametrize(
    ("spoil", "at"), [(flip, 0.0), (flip, 0.05), (flip, 0.3), (flip, 0.9), (cut, 0.5), (cut, 0.0)]
)
def test_cache_tells_a_damaged_shard_removes_it_and_encodes_again(encoder, tmp_path, caplog, spoil, at):
    wanted = open_cache(encoder, tmp_path).matrix(TEXTS, shard=20)
    shard = sorted(open_cache(encoder, tmp_path).folder.glob("*.safetensors"))[1]
    spoil(shard, at)
    again = open_cache(encoder, tmp_path).matrix(TEXTS)
    np.testing.assert_allclose(again, wanted, atol=1e-6)
    assert caplog.text.count(f"{shard} has changed since it was written; it is removed, and its texts") == 1
    caplog.clear()
    assert open_cache(encoder, tmp_path).fill(TEXTS) == 0
    assert caplog.text == ""


def test_cache_looks_at_the_checksum_of_a_shard_once(encoder, tmp_path, monkeypatch):
    open_cache(encoder, tmp_path).fill(TEXTS)
    first = open_cache(encoder, tmp_path).matrix(TEXTS)
    monkeypatch.setattr(shards.hashlib, "file_digest", lambda *a: pytest.fail("hashed again"))
    np.testing.assert_array_equal(open_cache(encoder, tmp_path).matrix(TEXTS), first)


def test_cache_whose_about_is_damaged_works_and_is_repaired(encoder, tmp_path, here, caplog):
    cache = open_cache(encoder, tmp_path / "vectors")
    cache.fill(TEXTS[:8])
    for damaged in ("{", "[]", '{"name": "other", "width": 7, "prompt": null}', "\x00"):
        (cache.folder / "about.json").write_text(damaged)
        code, said = here("cache", "info", "--folder", "vectors")
        assert code == 0, said
        assert cache.fingerprint in said
    assert open_cache(encoder, tmp_path / "vectors").fill(TEXTS) == 52
    assert json.loads((cache.folder / "about.json").read_text())["width"] == 32
    (cache.folder / "about.json").write_text("{")
    code, said = here("cache", "clear", "--folder", "vectors")
    assert code == 0, said
    assert not list((tmp_path / "vectors").iterdir())


def test_cache_clear_leaves_what_is_not_ours(encoder, tmp_path, here):
    home = tmp_path / "vectors"
    cache = open_cache(encoder, home)
    cache.fill(TEXTS[:8])
    print_like = home / ("0c" * 12)
    for file in (
        home / "notes.txt",
        home / "my-model" / "about.json",
        home / "my-model" / f"{'ab' * 16}.safetensors",
        print_like / "about.json",
        print_like / "model.safetensors",
        cache.folder / "mine.safetensors",
        home / "prepared" / "mine.json",
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('{"mine": 1}')
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{'cd' * 16}.safetensors").write_bytes(b"x")
    (home / ("0d" * 12)).symlink_to(outside)
    code, said = here("cache", "info", "--folder", "vectors")
    assert (code, said.count("0c0c")) == (0, 0)
    assert here("cache", "clear", "--folder", "vectors")[0] == 0
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {
        "vectors/notes.txt",
        "vectors/my-model/about.json",
        f"vectors/my-model/{'ab' * 16}.safetensors",
        f"vectors/{print_like.name}/about.json",
        f"vectors/{print_like.name}/model.safetensors",
        f"vectors/{cache.fingerprint}/mine.safetensors",
        "vectors/prepared/mine.json",
        f"outside/{'cd' * 16}.safetensors",
    }


def test_cache_clear_goes_on_where_a_kill_left_it(encoder, tmp_path):
    cache = open_cache(encoder, tmp_path)
    cache.fill(TEXTS, shard=20)
    (cache.folder / "about.json").unlink()
    (cache.folder / ".likewise-0123456789abcdef").mkdir()
    (cache.folder / ".likewise-0123456789abcdef" / "whole").write_bytes(b"half")
    (cache.folder / f".{'ab' * 8}.safetensors.01234567.partial").write_bytes(b"of a version before")
    disk._swept.cache_clear()  # as in the process that clears: it has looked nowhere yet
    assert clear_cache(tmp_path) > 0
    assert list(tmp_path.iterdir()) == []


def test_cache_clear_takes_nothing_from_those_who_read_and_write(encoder, tmp_path, monkeypatch):
    cache = open_cache(encoder, tmp_path)
    cache.fill(TEXTS[:20])
    encode = module.encode_texts

    def cleared(*given, **options):
        found = encode(*given, **options)
        clear_cache(tmp_path)
        return found

    monkeypatch.setattr(module, "encode_texts", cleared)
    found = cache.matrix(TEXTS, shard=10)
    np.testing.assert_allclose(found, encode_texts(encoder, TEXTS), atol=1e-6)
    [entry] = cache_entries(tmp_path)
    assert (entry.name, entry.texts) == ("tiny", 10)
    clear_cache(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_cache_folder_that_cannot_be_written_is_told_once_and_no_hindrance(encoder, tmp_path, caplog):
    (tmp_path / "vectors").write_text("a file where the folder should be")
    cache = open_cache(encoder, tmp_path / "vectors")
    found = cache.matrix(TEXTS, shard=20)
    np.testing.assert_allclose(found, encode_texts(encoder, TEXTS), atol=1e-6)
    assert caplog.text.count("the vectors are not saved") == 1
    np.testing.assert_array_equal(cache.matrix(TEXTS), found)
    assert cache.fill(TEXTS) == 0
    assert cache_entries(tmp_path / "vectors") == []
    assert clear_cache(tmp_path / "vectors") == 0


def test_identity_tells_tokenizers_apart(tiny_encoder, encoder, tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(tiny_encoder, folder)
    path = next(folder.rglob("tokenizer.json"))
    document = json.loads(path.read_text())
    vocabulary = document["model"]["vocab"]
    vocabulary["dog"], vocabulary["cat"] = vocabulary["cat"], vocabulary["dog"]
    path.write_text(json.dumps(document))
    other = load_encoder(folder, device="cpu")
    assert identify(other) != identify(encoder)
    before = identify(encoder)
    encoder.tokenize(["the dog"] * 3)
    encoder.encode(["the dog runs", "cat"], show_progress_bar=False)
    assert identify(encoder) == before


def rewritten(file, change):
    document = json.loads(file.read_text(encoding="utf8"))
    change(document)
    file.write_text(json.dumps(document), encoding="utf8")


@pytest.mark.parametrize(
    ("file", "keys"),
    [
        *(
            ("config.json", {key: value})
            for key, value in {
                "hidden_act": "relu",
                "layer_norm_eps": 0.5,
                "num_attention_heads": 1,
                "is_decoder": True,
                "chunk_size_feed_forward": 1,
            }.items()
        ),
        ("1_Pooling/config.json", {"pooling_mode": "max"}),
        ("sentence_bert_config.json", {"max_seq_length": 2}),
        ("sentence_bert_config.json", {"processing_kwargs": {"text": {"add_special_tokens": False}}}),
        ("sentence_bert_config.json", {"model_kwargs": {"attn_implementation": "eager"}}),
        ("tokenizer_config.json", {"truncation_side": "left"}),
        ("tokenizer_config.json", {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}),
        ("tokenizer_config.json", {"padding_side": "left"}),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else value,
)
def test_identity_tells_apart_whatever_an_encoder_computes_by(tmp_path, file, keys):
    """Two folders of the same weights, one of which says something else: another fingerprint."""
    folder = Path(shutil.copytree(MODELS / "pairs", tmp_path / "model"))
    before = identify(load_encoder(folder, device="cpu"))
    rewritten(folder / file, lambda document: document.update(keys))
    assert identify(load_encoder(folder, device="cpu")).fingerprint != before.fingerprint


def test_identity_leaves_out_where_an_encoder_lies_and_what_wrote_it(tmp_path):
    folder = Path(shutil.copytree(MODELS / "pairs", tmp_path / "model"))
    before = identify(load_encoder(MODELS / "pairs", device="cpu"))
    keys = {"transformers_version": "4.0.0", "_name_or_path": "x", "architectures": ["BertForMaskedLM"]}
    rewritten(folder / "config.json", lambda document: document.update(keys))
    assert identify(load_encoder(folder, device="cpu")) == before


@pytest.mark.parametrize("kind", ["bilstm", "average"])
def test_identity_tells_word_encoders_apart_by_how_they_split_texts(tiny_vectors, tmp_path, kind):
    encoder = (
        bilstm_encoder(tiny_vectors, hidden=4, device="cpu")
        if kind == "bilstm"
        else average_encoder(tiny_vectors, device="cpu")
    )
    encoder.save(str(tmp_path / "m"), create_model_card=False)
    before = load_encoder(tmp_path / "m", device="cpu")
    (file,) = (tmp_path / "m").rglob("tokenizer.json")
    rewritten(
        file, lambda document: document.update(normalizer=None, pre_tokenizer={"type": "WhitespaceSplit"})
    )
    after = load_encoder(tmp_path / "m", device="cpu")
    assert not np.allclose(encode_texts(before, ["The dog."]), encode_texts(after, ["The dog."]))
    assert identify(after).fingerprint != identify(before).fingerprint


def test_identities_that_an_earlier_version_kept_are_not_trusted(home, encoder, monkeypatch):
    monkeypatch.setattr(module, "_PRINT_VERSION", 1)
    remembered_identity(["tiny", 1], lambda: Identity("0" * 24, 32, None))
    before = identify(encoder)
    monkeypatch.undo()
    monkeypatch.setenv("LIKEWISE_CACHE", str(home))
    assert identify(encoder) != before
    assert remembered_identity(["tiny", 1], lambda: identify(encoder)) == identify(encoder)


def test_an_encoder_that_changed_while_it_was_read_leaves_nothing_in_the_cache(home, encoder):
    """Its vectors stood under the fingerprint of the files that were there before, for ever."""
    other = Identity("0" * 24, 32, None)
    cache = EmbeddingCache(lambda: encoder, other, name="tiny")
    with pytest.raises(ModelError, match="tiny: its files were changed while they were read"):
        cache.matrix(TEXTS[:3])
    assert cache_entries() == []
    with pytest.raises(ModelError, match="changed while they were read"):
        remembered_identity(["tiny", 3], lambda: identify(encoder), unchanged=lambda: False)
    assert remembered_identity(["tiny", 3], lambda: other) == other


def test_identity_that_is_damaged_is_found_anew(home, encoder):
    first = remembered_identity(["tiny", 1], lambda: identify(encoder))
    [file] = (home / "identities").iterdir()
    file.write_text(file.read_text().replace('"width": 32', '"width": 33'))
    opened = []
    assert remembered_identity(["tiny", 1], lambda: opened.append(1) or first) == first
    assert opened


def test_a_text_asked_for_twice_is_encoded_once_and_laid_twice(encoder, tmp_path):
    cache = open_cache(encoder, tmp_path)
    asked = [*TEXTS[:5], TEXTS[2], TEXTS[0]]
    np.testing.assert_array_equal(cache.matrix(asked)[5:], cache.matrix([TEXTS[2], TEXTS[0]]))
    assert cache_entries(tmp_path)[0].texts == 5


def test_identity_is_found_again_without_opening_the_encoder(encoder, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path))
    first = remembered_identity(["tiny", 1], lambda: identify(encoder))
    assert remembered_identity(["tiny", 1], lambda: pytest.fail("opened")) == first
    with pytest.raises(LookupError):
        remembered_identity(["tiny", 2], lambda: [].pop())
    cache = EmbeddingCache(lambda: encoder, first, name="tiny")
    assert cache.fill(TEXTS[:3]) == 3
    untouched = EmbeddingCache(lambda: pytest.fail("opened"), first, name="tiny")
    np.testing.assert_array_equal(untouched.matrix(TEXTS[:3]), cache.matrix(TEXTS[:3]))
    assert clear_cache() > 0
    assert not list(tmp_path.iterdir())


def test_content_keys_tell_content_and_nothing_else():
    key = content_key({"b": 1, "a": [2, None]}, "ä", Path("x"))
    assert key == content_key({"a": (2, None), "b": 1}, "ä", Path("x"))
    assert len(key) == 24
    assert content_key("a", length=8) == content_key("a")[:8]
    different = [(), ([],), ("a",), (["a"],), ("a", "b"), (["a", "b"],), ("a, b",), (None,), ({},)]
    assert len({content_key(*parts) for parts in different}) == len(different)
    # What older versions kept is still found.
    parts = ["tiny", 1, {"b": 2, "a": Path("x")}]
    written = json.dumps(parts, sort_keys=True, default=str).encode()
    assert content_key(*parts) == hashlib.sha256(written).hexdigest()[:24]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "home"))
    return tmp_path / "home"


def test_cache_home_without_a_home_is_named(monkeypatch, tmp_path):
    """As in a container that runs as a user whom nobody knows."""

    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("likewise.data.filecache.Path.home", nobody)
    for name in ("LIKEWISE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match=r"no home folder .* Name a folder with LIKEWISE_CACHE, or set HOME"):
        cache_home()
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "own"))
    assert cache_home() == tmp_path / "own"


@pytest.mark.parametrize("said", ["abc", "0", "-3", ""])
def test_numbers_of_the_environment_are_named(monkeypatch, said):
    from likewise import ranks

    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", said)
    with pytest.raises(UsageError, match=r"WORLD_SIZE is .*, but it must be a whole number of at least 1"):
        ranks.world_size()
    monkeypatch.delenv("WORLD_SIZE")
    with pytest.raises(UsageError, match="WORLD_SIZE is not set"):
        ranks.is_first()


def test_kept_stages_change_with_a_default():
    """What a later version changes in its defaults is another stage, though the recipe reads the same."""
    from likewise.recipes.reading import named_document
    from likewise.recipes.runfiles import _begins_with
    from likewise.schema.frozen import ParallelStage
    from likewise.schema.recipe import parse_recipe

    def name():
        document, where = named_document("multilingual")
        return _begins_with(parse_recipe(document, where), 0, [])

    before, field = name(), ParallelStage.model_fields["weight_decay"]
    assert name() == before
    default = field.default
    try:
        field.default = 0.5
        ParallelStage.model_rebuild(force=True)
        assert name() != before
    finally:
        field.default = default
        ParallelStage.model_rebuild(force=True)
    assert name() == before


def test_cache_home_is_the_variables_or_the_users(home, tmp_path, monkeypatch):
    assert cache_home() == default_folder() == home
    monkeypatch.setenv("LIKEWISE_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_home() == tmp_path / "xdg" / "likewise" / "vectors"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_home() == tmp_path / ".cache" / "likewise" / "vectors"


def test_file_cache_finds_what_was_written_and_drops_the_oldest(home):
    cache = FileCache("prepared", ".json", keep=2)
    a, b, c, d = (letter * 24 for letter in "abcd")
    assert cache.find(a) is None
    assert not home.exists()
    for moment, key in enumerate((a, b, c)):
        cache.write_json(key, key)
        os.utime(cache.path(key), (moment, moment))
    assert cache.find(a) is None
    assert cache.find(c) == cache.path(c) == home / "prepared" / f"{c}.json"
    assert cache.read_json(c) == c
    cache.write_json(b, "again")
    cache.write_json(d, "d")
    assert sorted(path.name for path in cache.folder.iterdir()) == [f"{b}.json", f"{d}.json"]
    assert cache.folder.stat().st_mode & 0o777 == 0o700


def write_text(path, text):
    assert path.name.endswith(".json")
    path.write_text(text)


def test_file_cache_takes_a_writer_that_goes_by_the_ending(home):
    pair = LinkedPair("a b", "c", words_a=((0, 1), (2, 3)), words_b=((0, 1),), links=(), source="x:1")
    cache = FileCache("alignments", ".jsonl.gz")
    cache.write("key", lambda path: write_links(path, [pair]))
    assert [found.text_a for found in read_links(cache.find("key"))] == ["a b"]
    assert gzip.decompress(cache.find("key").read_bytes()).startswith(b"{")
    assert len(list(cache.folder.iterdir())) == 1


def test_file_cache_keeps_a_whole_file_or_none(home):
    cache = FileCache("prepared", ".json")
    cache.write("key", lambda path: write_text(path, "whole"))

    def fails(error):
        def write(path):
            path.write_text("ha")
            raise error

        return write

    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(DataError, match=r"key\.json: this cannot be written \(No space left"):
        cache.write("key", fails(full))
    with pytest.raises(PermissionError):
        cache.write("key", fails(PermissionError(errno.EACCES, "Permission denied")))
    for error in (full, PermissionError(errno.EACCES, "Permission denied")):
        cache.write("key", fails(error), optional=True)
    with pytest.raises(LookupError):
        cache.write("key", fails(LookupError()), optional=True)
    assert [path.name for path in cache.folder.iterdir()] == ["key.json"]
    assert cache.path("key").read_text() == "whole"


def test_file_cache_that_cannot_be_written_is_no_hindrance(home, monkeypatch):
    home.write_text("a file where the folder should be")
    cache = FileCache("prepared", ".json")
    cache.write("key", lambda path: write_text(path, "x"), optional=True)
    cache.write("key", lambda path: write_json_aside(path, "x"), optional=True)
    assert cache.find("key") is None
    assert remembered_identity(["x"], lambda: Identity("f", 3, None)) == Identity("f", 3, None)


def test_every_file_cache_is_known_to_those_who_count_and_clear(home, tmp_path):
    with pytest.raises(ValueError, match="Add it to"):
        FileCache("elsewhere", ".json")
    for name in KEPT:
        for folder in (home, tmp_path / "other"):
            (folder / name).mkdir(parents=True)
            (folder / name / f"{'0b' * 12}.jsonl.gz").write_bytes(b"\x1f\x8btex")
            (folder / name / f".{'0b' * 12}.any.gz.left.partial").write_bytes(b"texts")
    assert {"identities", "prepared", "alignments"} <= set(KEPT)
    assert prepared_bytes() == prepared_bytes(tmp_path / "other") == 10 * len(KEPT)
    assert clear_cache(tmp_path / "other") == 10 * len(KEPT)
    assert list((tmp_path / "other").iterdir()) == []
    assert prepared_bytes() == clear_cache() == 10 * len(KEPT)
    assert list(home.iterdir()) == []


def test_cache_info_and_clear(encoder, tmp_path, here):
    open_cache(encoder, tmp_path / "vectors").fill(TEXTS)
    [entry] = cache_entries(tmp_path / "vectors")
    assert (entry.name, entry.texts) == ("tiny", 60)
    code, said = here("cache", "info", "--folder", "vectors")
    assert code == 0
    assert entry.fingerprint in said
    code, said = here("cache", "clear", "--folder", "vectors")
    assert code == 0
    assert "freed" in said
    assert cache_entries(tmp_path / "vectors") == []
    assert clear_cache(tmp_path / "nothing") == 0


def test_cache_clear_knows_its_files_by_their_whole_names(tmp_path, here):
    home, elsewhere = tmp_path / "h", tmp_path / "v"
    (home / "prepared").mkdir(parents=True)
    elsewhere.mkdir()
    (home / "alignments").symlink_to(elsewhere)
    kept = ["20240101120000000.csv", "deadbeefdeadbeef.docx", f"{'0' * 24}.csv", f"{'0' * 25}.json"]
    for name in kept:
        (home / "prepared" / name).write_text("mine")
    (elsewhere / f"{'0' * 24}.jsonl.gz").write_text("mine")
    (home / ("0" * 24)).mkdir()
    (home / ("0" * 24) / "about.json").write_text("my notes, no JSON")
    (home / "prepared" / f"{'1' * 24}.json").write_text('{"sha256": "0"}\n{}')
    assert here("cache", "clear", "--folder", home)[0] == 0
    assert sorted(path.name for path in (home / "prepared").iterdir()) == sorted(kept)
    assert len(list(elsewhere.iterdir())) == 1
    assert (home / ("0" * 24) / "about.json").is_file()


@pytest.mark.parametrize("what", ["pipe", "link"])
def test_cache_shard_that_is_no_regular_file_is_passed_over(encoder, tmp_path, what):
    cache = open_cache(encoder, tmp_path)
    cache.fill(TEXTS[:4])
    [shard] = cache.folder.glob("*.safetensors")
    name = shard.name
    shard.unlink()
    if what == "pipe":
        os.mkfifo(cache.folder / name)
    else:
        (cache.folder / name).symlink_to("/dev/zero")
    assert np.allclose(cache.matrix(TEXTS[:4]), encode_texts(encoder, TEXTS[:4]), atol=1e-6)


def test_cache_clear_keeps_a_users_files_that_are_only_called_like_ours(tmp_path):
    (tmp_path / "prepared").mkdir()
    export = tmp_path / "prepared" / "507f1f77bcf86cd799439011.json"
    export.write_text('{"my": "export"}', encoding="utf8")
    place = tmp_path / "507f1f77bcf86cd799439011"
    place.mkdir()
    (place / f"{'a' * 32}.safetensors").write_text("my weights by their md5", encoding="utf8")
    assert clear_cache(tmp_path) == 0
    assert export.is_file()
    assert len(list(place.iterdir())) == 1


def test_cache_drops_only_files_of_its_own_when_it_is_full(home):
    cache = FileCache("prepared", ".json", keep=2)
    cache.folder.mkdir(parents=True)
    for number in range(5):
        (cache.folder / f"mine-{number}.json").write_text("{}", encoding="utf8")
        (cache.folder / f"{number:024x}.json").write_text('{"my": "export"}', encoding="utf8")
    for number in range(4):
        cache.write_json(f"{number:x}" * 24, {"rows": number})
    left = sorted(path.name for path in cache.folder.glob("*.json"))
    assert len([name for name in left if name.startswith("mine-")]) == 5
    assert len([name for name in left if name.startswith("0" * 23)]) >= 4
    assert [name[:2] for name in left if name[:2] in ("11", "22", "33")] == ["22", "33"]
