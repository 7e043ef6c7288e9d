"""The crosslingual evaluation on invented vectors with known answers, and once on the real texts."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from likewise.errors import DataError, EvaluationError, UsageError
from likewise.evaluation.correlations import difference_interval
from likewise.evaluation.crosslingual.language_pairs import (
    PairScores,
    TrainedLanguages,
    measure_pairs,
    score_pairs,
)
from likewise.evaluation.crosslingual.measuring import (
    PAIRS,
    CrosslingualData,
    CrosslingualResult,
    load_crosslingual,
    measure_crosslingual,
    run_crosslingual,
    write_report,
)
from likewise.evaluation.crosslingual.probes import choose_sentences, probe_languages, probe_meaning
from likewise.evaluation.crosslingual.retrieval import average_retrieval, find_nearest, measure_retrieval
from likewise.evaluation.crosslingual.row_bootstrap import (
    draw_counts,
    draws_interval,
    pearson_draws,
    spearman_draws,
)
from likewise.evaluation.crosslingual.spread import measure_spread
from likewise.evaluation.crosslingual.views import TextVectors
from likewise.records import Record

UNKNOWN = TrainedLanguages()


@dataclass
class Text:
    """Parallel text as the evaluation sees it."""

    language_a: str
    language_b: str
    a: list[str]
    b: list[str]


def lookup(**views: Mapping[str, Sequence[float]]) -> Callable[[Sequence[str]], dict[str, np.ndarray]]:
    """Views that look their vectors up."""
    return lambda texts: {
        name: np.asarray([table[text] for text in texts], dtype=np.float32) for name, table in views.items()
    }


def unit(*rows: Sequence[float]) -> np.ndarray:
    """Vectors of length 1."""
    made = np.asarray(rows, dtype=np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def rng(seed: int = 0) -> np.random.Generator:
    """A seeded generator."""
    return np.random.default_rng(seed)


# --- views


def test_views_are_asked_once_for_distinct_texts() -> None:
    calls: list[list[str]] = []

    def views(texts: Sequence[str]) -> dict[str, np.ndarray]:
        calls.append(list(texts))
        return {"model": np.array([[3.0, 4], [0, 0], [0, 2]], dtype=np.float32)}

    vectors = TextVectors(views, ["a", "b", "a", "c", "b"])
    assert calls == [["a", "b", "c"]]
    assert (len(vectors), vectors.names, "raw" in vectors) == (3, ("model",), False)
    np.testing.assert_allclose(vectors.rows("model", ["c", "a", "b"]), [[0, 1], [0.6, 0.8], [0, 0]])
    np.testing.assert_allclose(vectors.cosines("model", [("a", "c"), ("a", "a"), ("a", "b")]), [0.8, 1, 0])


@pytest.mark.parametrize(
    ("found", "error", "words"),
    [
        ({}, UsageError, "the views are none, but 'model' is required"),
        ({"raw": np.ones((1, 2))}, UsageError, "the views are 'raw', but 'model' is required"),
        ({"model": np.ones((1, 2)), "meaning": np.ones((1, 2))}, UsageError, "'meaning'"),
        ({"model": np.ones((2, 2))}, EvaluationError, r"shape \(2, 2\) for 1 texts"),
        ({"model": np.full((1, 2), np.nan)}, EvaluationError, "'model' holds vectors with missing"),
    ],
)
def test_views_that_cannot_be_used_are_refused(found, error, words) -> None:
    with pytest.raises(error, match=words):
        TextVectors(lambda texts: found, ["a"]).rows("model", ["a"])


# --- resampled rows


def test_row_bootstrap_equals_scipy_on_every_resample() -> None:
    source = rng(3)
    gold = source.integers(0, 6, 40) / 2  # many ties
    scores = np.stack([gold + source.normal(size=40), source.integers(0, 4, 40), np.exp(gold)])
    counts = draw_counts(40, rng=rng(1), samples=100)
    assert counts.shape == (40, 100)
    assert (counts.sum(axis=0) == 40).all()
    own, ranked = pearson_draws(gold, scores, counts), spearman_draws(gold, scores, counts)
    for draw in range(0, 100, 9):
        rows = np.repeat(np.arange(40), counts[:, draw].astype(int))
        for system, row in enumerate(scores):
            assert own[system, draw] == pytest.approx(stats.pearsonr(gold[rows], row[rows])[0])
            assert ranked[system, draw] == pytest.approx(stats.spearmanr(gold[rows], row[rows])[0])


def test_row_bootstrap_leaves_out_resamples_without_a_value() -> None:
    gold, row = np.array([0.0, 1, 2, 3]), np.array([[0.0, 0, 0, 1]])
    counts = np.array([[1.0, 1, 1, 1], [2, 1, 1, 0]]).T
    for draws in (pearson_draws(gold, row, counts), spearman_draws(gold, row, counts)):
        assert np.isfinite(draws[0, 0])
        assert np.isnan(draws[0, 1])
        with pytest.raises(EvaluationError, match="too few rows"):
            draws_interval(0.5, draws[0])
    with pytest.raises(UsageError, match="10 bootstrap samples are too few"):
        draw_counts(4, rng=rng(), samples=10)


def planted(rows: int, correlations: Sequence[float], source: np.random.Generator, shared: float = 0.5):
    """Gold and systems of known correlation with it, whose errors are partly the same."""
    gold, common = source.normal(size=(2, rows))
    made = []
    for r in correlations:
        noise = np.sqrt(shared) * common + np.sqrt(1 - shared) * source.normal(size=rows)
        made.append(r * gold + np.sqrt(1 - r * r) * noise)
    return gold, np.stack(made)


def test_pairs_intervals_of_averages_hold_the_truth() -> None:
    names, model, raw = ("de-fr", "fr-es", "es-de"), (0.75, 0.7, 0.65), (0.6, 0.65, 0.55)
    held = {"pearson": 0, "pearson_difference": 0, "zou": 0}
    for seed in range(40):
        gold, scores = planted(120, (*model, *raw), rng(seed))
        made = PairScores(names, gold, {"model": scores[:3], "raw": scores[3:]})
        pairs, (average, *_) = measure_pairs(made, UNKNOWN, rng=rng(seed))
        held["pearson"] += average.pearson.low < 100 * np.mean(model) < average.pearson.high
        gap = average.pearson_difference
        held["pearson_difference"] += gap.low < 100 * (np.mean(model) - np.mean(raw)) < gap.high
        held["zou"] += pairs[0].difference.low < 15 < pairs[0].difference.high
    assert min(held.values()) >= 35  # 95 % of 40 is 38; fewer than 35 has a chance of 1 in 70


def test_pairs_average_over_the_same_rows_is_no_surer_than_one_pair() -> None:
    gold, scores = planted(200, (0.6, 0.4), rng(5))
    one = PairScores(("en-de",), gold, {"model": scores[:1], "raw": scores[1:]})
    many = PairScores(
        ("en-de", "en-fr", "de-fr"), gold, {"model": scores[[0, 0, 0]], "raw": scores[[1, 1, 1]]}
    )
    alone, together = (measure_pairs(part, UNKNOWN, rng=rng(2))[1][0] for part in (one, many))
    for name in ("pearson", "spearman", "raw_pearson", "pearson_difference", "spearman_difference"):
        a, b = getattr(alone, name), getattr(together, name)
        assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high))
        assert a.low < a.value < a.high
        assert a.method == "bootstrap over rows, 1000 samples"


# --- language pairs


def test_pairs_values_differences_and_marks() -> None:
    gold, scores = planted(120, (0.8, 0.7, 0.6, 0.5, 0.7, 0.65, 0.5, 0.55), rng(7))
    names = ("en-en", "en-de", "pt-en", "fr-de")
    made = PairScores(names, gold, {"raw": scores[4:], "model": scores[:4]})
    trained = TrainedLanguages.read(["de-en"], ["eng", "fr", "deu_Latn"])
    pairs, averages = measure_pairs(made, trained, rng=rng(1))
    for at, pair in enumerate(pairs):
        assert pair.pearson == pytest.approx(100 * stats.pearsonr(gold, scores[at])[0])
        assert pair.spearman == pytest.approx(100 * stats.spearmanr(gold, scores[at])[0])
        assert pair.raw_pearson == pytest.approx(100 * stats.pearsonr(gold, scores[at + 4])[0])
        assert pair.raw_spearman == pytest.approx(100 * stats.spearmanr(gold, scores[at + 4])[0])
        between = stats.pearsonr(scores[at], scores[at + 4])[0]
        zou = difference_interval(pair.pearson / 100, pair.raw_pearson / 100, between, 120)
        assert (pair.difference.low, pair.difference.high) == pytest.approx((100 * zou.low, 100 * zou.high))
        assert pair.difference.method == zou.method
    assert [pair.held_out_pair for pair in pairs] == [True, False, True, True]
    assert [pair.held_out_language for pair in pairs] == [False, False, True, False]
    assert {found.name: found.pairs for found in averages} == {
        "cross-lingual": ("en-de", "pt-en", "fr-de"),
        "held-out pairs": ("pt-en", "fr-de"),
        "without English": ("fr-de",),
        "with a held-out language": ("pt-en",),
    }
    for found in averages:
        own = [pair for pair in pairs if pair.name in found.pairs]
        assert found.pearson.value == pytest.approx(np.mean([pair.pearson for pair in own]))
        assert found.spearman.value == pytest.approx(np.mean([pair.spearman for pair in own]))
        gap = np.mean([pair.spearman - pair.raw_spearman for pair in own])
        assert found.spearman_difference.value == pytest.approx(gap)


def test_pairs_without_raw_or_marks_compare_nothing() -> None:
    gold, scores = planted(50, (0.8, 0.7), rng(1))
    made = PairScores(("en-en", "en-de"), gold, {"model": scores})
    pairs, averages = measure_pairs(made, UNKNOWN, rng=rng(1))
    assert [found.name for found in averages] == ["cross-lingual"]
    assert averages[0].raw_pearson is averages[0].pearson_difference is None
    for pair in pairs:
        assert pair.raw_pearson is pair.difference is pair.held_out_pair is pair.held_out_language is None


def test_pairs_equal_views_differ_by_nothing() -> None:
    gold, scores = planted(50, (0.8,), rng(1))
    made = PairScores(("en-de",), gold, {"model": scores, "raw": scores.copy()})
    pairs, averages = measure_pairs(made, UNKNOWN, rng=rng(1))
    for gap in (pairs[0].difference, averages[0].pearson_difference, averages[0].spearman_difference):
        assert (gap.value, gap.low, gap.high) == pytest.approx((0, 0, 0))


def records(gold: Sequence[float], first: str, second: str) -> list[Record]:
    """Rows of two languages; a text is its language and row."""
    return [
        Record((f"{first} {row} one", f"{second} {row} two"), {"similarity": float(value)})
        for row, value in enumerate(gold)
    ]


def test_pairs_scores_need_the_same_rows_and_numbers() -> None:
    vectors = TextVectors(lambda texts: {"model": np.ones((len(texts), 2), dtype=np.float32)}, "x")
    pairs = {"en-de": records([1, 2, 3], "en", "de"), "en-fr": records([1, 3, 2], "en", "fr")}
    with pytest.raises(EvaluationError, match="en-fr: the rows differ from those of en-de"):
        score_pairs(vectors, pairs)
    with pytest.raises(EvaluationError, match="en-de: each of the 1 rows needs a number for similarity"):
        score_pairs(vectors, {"en-de": [Record(("a", "b"), {"similarity": None})]})
    with pytest.raises(UsageError, match="no language pair to measure"):
        score_pairs(vectors, {})


def test_pairs_constant_cosines_are_named() -> None:
    made = PairScores(("en-de",), np.arange(5.0), {"model": np.ones((1, 5))})
    with pytest.raises(EvaluationError, match="en-de, model vectors: the predictions are all 1"):
        measure_pairs(made, UNKNOWN, rng=rng())


def test_pairs_names_are_checked() -> None:
    with pytest.raises(UsageError, match="'en_de': two codes are expected, such as en-de"):
        TrainedLanguages.read(["en_de"])
    with pytest.raises(DataError, match="language pair 'en-dee': the language code 'dee' is unknown"):
        TrainedLanguages.read(["en-dee"])


# --- retrieval


def test_retrieval_finds_a_known_permutation_in_blocks() -> None:
    base = unit(*rng(1).normal(size=(257, 16)))
    order = rng(2).permutation(257)
    other = base[order] + 0.01 * unit(*rng(3).normal(size=(257, 16)))
    for block in (1, 64, 257, 1000):
        forward, backward = find_nearest(base, other, block=block)
        assert (order[forward] == np.arange(257)).all()
        assert (backward == order).all()


def test_retrieval_blocks_agree_with_the_whole_product() -> None:
    a, b = unit(*rng(4).normal(size=(90, 5))), unit(*rng(5).normal(size=(70, 5)))
    forward, backward = find_nearest(a, b, block=32)
    assert (forward == (a @ b.T).argmax(axis=1)).all()
    assert (backward == (a @ b.T).argmax(axis=0)).all()


def test_retrieval_accuracy_by_hand() -> None:
    # Both "Hallo." and both "Hi." are equal texts: a hit whichever of them is found.
    text = Text("de", "en", ["Hallo.", "Hallo.", "Tee", "Brot"], ["Hi.", "Hi.", "tea", "bread"])
    raw = {"Hallo.": (1, 0), "Hi.": (1, 0), "Tee": (0, 1), "tea": (0, 1), "Brot": (1, 1), "bread": (0.1, 1)}
    model = {**raw, "bread": (1, 1)}
    vectors = TextVectors(lookup(raw=raw, model=model), [*text.a, *text.b])
    (found,) = measure_retrieval(vectors, [text], TrainedLanguages.read((), ["de"]))
    # Raw: Brot has cosine .71 with Hi. and .77 with bread, a hit; bread has .995 with Tee, a miss.
    assert (found.raw.forward, found.raw.backward, found.raw.mean) == (100, 75, 87.5)
    assert (found.model.forward, found.model.backward, found.difference) == (100, 100, 12.5)
    assert (found.name, found.n, found.held_out_language) == ("de-en", 4, True)
    with pytest.raises(EvaluationError, match="de-en: there are 1 sentences and 0 translations"):
        measure_retrieval(vectors, [Text("de", "en", ["Tee"], [])], UNKNOWN)


def test_retrieval_collapsed_vectors_are_not_hits() -> None:
    text = Text("de", "en", [f"a{i}" for i in range(20)], [f"b{i}" for i in range(20)])
    vectors = TextVectors(lambda texts: {"model": np.ones((len(texts), 3), "f4")}, [*text.a, *text.b])
    results = measure_retrieval(vectors, [text], UNKNOWN)
    assert results[0].model.mean == 5
    (average,) = average_retrieval(results)
    assert (average.model, average.raw, average.difference) == (5, None, None)


def test_retrieval_average_has_an_interval_over_languages() -> None:
    table = {"a": (1, 0), "b": (1, 0), "c": (0, 1), "d": (0, 1), "e": (1, 0.1), "f": (1, 0.2)}
    swapped = {**table, "b": (0, 1), "d": (1, 0)}
    texts = [Text("de", "en", ["a", "c"], ["b", "d"]), Text("pt", "en", ["c", "e"], ["d", "f"])]
    vectors = TextVectors(lookup(raw=swapped, model=table), table)
    results = measure_retrieval(vectors, texts, TrainedLanguages.read((), ["de", "en"]))
    every, held_out = average_retrieval(results)
    assert (every.name, every.languages, every.model) == ("all languages", 2, 100)
    gaps = [result.difference for result in results]
    low, high = stats.t.interval(0.95, 1, loc=np.mean(gaps), scale=stats.sem(gaps))
    assert (every.difference.low, every.difference.high) == pytest.approx((low, high))
    assert every.difference.method == "t over 2 languages"
    assert (held_out.name, held_out.languages, held_out.difference) == ("held-out languages", 1, None)


# --- probes

LANGUAGES = ("en", "de", "ru", "zh")


def speakers(sentences: int = 80, width: int = 12) -> tuple[dict[str, list[str]], dict[str, np.ndarray]]:
    """The same sentences in four languages: meaning, a little noise, and per language an offset."""
    source = rng(11)
    meaning = source.normal(size=(sentences, width))
    offset = 3 * source.normal(size=(len(LANGUAGES), width))
    texts = {code: [f"{code} {row}" for row in range(sentences)] for code in LANGUAGES}
    kinds: dict[str, dict[str, np.ndarray]] = {"raw": {}, "model": {}, "language": {}}
    for at, code in enumerate(LANGUAGES):
        noise = 0.1 * source.normal(size=(sentences, width))
        for row, text in enumerate(texts[code]):
            kinds["raw"][text] = meaning[row] + offset[at] + noise[row]
            kinds["model"][text] = meaning[row] + noise[row]
            kinds["language"][text] = offset[at] + noise[row]
    return texts, kinds


def test_probe_finds_a_planted_language_and_chance_without_it() -> None:
    texts, kinds = speakers()
    vectors = TextVectors(lookup(**kinds), [text for column in texts.values() for text in column])
    raw, model, language = probe_languages(vectors, texts, rng=rng(1))
    assert [found.view for found in (raw, model, language)] == ["raw", "model", "language"]
    assert raw.accuracy.value == language.accuracy.value == 100
    assert raw.nearest > 90
    assert language.nearest == 100
    assert set(raw.recall.values()) == {100}
    assert model.accuracy.low < model.chance == 25 < model.accuracy.high
    assert abs(model.nearest - 25) < 8
    assert (raw.train, raw.test) == (160, 160)
    assert probe_languages(vectors, texts, rng=rng(1)) == (raw, model, language)


def test_probe_of_constant_vectors_is_at_chance() -> None:
    texts, _ = speakers()
    vectors = TextVectors(
        lambda asked: {"model": np.ones((len(asked), 3), "f4")},
        [t for column in texts.values() for t in column],
    )
    assert probe_languages(vectors, texts, rng=rng(1))[0].accuracy.value == 25


def test_probe_sentences_are_told_apart_by_language_and_stand_once() -> None:
    texts = {
        "en": ["A dog.", "OK.", "A cat.", "A hound.", "Two dogs.", "Five."],
        "de": ["Ein Hund.", "OK.", "Eine Katze.", "Ein Hund.", "Zwei Hunde.", "Fünf."],
    }
    assert choose_sentences(texts) == {
        "en": ["A dog.", "A cat.", "Two dogs.", "Five."],
        "de": ["Ein Hund.", "Eine Katze.", "Zwei Hunde.", "Fünf."],
    }
    assert choose_sentences(texts, most=1) == {"en": ["A dog."], "de": ["Ein Hund."]}
    with pytest.raises(EvaluationError, match="found the sentences en 1, de 2"):
        choose_sentences({"en": ["a"], "de": ["b", "c"]})


def test_probe_meaning_is_the_mean_correlation_of_language_vectors() -> None:
    gold, scores = planted(100, (0.9, 0.3, 0.0), rng(2))
    made = PairScores(("en-en", "en-de", "en-fr"), gold, {"language": scores, "model": scores})
    found = probe_meaning(made, rng=rng(1))
    expected = [100 * stats.pearsonr(gold, row)[0] for row in scores]
    assert list(found.pairs.values()) == pytest.approx(expected)
    assert found.average.value == pytest.approx(np.mean(expected))
    assert found.average.low < 40 < found.average.high
    scores[0] = 1.0  # one language vector per language: no meaning at all
    found = probe_meaning(made, rng=rng(1))
    assert found.pairs["en-en"] is None
    assert found.average.value == pytest.approx(np.mean(expected[1:]))
    assert probe_meaning(PairScores(("en-de",), gold, {"model": scores[1:2]}), rng=rng(1)) is None


# --- spread


def test_spread_by_hand() -> None:
    gold = np.array([0.0, 0.5, 1.0, 4.0, 5.0])
    raw = np.array([[0.0] * 5, [0.7, 0.8, 0.8, 0.9, 0.9]])
    made = PairScores(("en-en", "en-de"), gold, {"model": raw - 0.5, "raw": raw})
    before, after = measure_spread(made)
    assert (before.view, after.view, before.n) == ("raw", "model", 5)  # the pair of one language is left out
    assert [(part.low, part.high, part.n) for part in before.bins] == [(0, 1, 2), (1, 2, 1), (4, 5, 2)]
    assert [part.mean for part in before.bins] == pytest.approx([0.75, 0.8, 0.9])
    assert (before.bins[0].q05, before.bins[0].q95) == pytest.approx((0.705, 0.795))
    assert before.deviation == pytest.approx(np.std(raw[1], ddof=1)) == after.deviation
    assert before.quartile_range == pytest.approx(0.1)
    assert after.mean == pytest.approx(before.mean - 0.5)


# --- the whole


def whole(
    names: Sequence[str] = ("raw", "model", "language"), **trained: Sequence[str]
) -> CrosslingualResult:
    """All parts on invented texts of three languages, German with an offset in raw vectors."""
    source = rng(21)
    gold = source.uniform(0, 5, 60)
    pairs = {name: records(gold, *name.split("-")) for name in ("en-en", "en-de", "de-fr")}
    texts = {
        code: [f"{code} {row} {side}" for row in range(60) for side in ("one", "two")]
        for code in ("en", "de", "fr")
    }
    table: dict[str, dict[str, np.ndarray]] = {"raw": {}, "model": {}, "language": {}}
    for at, (code, column) in enumerate(texts.items()):
        for place, text in enumerate(column):
            angle = (place // 2) + (0.3 * (5 - gold[place // 2]) if place % 2 else 0.0)
            meaning = np.array([np.cos(angle), np.sin(angle), 0.3, 0, 0, 0])
            table["model"][text] = meaning + 0.05 * source.normal(size=6)
            table["language"][text] = np.eye(6)[3 + at] + 0.05 * source.normal(size=6)
            table["raw"][text] = table["model"][text] + 2 * np.eye(6)[3 + at] * (code == "de")
    data = CrosslingualData(pairs, [Text("de", "en", texts["de"], texts["en"])], texts)
    views = lookup(**{name: table[name] for name in names})
    return measure_crosslingual(views, data, **trained)


def test_crosslingual_result_holds_every_part() -> None:
    result = whole(trained_pairs=["en-de"], seen_languages=["en", "de"])
    assert result["en-de"].pearson > result["en-de"].raw_pearson
    assert result["de-fr"].held_out_language
    assert result.average().pairs == ("en-de", "de-fr")
    assert result.average("held-out pairs").pairs == ("de-fr",)
    assert result.retrieval[0].n == 120
    assert result.probes[0].recall["de"] > 95
    assert result.meaning is not None
    assert [spread.view for spread in result.spread] == ["raw", "model"]
    with pytest.raises(
        EvaluationError, match=r"there is no language pair 'en-fr'\. Choose one of en-en, en-de, de-fr"
    ):
        result["en-fr"]
    with pytest.raises(EvaluationError, match=r"there is no average 'mean'\. Choose one of cross-lingual"):
        result.average("mean")


def test_crosslingual_result_is_json_and_depends_on_the_seed_alone() -> None:
    result = whole(trained_pairs=["en-de"])
    data = result.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False))["pairs"][1]["name"] == "en-de"
    assert whole(trained_pairs=["en-de"]) == result
    assert whole(trained_pairs=["en-de"]).to_dict() == data
    assert {"pairs", "averages", "retrieval", "probes", "meaning", "spread", "protocol"} <= set(data)


def test_crosslingual_text_has_the_protocol_and_only_known_columns() -> None:
    text = whole(trained_pairs=["en-de"], seen_languages=["en", "de"]).to_text()
    assert "protocol: pearson ×100 and spearman ×100 of the cosine, rated pairs" in text
    assert text.splitlines()[-1] == "training overlap: not audited"
    assert "held out" in text
    assert "pair, language" in text
    assert "meaning in the language vector" in text
    plain = whole(("model",)).to_text()
    assert "raw" not in plain
    assert "held out" not in plain
    assert "meaning in" not in plain


def test_crosslingual_report_has_tables_numbers_and_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = whole()
    paths = write_report(result, tmp_path / "report")
    assert [path.name for path in paths] == [
        "crosslingual.md",
        "crosslingual.json",
        "spread.svg",
        "spread.png",
    ]
    assert all(path.stat().st_size for path in paths)
    page = paths[0].read_text(encoding="utf8")
    assert "](spread.svg)" in page
    assert "| en-de | " in page
    assert json.loads(paths[1].read_text(encoding="utf8"))["suite"] == "crosslingual"
    again = write_report(whole(("model",)), tmp_path / "again")
    assert all(path.is_file() for path in again)


@pytest.mark.parametrize("name", ["crosslingual.md", "crosslingual.json", "spread.svg", "spread.png"])
def test_crosslingual_report_keeps_files_that_appeared_meanwhile(tmp_path: Path, name: str) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / name).write_text("a user's", encoding="utf8")
    with pytest.raises(UsageError, match=f"{name} appeared while it was being written"):
        write_report(whole(), tmp_path, replace=False)
    assert (tmp_path / name).read_text(encoding="utf8") == "a user's"


def test_crosslingual_data_that_is_absent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    with pytest.raises(UsageError, match="but one or more different ones are needed"):
        load_crosslingual(["en-de", "en-de"], data_dir=tmp_path)
    with pytest.raises(DataError, match="stsb_multi_mt/"):
        load_crosslingual(["en-de"], data_dir=tmp_path)


# --- real texts


def trigrams(texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Hashed character trigrams: crude vectors that need no encoder, and those of the upper half alone."""
    made = np.zeros((len(texts), 256), dtype=np.float32)
    for row, text in enumerate(texts):
        padded = f" {text.lower()} "
        for at in range(len(padded) - 2):
            made[row, zlib.crc32(padded[at : at + 3].encode()) % 256] += 1
    return {"model": made, "raw": made[:, :64]}


