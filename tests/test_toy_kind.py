"""A kind of stage that nobody shipped, in one file: what another package would write; src stays as it is.

The kind `ladder` reads pairs with a column `rung`, orders them by how many words two texts share, and learns
one number per count of shared words: a table of means, trained by gradient steps. It inherits nothing from a
shipped kind and calls none; it has its own key (`rungs`), batches, model, head and answer. It is trained,
stopped and resumed, saved, loaded, scored, evaluated, run as a cell of an experiment, and reached by `train
FILE`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import tomli_w
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import likewise
from likewise import registry
from likewise.answering import Answers, Limits
from likewise.data import load_records
from likewise.data.own import OwnTable
from likewise.errors import RecipeError, UsageError
from likewise.experiments import experiment
from likewise.kinds.base import (
    Carried,
    DevSet,
    Job,
    Place,
    Plan,
    Runner,
    Shared,
    StageData,
    by_seed,
    course_of,
    run_options,
    stage_report,
)
from likewise.kinds.devscore import Measured, dev_scorer
from likewise.predict.asking import Answerer
from likewise.predict.families import Family, Running
from likewise.records import Relation
from likewise.schema.base import Adopted, OptimisedStage
from likewise.store.card import CardParts, pair_example, relations_table
from likewise.training.sampler import Batches, epoch_batches


def shared_words(a: str, b: str) -> int:
    return len(set(a.split()) & set(b.split()))


class LadderStage(OptimisedStage):
    """What a recipe may say."""

    gives: ClassVar[str] = "ladder"
    kind: Literal["ladder"]
    data: str
    rungs: int = 4

    def rates(self, known: Collection[str]) -> tuple[str, ...]:
        return tuple(known)[:1]

    def sources(self) -> Iterator[str]:
        yield self.data

    @classmethod
    def infer(cls, table: OwnTable) -> dict[str, Any] | str:
        if "rung" not in table.columns:
            return "it needs a column 'rung'"
        return {
            "name": "ladder",
            "method": "ladder",
            "relation": {"rung": {"lo": 0, "hi": 4}},
            "stage": [
                {"kind": "ladder", "data": table.name, "epochs": 3, "batch_size": 8, "learning_rate": 0.5}
            ],
        }

    def adopt(self, table: OwnTable, known: Mapping[str, Mapping[str, Any]]) -> Adopted | str:
        return Adopted({"data": table.name}, known)


class LadderModel(nn.Module):
    """One number per count of shared words."""

    family: ClassVar[str] = "ladder"

    def __init__(self, relation: Relation, rungs: int) -> None:
        super().__init__()
        self.relation = relation
        self.encoder = nn.Identity()
        self.heads = nn.ParameterList([nn.Parameter(torch.rand(rungs + 1))])

    def read(self, rows: Sequence[Sequence[str]]) -> torch.Tensor:
        return torch.tensor(
            [min(shared_words(a, b), len(self.heads[0]) - 1) for a, b in rows], dtype=torch.long
        )

    def forward(self, counts: torch.Tensor, targets: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": ((self.heads[0][counts] - targets) ** 2).mean()}


class LadderRunner(Runner[LadderStage]):
    """How it is read, started and trained."""

    def verify(self, job: Job[LadderStage], data: StageData, encoder: Any) -> None:
        pass

    def read(self, job: Job[LadderStage], shared: Shared) -> StageData:
        records = load_records(
            job.table(job.stage.data), relations=list(job.relations.values()), data_dir=job.context.data_dir
        )
        dev, train = records[::4], [record for row, record in enumerate(records) if row % 4]
        prints = {"train": f"{len(train)} rows"}
        return StageData(
            train, (DevSet("every fourth", dev),), [], prints, lambda: (t for r in train for t in r.texts)
        )

    def start(self, job: Job[LadderStage], data: StageData, former: Carried) -> Carried:
        [relation] = job.relations.values()
        with by_seed(job):
            model = LadderModel(relation, job.stage.rungs)
        return Carried(job.stage.gives, lambda: model.encoder, lambda: model)

    def plan(self, job: Job[LadderStage], data: StageData, carried: Carried) -> Plan:
        steps = -(-len(data.rows) // job.stage.batch_size)
        return Plan(f"{len(data.rows)} pairs", f"learns {job.stage.rungs} rungs", course_of(job, steps))

    def fit(self, job: Job[LadderStage], data: StageData, carried: Carried, place: Place) -> dict[str, Any]:
        from likewise.training.fit import fit

        model, rows = carried.model(), data.rows
        counts = model.read([record.texts for record in rows])
        targets = torch.tensor([float(record.values["rung"]) for record in rows])
        lengths = [len(record.a) + len(record.b) for record in rows]

        def of_epoch(epoch: int) -> list[list[int]]:
            return epoch_batches(lengths, options["settings"], epoch)

        def collate(items: Sequence[int]) -> dict[str, Any]:
            return {"counts": counts[items], "targets": targets[items]}

        def prepare(share: Any) -> Batches:
            return Batches(len(rows), len(of_epoch(0)), of_epoch, collate, lambda items: items[:1])

        score = dev_scorer(
            lambda made: LadderAnswerer(made, {}),
            data.dev,
            lambda made: [Measured(made.relation, "spearman")],
        )
        options = {**run_options(job, place), "evaluate": score}
        return stage_report(job, fit(model, prepare, **options), data)

    def untrained(self, job: Job[LadderStage], data: StageData, former: Carried) -> nn.Module:
        [relation] = job.relations.values()
        return LadderModel(relation, job.stage.rungs)


class LadderAnswerer(Answerer):
    """What it says."""

    def __init__(self, model: LadderModel, about: Mapping[str, Any]) -> None:
        self.model, self.about = model.eval(), dict(about)

    texts = frozenset({2})
    limits = Limits(1024, None)

    @property
    def relations(self) -> tuple[Relation, ...]:
        return (self.model.relation,)

    def sources(self, relation: str) -> tuple[str, ...]:
        return ("head",)

    def answer(self, rows: Any, relation: Any, *, source: str | None = None, progress: Any = None) -> Answers:
        with torch.inference_mode():
            values = self.model.heads[0][self.model.read(rows)].double().numpy()
        return Answers(self.model.relation, "head", values)

    def embedding(self) -> Any:
        raise UsageError("a ladder has no vectors")


class LadderFamily(Family[LadderModel]):
    """How it is kept."""

    def save(self, model: LadderModel, folder: Path) -> dict[str, Any]:
        save_file({"rungs": model.heads[0].detach()}, folder / "likewise" / "rungs.safetensors")
        relation = model.relation
        about = {"relations": [relation.to_dict()], "source": {relation.name: "head"}}
        return {**about, "ladder": {"rungs": len(model.heads[0]) - 1}}

    def load(self, name: Any, document: Mapping[str, Any] | None, running: Running) -> LadderModel:
        model = LadderModel(Relation.from_dict(document["relations"][0]), document["ladder"]["rungs"])
        rungs = load_file(Path(name) / "likewise" / "rungs.safetensors")["rungs"]
        model.heads[0].data.copy_(rungs)
        return model

    def answerer(self, model: LadderModel, about: Mapping[str, Any], running: Running) -> LadderAnswerer:
        return LadderAnswerer(model, about)

    def card(self, name: str, document: Mapping[str, Any]) -> CardParts:
        use = [*relations_table(document), "", *pair_example(name)]
        return CardParts(
            "sentence-similarity", use, "Loads with Likewise and the package of this kind alone."
        )


@pytest.fixture
def ladder(monkeypatch, tmp_path):
    """The kind, known for one test; a table that it learns from, in the current folder."""
    monkeypatch.setitem(registry.KINDS, "ladder", registry.Kind(LadderStage, LadderRunner))
    monkeypatch.setitem(registry.FAMILIES, "ladder", registry.FamilyEntry(LadderFamily, "ladder"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_TEST_LOG", str(tmp_path / "log.jsonl"))
    rng = np.random.default_rng(3)
    words = ["red", "blue", "old", "new", "fast", "slow"]
    lines = ["text_a,text_b,rung"]
    for _ in range(80):
        a, b = (" ".join(rng.choice(words, 4, replace=False)) for _ in range(2))
        lines.append(f"{a},{b},{min(4, shared_words(a, b))}")
    Path("pairs.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


RECIPE = {
    "name": "ladder",
    "relation": {"rung": {"lo": 0, "hi": 4}},
    "stage": [
        {
            "kind": "ladder",
            "name": "steps",
            "data": "pairs.csv",
            "rungs": 4,
            "epochs": 6,
            "batch_size": 8,
            "learning_rate": 0.5,
            "save_every": 5,
        }
    ],
}
PAIRS = [("red blue old", "red blue new"), ("red old", "blue fast"), ("red blue old new", "red blue old new")]


class Stop(Exception):
    """Ends a run from inside."""


def test_a_kind_of_ones_own_is_trained_resumed_saved_loaded_and_asked(ladder):
    Path("ladder.toml").write_text(tomli_w.dumps(RECIPE))
    told: list[str] = []
    trained = likewise.train("ladder.toml", "whole", device="cpu", tell=told.append)
    assert told[0] == "stage 0 steps: 60 pairs"
    assert "learns 4 rungs" in told[1]

    def stop(event: Any) -> None:
        if event.kind == "evaluate" and list(Path("torn.run").rglob("checkpoint-*")):
            raise Stop

    with pytest.raises(Stop):
        likewise.train("ladder.toml", "torn", device="cpu", emit=stop)
    likewise.train("ladder.toml", "torn", device="cpu", resume=True)
    files = [Path(name) / "likewise" / "rungs.safetensors" for name in ("whole", "torn")]
    assert load_file(files[0])["rungs"].numpy().tobytes() == load_file(files[1])["rungs"].numpy().tobytes()

    scores = likewise.load("whole").score(PAIRS)
    np.testing.assert_allclose(scores["rung"], trained.score(PAIRS)["rung"])
    assert scores.source == {"rung": "head"}
    assert scores["rung"][1] < scores["rung"][0] < scores["rung"][2]
    assert "| rung | 0..4 | head |" in Path("whole/README.md").read_text()


def test_a_kind_of_ones_own_is_evaluated_and_is_a_cell_of_an_experiment(ladder):
    Path("ladder.toml").write_text(tomli_w.dumps(RECIPE))
    task = {"name": "pairs", "file": str(Path("pairs.csv").resolve()), "relation": "rung:0..4"}
    Path("suite.toml").write_text(tomli_w.dumps({"name": "mine", "task": [task]}))
    likewise.train("ladder.toml", "model", device="cpu")
    result = likewise.evaluate("model", "suite.toml", source="head")
    assert result.protocol.source == "head"
    assert result.tasks[0].value > 90
    settings = [
        {"name": "four"},
        {"name": "three", "set": {"stage.0.rungs": 3}},
        {"name": "none", "stages": 0},
    ]
    plan = {"name": "e", "recipe": "ladder.toml", "suite": "suite.toml", "seeds": [1], "setting": settings}
    Path("experiment.toml").write_text(tomli_w.dumps(plan))
    found = experiment("experiment.toml", "cells", device="cpu")
    averages = {row.setting: row.numbers["average"][0] for row in found.rows}
    assert averages["four"] > averages["three"]
    cells = [json.loads(file.read_text()) for file in Path("cells").glob("*.json")]
    assert {tuple(cell["results"]) for cell in cells} == {("head",)}


def test_a_table_reaches_a_kind_of_ones_own_through_the_registry(ladder):
    model = likewise.train("pairs.csv", device="cpu")
    assert [relation.name for relation in model.relations] == ["rung"]
    assert model.about["recipe"]["stage"][0]["kind"] == "ladder"
    Path("other.csv").write_text("text_a,text_b,similarity\nred,blue,1\nold,new,4\nold,old,5\n")
    recipe, _ = likewise.api.make_recipe("other.csv")
    assert recipe.stage[0].kind == "pairs"


def test_keys_of_a_kind_of_ones_own_are_checked_by_its_spec(ladder):
    Path("ladder.toml").write_text(tomli_w.dumps(RECIPE))
    with pytest.raises(RecipeError, match=r"stage\.0\.rung: this is not a known key\. Did you mean 'rungs'"):
        likewise.train("ladder.toml", overrides={"stage.0.rung": 3})
    with pytest.raises(RecipeError, match=r"stage\.0\.kind: 'leader' is not one of .*ladder"):
        likewise.train("ladder.toml", overrides={"stage.0.kind": "leader"})


def test_a_kind_of_ones_own_reads_tables_that_are_handed_over_in_python(ladder):
    rows = [
        dict(zip(("text_a", "text_b", "rung"), line.split(","), strict=True)) for line in lines_of_the_table()
    ]
    model = likewise.train(rows, device="cpu")
    assert model.about["recipe"]["stage"][0]["kind"] == "ladder"


def lines_of_the_table() -> list[str]:
    return Path("pairs.csv").read_text().splitlines()[1:]


def test_an_epoch_with_other_batches_than_announced_is_refused(ladder):
    from likewise.training.sampler import Share, StepSampler

    batches = Batches(6, 2, lambda epoch: [[0, 1], [2, 3], [4, 5]], dict, lambda items: items[:1])
    with pytest.raises(UsageError, match=r"epoch 0 has 3 batches, but Batches\.steps is 2"):
        list(StepSampler(batches, Share(0, 1, chunked=True)))


def test_batches_that_cannot_be_sliced_go_to_one_process_each():
    from likewise.training.sampler import Share, StepSampler

    whole = [[0, 1], [2, 3], [4, 5]]
    batches = Batches(6, 3, lambda epoch: whole, dict, lambda items: ["idle"], sliced=False)
    first, second = (StepSampler(batches, Share(rank, 2, chunked=True)) for rank in (0, 1))
    assert len(first) == len(second) == 2
    assert list(first) == [[0, 1], [4, 5]]
    assert list(second) == [[2, 3], ["idle"]]
