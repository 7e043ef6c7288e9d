"""Exports of Label Studio and Argilla, and tables of annotators, become the same file of ratings."""

from __future__ import annotations

import csv
import json
import random

import pytest

from likewise.annotation import import_annotations, next_pairs
from likewise.data import check
from likewise.data.own import open_own_table
from likewise.errors import DataError, FormatError, LikewiseError, UsageError
from likewise.spelling import speaking_flags

PAIRS = [("A man sings.", "A man is singing."), ("A dog.", "A cat."), ("It rains, hard.", 'He said "no".')]
# By annotator, for each pair: similarity and label, or None if it was not rated.
SAID = {
    "1": [(5, "same"), (1, "other"), None],
    "2": [(4, "same"), None, (2, "other")],
    "3": [(4, "other"), (2, "other"), (0, "other")],
}
MEANS = ["4.333333", "1.5", "1.0"]
LABELS = ["same", "other", "other"]


def rows_of(path):
    """The rows of a CSV file."""
    with path.open(encoding="utf8", newline="") as file:
        return list(csv.DictReader(file))


def answers():
    """(pair, annotator, similarity, label) of every answer."""
    for name, said in SAID.items():
        for number, one in enumerate(said):
            if one is not None:
                yield number, name, *one


def label_studio():
    """A JSON export: one task per pair; one answer was cancelled, and one was given twice."""

    def result(score, label):
        said = ("similarity", "rating", {"rating": score}), ("label", "choices", {"choices": [label]})
        return [{"id": "x", "from_name": n, "to_name": "t", "type": kind, "value": v} for n, kind, v in said]

    tasks = []
    for number, (a, b) in enumerate(PAIRS):
        made = [
            {
                "id": 10 * number + int(name),
                "completed_by": {"id": int(name), "email": f"{name}@example.org"}
                if name == "2"
                else int(name),
                "was_cancelled": False,
                "updated_at": f"2026-01-0{name}T10:00:00Z",
                "result": result(score, label),
            }
            for at, name, score, label in answers()
            if at == number
        ]
        tasks.append(
            {"id": number + 7, "data": {"text_a": a, "text_b": b}, "annotations": made, "predictions": []}
        )
    tasks[1]["annotations"].append({"id": 99, "completed_by": 2, "was_cancelled": True, "result": []})
    # Older by its time, though later in the file: it does not count.
    old = {"id": 98, "completed_by": 3, "updated_at": "2020-01-01T00:00:00Z", "result": result(0, "other")}
    tasks[0]["annotations"].append(old)
    tasks.append({"id": 55, "data": {"text_a": "x y", "text_b": "z"}, "annotations": []})
    return tasks


def json_min():
    """A JSON-MIN export: one object per answer; ratings are lists, single choices are texts."""
    return [
        {"text_a": PAIRS[at][0], "text_b": PAIRS[at][1], "id": at + 7, "similarity": [{"rating": score}],
         "label": label, "annotator": int(name), "annotation_id": 3, "created_at": "2026-01-01",
         "updated_at": "2026-01-01", "lead_time": 3.2}
        for at, name, score, label in answers()
    ]  # fmt: skip


def argilla_records():
    """What records.to_json of Argilla 2 writes."""
    records = []
    for number, (a, b) in enumerate(PAIRS):
        mine = [(n, s, x) for at, n, s, x in answers() if at == number]
        responses = {
            "similarity": [{"value": score, "user_id": user(name)} for name, score, _ in mine],
            "label": [{"value": label, "user_id": user(name)} for name, _, label in mine],
        }
        records.append(
            {
                "id": str(number + 7),
                "fields": {"text_a": a, "text_b": b},
                "metadata": {},
                "status": "completed",
                "suggestions": {"similarity": {"value": 3, "score": None, "agent": None}},
                "responses": responses,
                "vectors": {},
                "_server_id": "q",
            }
        )
    return records


def argilla_flat():
    """The columns of to_datasets in Argilla 2; a draft and a discarded response do not count."""
    rows = []
    for record in argilla_records():
        row = {"id": record["id"], "status": "completed", **record["fields"]}
        for question, said in record["responses"].items():
            row[f"{question}.responses"] = [
                *(one["value"] for one in said),
                said[0]["value"],
                said[0]["value"],
            ]
            row[f"{question}.responses.users"] = [*(one["user_id"] for one in said), user("8"), user("9")]
            row[f"{question}.responses.status"] = ["submitted"] * len(said) + ["draft", "discarded"]
        rows.append(row)
    return rows