@pytest.mark.realdata
def test_crosslingual_on_real_data(data_dir: Path) -> None:
    lines: list[str] = []
    result = run_crosslingual(
        trigrams,
        data_dir=data_dir,
        pairs=("en-en", "en-de", "es-zh"),
        retrieval_languages=("deu",),
        trained_pairs=("de-en",),
        seen_languages=("en", "de", "es"),
        progress=lines.append,
    )
    assert [(pair.name, pair.n) for pair in result.pairs] == [(n, 1379) for n in ("en-en", "en-de", "es-zh")]
    assert result["en-en"].pearson > 60 > 40 > result["en-de"].pearson > 10
    assert result["en-en"].difference.low > 0  # four times the width hashes better
    assert [pair.held_out_language for pair in result.pairs] == [False, False, True]
    assert [(found.name, found.n) for found in result.retrieval] == [("de-en", 1000)]
    assert 5 < result.retrieval[0].model.mean < 60
    probe = {found.view: found.accuracy.value for found in result.probes}
    assert probe["model"] > 95
    assert result.probes[0].test == 2000
    assert len(lines) == 4
    assert set(PAIRS) > {"en-en", "en-de", "es-zh"}
    with pytest.raises(DataError, match=r"there is no parallel text for la\. Available are: "):
        load_crosslingual(("en-en",), ("lat",), data_dir=data_dir)


@pytest.mark.realdata
def test_crosslingual_without_retrieval_data_says_so(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    (tmp_path / "stsb_multi_mt").symlink_to(data_dir / "stsb_multi_mt")
    data = load_crosslingual(("en-en",), data_dir=tmp_path)
    assert data.notes == (f"retrieval was not measured: tatoeba_laser is not in {tmp_path}",)
    assert not data.probe  # one language alone has no probe
    result = measure_crosslingual(trigrams, data)
    assert (result.retrieval, result.probes, result.averages) == ((), (), ())
    assert data.notes[0] in result.to_text()
    assert load_crosslingual(("en-en",), (), data_dir=tmp_path).notes == ()
