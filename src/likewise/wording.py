"""How things are said to people."""

from __future__ import annotations

# What a correlation on dev counts while a head still answers one constant: the worst, not the end of the run.
WORST = -1.0


def counted(number: int, noun: str) -> str:
    """1 pair, 2 pairs, 12,000 pairs."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def dev_score(value: float) -> str:
    """A number on dev as it is said; of answers that are all alike there is none."""
    return "– (all answers alike)" if value == WORST else f"{value:.4f}"
