"""Estimators of likewise.sklearn: checks of scikit-learn, and the answers that Likewise gives by itself."""

from __future__ import annotations

import contextlib
import csv
import io
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import StackingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import validate_data

import likewise
from likewise.errors import DataError, EstimatorInputError, LikewiseError, ModelError, RecipeError, UsageError
from likewise.sklearn import PairScorer, TextClassifier, TextEncoder, spearman
from likewise.sklearn import scorer as scorer_module
from likewise.sklearn.training import seed_of
from tests.test_layers import heavy_after
from tests.tiny import WORDS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "sklearn.md"
SAMPLES = ROOT / "src" / "likewise" / "samples"
ONE_STEP = {"stage.0.max_steps": 1}
ESTIMATORS = (PairScorer, TextClassifier, TextEncoder)


@pytest.fixture(scope="module")
def rows(tiny_pairs) -> tuple[list[tuple[str, str]], list[float]]:
    """Forty pairs of texts and their ratings."""
    with tiny_pairs.open(encoding="utf8") as file:
        table = list(csv.DictReader(file))
    return [(row["text_a"], row["text_b"]) for row in table], [float(row["similarity"]) for row in table]


@pytest.fixture(scope="module")
def labelled(rows) -> tuple[list[str], list[str]]:
    """Forty texts, labelled by whether they speak of colours."""
    texts = [a for a, _ in rows[0]]
    return texts, ["colour" if {"red", "blue", "old", "new"} & set(a.split()) else "no" for a in texts]


@pytest.fixture(scope="module")
def scorer(tiny_encoder, rows) -> PairScorer:
    return PairScorer(
        str(tiny_encoder), relation="similarity:0..5", epochs=2, learning_rate=1e-2, random_state=3
    ).fit(*rows)


@pytest.fixture(scope="module")
def classifier(tiny_encoder, labelled) -> TextClassifier:
    words = {"colour": ["red", "blue"], "no": "not"}
    return TextClassifier(str(tiny_encoder), labels=words, epochs=2, learning_rate=1e-2).fit(*labelled)


# scikit-learn's checks fill X with numbers. Those that need a fit of them cannot apply to texts.
NUMBERS = "the check fits tables of numbers, which are refused: X holds texts"
ON_NUMBERS = (
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
)
NAN = "NaN among numbers is refused like the numbers, in other words than the check expects"
ONE = "the only column holds numbers; the check expects a message on the number of columns"
FAILS = {
    PairScorer: dict.fromkeys(
        (
            *ON_NUMBERS,
            "check_regressor_data_not_an_array",
            "check_regressors_int",
            "check_regressors_no_decision_function",
            "check_regressors_train",
            "check_supervised_y_2d",
        ),
        NUMBERS,
    )
    | {"check_estimators_nan_inf": NAN},
    TextClassifier: dict.fromkeys(
        (
            *ON_NUMBERS,
            "check_classifier_data_not_an_array",
            "check_classifiers_classes",
            "check_classifiers_train",
            "check_supervised_y_2d",
        ),
        NUMBERS,
    )
    | {"check_estimators_nan_inf": NAN, "check_fit2d_1feature": ONE},
    TextEncoder: dict.fromkeys(
        (
            *ON_NUMBERS,
            "check_transformer_data_not_an_array",
            "check_transformer_general",
            "check_transformers_unfitted_stateless",
        ),
        NUMBERS,
    )
    | {
        "check_estimators_nan_inf": NAN,
        "check_fit2d_1feature": ONE,
        "check_complex_data": "complex numbers are refused like any numbers, not for being complex",
        "check_fit2d_1sample": "one text is enough, because nothing is learnt",
    },
}
# Behind a step that turns numbers into texts, the same checks fit and predict for real.
STEPS = "a Pipeline fits the steps that it was given, so that its own parameter `steps` changes"
RATINGS = "y has one value, or few ones, but a dev set of ratings needs several"
STATELESS = "TextEncoder needs no fit, and a Pipeline needs one only if its last step does"
FAILS_ON_WORDS = {
    PairScorer: {
        "check_estimators_nan_inf": RATINGS,
        "check_fit2d_1feature": RATINGS,
        "check_regressors_no_decision_function": RATINGS,
    },
    TextClassifier: {},
    TextEncoder: {"check_transformers_unfitted": STATELESS, "check_fit_check_is_fitted": STATELESS},
}
OF_A_PIPELINE = dict.fromkeys(("check_estimators_overwrite_params", "check_dont_overwrite_parameters"), STEPS)


