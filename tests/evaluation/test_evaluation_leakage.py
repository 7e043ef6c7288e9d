"""The audit finds planted duplicates and reproduces the counts that docs/evaluation.md names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from likewise.errors import EvaluationError, LeakageError, UsageError
from likewise.evaluation.leakage import OverlapIndex, audit, filter_overlap, require_below
from likewise.evaluation.sts7 import clean_dev, clean_train, sts7_evaluation_sets
from likewise.records import Record


def _pair(a: str, b: str, subset: str = "", source: str = "") -> Record:
    return Record((a, b), {"similarity": 1.0}, source=source, subset=subset)


EVALUATION = {
    "boats": [
        _pair("A heron waits by the lock.", "The barge is late.", "canal", "boats.csv:2"),
        _pair("The barge is late.", "A heron waits by the lock.", "canal", "boats.csv:3"),
        _pair("Nobody paid the toll.", "The toll went unpaid.", "road", "boats.csv:4"),
    ],
    "bread": [_pair("Rye needs a long proof.", "Wheat rises faster.", "", "bread.csv:2")],
}
TRAIN = [
    _pair(
        "the BARGE is late", "a heron waits, by the lock!", source="train.csv:2"
    ),  # swapped, case, punctuation
    _pair("A heron waits by the lock.", "The  barge is\tlate.", source="train.csv:3"),  # blanks
    _pair(
        "Ｎobody paid the toll.", "Something else entirely.", source="train.csv:4"
    ),  # one text, full-width N
    _pair("Wheat rises faster.", "Oats do not rise.", source="train.csv:5"),
    _pair(
        "Rye needs a long proof.", "Oats do not rise.", source="train.csv:6"
    ),  # both texts, never as a pair
]


def test_leakage_audit_finds_planted_duplicates() -> None:
    report = audit(TRAIN, EVALUATION)
    boats, bread = report.sets
    assert (report.train_rows, report.shared_train_rows, report.train_share) == (5, 2, 0.4)
    assert (boats.rows, boats.shared, boats.distinct, boats.train_rows) == (3, 2, 1, 2)
    assert (boats.some_texts, boats.all_texts) == (3, 2)
    assert (bread.shared, bread.some_texts, bread.all_texts) == (0, 1, 1)
    assert report.examples == (("train.csv:2", "boats.csv:2"),)
    assert report.worst is boats


def test_leakage_audit_reports_subsets() -> None:
    subsets = {part.subset: part for part in audit(TRAIN, EVALUATION).subsets}
    assert list(subsets) == ["canal", "road"]
    assert subsets["canal"].share == 1.0
    assert (subsets["road"].shared, subsets["road"].some_texts, subsets["road"].all_texts) == (0, 1, 0)


def test_leakage_filter_drops_only_shared_pairs() -> None:
    kept, report = filter_overlap(iter(TRAIN), EVALUATION)
    assert kept == TRAIN[2:]
    assert report == audit(TRAIN, EVALUATION)
    assert audit(kept, EVALUATION).shared_train_rows == 0


def test_leakage_texts_without_letters_stay_apart() -> None:
    report = audit([_pair("?!", "🙂")], {"marks": [_pair("🙂", "?!"), _pair("...", "🙃")]})
    assert report.sets[0].shared == 1


def test_leakage_single_texts_are_audited_too() -> None:
    report = audit([Record(("Plain news.",))], {"news": [Record(("plain NEWS",)), Record(("Other news.",))]})
    assert (report.sets[0].shared, report.sets[0].rows) == (1, 2)


def test_leakage_report_as_text_and_json() -> None:
    report = audit(TRAIN, EVALUATION)
    lines = report.to_lines()
    assert (
        lines[0].split()
        == "evaluation set rows in training share distinct training rows some texts all texts".split()
    )
    assert lines[1].split() == ["boats", "3", "2", "66.7%", "1", "2", "3", "2"]
    assert lines[2].startswith("  canal")
    assert (
        "2 of 5 training rows are evaluation pairs. The set with the largest share "
        "is boats, with 66.7% of its rows."
    ) in report.to_text()
    assert json.loads(json.dumps(report.to_dict()))["sets"][0]["train_rows"] == 2
    clean = audit(TRAIN[2:], EVALUATION)
    assert clean.note() == "training overlap: none of 3 training rows is an evaluation pair"


NEAR_TEST = {
    "ships": [
        _pair(
            "The old grey ship left port at dawn today.", "A boat sailed away in the morning.", "", "s.csv:2"
        ),
        _pair("One two three four five.", "Six seven eight nine ten.", "", "s.csv:3"),
    ]
}
NEAR_TRAIN = [
    _pair(
        "a boat sailed, away in the morning", "today left the old grey ship port at dawn", source="t.csv:2"
    ),
    _pair("The old grey ship left port at dawn today!", "Nothing of the kind.", source="t.csv:3"),  # one side
    _pair(
        "The old grey ship left port at dusk today.", "A boat sailed away in the morning.", source="t.csv:4"
    ),
    _pair("One two three four five.", "Six seven eight nine ten.", source="t.csv:5"),
    _pair("Three four.", "Eight nine.", source="t.csv:6"),
]


def test_leakage_near_copies_are_counted_beside_shared_pairs() -> None:
    report = audit(NEAR_TRAIN, NEAR_TEST, near=0.9)
    assert (report.shared_train_rows, report.text_train_rows, report.near_train_rows) == (1, 4, 1)
    assert report.near_examples == (("t.csv:2", "s.csv:2"),)
    assert report.sets[0].near == 1
    assert report.dropped == {"pair": 1, "text": 3, "near-copy": 0}
    assert audit(NEAR_TRAIN, NEAR_TEST, near=0.7).near_train_rows == 2
    plain = audit(NEAR_TRAIN, NEAR_TEST)
    assert (plain.near, plain.near_train_rows, plain.near_note()) == (None, 0, "")
    assert "near" not in plain.to_dict()["sets"][0]


def test_leakage_strict_filter_drops_shared_texts_and_near_copies() -> None:
    far = _pair("One two three four five.", "Something else.")
    near = _pair("five four three two one", "ten nine eight seven six")
    kept, report = filter_overlap([*NEAR_TRAIN, far, near], NEAR_TEST, strict=True)
    assert kept == [NEAR_TRAIN[4]]
    assert report.dropped == {"pair": 1, "text": 4, "near-copy": 1}
    assert report.strict_note() == (
        "strict filter: kept 1 of 7 training rows and dropped 1 evaluation pair, 4 rows with a "
        "text of an evaluation row and 1 near-duplicate"
    )
    kept, _ = filter_overlap([*NEAR_TRAIN, far, near], NEAR_TEST)
    assert len(kept) == 6


def test_leakage_near_copies_of_single_texts() -> None:
    news = {"news": [Record(("Rain in the north, sun in the south.",)), Record(("No news today.",))]}
    train = [Record(("Sun in the north, rain in the south.",)), Record(("No news.",))]
    kept, report = filter_overlap(train, news, strict=True)
    assert kept == [train[1]]
    assert report.dropped == {"pair": 0, "text": 0, "near-copy": 1}


def test_leakage_report_says_what_texts_are_shared() -> None:
    lines = audit(NEAR_TRAIN, NEAR_TEST, near=0.9).to_lines()
    assert lines[0].split()[-1] == "near-duplicates"
    assert lines[-3:] == [
        "shared texts: 4 of 5 training rows hold a text of an evaluation row. 2 of 2 evaluation rows "
        "(100.0%) have at least one text in the training data, and 2 have all of their texts there.",
        "near-duplicates (word Jaccard of 0.9 or more, text by text): 1 of 5 training rows. 1 of 2 "
        "evaluation rows have one in the training data.",
        "e.g. t.csv:2 ≈ s.csv:2",
    ]


def test_leakage_limit_raises_with_a_remedy() -> None:
    report = audit(TRAIN, EVALUATION)
    require_below(report, 0.7)
    with pytest.raises(LeakageError, match=r"boats: 2 of 3 pairs \(66.7%\).*at most 10.0% .*filter_overlap"):
        require_below(report, 0.1)
    require_below(audit(TRAIN[2:], EVALUATION), 0)
    with pytest.raises(UsageError, match="between 0 and 1"):
        require_below(report, 10)


def test_leakage_audit_needs_evaluation_rows() -> None:
    with pytest.raises(EvaluationError, match="bread holds no rows"):
        audit(TRAIN, {"bread": []})
    with pytest.raises(UsageError, match="at least one"):
        audit(TRAIN, {})


def test_leakage_index_holds_nothing_of_the_training_data() -> None:
    index = OverlapIndex(EVALUATION)
    before = (len(index._pairs), len(index._texts))
    for number in range(20_000):
        index.see((f"Sentence number {number}.", f"Another one, {number}."), f"train.csv:{number}")
    assert (len(index._pairs), len(index._texts)) == before
    assert index.report().train_rows == 20_000


@pytest.mark.realdata
def test_leakage_pinned_counts_of_stsb_train(data_dir: Path) -> None:
    from likewise.data import load_corpus

    sets = sts7_evaluation_sets(data_dir)
    years = {name: records for name, records in sets.items() if name[:4] == "STS1"}
    train = load_corpus("stsb", "train", data_dir=data_dir)
    report = audit(train, years)
    assert (report.train_rows, report.shared_train_rows) == (5749, 4760)
    assert {overlap.name: (overlap.shared, overlap.rows) for overlap in report.sets} == {
        "STS12": (1003, 3108),
        "STS13": (597, 1500),
        "STS14": (1861, 3750),
        "STS15": (1102, 3000),
        "STS16": (197, 1186),
    }
    subsets = {(part.name, part.subset): (part.shared, part.rows) for part in report.subsets}
    assert subsets["STS12", "MSRpar"] == (503, 750)
    assert subsets["STS14", "deft-forum"] == (450, 450)
    assert subsets["STS14", "deft-news"] == (300, 300)
    assert subsets["STS16", "answer-answer"] == (0, 254)
    dev = audit(load_corpus("stsb", "dev", data_dir=data_dir), years)
    assert (dev.train_rows, dev.shared_train_rows) == (1500, 1131)
    by_test = {(part.name, part.subset): part.share for part in audit(sets["STS-B"], years).subsets}
    assert by_test["STS16", "answer-answer"] == 1.0


@pytest.mark.realdata
def test_leakage_pinned_counts_of_sick(data_dir: Path) -> None:
    from likewise.data import load_corpus

    train, test = (load_corpus("sick", split, data_dir=data_dir) for split in ("train", "test"))
    (found,) = audit(train, {"SICK-R": test}).sets
    assert (found.distinct, found.train_rows, found.shared) == (73, 93, 81)
    assert (found.some_texts, found.all_texts) == (4811, 2533)


@pytest.mark.realdata
def test_leakage_pinned_clean_rows(data_dir: Path) -> None:
    train, dev = clean_train(data_dir), clean_dev(data_dir)
    assert {name: len(records) for name, records in train.items()} == {"STS-B": 951, "SICK-R": 4367}
    assert {name: len(records) for name, records in dev.items()} == {"STS-B": 363, "SICK-R": 486}
    rows = [record for records in (*train.values(), *dev.values()) for record in records]
    sts7 = sts7_evaluation_sets(data_dir)
    require_below(audit(rows, sts7), 0)
    both = audit([record for records in train.values() for record in records], dev)
    assert [overlap.shared for overlap in both.sets] == [8, 4]
    left = audit([record for records in train.values() for record in records], sts7, near=0.9)
    assert (left.text_train_rows, left.near_train_rows, left.strict_train_rows) == (4_569, 228, 4_570)
    [sick] = [overlap for overlap in left.sets if overlap.name == "SICK-R"]
    assert (sick.rows, sick.some_texts, sick.all_texts, sick.near) == (4_927, 4_792, 2_468, 223)


@pytest.mark.realdata
def test_leakage_pinned_strict_rows(data_dir: Path) -> None:
    train, dev = clean_train(data_dir, strict=True), clean_dev(data_dir, strict=True)
    assert {name: len(records) for name, records in train.items()} == {"STS-B": 688, "SICK-R": 60}
    assert {name: len(records) for name, records in dev.items()} == {"STS-B": 306, "SICK-R": 10}
    rows = [record for records in (*train.values(), *dev.values()) for record in records]
    found = audit(rows, sts7_evaluation_sets(data_dir), near=0.9)
    assert (found.text_train_rows, found.near_train_rows) == (0, 0)
