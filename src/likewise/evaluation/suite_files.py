"""A user's own suite: a TOML file whose tasks name files or corpora.

```toml
name = "support"
by_name = false                   # true: leave out tasks whose relation the model has no head for
texts = 2                         # 1: single texts, in column `text_a`; a task may have its own number;
                                  # by default the columns of each file decide

[[task]]
name = "tickets"
file = "tickets.csv"              # beside the TOML file, or a full path
text_a = "ticket"                 # text columns may be left out if they have well-known names
text_b = "duplicate"
relation = "similarity:0..5"      # or "follows:yes|no", "follows:classes" (labels as in the file)
column = "score"                  # may be left out if the column is named like the relation
metric = "spearman"               # defaults to --metric, or to the relation's metric (accuracy for classes)
subsets = true                    # the column `subset` names parts to average over (mean, wmean)

[[task]]
name = "sick"
corpus = "sick/test"              # instead of a file
relation = "relatedness"
```
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from likewise.data import find_corpus, infer_relations, open_table
from likewise.data.columns import find_any_texts
from likewise.documents import Title, read_toml, validate
from likewise.errors import LikewiseError
from likewise.evaluation.metrics import METRICS
from likewise.evaluation.suites import Suite
from likewise.evaluation.tasks import Task
from likewise.records import Relation

Text = Annotated[str, Field(min_length=1, max_length=4096)]
_Name = Annotated[Title, Field(min_length=1)]


class _TaskSchema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: _Name
    relation: Text
    file: Text | None = None
    corpus: Text | None = None
    text_a: Text | None = None
    text_b: Text | None = None
    column: Text | None = None
    metric: str = ""
    subsets: bool | list[str] = False
    texts: Annotated[int, Field(ge=1, le=2)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.file is None) == (self.corpus is None):
            raise ValueError("name either a file or a corpus")
        if self.corpus is not None and "/" not in self.corpus:
            raise ValueError(f"corpus {self.corpus!r} needs a split, such as {self.corpus}/test")
        if self.metric and self.metric not in METRICS:
            raise ValueError(f"metric {self.metric!r} is not one of {', '.join(METRICS)}")
        if self.file is not None and not self._collects_labels:
            try:
                Relation.parse(self.relation)
            except LikewiseError as error:
                raise ValueError(str(error)) from None
        return self

    @property
    def _collects_labels(self) -> bool:
        return self.relation.endswith(":classes")

    def _relation_of(self, file: Path, *, pairs: bool) -> Relation:
        """The relation as declared, or with the labels that its column holds."""
        if not self._collects_labels:
            return Relation.parse(self.relation)
        name = self.relation.partition(":")[0]
        declared = [f"{self.column or name}:classes"]
        [found] = infer_relations(
            file, declared=declared, text_a=self.text_a, text_b=self.text_b, pairs=pairs
        )
        return replace(found, name=name)

    def _count_texts(self, folder: Path) -> int:
        if self.corpus is not None:
            return len(find_corpus(self.corpus.partition("/")[0]).texts)
        table = open_table(folder / (self.file or ""))
        return len(find_any_texts(table.columns, self.text_a, self.text_b, source=table.name))

    def to_task(self, folder: Path, *, texts: int | None) -> Task:
        """The task. The number of texts per row is its own, or else that of the suite, or else that of the
        data.
        """
        texts = self.texts or texts or self._count_texts(folder)
        subsets = self.subsets if isinstance(self.subsets, bool) else tuple(self.subsets)
        if self.corpus is not None:
            corpus, _, split = self.corpus.partition("/")
            return Task(
                self.name,
                corpus,
                split,
                relation=self.relation,
                subsets=subsets,
                metric=self.metric,
                texts=texts,
            )
        file = folder / (self.file or "")
        return Task(
            self.name,
            relation=self._relation_of(file, pairs=texts == 2),
            subsets=subsets,
            metric=self.metric,
            file=file,
            text_a=self.text_a,
            text_b=self.text_b,
            column=self.column,
            texts=texts,
        )


class _SuiteSchema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    task: Annotated[list[_TaskSchema], Field(min_length=1, max_length=1_000)]
    name: _Name | None = None
    by_name: bool = False
    texts: Annotated[int, Field(ge=1, le=2)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [task.name for task in self.task]
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if twice:
            raise ValueError(f"two tasks have the same name: {', '.join(twice)}")
        return self


def read_suite(path: str | Path) -> Suite:
    """The suite that a TOML file describes. All its problems are reported at once."""
    path = Path(path)
    schema = validate(_SuiteSchema, read_toml(path, "suite"), path.name)
    tasks = tuple(task.to_task(path.parent, texts=schema.texts) for task in schema.task)
    return Suite(schema.name or path.stem, tasks, by_name=schema.by_name)
