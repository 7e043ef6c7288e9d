"""What tasks give each other: every set of tasks trained, gains paired by seed, as tables and a heat map."""

from __future__ import annotations

import importlib.util
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import likewise
from likewise.errors import RecipeError
from likewise.experiments.advice import advise
from likewise.experiments.affinity import affinities, own_columns
from likewise.experiments.affinity_plot import draw_affinity
from likewise.experiments.affinity_tables import (
    affinity_lines,
    bold_gain,
    matrix_table,
    pairs_table,
    sets_table,
    shown_gain,
    together_table,
)
from likewise.experiments.parts import learnt, only, task_sets
from likewise.experiments.plan import ExperimentPlan
from likewise.experiments.rows import make_row, whole
from likewise.experiments.schema import read_experiment
from likewise.experiments.summary import ExperimentResult
from likewise.kinds.base import RULES
from likewise.recipes.reading import read_recipe

ROOT = Path(__file__).resolve().parents[1]
NAMES = {"books": "Books", "dvds": "DVDs", "kitchen": "Kitchen"}


def cell(seed, numbers, *, source="matcher", metric="accuracy", relation="sentiment"):
    """What a cell writes, as far as tables read it; `numbers` are by column."""
    tasks = [
        {"name": name, "value": value, "metric": metric, "relation": relation}
        for name, value in numbers.items()
    ]
    about = {"seed": seed, "dev": 0.5, "peak_memory_mib": None, "train_seconds": 1.0, "checks": {}}
    trained = {"stages": [{"seconds": 1.0, "steps": 3}], "recipe": {"stage": [{}]}}
    return {**about, **trained, "results": {source: {"tasks": tasks}}}


def rows_of_sets(sets, *, baseline=None, metric="accuracy", start=""):
    """Rows from {"books+dvds": {"books": (seed 1, seed 2, …)}}, and of a baseline of one model a task."""
    rows = []
    if baseline is not None:
        seeds = range(len(next(iter(baseline.values()))))
        runs = [[cell(s, {NAMES[t]: v[s]}, metric=metric) for t, v in baseline.items()] for s in seeds]
        rows.append(make_row(start, "single", {}, runs))
    for name, numbers in sets.items():
        tasks = tuple(name.split("+"))
        seeds = range(len(numbers[tasks[0]]))
        runs = [[cell(s, {NAMES[t]: numbers[t][s] for t in tasks}, metric=metric)] for s in seeds]
        title = f"texts: {' + '.join(tasks)}"
        rows.append(make_row(start, title, {}, runs, family="texts", tasks=tasks))
    return rows


TWO = {
    "books": {"books": (80.0, 81.0, 82.0)},
    "dvds": {"dvds": (70.0, 70.0, 71.0)},
    "books+dvds": {"books": (82.0, 83.5, 83.0), "dvds": (69.0, 71.0, 71.5)},
}
SINGLE = {"books": (78.0, 78.5, 80.0), "dvds": (68.0, 69.0, 69.5)}
# Numbers are 10 × task + what the others give, so that every mean is known.
GIVES = {"books": 1.0, "dvds": 2.0, "kitchen": 4.0}
BASES = {"books": 10.0, "dvds": 20.0, "kitchen": 30.0}


def three(noise=(0.0, 0.5, -0.5)):
    """Every set of three tasks; a task's number is its own plus what the others in the set give it."""
    sets = {}
    for size in (1, 2, 3):
        for tasks in itertools.combinations(NAMES, size):
            sets["+".join(tasks)] = {
                task: tuple(
                    BASES[task] + sum(GIVES[other] for other in tasks if other != task) + shake * size
                    for shake in noise
                )
                for task in tasks
            }
    return sets


