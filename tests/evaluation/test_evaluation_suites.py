"""Suites: aggregation by hand-computed numbers, one call for all pairs, the protocol beside every number."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from likewise.data import find_corpus
from likewise.errors import EvaluationError, RecipeError, UsageError
from likewise.evaluation import SUITES, Protocol, Suite, Task, audit, compute, get_suite, run_suite, run_tasks
from likewise.evaluation.aggregate import aggregate
from likewise.evaluation.asking import assign
from likewise.evaluation.tasks import fingerprint
from likewise.records import Record, Relation

PLAIN = Protocol()

# Two subsets, each in perfect order by itself; the second is scored on another level than its gold.
GOLD = np.array([0.0, 1, 2, 3, 4, 5, 3, 4, 5])
SCORES = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.03, 0.02, 0.01])
PARTS = ["calm"] * 6 + ["odd"] * 3


def test_suites_all_mean_and_wmean_differ() -> None:
    found = {
        how: aggregate("spearman", how, gold=GOLD, predicted=SCORES, subsets=PARTS)
        for how in ("all", "mean", "wmean")
    }
    assert found["mean"].value == pytest.approx((1 - 1) / 2)
    assert found["wmean"].value == pytest.approx((6 * 1 - 3 * 1) / 9)
    assert found["all"].value == pytest.approx(compute("spearman", GOLD, SCORES))
    assert len({round(result.value, 6) for result in found.values()}) == 3
    assert [(part.name, part.n, part.value) for part in found["all"].subsets] == [
        ("calm", 6, 1.0),
        ("odd", 3, -1.0),
    ]
    assert found["all"].interval is not None
    assert found["mean"].interval is None  # three rows are too few for one


def test_suites_without_subsets_all_three_agree() -> None:
    values = {
        aggregate("pearson", how, gold=GOLD, predicted=SCORES, subsets=[""] * 9).value
        for how in ("all", "mean", "wmean")
    }
    assert len(values) == 1


def test_suites_mean_interval_combines_the_subsets() -> None:
    rng = np.random.default_rng(0)
    gold = rng.normal(size=80)
    predicted = gold + rng.normal(size=80)
    found = aggregate("pearson", "wmean", gold=gold, predicted=predicted, subsets=["x"] * 30 + ["y"] * 50)
    assert found.interval is not None
    assert found.interval.value == pytest.approx(found.value)
    assert found.interval.low < found.value < found.interval.high
    # Two independent halves of the rows: their errors add up as the weights say.
    assert found.interval.method == "Fisher z, 80 independent rows"


def test_suites_constant_subset_stops_a_mean_but_not_a_pool() -> None:
    scores = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9, 0.9, 0.9])
    pooled = aggregate("spearman", "all", gold=GOLD, predicted=scores, subsets=PARTS)
    assert pooled.subsets[1].value is None
    assert "all 0.9" in pooled.subsets[1].reason
    with pytest.raises(EvaluationError, match=r"subset odd: the predictions are all 0\.9"):
        aggregate("spearman", "mean", gold=GOLD, predicted=scores, subsets=PARTS)


@pytest.fixture
def suite_file(tmp_path: Path) -> Path:
    """A suite of two invented files: one with subsets, one with classes and a missing label."""
    rows = zip(GOLD, PARTS, strict=True)
    lines = [f"Duck {i} swims.,Goose {i} flies.,{gold:g},{part}" for i, (gold, part) in enumerate(rows)]
    (tmp_path / "birds.csv").write_text("\n".join(["left_text,right_text,score,subset", *lines]) + "\n")
    tea = [
        "text_a\ttext_b\tstrength",
        "Cold tea.\tIced tea.\tweak",
        "Tea.\tA brew.\tfair",
        "Tea.\tTea!\tstrong",
    ]
    (tmp_path / "tea.tsv").write_text("\n".join([*tea, "Tea.\tMilk.\t", "Tea.\tA leaf.\tfair"]) + "\n")
    path = tmp_path / "mine.toml"
    path.write_text(
        """
        [[task]]
        name = "birds"
        file = "birds.csv"
        text_a = "left_text"
        text_b = "right_text"
        relation = "similarity:0..5"
        column = "score"
        subsets = true

        [[task]]
        name = "tea"
        file = "tea.tsv"
        relation = "strength:weak<fair<strong"
        metric = "pearson"
        """
    )
    return path


def _score(pairs: list[tuple[str, str]], relations: list[str]) -> np.ndarray:
    assert pairs[0] == ("Duck 0 swims.", "Goose 0 flies.")
    assert pairs[-1] == ("Tea.", "A leaf.")
    return np.concatenate((SCORES, [0.1, 0.2, 0.9, 0.3])).astype(np.float32)


def test_suites_file_runs_in_one_call(suite_file: Path) -> None:
    calls: list[int] = []

    def score(pairs: list[tuple[str, str]], relations: list[str]) -> np.ndarray:
        calls.append(len(pairs))
        return _score(pairs, relations)

    result = run_suite(get_suite(suite_file), score, protocol=Protocol(aggregation="wmean", source="head"))
    assert calls == [13]
    assert result.suite == "mine"
    assert result["birds"].value == pytest.approx(100 / 3)
    assert [(part.name, part.value) for part in result["birds"].subsets] == [("calm", 100.0), ("odd", -100.0)]
    tea = result["tea"]
    assert (tea.n, tea.missing, tea.metric, tea.relation) == (4, 1, "pearson", "strength")
    assert tea.value == pytest.approx(100 * np.corrcoef([0, 1, 2, 1], [0.1, 0.2, 0.9, 0.3])[0, 1], abs=1e-4)
    assert result.average is None  # a Spearman and a Pearson have no common mean
    with pytest.raises(EvaluationError, match=r"no task 'coffee'\. Choose one of birds, tea"):
        result["coffee"]


def test_suites_result_as_text_markdown_and_json(suite_file: Path) -> None:
    result = run_suite(str(suite_file), _score, protocol=PLAIN, keep_predictions=True)
    lines = result.to_text().splitlines()
    assert lines[0].split() == ["mine", "metric", "value", "95", "%", "interval", "rows"]
    assert lines[1].split()[:3] == ["birds", "spearman", f"{result['birds'].value:.2f}"]
    by_task = "protocol: metric by task (correlations and shares ×100), subsets pooled (all)"
    assert lines[-2] == f"{by_task}, scores from cosine"
    assert lines[-1] == "training overlap: not audited"
    marked = result.to_markdown().splitlines()
    assert marked[1] == "|---|---:|---:|---:|---:|"
    assert marked[-1].startswith(by_task)
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["protocol"] == {"metric": "by task", "aggregation": "all", "source": "cosine"}
    assert Protocol(**data["protocol"]) == result.protocol
    assert data["predictions"]["birds"]["gold"] == GOLD.tolist()
    assert data["tasks"][0]["interval"]["level"] == 0.95
    assert "predictions" not in run_suite(str(suite_file), _score, protocol=PLAIN).to_dict()


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        (("", ""), "protocol: spearman ×100,"),
        (("pearson", "pearson"), "protocol: pearson ×100,"),
        (("mse", "mse"), "protocol: mse,"),
        (("spearman", ""), "protocol: spearman ×100,"),
        (("pearson", ""), "protocol: metric by task"),
    ],
)
def test_suites_protocol_names_the_metric_that_was_used(metrics: tuple[str, ...], said: str) -> None:
    records = [Record((f"Oak {i}", f"Elm {i}"), {"similarity": float(i)}) for i in range(6)]
    tasks = [(Task(f"task {number}", metric=metric), records) for number, metric in enumerate(metrics)]
    result = run_tasks("trees", tasks, score=lambda pairs, relations: np.arange(12.0), protocol=PLAIN)
    assert str(result.protocol).startswith(said)
    used = {task.metric for task in result.tasks}
    assert result.to_dict()["protocol"]["metric"] == (used.pop() if len(used) == 1 else "by task")


def test_suites_average_overlap_note_and_fingerprint() -> None:
    records = [Record((f"Oak {i}", f"Elm {i}"), {"similarity": float(i % 5)}) for i in range(12)]
    tasks = [(Task("first"), records[:6]), (Task("second"), records[6:])]
    report = audit(records[:3], {"first": records[:6]})
    result = run_tasks(
        "trees", tasks, score=lambda pairs, relations: np.arange(12.0), protocol=PLAIN, audit=report
    )
    assert result.average == pytest.approx((result["first"].value + result["second"].value) / 2)
    assert "average" in result.to_text()
    assert result.overlap.startswith("training overlap: 3 of 3 training rows")
    assert result["first"].fingerprint == fingerprint(records[:6], "similarity")
    changed = [Record(record.texts, {"similarity": 1.5}) for record in records[:6]]
    assert fingerprint(changed, "similarity") != result["first"].fingerprint


def test_suites_classes_are_measured_as_labels() -> None:
    labels = ["yes", "no", "yes", "no"]
    records = [Record((f"Oak {i}", f"Elm {i}"), {"same": label}) for i, label in enumerate(labels)]
    task = Task("trees", relation="same", metric="accuracy")
    result = run_tasks(
        "labels",
        [(task, records)],
        score=lambda pairs, relations: np.array(["yes", "no", "no", "no"]),
        protocol=PLAIN,
    )
    assert result["trees"].value == 75
    with pytest.raises(
        EvaluationError, match="same holds labels such as 'yes', but spearman compares numbers"
    ):
        run_tasks(
            "x",
            [(Task("t", relation="same"), records)],
            score=lambda pairs, relations: GOLD[:4],
            protocol=PLAIN,
        )


def test_suites_ordered_labels_count_by_position() -> None:
    relation = Relation.ordered("size", ["small", "big", "huge"], [0, 1, 5])
    values = ["small", "huge", "big", "huge"]
    records = [Record((f"Oak {i}", f"Elm {i}"), {"size": value}) for i, value in enumerate(values)]
    task = Task("trees", relation=relation, metric="mae")
    result = run_tasks("sizes", [(task, records)], score=lambda pairs, relations: np.zeros(4), protocol=PLAIN)
    assert result["trees"].value == pytest.approx((0 + 5 + 1 + 5) / 4)
    assert "2.7500" in result.to_text()


def test_suites_errors_name_the_task() -> None:
    records = [Record((f"Oak {i}", f"Elm {i}"), {"similarity": float(i)}) for i in range(5)]
    task = Task("trees")
    with pytest.raises(EvaluationError, match="trees: the predictions are all 1"):
        run_tasks("x", [(task, records)], score=lambda pairs, relations: np.ones(5), protocol=PLAIN)
    with pytest.raises(EvaluationError, match=r"shape \(5, 2\) for 5 pairs"):
        run_tasks("x", [(task, records)], score=lambda pairs, relations: np.ones((5, 2)), protocol=PLAIN)
    with pytest.raises(EvaluationError, match="none of 5 rows has a value for actor"):
        run_tasks(
            "x", [(Task("t", relation="actor"), records)], score=lambda pairs, relations: GOLD, protocol=PLAIN
        )
    single = [Record(("Oak",), {"similarity": 1.0})]
    with pytest.raises(EvaluationError, match="do not hold two texts"):
        run_tasks("x", [(task, single)], score=lambda pairs, relations: GOLD, protocol=PLAIN)


def test_suites_file_reports_all_problems_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(
        '[[task]]\nname = "a"\nfile = "a.csv"\nrelation = "similarity"\n'
        '[[task]]\nname = "b"\nrelation = "x:0..5"\nmetric = "spearman"\n'
        '[[task]]\nname = "c"\nfile = "c.csv"\nrelation = "x:0..5"\nmetrik = "mse"\n'
        '[[task]]\nname = "d"\nfile = "d.csv"\nrelation = "x:0..5"\nmetric = "kendall"\n'
        '[[task]]\nname = "e"\ncorpus = "sick"\nrelation = "relatedness"\n'
    )
    with pytest.raises(RecipeError) as caught:
        get_suite(path)
    found = [str(problem) for problem in caught.value.problems]
    assert len(found) == 5
    assert found[0].startswith(
        "bad.toml: task.0: relation 'similarity': the form is unknown. Write NAME:lo..hi"
    )
    assert "task.1: name either a file or a corpus" in found[1]
    assert "task.2.metrik: this is not a known key. Did you mean 'metric'?" in found[2]
    assert "task.3: metric 'kendall' is not one of pearson" in found[3]
    assert "task.4: corpus 'sick' needs a split, such as sick/test" in found[4]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("task = 3 = 4", "not valid TOML"),
        ("name = 'x'", "task: field required"),
        (None, "no such suite file"),
    ],
)
def test_suites_file_that_is_no_suite(tmp_path: Path, text: str | None, reason: str) -> None:
    path = tmp_path / "suite.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(RecipeError, match=reason):
        get_suite(path)


def test_suites_and_protocol_refuse_unknown_names() -> None:
    with pytest.raises(UsageError, match="'sts8' is not one of sts7"):
        get_suite("sts8")
    with pytest.raises(UsageError, match="different names"):
        Suite("twice", (Task("a"), Task("a")))
    with pytest.raises(UsageError, match="aggregation 'median' is not one of all, mean, wmean"):
        Protocol(aggregation="median")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="score source 'guess'"):
        Protocol(source="guess")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="metric 'kendall'"):
        Protocol(metric="kendall")


def test_suites_sts7_declares_the_seven_tasks() -> None:
    tasks = SUITES["sts7"].tasks
    assert [task.name for task in tasks] == ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]
    assert [task.relation_name for task in tasks] == ["similarity"] * 6 + ["relatedness"]
    assert [len(task.subsets) for task in tasks[:5] if isinstance(task.subsets, tuple)] == [5, 3, 6, 5, 5]


def test_suites_import_loads_nothing_heavy() -> None:
    code = (
        "import sys, likewise.evaluation\n"
        "heavy = {'torch', 'scipy', 'statsmodels', 'pydantic', 'pandas', 'pyarrow', 'datasets'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.realdata
def test_suites_sts7_on_real_data(data_dir: Path) -> None:
    def overlap(pairs: list[tuple[str, str]], relations: list[str]) -> np.ndarray:
        words = [(set(a.lower().split()), set(b.lower().split())) for a, b in pairs]
        return np.array([len(a & b) / len(a | b) for a, b in words])

    found = {
        how: run_suite("sts7", overlap, protocol=Protocol(aggregation=how), data_dir=data_dir)
        for how in ("all", "mean", "wmean")
    }
    assert [task.n for task in found["all"].tasks] == [3108, 1500, 3750, 3000, 1186, 1379, 4927]
    assert all(task.missing == 0 and task.interval is not None for task in found["all"].tasks)
    for name in ("STS-B", "SICK-R"):
        assert len({result[name].value for result in found.values()}) == 1
    assert len({result["STS12"].value for result in found.values()}) == 3
    assert found["all"].average == pytest.approx(np.mean([task.value for task in found["all"].tasks]))


@dataclass
class Model:
    """As much of a model of pairs, or of single texts, as is asked before anything is answered."""

    names: list[str]
    texts: frozenset[int] = frozenset({2})
    reads_labels: bool = False
    about: dict[str, object] = field(default_factory=dict)

    @property
    def relations(self):
        labels = {"entailment": ("no", "yes"), "cola": ("no", "yes")}
        return tuple(
            Relation.classes(name, labels[name]) if name in labels else Relation(name) for name in self.names
        )

    def sources(self, relation):
        return ("head", "cosine") if 2 in self.texts else ("head",)


def assigned(suite, names, source, **more):
    found = assign(suite, Model(names, **more), source)
    return found.suite, found.left_out


def test_suite_by_name_leaves_out_what_a_model_does_not_answer():
    suite = get_suite("relations")
    kept, others = assigned(suite, ["relatedness", "entailment"], "head")
    assert [task.name for task in kept.tasks] == ["SICK relatedness", "SICK entailment"]
    assert len(others) == 4
    kept, others = assigned(suite, ["similarity"], "cosine")
    assert others == ("SICK entailment",)  # a cosine is no label
    with pytest.raises(UsageError, match=r"asks for sim, rel, ma, pac, .*model answers similarity"):
        assigned(suite, ["similarity"], "head")
    assert assigned(get_suite("sts7"), ["anything"], "head") == (get_suite("sts7"), ())


def test_suite_paraphrase_declares_its_tasks_by_names_of_their_own() -> None:
    suite = get_suite("paraphrase")
    found = [(task.name, task.asked, task.metric, task.split, task.texts) for task in suite.tasks]
    assert found == [
        ("MRPC", "mrpc", "f1", "test", 2),
        ("STS-B", "stsb", "pearson", "test", 2),
        ("QQP", "qqp", "f1", "test", 2),
        ("MNLI", "mnli", "accuracy", "dev", 2),
        ("RTE", "rte", "accuracy", "dev", 2),
        ("SST-2", "sst2", "accuracy", "test", 1),
        ("CoLA in-domain", "cola", "matthews", "dev_in_domain", 1),
        ("CoLA out-of-domain", "cola", "matthews", "dev_out_of_domain", 1),
    ]
    assert suite.texts == 2
    assert get_suite("classification").texts == 1
    kept, others = assigned(suite, ["cola"], "head", texts=frozenset({1}))
    assert [task.name for task in kept.tasks] == ["CoLA in-domain", "CoLA out-of-domain"]
    assert (kept.texts, kept.by_name, len(others)) == (1, True, 6)
    kept, _ = assigned(suite, ["paraphrase"], "cosine")
    assert [task.name for task in kept.tasks] == ["STS-B"]
    with pytest.raises(
        UsageError,
        match=r"asks for mrpc, stsb, qqp, mnli, rte, sst2, cola, but this model answers paraphrase",
    ):
        assigned(suite, ["paraphrase"], "head")


@pytest.mark.parametrize("name", SUITES)
def test_suites_know_how_many_texts_their_corpora_hold(name: str) -> None:
    for task in get_suite(name).tasks:
        assert len(find_corpus(task.corpus).texts) == task.texts
        assert task.relation_name in [relation.name for relation in find_corpus(task.corpus).relations]


def test_suite_of_pairs_and_single_texts_runs_in_one_call(tmp_path: Path) -> None:
    (tmp_path / "same.csv").write_text("text_a,text_b,same\nOak.,Elm.,not_same\nOak.,An oak.,same\n")
    (tmp_path / "mood.csv").write_text("text,mood\nGlad.,up\nSad.,down\n")
    path = tmp_path / "mixed.toml"
    path.write_text(
        '[[task]]\nname = "same"\nfile = "same.csv"\nrelation = "same:not_same|same"\nmetric = "f1"\n'
        '[[task]]\nname = "mood"\nfile = "mood.csv"\nrelation = "mood:classes"\ntexts = 1\n'
        'metric = "accuracy"\n'
    )
    suite = get_suite(path)
    assert ([task.texts for task in suite.tasks], suite.texts) == ([2, 1], 2)
    asked: list[tuple[tuple[str, ...], str]] = []

    def score(rows: list[tuple[str, ...]], relations: list[str]) -> np.ndarray:
        asked.extend(zip(rows, relations, strict=True))
        return np.array(["same", "same", "up", "up"], dtype=object)

    result = run_suite(suite, score, protocol=PLAIN)
    assert asked[1:3] == [(("Oak.", "An oak."), "same"), (("Glad.",), "mood")]
    assert (result["same"].value, result["mood"].value) == (pytest.approx(200 / 3), 50)
    path.write_text(path.read_text().replace("texts = 1", "texts = 3"))
    with pytest.raises(RecipeError, match=r"task\.1\.texts"):
        get_suite(path)


@pytest.mark.realdata
def test_suite_paraphrase_on_real_data(data_dir: Path) -> None:
    suite = get_suite("paraphrase")
    labels = {task.asked: task.labels().labels for task in suite.tasks}

    def score(rows: list[tuple[str, ...]], relations: list[str]) -> np.ndarray:
        found: list[object] = [
            labels[name][-1] if len(texts[0]) % 2 and labels[name] else (labels[name] or [len(texts[0])])[0]
            for texts, name in zip(rows, relations, strict=True)
        ]
        answers = np.empty(len(found), dtype=object)
        answers[:] = found
        return answers

    result = run_suite(suite, score, protocol=PLAIN, data_dir=data_dir)
    assert [task.n for task in result.tasks] == [1725, 1379, 10000, 9815, 277, 1821, 527, 516]
    assert all(task.missing == 0 and task.interval is not None for task in result.tasks)
    assert 40 < result["QQP"].value < 60
    assert result.average is None


@pytest.mark.parametrize(
    ("header", "texts", "columns"),
    [("text,verdict", 1, ""), ("a,b,verdict", 2, ""), ("a,b,verdict", 1, 'text_a = "a"\ntexts = 1')],
)
def test_suite_file_holds_as_many_texts_as_its_columns_say(tmp_path, header, texts, columns) -> None:
    row = ",".join(["words"] * header.count(","))
    (tmp_path / "rows.csv").write_text(f"{header}\n{row},yes\nother {row},no\n")
    (tmp_path / "mine.toml").write_text(
        f'[[task]]\nname = "mine"\nfile = "rows.csv"\nrelation = "verdict:classes"\n{columns}\n'
    )
    [task] = get_suite(tmp_path / "mine.toml").with_default_metrics().tasks
    assert (task.texts, task.metric) == (texts, "accuracy")


def test_suite_default_metrics_are_the_relations_own() -> None:
    graded, named = Relation.graded("score", 0, 5), Relation.graded("closeness", 0, 5, metric="pearson")
    tasks = [Task("a", relation=graded), Task("b", relation=named), Task("c", relation=graded, metric="mae")]
    found = Suite("mine", (*tasks, Task("d", "sick", relation="entailment"))).with_default_metrics()
    assert [task.metric for task in found.tasks] == ["spearman", "pearson", "mae", "accuracy"]


def test_suite_asks_for_the_answer_unless_it_names_the_cosine():
    assert {name for name in SUITES if get_suite(name).source == "cosine"} == {"sts7", "language-pairs"}
    taught, raw = Model(["relatedness"]), Model(["similarity"], about={"raw": True})
    assert assign(get_suite("relations"), taught, "answer").source == "answer"
    assert assign(get_suite("relations"), raw, "answer").source == "cosine"


def test_suite_leaves_out_what_cannot_be_compared_and_says_why():
    pair = Task("a", "stsb", relation=Relation("similarity"), metric="accuracy")
    number = Task("b", "stsb", relation=Relation("similarity"), metric="spearman")
    other = Task("c", "stsb", relation=Relation("topic"), metric="spearman")
    found = assign(Suite("mine", (pair, number, other)), Model(["similarity"]), "answer")
    assert [task.name for task in found.suite.tasks] == ["b"]
    assert found.left_out == ("a", "c")
    assert found.notes[0].startswith("a is left out: accuracy compares labels")
    assert "it asks for 'topic', but the model answers similarity" in found.notes[1]
    scale = Task("d", "stsb", relation=Relation("similarity"), metric="mae")
    with pytest.raises(UsageError, match=r"which a cosine does not have\. Use source=.answer."):
        assign(Suite("mine", (scale,)), Model(["similarity"]), "cosine")
    unnamed = Task("e", "stsb", relation=Relation("similarity"))
    with pytest.raises(UsageError, match="which a cosine does not have"):
        assign(Suite("mine", (unnamed,)), Model(["similarity"]), "cosine", "mae")


def test_suite_leaves_out_what_is_rated_on_another_scale():
    error = Task("a", "stsb", relation=Relation.graded("similarity", 0, 5), metric="mae")
    rank = Task("b", "stsb", relation=Relation.graded("similarity", 0, 5), metric="spearman")
    found = assign(Suite("mine", (error, rank)), Model(["similarity"]), "answer")
    assert [task.name for task in found.suite.tasks] == ["b"]
    assert "it is rated on 0..5, but the model answers similarity on 0..1" in found.notes[0]

    class Ordered(Model):
        @property
        def relations(self):
            return (Relation.ordered("follows", ("no", "maybe", "yes")),)

    turned = Task(
        "c", "stsb", relation=Relation.ordered("follows", ("yes", "maybe", "no")), metric="spearman"
    )
    with pytest.raises(UsageError, match="its labels have the order"):
        assign(Suite("mine", (turned,)), Ordered(["follows"]), "answer")
