"""The package as others install it: built from its source archive, and used outside the checkout."""

from __future__ import annotations

import email
import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "likewise"


def run(*command: object, cwd: Path) -> str:
    """The output of a command that sees neither the checkout nor the environment of the tests."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    result = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if name not in hidden},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from the source archive; skipped, with the reason, where the tools are absent."""
    if not all(map(importlib.util.find_spec, ("build", "setuptools"))):
        pytest.skip("the build tools are not here: pip install 'likewise[dev]'")
    folder = tmp_path_factory.mktemp("build")
    copy = folder / "checkout"
    # A build in the checkout would pack what an earlier build left there.
    left_out = (".git", ".venv", "__pycache__", "*.egg-info", "build", "dist", "site", "runs")
    for name in ("src", "tests", "README.md", "LICENSE", "pyproject.toml", "MANIFEST.in", "CITATION.cff"):
        source = ROOT / name
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns(*left_out))
        else:
            (copy / name).write_bytes(source.read_bytes())
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", cwd=copy)
    (built,) = (folder / "dist").glob("likewise-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The programs of a fresh environment with the wheel; its dependencies are those of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    python = programs / "python"
    run(python, "-m", "pip", "install", "--no-index", "--no-deps", wheel, cwd=folder)
    # Behind the environment's own packages. An editable installation is not among them: .pth files of folders
    # that a .pth file names are not read.
    own = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    borrowed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    Path(own, "borrowed.pth").write_text("\n".join(borrowed) + "\n", encoding="utf8")
    return programs


@pytest.mark.slow
def test_wheel_holds_every_file_of_the_package(wheel):
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    wanted = {f"likewise/{path.relative_to(PACKAGE).as_posix()}" for path in files}
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert found == wanted


@pytest.mark.slow
def test_wheel_says_what_it_is(wheel):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
        licences = [one for one in archive.namelist() if one.endswith(".dist-info/licenses/LICENSE")]
    assert metadata["Name"] == "likewise"
    assert metadata["Version"] == project["version"]
    assert metadata["Requires-Python"] == project["requires-python"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# Likewise")
    assert metadata.get_all("Classifier") == project["classifiers"]
    assert len(licences) == 1


@pytest.mark.slow
def test_installed_package_is_the_wheel_and_does_the_main_job(installed, minilm, tmp_path):
    place = run(installed / "python", "-c", "import likewise; print(likewise.__file__)", cwd=tmp_path)
    package = Path(place.strip()).parent
    assert package.is_relative_to(installed.parent)
    assert not package.is_relative_to(ROOT)

    said = run(installed / "likewise", "demo", cwd=tmp_path)
    assert "opinion" in said
    assert (tmp_path / "demo-model" / "likewise" / "model.json").is_file()

    (tmp_path / "pairs.csv").write_bytes((package / "samples" / "test.csv").read_bytes())
    run(
        *(installed / "likewise", "score", "pairs.csv", "--model", "demo-model", "--output", "scored.csv"),
        cwd=tmp_path,
    )
    lines = (tmp_path / "scored.csv").read_text(encoding="utf8").splitlines()
    assert len(lines) == 81
    assert {"predicted_similarity", "opinion"} <= set(lines[0].split(","))
