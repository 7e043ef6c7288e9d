"""The embedding cache: nothing encoded twice, never corrupt, whoever else writes and whatever breaks."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from likewise.data.aside import write_json_aside
from likewise.data.filecache import KEPT, FileCache, cache_home, content_key
from likewise.data.links import LinkedPair, read_links, write_links
from likewise.encoders import cache as module
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
from likewise.errors import DataError

FILLING = Path(__file__).with_name("filling.py")
TEXTS = [f"the dog {n}" for n in range(60)]


@pytest.fixture
def encoder(tiny_encoder):
    return load_encoder(tiny_encoder, device="cpu")


def open_cache(encoder, folder, **options):
    return EmbeddingCache.of(encoder, name="tiny", folder=folder, **options)


def filling(encoder, folder, *numbers):
    """A process of its own that fills the cache."""
    command = [sys.executable, FILLING, encoder, folder, *numbers]
    return subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


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


def test_cache_on_a_full_disk_says_so_and_keeps_what_it_had(encoder, tiny_encoder, tmp_path):
    cache = open_cache(encoder, tmp_path)
    cache.fill(TEXTS[:8])
    process = filling(tiny_encoder, tmp_path, 8, 60, 52, 500)  # no file may grow beyond 500 bytes
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert str(cache.folder) in said
    assert not list(cache.folder.glob(".*partial"))
    assert cache.fill(TEXTS[:8]) == 0


def test_cache_names_a_damaged_shard_and_one_of_another_encoder(encoder, tmp_path):
    cache = open_cache(encoder, tmp_path)
    cache.fill(TEXTS)
    shard = next(cache.folder.glob("*.safetensors"))
    content = shard.read_bytes()
    shard.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"is not a shard of vectors .* delete it: it is made again"):
        cache.matrix(TEXTS)
    shard.unlink()
    assert cache.fill(TEXTS) == 60
    (cache.folder / "about.json").write_text('{"name": "other", "width": 7, "prompt": null}')
    with pytest.raises(DataError, match="another encoder wrote it; likewise cache clear"):
        open_cache(encoder, tmp_path)


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
    assert cache.find("a") is None
    assert not home.exists()
    for moment, key in enumerate("abc"):
        cache.write(key, lambda path, key=key: write_text(path, key))
        os.utime(cache.path(key), (moment, moment))
    assert cache.find("a") is None
    assert cache.find("c") == cache.path("c") == home / "prepared" / "c.json"
    assert cache.path("c").read_text() == "c"
    cache.write("b", lambda path: write_text(path, "again"))
    cache.write("d", lambda path: write_text(path, "d"))
    assert sorted(path.name for path in cache.folder.iterdir()) == ["b.json", "d.json"]
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
    with pytest.raises(DataError, match=r"key\.json: cannot be written \(No space left"):
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
    with pytest.raises(ValueError, match="add it to"):
        FileCache("elsewhere", ".json")
    for name in KEPT:
        for folder in (home, tmp_path / "other"):
            (folder / name).mkdir(parents=True)
            (folder / name / f"{'0b' * 12}.any.gz").write_bytes(b"texts")
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
