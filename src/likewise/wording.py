"""How things are said to people."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """1 pair, 2 pairs, 12,000 pairs."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
