"""Typed-Similarity from a folder in the release's form; the items here are invented."""

from __future__ import annotations

import pytest

from likewise import disk
from likewise.data import check, load_records, open_table
from likewise.errors import FormatError, UsageError
from likewise.files import remembering_inputs
from likewise.records import Relation

ITEMS = {
    "1a_p_A": "dcTitle:\tThe mill\ndcCreator:\tN. Nobody\ndcDate:\t1650\n",
    "1b_p_B": "dcTitle:\tThe windmill\ndcSource:\tA small museum\n",
    "2a_p_C": "dcTitle:\tA brass horn\n",
    "2b_p_D": "dcDescription:\tA  letter about\ta horn\n",
}
RELATIONS = [
    f"{name}:0..5"
    for name in ("general", "author", "people", "time", "location", "event", "subject", "description")
]


@pytest.fixture
def folder(tmp_path):
    """Two pairs with their items."""
    base = "http://items.invalid/portal/record/p"
    (tmp_path / "STS.input.europeana.txt").write_text(
        f"{base}/A.html\t{base}/B.html\n{base}/C.html\t{base}/D.html\n"
    )
    (tmp_path / "STS.gs.europeana.txt").write_text("4\t0\t1\t2\t3\t0\t5\t4.5\n2\t0\t0\t0\t0\t0\t3\t2\n")
    texts = tmp_path / "pairs" / "text"
    texts.mkdir(parents=True)
    for name, content in ITEMS.items():
        (texts / f"{name}.txt").write_text(content)
    return tmp_path


def test_typed_folder_is_read_like_any_table(folder):
    records = load_records(folder, relations=[Relation.parse(text) for text in RELATIONS])
    assert records[0].texts == ("The mill N. Nobody 1650", "The windmill A small museum")
    assert records[1].texts == ("A brass horn", "A letter about a horn")
    assert records[0].values["description"] == 4.5
    assert records[1].source.endswith("STS.gs.europeana.txt:2")
    assert check(folder, relations=RELATIONS).ok


def test_typed_folder_names_what_is_missing(folder):
    (folder / "pairs" / "text" / "2b_p_D.txt").unlink()
    with pytest.raises(
        FormatError, match=r"input.europeana.txt:2: 2b_p_D.txt is not in text/\. Fetch the item"
    ):
        load_records(folder, relations=[Relation.parse(text) for text in RELATIONS])
    assert check(folder, relations=RELATIONS).problems == 1
    (folder / "STS.gs.europeana.txt").write_text("4\t0\n")
    with pytest.raises(
        FormatError, match=r"there are 2 pairs in STS.input.europeana.txt, but 1 lines of scores"
    ):
        load_records(folder, relations=[Relation.parse(text) for text in RELATIONS])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("http://items.invalid/record/../../x.html\thttp://items.invalid/record/p/B.html", "is not in text/"),
        ("one address", "there are 1 addresses, but two are expected"),
        ("a\tb", "is not an item address"),
    ],
)
def test_typed_folder_refuses_odd_addresses(folder, line, message):
    second = (folder / "STS.input.europeana.txt").read_text().splitlines()[1]
    (folder / "STS.input.europeana.txt").write_text(f"{line}\n{second}\n")
    with pytest.raises(FormatError, match=message):
        load_records(folder, relations=[Relation.parse(text) for text in RELATIONS])


def test_typed_files_behind_links_are_inputs(folder, tmp_path):
    gold = next(folder.glob("STS.gs.*"))
    gold.rename(tmp_path / "gold.tsv")
    gold.symlink_to(tmp_path / "gold.tsv")
    with remembering_inputs():
        assert list(open_table(folder))
        with pytest.raises(UsageError, match="is an input"):
            disk.write_text_aside(tmp_path / "gold.tsv", "other")
