"""Hostile tables: CSV, TSV, JSON lines, parquet, plain or compressed, and the verbs that read them."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.arena import Case, Judge, Outcome, not_plain_json
from tests.fuzz.mutations import VALUES, Draw, damage_bytes, damage_document, texts

PAIR_COLUMNS = ("text_a", "text_b", "similarity", "topic", "entailment")
SINGLE_COLUMNS = ("text", "mood")
_RATINGS: dict[str, Sequence[str]] = {
    "similarity": ("0", "1", "2.5", "4", "5", ""),
    "topic": ("-2", "-1", "0", "1.25", "2", ""),
    "entailment": ("contradiction", "neutral", "entailment", ""),
    "mood": ("fast", "slow", ""),
}
_ODD_COLUMNS = (
    "",
    " ",
    "text_a",
    "text_b",
    "TEXT_A",
    "text",
    "subset",
    "language",
    "predicted_similarity",
    "a,b",
    'say "so"',
    "\u202ex",
    "\x1b[31m",
    "p(entailment=neutral)",
    "x" * 3000,
)
Table = tuple[list[str], list[list[str]]]


@st.composite
def plain_tables(draw: Draw, columns: Sequence[str]) -> Table:
    """A header and rows as they should be, texts sometimes odd."""
    odd = draw(st.sampled_from((0.0, 0.0, 0.1, 0.4)))
    count = draw(st.sampled_from((1, 2, 3, 12, 14)))
    cell = {name: st.sampled_from(_RATINGS[name]) if name in _RATINGS else texts(odd) for name in columns}
    return list(columns), [[draw(cell[name]) for name in columns] for _ in range(count)]


@st.composite
def tables(draw: Draw, columns: Sequence[str]) -> Table:
    """A table, often with something wrong in its shape."""
    header, rows = draw(plain_tables(columns))
    ways = ("none", "none", "rename", "drop", "ragged", "value", "wide", "repeat", "long", "empty", "order")
    way = draw(st.sampled_from(ways))
    row, column = draw(st.integers(0, len(rows) - 1)), draw(st.integers(0, len(header) - 1))
    if way == "rename":
        header[column] = draw(st.one_of(st.sampled_from(_ODD_COLUMNS), st.text(max_size=8)))
    elif way == "drop":
        header, rows = header[:column] + header[column + 1 :], [r[:column] + r[column + 1 :] for r in rows]
    elif way == "ragged":
        rows[row] = draw(st.sampled_from((rows[row][:column], [*rows[row], "more"], rows[row] * 3)))
    elif way == "value":
        rows[row][column] = draw(texts(1.0))
    elif way == "wide":
        more = draw(st.sampled_from((1, 2, 20, 300, 300, 10_000)))
        header, rows = [*header, *(f"c{n}" for n in range(more))], [[*r, *("1" * more)] for r in rows[:2]]
    elif way == "repeat":
        rows = rows * draw(st.sampled_from((2, 20)))
    elif way == "long":
        rows[row][column] = draw(st.sampled_from(("a man ", "🙂", '"', "x"))) * draw(
            st.sampled_from((100, 2000, 30_000))
        )
    elif way == "empty":
        rows = []
    elif way == "order":
        rows = [rows[row], list(header), *rows]
    return header, rows


def to_csv(table: Table) -> bytes:
    """A table as CSV."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table[0])
    for row in table[1]:
        # The writer refuses nothing but an empty row of one column, which it quotes.
        writer.writerow(row)
    return stream.getvalue().encode("utf8", "surrogatepass")


def to_tsv(table: Table) -> bytes:
    """A table as TSV, without quoting."""
    return "".join("\t".join(row) + "\n" for row in (table[0], *table[1])).encode("utf8", "surrogatepass")


def to_jsonl(table: Table) -> bytes:
    """A table as JSON lines; what reads as a number is one."""
    lines = []
    for row in table[1]:
        fields = dict(zip(table[0], row, strict=False))
        lines.append(json.dumps({key: _json_cell(key, cell) for key, cell in fields.items()}) + "\n")
    return "".join(lines).encode()


def _json_cell(name: str, cell: str) -> Any:
    if name in ("similarity", "topic"):
        return None if cell == "" else _number_or_text(cell)
    return cell