def test_gain_is_paired_by_seed_with_interval_and_corrected_p():
    (report,) = affinities(rows_of_sets(TWO), "texts: books + dvds")
    assert report.tasks == ("books", "dvds")
    assert report.baseline == ""
    assert report.pairs == []
    gain = report.matrix[0][1]
    assert gain.values == pytest.approx((2.0, 2.5, 1.0))
    assert gain.mean == pytest.approx(5.5 / 3)
    half = stats.t.ppf(0.975, 2) * np.std([2.0, 2.5, 1.0], ddof=1) / np.sqrt(3)
    assert gain.interval == pytest.approx((5.5 / 3 - half, 5.5 / 3 + half))
    assert gain.p == pytest.approx(stats.ttest_rel((82.0, 83.5, 83.0), (80.0, 81.0, 82.0)).pvalue)
    other = report.matrix[1][0]
    assert other.values == pytest.approx((-1.0, 1.0, 0.5))
    # The smaller p is doubled, the larger stays: Holm over two cells.
    assert gain.p < other.p
    assert gain.p_holm == pytest.approx(2 * gain.p)
    assert other.p_holm == pytest.approx(other.p)
    assert report.matrix[0][0] is None
    # Unpaired, the same numbers would leave the interval of books over zero.
    assert gain.interval[0] < 0 < gain.interval[1]
    assert not gain.clear


def test_interval_without_zero_is_marked():
    clear = {**TWO, "books+dvds": {"books": (82.0, 83.1, 84.1), "dvds": (68.0, 68.1, 68.9)}}
    (report,) = affinities(rows_of_sets(clear), "")
    gain, loss = report.matrix[0][1], report.matrix[1][0]
    assert (gain.clear, loss.clear) == (True, True)
    assert (gain.p_holm < 0.05, loss.p_holm < 0.05) == (True, True)
    assert shown_gain(gain) == "+2.07 ± 0.14*†"
    assert bold_gain(loss) == "**-2.00 ± 0.25**†"
    header, rows = matrix_table(report)
    assert header == ("gain of row with column", "books", "dvds")
    assert rows[0] == ("books", "(81.00 ± 2.48)", "+2.07 ± 0.14*†")


def test_number_of_tasks_together_averages_the_sets_that_hold_a_task():
    (report,) = affinities(rows_of_sets(three()), "")
    one, two, all_three = report.together
    assert [level.number for level in report.together] == [1, 2, 3]
    assert one.numbers["dvds"].mean == pytest.approx(20.0)
    # dvds beside books gets 1, beside kitchen 4, beside both 5.
    assert two.numbers["dvds"].mean == pytest.approx(20.0 + 2.5)
    assert all_three.over_one["dvds"].mean == pytest.approx(5.0)
    assert two.over_one["dvds"].values == pytest.approx((2.5, 3.0, 2.0))
    average = (2 + 4 + 1 + 4 + 1 + 2) / 6
    assert two.over_one["average"].mean == pytest.approx(average)
    assert all_three.over_one["average"].mean == pytest.approx(2 * average)
    assert one.over_one == {}
    assert one.over_baseline == {}
    by_set = {one.tasks: one for one in report.sets}
    assert by_set["dvds", "kitchen"].gains["dvds"].mean == pytest.approx(4.0)
    assert by_set["books",].gains == {}
    assert [len(tasks) for tasks in by_set] == [1, 1, 1, 2, 2, 2, 3]
    matrix = [[None if gain is None else round(gain.mean, 6) for gain in row] for row in report.matrix]
    assert matrix == [[None, 2.0, 4.0], [1.0, None, 4.0], [1.0, 2.0, None]]


