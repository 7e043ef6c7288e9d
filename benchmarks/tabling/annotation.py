"""Which pairs to rate next: strategies against drawing at random."""

from __future__ import annotations

from typing import Any

from tabling.common import markdown, read

LEARNERS = {"residual": "with the cosine", "features": "without it"}
CORPORA = {"stsb": "STS-B", "sick": "SICK"}


def whole() -> str:
    """The gains with all training pairs as the pool."""
    return _table("")


def skewed() -> str:
    """The gains with pools in which few pairs are rated high."""
    return _table(", skewed")


def pearson() -> str:
    """The same runs by Pearson: the baselines, `doubt`, and every strategy that differs significantly."""
    rows = []
    for name, one in read("next-pairs")["settings"].items():
        tried = one["pearson"]
        told = [(shown, entry) for shown, entry in tried.items() if shown != "random"]
        sure = [(shown, entry["gain"]) for shown, entry in told if entry["p_holm"] < 0.05]
        better = [_named(shown) for shown, gain in sure if gain > 0]
        worse = [_named(shown) for shown, gain in sure if gain < 0]
        corpus, *skewed, learner = name.split(", ")
        rows.append(
            [
                ", ".join([CORPORA[corpus], *skewed, LEARNERS[learner]]),
                f"{one['cosine']['pearson']:.2f}",
                f"{tried['random']['mean']:.2f}",
                f"{one['all']['pearson']:.2f}",
                _gain(tried["doubt"]),
                ", ".join(better) or "–",
                ", ".join(worse) or "–",
            ]
        )
    header = ["pool and learner", "raw cosine", "`random`", "all rated", "`doubt`", "better", "worse"]
    return markdown(header, rows)


def _table(pool: str) -> str:
    settings = read("next-pairs")["settings"]
    columns = [f"{corpus}{pool}, {learner}" for corpus in CORPORA for learner in LEARNERS]
    found = [settings[column] for column in columns]
    header = ["", *(f"{CORPORA[c]}, {LEARNERS[n]}" for c in CORPORA for n in LEARNERS)]
    rows = [
        ["raw cosine, no ratings", *(f"{one['cosine']['spearman']:.2f}" for one in found)],
        ["`random`", *(f"{one['spearman']['random']['mean']:.2f}" for one in found)],
        ["all pairs of the pool rated", *(f"{one['all']['spearman']:.2f}" for one in found)],
    ]
    tried = [name for name in found[0]["spearman"] if name != "random"]
    rows += [[_named(name), *(_gain(one["spearman"][name]) for one in found)] for name in tried]
    return markdown(header, rows)


def _named(name: str) -> str:
    strategy, _, kind = name.partition(" ")
    return f"`{strategy}`{' ' + kind if kind else ''}"


def _gain(entry: dict[str, Any]) -> str:
    """The gain with half of its interval; bold if the corrected p value is below .05."""
    said = f"{entry['gain']:+.2f} ± {(entry['high'] - entry['low']) / 2:.2f}".replace("-", "−")
    return f"**{said}**" if entry["p_holm"] < 0.05 else said
