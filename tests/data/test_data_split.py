"""`likewise data split`: no text in two parts, nothing lost, all columns and the file's own form kept."""

from __future__ import annotations

import itertools

import pytest

from likewise.data import TableWriter, load_records, open_table, text_key
from likewise.data.cutting import split_by_text
from likewise.data.splits import groups_too_large, split_file, split_rows
from likewise.errors import DataError, UsageError
from likewise.records import Record


def write(path, rows):
    with TableWriter(path, ["id", "a", "b", "score"]) as writer:
        for number, (a, b) in enumerate(rows):
            writer.write_row({"id": number, "a": a, "b": b, "score": number % 5})
    return path


def read(part):
    return [row.fields for row in open_table(part.file)]


@pytest.mark.parametrize("ending", ["csv", "tsv.gz", "tsv.bz2", "jsonl"])
def test_split_keeps_texts_apart_and_loses_nothing(tmp_path, ending):
    rows = [(f"text {n // 2}", f"other {n}") for n in range(100)]  # every two rows share a text
    parts = split_file(write(tmp_path / f"p.{ending}", rows), tmp_path / "out", test=0.2, dev=0.1)
    assert {name: part.file.name for name, part in parts.items()} == {
        name: f"{name}.{ending}" for name in ("train", "dev", "test")
    }
    found = {name: read(part) for name, part in parts.items()}
    assert sorted(int(row["id"]) for part in found.values() for row in part) == list(range(100))
    texts = [{text for row in part for text in (row["a"], row["b"])} for part in found.values()]
    assert all(one.isdisjoint(other) for one, other in itertools.combinations(texts, 2))
    assert [part.rows for part in parts.values()] == [70, 10, 20]
    assert all(part.apart for part in parts.values())
    assert list(found["test"][0]) == ["id", "a", "b", "score"]


def test_split_is_the_same_for_a_seed_and_another_for_another(tmp_path):
    path = write(tmp_path / "p.csv", [(f"left {n}", f"right {n}") for n in range(60)])
    again = [split_file(path, tmp_path / str(n), seed=seed) for n, seed in enumerate((1, 1, 2))]
    first, second, third = (read(parts["test"]) for parts in again)
    assert first == second != third


def test_split_says_so_where_rows_hang_together(tmp_path, here):
    write(tmp_path / "p.csv", [("the same text", f"other {n}") for n in range(40)])
    code, said = here("data", "split", "p.csv", "--output", "out")
    assert code == 0, said
    assert "out/test.csv: 8 rows" in said
    assert "Some texts are in both the test file and the train file" in said.replace("\n", " ")


def test_split_refuses_shares_that_leave_nothing(tmp_path):
    path = write(tmp_path / "p.csv", [(f"a {n}", f"b {n}") for n in range(20)])
    with pytest.raises(UsageError, match="leave no rows to train on"):
        split_file(path, tmp_path / "out", test=0.6, dev=0.5)
    assert not (tmp_path / "out").exists()


def test_split_of_single_texts_says_which_column_they_are_in(tmp_path, here):
    rows = "".join(f"note {n % 10},good\n" for n in range(40))
    (tmp_path / "notes.csv").write_text(f"text,verdict\n{rows}")
    code, said = here("data", "split", "notes.csv", "--output", "out")
    assert code == 0, said
    assert (
        "single texts in column text. If the rows are pairs, name both columns: --text-a NAME --text-b NAME"
        in said
    )
    parts = [set((tmp_path / "out" / f"{part}.csv").read_text().split()) for part in ("train", "test")]
    assert parts[0] & parts[1] == {"text,verdict", "note"}


@pytest.mark.parametrize("apart", [True, False])
def test_a_label_is_never_split_off_whole(apart):
    labels = ["rare", "seldom", "seldom", *["common"] * 37]
    records = [
        Record((f"left {n}" if apart else "the same text", f"right {n}"), {"verdict": label})
        for n, label in enumerate(labels)
    ]
    for seed in range(40):
        chosen, found_apart = split_rows(records, 0.5, seed)
        assert found_apart == apart
        assert len(chosen) == 20
        assert {label for row, label in enumerate(labels) if row not in chosen} == set(labels)