def test_gains_over_a_baseline_tell_what_label_texts_alone_give():
    (report,) = affinities(rows_of_sets(TWO, baseline=SINGLE), "single")
    assert report.baseline == "single"
    alone = report.together[0].over_baseline
    assert alone["books"].values == pytest.approx((2.0, 2.5, 2.0))
    assert alone["dvds"].values == pytest.approx((2.0, 1.0, 1.5))
    assert alone["average"].values == pytest.approx((2.0, 1.75, 1.75))
    assert report.baseline_numbers["average"].values == pytest.approx((73.0, 73.75, 74.75))
    pair = report.pairs[0][1]
    assert pair == report.pairs[1][0]
    assert pair.values == pytest.approx(((4.0 + 1.0) / 2, (5.0 + 2.0) / 2, (3.0 + 2.0) / 2))
    assert report.pairs[0][0].values == alone["books"].values
    # Three tests, each pair counted once: the smallest p is tripled.
    smallest = min((report.pairs[0][0], report.pairs[1][1], pair), key=lambda gain: gain.p)
    assert smallest.p_holm == pytest.approx(3 * smallest.p)
    header, rows = together_table(report)
    assert header == ("tasks in one model", "books", "dvds", "average")
    assert [row[0] for row in rows] == [
        "single",
        "1 task",
        "2 tasks",
        "2 tasks over one task",
        "1 task over single",
        "2 tasks over single",
    ]
    assert rows[4][1].startswith("+2.17 ± 0.72*")
    assert [row[0] for row in sets_table(report)[1]] == ["books", "dvds", "books + dvds"]
    assert pairs_table(report)[1][0][0] == "books"


def test_a_baseline_that_lacks_a_task_is_none():
    rows = rows_of_sets(TWO, baseline={"books": SINGLE["books"]})
    (report,) = affinities(rows, "single")
    assert report.baseline == ""
    assert report.together[0].over_baseline == {}


def test_a_metric_that_falls_when_things_improve_gains_by_falling():
    (report,) = affinities(rows_of_sets(TWO, metric="mse"), "")
    assert report.matrix[0][1].values == pytest.approx((-2.0, -2.5, -1.0))
    assert report.matrix[1][0].values == pytest.approx((1.0, -1.0, -0.5))
    assert report.together[1].over_one["average"].mean == pytest.approx(-(5.5 + 0.5) / 6)


def test_tasks_of_different_metrics_are_not_averaged():
    rows = rows_of_sets(TWO, baseline=SINGLE)
    for row in rows:
        if "DVDs" in row.metrics:
            row.metrics["DVDs"] = "pearson"
    (report,) = affinities(rows, "single")
    assert "average" not in report.together[0].numbers
    assert report.pairs == []
    assert together_table(report)[0] == ("tasks in one model", "books", "dvds")
    assert report.matrix[0][1].mean == pytest.approx(5.5 / 3)


def test_one_seed_gives_gains_without_interval_or_test():
    one = {name: {task: values[:1] for task, values in tasks.items()} for name, tasks in TWO.items()}
    (report,) = affinities(rows_of_sets(one), "")
    assert shown_gain(report.matrix[0][1]) == "+2.00"
    assert report.matrix[0][1].p_holm is None
    assert "(80.00)" in "\n".join(affinity_lines([report]))


def test_the_same_gain_in_every_seed_has_no_test_and_breaks_nothing():
    steady = {**TWO, "books+dvds": {"books": (81.0, 82.0, 83.0), "dvds": (69.0, 71.0, 71.5)}}
    (report,) = affinities(rows_of_sets(steady), "")
    gain, other = report.matrix[0][1], report.matrix[1][0]
    assert (gain.p, gain.p_holm) == (None, None)
    assert other.p_holm == pytest.approx(other.p)  # the only test there is


def test_columns_belong_to_the_task_whose_model_alone_answers_them():
    def alone(numbers, relations):
        runs = [[cell(1, numbers)]]
        row = make_row("", "x", {}, runs)
        row.relations.update(relations)
        return row

    found = own_columns({"books": alone({"Books": 1.0}, {}), "dvds": alone({"DVDs": 1.0, "Films": 1.0}, {})})
    assert found == {"books": ("Books",), "dvds": ("DVDs", "Films")}
    # By cosine every model answers every column: the gold's relation tells.
    every, golds = {"A": 1.0, "B": 2.0, "C": 3.0}, {"A": "sim", "B": "rel", "C": "other"}
    found = own_columns({"sim": alone(every, golds), "rel": alone(every, golds), "ma": alone(every, golds)})
    assert found == {"sim": ("A",), "rel": ("B",)}


