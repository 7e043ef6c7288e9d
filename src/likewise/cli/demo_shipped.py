"""The first part of `likewise demo`: what the model that comes with Likewise says, and what it cannot see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likewise.cli.console import out
from likewise.cli.score import first_answers
from likewise.naming import DEFAULT_NAME

if TYPE_CHECKING:
    from likewise.answering import Scores
    from likewise.evaluation.challenge_result import ChallengeResult, ChallengeShare, Phenomenon
    from likewise.evaluation.intervals import Interval
    from likewise.predict import Answerer

PAIR = ("The pharmacy is open on Sundays.", "The pharmacy is never open on Sundays.")
# The share of items in the right order that chance gets, in per cent.
_CHANCE = 50.0
SIMILARITY, COSINE, LABELLED = "similarity", "cosine", ("entailment", "paraphrase")


@dataclass(frozen=True, slots=True)
class Shipped:
    """What the raw encoder and the shipped model say of one pair and of the challenge set."""

    cosine: float
    answers: Scores
    before: ChallengeResult
    after: ChallengeResult

    @classmethod
    def of(cls, raw: Answerer, model: Answerer) -> Shipped:
        """Ask both models."""
        from likewise.evaluation.challenge import measure_challenge

        cosine = float(raw.embedding().cosines([PAIR])[0])
        before = measure_challenge(raw, source="cosine")
        return cls(cosine, model.score([PAIR]), before, measure_challenge(model))

    def shares(self) -> list[tuple[Phenomenon, ChallengeShare, ChallengeShare]]:
        """For each phenomenon, and over all: the share in order by the raw cosine, and by the model."""
        before, after = ([*one.phenomena, one.overall] for one in (self.before, self.after))
        return [(new, old[COSINE], new[SIMILARITY]) for old, new in zip(before, after, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "model": DEFAULT_NAME,
            "pair": {
                "text_a": PAIR[0],
                "text_b": PAIR[1],
                "raw cosine": self.cosine,
                "relations": first_answers(self.answers),
            },
            "challenge": {"raw": self.before.to_dict(), DEFAULT_NAME: self.after.to_dict()},
        }


def show_shipped(found: Shipped) -> None:
    """Show the pair with its answers, the challenge set by phenomenon, and what the model cannot see."""
    _show_pair(found)
    _show_challenge(found)
    say(f"\n{limits_of(found.after)}\n")


def _show_pair(found: Shipped) -> None:
    say(f"[bold]1. Ask[/bold] {DEFAULT_NAME}, the model that comes with Likewise.\n")
    for text in PAIR:
        out.print(f"   {text}", markup=False)
    lines = {"raw cosine": f"{found.cosine:.2f} on -1..1"}
    for name, answer in first_answers(found.answers).items():
        value = answer["value"]
        chance = answer.get("probabilities", {}).get(value)
        lines[name] = f"{value:.1f} on {answer['scale']}" if chance is None else f"{value} ({chance:.0%})"
    for name, line in lines.items():
        out.print(f"   {name:<{max(map(len, lines))}}  {line}", markup=False)


def _show_challenge(found: Shipped) -> None:
    from rich.table import Table

    say(
        f"\n[bold]2. Test[/bold] it on the challenge set. Each of its {found.after.overall.items} items is a "
        "text, a sentence that means the same, and one that does not. How often does the pair with the same "
        "meaning get the higher similarity?\n"
    )
    table = Table("phenomenon", "raw cosine", DEFAULT_NAME, box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for phenomenon, *shares in found.shares():
        table.add_row(phenomenon.name, *(with_interval(share.value, share.interval) for share in shares))
    out.print(table)
    say("in %, with its 95 % confidence interval; chance gets 50", style="dim")


def limits_of(result: ChallengeResult) -> str:
    """Sentences that say what a model of the challenge set cannot see, and how good its labels are."""
    ends = {one.name: one[SIMILARITY].interval for one in result.phenomena}
    level = [name for name, end in ends.items() if end and end.low <= _CHANCE <= end.high]
    below = [name for name, end in ends.items() if end and end.high < _CHANCE]
    lines = []
    if level:
        lines.append(f"It is not measurably better than chance on {in_words(level)}.")
    if below:
        lines.append(f"It is worse than chance on {in_words(below)}.")
    shares = {name: result.overall.shares[name] for name in LABELLED if name in result.overall.shares}
    told = [
        f"{share.value:.1f} % for {name} (always answering {share.most_frequent}: {share.majority:.1f} %)"
        for name, share in shares.items()
    ]
    if told:
        [pairs] = {share.n for share in shares.values()}
        lines.append(f"Of its labels of the {pairs} pairs, so many are right: {in_words(told)}.")
    return " ".join(lines)


def with_interval(value: float, interval: Interval | None, sign: str = "") -> str:
    """A number with the bounds of its interval, dimmed."""
    bounds = f"  [dim]({interval.low:{sign}.0f} to {interval.high:{sign}.0f})[/dim]" if interval else ""
    return f"{value:{sign}.1f}{bounds}"


def in_words(names: Sequence[str]) -> str:
    """Names with commas, and an `and` before the last one."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def say(text: str, **options: Any) -> None:
    """A paragraph, broken between words."""
    out.print(text, soft_wrap=False, **options)