def _number_or_text(cell: str) -> Any:
    try:
        number = float(cell)
    except ValueError:
        return cell
    return number if math.isfinite(number) else cell


def to_parquet(table: Table) -> bytes:
    """A table as parquet; ragged rows are filled or cut, and repeated columns are numbered."""
    import pyarrow
    import pyarrow.parquet

    header, rows = table
    twice = {name for name, count in Counter(header).items() if count > 1}
    names = [f"{name}{place}" if name in twice else name for place, name in enumerate(header)]
    whole = [[_whole(cell) for cell in [*row, *[""] * len(names)][: len(names)]] for row in rows]
    columns = {_whole(name): [row[place] for row in whole] for place, name in enumerate(names)}
    for name in ("similarity", "topic"):
        if name in columns and all(cell == "" or _is_number(cell) for cell in columns[name]):
            columns[name] = [None if cell == "" else float(cell) for cell in columns[name]]  # type: ignore[misc]
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    return sink.getvalue()


def _whole(text: str) -> str:
    return text.encode("utf8", "replace").decode("utf8")


def _is_number(cell: str) -> bool:
    return isinstance(_number_or_text(cell), float)


WRITERS: dict[str, Callable[[Table], bytes]] = {
    ".csv": to_csv,
    ".tsv": to_tsv,
    ".jsonl": to_jsonl,
    ".parquet": to_parquet,
}


@dataclass(frozen=True, slots=True)
class Read:
    """What an independent reader makes of bytes: rows by column, or why there are none."""

    rows: list[dict[str, Any]]
    columns: tuple[str, ...] = ()
    bad: str = ""


def read_independently(content: bytes, ending: str) -> Read:
    """Rows of a file as the standard library and pyarrow read it."""
    if ending == ".parquet":
        return _read_parquet(content)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Read([], bad="unknown")  # UTF-16 is read, as spreadsheets write it
    try:
        text = content.removeprefix(b"\xef\xbb\xbf").decode("utf8")
    except UnicodeDecodeError as error:
        return Read([], bad=f"it is not UTF-8 ({error})")
    if "\0" in text:
        return Read([], bad="it holds a NUL")
    if ending == ".jsonl":
        return _read_jsonl(text)
    lines = io.StringIO(text, newline="\n")
    try:
        if ending == ".csv":
            split = [
                row for row in csv.reader(lines, strict=True) if row and (len(row) > 1 or row[0].strip())
            ]
        else:
            split = [line.rstrip("\r\n").split("\t") for line in lines if line.rstrip("\r\n")]
    except csv.Error as error:
        return Read([], bad=f"it is not CSV ({error})")
    if not split:
        return Read([], bad="it is empty")
    return _judged(split, text, ending)


def _judged(split: list[list[str]], text: str, ending: str) -> Read:
    """The rows of a delimited file, unless they may be read in another way too."""
    header = tuple(name.strip() for name in split[0])
    first = text.lstrip("\r\n").partition("\n")[0]
    ragged = any(len(row) != len(header) for row in split)
    others = any(mark in first for mark in (",;|" if ending == ".tsv" else ";|\t"))
    if len(set(header)) != len(header) or ((ragged or len(header) == 1) and others) or "sep=" in first:
        # Columns of one name are renamed, and another delimiter may fit.
        return Read([], bad="unknown")
    if ragged:
        return Read([], bad="its rows differ in length")
    return Read([dict(zip(header, row, strict=True)) for row in split[1:]], header)


def _read_jsonl(text: str) -> Read:
    rows = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            return Read([], bad=f"a line is not JSON ({str(error)[:80]})")
        if not isinstance(fields, dict):
            return Read([], bad="a line is no object")
        rows.append(fields)
    return Read(rows, tuple(rows[0]) if rows else ())


def _read_parquet(content: bytes) -> Read:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(io.BytesIO(content))
        return Read(table.to_pylist(), tuple(table.column_names))
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, MemoryError) as error:
        return Read([], bad=f"pyarrow does not read it ({str(error)[:80]})")


