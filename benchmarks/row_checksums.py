"""Write what `likewise data get` compares with: the checksums of the rows of every corpus file, and the rows
of our samples as numbers. Run it only to add a file: published numbers name the rows that stand there.

LIKEWISE_DATA=corpora python benchmarks/row_checksums.py
"""

from __future__ import annotations

import os
from pathlib import Path

import tomli_w

from likewise.data import corpus_names, find_corpus, open_table
from likewise.data.canonical import RowDigest, plain_name, row_key
from likewise.data.catalogue import Corpus, Split
from likewise.data.corpora import locate
from likewise.data.sources.samples import Sample, encode, key_number, topic_rows

DATA = Path(__file__).resolve().parents[1] / "src" / "likewise" / "data"
# Samples by name: the file whose rows they are, and the column of an id where the published file has one.
SAMPLES = {
    "snli_train": ("snli/train_sample.tsv", ""),
    "mnli_train": ("mnli/train_sample.tsv", ""),
    "mnli_mismatched": ("mnli/mismatched_sample_1k.tsv", ""),
    "qqp_train": ("qqp/train_sample.tsv", "id"),
    "qqp_duplicates": ("qqp/duplicates_only.tsv", ""),
    "cxc_val": ("cxc_sts/caps_val.tsv", ""),
    "paranmt": ("paranmt_sample/sample.tsv", ""),
    "reuters46_train": ("reuters21578/topics46_train.tsv", "newid"),
    "reuters46_test": ("reuters21578/topics46_test.tsv", "newid"),
}


def columns_of(corpus: Corpus, split: Split, present: tuple[str, ...]) -> list[str]:
    """The columns of a split's file that are compared: those that the catalogue reads."""
    if corpus.kind == "translations":
        return list(present[:2])
    numbers = {rating.column for rating in corpus.ratings if rating.relation.kind == "graded"}
    read = [column for text in corpus.texts for column in text.split("+")]
    read += [rating.column for rating in corpus.ratings]
    read += [corpus.subset] if corpus.subset in present else []
    read += [*split.where, *([split.draw.by] if split.draw and split.draw.by else [])]
    return [f"{name}:number" if name in numbers else name for name in dict.fromkeys(read)]


def main() -> None:
    """Read every corpus file once."""
    folder = os.environ["LIKEWISE_DATA"]
    found: dict[str, dict[str, object]] = {}
    for corpus in map(find_corpus, corpus_names()):
        for split in corpus.splits.values():
            path = locate(corpus, split, folder)
            if path is None or plain_name(split.file) in found:
                continue
            table = open_table(path)
            digest = RowDigest(columns_of(corpus, split, table.columns))
            for row in table:
                digest.add(row.fields)
            result = digest.result()
            found[plain_name(split.file)] = {
                "columns": list(result.columns),
                "rows": result.rows,
                "exact": result.exact,
                "keys": result.keys,
                "bag": result.bag,
            }
    head = "# The rows of our copies (data/canonical.py). Written by benchmarks/row_checksums.py.\n\n"
    (DATA / "checksums.toml").write_text(head + tomli_w.dumps(found), encoding="utf8")
    for name, (file, column) in SAMPLES.items():
        sample = _sample(Path(folder) / f"{file}.xz", column, found[file]["columns"])
        (DATA / "sources" / f"{name}.rows").write_bytes(encode(sample))


def _sample(path: Path, column: str, columns: object) -> Sample:
    rows = [row.fields for row in open_table(path)]
    if column == "newid":
        labels = find_corpus("reuters46").relations[0].labels
        return topic_rows([(int(str(row["newid"])), str(row["topic"])) for row in rows], labels)
    if column:
        return Sample("ids", tuple(int(str(row[column])) for row in rows))
    return Sample("keys", tuple(key_number(row_key(row, list(columns))) for row in rows))  # type: ignore[call-overload]


if __name__ == "__main__":
    main()
