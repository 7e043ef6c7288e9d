"""Which rows of a published file are ours, for corpora of which we use a sample.

A sample is a short file beside this module that names rows and holds no text. After ten bytes (a mark, the
kind, the number of rows) come, in the order of our file:

    keys     36 bits a row: the beginning of the SHA-256 of its `row_key` over the columns of checksums.toml
    ids      24 bits a row: the id that the published file gives to the row
    topics   24 bits a row: an id, and which of the relation's labels (in their order) is the row's topic

`benchmarks/row_checksums.py` writes these files from our copies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Literal

SampleKind = Literal["keys", "ids", "topics"]

_MARK = b"LWR1"
_KINDS: tuple[SampleKind, ...] = ("keys", "ids", "topics")
# Hexadecimal digits of a row of each kind.
_WIDTHS: dict[SampleKind, int] = {"keys": 9, "ids": 6, "topics": 6}
_LABEL = 256


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows of a sample in order, each as a number, and what these numbers are."""

    kind: SampleKind
    rows: tuple[int, ...]


def read_sample(name: str) -> Sample:
    """A sample that comes with Likewise."""
    return decode(resources.files("likewise.data.sources").joinpath(f"{name}.rows").read_bytes())


def decode(content: bytes) -> Sample:
    """The sample in the bytes of its file."""
    kind, count = _KINDS[content[4]], int.from_bytes(content[5:10], "big")
    if content[:4] != _MARK:
        raise ValueError("not a file of row numbers")
    width, digits = _WIDTHS[kind], content[10:].hex()
    return Sample(kind, tuple(int(digits[k * width : (k + 1) * width], 16) for k in range(count)))


def encode(sample: Sample) -> bytes:
    """The bytes of a sample's file."""
    width = _WIDTHS[sample.kind]
    digits = "".join(f"{row:0{width}x}" for row in sample.rows)
    head = _MARK + bytes([_KINDS.index(sample.kind)]) + len(sample.rows).to_bytes(5, "big")
    return head + bytes.fromhex(digits + "0" * (len(digits) % 2))


def key_number(key: bytes) -> int:
    """The number by which a sample of keys names a row."""
    return int(hashlib.sha256(key).hexdigest()[: _WIDTHS["keys"]], 16)


def topic_rows(pairs: Iterable[tuple[int, str]], labels: Sequence[str]) -> Sample:
    """A sample of topics from ids and their labels."""
    return Sample("topics", tuple(number * _LABEL + labels.index(label) for number, label in pairs))


def split_topic(row: int, labels: Sequence[str]) -> tuple[int, str]:
    """The id and the label of a row in a sample of topics."""
    return row // _LABEL, labels[row % _LABEL]
