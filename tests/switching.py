"""Finds the places where code tells kinds of stages, models or answering objects apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Kinds of stages, and what models are called by in a folder.
KINDS = frozenset(
    {"pairs", "labels", "joint", "inject", "parallel", "refine", "raw", "injected", "taught", "frozen"}
)
# Classes of which there is one per kind: a base that all kinds share is no switch.
CLASSES = frozenset(
    {
        *(
            "StageSpec",
            "LabelStageSpec",
            "JointStageSpec",
            "InjectStageSpec",
            "ParallelStageSpec",
            "RefineStageSpec",
        ),
        *("TrainedStageSpec", "VectorStageSpec", "OptimisedStageSpec"),
        *("PairsStage", "LabelsStage", "JointStage", "InjectStage", "ParallelStage", "RefineStage"),
        *("TrainedStage", "VectorStage", "OptimisedStage"),
        *("PairsRunner", "LabelsRunner", "JointRunner", "InjectRunner", "ParallelRunner", "RefineRunner"),
        *("PairModel", "LabelModel", "JointModel", "InjectionModel", "PhraseModel"),
        *("Predictor", "JointPredictor", "Classifier"),
        *("PairsFamily", "LabelsFamily", "JointFamily", "TaughtFamily"),
        *("PhraseRows", "Frozen"),
    }
)
# Functions whose name says which kind they are for, and functions that ask for the kind of a folder.
FILTERS = frozenset(
    {"label_stages", "frozen_stages", "pair_stages", "kind_of", "kind_of_stage", "reads_single_texts"}
)
# Attributes that some kinds have and others lack: probing for one is asking for the kind.
PROBED = frozenset(
    {
        *(
            "relation",
            "objective",
            "task",
            "tasks",
            "data",
            "dev",
            "dev_share",
            "fold",
            "parallel",
            "paraphrases",
        ),
        *(
            "objectives",
            "answering",
            "answers",
            "wanted",
            "cosines",
            "views",
            "classify",
            "encode",
            "explain",
        ),
        *(
            "source",
            "sources",
            "kind",
            "frozen",
            "matcher",
            "texts",
            "select_by",
            "learning_rate",
            "parameters",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Switch:
    """One place, and how it tells kinds apart."""

    line: int
    how: str
    what: str


def classes_of_kinds(source: Path) -> frozenset[str]:
    """The classes of which there is one per kind, read off the code."""
    found = set(CLASSES)
    for room in ("schema", "kinds", "predict", "methods"):
        for path in sorted((source / room).glob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf8")).body:
                if isinstance(node, ast.ClassDef) and _is_of_a_kind(node, room):
                    found.add(node.name)
    return frozenset(found)


def _is_of_a_kind(node: ast.ClassDef, room: str) -> bool:
    if room == "methods":
        fields = [part.target for part in node.body if isinstance(part, ast.AnnAssign)]
        return any(isinstance(target, ast.Name) and target.id == "family" for target in fields)
    bases = {_last_name(part) for base in node.bases for part in ast.walk(base)}
    return any(base.endswith(("Stage", "Runner", "Family", "Answerer")) for base in bases)


def find_switches(path: Path, classes: frozenset[str] = CLASSES) -> list[Switch]:
    """Every switch of a file, in the order of its lines."""
    tree = ast.parse(path.read_text(encoding="utf8"))
    found = {one for node in ast.walk(tree) for one in _of(node, classes)}
    return sorted(found, key=lambda one: (one.line, one.what))


def _of(node: ast.AST, classes: frozenset[str]) -> Iterator[Switch]:
    if isinstance(node, ast.Call):
        yield from _of_call(node, classes)
    elif isinstance(node, ast.Compare):
        yield from _of_compare(node, classes)
    elif isinstance(node, ast.MatchClass) and (name := _last_name(node.cls)) in classes:
        yield Switch(node.cls.lineno, "match", name)
    elif isinstance(node, ast.MatchValue) and _constant(node.value) in KINDS:
        yield Switch(node.value.lineno, "match", str(_constant(node.value)))


def _of_call(node: ast.Call, classes: frozenset[str]) -> Iterator[Switch]:
    name = _last_name(node.func)
    if name in ("isinstance", "issubclass") and len(node.args) == 2:
        for found in sorted({_last_name(part) for part in ast.walk(node.args[1])} & classes):
            yield Switch(node.lineno, name, found)
    if name in ("hasattr", "getattr") and len(node.args) >= 2 and _constant(node.args[1]) in PROBED:
        yield Switch(node.lineno, name, str(_constant(node.args[1])))
    if name in FILTERS:
        yield Switch(node.lineno, "call", name)


def _of_compare(node: ast.Compare, classes: frozenset[str]) -> Iterator[Switch]:
    sides = [node.left, *node.comparators]
    if any(_is_type_call(side) for side in sides):
        for found in sorted({_last_name(part) for side in sides for part in ast.walk(side)} & classes):
            yield Switch(node.lineno, "type", found)
    for side in sides:
        for part in side.elts if isinstance(side, ast.Tuple | ast.Set | ast.List) else [side]:
            if _constant(part) in KINDS:
                yield Switch(node.lineno, "compare", str(_constant(part)))


def _is_type_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _last_name(node.func) == "type"


def _last_name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