def test_a_task_that_the_suite_does_not_measure_still_helps_others():
    rows = rows_of_sets(three())
    for row in rows:
        for store in (row.metrics, row.numbers):
            store.pop("Kitchen", None)
    (report,) = affinities(rows, "")
    assert list(report.metrics) == ["books", "dvds"]
    assert [gain and round(gain.mean, 6) for gain in report.matrix[0]] == [None, 2.0, 4.0]
    assert "average" in report.together[2].numbers


def result_of(rows, baseline):
    return ExperimentResult("e", "", "r", baseline, tuple(rows), [], {})


def test_averages_over_different_tasks_are_not_tested_against_each_other():
    rows = rows_of_sets(TWO, baseline=SINGLE)
    result = result_of(rows, "single")
    assert set(result.tests("average")) == {("", "texts: books + dvds")}
    assert set(result.tests("Books")) == {("", "texts: books"), ("", "texts: books + dvds")}


def test_advice_and_comparisons_in_text_are_about_all_tasks_together():
    rows = rows_of_sets(TWO, baseline=SINGLE)
    assert [row.setting for row in whole(rows)] == ["single", "texts: books + dvds"]
    joint = [row for row in rows if row.setting != "single"]
    for row in joint:
        object.__setattr__(row, "schedule", "multi-label")
    assert {advice.column for advice in advise(rows)} == {"Books", "DVDs"}


def test_report_is_in_text_markdown_and_json(tmp_path):
    result = result_of(rows_of_sets(three(), baseline={t: (8.0, 9.0, 8.5) for t in NAMES}), "single")
    text, page = result.to_text(), result.to_markdown()
    assert "texts: gains of tasks from each other, accuracy over the task alone" in text
    assert "gains in every set of tasks, accuracy over single" in text
    assert "| gain of row with column | books | dvds | kitchen |" in page
    assert "**+" in page
    document = json.loads(json.dumps(result.to_dict()))["affinity"][0]
    assert document["matrix"][1][2]["mean"] == pytest.approx(4.0)
    assert document["together"][2]["number"] == 3
    ordinary = result_of([make_row("", "x", {}, [[cell(1, {"A": 1.0})]])], "x")
    assert ordinary.to_dict()["affinity"] == []
    assert "gains of tasks" not in ordinary.to_text()


def test_heat_map_shows_every_task_set_and_number(tmp_path):
    rows = rows_of_sets(three(), baseline={t: (8.0, 9.0, 8.5) for t in NAMES}, start="BERT")
    reports = affinities([*rows, *rows_of_sets(TWO, start="LSTM")], "single")
    assert [report.start for report in reports] == ["BERT", "LSTM"]
    draw_affinity(reports, tmp_path / "plots" / "e.svg", title="mine")
    drawn = (tmp_path / "plots" / "e.svg").read_text()
    for text in ("books", "kitchen", "books + dvds + kitchen", "mine: BERT texts", "mine: LSTM texts"):
        assert f"<!-- {text} -->" in drawn
    gain = reports[0].sets[-1].gains["dvds"]
    half = (gain.interval[1] - gain.interval[0]) / 2
    assert f"<!-- {gain.mean:+.2f} ± {half:.2f} -->" in drawn
    draw_affinity(reports, tmp_path / "again.png", title="mine")
    assert (tmp_path / "again.png").stat().st_size > 10_000


