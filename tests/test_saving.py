"""Loaded models save themselves and go to the hub: whole or not at all, and they come back the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise.errors import HubError, UsageError
from tests.hub import TOKEN, serving

# huggingface_hub uploads in a way that its HTTP library calls old.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
PAIRS = [("a man plays", "a dog runs"), ("a dog runs fast", "a dog runs"), ("man", "dog")]


@pytest.fixture(scope="module")
def trained(tiny_pairs, tiny_encoder):
    """A model of two relations, in memory."""
    return likewise.train(
        tiny_pairs,
        encoder=tiny_encoder,
        relations=["similarity:0..5", "entailment:classes"],
        overrides={"stage.0.max_steps": 2},
        device="cpu",
        quiet=True,
    )


@pytest.fixture(scope="module")
def hub():
    with serving() as (found, address):
        yield found, address


@pytest.fixture
def online(hub, monkeypatch):
    """The stand-in as the hub of this process."""
    from huggingface_hub import constants

    found, address = hub
    found.files.clear()
    found.commits.clear()
    found.refused.clear()
    found.requests.clear()
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", "")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", "/nonexistent/token")
    return found


def same(one, other) -> None:
    """Two models give the same answers."""
    first, second = one.score(PAIRS), other.score(PAIRS)
    assert list(first) == list(second)
    for name in first:
        np.testing.assert_array_equal(np.asarray(first[name]), np.asarray(second[name]))
    for name, chances in first.probabilities.items():
        np.testing.assert_array_equal(chances, second.probabilities[name])


def test_saving_a_trained_model_keeps_answers_and_what_is_known_of_it(trained, tmp_path):
    trained.save(tmp_path / "m")
    loaded = likewise.load(tmp_path / "m", device="cpu")
    same(trained, loaded)
    for key in ("recipe", "stages", "method", "gains"):
        assert loaded.about.get(key) == json.loads(json.dumps(trained.about.get(key))), key
    loaded.save(tmp_path / "n")
    again = likewise.load(tmp_path / "n", device="cpu")
    same(trained, again)
    documents = [json.loads((tmp_path / name / "likewise" / "model.json").read_text()) for name in "mn"]
    for changing in ("created", "versions", "files"):
        assert documents[0].pop(changing)
        assert documents[1].pop(changing)
    assert documents[0] == documents[1]
    assert 'likewise.load("n")' in (tmp_path / "n" / "README.md").read_text()


def test_saving_a_raw_encoder_keeps_its_cosine(tiny_encoder, tmp_path):
    from sentence_transformers import SentenceTransformer

    raw = likewise.load(tiny_encoder, device="cpu")
    raw.save(tmp_path / "m")
    loaded = likewise.load(tmp_path / "m", device="cpu")
    same(raw, loaded)
    texts = [text for pair in PAIRS for text in pair]
    stock = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    np.testing.assert_allclose(loaded.encode(texts), stock.encode(texts), atol=1e-6)
    card = (tmp_path / "m" / "README.md").read_text()
    assert "This encoder was saved by Likewise" in card
    assert "trained with" not in card


def test_saving_what_would_not_be_whole_is_refused(tiny_encoder, tmp_path):
    with pytest.raises(UsageError, match="nothing of its own to save"):
        likewise.load_classifier(tiny_encoder, device="cpu").save(tmp_path / "m")
    injected = likewise.load(tiny_encoder, device="cpu")
    injected.about["recipe"] = {"name": "paraphrase-injection"}
    for keep in (lambda: injected.save(tmp_path / "m"), lambda: injected.push_to_hub("me/m", token=TOKEN)):
        with pytest.raises(UsageError, match="without the heads of its training"):
            keep()
    assert not (tmp_path / "m").exists()


def test_saving_replaces_only_with_overwrite_and_never_where_it_came_from(trained, tiny_encoder, tmp_path):
    trained.save(tmp_path / "m")
    before = sorted((tmp_path / "m").rglob("*"))
    with pytest.raises(UsageError, match=r"exists already.*overwrite=True"):
        trained.save(tmp_path / "m")
    trained.save(tmp_path / "m", overwrite=True)
    loaded = likewise.load(tmp_path / "m", device="cpu")
    for own in (tmp_path / "m", tmp_path / "m" / "inside"):
        with pytest.raises(UsageError, match=r"which is an input|is an input of"):
            loaded.save(own, overwrite=True)
    with pytest.raises(UsageError, match="is an input"):
        trained.save(tiny_encoder, overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="is not a model that Likewise wrote"):
        trained.save(tmp_path / "mine", overwrite=True)
    assert sorted((tmp_path / "m").rglob("*")) == before


def test_saving_that_is_interrupted_leaves_nothing(trained, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("likewise.store.saving.describe_files", interrupt)
    with pytest.raises(KeyboardInterrupt):
        trained.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [("", {}), (3, {}), ("m", {"overwrite": "no"}), ("\udcff", {})])
def test_saving_checks_its_arguments(trained, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder, options = wrong
    with pytest.raises(UsageError, match=r"folder|overwrite"):
        trained.save(folder, **options)
    assert list(tmp_path.iterdir()) == []


def written(files: dict[str, bytes], folder: Path) -> Path:
    """The files of a repository as a folder."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def test_pushing_makes_a_private_repository_with_the_whole_model(trained, online, tmp_path):
    address = trained.push_to_hub("me/mine", private=True, token=TOKEN, commit_message="first")
    assert address.endswith("/me/mine")
    assert online.private["me/mine"]
    assert online.commits["me/mine"] == ["first"]
    same(trained, likewise.load(written(online.files["me/mine"], tmp_path / "m"), device="cpu"))
    assert b'likewise.load("me/mine")' in online.files["me/mine"]["README.md"]
    for step in ("/api/repos/create", "/preupload/main", "/objects/batch", "/commit/main"):
        assert sum(step in request for request in online.requests) == 1, step
    assert any(request.startswith("PUT /objects/") for request in online.requests)