# The last digits of single precision depend on the batch, by the kernels of a machine more or less.
ROUNDED = "probabilities in single precision differ by less than a millionth between batches"
NOT_EVERYWHERE = {TextClassifier: {"check_methods_subset_invariance": ROUNDED}}


def near(expected):
    """Equal but for the last digits of single precision, which depend on the texts that shared a batch."""
    return pytest.approx(expected, abs=1e-5)


class Words(TransformerMixin, BaseEstimator):
    """Rows of numbers as texts of two words per number, in one column or in several."""

    plain = tuple(word for word in WORDS if word.isalpha())

    def __init__(self, columns: int = 1) -> None:
        self.columns = columns

    def fit(self, X, y=None):
        validate_data(self, X)
        return self

    def transform(self, X):
        said = [" ".join(map(self._say, row)) for row in validate_data(self, X, reset=False)]
        return np.array([[text] * self.columns for text in said], dtype=object)

    def _say(self, number: float) -> str:
        place, size = int(abs(number) * 1000), len(self.plain)
        return f"{self.plain[place % size]} {self.plain[place // size % size]}"


def assert_fails_exactly(estimator, expected, not_everywhere=()):
    """All of scikit-learn's checks pass but for the expected ones, and each of these fails."""
    may_fail = {**expected, **dict(not_everywhere)}
    results = check_estimator(estimator, expected_failed_checks=may_fail, on_skip=None)
    told = {
        status: {one["check_name"] for one in results if one["status"] == status}
        for status in ("passed", "xfail", "skipped")
    }
    assert set(expected) <= told["xfail"] <= set(may_fail)
    assert not told["passed"] & told["xfail"]
    assert told["skipped"] <= {"check_array_api_input"}
    assert sum(map(len, told.values())) > 30
    return told["passed"]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_sklearn_checks_pass_but_for_those_that_fit_numbers(kind, tiny_encoder):
    passed = assert_fails_exactly(kind(str(tiny_encoder)), FAILS[kind])
    assert {
        "check_estimator_cloneable",
        "check_set_params",
        "check_fit1d",
        "check_estimator_sparse_array",
    } <= passed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_sklearn_checks_pass_on_texts_that_stand_for_numbers(kind, tiny_encoder):
    options = {} if kind is TextEncoder else {"overrides": ONE_STEP}
    if kind is TextClassifier:  # the tiny encoder knows no digits
        said = [0, 1, 2, 3, -1, "one", "two", "three"]
        options["labels"] = dict(zip(said, ("red blue old new fast one two three").split(), strict=True))
    made = make_pipeline(Words(2 if kind is PairScorer else 1), kind(str(tiny_encoder), **options))
    may_fail = NOT_EVERYWHERE.get(kind, {})
    passed = assert_fails_exactly(made, FAILS_ON_WORDS[kind] | OF_A_PIPELINE, may_fail)
    needed = {
        "check_estimators_pickle",
        "check_fit_idempotent",
        "check_dict_unchanged",
        "check_n_features_in",
    }
    assert needed | {"check_methods_sample_order_invariance"} <= passed


def test_sklearn_scorer_predicts_what_train_learns(scorer, rows, tiny_encoder):
    pairs, ratings = rows
    table = [{"text_a": a, "text_b": b, "similarity": y} for (a, b), y in zip(pairs, ratings, strict=True)]
    trained = likewise.train(
        table,
        relations="similarity:0..5",
        encoder=tiny_encoder,
        overrides={"stage.0.epochs": 2, "stage.0.learning_rate": 1e-2},
        seed=3,
    )
    predicted = scorer.predict(pairs)
    assert predicted.dtype == np.float64
    assert predicted == near(trained.score(pairs)["similarity"])
    assert not np.allclose(predicted, likewise.load(tiny_encoder).score(pairs)["similarity"] * 2.5 + 2.5)
    assert spearman(scorer, pairs, ratings) == pytest.approx(
        pd.Series(predicted).corr(pd.Series(ratings), method="spearman")
    )


