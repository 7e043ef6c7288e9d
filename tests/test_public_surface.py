"""What users may import, pinned: a change here is a change for them and belongs in the changelog."""

from __future__ import annotations

import likewise

SURFACE = [
    "Classes",
    "Classifier",
    "Codec",
    "LikewiseError",
    "Predictor",
    "Record",
    "Relation",
    "Scores",
    "__version__",
    "audit",
    "calibrate",
    "evaluate",
    "evaluate_crosslingual",
    "experiment",
    "export",
    "load",
    "load_classifier",
    "score",
    "train",
    "update",
]
VERBS = [
    "audit",
    "cache",
    "calibrate",
    "classify",
    "data",
    "demo",
    "evaluate",
    "experiment",
    "explain",
    "export",
    "score",
    "train",
    "update",
]


def test_public_names_are_pinned_and_all_resolve():
    assert likewise.__all__ == SURFACE
    for name in SURFACE:
        assert getattr(likewise, name) is not None
    assert dir(likewise) == sorted(SURFACE)


def test_command_line_verbs_are_pinned():
    from likewise.cli import app

    names = [command.name for command in app.registered_commands] + [
        group.name for group in app.registered_groups
    ]
    assert sorted(names) == VERBS


def test_unknown_name_is_an_attribute_error():
    import pytest

    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        likewise.trian  # noqa: B018