def test_large_groups_of_rows_have_their_share_of_what_is_split_off():
    # 1 text in 12 rows, 10 in 8, 16 in 3, and 60 rows that share nothing: 200 rows, 20 of them split off.
    sizes = [12] + [8] * 10 + [3] * 16 + [1] * 60
    group = [number for number, size in enumerate(sizes) for _ in range(size)]
    records = [Record((f"prompt {number}", f"answer {row}"), {"s": 1.0}) for row, number in enumerate(group)]
    drawn = {size: 0 for size in set(sizes)}
    for seed in range(400):
        chosen, apart = split_rows(records, 0.1, seed)
        assert apart
        assert 18 <= len(chosen) <= 20
        assert chosen == split_rows(records, 0.1, seed)[0]
        assert {group[row] for row in chosen}.isdisjoint(
            group[row] for row in range(len(records)) if row not in chosen
        )
        for row in chosen:
            drawn[sizes[group[row]]] += 1
    for size, count in drawn.items():
        share = count / (400 * size * sizes.count(size))
        assert share == pytest.approx(0.1, abs=0.04 if size == 12 else 0.02), size


def test_groups_larger_than_the_part_are_told():
    records = [Record((f"prompt {max(row - 39, 0)}", f"answer {row}"), {"s": 1.0}) for row in range(100)]
    assert groups_too_large(records, 0.2) == [40]
    assert groups_too_large(records, 0.5) == []
    for seed in range(20):
        assert min(split_rows(records, 0.2, seed)[0]) > 39


def test_a_part_is_split_off_even_where_no_label_comes_twice():
    records = [Record((f"left {n}", f"right {n}"), {"verdict": f"label {n}"}) for n in range(20)]
    assert len(split_rows(records, 0.5, 1)[0]) == 1


def test_split_of_a_header_alone_is_refused(tmp_path, here):
    (tmp_path / "p.csv").write_text("sentence1,sentence2,score\n")
    for command in (["data", "split", "p.csv", "--output", "out"], ["train", "p.csv", "--output", "m"]):
        code, said = here(*command)
        assert code == 1
        assert "p.csv: this has columns (sentence1, sentence2, score) but no rows" in said
    assert [file.name for file in tmp_path.iterdir()] == ["p.csv"]


def grid(side):
    """Rows that connect every text with its neighbours on a grid, so that no group can be moved."""
    cells = [(x, y) for x in range(side) for y in range(side)]
    return [
        Record((f"text {x} {y}", f"text {x + dx} {y + dy}"), {"s": 1.0})
        for x, y in cells
        for dx, dy in ((0, 1), (1, 0))
        if x + dx < side and y + dy < side
    ]


def keys_of(records, rows):
    return {text_key(text) for row in rows for text in records[row].texts}


def test_split_by_text_cuts_rows_that_hang_together():
    records = grid(30)
    wanted = round(0.1 * len(records))
    assert not split_rows(records, 0.1, seed=1)[1]
    part, out = split_by_text(records, 0.1, seed=1)
    rest = set(range(len(records))) - part - out
    assert not keys_of(records, part) & keys_of(records, rest)
    assert not part & out
    assert 0.95 * wanted <= len(part) <= wanted
    assert 0 < len(out) <= len(part)
    # What is left out has a text on each side.
    for row in out:
        assert keys_of(records, [row]) & keys_of(records, part)
    assert split_by_text(records, 0.1, seed=1) == (part, out)
    assert split_by_text(records, 0.1, seed=2) != (part, out)


def test_split_by_text_leaves_out_nothing_where_groups_can_be_moved():
    records = [Record((f"text {n}", f"other {n // 2}")) for n in range(60)]
    part, out = split_by_text(records, 0.2, seed=1)
    assert (len(part), out) == (12, set())
    single = [Record((f"text {n % 30}",)) for n in range(60)]
    part, out = split_by_text(single, 0.2, seed=1)
    assert (len(part), out) == (12, set())


def test_split_by_text_keeps_a_row_of_every_label():
    records = [Record((f"a {n}", f"b {n}"), {"kind": "rare" if n < 3 else "usual"}) for n in range(30)]
    for seed in range(20):
        part, _ = split_by_text(records, 0.5, seed)
        assert any(row not in part for row in range(3))


def test_split_by_text_refuses_where_all_would_be_left_out():
    star = [Record(("the same text", f"other {n}")) for n in range(40)]
    with pytest.raises(DataError, match=r"the 40 rows share so many texts that none can be split off"):
        split_by_text(star, 0.2, seed=1)
    with pytest.raises(DataError, match="5 pairs are too few to split off a dev set"):
        split_by_text(star[:5], 0.2, seed=1)


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("source", "rows", "left_out"), [("cxc/test", 4404, 3498), ("paws_wiki/dev", 800, 0), ("joci", 3904, 0)]
)
def test_split_by_text_of_real_pairs(data_dir, source, rows, left_out):
    records = load_records(source, data_dir=data_dir)
    part, out = split_by_text(records, 0.1, seed=1)
    rest = set(range(len(records))) - part - out
    assert not keys_of(records, part) & keys_of(records, rest)
    assert (len(part), len(out)) == (rows, left_out)
