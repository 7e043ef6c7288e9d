"""Experiments: settings × seeds, a grid on dev, cells that are not run twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save

import likewise
from likewise.errors import EvaluationError, RecipeError
from likewise.experiments import run_experiments
from likewise.experiments.schema import read_experiment
from likewise.kinds.base import RULES
from tests import forks


@pytest.fixture
def files(tmp_path, tiny_encoder, tiny_pairs, monkeypatch):
    """A small experiment: recipe, suite and experiment file."""
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    (tmp_path / "suite.toml").write_text(
        f'name = "mine"\n[[task]]\nname = "pairs"\nfile = "{tiny_pairs}"\nrelation = "similarity:0..5"\n'
    )
    (tmp_path / "recipe.toml").write_text(
        f"""
name = "small"
encoder = "{tiny_encoder}"
[relation.similarity]
[[stage]]
data = [{{ source = "{tiny_pairs}" }}]
objective = [{{ relation = "similarity", head = "cosine", loss = "mse" }}]
max_steps = 2
batch_size = 8
"""
    )
    path = tmp_path / "experiment.toml"
    path.write_text(
        f"""
name = "small"
recipe = "{tmp_path / "recipe.toml"}"
suite = "{tmp_path / "suite.toml"}"
seeds = [1, 2]
baseline = "MSE"
[grid]
"stage.0.learning_rate" = [1e-5, 1e-3]
[[setting]]
name = "MSE"
[[setting]]
name = "Pearson"
set = {{ "stage.0.objective.0.loss" = "pearson" }}
"""
    )
    return path


def test_experiment_runs_the_grid_on_dev_and_final_cells_on_test(files, tmp_path):
    told = []
    result = likewise.experiment(files, tmp_path / "out", device="cpu", tell=told.append)
    assert len(told) == 4 + 4  # two settings × two rates on one seed, then two settings × two seeds
    assert [row.setting for row in result.rows] == ["MSE", "Pearson"]
    assert all(len(row.numbers["average"]) == 2 for row in result.rows)
    assert len(result.grid) == 4
    for row in result.rows:
        tried = [entry for entry in result.grid if entry["setting"] == row.setting]
        assert row.overrides == max(tried, key=lambda entry: entry["dev"][0])["point"]
    grid_cells = [json.loads(f.read_text()) for f in (tmp_path / "out").glob("*.json")]
    assert sum("results" not in cell for cell in grid_cells) == 4  # never measured on test data
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 4
    assert "p: Welch's t-test against MSE" in result.to_text()
    assert result.to_dict()["settings"][1]["interval"]["average"]
    arrays = np.load(next((tmp_path / "out").glob(f"v{RULES}-small-*.npz")), allow_pickle=False)
    assert arrays["answer/pairs"].shape == (40,)


def test_experiment_cells_that_are_done_are_not_run_again(files, tmp_path):
    first = likewise.experiment(files, tmp_path / "out", device="cpu")
    told = []
    again = likewise.experiment(files, tmp_path / "out", device="cpu", tell=told.append)
    assert told == []
    assert again.to_dict() == first.to_dict()
    sorted((tmp_path / "out").glob("*.json"))[0].unlink()
    likewise.experiment(files, tmp_path / "out", device="cpu", tell=told.append)
    assert len(told) == 1


def test_experiment_cell_changes_with_the_recipes_content(files, tmp_path):
    likewise.experiment(files, tmp_path / "out", device="cpu")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("batch_size = 8", "batch_size = 4"))
    told = []
    likewise.experiment(files, tmp_path / "out", device="cpu", tell=told.append)
    assert len(told) == 8


def test_experiment_does_not_mind_a_recipe_that_is_edited_while_it_runs(files, tmp_path):
    recipe = tmp_path / "recipe.toml"
    edited = recipe.read_text().replace("max_steps = 2", "max_steps = 3")
    result = likewise.experiment(
        files, tmp_path / "out", device="cpu", tell=lambda line: recipe.write_text(edited)
    )
    assert {row.steps for row in result.rows} == {2}


def test_experiment_cell_that_does_not_fit_the_gpu_says_what_to_do(files, tmp_path, monkeypatch):
    import torch

    def full(*arguments, **options):
        raise torch.OutOfMemoryError("CUDA out of memory")

    # Not run_recipe itself: whoever is first imported meanwhile would keep the name for good.
    monkeypatch.setattr("likewise.recipes.run._run_in", full)
    with pytest.raises(EvaluationError, match=r"no memory left\. Run fewer trainings side by side"):
        likewise.experiment(files, tmp_path / "out", device="cpu")


def test_experiments_share_the_trainings_that_are_the_same(files, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(
        files.read_text()
        .replace('name = "MSE"', 'name = "another name"')
        .replace("seeds = [1, 2]", "seeds = [1]")
        .replace('baseline = "MSE"', "")
    )
    told = []
    first, second = run_experiments([files, other], tmp_path / "out", device="cpu", tell=told.append)
    assert len(told) == 8
    assert second.rows[0].setting == "another name"
    assert second.rows[0].numbers["average"] == first.rows[0].numbers["average"][:1]


@pytest.mark.slow
def test_experiment_workers_give_the_same_numbers(files, tmp_path):
    one = likewise.experiment(files, tmp_path / "one", device="cpu")
    two = likewise.experiment(files, tmp_path / "two", device="cpu", workers=2)
    for first, second in zip(one.rows, two.rows, strict=True):
        assert first.numbers["average"] == pytest.approx(second.numbers["average"], abs=1e-4)


def test_experiment_file_mistakes_are_named(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text('name = "x"\nrecipe = "similarity"\nseedz = [1]\n[[setting]]\nname = "a"\n')
    with pytest.raises(RecipeError, match="seedz"):
        read_experiment(path)
    path.write_text('name = "x"\nrecipe = "similarity"\nbaseline = "b"\n[[setting]]\nname = "a"\n')
    with pytest.raises(RecipeError, match=r"'b' is not a setting \(a\)"):
        read_experiment(path)


FILES = sorted((Path(__file__).resolve().parents[1] / "benchmarks" / "experiments").glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_experiment_files_of_the_repository_build(file):
    from likewise.kinds.building import build_objectives
    from likewise.recipes.reading import read_recipe

    assert len(FILES) >= 11
    plan = read_experiment(file)
    assert plan.name == file.stem
    for start in plan.start:
        for setting in plan.setting:
            for point in plan.points(setting):
                changes = {**plan.base, **start.set, **setting.set, **point}
                recipe = read_recipe(setting.recipe or plan.recipe, overrides=changes)
                for number, stage in enumerate(recipe.stage):
                    assert stage.kind != "pairs" or build_objectives(recipe, number, stage.objective)


def test_experiment_goes_on_past_a_failing_cell_and_names_it(files, tmp_path):
    text = files.read_text()
    files.write_text(
        text.replace(
            'set = { "stage.0.objective.0.loss" = "pearson" }', 'set = { "encoder" = "no-such-folder/x/y" }'
        )
    )
    told = []
    with pytest.raises(EvaluationError, match=r"2 of 4 runs failed:\nPearson seed 1: .*no-such-folder"):
        likewise.experiment(files, tmp_path / "out", device="cpu", tell=told.append)
    assert sum(line.startswith("FAILED Pearson") for line in told) == 2
    assert len(list((tmp_path / "out").glob("*.json"))) == 2  # the other setting's cells are there


def test_experiment_class_head_is_judged_by_cosine_and_accuracy_alone(tmp_path, tiny_encoder, monkeypatch):
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    rows = "".join(f"the cat {i},a dog {i},{('no', 'yes')[i % 2]}\n" for i in range(16))
    (tmp_path / "pairs.csv").write_text(f"text_a,text_b,follows\n{rows}")
    numbers = "".join(
        f"the {animal} {i},a dog {i},{i % 6}\n" for i, animal in enumerate(("cat", "dog", "man") * 5)
    )
    (tmp_path / "rated.csv").write_text(f"text_a,text_b,similarity\n{numbers}")
    (tmp_path / "suite.toml").write_text(
        f'name = "s"\n[[task]]\nname = "t"\nfile = "{tmp_path}/rated.csv"\nrelation = "similarity:0..5"\n'
    )
    (tmp_path / "recipe.toml").write_text(
        f"""
