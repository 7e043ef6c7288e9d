"""A user's own suite: a TOML file whose tasks name files or corpora.

```toml
name = "support"
by_name = false                   # true: tasks whose relation a model has no head for are left out

[[task]]
name = "tickets"
file = "tickets.csv"              # beside the TOML file, or a full path
text_a = "ticket"                 # text columns may be left out where they have well-known names
text_b = "duplicate"
relation = "similarity:0..5"
column = "score"                  # may be left out where the relation's column has its name
metric = "spearman"               # may be left out: the protocol's metric
subsets = true                    # the file's column `subset` names parts to average over (mean, wmean)

[[task]]
name = "sick"
corpus = "sick/test"              # instead of a file
relation = "relatedness"
```
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from likewise.errors import LikewiseError, Problem, RecipeError
from likewise.evaluation.metrics import METRICS
from likewise.evaluation.suites import Suite
from likewise.evaluation.tasks import Task
from likewise.records import Relation

Text = Annotated[str, Field(min_length=1)]


class _TaskSchema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Text
    relation: Text
    file: Text | None = None
    corpus: Text | None = None
    text_a: Text | None = None
    text_b: Text | None = None
    column: Text | None = None
    metric: str = ""
    subsets: bool | list[str] = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.file is None) == (self.corpus is None):
            raise ValueError("name either a file or a corpus")
        if self.corpus is not None and "/" not in self.corpus:
            raise ValueError(f"corpus {self.corpus!r} needs a split, such as {self.corpus}/test")
        if self.metric and self.metric not in METRICS:
            raise ValueError(f"metric {self.metric!r} is not one of {', '.join(METRICS)}")
        if self.file is not None:
            try:
                Relation.parse(self.relation)
            except LikewiseError as error:
                raise ValueError(str(error)) from None
        return self

    def to_task(self, folder: Path) -> Task:
        subsets = self.subsets if isinstance(self.subsets, bool) else tuple(self.subsets)
        if self.corpus is not None:
            corpus, _, split = self.corpus.partition("/")
            return Task(self.name, corpus, split, relation=self.relation, subsets=subsets, metric=self.metric)
        return Task(
            self.name,
            relation=Relation.parse(self.relation),
            subsets=subsets,
            metric=self.metric,
            file=folder / (self.file or ""),
            text_a=self.text_a,
            text_b=self.text_b,
            column=self.column,
        )


class _SuiteSchema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    task: Annotated[list[_TaskSchema], Field(min_length=1)]
    name: Text | None = None
    by_name: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [task.name for task in self.task]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two tasks are named {', '.join(twice)}")
        return self


def read_suite(path: str | Path) -> Suite:
    """The suite that a TOML file describes; all its problems are reported at once."""
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecipeError(
            [Problem(str(path), f"cannot be read ({error.strerror})", "check the path")]
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError([Problem(str(path), f"is not valid TOML ({error})", "correct it")]) from None
    try:
        schema = _SuiteSchema.model_validate(data)
    except ValidationError as error:
        raise RecipeError([_problem(path, detail) for detail in error.errors()]) from None
    tasks = tuple(task.to_task(path.parent) for task in schema.task)
    return Suite(schema.name or path.stem, tasks, by_name=schema.by_name)


def _problem(path: Path, detail: Any) -> Problem:
    where = ".".join(str(part) for part in detail["loc"] if part not in ("bool", "list[str]"))
    message = detail["msg"].removeprefix("Value error, ")
    return Problem(f"{path.name} {where}".rstrip(), message[:1].lower() + message[1:])