def test_pushing_again_replaces_the_model_and_keeps_other_files(trained, online, tiny_encoder, tmp_path):
    trained.push_to_hub("me/mine", token=TOKEN)
    online.files["me/mine"] |= {"notes.md": b"mine", "likewise/matcher.safetensors": b"of an older model"}
    raw = likewise.load(tiny_encoder, device="cpu")
    raw.push_to_hub("me/mine", token=TOKEN)
    files = online.files["me/mine"]
    assert files["notes.md"] == b"mine"
    assert "likewise/matcher.safetensors" not in files
    same(raw, likewise.load(written(files, tmp_path / "m"), device="cpu"))


@pytest.mark.parametrize(
    ("refused", "status", "remedy"),
    [
        ("/api/repos/create", 401, "Log in with `hf auth login`, or pass a token"),
        ("/commit/", 403, "Log in with `hf auth login`, or pass a token"),
        ("/objects/batch", 404, "Correct the name, or pass a token"),
        ("/commit/", 500, "Try again later"),
    ],
)
def test_pushing_that_the_hub_refuses_is_a_plain_error(trained, online, refused, status, remedy, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # of the retries
    online.refused[refused] = status
    with pytest.raises(HubError) as raised:
        trained.push_to_hub("me/mine", token=TOKEN)
    said = str(raised.value)
    assert said.startswith("me/mine was not pushed (")
    assert str(status) in said
    assert remedy in said
    assert "\n" not in said
    assert TOKEN not in said
    assert list(online.files.get("me/mine", {})) in ([], [".gitattributes"])


def test_pushing_without_a_token_or_a_network_is_a_plain_error(trained, online, monkeypatch):
    from huggingface_hub import constants

    with pytest.raises(HubError, match=r"401.*Log in with `hf auth login`"):
        trained.push_to_hub("me/mine")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HubError, match="Check the connection"):
        trained.push_to_hub("me/mine", token=TOKEN)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match=r"Unset HF_HUB_OFFLINE"):
        trained.push_to_hub("me/mine", token=TOKEN)


@pytest.mark.parametrize("name", ["a/b/c", "", "no spaces", "../up", "x" * 200])
def test_pushing_to_what_is_no_name_is_refused_before_anything_is_sent(trained, online, name):
    with pytest.raises(UsageError, match="is not the name of a repository"):
        trained.push_to_hub(name, token=TOKEN)
    assert online.requests == []


@pytest.mark.slow
def test_pushed_model_is_loaded_by_its_name_in_another_process(trained, online, hub, tmp_path):
    trained.push_to_hub("me/mine", token=TOKEN)
    code = "import json, likewise, sys\nm = likewise.load('me/mine', device='cpu')\n"
    code += f"print(json.dumps(m.score({PAIRS!r}).rows()))"
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub[1],
        "HF_HOME": str(tmp_path / "home"),
        "HF_TOKEN": TOKEN,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
    }
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == trained.score(PAIRS).rows()