def why_it_cannot_be_answered(read: Read, wanted: Sequence[str]) -> str:
    """A reason that every verb over texts must refuse a file for."""
    if read.bad:
        return "" if read.bad == "unknown" else read.bad
    if not read.rows:
        return "it has no rows"
    if not set(wanted) <= set(read.columns):
        return ""
    for row in read.rows:
        for name in wanted:
            cell = row.get(name)
            if not isinstance(cell, str) or not cell.strip():
                return f"{name} is {str(cell)[:40]!r}, no text"
    return ""


def _shown(cell: Any) -> str:
    """A text as the answers of a command hold it: what no table can hold is replaced."""
    return str(cell).replace("\0", " ")


def judge_csv_answers(read: Read, kept: Sequence[str], numbers: Sequence[str]) -> Judge:
    """Answers on standard output as CSV: every row, its texts as they were, finite numbers."""

    def judge(outcome: Outcome, folder: Path) -> Iterator[str]:
        answers = list(csv.DictReader(io.StringIO(outcome.out, newline=""), strict=True))
        if len(answers) != len(read.rows):
            yield f"{len(answers)} rows of answers to {len(read.rows)} rows"
            return
        for row, answer in zip(read.rows, answers, strict=True):
            for name in kept:
                if name in row and answer.get(name) != _shown(row[name]):
                    yield f"column {name} was {row[name]!r} and is {answer.get(name)!r}"
                    return
            for name in numbers:
                column = name
                while column in row:
                    column = f"predicted_{column}"
                cell = answer.get(column)
                if cell is None or not _is_number(cell):
                    yield f"the answer {name} is {cell!r}"
                    return

    return judge


def judge_json_lines(count: int) -> Judge:
    """Answers as JSON lines, one for each row."""

    def judge(outcome: Outcome, folder: Path) -> Iterator[str]:
        lines = outcome.out.split("\n")[:-1]
        if len(lines) != count:
            yield f"{len(lines)} lines of answers to {count} rows"
        yield from filter(None, map(not_plain_json, lines))

    return judge


def judge_json(outcome: Outcome, folder: Path) -> Iterator[str]:
    """One JSON document on standard output."""
    if wrong := not_plain_json(outcome.out):
        yield wrong


def _judge_check(read: Read) -> Judge:
    def judge(outcome: Outcome, folder: Path) -> Iterator[str]:
        yield from judge_json(outcome, folder)
        found = json.loads(outcome.out)
        if not found["ok"] or [report["rows"] for report in found["reports"]] != [len(read.rows)]:
            yield f"data check counts {found['reports'][0]['rows']} rows of {len(read.rows)}"

    return judge


_BREAKS = str.maketrans("\t\r\n", "   ")


def _judge_split(read: Read, ending: str) -> Judge:
    def row_of(fields: dict[str, Any]) -> str:
        cells = [_shown(cell) for cell in fields.values()]
        # Without quotes no cell of a TSV can hold a break: a blank takes its place.
        return str([cell.translate(_BREAKS) for cell in cells] if ending == ".tsv" else cells)

    def judge(outcome: Outcome, folder: Path) -> Iterator[str]:
        parts = [_read_file(file, ending) for file in (folder / "parts").iterdir()]
        before = Counter(map(row_of, read.rows))
        after = Counter(row_of(row) for part in parts for row in part.rows)
        if any(part.bad for part in parts):
            yield f"a part cannot be read: {[part.bad for part in parts]}"
        if sum(before.values()) != sum(after.values()):
            yield f"{sum(before.values())} rows were split into {sum(after.values())}"
        elif ending != ".jsonl" and before != after:
            yield f"rows changed: {list((before - after).items())[:1]} {list((after - before).items())[:1]}"

    return judge


def _judge_audit(read: Read, ending: str) -> Judge:
    def judge(outcome: Outcome, folder: Path) -> Iterator[str]:
        yield from judge_json(outcome, folder)
        kept = read_independently((folder / f"clean{ending}").read_bytes(), ending)
        told = json.loads(outcome.out)["kept_rows"]
        if len(kept.rows) != told and not (kept.bad == "it is empty" and not told):
            yield f"{told} rows are told and {len(kept.rows)} are there ({kept.bad})"

    return judge