def test_sklearn_scorer_takes_lists_arrays_and_frames(scorer, rows):
    pairs = rows[0][:5]
    expected = scorer.predict(pairs)
    for form in (
        [list(pair) for pair in pairs],
        np.array(pairs),
        np.array(pairs, dtype=object),
        pd.DataFrame(pairs).to_numpy(),
    ):
        assert scorer.predict(form) == near(expected)
    assert scorer.n_features_in_ == 2


def test_sklearn_scorer_remembers_the_columns_of_a_frame(rows, tiny_encoder):
    frame = pd.DataFrame(rows[0], columns=["first", "second"])
    fitted = PairScorer(str(tiny_encoder), relation="score:0..5", overrides=ONE_STEP).fit(frame, rows[1])
    assert list(fitted.feature_names_in_) == ["first", "second"]
    assert fitted.relation_.name == "score"
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(frame[["second", "first"]])


def test_sklearn_scorer_is_searched_and_cross_validated(rows, tiny_encoder):
    made = PairScorer(str(tiny_encoder), relation="similarity:0..5", overrides=ONE_STEP)
    search = GridSearchCV(made, {"learning_rate": np.array([1e-6, 1e-2])}, cv=2, scoring=spearman)
    few = [part[:24] for part in rows]
    search.fit(*few)
    assert search.best_params_["learning_rate"] in (1e-6, 1e-2)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    alone = cross_val_score(clone(search.best_estimator_), *few, cv=2, scoring=spearman)
    assert alone.mean() == pytest.approx(search.best_score_, abs=1e-12)


def test_sklearn_random_state_is_the_seed_of_a_training(scorer, classifier):
    assert scorer.model_.about["recipe"]["seed"] == 3
    assert classifier.model_.about["recipe"]["seed"] == 1  # None leaves it to the recipe, not to chance
    assert seed_of(None) is None
    assert seed_of(np.int64(7)) == 7
    assert seed_of(np.random.RandomState(5)) == seed_of(np.random.RandomState(5)) < 2**32
    with pytest.raises(UsageError, match="random_state is 'x'"):
        seed_of("x")


def test_sklearn_scorer_tells_a_guessed_scale_once(rows, tiny_encoder, caplog):
    scorer_module._tell_range.cache_clear()
    for _ in range(2):
        found = scorer_module._relation("similarity", np.array([0.2, 4.5]))
        assert (found.lo, found.hi) == (0, 5)
    assert [record.message for record in caplog.records] == [
        'y is read as ratings on a scale of 0..5. To declare the scale, pass relation="similarity:0..5".'
    ]


def test_sklearn_classifier_reads_its_labels(classifier, labelled, tiny_encoder):
    texts, labels = labelled
    chances = classifier.predict_proba(texts)
    assert list(classifier.classes_) == ["colour", "no"]
    assert np.allclose(chances.sum(axis=1), 1)
    assert list(classifier.predict(texts)) == list(classifier.classes_[chances.argmax(axis=1)])
    assert classifier.score(texts, labels) > 0.6
    [task] = classifier.model_.relations
    assert task.labels == ("colour", "no")
    assert task.label_texts == (("red", "blue"), ("not",))
    assert chances == near(classifier.model_.classify(texts).probabilities)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([2, -1]),
        np.array([True, False]),
        ["NA", " x"],
        ["a|b", "a<b"],
        [1.0, 2.0],
    ],
    ids=str,
)
def test_sklearn_classifier_answers_in_the_labels_it_was_given(labelled, tiny_encoder, labels):
    texts, said = labelled
    given = np.array([labels[0] if one == "no" else labels[1] for one in said])
    words = dict(zip(np.unique(given).tolist(), ("old dog", "fast train"), strict=True))
    made = TextClassifier(
        str(tiny_encoder), labels=words, overrides={**ONE_STEP, "stage.0.keep_start": False}
    )
    fitted = made.fit(texts, given)
    assert fitted.classes_.dtype == given.dtype
    assert list(fitted.classes_) == sorted(set(given.tolist()))
    assert set(fitted.predict(texts).tolist()) <= set(given.tolist())
    asked = fitted.model_.relations[0]
    assert [asked.label_texts[asked.labels.index(name)][0] for name in fitted._names] == list(words.values())


