"""A run goes on with what it was begun with: other rows, another encoder or another recipe are refused."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save

import likewise
from likewise.errors import UsageError


class StoppedError(Exception):
    """A run is stopped where it would go on."""


def rewritten(path, content):
    """Other content in a file of the same size and time."""
    before = path.stat()
    assert len(content) == before.st_size
    assert content != path.read_bytes()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def swapped(content, one, other):
    return content.replace(one, b"\0").replace(other, one).replace(b"\0", other)


@pytest.fixture
def begun(tmp_path, tiny_encoder, tiny_pairs):
    """A run that was stopped after its first checkpoint, and what it reads; called, it goes on."""
    shutil.copytree(tiny_encoder, tmp_path / "encoder")
    shutil.copy(tiny_pairs, tmp_path / "pairs.csv")
    shutil.copy(tiny_pairs, tmp_path / "dev.csv")
    (tmp_path / "recipe.toml").write_text(
        f"""
name = "small"
encoder = "{tmp_path}/encoder"
[relation.similarity]
[[stage]]
data = [{{ source = "{tmp_path}/pairs.csv" }}]
dev = [{{ source = "{tmp_path}/dev.csv" }}]
objective = [{{ relation = "similarity", head = "cosine", loss = "mse" }}]
max_steps = 4
save_every = 2
batch_size = 8
"""
    )

    def stop(event):
        if event.kind == "checkpoint":
            raise StoppedError

    def go_on(**options):
        given = {"device": "cpu", "resume": True, **options}
        return likewise.train(str(tmp_path / "recipe.toml"), tmp_path / "model", **given)

    with pytest.raises(StoppedError):
        go_on(resume=False, emit=stop)
    return go_on


def test_run_goes_on_with_the_same(begun, tmp_path):
    (tmp_path / "pairs.csv").touch()
    begun()
    assert (tmp_path / "model" / "likewise" / "model.json").is_file()


@pytest.mark.parametrize("name", ["pairs.csv", "dev.csv"])
def test_run_does_not_go_on_with_other_rows_in_a_file_of_the_same_size_and_time(begun, tmp_path, name):
    path = tmp_path / name
    rewritten(path, swapped(path.read_bytes(), b"river", b"bread"))
    with pytest.raises(UsageError, match=r"the rows of stage 0 .* have changed since it was started"):
        begun()


@pytest.mark.parametrize("file", ["tokenizer.json", "model.safetensors", "config.json"])
def test_run_does_not_go_on_from_another_encoder_of_the_same_size_and_time(begun, tmp_path, file):
    path = next((tmp_path / "encoder").rglob(file))
    if file == "model.safetensors":
        tensors = {name: value + np.float32(0.1) for name, value in load_file(path).items()}
        rewritten(path, save(tensors, {"format": "pt"}))
    elif file == "tokenizer.json":
        rewritten(path, swapped(path.read_bytes(), b'"soup"', b'"book"'))
    else:
        rewritten(path, path.read_bytes().replace(b'"gelu"', b'"relu"'))
    said = rf"files of the encoder that the run started from have changed since then \({file}\)"
    with pytest.raises(UsageError, match=said):
        begun()


def test_run_does_not_go_on_with_another_recipe(begun):
    with pytest.raises(UsageError, match="another recipe or other overrides"):
        begun(overrides={"stage.0.learning_rate": 1e-4})
    with pytest.raises(UsageError, match="another recipe or other overrides"):
        begun(seed=7)


def test_run_goes_on_after_notes_were_written_beside_its_encoder(begun, tmp_path):
    (tmp_path / "encoder" / "README.md").write_text("my notes")
    begun()


def test_run_tells_which_keys_of_its_recipe_changed(begun, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("batch_size = 8", "batch_size = 4"))
    with pytest.raises(UsageError, match=r"stage.0.batch_size was 8 and is now 4"):
        begun()


def test_run_that_replaces_a_model_says_how_it_goes_on(begun, tmp_path):
    begun(overrides={"stage.0.max_steps": 2}, resume=False, overwrite=True)

    def stop(event):
        if event.kind == "checkpoint":
            raise StoppedError

    with pytest.raises(StoppedError):
        begun(resume=False, overwrite=True, emit=stop)
    with pytest.raises(UsageError, match="resume=True, overwrite=True"):
        begun()
    begun(overwrite=True)


@pytest.mark.parametrize("name", ["special_tokens_map.json", ".2_Dense/config.json"])
def test_run_does_not_go_on_after_settings_were_added_to_its_encoder(begun, tmp_path, name):
    file = tmp_path / "encoder" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("{}")
    with pytest.raises(UsageError, match="files of the encoder that the run started from have changed"):
        begun()