def argilla_feedback():
    """Records of FeedbackDataset in Argilla 1: a response per annotator."""
    records = []
    for number, (a, b) in enumerate(PAIRS):
        responses = [
            {"user_id": user(name), "status": "submitted",
             "values": {"similarity": {"value": score}, "label": {"value": label}}}
            for at, name, score, label in answers()
            if at == number
        ]  # fmt: skip
        records.append({"fields": {"text_a": a, "text_b": b}, "responses": responses, "metadata": {}})
    return records


def argilla_listed(columns):
    """The columns of format_as("datasets") in Argilla 1: a list of answers, or lists of users and values."""
    rows = []
    for record in argilla_feedback():
        row = dict(record["fields"])
        for question in ("similarity", "label"):
            said = [
                {"user_id": r["user_id"], "value": r["values"][question]["value"], "status": "submitted"}
                for r in record["responses"]
            ]
            row[question] = {key: [one[key] for one in said] for key in said[0]} if columns else said
        rows.append(row)
    return rows


def user(name):
    """The id of a user of Argilla."""
    return f"{name}0000000-1111-2222-3333-444444444444"


def wide():
    """A table with one column per annotator and relation."""
    return [
        {
            "text_a": a,
            "text_b": b,
            **{f"similarity_{n}": (SAID[n][at] or ("", ""))[0] for n in SAID},
            **{f"label_{n}": (SAID[n][at] or ("", ""))[1] for n in SAID},
        }
        for at, (a, b) in enumerate(PAIRS)
    ]