def test_sklearn_encoder_gives_the_vectors_of_the_encoder(tiny_encoder, labelled):
    from sentence_transformers import SentenceTransformer

    texts = labelled[0]
    found = TextEncoder(str(tiny_encoder)).transform(texts)
    assert found.dtype == np.float32
    assert np.array_equal(found, likewise.load(tiny_encoder).encode(texts))
    assert np.allclose(found, SentenceTransformer(str(tiny_encoder), device="cpu").encode(texts), atol=1e-6)
    frame = pd.DataFrame({"text": texts})
    for form in (np.array(texts), frame, frame["text"], frame[["text"]].to_numpy(), tuple(texts)):
        assert np.array_equal(TextEncoder(str(tiny_encoder)).fit(form).transform(form), found)


def test_sklearn_encoder_stands_before_other_estimators(tiny_encoder, labelled):
    texts, labels = labelled
    baseline = make_pipeline(TextEncoder(str(tiny_encoder)), LogisticRegression())
    scores = cross_val_score(baseline, texts, labels, cv=3)
    vectors = likewise.load(tiny_encoder).encode(texts)
    assert np.array_equal(scores, cross_val_score(LogisticRegression(), vectors, labels, cv=3))
    frame = pd.DataFrame({"text": texts, "length": [len(text) for text in texts]})
    both = ColumnTransformer([("text", TextEncoder(str(tiny_encoder)), "text")], remainder="passthrough")
    named = both.set_output(transform="pandas").fit_transform(frame)
    assert list(named.columns[[0, 31, 32]]) == [
        "text__textencoder0",
        "text__textencoder31",
        "remainder__length",
    ]
    assert named.shape == (40, 33)


def test_sklearn_encoder_notices_that_a_model_was_replaced(scorer, tmp_path, tiny_encoder, rows):
    other = PairScorer(str(tiny_encoder), relation="similarity:0..5", overrides=ONE_STEP, learning_rate=0.1)
    other.set_params(overrides={**ONE_STEP, "stage.0.keep_start": False}).fit(*rows)
    encoder = TextEncoder(str(scorer.model_.save(tmp_path / "model")))
    first = encoder.transform(["a red dog"])
    other.model_.save(tmp_path / "model", overwrite=True)
    assert not np.allclose(encoder.transform(["a red dog"]), first)


class _Named(pickle.Unpickler):
    """An unpickler that notes what a pickle names."""

    def __init__(self, file):
        super().__init__(file)
        self.named = set()

    def find_class(self, module, name):
        self.named.add(module.partition(".")[0])
        return super().find_class(module, name)


def test_sklearn_pickles_hold_the_files_of_the_model(scorer, classifier, rows, labelled):
    for fitted, ask in (
        (scorer, lambda one: one.predict(rows[0])),
        (classifier, lambda one: one.predict_proba(labelled[0])),
    ):
        reader = _Named(io.BytesIO(pickle.dumps(fitted)))
        back = reader.load()
        assert reader.named <= {"likewise", "numpy", "builtins", "_codecs"}
        assert ask(back) == near(ask(fitted))
        assert back.get_params() == fitted.get_params()
    assert not hasattr(pickle.loads(pickle.dumps(clone(scorer))), "model_")


@pytest.mark.slow
def test_sklearn_processes_give_the_same_answers(rows, labelled, tiny_encoder):
    made = PairScorer(str(tiny_encoder), relation="similarity:0..5", overrides=ONE_STEP)
    one, two = (
        cross_validate(made, *rows, cv=2, scoring=spearman, return_estimator=True, n_jobs=jobs)
        for jobs in (1, 2)
    )
    assert one["test_score"] == near(two["test_score"])
    for mine, theirs in zip(one["estimator"], two["estimator"], strict=True):
        assert mine.predict(rows[0]) == near(theirs.predict(rows[0]))
    texts = make_pipeline(TextEncoder(str(tiny_encoder)), LogisticRegression())
    assert np.array_equal(
        cross_val_score(texts, *labelled, cv=2, n_jobs=2), cross_val_score(texts, *labelled, cv=2)
    )
    stacked = StackingRegressor([("pairs", made)], Ridge(), cv=2, n_jobs=2).fit(*rows)
    assert np.isfinite(stacked.predict(rows[0])).all()


