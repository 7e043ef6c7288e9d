"""Compare the model with the baseline before training, on the same dev rows and with a confidence interval.

The baseline of a numeric relation is the encoder's cosine. The baseline of labels is the best single label,
or the closest label text of a label model, whichever is better. The dev rows also chose the step that was
kept and the source of the answers. The difference is therefore somewhat too large, and its interval is
widened (Bonferroni) so that it holds for whichever candidate was chosen. Only a test set measures the
difference itself without bias.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likewise.answering import COSINE, HEAD, MEAN, Answering, Numbers
from likewise.errors import EvaluationError
from likewise.evaluation.differences import Difference, compare_systems
from likewise.evaluation.metrics import compute, get_metric
from likewise.kinds.base import DevSet, StageData
from likewise.kinds.devscore import Measured, comparable, measured_parts, tells_models_apart
from likewise.records import Record, Relation
from likewise.wording import counted

_Said = Numbers | list[str]
# Of the interval of a difference, whatever number of candidates dev chose among.
LEVEL = 0.95
_UNKNOWN = "cannot tell"
_NEXT = "Give more dev rows, or measure both on a test file with `likewise evaluate`."
_BY = {COSINE: "its cosine", HEAD: "its head", MEAN: "the mean of its cosine and its head"}


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """One relation before and after training.

    Where they cannot be compared, `found` is None and `reason` says why. `choices` is the number of
    candidates that the same dev rows chose among, and `source` the source of the model's answers where it
    has several.
    """

    relation: str
    baseline: str
    found: Difference | None
    kept_start: bool
    reason: str = ""
    choices: int = 1
    source: str | None = None

    def sentence(self) -> str:
        """The comparison in words."""
        if self.found is None:
            return f"{self.relation}: the model could not be compared with {self.baseline}: {self.reason}"
        one, metric = self.found, get_metric(self.found.metric)
        digits = 2 if metric.scale == 100 else 4
        before, after = (f"{metric.scale * value:.{digits}f}" for value in (one.b, one.a))
        text = f"{self.relation}: {metric.unit} on {counted(one.rows, 'dev row')} is {before} for "
        by = f", which answers by {_BY[self.source]}" if self.source is not None else ""
        text += f"{self.baseline} and {after} for the model{by}. "
        text += f"The difference is {metric.scale * (one.a - one.b):+.{digits}f}"
        if one.interval is not None:
            low, high = (f"{metric.scale * end:+.{digits}f}" for end in (one.interval.low, one.interval.high))
            chosen = f", widened for the choice among {self.choices} candidates" if self.choices > 1 else ""
            text += f" ({100 * LEVEL:g} % confidence interval {low} to {high}{chosen})"
        return f"{text}. Verdict: {self.verdict}." + (f" {_NEXT}" if one.verdict == _UNKNOWN else "")

    @property
    def verdict(self) -> str:
        """The verdict in words: better, no measurable difference, worse, or why there is none."""
        if self.found is None:
            return "not compared"
        if self.kept_start:
            kept = "no evaluation step was better than the starting model, so the starting model was kept"
            return f"{self._compared}; {kept}" if self.found.difference else kept
        return self._compared

    @property
    def _compared(self) -> str:
        """The verdict of the test."""
        found = self.found
        if found is None:
            return "not compared"
        if found.verdict == _UNKNOWN:
            return f"cannot tell ({found.reason})"
        return {"no difference shown": "no measurable difference"}.get(found.verdict, found.verdict)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "relation": self.relation,
            "baseline": self.baseline,
            "kept_start": self.kept_start,
            "choices": self.choices,
            **({} if self.source is None else {"source": self.source}),
            "verdict": self.verdict,
            "sentence": self.sentence(),
            **({} if self.found is None else {"difference": self.found.to_dict()}),
        }


@dataclass(frozen=True, slots=True)
class Before:
    """The baselines' answers to the dev rows; `said` maps a relation to its baseline's name and answers."""

    sets: Sequence[DevSet]
    measured: Sequence[Measured]
    said: Mapping[str, tuple[str, _Said]]

    @classmethod
    def of(cls, sets: Sequence[DevSet], measured: Sequence[Measured], untrained: Answering | None) -> Before:
        """Take the better of the untrained model and, for labels, the best single label."""
        rows = [record for entry in sets for record in entry.records]
        said = {}
        for one in measured:
            answers = [_constant(one, rows), _untrained(one, rows, untrained)]
            told = [(name, values) for name, values in filter(None, answers)]
            if told:
                said[one.relation.name] = max(told, key=lambda entry: _value(one, rows, entry[1]))
        return cls(sets, measured, said)

    def gains(self, trained: Answering, *, kept_start: bool, looks: int = 1) -> list[BeforeAfter]:
        """Compare the trained model with the baselines; `looks` says among how many models dev chose."""
        return [
            self._gain(one, trained, kept_start, looks * max(1, len(_choice_of_sources(one, trained))))
            for one in self.measured
            if one.relation.name in self.said and _answers(one, trained)
        ]

    def _gain(self, one: Measured, trained: Answering, kept_start: bool, choices: int) -> BeforeAfter:
        name = one.relation.name
        baseline, before = self.said[name]
        parts = measured_parts(one, self.sets)
        if not parts:
            reason = "the dev rows have too few ratings of it, or all its ratings are the same"
            return BeforeAfter(name, baseline, None, kept_start, reason)
        rows = [record for entry in self.sets for record in entry.records]
        places = [place for part in parts for place in part.places]
        after = _said(one, trained, [rows[place] for place in places])
        gold = [value for part in parts for value in part.gold]
        several = len(parts) > 1
        try:
            truth, a = comparable(one, gold, list(after))
            _, b = comparable(one, gold, [before[place] for place in places])
            found = compare_systems(
                one.metric,
                truth,
                a,
                b,
                texts=[texts for part in parts for texts in part.texts],
                subsets=[part.name for part in parts for _ in part.places] if several else (),
                aggregation="mean" if several else "all",
                level=1 - (1 - LEVEL) / choices,
            )
        except EvaluationError as error:
            return BeforeAfter(name, baseline, None, kept_start, str(error))
        source = next(iter(_choice_of_sources(one, trained)), None)
        return BeforeAfter(name, baseline, found, kept_start, choices=choices, source=source)


def before_training(
    data: StageData, measured: Sequence[Measured], untrained: Callable[[], Answering | None]
) -> Before:
    """The baselines' answers to a stage's dev rows, before the first step."""
    sets = [
        entry
        for entry in data.dev
        if any(tells_models_apart(one.metric, _gold(one.relation, entry.records)) for one in measured)
    ]
    return Before.of(sets, measured, untrained()) if sets else Before((), (), {})


def _gold(relation: Relation, records: Sequence[Record]) -> list[Any]:
    return [value for record in records if (value := record.values.get(relation.name)) is not None]


def _untrained(one: Measured, rows: Sequence[Record], model: Answering | None) -> tuple[str, _Said] | None:
    """What an untrained model says of a relation; None if it cannot."""
    if model is None or not _answers(one, model):
        return None
    found = _said(one, model, rows)
    if isinstance(found, list):
        return "the closest label text before training", found
    return "the encoder's cosine before training", found


def _choice_of_sources(one: Measured, model: Answering) -> tuple[str, ...]:
    """The sources that dev chose among, the chosen one first: a cosine and a head have a mean too."""
    sources = () if one.borrowed else model.sources(one.relation.name)
    return sources if MEAN in sources else ()


def _answers(one: Measured, model: Answering) -> bool:
    """Whether a model can be measured."""
    return one.borrowed or one.relation.name in {relation.name for relation in model.relations}


def _said(one: Measured, model: Answering, rows: Sequence[Record]) -> _Said:
    """What a model answers; its cosine where the ratings are of another question."""
    texts = [record.texts for record in rows]
    if one.borrowed:
        return model.embedding().cosines(texts)  # type: ignore[arg-type]
    return model.answer(texts, one.relation.name).values


def _constant(one: Measured, rows: Sequence[Record]) -> tuple[str, _Said] | None:
    """The best single label; None where numbers are asked for."""
    gold = _gold(one.relation, rows)
    if not one.labels or not gold or not one.relation.labels:
        return None
    answers = [[label] * len(rows) for label in one.relation.labels]
    best = max(answers, key=lambda said: _value(one, rows, said))
    return f"always answering {best[0]!r}", best


def _value(one: Measured, rows: Sequence[Record], said: _Said) -> float:
    """How good answers are, more is better; answers that have no value are the worst."""
    seen = [place for place, record in enumerate(rows) if record.values.get(one.relation.name) is not None]
    gold = [rows[place].values[one.relation.name] for place in seen]
    try:
        value = compute(one.metric, *comparable(one, gold, [said[place] for place in seen]))
    except EvaluationError:
        return float("-inf")
    return value if get_metric(one.metric).higher_is_better else -value