def write(path, rows):
    """Rows in the format of the file's ending."""
    if path.suffix == ".json":
        path.write_text(json.dumps(rows, indent=1), encoding="utf8")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    elif path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        with path.open("w", encoding="utf8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            cells = list | dict
            writer.writerows(
                {k: json.dumps(v) if isinstance(v, cells) else v for k, v in row.items()} for row in rows
            )
    return path


EXPORTS = {
    "ls.json": (label_studio, "Label Studio (JSON)"),
    "min.json": (json_min, "Label Studio (JSON-MIN or CSV)"),
    "ls.csv": (json_min, "Label Studio (JSON-MIN or CSV)"),
    "records.json": (argilla_records, "Argilla (records)"),
    "records.jsonl": (argilla_records, "Argilla (records)"),
    "flat.jsonl": (argilla_flat, "Argilla (table)"),
    "flat.parquet": (argilla_flat, "Argilla (table)"),
    "feedback.json": (argilla_feedback, "Argilla (records)"),
    "listed.jsonl": (lambda: argilla_listed(False), "Argilla (table)"),
    "columns.parquet": (lambda: argilla_listed(True), "Argilla (table)"),
    "wide.csv": (wide, "one column per annotator"),
}
RELATIONS = ["similarity:0..5", "label:same|other"]


@pytest.mark.parametrize("name", EXPORTS)
def test_import_gives_the_same_ratings_from_every_export(name, tmp_path):
    make, form = EXPORTS[name]
    report = import_annotations(
        write(tmp_path / name, make()), tmp_path / "r.csv", relations=RELATIONS, pseudonyms=True
    )
    assert report.form == form
    rows = rows_of(tmp_path / "r.csv")
    assert [(row["text_a"], row["text_b"]) for row in rows] == PAIRS
    assert [row["similarity"] for row in rows] == MEANS
    assert [row["label"] for row in rows] == LABELS
    assert [row["similarity@raters"] for row in rows] == ["3", "2", "2"]
    for number, name in enumerate(SAID, 1):
        said = [float(row[f"similarity@r{number}"] or "nan") for row in rows]
        assert said == pytest.approx([one[0] if one else float("nan") for one in SAID[name]], nan_ok=True)
        assert [row[f"label@r{number}"] for row in rows] == [one[1] if one else "" for one in SAID[name]]
    agreement = report.relations[0].agreement
    assert (agreement.items, agreement.ratings, agreement.annotators) == (3, 7, 3)


def test_import_counts_what_it_leaves_out(tmp_path):
    report = import_annotations(
        write(tmp_path / "e.json", label_studio()), tmp_path / "r.csv", relations=RELATIONS
    )
    assert report.counts == {"cancelled": 1, "repeated": 2, "unrated": 1, "unused": 0}
    told = "\n".join(report.lines())
    assert "1 skipped or cancelled answer was left out" in told
    assert "2 ratings were given again by the same annotator, and the later ones count" in told
    assert [row["id"] for row in rows_of(tmp_path / "r.csv")] == ["7", "8", "9"]
    flat = import_annotations(
        write(tmp_path / "f.jsonl", argilla_flat()), tmp_path / "f.csv", relations=RELATIONS
    )
    assert {kind: flat.counts[kind] for kind in ("draft", "cancelled")} == {"draft": 6, "cancelled": 6}
    assert flat.relations[0].annotators == ("10000000", "20000000", "30000000")


def test_import_leaves_ties_empty_or_takes_the_first_label(tmp_path):
    rows = [
        {"text_a": "a b", "text_b": "c", "label_x": "yes", "label_y": "no"},
        {"text_a": "d e", "text_b": "f", "label_x": "no", "label_y": "no"},
    ]
    source = write(tmp_path / "w.csv", rows)
    empty = import_annotations(source, tmp_path / "e.csv", relations="label:yes|no")
    assert [row["label"] for row in rows_of(tmp_path / "e.csv")] == ["", "no"]
    assert "label: 1 tie between labels left empty" in empty.notes
    import_annotations(source, tmp_path / "f.csv", relations="label:yes|no", ties="first")
    assert [row["label"] for row in rows_of(tmp_path / "f.csv")] == ["yes", "no"]
    with pytest.raises(UsageError, match="ties is 'last'"):
        import_annotations(source, tmp_path / "g.csv", ties="last")


def test_import_of_ordered_labels_takes_the_lower_median(tmp_path):
    rows = [
        {"text_a": "a b", "text_b": "c", "fit@x": "low", "fit@y": "high", "fit@z": "mid"},
        {"text_a": "d e", "text_b": "f", "fit@x": "mid", "fit@y": "high", "fit@z": ""},
    ]
    report = import_annotations(
        write(tmp_path / "w.csv", rows), tmp_path / "r.csv", relations="fit:low<mid<high"
    )
    assert [row["fit"] for row in rows_of(tmp_path / "r.csv")] == ["mid", "mid"]
    assert report.relations[0].agreement.metric == "ordinal"
    assert "fit:low<mid<high" in report.commands[1]


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (("rater1", "rater2"), {}),
        (("annotator_anna", "annotator_ben"), {}),
        (("anna", "ben"), {"annotators": ["anna", "ben"]}),
        (("score1", "score2"), {"relations": "rating:0..5"}),
    ],
)
def test_import_finds_columns_of_annotators(columns, options, tmp_path):
    rows = [{"sentence1": "a b", "sentence2": f"c {n}", columns[0]: n, columns[1]: n + 1} for n in range(4)]
    import_annotations(write(tmp_path / "w.csv", rows), tmp_path / "r.csv", **options)
    made = rows_of(tmp_path / "r.csv")
    assert [float(row["rating"]) for row in made] == [0.5, 1.5, 2.5, 3.5]
    assert {row["rating@raters"] for row in made} == {"2"}
    assert [name for name in made[0] if "@" in name][:2] == [f"rating@{name}" for name in columns]


def test_import_is_read_back_and_columns_of_annotators_are_no_relations(tmp_path):
    report = import_annotations(
        write(tmp_path / "e.json", label_studio()), tmp_path / "r.csv", relations=RELATIONS
    )
    declared = 'relations=["similarity:0..5", "label:same|other"]'
    assert report.commands[1] == f'likewise.train("{tmp_path / "r.csv"}", {declared})'
    with speaking_flags():
        assert "r.csv --relation similarity:0..5 --relation 'label:same|other'" in report.commands[1]
    found = open_own_table(str(tmp_path / "r.csv"), name="r.csv")
    assert [relation.name for relation in found.relations] == ["similarity", "label"]
    assert not [line for line in found.guesses if "@" in line]
    checked = check(tmp_path / "r.csv")
    assert [one.relation.name for one in checked.relations] == ["similarity", "label"]
    assert checked.ok
    again = import_annotations(tmp_path / "r.csv", tmp_path / "again.csv", relations=RELATIONS)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "r.csv").read_bytes()
    assert again.relations[0].agreement == report.relations[0].agreement