def test_sklearn_model_is_saved_as_a_folder(scorer, classifier, rows, labelled, tmp_path):
    folder = scorer.model_.save(tmp_path / "scorer")
    assert likewise.load(folder).score(rows[0])["similarity"] == near(scorer.predict(rows[0]))
    with pytest.raises(LikewiseError, match="overwrite"):
        scorer.model_.save(folder)
    assert scorer.model_.save(folder, overwrite=True) == folder
    folder = classifier.model_.save(str(tmp_path / "classifier"))
    again = likewise.load(folder)
    assert again.classify(labelled[0]).probabilities == near(classifier.predict_proba(labelled[0]))
    # A loaded model is saved with its history, and describes itself anew.
    second = likewise.load(again.save(tmp_path / "second"))
    assert second.about["stages"] == classifier.model_.about["stages"]
    assert (
        "raw"
        not in likewise.load(likewise.load(second.save(tmp_path / "third")).save(tmp_path / "fourth")).about
    )


def test_sklearn_is_quiet_unless_asked(rows, tiny_encoder, capfd):
    made = PairScorer(str(tiny_encoder), relation="similarity:0..5", overrides=ONE_STEP)
    made.fit(*rows).predict(rows[0])
    TextEncoder(str(tiny_encoder), token_budget=64).transform(["a dog"])
    assert capfd.readouterr() == ("", "")
    made.set_params(verbose=True).fit(*rows)
    said = capfd.readouterr()
    assert said.out == ""
    assert "learns similarity (cosine head, pearson loss)" in said.err
    TextEncoder(str(tiny_encoder), verbose=True).transform(["a dog"])


TWENTY = [("a dog", "a cat")] * 20
RATED = list(range(5)) * 4
MISUSES = {
    "single texts": (PairScorer, {}, ["a", "b"] * 10, RATED, "single texts, but a pair is two texts"),
    "one text": (PairScorer, {}, "a dog", RATED, "it is the text 'a dog'"),
    "three columns": (
        PairScorer,
        {},
        [("a", "b", "c")] * 20,
        RATED,
        "n_features = 3, but a pair is two texts",
    ),
    "few": (PairScorer, {}, TWENTY[:9], RATED[:9], "n_samples = 9, but a part of the rows is set aside"),
    "missing": (PairScorer, {}, [*TWENTY[1:], ("a", None)], RATED, "row 19, text b: the text is missing"),
    "nan": (PairScorer, {}, [("a", float("nan")), *TWENTY[1:]], RATED, "row 0, text b: the text is missing"),
    "number": (PairScorer, {}, [(3, "b"), *TWENTY[1:]], RATED, r"row 0, text a: it is 3 \(int\), not a text"),
    "empty": (PairScorer, {}, [*TWENTY[1:], (" ", "b")], RATED, "row 19, text a: the text is empty"),
    "scale": (
        PairScorer,
        {"relation": "r:0..3"},
        TWENTY,
        RATED,
        "row 4: y is 4, but the scale of r is 0 to 3",
    ),
    "length": (PairScorer, {}, TWENTY, RATED[1:], "inconsistent numbers of samples"),
    "y nan": (PairScorer, {}, TWENTY, [*RATED[1:], float("nan")], "Input y contains NaN"),
    "pairs": (TextClassifier, {}, TWENTY, RATED, "n_features = 2, but a row is one text"),
    "no labels": (TextClassifier, {}, ["a"] * 20, None, "requires y to be passed"),
    "one class": (TextClassifier, {}, ["a"] * 20, ["x"] * 20, "1 class"),
    "text": (TextClassifier, {}, "a", ["x"], "a list of texts is expected"),
    "set": (TextClassifier, {}, {"a", "b"}, ["x"] * 2, "array"),
}


