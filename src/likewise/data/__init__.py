"""Read files, frames and named corpora as validated records. torch, pandas and datasets are not imported."""

from __future__ import annotations

from likewise.data.catalogue import corpus_names, find_corpus
from likewise.data.checking import check
from likewise.data.columns import find_text_columns
from likewise.data.corpora import load_corpus
from likewise.data.getting import get
from likewise.data.keys import pair_key, text_key
from likewise.data.ratings import find_relations
from likewise.data.reading import infer_relations, load_records, read
from likewise.data.rows import Row, Table
from likewise.data.tables import count_rows, open_table
from likewise.data.writing import TableWriter
from likewise.disk import write_json_aside, write_text_aside

__all__ = [
    "Row",
    "Table",
    "TableWriter",
    "check",
    "corpus_names",
    "count_rows",
    "find_corpus",
    "find_relations",
    "find_text_columns",
    "get",
    "infer_relations",
    "load_corpus",
    "load_records",
    "open_table",
    "pair_key",
    "read",
    "text_key",
    "write_json_aside",
    "write_text_aside",
]