def test_docs_tables_are_made_from_the_result_file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    spec = importlib.util.spec_from_file_location("tables", ROOT / "benchmarks" / "tables.py")
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    monkeypatch.setattr("tabling.common.RESULTS", tmp_path)
    result = result_of(rows_of_sets(TWO, baseline=SINGLE), "single")
    (tmp_path / "mine.json").write_text(json.dumps(result.to_dict()))
    matrix = tables.make("affinity:mine").splitlines()
    assert matrix[0] == "| gain of row with column | books | dvds |"
    assert matrix[2].startswith("| books | (81.00 ± 2.48) | +1.83 ± ")
    assert "| 1 task over single | **+2.17 ± 0.72**" in tables.make("affinity-together:mine")
    assert "| books + dvds | " in tables.make("affinity-sets:mine")
    assert tables.make("affinity-pairs:mine").count("\n") == 4
    assert tables.MARKED.search("<!-- table affinity-together:mine -->\n<!-- end -->")


def test_task_sets_are_all_sets_small_ones_first():
    recipe = read_recipe("labels-domain-lstm")
    sets = task_sets(recipe)
    assert [len(tasks) for tasks in sets] == [1] * 4 + [2] * 6 + [3] * 4 + [4]
    assert len(set(sets)) == 15
    assert sets[4] == ("books", "dvds")
    # All tasks are the recipe itself, down to what it leaves out: cells are named by it.
    assert only(recipe, sets[-1]) is recipe
    assert learnt(only(recipe, sets[4])) == ["books", "dvds"]


def test_too_many_or_too_few_tasks_are_refused_before_training():
    recipe = read_recipe("labels-domain-lstm")
    spec = recipe.relation["books"]
    many = recipe.model_copy(update={"relation": {f"task{n}": spec for n in range(7)}})
    with pytest.raises(RecipeError, match=r"with 7 relations would train 127 models per seed\. .* at most 6"):
        task_sets(many)
    with pytest.raises(RecipeError, match=r'so there are no parts to train\W+[Rr]emove each = "subset"'):
        task_sets(only(recipe, ["books"]))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("stages = 0", "with stages = 0 nothing is trained"),
        ('add = { task = "books", mode = "zero" }', "cannot be combined with add"),
        ('[[check]]\nname = "c"\nsource = "x.csv"\nrelation = "books"', "relations that they did not learn"),
    ],
)
def test_what_does_not_go_with_sets_is_refused_when_the_file_is_read(tmp_path, more, said):
    path = tmp_path / "e.toml"
    head = 'name = "e"\nrecipe = "labels-domain-lstm"\n[[setting]]\nname = "sets"\neach = "subset"\n'
    path.write_text(head)
    assert read_experiment(path).setting[0].each == "subset"
    path.write_text(head + more)
    with pytest.raises(RecipeError, match=rf"setting\.0\.each: .*{said}"):
        read_experiment(path)


def keys(file):
    plan = ExperimentPlan(read_experiment(file), "cpu", "fp32", None)
    return {cell.setting: cell.key for runs in plan.final_cells() for run in runs for cell in run}


def test_sets_share_cells_with_single_tasks_and_with_the_whole_recipe():
    folder = ROOT / "benchmarks" / "experiments"
    sets, others = keys(folder / "labels-affinity.toml"), keys(folder / "labels-domain-lstm.toml")
    assert len(sets) == 4 + 15
    assert sets["label texts: books"] == others["label texts, one task (books)"]
    assert sets["label texts: books + dvds + electronics + kitchen"] == others["Model-II"]
    assert sets["single (kitchen)"] == others["single (kitchen)"]
    shared = set(sets.values()) & set(others.values())
    assert len(shared) == 4 + 4 + 1
    assert len(set(sets.values())) == 19


