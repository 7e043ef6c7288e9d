"""The files of the project around the code: they parse, agree with each other, and call what exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import likewise

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
YAML = [
    *WORKFLOWS,
    *sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")),
    ROOT / ".pre-commit-config.yaml",
    ROOT / "CITATION.cff",
]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]


def parsed(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf8"))


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_project_yaml_parses(path):
    assert isinstance(parsed(path), dict)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_project_workflow_calls_targets_of_the_makefile(path):
    steps = [step for job in parsed(path)["jobs"].values() for step in job["steps"]]
    commands = [line for step in steps if "run" in step for line in step["run"].splitlines()]
    assert commands
    for command in commands:
        program, target = command.split()
        assert program == "make"
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), command


def test_project_makefile_declares_every_target_phony():
    phony = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split())
    assert phony == set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))


def test_project_tests_the_pythons_it_names():
    jobs = parsed(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    named = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_project_versions_agree():
    assert PROJECT["version"] == likewise.__version__ == str(parsed(ROOT / "CITATION.cff")["version"])


def test_project_pins_one_ruff():
    (pinned,) = [one for one in PROJECT["optional-dependencies"]["dev"] if one.startswith("ruff")]
    assert pinned.startswith("ruff==")
    for repository in parsed(ROOT / ".pre-commit-config.yaml")["repos"]:
        for hook in repository["hooks"]:
            assert hook["additional_dependencies"] == [pinned]