name = "classes"
encoder = "{tiny_encoder}"
[relation.follows]
kind = "ordered"
labels = ["no", "yes"]
[[stage]]
data = [{{ source = "{tmp_path}/pairs.csv" }}]
objective = [{{ relation = "follows", head = "classes", loss = "cross_entropy" }}]
dev_share = 0.4
max_steps = 1
batch_size = 8
"""
    )
    path = tmp_path / "e.toml"
    path.write_text(
        f"""
name = "e"
recipe = "{tmp_path}/recipe.toml"
suite = "{tmp_path}/suite.toml"
seeds = [1]
sources = ["cosine", "head"]
[[setting]]
name = "cross-entropy"
"""
    )
    row = likewise.experiment(path, tmp_path / "out", device="cpu").rows[0]
    assert "average" in row.numbers
    assert "head average" not in row.numbers


@pytest.fixture
def relations(tmp_path, tiny_encoder, tiny_pairs, monkeypatch):
    """An experiment over two graded relations and one of classes: joint, in turns, and one by one."""
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    tasks = {"similarity": "0..5", "topic": "-2..2", "entailment": "contradiction|neutral|entailment"}
    metrics = {"similarity": "spearman", "topic": "spearman", "entailment": "accuracy"}
    (tmp_path / "suite.toml").write_text(
        'name = "mine"\nby_name = true\n'
        + "".join(
            f'[[task]]\nname = "{name}"\nfile = "{tiny_pairs}"\nrelation = "{name}:{scale}"\n'
            f'metric = "{metrics[name]}"\n'
            for name, scale in tasks.items()
        )
    )
    (tmp_path / "recipe.toml").write_text(
        f"""