_CLEAN = b"text_a,text_b,similarity\nthe old man runs,a woman sleeps,1\none cat,a cat,4\n"
# Verbs over pairs, the cheap ones more often.
_PAIR_VERBS = (
    *["check", "split", "audit", "against"] * 2,
    *["score", "score json", "score joint", "explain", "plan", "data"],
)
_SINGLE_VERBS = ("check", "split", "classify", "classify labels", "score single", "plan labels")


_LINKED = {
    "text_a": "the old man plays guitar",
    "text_b": "a man is playing a guitar",
    "links": [{"a": [0, 3], "b": [0, 2], "score": 0.8, "chance": 0.9}, {"a": [3, 5], "b": [2, 6]}],
    "spans_a": [[0, 3], [3, 5], [0, 5]],
    "words_a": [[0, 3], [4, 7], [8, 11], [12, 17], [18, 24]],
    "by": "Ann",
    "id": "1",
}


@st.composite
def link_cases(draw: Draw) -> Case:
    """Phrase links by somebody else, damaged in their values or their bytes, explained."""
    lines = [_LINKED] * draw(st.integers(1, 3))
    values = (*VALUES, [0, 1], [1, 0], [2, 4], [0, 99], [-1, 2], [[0, 1], [0, 1]], {"a": [0, 1], "b": [1, 2]})
    if draw(st.integers(0, 3)):
        lines = [damage_document(draw, lines[0], values=values, keys=("spans_b", "words_b")), *lines[1:]]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    if not draw(st.integers(0, 3)):
        content = damage_bytes(draw, content)
    read = read_independently(content, ".jsonl")
    return Case(
        ("explain", "--links", "l.jsonl", "--json", "--model", "m", "--device", "cpu"),
        {"l.jsonl": content},
        models={"m": "pairs"},
        must_fail=why_it_cannot_be_answered(read, ("text_a", "text_b")),
        judge=judge_json_lines(len(read.rows)),
    )


@st.composite
def table_cases(draw: Draw, ending: str, *, compressed: bool = False) -> Case:
    """A file of one format, good or damaged, and a verb that reads it."""
    single = draw(st.integers(0, 3)) == 0
    table = draw(tables(SINGLE_COLUMNS if single else PAIR_COLUMNS))
    content = WRITERS[ending](table)
    if draw(st.booleans()):
        content = damage_bytes(draw, content)
    file, verb = f"t{ending}", draw(st.sampled_from(_SINGLE_VERBS if single else _PAIR_VERBS))
    read = read_independently(content, ending)
    if compressed:
        content, read, file = _compress(draw, content, read, file)
    return _case(verb, file, content, read, single=single, ending=ending)


def _compress(draw: Draw, content: bytes, read: Read, file: str) -> tuple[bytes, Read, str]:
    """The bytes behind a compression, whole or damaged; a damaged stream must be refused."""
    import zstandard

    way = draw(st.sampled_from((".gz", ".xz", ".zst", ".bz2")))
    pack: dict[str, Callable[[bytes], bytes]] = {
        ".gz": lambda content: gzip.compress(content, mtime=0),
        ".xz": lzma.compress,
        ".bz2": bz2.compress,
        ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    }
    packed = pack[way](content)
    damage = draw(st.sampled_from(("none", "cut", "any", "twice", "tail")))
    if damage == "cut":
        packed = packed[: draw(st.integers(0, len(packed) - 1))]
        # A stream without a byte in it is an empty file.
        read = Read([], bad="the stream is cut short")
    elif damage == "any":
        packed = damage_bytes(draw, packed)
        read = _unpacked(packed, way, read, file)
    elif damage == "twice":
        packed = pack[way](packed)
        read = Read([], bad="it is compressed twice")
    elif damage == "tail":
        packed += draw(st.sampled_from((b"\0" * 7, b"x", packed)))
        read = _unpacked(packed, way, read, file)
    return packed, read, file + way


def _read_file(file: Path, ending: str) -> Read:
    """What an independent reader makes of a file that a command wrote, compressed or not."""
    import zstandard

    open_way: dict[str, Callable[[bytes], bytes]] = {
        **_UNPACK,
        ".zst": lambda packed: zstandard.ZstdDecompressor().stream_reader(packed).read(),
    }
    return read_independently(open_way.get(file.suffix, bytes)(file.read_bytes()), ending)