@pytest.mark.parametrize(("kind", "options", "X", "y", "message"), MISUSES.values(), ids=MISUSES)
def test_sklearn_refuses_rows_with_their_place(kind, options, X, y, message):
    with pytest.raises(ValueError, match=message) as caught:
        kind("nowhere", **options).fit(X, y)
    assert caught.type is ValueError or isinstance(caught.value, EstimatorInputError | DataError)


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (PairScorer(relation="r:a|b"), UsageError, "has labels, but PairScorer predicts numbers"),
        (PairScorer(relation=3), UsageError, "relation is 3, but it must be a text"),
        (PairScorer("nowhere"), ModelError, "nowhere: there is no such model folder"),
        (PairScorer(epochs=0), RecipeError, "stage.0.epochs"),
        (PairScorer(overrides={"stage.0.epoch": 2}), RecipeError, "stage.0.epoch: this is not a known key"),
        (PairScorer(overrides=3), UsageError, "overrides is 3, but it must be a dict"),
        (PairScorer(recipe="nothing-like-it"), LikewiseError, "nothing-like-it"),
        (TextClassifier(labels={0: "a"}), UsageError, "labels has no words for 1, 2, 3, 4"),
        (TextClassifier(labels=["a"]), UsageError, "labels is .* but it must be a dict"),
    ],
    ids=repr,
)
def test_sklearn_refuses_parameters_when_fitted(made, error, message):
    X = TWENTY if isinstance(made, PairScorer) else ["a dog"] * 20
    with pytest.raises(error, match=message):
        made.fit(X, RATED)


def test_sklearn_scorer_trains_another_recipe(rows, tiny_encoder):
    made = PairScorer(str(tiny_encoder), relation="similarity:0..5", recipe="finetune", overrides=ONE_STEP)
    fitted = made.fit(*rows)
    assert fitted.model_.about["recipe"]["stage"][-1]["kind"] == "joint"
    assert fitted.predict(rows[0]).shape == (40,)


def test_sklearn_classifier_trains_another_recipe(labelled, tiny_encoder, caplog):
    made = TextClassifier(str(tiny_encoder), recipe="finetune", labels={"colour": "red", "no": "not"})
    fitted = made.set_params(overrides=ONE_STEP).fit(*labelled)
    assert fitted.model_.about["recipe"]["stage"][-1]["kind"] == "joint"
    assert np.allclose(fitted.predict_proba(labelled[0]).sum(axis=1), 1)
    assert "recipe finetune reads no label texts, so labels has no effect." in caplog.messages


def test_sklearn_imports_are_lazy():
    # scikit-learn loads scipy, and pandas where it is installed.
    assert not heavy_after("import likewise.sklearn") & {"torch", "transformers", "datasets"}
    code = "import sys, likewise, likewise.cli; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def run_page(folder: Path, monkeypatch, encoder: str | None) -> list[str]:
    """Run the Python blocks of the page, one after the other, and return what they print."""
    for name in ("train.csv", "test.csv"):
        lines = (SAMPLES / name).read_text(encoding="utf8").splitlines(keepends=True)
        (folder / name).write_text("".join(lines[: None if encoder is None else 40]), encoding="utf8")
    monkeypatch.chdir(folder)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf8"), re.DOTALL)
    assert len(blocks) >= 4
    if encoder is not None:  # one step of a tiny encoder shows that the code runs
        given = f"encoder={encoder!r}"
        blocks = [
            re.sub(r"(PairScorer|TextClassifier|TextEncoder)\(", rf"\1({given}, ", one) for one in blocks
        ]
        blocks = [re.sub(r"epochs=\d+", f"overrides={ONE_STEP}", one) for one in blocks]
        for words, known in (
            ('"a question"', '"red"'),
            ('"a complaint"', '"old"'),
            ('["praise", "thanks"]', '"fast"'),
        ):
            blocks = [one.replace(words, known) for one in blocks]
        blocks = [one.replace("StratifiedKFold(4", "StratifiedKFold(2") for one in blocks]
    said, names = io.StringIO(), {}
    with contextlib.redirect_stdout(said):
        for block in blocks:
            exec(compile(block, PAGE.name, "exec"), names)
    return said.getvalue().splitlines()


def test_sklearn_page_runs(tmp_path, monkeypatch, tiny_encoder):
    assert run_page(tmp_path, monkeypatch, str(tiny_encoder))


@pytest.mark.slow
def test_sklearn_page_shows_what_the_default_encoder_gives(tmp_path, monkeypatch, minilm):
    shown = re.findall(r"^# ([\d.]+)$", PAGE.read_text(encoding="utf8"), re.MULTILINE)
    printed = [line for line in run_page(tmp_path, monkeypatch, None) if re.fullmatch(r"[\d.]+", line)]
    assert len(shown) == len(printed) >= 2
    assert [float(one) for one in printed] == pytest.approx([float(one) for one in shown], abs=0.1)