name = "small"
encoder = "{tiny_encoder}"
[relation.similarity]
[relation.topic]
lo = -2
hi = 2
[relation.entailment]
kind = "classes"
labels = ["contradiction", "neutral", "entailment"]
[[stage]]
data = [{{ source = "{tiny_pairs}" }}]
dev_share = 0.3
max_steps = 3
batch_size = 8
objective = [
  {{ relation = "similarity", head = "distribution", loss = "kl_grid", pairing = ["prod", "absdiff"] }},
  {{ relation = "topic", head = "distribution", loss = "kl_grid", pairing = ["prod", "absdiff"] }},
  {{ relation = "entailment", head = "classes", loss = "cross_entropy", pairing = ["prod"], weight = 2.0 }},
]
"""
    )
    path = tmp_path / "experiment.toml"
    path.write_text(
        f"""
name = "small"
recipe = "{tmp_path / "recipe.toml"}"
suite = "{tmp_path / "suite.toml"}"
sources = ["head"]
seeds = [1, 2, 3]
baseline = "multi-label"
[[setting]]
name = "multi-label"
[[setting]]
name = "multi-task"
set = {{ "stage.0.schedule" = "multi-task" }}
[[setting]]
name = "single"
each = "relation"
"""
    )
    return path


def test_experiment_single_trains_one_model_per_relation(relations, tmp_path):
    told = []
    result = likewise.experiment(relations, tmp_path / "out", device="cpu", tell=told.append)
    assert len(told) == 3 + 3 + 9
    columns = ["similarity", "topic", "entailment"]
    assert [list(row.numbers) for row in result.rows] == [columns] * 3
    single = [json.loads(f.read_text()) for f in (tmp_path / "out").glob("*.json")]
    single = [cell for cell in single if cell["setting"].startswith("single")]
    assert {tuple(cell["recipe"]["relation"]) for cell in single} == {
        ("similarity",),
        ("topic",),
        ("entailment",),
    }
    assert {cell["recipe"]["stage"][0]["schedule"] for cell in single} == {"single"}
    # A weight is a share against other relations: alone there are none.
    assert {cell["recipe"]["stage"][0]["objective"][0]["weight"] for cell in single} == {1.0}


@pytest.mark.slow
def test_experiment_compares_columns_advises_and_tells_the_cost(relations, tmp_path):
    result = likewise.experiment(relations, tmp_path / "out", device="cpu")
    text, document = result.to_text(), result.to_dict()
    assert {c["setting"] for c in document["comparisons"]} == {"multi-task", "single"}
    assert {c["column"] for c in document["advice"]} == {"similarity", "topic", "entailment"}
    cost = {entry["setting"]: entry for entry in document["costs"]}
    assert (cost["single"]["models"], cost["multi-label"]["models"]) == (3, 1)
    assert cost["single"]["ratio"] == pytest.approx(3.0)
    assert "advice:" in text
    assert "two-sided Student's t-test, α .05" in text
    page = result.to_markdown()
    assert "| baseline minus |" in page
    assert page.endswith("```")
    assert "advice:" in page


def row(setting, numbers, *, models=1, schedule="multi-label", metric="spearman"):
    """A row made of numbers alone."""
    from likewise.experiments.rows import ResultRow

    seeds = tuple(range(len(next(iter(numbers.values())))))
    return ResultRow(
        "", setting, {}, seeds, (0.5,) * len(seeds), numbers, (1.0,) * len(seeds), (None,) * len(seeds),
        dict.fromkeys(numbers, metric), schedule, models, (float(models),) * len(seeds), 10,
    )  # fmt: skip


def test_advice_follows_the_test_behind_it():
    from likewise.experiments.advice import advise
    from likewise.experiments.compare import compare, paper_table

    joint = {"a": (80.0, 80.2, 80.4), "b": (70.0, 70.2, 70.4), "c": (60.0, 61.0, 62.0)}
    alone = {"a": (70.0, 70.2, 70.4), "b": (75.0, 75.2, 75.4), "c": (60.1, 61.1, 62.0)}
    rows = [row("joint", joint), row("alone", alone, models=3, schedule="single")]
    chosen = [("a", "joint"), ("b", "single"), ("c", "cannot tell")]
    assert [(a.column, a.choice) for a in advise(rows)] == chosen
    assert (
        advise(rows)[2].reason
        == "a loss of more than 0.5 points is not ruled out; that would take about 41 seeds"
    )
    # The interval of c is −2.3 to 2.3: it leaves out a loss of 3 points.
    assert advise(rows, margin=3.0)[2].reason == "loses less than 3 points and needs one model instead of 3"
    header, cells = paper_table(rows, "joint")
    assert header == ("setting", "a", "b", "c")
    assert cells == [("joint", ".802", ".702", ".610"), ("alone", ".702↑", ".752↓", ".611")]
    first = compare(rows, "joint")[0]
    assert first.difference == pytest.approx(10.0)
    assert first.interval[0] < 10.0 < first.interval[1]
    assert first.p < first.p_holm < 0.05


def test_advice_says_so_where_every_seed_gives_the_same_number():
    """As it is where no step beats the starting model, which is kept."""
    from likewise.experiments.advice import advise

    rows = [row("joint", {"a": (80.0,) * 3}), row("alone", {"a": (80.0,) * 3}, models=2, schedule="single")]
    [advice] = advise(rows)
    assert advice.choice == "cannot tell"
    assert "every seed gives the same number" in str(advice)


def test_advice_needs_proof_that_nothing_is_lost():
    from likewise.experiments.advice import advise

    # Alone is better by one standard deviation, and three seeds rarely show it: that is no reason for joint.
    rng, said = np.random.default_rng(3), []
    for _ in range(60):
        joint, alone = (tuple(rng.normal(mean, 1.0, 3)) for mean in (80.0, 81.0))
        rows = [row("joint", {"a": joint}), row("alone", {"a": alone}, models=2, schedule="single")]
        said += [advice.choice for advice in advise(rows)]
    assert said.count("joint") <= 3
    assert said.count("cannot tell") >= 45


def test_advice_on_errors_counts_a_fall_as_a_gain():
    from likewise.experiments.advice import advise

    joint, alone = {"a": (0.200, 0.201, 0.202)}, {"a": (0.300, 0.301, 0.302)}
    rows = [row("joint", joint, metric="mse"), row("alone", alone, models=2, schedule="single", metric="mse")]
    assert [(a.choice, a.reason) for a in advise(rows)] == [("joint", "better when learnt with the others")]
    turned = [
        row("joint", alone, metric="mse"),
        row("alone", joint, models=2, schedule="single", metric="mse"),
    ]
    assert [a.choice for a in advise(turned)] == ["single"]
    near = {"a": (0.2001, 0.2011, 0.2021)}
    rows = [row("joint", near, metric="mse"), row("alone", joint, models=2, schedule="single", metric="mse")]
    assert "% of the error is not ruled out" in advise(rows)[0].reason


def test_related_report_tells_what_is_learnt_from_what():
    from likewise.experiments.related import relate

    a = np.arange(6, dtype=np.float32)
    b = a[::-1].copy()

    def cell(**answers):
        tasks = [{"name": name, "pairs": "same"} for name in answers]
        kept = {f"head/{name}": value for name, value in answers.items()}
        return {"results": {"head": {"tasks": tasks}}}, kept | {
            f"gold/{name}": {"a": a, "b": b}[name] for name in answers
        }

    (report,) = relate("MiniLM", [cell(a=a, b=a)], [cell(a=a), cell(b=b)])
    assert report.names == ("a", "b")
    assert report.gold == [[1.0, -1.0], [-1.0, 1.0]]
    assert report.joint == [[1.0, 1.0], [1.0, 1.0]]  # the joint model does not tell them apart
    assert report.learnt_from == [[1.0, -1.0], [-1.0, 1.0]]
    assert any("answers after training on row, ratings of column" in line for line in report.lines())
    (alone,) = relate("", [cell(a=a, b=np.zeros(6, dtype=np.float32))], [])
    assert alone.learnt_from is None
    assert alone.joint[0][1] is None  # a constant has no rank


def test_plot_is_written_with_every_setting_and_column(tmp_path):
    from likewise.experiments.plot import draw
    from likewise.experiments.summary import ExperimentResult

    numbers = {name: (70.0, 71.0, 72.0) for name in ("one", "two", "three", "four", "five")}
    rows = (row("joint", numbers), row("alone", numbers, models=2))
    draw(ExperimentResult("e", "", "r", "joint", rows, [], {}), tmp_path / "plots" / "e.svg")
    drawn = (tmp_path / "plots" / "e.svg").read_text()
    assert drawn.startswith("<?xml")
    assert all(f"<!-- {word} -->" in drawn for word in ("joint", "alone", "five"))


def test_workers_end_when_the_experiment_is_killed():
    """A killed experiment leaves no process that goes on computing for nobody."""
    program = (
        "import multiprocessing, os, time\n"
        "from likewise.experiments.runner import end_with\n"
        "def work(parent):\n"
        "    end_with(parent)\n"
        "    print(os.getpid(), flush=True)\n"
        "    time.sleep(60)\n"
        "if __name__ == '__main__':\n"
        "    multiprocessing.get_context('fork').Process(target=work, args=(os.getpid(),)).start()\n"
        "    time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    deadline = time.monotonic() + 30
    while is_running(worker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not is_running(worker)


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def lone(files, tmp_path, tiny_encoder, tiny_pairs):
    """One setting with one seed, over an encoder and ratings that may be changed."""
    shutil.copytree(tiny_encoder, tmp_path / "encoder")
    shutil.copy(tiny_pairs, tmp_path / "pairs.csv")
    for name in ("recipe.toml", "suite.toml"):
        text = (tmp_path / name).read_text()
        text = text.replace(str(tiny_encoder), str(tmp_path / "encoder"))
        (tmp_path / name).write_text(text.replace(str(tiny_pairs), str(tmp_path / "pairs.csv")))
    text = files.read_text().replace("seeds = [1, 2]", "seeds = [1]").partition("[grid]")[0]
    files.write_text(text + '[[setting]]\nname = "MSE"\n')
    return files


def run(lone, tmp_path):
    told = []
    result = likewise.experiment(lone, tmp_path / "out", device="cpu", tell=told.append)
    return result, told


def rewritten(path, content):
    """Other content in a file of the same size and time."""
    before = path.stat()
    assert len(content) == before.st_size
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def another_encoder(folder):
    """Other weights in a file of the same size and time."""
    path = next(folder.rglob("model.safetensors"))
    rng = np.random.default_rng(1)
    tensors = {name: value + rng.normal(size=value.shape) for name, value in load_file(path).items()}
    metadata = {"format": "pt"}
    rewritten(path, save({name: value.astype("float32") for name, value in tensors.items()}, metadata))


def another_tokenizer(folder):
    path = next(folder.rglob("tokenizer.json"))
    rewritten(
        path,
        path.read_bytes().replace(b'"dog"', b'"tmp"').replace(b'"cat"', b'"dog"').replace(b'"tmp"', b'"cat"'),
    )


def other_ratings(path):
    lines = path.read_text().splitlines()
    first, last = lines[1].split(","), lines[-1].split(",")
    assert len(first[2]) == len(last[2])
    assert first[2] != last[2]
    first[2], last[2] = last[2], first[2]
    rewritten(path, "\r\n".join([lines[0], ",".join(first), *lines[2:-1], ",".join(last), ""]).encode())


@pytest.mark.parametrize("changed", ["encoder", "tokenizer", "ratings"])
def test_cells_of_other_files_of_the_same_size_and_time_are_trained_again(lone, tmp_path, changed):
    first, _ = run(lone, tmp_path)
    assert run(lone, tmp_path)[1] == []
    if changed == "ratings":
        other_ratings(tmp_path / "pairs.csv")
    else:
        (another_encoder if changed == "encoder" else another_tokenizer)(tmp_path / "encoder")
    again, told = run(lone, tmp_path)
    assert len(told) == 1
    assert again.rows[0].numbers != first.rows[0].numbers


def test_cells_change_with_a_corpus_behind_a_name(lone, tmp_path, monkeypatch):
    """A corpus by name is a file in the data folder: other rows there are other data."""
    from likewise.experiments.plan import ExperimentPlan

    (tmp_path / "data").mkdir()
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(recipe.read_text().replace(str(tmp_path / "pairs.csv"), "stsb/train"))

    def key():
        plan = ExperimentPlan(read_experiment(lone), "cpu", "fp32", str(tmp_path / "data"))
        [[[cell]]] = plan.final_cells()
        return cell.key

    none = key()
    from likewise.data.catalogue import find_corpus

    file = tmp_path / "data" / find_corpus("stsb").find_split("train").file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"one")
    one = key()
    rewritten(file, b"two")
    assert len({none, one, key()}) == 3


def test_names_in_a_folder_count_and_its_place_does_not(tmp_path):
    """In a folder of data, names decide which files are read and as what."""
    from likewise.recipes.contents import digest_files, source_files

    def digest(folder):
        return digest_files(source_files([str(folder)])[str(folder)], {}, name=str(folder))

    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        for name in ("a.csv", "b.csv"):
            (tmp_path / place / name).write_text(f"text_a,text_b\n{name},y\n", encoding="utf8")
    before = digest(tmp_path / "one")
    assert digest(tmp_path / "two") == before
    (tmp_path / "one" / "b.csv").rename(tmp_path / "one" / "b_test.csv")
    assert digest(tmp_path / "one") != before
    (tmp_path / "one" / "b_test.csv").unlink()
    alone = digest(tmp_path / "one")
    (tmp_path / "one" / "part").mkdir()
    (tmp_path / "one" / "a.csv").rename(tmp_path / "one" / "part" / "a.csv")
    assert digest(tmp_path / "one") != alone
    (tmp_path / "one" / "part").rename(tmp_path / "one" / ".part")
    assert len({alone, digest(tmp_path / "one"), before}) == 3


def test_experiment_measures_a_suite_over_a_folder(files, tmp_path, tiny_pairs):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "pairs.csv").write_bytes(tiny_pairs.read_bytes())
    suite = (tmp_path / "suite.toml").read_text().replace(str(tiny_pairs), str(tmp_path / "tests"))
    (tmp_path / "suite.toml").write_text(suite)
    changed = files.read_text().replace("[1e-5, 1e-3]", "[1e-5]").replace("seeds = [1, 2]", "seeds = [1]")
    files.write_text(changed)
    result = likewise.experiment(files, tmp_path / "out", device="cpu")
    assert [row.setting for row in result.rows] == ["MSE", "Pearson"]


def test_models_before_an_added_task_are_known_by_what_their_files_hold(lone, tmp_path, monkeypatch):
    """They were found by the recipe alone: after other ratings, the model of the old ones was added to."""
    from likewise.experiments import added
    from likewise.kinds.context import RunContext
    from likewise.recipes.reading import read_recipe

    monkeypatch.setattr(added, "run_recipe", lambda recipe, folder, **rest: folder.mkdir(parents=True))
    recipe = read_recipe(tmp_path / "recipe.toml")
    places = [added._trained(recipe, tmp_path / "models", RunContext())]
    for change, path in ((other_ratings, "pairs.csv"), (another_encoder, "encoder")):
        change(tmp_path / path)
        places.append(added._trained(recipe, tmp_path / "models", RunContext()))
    assert len(set(places)) == 3
    assert added._trained(recipe, tmp_path / "models", RunContext()) == places[-1]

    def edited_meanwhile(recipe, folder, **rest):
        folder.mkdir(parents=True)
        other_ratings(tmp_path / "pairs.csv")

    another_encoder(tmp_path / "encoder")
    monkeypatch.setattr(added, "run_recipe", edited_meanwhile)
    with pytest.raises(EvaluationError, match="a file has changed since the experiment began"):
        added._trained(recipe, tmp_path / "models", RunContext())
    assert len(list((tmp_path / "models").iterdir())) == 3  # and no file of a lock


SPOILS = {
    "json-cut": ("json", lambda content: content[: len(content) // 2]),
    "json-number": ("json", lambda content: content.replace(b'"seed": 1', b'"seed": 2')),
    "json-other": ("json", lambda content: b"[]"),
    "json-keys": ("json", lambda content: b'{"dev": 1}'),
    "npz-cut": ("npz", lambda content: content[:100]),
    "npz-bit": ("npz", lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:]),
    "npz-missing": ("npz", None),
}


@pytest.mark.parametrize("damage", SPOILS)
def test_cells_that_are_damaged_are_named_and_trained_again(lone, tmp_path, damage):
    first, _ = run(lone, tmp_path)
    ending, spoil = SPOILS[damage]
    [file] = (tmp_path / "out").glob(f"*.{ending}")
    content = file.read_bytes()
    if spoil is None:
        file.unlink()
    else:
        assert spoil(content) != content
        file.write_bytes(spoil(content))
    again, told = run(lone, tmp_path)
    assert told[0].startswith(f"DAMAGED {file}: ")
    assert told[0].endswith("; this run is trained again")
    assert again.rows[0].numbers == first.rows[0].numbers
    assert run(lone, tmp_path)[1] == []


def test_cell_on_a_full_disk_is_said_and_leaves_no_half_file(lone, tmp_path, monkeypatch):
    from likewise.experiments import cellfiles

    def full(path, **arrays):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cellfiles.np, "savez_compressed", full)
    with pytest.raises(EvaluationError, match=r"npz: this cannot be written \(No space left on device\)"):
        run(lone, tmp_path)
    assert [path.name for path in (tmp_path / "out").iterdir()] == []


def test_experiments_side_by_side_train_no_cell_twice(lone, tmp_path):
    lone.write_text(lone.read_text().replace("seeds = [1]", "seeds = [1, 2]"))
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, likewise\nlikewise.experiment(sys.argv[1], sys.argv[2], device='cpu', tell=print)\n"
    )
    both = [forks.Fork(lone, tmp_path / "out", script=program) for _ in range(2)]
    for process in both:
        said = process.communicate(timeout=200)
        assert process.returncode == 0, said
    looks = (tmp_path / "log.jsonl").read_text().splitlines()
    assert len(looks) == 2  # every look at a test set is logged: one per cell
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".json", ".json", ".npz", ".npz"]


def test_a_worker_that_is_killed_is_told_in_a_sentence(lone, tmp_path, monkeypatch):
    from likewise.experiments import runner

    monkeypatch.setattr(runner, "run_cell", die)
    with pytest.raises(EvaluationError, match="Run the same call again, with fewer workers"):
        likewise.experiment(lone, tmp_path / "out", device="cpu", workers=2)
    monkeypatch.undo()
    run(lone, tmp_path)


def die(cell, folder):
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("seeds = [1, 2]", "seeds = [1, 1, 1]", "seeds: 1 is named twice and would count twice"),
        (
            "seeds = [1, 2]",
            "seeds = [1, 2]\ngrid_seeds = [3, 3]",
            "grid_seeds: 3 is named twice and would count twice",
        ),
        (
            "[1e-5, 1e-3]",
            "[1e-5, 1e-3, 1e-5]",
            "grid.stage.0.learning_rate: 1e-05 is named twice and would count twice",
        ),
    ],
)
def test_experiment_file_that_names_a_number_twice_is_refused(files, before, after, where):
    files.write_text(files.read_text().replace(before, after))
    with pytest.raises(RecipeError) as caught:
        read_experiment(files)
    assert where in str(caught.value)
    assert "Name each value once" in str(caught.value)


def test_experiment_writes_into_no_encoder_and_over_no_other_summary(files, tmp_path, here, tiny_encoder):
    encoder = tmp_path / "enc"
    shutil.copytree(tiny_encoder, encoder)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(recipe.read_text().replace(str(tiny_encoder), str(encoder)))
    before = sorted(path.name for path in encoder.iterdir())
    for option in ("--summary", "--report"):
        code, said = here("experiment", files, "--output", "cells", option, encoder, "--overwrite")
        assert code == 2
        assert "is an input" in said
    code, said = here("experiment", files, "--output", encoder)
    assert code == 2
    assert "is an input" in said
    twin = tmp_path / "twin.toml"
    twin.write_text(files.read_text())
    code, said = here("experiment", files, twin, "--output", "cells", "--summary", "s", "--overwrite")
    assert code == 2
    assert "two experiments have the same name" in said
    assert sorted(path.name for path in encoder.iterdir()) == before
    assert not (tmp_path / "cells").exists()


@pytest.mark.parametrize("name", ["small.svg", "small.md"])
def test_experiment_report_keeps_files_that_appear_while_cells_are_trained(
    files, tmp_path, here, monkeypatch, name
):
    pytest.importorskip("matplotlib")
    from likewise import experiments

    run = experiments.run_experiments

    def meanwhile(*arguments, **options):
        (tmp_path / "report").mkdir()
        (tmp_path / "report" / name).write_text("a user's")
        return run(*arguments, **options)

    monkeypatch.setattr(experiments, "run_experiments", meanwhile)
    code, said = here("experiment", files, "--output", "cells", "--report", "report")
    assert code == 2
    assert "appeared while it was being written" in said
    assert (tmp_path / "report" / name).read_text() == "a user's"


def test_experiment_keeps_no_run_whose_files_changed_after_it_was_named(
    files, tmp_path, here, monkeypatch, tiny_pairs
):
    """Cells wait for hours; what was read then is not what the cell's name says."""
    from likewise.experiments import runner

    pairs = tmp_path / "own.csv"
    shutil.copy(tiny_pairs, pairs)
    for path in tmp_path.glob("*.toml"):
        path.write_text(path.read_text().replace(str(tiny_pairs), str(pairs)))
    run = runner.run_cell

    def later(cell, *arguments, **options):
        text = pairs.read_text()
        pairs.write_text(text + text.splitlines()[1] + "\n")
        try:
            return run(cell, *arguments, **options)
        finally:
            pairs.write_text(text)

    monkeypatch.setattr(runner, "run_cell", later)
    code, said = here("experiment", files, "--output", "cells")
    assert code != 0
    assert "own.csv has changed since the experiment began" in " ".join(said.split())
    assert not list((tmp_path / "cells").glob("*.json"))


def test_experiment_cell_changes_with_weights_behind_a_link(tmp_path, tiny_encoder):
    from likewise.data.filecache import content_digests

    store, encoder = tmp_path / "store", tmp_path / "enc"
    shutil.copytree(tiny_encoder, store)
    encoder.mkdir()
    (encoder / "0_Transformer").symlink_to(store)
    (store / "round").symlink_to(store)
    before = content_digests(encoder)
    assert "0_Transformer/model.safetensors" in before
    weights = bytearray((store / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (store / "model.safetensors").write_bytes(weights)
    assert content_digests(encoder) != before
