"""Imports point one way, light modules stay light, and files keep the house's habits."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.switching import classes_of_kinds, find_switches

SOURCE = Path(__file__).resolve().parents[1] / "src" / "likewise"
# A module may import from its own layer's entry and from those below it, never from above.
LAYERS = [
    ["errors", "wording", "spelling", "starting", "naming", "registry", "files", "arguments"],
    ["disk"],
    ["outputs"],
    ["documents", "versions"],
    ["records"],
    ["data"],
    ["frames"],
    ["schema", "answering"],
    ["adapters", "pairing", "heads", "losses", "matchers", "schedules", "ranks", "encoders"],
    ["phrases"],
    ["methods"],
    ["folders"],
    ["store"],
    ["explain"],
    ["predict", "evaluation", "training"],
    ["progress"],
    ["annotation"],
    ["kinds"],
    ["recipes"],
    ["api"],
    ["experiments"],
    ["cli"],
    ["sklearn"],
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
APART = {
    *("adapters", "pairing", "heads", "losses", "matchers", "schedules"),
    *("predict", "evaluation", "training"),
}
FILES = sorted(SOURCE.rglob("*.py"))


def room(path: Path) -> str:
    """The layer entry a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Layer entries that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "likewise" else [f"likewise.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("likewise.")}
    return found


def test_layers_cover_every_module():
    assert {room(path) for path in FILES} - {"__init__", "__main__"} == set(RANK)


@pytest.mark.parametrize(
    "path", [p for p in FILES if room(p) in RANK], ids=lambda p: str(p.relative_to(SOURCE))
)
def test_layers_import_downward_only(path):
    own = room(path)
    for other in imports(path) - {own, "__version__"}:
        assert RANK[other] <= RANK[own], f"{own} imports {other}"
        if {own, other} <= APART and RANK[own] == RANK[other]:
            raise AssertionError(f"{own} imports {other}: small parts do not know each other")


# Who may tell kinds of stages, models and answers apart: the registry, and the rooms that hold one file per
# kind.
TELLING = ("registry", "schema", "kinds", "predict")


def test_only_the_rooms_of_the_kinds_tell_kinds_apart():
    classes = classes_of_kinds(SOURCE)
    assert {"PairsStage", "LabelsRunner", "JointFamily", "InjectionModel", "Classifier"} <= classes
    told = [
        f"{path.relative_to(SOURCE)}:{found.line} {found.how} {found.what}"
        for path in FILES
        if room(path) not in TELLING
        for found in find_switches(path, classes)
    ]
    assert not told


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("isinstance(stage, LabelsStage)", "isinstance"),
        ("isinstance(stage, (int, joint.JointStage))", "isinstance"),
        ("type(model) is PairModel", "type"),
        ("match stage:\n    case RefineStage():\n        pass", "match"),
        ("match kind:\n    case 'labels':\n        pass", "match"),
        ("stage.kind == 'inject'", "compare"),
        ("'joint' in document", "compare"),
        ("kind in ('parallel', 'refine')", "compare"),
        ("hasattr(model, 'objectives')", "hasattr"),
        ("getattr(stage, 'fold', None)", "getattr"),
    ],
)
def test_every_way_of_telling_kinds_apart_is_found(tmp_path, code, how):
    (tmp_path / "one.py").write_text(code + "\n", encoding="utf8")
    assert {found.how for found in find_switches(tmp_path / "one.py", classes_of_kinds(SOURCE))} == {how}


HEAVY = ("torch", "transformers", "datasets", "scipy", "pandas", "pyarrow")


def heavy_after(code: str) -> set[str]:
    """Heavy modules loaded after running some code in a fresh interpreter."""
    script = f"import sys\n{code}\nprint('LOADED', *(m for m in {HEAVY!r} if m in sys.modules))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(result.stdout.rpartition("LOADED")[2].split())


@pytest.mark.parametrize(
    "module",
    [
        "likewise",
        "likewise.errors",
        "likewise.records",
        "likewise.data",
        "likewise.schedules",
        "likewise.registry",
        "likewise.schema.recipe",
        "likewise.schema.pairs",
        "likewise.cli",
        "likewise.data.batching",
    ],
)
def test_light_modules_load_nothing_heavy(module):
    assert heavy_after(f"import {module}") == set()


@pytest.mark.parametrize("module", ["likewise.recipes.run", "likewise.api"])
def test_a_run_over_kept_vectors_loads_torch_alone(module):
    """sentence-transformers takes seconds to import; a run over a frozen encoder needs it at its end."""
    assert heavy_after(f"import {module}") <= {"torch"}


def test_help_and_data_check_do_not_load_torch(tmp_path):
    (tmp_path / "p.csv").write_text("text_a,text_b,score\na b,c d,1\ne f,g h,2\n", encoding="utf8")
    for arguments in (
        ["--help"],
        ["score", "--help"],
        ["train", "--help"],
        ["data", "check", str(tmp_path / "p.csv")],
    ):
        code = (
            f"sys.argv = ['likewise', *{arguments!r}]\n"
            "from likewise.cli import main\n"
            "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code"
        )
        assert heavy_after(code) == set(), arguments


def test_source_has_no_assert_pickle_or_stray_print():
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf8"))
        for node in ast.walk(tree):
            assert not isinstance(node, ast.Assert), path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), path
                assert node.func.id != "print" or room(path) == "cli", path
        assert "import pickle" not in path.read_text(encoding="utf8"), path


def test_functions_are_short_and_documented():
    long, bare = [], []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(node, ast.FunctionDef):
                lines = (node.end_lineno or 0) - node.body[0].lineno + 1  # options of a verb are not its body
                if lines > 60:
                    long.append(f"{path.name}:{node.name} {lines}")
        for node in ast.parse(path.read_text(encoding="utf8")).body:
            if (
                isinstance(node, ast.FunctionDef | ast.ClassDef)
                and not node.name.startswith("_")
                and not ast.get_docstring(node)
            ):
                bare.append(f"{path.name}:{node.name}")
    assert not long
    assert not bare