_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
    ".bz2": bz2.decompress,
}


def _unpacked(packed: bytes, way: str, read: Read, file: str) -> Read:
    """What the standard library unpacks; of zstandard, and of what hangs after a stream, nothing is known."""
    if way == ".zst":
        return Read([], bad="unknown")
    try:
        return read_independently(_UNPACK[way](packed), "." + file.rpartition(".")[2])
    except Exception:
        return Read([], bad="unknown")


def _case(verb: str, file: str, content: bytes, read: Read, *, single: bool, ending: str) -> Case:
    wanted = ("text",) if single else ("text_a", "text_b")
    known = read.bad != "unknown" and set(wanted) <= set(read.columns)
    must_fail = why_it_cannot_be_answered(read, wanted)
    files: dict[str, bytes | None] = {file: content}
    arguments, judge, more = _command(verb, file, read, ending)
    if not known:
        # Other columns may hold the texts, or none: only what holds for every file is looked at.
        judge = judge if judge in (judge_json,) else _nothing
    kept = {"models": more.get("models", {}), "writes": more.get("writes", ())}
    return Case(
        tuple(arguments), {**files, **more.get("files", {})}, must_fail=must_fail, judge=judge, **kept
    )


def _nothing(outcome: Outcome, folder: Path) -> Iterator[str]:
    return iter(())


def _command(verb: str, file: str, read: Read, ending: str) -> tuple[list[str], Judge, dict[str, Any]]:
    """The arguments of a verb over a file, what a success must show, and what the command needs."""
    cpu = ["--model", "m", "--device", "cpu"]
    stop = [*cpu, "--on-bad", "stop"]
    train = ["--encoder", "m", "--device", "cpu", "--dry-run"]
    rows = len(read.rows)
    pairs = judge_csv_answers(read, ("text_a", "text_b"), ("similarity",))
    return {
        "check": (["data", "check", file, "--json"], _judge_check(read), {}),
        "split": (
            ["data", "split", file, "--output", "parts"],
            _judge_split(read, ending),
            {"writes": ("parts",)},
        ),
        "audit": (
            ["audit", file, "--against", "clean.csv", "--output", f"clean{ending}", "--json"]
            if ending != ".csv"
            else ["audit", file, "--against", "other.csv", "--output", "clean.csv", "--json"],
            _judge_audit(read, ending),
            {
                "files": {"other.csv" if ending == ".csv" else "clean.csv": _CLEAN},
                "writes": (f"clean{ending}",),
            },
        ),
        "against": (
            ["audit", "clean.csv", "--against", file, "--json"],
            judge_json,
            {"files": {"clean.csv": _CLEAN}},
        ),
        "score": (["score", file, *stop], pairs, {"models": {"m": "pairs"}}),
        "score json": (["score", file, "--json", *stop], judge_json_lines(rows), {"models": {"m": "pairs"}}),
        "score joint": (
            ["score", file, *stop],
            judge_csv_answers(read, ("text_a", "text_b"), ()),
            {"models": {"m": "joint"}},
        ),
        "explain": (["explain", file, "--json", *cpu], judge_json_lines(rows), {"models": {"m": "pairs"}}),
        "plan": (["train", file, *train], _nothing, {"models": {"m": "pairs"}}),
        "data": (["train", "similarity", "--data", file, *train], _nothing, {"models": {"m": "pairs"}}),
        "plan labels": (
            ["train", "finetune", "--data", file, *train],
            _nothing,
            {"models": {"m": "pairs"}},
        ),
        "classify": (
            ["classify", file, "--task", "mood", *stop],
            judge_csv_answers(read, ("text",), ("p(fast)", "p(slow)")),
            {"models": {"m": "labels"}},
        ),
        "classify labels": (
            ["classify", file, "--labels", "fast | a fast train, slow", "--json", *stop],
            judge_json_lines(rows),
            {"models": {"m": "labels"}},
        ),
        "score single": (
            ["score", file, *stop],
            judge_csv_answers(read, ("text",), ()),
            {"models": {"m": "labels"}},
        ),
    }[verb]
