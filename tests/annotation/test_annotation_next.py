"""Pairs to rate next: what is left out of a pool, what each strategy prefers, and what is written."""

from __future__ import annotations

import csv
import json
import random

import numpy as np
import pytest

import likewise
from likewise.annotation import import_annotations, next_pairs
from likewise.annotation.candidates import draw_candidates
from likewise.annotation.choosing import STRATEGIES, Pool, choose, cover_features
from likewise.errors import DataError, UnknownNameError, UsageError

UNKNOWN = "no such model"  # random choice must not ask for it


def pool_rows(number=40):
    """Distinct pairs without shared texts."""
    return [{"id": n, "text_a": f"the dog {n}", "text_b": f"a cat {n} sleeps"} for n in range(number)]


def write(path, rows):
    """Rows as CSV."""
    with path.open("w", encoding="utf8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def model(tiny_encoder, tiny_pairs):
    """A model with a head beside the cosine."""
    return likewise.train(
        tiny_pairs,
        encoder=tiny_encoder,
        relations=["similarity:0..5", "topic:-2..2"],
        overrides={"stage.0.max_steps": 3, "stage.0.keep_start": False},
        device="cpu",
    )


def test_next_leaves_out_rated_pairs_repeats_and_equal_texts(tmp_path):
    rows = pool_rows(6)
    rows += [
        {"id": 90, "text_a": "A cat 0 sleeps!", "text_b": "THE DOG 0"},
        {"id": 91, "text_a": "one text", "text_b": "One text."},
    ]
    rated = write(tmp_path / "rated.csv", [{"sentence1": "a cat 1 sleeps", "sentence2": "the dog 1", "x": 2}])
    found = next_pairs(UNKNOWN, write(tmp_path / "pool.csv", rows), count=50, rated=[rated])
    assert sorted(pair.fields["id"] for pair in found.pairs) == ["0", "2", "3", "4", "5"]
    assert (found.candidates.rated, found.candidates.repeated, found.candidates.alike) == (1, 1, 1)
    assert "left out 1 rated already, 1 repeated, 1 with the same text twice" in found.lines()[0]


def test_next_is_the_same_however_the_pool_is_sorted(tmp_path):
    rows = pool_rows(200)
    first = next_pairs(UNKNOWN, rows, count=10)
    random.Random(0).shuffle(rows)
    assert next_pairs(UNKNOWN, rows, count=10).texts == first.texts
    assert next_pairs(UNKNOWN, rows, count=10, seed=2).texts != first.texts
    assert next_pairs(UNKNOWN, rows, count=5).texts == first.texts[:5]


def test_next_draws_every_pair_equally_often():
    rows = pool_rows(20)
    counts = dict.fromkeys(range(20), 0)
    for seed in range(600):
        for pair in draw_candidates(rows, most=5, seed=seed).pairs:
            counts[pair.fields["id"]] += 1
    # 150 expected; six standard deviations of a binomial.
    assert all(abs(count - 150) < 6 * (600 * 0.25 * 0.75) ** 0.5 for count in counts.values())


def test_next_has_no_page_full_of_one_text():
    rows = [{"text_a": "one popular text", "text_b": f"other {n}"} for n in range(50)] + pool_rows(5)
    found = next_pairs(UNKNOWN, rows, count=6)
    assert sum(a == "one popular text" for a, _ in found.texts) == 1
    assert sum(a == "one popular text" for a, _ in next_pairs(UNKNOWN, rows, count=8, per_text=3).texts) == 3
    # Without other pairs, the text is repeated rather than the page left short.
    assert len(next_pairs(UNKNOWN, rows, count=20).pairs) == 20


def test_next_keeps_only_candidates_in_memory():
    drawn = draw_candidates(pool_rows(500), most=30, seed=1)
    assert (len(drawn.pairs), drawn.distinct, drawn.rows) == (30, 500, 500)
    assert drawn.pairs == draw_candidates(pool_rows(500), most=500, seed=1).pairs[:30]


def grid(number=400, seed=0):
    """A pool on a line: the first feature is the score, and doubt is greatest in the middle."""
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.5, 4, number)  # most pairs are unlike
    features = np.stack([10 * scores, np.zeros(number)], axis=1).astype(np.float32)
    return Pool(np.arange(2 * number).reshape(-1, 2), scores, 0.5 - np.abs(scores - 0.5), features)