def test_import_joins_tasks_of_the_same_pair_and_refuses_several_labels(tmp_path):
    tasks = label_studio()
    double = json.loads(json.dumps(tasks[2]))
    double["annotations"] = [
        {"completed_by": 4, "result": [
            {"from_name": "label", "type": "choices", "value": {"choices": ["same", "other"]}},
            {"from_name": "similarity", "type": "number", "value": {"number": 4}},
        ]}
    ]  # fmt: skip
    report = import_annotations(
        write(tmp_path / "e.json", [*tasks, double]), tmp_path / "r.csv", relations=RELATIONS
    )
    last = rows_of(tmp_path / "r.csv")[2]
    assert (report.counts["merged"], report.counts["several"]) == (1, 1)
    assert (last["similarity@raters"], last["similarity"], last["label@raters"]) == ("3", "2.0", "2")


def test_import_shows_the_pairs_on_which_annotators_differ_most(tmp_path):
    report = import_annotations(write(tmp_path / "w.csv", wide()), tmp_path / "r.csv", relations=RELATIONS)
    numbers, labels = report.relations
    assert [pair.texts for pair in numbers.disputed] == [PAIRS[2], PAIRS[1], PAIRS[0]]
    assert [pair.texts for pair in labels.disputed] == [PAIRS[0]]
    assert labels.disputes() == ["  differ on 'A man sings.' / 'A man is singing.': 1 same, 2 same, 3 other"]
    assert report.to_dict()["relations"][1]["disputed"][0]["ratings"] == {
        "1": "same",
        "2": "same",
        "3": "other",
    }