def test_every_set_chooses_its_own_grid_point_and_the_widest_is_the_baseline(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(
        'name = "e"\nrecipe = "labels-domain-lstm"\nsuite = "classification"\nseeds = [5]\n'
        '[grid]\n"stage.0.learning_rate" = [1e-3, 1e-2]\n'
        '[[setting]]\nname = "sets"\neach = "subset"\nset = { "stage.0.task" = ["books", "dvds"] }\n'
    )
    plan = ExperimentPlan(read_experiment(path), "cpu", "fp32", None)
    assert len(plan.grid_cells()) == 3 * 2

    def read(cell):
        tasks, rate = cell.recipe["stage"][0]["task"], cell.recipe["stage"][0]["learning_rate"]
        return {"dev": rate if len(tasks) == 1 else -rate}

    plan.choose(read)
    rates = [run[0].recipe["stage"][0]["learning_rate"] for (run,) in plan.final_cells()]
    assert rates == [1e-2, 1e-2, 1e-3]
    assert plan._baseline() == "sets: books + dvds"


WORDS = {
    "mood": {"new": "sings", "old": "sleeps"},
    "place": {"kitchen": "cooks soup", "park": "runs"},
}


@pytest.fixture
def labelled(tmp_path, tiny_encoder, monkeypatch):
    """Two labelled files, a recipe, a suite and an experiment over every set of them; two seeds."""
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    data, asked, relations = [], [], []
    for task, kinds in WORDS.items():
        lines = [
            f"{subject} {kinds[label]} {number},{label}"
            for number in range(4)
            for subject in ("the man", "a woman", "one child")
            for label in kinds
        ]
        (tmp_path / f"{task}.csv").write_text(f"text,{task}\n" + "\n".join(lines) + "\n")
        data.append(f'{{ source = "{tmp_path}/{task}.csv", columns = {{ {task} = "{task}" }} }}')
        labels = list(kinds)
        relations.append(f'[relation.{task}]\nkind = "classes"\nlabels = {json.dumps(labels)}\n')
        asked.append(
            f'[[task]]\nname = "{task.title()} test"\nfile = "{tmp_path}/{task}.csv"\nmetric = "accuracy"\n'
            f'relation = "{task}:{"|".join(labels)}"\n'
        )
    sources = ", ".join(data)
    (tmp_path / "suite.toml").write_text('name = "mine"\ntexts = 1\nby_name = true\n' + "".join(asked))
    (tmp_path / "recipe.toml").write_text(
        f'name = "tiny"\nmethod = "labels"\nencoder = {{ name = "{tiny_encoder}", normalise = false }}\n'
        + "".join(relations)
        + f'[[stage]]\nkind = "labels"\ndata = [{sources}]\ndev = [{sources}]\nbatch_size = 8\nepochs = 3\n'
        "learning_rate = 2e-3\n"
    )
    (tmp_path / "affinity.toml").write_text(
        f'name = "affinity"\nrecipe = "{tmp_path}/recipe.toml"\nsuite = "{tmp_path}/suite.toml"\n'
        'sources = ["matcher"]\nseeds = [1, 2]\nbaseline = "single"\n'
        '[[setting]]\nname = "single"\neach = "relation"\nset = { "stage.0.matcher" = "one-hot" }\n'
        '[[setting]]\nname = "texts"\neach = "subset"\n'
    )
    return tmp_path


# Two seeds of a tiny task may reach the same accuracy; scipy then warns of Welch's test beside it.
@pytest.mark.filterwarnings("ignore:Precision loss")
@pytest.mark.slow
def test_label_tasks_are_trained_in_every_set_and_reported_on_the_command_line(labelled, here):
    arguments = ("--summary", "out", "--report", "out", "--device", "cpu")
    code, said = here("experiment", "affinity.toml", "--output", "cells", *arguments)
    assert code == 0, said
    assert "texts: gains of tasks from each other" in said
    assert "out/affinity-affinity.svg" in said
    assert (labelled / "out" / "affinity-affinity.svg").read_text().startswith("<?xml")
    assert "| gain of row with column | mood | place |" in (labelled / "out" / "affinity.md").read_text()
    cells = [json.loads(path.read_text()) for path in (labelled / "cells").glob(f"v{RULES}-tiny-*.json")]
    assert len(cells) == 2 * (2 + 3)
    trained = {(c["setting"], c["seed"]): c for c in cells}
    assert set(trained["texts: mood", 1]["recipe"]["relation"]) == {"mood"}
    (report,) = json.loads((labelled / "out" / "affinity.json").read_text())["affinity"]

    def accuracy(setting, seed, name):
        tasks = trained[setting, seed]["results"]["matcher"]["tasks"]
        return next(task["value"] for task in tasks if task["name"] == f"{name.title()} test")

    for row, name in enumerate(WORDS):
        alone = [accuracy(f"texts: {name}", s, name) for s in (1, 2)]
        both = [accuracy("texts: mood + place", s, name) for s in (1, 2)]
        assert report["matrix"][row][1 - row]["values"] == pytest.approx(np.subtract(both, alone))
        base = [accuracy(f"single ({name})", s, name) for s in (1, 2)]
        over = report["together"][0]["over_baseline"][name]["values"]
        assert over == pytest.approx(np.subtract(alone, base))
    # The same trainings under other names are not run again.
    text = (labelled / "affinity.toml").read_text()
    alone = text.replace('name = "texts"\neach = "subset"', 'name = "alone"\neach = "relation"')
    (labelled / "other.toml").write_text(alone + '[[setting]]\nname = "all"\n')
    told = []
    likewise.experiment(labelled / "other.toml", labelled / "cells", device="cpu", tell=told.append)
    assert told == []


def test_relations_of_pairs_are_trained_in_every_set(tmp_path, tiny_encoder, tiny_pairs, monkeypatch):
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    scales = {"similarity": "0..5", "topic": "-2..2"}
    rated = [line for line in tiny_pairs.read_text().splitlines() if line.split(",")[3]]  # both relations
    (tmp_path / "rated.csv").write_text("\n".join(rated) + "\n")
    (tmp_path / "suite.toml").write_text(
        'name = "mine"\nby_name = true\n'
        + "".join(
            f'[[task]]\nname = "T {name}"\nfile = "{tmp_path}/rated.csv"\nrelation = "{name}:{scale}"\n'
            for name, scale in scales.items()
        )
    )
    (tmp_path / "recipe.toml").write_text(
        f'name = "small"\nencoder = "{tiny_encoder}"\n[relation.similarity]\n'
        "[relation.topic]\nlo = -2\nhi = 2\n"
        f'[[stage]]\ndata = [{{ source = "{tiny_pairs}" }}]\ndev_share = 0.3\nmax_steps = 2\nbatch_size = 8\n'
        "objective = ["
        + ", ".join(
            f'{{ relation = "{name}", head = "distribution", loss = "kl_grid", '
            f'pairing = ["prod", "absdiff"] }}'
            for name in scales
        )
        + "]\n"
    )
    path = tmp_path / "e.toml"
    path.write_text(
        f'name = "e"\nrecipe = "{tmp_path}/recipe.toml"\nsuite = "{tmp_path}/suite.toml"\n'
        'sources = ["head"]\nseeds = [1, 2]\n[[setting]]\nname = "sets"\neach = "subset"\n'
    )
    result = likewise.experiment(path, tmp_path / "out", device="cpu")
    assert [row.setting for row in result.rows] == [
        "sets: similarity",
        "sets: topic",
        "sets: similarity + topic",
    ]
    assert [list(row.metrics) for row in result.rows] == [
        ["T similarity"],
        ["T topic"],
        ["T similarity", "T topic"],
    ]
    assert result.baseline == "sets: similarity + topic"
    (report,) = result.affinity()
    assert report.metrics == {"similarity": "spearman", "topic": "spearman"}
    rows = {row.setting: row for row in result.rows}
    joint, alone = (rows[f"sets: {name}"].numbers["T topic"] for name in ("similarity + topic", "topic"))
    assert report.matrix[1][0].values == pytest.approx(np.subtract(joint, alone))
    # How relations hang together is told of the model of both, not of the first set.
    assert [related.names for related in result.related] == [("T similarity", "T topic")]