def test_choosing_spreads_scores_evenly():
    pool = grid(1000)
    wide = choose(pool, 50, strategy="scores", rng=np.random.default_rng(1))
    narrow = choose(pool, 50, strategy="random", rng=np.random.default_rng(1))
    low, high = pool.scores.min(), pool.scores.max()
    tenth = np.minimum(((pool.scores - low) / (high - low) * 10).astype(int), 9)
    there = np.bincount(tenth, minlength=10)
    counts = np.bincount(tenth[wide], minlength=10)
    # Every tenth gives its fair share, or all it has.
    assert all(count >= min(5, have) for count, have in zip(counts, there, strict=True))
    assert np.bincount(tenth[narrow], minlength=10)[0] > 20


def test_choosing_by_doubt_takes_the_least_sure_first():
    pool = grid()
    rows = choose(pool, 20, strategy="doubt", rng=np.random.default_rng(1))
    assert set(rows) == set(np.argsort(-pool.doubt)[:20])


def test_choosing_covers_what_is_far_from_rated_pairs():
    pool = grid()
    near = Pool(pool.texts, pool.scores, pool.doubt, pool.features, pool.features[pool.scores < 0.3])
    rows = choose(near, 10, strategy="cover", rng=np.random.default_rng(1))
    assert pool.scores[rows].min() >= 0.29
    # k-means++ itself: the chance of a row is its squared distance to the nearest rated one.
    line = np.array([[1.0], [2.0], [3.0]], dtype=np.float32)
    small = Pool(np.arange(6).reshape(-1, 2), np.zeros(3), None, line, np.zeros((1, 1), dtype=np.float32))
    drawn = [choose(small, 1, strategy="cover", rng=np.random.default_rng(s))[0] for s in range(2000)]
    assert np.bincount(drawn, minlength=3) / 2000 == pytest.approx([1 / 14, 4 / 14, 9 / 14], abs=0.04)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_choosing_gives_distinct_rows_and_can_take_them_all(strategy):
    pool = grid(60)
    rows = choose(pool, 60, strategy=strategy, rng=np.random.default_rng(3))
    assert sorted(rows) == list(range(60))
    again = choose(pool, 25, strategy=strategy, rng=np.random.default_rng(3))
    assert list(again) == list(rows[:25])


def test_choosing_features_weigh_difference_and_product_alike():
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, 50, 8)).astype(np.float32)
    found = cover_features(u, v)
    assert found[:, :8] == pytest.approx(
        np.abs(u - v) / np.sqrt((np.abs(u - v) ** 2).sum(1).mean()), rel=1e-5
    )
    assert (found[:, 8:] ** 2).sum(1).mean() == pytest.approx(1, rel=1e-5)
    assert cover_features(v, u) == pytest.approx(found)


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "random"])
def test_next_asks_the_model(strategy, model):
    counted = []
    rows = pool_rows(30)
    found = next_pairs(
        model, rows, count=5, strategy=strategy, rated=[rows[:3]], asking=counted.append, candidates=20
    )
    assert len(set(found.texts)) == 5
    assert found.texts == next_pairs(
        model, rows, count=5, strategy=strategy, rated=[rows[:3]], candidates=20
    ).texts  # fmt: skip
    assert f"chosen by {strategy}" in found.lines()[-1]


def test_next_by_doubt_is_the_distance_of_the_head_from_the_line_of_the_cosine(model):
    words = ["the dog", "a cat sleeps", "a man", "the woman runs", "one child", "dogs bark"]
    rows = [{"id": 0, "text_a": a, "text_b": b} for n, a in enumerate(words) for b in words[:n]]
    rows = [{**row, "id": number} for number, row in enumerate(rows)]
    pairs = [(row["text_a"], row["text_b"]) for row in rows]
    relation = next(r.name for r in model.relations if {"cosine", "head"} <= set(model.sources(r.name)))
    cosines, heads = (
        np.asarray(model.score(pairs, relation=relation, source=source)[relation])
        for source in ("cosine", "head")
    )
    doubt = np.abs(heads - np.polyval(np.polyfit(cosines, heads, 1), cosines))
    found = next_pairs(model, rows, count=3, strategy="doubt", relation=relation, per_text=9)
    assert {pair.fields["id"] for pair in found.pairs} == set(np.argsort(-doubt)[:3].tolist())