def test_import_and_next_take_frames(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(
        [
            {"text_a": "a b", "text_b": "c", "rater1": 1, "rater2": None},
            {"text_a": "d e", "text_b": "f", "rater1": 3, "rater2": 4},
        ]
    )
    report = import_annotations(frame, tmp_path / "r.csv")
    assert [(row["rating"], row["rating@raters"]) for row in rows_of(tmp_path / "r.csv")] == [
        ("1.0", "1"),
        ("3.5", "2"),
    ]
    assert report.relations[0].several == 1
    chosen = next_pairs("no such model", frame, tmp_path / "n.csv", rated=[frame[:1]])
    assert chosen.texts == [("d e", "f")]


def test_import_guesses_relations_and_tells(tmp_path):
    report = import_annotations(write(tmp_path / "e.json", label_studio()), tmp_path / "r.csv")
    assert [(one.relation.name, one.relation.scale) for one in report.relations] == [
        ("similarity", "0..5"),
        ("label", "other | same"),
    ]
    assert "question 'similarity' is read as 0..5" in report.notes


def test_import_accepts_records_by_id_and_by_column(tmp_path):
    records = argilla_records()
    by_id = {record["id"]: record for record in records}
    by_column = {key: [record[key] for record in records] for key in records[0]}
    for name, document in (("id.json", by_id), ("column.json", by_column)):
        (tmp_path / name).write_text(json.dumps(document), encoding="utf8")
        import_annotations(tmp_path / name, tmp_path / f"{name}.csv", relations=RELATIONS)
        assert [row["similarity"] for row in rows_of(tmp_path / f"{name}.csv")] == MEANS


BAD = {
    "not closed": (b'[\n{"data": {"text_a": "a", "text_b": "b"}, "annotations": []},\n{"da', "e.json:3"),
    "not an object": (b'[\n{"data": {"text_a": "a", "text_b": "b"}, "annotations": []},\n7]', "e.json:3"),
    "no list": (b'"text"', "neither a list of tasks"),
    "empty list": (b"[]", "no rows"),
    "latin-1": ('[{"data": {"text_a": "caf\u00e9"}}]'.encode("latin-1"), "UTF-8"),
    "deep": (b'[{"a":' + b"[" * 100_000, "e.json:1"),
    "ids only": (b'[{"data": {"text_a": "a", "text_b": "b"}, "annotations": [3]}]', "e.json:1"),
    "empty text": (
        b'[{"data": {"text_a": "", "text_b": "b"}, "annotations": []}]',
        "e.json:1: text_a is empty",
    ),
    "nothing rated": (b'[{"data": {"text_a": "a", "text_b": "b"}, "annotations": []}]', "no question has"),
    "no texts": (b'[{"data": {"image": "a.png", "size": 3}, "annotations": []}]', "--text-a"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_import_of_a_bad_export_names_the_place_and_writes_nothing(case, tmp_path, here):
    content, expected = BAD[case]
    (tmp_path / "e.json").write_bytes(content)
    code, said = here("data", "import", "e.json", "--output", "r.csv")
    assert (code, "Traceback" in said) == (1, False)
    assert expected in said
    assert [path.name for path in tmp_path.iterdir()] == ["e.json"]


def test_import_refuses_values_beyond_the_scale_all_at_once(tmp_path):
    source = write(tmp_path / "e.json", label_studio())
    with pytest.raises(DataError) as error:
        import_annotations(source, tmp_path / "r.csv", relations="similarity:1..4")
    assert [problem.source.partition(":")[0] for problem in error.value.problems] == ["e.json"] * 3
    with pytest.raises(DataError, match="no answer is to a question 'sim'"):
        import_annotations(source, tmp_path / "r.csv", relations="sim:0..5")
    with pytest.raises(UsageError, match="is an input"):
        import_annotations(source, source, overwrite=True)


def test_import_refuses_json_beyond_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.annotation.reading.MAX_JSON", 100)
    with pytest.raises(FormatError, match="a JSON file is read as a whole"):
        import_annotations(write(tmp_path / "e.json", label_studio()), tmp_path / "r.csv")


def test_import_from_the_command_line_says_what_to_do_next(tmp_path, here):
    write(tmp_path / "e.json", label_studio())
    code, said = here("data", "import", "e.json", "--output", "r.csv", "--relation", "similarity:0..5")
    assert code == 0, said
    assert "Krippendorff's α (interval)" in said
    assert "next: likewise train r.csv --relation similarity:0..5" in said
    code, said = here("data", "import", "e.json", "--output", "r2.csv", "--json")
    document = json.loads(said)
    assert document["pairs"] == 3
    assert document["relations"][0]["agreement"]["items"] == 3
    assert document["left_out"]["cancelled"] == 1
    assert here("data", "import", "e.json", "--output", "r.csv")[0] == 2


# What no export should hold, and what a damaged or malicious one may hold.
JUNK = (
    *(None, True, 0, -1, 1e308, 10**400, "", "x", "[", '[{"rating": 4}]', [], {}, [[]], [{}], "NaN", "a@b"),
    *({"user_id": ["a"], "value": 3}, {"value": [1, 2], "user_id": None}, ["a", "b"], "similarity"),
)


def places_in(document, path=()):
    """The paths of everything inside a document."""
    keys = (
        document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    )
    for key in list(keys):
        yield (*path, key)
        yield from places_in(document[key], (*path, key))


def test_import_survives_exports_that_hold_anything_anywhere(tmp_path):
    done = 0
    for seed in range(150):
        draw = random.Random(seed)
        name = draw.choice([name for name in EXPORTS if name.endswith((".json", ".jsonl"))])
        rows = EXPORTS[name][0]()
        for _ in range(draw.randint(1, 3)):
            *above, key = draw.choice(list(places_in(rows)))
            inside = rows
            for step in above:
                inside = inside[step]
            inside[key] = json.loads(json.dumps(draw.choice(JUNK)))
        try:
            report = import_annotations(
                write(tmp_path / name, rows), tmp_path / "r.csv", relations=RELATIONS, overwrite=True
            )
        except LikewiseError:
            pass
        else:
            done += 1
            assert report.pairs == len(rows_of(tmp_path / "r.csv"))
    assert 50 < done < 150


def test_import_takes_true_for_no_rating(tmp_path):
    rows = [
        {"text_a": f"a {n}", "text_b": f"b {n}", "annotator": who, "similarity": value}
        for n, (who, value) in enumerate([("x", 3), ("x", True), ("y", False), ("y", 5)])
    ]
    path = tmp_path / "export.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    report = import_annotations(path, tmp_path / "out.csv", relations=["similarity:0..5"])
    assert [row["similarity"] for row in rows_of(tmp_path / "out.csv")] == ["3.0", "5.0"]
    assert report.counts["boolean"] == 2
    assert any("2 answers are true or false" in line for line in report.lines())
    for row in rows:
        row["similarity"] = row["similarity"] in (3, 5)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    report = import_annotations(path, tmp_path / "labels.csv")
    assert [one.relation.labels for one in report.relations] == [("false", "true")]
