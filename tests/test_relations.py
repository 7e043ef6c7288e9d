"""Several relations at once as a user meets them: tables with holes and mistakes, one model for all."""

from __future__ import annotations

import csv
import io
import os
import re
from pathlib import Path

import pytest

import likewise
from tests import forks

NAMES = ("similarity", "actor", "follows")
DECLARED = ["--relation", "similarity:0..4", "--relation", "actor:-2..2", "--relation", "follows:classes"]
QUICK = ["--device", "cpu", "--set", "stage.0.max_steps=6", "--set", "stage.0.evaluate_every=3"]


def table(change=lambda row, values: values, *, names=NAMES, rows=40):
    """A small table of pairs with three ratings each; `change` spoils its values."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["text_a", "text_b", *names])
    for row in range(rows):
        values = [row % 9 / 2, row % 5 - 2, "yes" if row % 3 else "no"]
        writer.writerow([f"the dog runs {row}", f"a cat sleeps {row}", *change(row, values)])
    return out.getvalue()


def without(place, keep=lambda row: False):
    """A change that empties one rating, but in the rows to keep."""
    return lambda row, values: [v if i != place or keep(row) else "" for i, v in enumerate(values)]


REFUSED = {
    "no label at all": (table(without(1)), DECLARED, "p.csv: relation 'actor' has no rating in any of the"),
    "one constant value": (
        table(lambda row, values: [values[0], 1, values[2]]),
        DECLARED,
        "p.csv: relation 'actor' is 1.0 in all 30 rated training pairs. Check the column",
    ),
    "one constant label": (
        table(lambda row, values: [*values[:2], "yes"]),
        DECLARED,
        "p.csv: relation 'follows' has only the label 'yes', but two or more are needed. Declare the labels",
    ),
    "a scale that does not fit": (
        table(lambda row, values: [values[0] + 3, *values[1:]]),
        DECLARED,
        "p.csv:5: similarity is 4.5, but the scale is 0 to 4. "
        "Correct the value, leave it empty, or declare a wider scale",
    ),
    "labels where numbers should be": (
        table(),
        ["--relation", "follows:0..4"],
        "p.csv:2: follows is 'no', which is not a number",
    ),
    "two relations of one name": (
        table(),
        [*DECLARED, "--relation", "actor:0..4"],
        "p.csv: relation 'actor' is declared twice. Keep one of them",
    ),
    "two columns of one name": (
        table(lambda row, values: [*values, 1], names=(*NAMES, "actor")),
        DECLARED,
        "p.csv:1: two columns have the same name: 'actor'. Rename one of them",
    ),
    "dev that says nothing": (
        table(lambda row, values: [values[0] if row < 3 else "", *values[1:]]),
        ["--relation", "similarity:0..4"],
        "to select a model by, or they are all the same. Add dev pairs",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_relations_that_cannot_be_learnt_are_refused_by_name_file_and_remedy(
    case, tmp_path, tiny_encoder, here
):
    content, declared, expected = REFUSED[case]
    (tmp_path / "p.csv").write_text(content)
    code, said = here("train", "p.csv", "--encoder", tiny_encoder, *declared, *QUICK, "--output", "m")
    assert code in (1, 2), said
    assert expected in said.replace("\n", " ")
    assert "Traceback" not in said
    assert not (tmp_path / "m").exists()


def test_a_relation_rated_in_few_rows_trains_though_most_batches_lack_it(tmp_path, tiny_encoder, here):
    (tmp_path / "p.csv").write_text(table(without(1, keep=lambda row: row in (3, 21))))
    code, said = here("train", "p.csv", "--encoder", tiny_encoder, *DECLARED, *QUICK, "--output", "m")
    assert code == 0, said
    assert "spearman similarity" in said
    assert "spearman actor" not in said  # dev has no rating of it, and is not held against the model
    scores = likewise.load(tmp_path / "m").score([("the dog runs", "a cat sleeps")])
    assert set(scores) == set(NAMES)
    assert -2 <= scores["actor"][0] <= 2
    assert scores["follows"][0] in ("yes", "no")


def test_a_label_that_only_the_test_has_is_counted_and_named(tmp_path, tiny_encoder, here):
    (tmp_path / "p.csv").write_text(table())
    maybe = table(lambda row, values: [*values[:2], "maybe" if row < 2 else values[2]])
    (tmp_path / "test.csv").write_text(maybe)
    (tmp_path / "s.toml").write_text(
        '[[task]]\nname = "follows"\nfile = "test.csv"\nrelation = "follows:classes"\nmetric = "accuracy"\n'
    )
    code, said = here("train", "p.csv", "--encoder", tiny_encoder, *DECLARED, *QUICK, "--output", "m")
    assert code == 0, said
    code, said = here("evaluate", "m", "--suite", "s.toml", "--source", "head", "--device", "cpu")
    assert code == 0, said
    assert "maybe" in said
    assert "2" in said


@pytest.mark.slow
def test_the_example_goes_from_an_annotation_file_to_advice(tmp_path, tiny_encoder, tiny_pairs):
    example = Path(__file__).resolve().parents[1] / "examples" / "several_ratings.py"
    arguments = [tiny_pairs, "--relation", "similarity:0..5", "--relation", "entailment:classes"]
    options = ["--encoder", tiny_encoder, "--output", "out", "--compare"]
    result = forks.run(
        *arguments,
        *options,
        script=example,
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "LIKEWISE_TEST_LOG": str(tmp_path / "log.jsonl")},
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert "test: 8 rows in out/test.csv" in result.stdout
    assert "entailment  accuracy" in result.stdout
    assert "advice:" in result.stdout
    assert re.search(r"entailment: (joint|single|cannot tell)", result.stdout)