def test_next_says_what_a_model_lacks(tiny_encoder):
    raw = likewise.load(tiny_encoder, device="cpu")
    with pytest.raises(UsageError, match="compares the cosine and the head of similarity"):
        next_pairs(raw, pool_rows(), strategy="doubt")
    with pytest.raises(UnknownNameError, match="no strategy 'best'"):
        next_pairs(raw, pool_rows(), strategy="best")
    with pytest.raises(DataError, match="are rated already"):
        next_pairs(raw, pool_rows(3), rated=[pool_rows(3)])
    with pytest.raises(UsageError, match="count is 0"):
        next_pairs(raw, pool_rows(), count=0)


@pytest.mark.parametrize(
    ("form", "name"), [("csv", "n.csv"), ("label-studio", "n.json"), ("argilla", "n.json")]
)
def test_next_closes_the_round_trip(form, name, tmp_path, here):
    write(tmp_path / "pool.csv", [{**row, "note": "x, y"} for row in pool_rows()])
    code, said = here(
        "data", "next", UNKNOWN, "pool.csv", "--count", 8, "--format", form, "--output", name, "--json"
    )
    assert code == 0, said
    assert json.loads(said)["chosen"] == 8
    chosen = next_pairs(UNKNOWN, tmp_path / "pool.csv", count=8).texts
    if form == "csv":
        with (tmp_path / name).open(encoding="utf8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [(row["text_a"], row["text_b"], row["note"]) for row in rows] == [(*t, "x, y") for t in chosen]
        rated = write(tmp_path / "back.csv", [{**row, "rater1": 3, "rater2": 4} for row in rows])
    else:
        rated = tmp_path / "back.json"
        rated.write_text(json.dumps(rate(json.loads((tmp_path / name).read_text()), form)), encoding="utf8")
    import_annotations(rated, tmp_path / "ratings.csv", relations="rating:0..5")
    with (tmp_path / "ratings.csv").open(encoding="utf8", newline="") as file:
        back = list(csv.DictReader(file))
    assert [(row["text_a"], row["text_b"]) for row in back] == chosen
    assert all(row["rating"] == "3.5" and row["id"] for row in back)
    left = next_pairs(UNKNOWN, tmp_path / "pool.csv", count=50, rated=[tmp_path / "ratings.csv"])
    assert len(left.pairs) == 32
    assert not set(left.texts) & set(chosen)


def rate(tasks, form):
    """Rate tasks as the tools would: two annotators say 3 and 4."""
    for task in tasks:
        if form == "argilla":
            task["responses"] = {"rating": [{"value": 3, "user_id": "a"}, {"value": 4, "user_id": "b"}]}
            continue
        task["annotations"] = [
            {
                "completed_by": who,
                "result": [{"from_name": "rating", "type": "rating", "value": {"rating": value}}],
            }
            for who, value in ((1, 3), (2, 4))
        ]  # fmt: skip
    return tasks


def test_next_refuses_wrong_calls_before_it_reads(tmp_path, here):
    write(tmp_path / "pool.csv", pool_rows())
    for arguments, expected in (
        (["--output", "pool.csv"], "is an input"),
        (["--output", "n.csv", "--format", "argilla"], "Name a .json file"),
        (["--output", "n.json"], "Choose --format label-studio"),
        (["--output", "n.csv", "--format", "xml"], "no format 'xml'"),
        (["--output", "n.csv", "--strategy", "best"], "no strategy 'best'"),
    ):
        code, said = here("data", "next", UNKNOWN, "pool.csv", *arguments)
        assert code == 2, said
        assert expected in said
    assert [path.name for path in tmp_path.iterdir()] == ["pool.csv"]


def test_next_keeps_semicolons_drops_empty_rows_and_says_that_there_are_no_more(tmp_path):
    pool = tmp_path / "pool.csv"
    pool.write_text("text_a;text_b\nein Hund;eine Katze\nx, y;z\n;\n;\n", encoding="utf-8-sig")
    found = next_pairs(UNKNOWN, pool, tmp_path / "out.csv", count=5)
    assert found.lines()[-1] == "5 pairs were asked for, but the pool has no more"
    assert (found.candidates.rows, found.to_dict()["asked"]) == (2, 5)
    written = (tmp_path / "out.csv").read_bytes()
    assert written.startswith(b"\xef\xbb\xbftext_a;text_b\n")
    assert sorted(written.decode("utf-8-sig").splitlines()[1:]) == ["ein Hund;eine Katze", "x, y;z"]
    assert "no more" not in next_pairs(UNKNOWN, pool, count=2).lines()[-1]
