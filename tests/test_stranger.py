"""A newcomer's jobs from beginning to end, as a stranger does them: with files of their own and without the
repository. Each job runs with a tiny encoder, and the slow ones also with real weights.
"""

from __future__ import annotations

import csv
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import likewise
from likewise.answering import NONE_OF_THESE
from likewise.data import canonical, catalogue
from likewise.data.canonical import RowDigest
from likewise.data.sources import listing
from likewise.errors import DataError, LikewiseError, UsageError
from tests import forks
from tests.data.published import serving, tsv, zipped
from tests.tickets import ADDED, ADDED_WORDS, INTENTS, tickets
from tests.tiny import WORDS

SAMPLES = Path(likewise.__file__).parent / "samples"
PLAIN = [word for word in WORDS if word.isalpha()]
OWN = ("--text-a", "Satz 1", "--text-b", "Satz 2", "--relation", "Note:0..5")


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    """No corpora, cache and log of this machine."""
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module", params=["tiny", pytest.param("real", marks=pytest.mark.slow)])
def encoder(request) -> str:
    """The encoder of a job that both can do."""
    return str(request.getfixturevalue("tiny_encoder" if request.param == "tiny" else "minilm"))


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]], mark: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf8") as file:
        writer = csv.writer(file, delimiter=mark)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def read_rows(path: Path, mark: str = ",") -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:  # the mark of the input is written back
        return list(csv.DictReader(file, delimiter=mark))


def document(said: str) -> Any:
    """The JSON in what a command printed."""
    starts = [place for place in map(said.find, "{[") if place >= 0]
    return json.JSONDecoder().raw_decode(said[min(starts) :])[0]


def trained(folder: Path, *arguments: object) -> str:
    """Train in a process of its own; what was said."""
    done = forks.run("train", *arguments, "--device", "cpu", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


# 1. A messy file is scored.

LONG = "the old train runs slow near the river " * 100
MESSY = [
    ["1", "Der Zug kommt zu spät.", "Die Bahn ist verspätet.", "4,5", "Umfrage", "2024"],
    ["2", "Great service 😀👍", "Loved it; would\ncome again", "3,25", "web", ""],
    ["3", "", "Der Satz davor fehlt.", "1,0", "web", "2023"],
    ["4", "Nur einer", "  ", "", "", ""],
    ["5", 'Er sagt "nein".', "Er lehnt ab.", "5", "Umfrage", "2024"],
    ["6", LONG.strip(), "A short one.", "0,5", "web", "2024"],
    ["7", "zu kurz"],
    ["8", "naïve café", "ＦＵＬＬ width", "2,0", "web", "x"],
]
MESSY_HEADER = ["Nr", "Satz A", "Satz B", "Note", "Quelle", "Quelle"]


@pytest.fixture
def messy(tmp_path) -> Path:
    """A table as a spreadsheet in German writes it, with a mark of its encoding."""
    path = write_rows(tmp_path / "messy.csv", MESSY_HEADER, MESSY, ";")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    return path


def test_stranger_scores_a_messy_sheet_and_gets_all_columns_back(messy, here, encoder, caplog):
    command = ("score", "messy.csv", "--output", "out.csv", "--model", encoder, "--device", "cpu")
    code, said = here(*command)
    assert code == 1
    assert "The columns are Nr, Satz A, Satz B, Note, Quelle" in said
    assert "Name the text columns: --text-a NAME --text-b NAME" in said
    code, said = here(*command, "--text-a", "Satz A", "--text-b", "SatzB")
    assert (code, "did you mean 'Satz B'?" in said) == (1, True)
    assert not messy.with_name("out.csv").exists()
    before = messy.read_bytes()
    code, said = here(*command, "--text-a", "Satz A", "--text-b", "Satz B")
    assert code == 0, said
    assert "the fields are separated by semicolons" in caplog.text
    assert "2 columns are called 'Quelle'. The later ones are read as 'Quelle_2'" in caplog.text
    assert "1 of 10 texts is longer than" in said
    assert "Use --long chunk to read them whole" in said
    # Row 2 has a line break, so that the lines of the file are counted and not its rows.
    assert "3 of 8 rows could not be read and have no answers:" in said
    assert "messy.csv:5: Satz A is empty" in said
    assert "messy.csv:6: Satz B is empty" in said
    assert "messy.csv:9: there are 2 fields, but 6 are expected" in said
    assert "5 pairs scored and written to out.csv" in said
    rows = read_rows(messy.with_name("out.csv"), ";")
    assert list(rows[0]) == ["Nr", "Satz A", "Satz B", "Note", "Quelle", "Quelle_2", "similarity"]
    kept = [list(row.values())[:6] for row in rows]
    assert kept == [row + [""] * (6 - len(row)) for row in MESSY]
    assert [row["Nr"] for row in rows if not row["similarity"]] == ["3", "4", "7"]
    assert all(-1 <= float(row["similarity"]) <= 1 for row in rows if row["similarity"])
    assert messy.read_bytes() == before


def test_stranger_reads_long_texts_whole_if_asked(messy, here, encoder):
    columns = ("--text-a", "Satz A", "--text-b", "Satz B", "--model", encoder, "--device", "cpu")
    assert here("score", "messy.csv", "--output", "cut.csv", *columns)[0] == 0
    code, said = here("score", "messy.csv", "--output", "whole.csv", "--long", "chunk", *columns)
    assert code == 0, said
    assert "Use --long chunk" not in said
    cut, whole = (read_rows(messy.with_name(f"{name}.csv"), ";") for name in ("cut", "whole"))
    changed = [
        one["Nr"] for one, other in zip(cut, whole, strict=True) if one["similarity"] != other["similarity"]
    ]
    assert changed == ["6"]


@pytest.mark.slow
def test_stranger_sees_no_bars_of_the_libraries(messy, minilm):
    """In a fresh process, where no library has been told to be quiet yet."""
    command = [sys.executable, "-m", "likewise", "score", "A dog runs.", "A cat sleeps.", "--device", "cpu"]
    done = subprocess.run(command, cwd=messy.parent, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("similarity  ")


# 2. Ratings of one's own.


def write_own(folder: Path, name: str, rows: Iterable[dict[str, str]]) -> Path:
    """Rated pairs with columns of one's own names, in the form of a spreadsheet with decimal commas."""
    cells = ([row["text_a"], row["text_b"], row["similarity"].replace(".", ",")] for row in rows)
    return write_rows(folder / name, ["Satz 1", "Satz 2", "Note"], cells, ";")


@pytest.fixture(scope="module")
def own(tiny_encoder, tmp_path_factory) -> tuple[Path, str]:
    """A folder with ratings, and a model that was trained on them; what was said meanwhile.

    Two texts are alike if they are about the same thing, whatever else they share.
    """
    folder, rng, rows = tmp_path_factory.mktemp("own"), random.Random(4), []
    for _ in range(300):
        things = rng.choices(("dog", "piano", "soup"), k=2)
        texts = [" ".join(rng.sample([thing, *rng.sample(PLAIN[:20], 4)], 5)) for thing in things]
        near = 4 if things[0] == things[1] else 0
        rows.append({"text_a": texts[0], "text_b": texts[1], "similarity": f"{near + rng.random():.2f}"})
    write_own(folder, "train.csv", rows[:180])
    write_own(folder, "test.csv", rows[180:])
    settings = [f"--set=stage.0.{one}" for one in ("epochs=8", "learning_rate=0.002", "anchor=0")]
    said = trained(folder, "train.csv", *OWN, "--output", "noten", "--encoder", tiny_encoder, *settings)
    return folder, said


def test_stranger_trains_on_own_ratings(own):
    folder, said = own
    assert "the comma in Note is read as a decimal comma" in said
    assert "starting model: dev" in said
    assert "Verdict:" in said
    assert "model: noten" in said
    assert not (folder / "noten.run").exists()
    assert "Note" in (folder / "noten/README.md").read_text(encoding="utf8")


def test_stranger_evaluates_and_compares_on_own_ratings(own, here, tmp_path, tiny_encoder):
    folder, _ = own
    (tmp_path / "test.csv").write_bytes((folder / "test.csv").read_bytes())
    model = folder / "noten"
    code, said = here("evaluate", model, "--data", "test.csv", *OWN, "--device", "cpu")
    assert code == 0, said
    assert "spearman" in said
    assert "95 % interval" in said
    gain, low, high = compared(here, tiny_encoder, model, "test.csv", *OWN)
    assert 0 < low < gain < high
    code, said = here(
        "evaluate", tiny_encoder, model, "--data", "test.csv", *OWN, "--device", "cpu", "--json"
    )
    assert code == 0, said
    found = document(said)
    assert isinstance(found, list)
    assert found[1]["differences"]["from"] == str(tiny_encoder)
    assert found[1]["differences"]["tasks"]["Note"]["verdict"] == "better"


def compared(here, first: object, second: object, data: str, *options: object) -> tuple[float, float, float]:
    """What `evaluate` says about two models on a file: the difference, and the interval around it."""
    code, said = here("evaluate", first, second, "--data", data, *options, "--device", "cpu")
    assert code == 0, said
    told = said.split("difference ")[1].split(")")[0]
    sys.stdout.write(said)
    assert ", p " in told
    number, _, interval = told.partition(" (95 % interval ")
    low, _, high = interval.partition(",")[0].partition(" to ")
    return float(number), float(low), float(high)


@pytest.mark.slow
def test_stranger_gains_from_own_ratings_with_real_weights(here, tmp_path, minilm):
    for name in ("train", "test"):
        write_own(tmp_path, f"{name}.csv", read_rows(SAMPLES / f"{name}.csv"))
    said = trained(tmp_path, "train.csv", *OWN, "--output", "noten", "--encoder", minilm)
    assert "the comma in Note is read as a decimal comma (3,33 is 3.33)" in said
    gain, low, high = compared(here, minilm, "noten", "test.csv", *OWN)
    assert gain > 5
    assert low < gain < high
    assert low > 0


# 3. Twelve intents, and a thirteenth.

TRAIN_INTENTS = ("tickets.csv", "--text", "ticket", "--label", "intent", "--output", "intents")
ADD = ("--task", "intent", "--add-label", f"{ADDED} = {ADDED_WORDS}")
# Things that the tiny encoder has words for, as twelve intents and a thirteenth.
THINGS = ["guitar", "piano", "book", "bread", "soup", "soccer", "park", "street", "house", "kitchen", "dog",
          "cat", "train"]  # fmt: skip


def about_things(things: Sequence[str], *, trained: bool) -> list[tuple[str, str]]:
    """Eight texts about each thing."""
    rows = []
    for thing in things:
        rng = random.Random(f"{thing} {trained}")
        for number in range(8):
            said = rng.sample(["the", "a", "old", "new", "red", "blue", "two", "man", "woman", "is"], 4)
            rows.append((" ".join([*said, thing, str(number)]), "gift card" if thing == "train" else thing))
    return rows


def write_tickets(folder: Path, make: Callable[..., list[tuple[str, str]]], labels: Sequence[str]) -> None:
    """Texts of twelve intents to train on and new ones, and the same of the thirteenth."""
    header = ["ticket", "intent"]
    for name, part in (("", labels[:12]), ("gift-", labels[12:])):
        write_rows(folder / f"{name}tickets.csv", header, make(part, trained=True))
        write_rows(folder / f"{name}new.csv", header, make(part, trained=False))


@pytest.fixture(scope="module")
def desk(tiny_encoder, tmp_path_factory) -> tuple[Path, str]:
    """A folder with tickets and a model of twelve intents; what was said meanwhile."""
    folder = tmp_path_factory.mktemp("desk")
    write_tickets(folder, about_things, THINGS)
    table, *options = TRAIN_INTENTS
    settings = ("--encoder", tiny_encoder, "--set", "stage.0.learning_rate=0.001")
    return folder, trained(folder, folder / table, *options, *settings)


def classified(here, folder: Path, table: str, model: object, *options: object) -> list[dict[str, str]]:
    """The rows of a file with their predictions."""
    model_folder = folder / str(model)
    code, said = here(
        *("classify", folder / table, "--text", "ticket", "--model", model_folder, "--device", "cpu"),
        *("--output", "sorted.csv", "--overwrite", *options),
    )
    assert code == 0, said
    texts = len(read_rows(folder / table))
    assert f"{texts} texts classified and written to sorted.csv" in said
    rows = read_rows(Path("sorted.csv"))
    assert [row["ticket"] for row in rows] == [row["ticket"] for row in read_rows(folder / table)]
    return rows


def right(rows: Iterable[dict[str, str]]) -> int:
    return sum(row["predicted_intent"] == row["intent"] for row in rows)


def added(here, folder: Path, output: str, *arguments: object) -> str:
    """Add the thirteenth label to the model; what was said."""
    code, said = here("update", folder / "intents", *arguments, *ADD, "--output", output, "--device", "cpu")
    assert code == 0, said
    return said


def test_stranger_sorts_a_file_of_tickets(desk, here, tmp_path):
    folder, said = desk
    assert "all 96 texts are trained on" in said
    assert "learns intent (12 labels)" in said
    rows = classified(here, folder, "new.csv", "intents")
    assert list(rows[0]) == [
        "ticket",
        "intent",
        "predicted_intent",
        *(f"p({x})" for x in sorted(THINGS[:12])),
    ]
    for row in rows:
        chances = {name: float(value) for name, value in row.items() if name.startswith("p(")}
        assert sum(chances.values()) == pytest.approx(1, abs=1e-4)
        assert max(chances, key=chances.__getitem__) == f"p({row['predicted_intent']})"
    assert right(rows) >= 80
    # The options that the training named for this.
    assert "likewise evaluate MODEL --data FILE --text-a ticket --relation intent:classes" in said
    code, said = here(
        *("evaluate", folder / "intents", "--data", folder / "new.csv", "--text-a", "ticket"),
        *("--relation", "intent:classes", "--device", "cpu", "--json"),
    )
    assert code == 0, said
    assert f"{100 * right(rows) / 96:.4f}"[:5] in said  # the same count as in the file


def test_stranger_gets_none_of_these_below_a_probability(desk, here):
    folder, _ = desk
    plain = classified(here, folder, "new.csv", "intents")
    chances = [max(float(v) for k, v in row.items() if k.startswith("p(")) for row in plain]
    limit = round(sorted(chances)[30], 4)
    rows = classified(here, folder, "new.csv", "intents", "--none-below", limit)
    none = [row["predicted_intent"] == NONE_OF_THESE for row in rows]
    assert none == [chance < limit for chance in chances]
    assert 20 < sum(none) < 40


@pytest.mark.parametrize("verb", ["calibrate", "classify", "train", "update"])
def test_stranger_is_told_the_option_that_names_the_column(desk, here, verb):
    """A column that no program can guess."""
    folder, _ = desk
    model, table = folder / "intents", folder / "new.csv"
    commands = {
        "calibrate": ("calibrate", model, table, "--output", "x"),
        "classify": ("classify", table, "--model", model),
        "train": ("train", table, "--label", "intent", "--text", "tiket"),
        "update": ("update", model, folder / "gift-tickets.csv", *ADD, "--output", "x"),
    }
    code, said = here(*commands[verb])
    assert code == 1
    assert "The columns are ticket, intent" in said
    assert "--text NAME" in said
    assert "--text-a" not in said


def test_stranger_adds_a_label_and_calibrates(desk, here, tmp_path):
    folder, _ = desk
    before = classified(here, folder, "new.csv", "intents")
    said = added(here, folder, "more")
    assert "model: more" in said
    after = classified(here, folder, "new.csv", tmp_path / "more")
    assert "p(gift card)" in after[0]
    for one, other in zip(before, after, strict=True):  # the other labels stand to each other as before
        assert other["predicted_intent"] in (one["predicted_intent"], ADDED)
    said = added(here, folder, "taught", folder / "gift-tickets.csv", "--text", "ticket", "--epochs", 8)
    assert "training on 104 rows with old and new labels" in said
    assert right(classified(here, folder, "gift-new.csv", tmp_path / "taught")) >= 6
    assert right(classified(here, folder, "new.csv", tmp_path / "taught")) >= right(before) - 2
    code, said = here(
        *("calibrate", folder / "intents", folder / "new.csv", "--text", "ticket", "--output", "sure"),
        *("--device", "cpu"),
    )
    assert code == 0, said
    assert "intent: 96 texts; calibration error" in said
    sure = classified(here, folder, "new.csv", tmp_path / "sure")
    assert (
        sum(one["predicted_intent"] == two["predicted_intent"] for one, two in zip(before, sure, strict=True))
        > 80
    )
    assert not (folder / "intents.run").exists()


@pytest.mark.slow
def test_stranger_sorts_tickets_well_with_real_weights(here, tmp_path, minilm):
    from sklearn.linear_model import LogisticRegression

    write_tickets(tmp_path, tickets, [*INTENTS, ADDED])
    trained(tmp_path, *TRAIN_INTENTS, "--encoder", minilm)
    before = classified(here, tmp_path, "new.csv", "intents")
    raw, taught = likewise.load(minilm, device="cpu"), read_rows(tmp_path / "tickets.csv")
    simple = LogisticRegression(max_iter=2000).fit(
        raw.encode([row["ticket"] for row in taught]), [row["intent"] for row in taught]
    )
    simply = simple.score(raw.encode([row["ticket"] for row in before]), [row["intent"] for row in before])
    code, said = here(
        *("evaluate", minilm, "intents", "--data", "new.csv", "--text-a", "ticket"),
        *("--relation", "intent:classes", "--device", "cpu"),
    )
    assert code == 0, said
    told = [f"of 96: trained {right(before)}, logistic regression {96 * simply:.0f}", said]
    assert right(before) >= round(96 * simply)
    added(here, tmp_path, "more")
    old, new = (classified(here, tmp_path, table, "more") for table in ("new.csv", "gift-new.csv"))
    told.append(f"without data: {right(old)} of 96 old, {right(new)} of 8 new")
    assert right(old) >= right(before) - 2
    assert right(new) >= 7
    added(here, tmp_path, "taught", tmp_path / "gift-tickets.csv", "--text", "ticket")
    old, new = (classified(here, tmp_path, table, "taught") for table in ("new.csv", "gift-new.csv"))
    told.append(f"with eight texts: {right(old)} of 96 old, {right(new)} of 8 new")
    assert right(old) >= right(before) - 2
    assert right(new) >= 7
    code, said = here(
        *("calibrate", "intents", "new.csv", "--text", "ticket", "--output", "sure", "--device", "cpu"),
    )
    assert code == 0, said
    sys.stdout.write("\n".join([*told, said]))  # at the end, since every command takes what was written


# 4. Frames and other things of Python.


@pytest.fixture(scope="module")
def pair_model(encoder):
    return likewise.load(encoder, device="cpu")


@pytest.fixture
def frame():
    pandas = pytest.importorskip("pandas")
    texts = {"Satz 1": ["a man sings", None, "the dog runs"], "Satz 2": ["a woman sings", "x", float("nan")]}
    return pandas.DataFrame({**texts, "Note": [4.0, None, 1.0]}, index=["r7", "r3", "r1"])


def test_stranger_scores_a_frame(pair_model, frame, caplog):
    found = pair_model.score(frame, text_a="Satz 1", text_b="Satz 2", on_bad="blank")
    assert "2 of 3 rows could not be read and have no answers:" in caplog.text
    assert "rows:2: Satz 1 is empty" in caplog.text
    scored = found.to_frame(frame)
    assert list(scored) == ["Satz 1", "Satz 2", "Note", "similarity"]
    assert scored.index.tolist() == ["r7", "r3", "r1"]
    assert scored["similarity"].isna().tolist() == [False, True, True]
    assert found.to_frame().index.tolist() == ["r7", "r3", "r1"]
    skipped = pair_model.score(frame, text_a="Satz 1", text_b="Satz 2", on_bad="skip").to_frame()
    assert skipped.index.tolist() == ["r7"]
    assert list(frame) == ["Satz 1", "Satz 2", "Note"]


def test_stranger_scores_whatever_holds_pairs(pair_model, frame):
    pandas = pytest.importorskip("pandas")
    pairs = [("a man sings", "a woman sings"), ("the dog runs", "a cat sleeps")]
    first, second = zip(*pairs, strict=True)
    expected = np.asarray(pair_model.score(pairs)["similarity"])
    for given in (
        (np.array(pairs),),
        (list(first), list(second)),
        (pandas.Series(first), pandas.Series(second)),
        ((pair for pair in pairs),),
        (zip(first, second, strict=True),),
        (pandas.DataFrame(pairs, columns=["text_a", "text_b"]),),
    ):
        np.testing.assert_allclose(pair_model.score(*given)["similarity"], expected, atol=1e-6)


def test_stranger_classifies_and_encodes_a_frame(encoder, pair_model, frame, caplog):
    model = likewise.load_classifier(encoder, device="cpu")
    found = model.classify(frame, text="Satz 1", labels=["man", "dog"], on_bad="blank")
    assert "1 of 3 rows could not be read" in caplog.text
    sorted_frame = found.to_frame(frame)
    assert list(sorted_frame)[3:] == ["label", "p(man)", "p(dog)"]
    assert sorted_frame["label"].isna().tolist() == [False, True, False]
    assert sorted_frame.index.tolist() == ["r7", "r3", "r1"]
    texts = frame["Satz 1"].dropna()
    vectors = pair_model.encode(texts)
    assert vectors.shape[0] == 2
    np.testing.assert_allclose(vectors, pair_model.encode(list(texts)), atol=1e-6)
    np.testing.assert_allclose(vectors, pair_model.encode(iter(texts)), atol=1e-6)
    np.testing.assert_allclose(pair_model.encode(frame.dropna(), text="Satz 1"), vectors[:1], atol=1e-5)


REFUSED: list[tuple[str, Callable[..., object], str]] = [
    ("a dict", lambda m, f: m.score({"a": ["x"], "b": ["y"]}), "dict was passed, but pairs of texts"),
    ("three axes", lambda m, f: m.score(np.full((1, 2, 2), "x")), r"an array of shape \(1, 2, 2\)"),
    ("texts", lambda m, f: m.score(np.array(["x", "y"])), r"Pass \(first, second\) for each pair"),
    ("more of one", lambda m, f: m.score(["x", "y"], ["z"]), "2 first texts and 1 second text"),
    ("numbers", lambda m, f: m.score([(1, 2)]), r"rows:1: text_a is 1 \(int\), but a text is expected"),
    ("one text", lambda m, f: m.score("just a text"), r"score\(first, second\)"),
    ("columns", lambda m, f: m.score(f), r'text_a="NAME", text_b="NAME"'),
    ("a hole", lambda m, f: m.score(f, text_a="Satz 1", text_b="Satz 2"), "rows:2: Satz 1 is empty"),
    ("a dict to encode", lambda m, f: m.encode({"a": "x"}), "dict was passed, but a text"),
    ("a column to encode", lambda m, f: m.encode(f), r'Name the text column: text="NAME"'),
    ("another to encode", lambda m, f: m.encode(f, text="Satz"), r'existing column with text="NAME"'),
    ("a hole to encode", lambda m, f: m.encode(f["Satz 1"]), "text 1: it is missing"),
    ("NaN to encode", lambda m, f: m.encode(f["Satz 2"]), "text 2: it is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "expected"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_stranger_is_refused_in_words_of_python(pair_model, frame, call, expected):
    with pytest.raises((DataError, UsageError), match=expected) as error:
        call(pair_model, frame)
    assert "--" not in str(error.value)


def test_stranger_trains_on_a_frame(tiny_encoder, own):
    pandas = pytest.importorskip("pandas")
    rated = pandas.read_csv(own[0] / "train.csv", sep=";", decimal=",")
    rated.loc[3, "Note"] = None
    options = {"text_a": "Satz 1", "text_b": "Satz 2", "encoder": str(tiny_encoder), "device": "cpu"}
    model = likewise.train(rated, relations="Note:0..5", overrides={"stage.0.max_steps": 2}, **options)
    assert [relation.name for relation in model.relations] == ["Note"]
    scored = model.score(rated[:5], text_a="Satz 1", text_b="Satz 2").to_frame(rated[:5])
    assert list(scored) == ["Satz 1", "Satz 2", "Note", "predicted_Note"]
    assert scored["predicted_Note"].between(0, 5).all()
    for wrong, expected in (
        ({"relations": "Noten:0..5"}, "did you mean 'Note'"),
        ({"relations": "Note:0..3"}, r"rows:\d+: Note is .*, but the scale is 0 to 3"),
        ({"relations": "Note:0..5", "text_b": "Satz 3"}, r'existing column with text_b="NAME"'),
    ):
        with pytest.raises(LikewiseError, match=expected) as error:
            likewise.train(rated, **{**options, **wrong})
        assert "--" not in str(error.value)
    with pytest.raises(UsageError, match="rows cannot be read from dict"):
        likewise.train({"a": 1}, **options)


# 5. Runs that are stopped.


def stopped(process: forks.Fork, ready: Callable[[], object], number: int) -> tuple[int, str]:
    """Send a signal to a process as soon as it is `ready`; its exit code and what it said."""
    deadline = time.monotonic() + 120
    while not ready():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode is not None
    return process.returncode, said


def weights(model: Path) -> dict[str, bytes]:
    files = sorted(model.rglob("*.safetensors"))
    return {file.relative_to(model).as_posix(): file.read_bytes() for file in files}


def test_stranger_presses_ctrl_c_and_resumes_a_training(own, tiny_encoder, tmp_path):
    table = own[0] / "train.csv"
    command = ("train", table, *OWN, "--encoder", tiny_encoder, "--device", "cpu", "--no-evaluate",
               "--set", "stage.0.max_steps=40", "--set", "stage.0.save_every=4")  # fmt: skip
    whole = forks.run(*command, "--output", "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    process = forks.Fork(*command, "--output", "parts", cwd=tmp_path)
    checkpoints = tmp_path / "parts.run/stage-0"
    code, said = stopped(process, lambda: list(checkpoints.glob("checkpoint-*/COMPLETE")), signal.SIGINT)
    assert code == 130, said
    assert said.splitlines()[-1].endswith("To continue, repeat the command with --resume.")
    assert not (tmp_path / "parts").exists()
    done = forks.run(*command, "--output", "parts", "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "resuming after step" in done.stderr
    assert len(weights(tmp_path / "whole")) >= 2
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == ["parts", "whole"]


# Sections so small that a file of this size has many.
IN_SECTIONS = """
from likewise.cli import answering, main
answering.WINDOW, answering.SECTION_TEXTS = 20, 100
main()
"""


def test_stranger_is_killed_and_resumes_the_scoring_of_a_file(tiny_encoder, tmp_path):
    rng = random.Random(2)
    rows = [[str(n), " ".join(rng.sample(PLAIN, 8)), " ".join(rng.sample(PLAIN, 8))] for n in range(1200)]
    rows[600][1] = ""
    write_rows(tmp_path / "pairs.csv", ["id", "text_a", "text_b"], rows)
    (tmp_path / "sections.py").write_text(IN_SECTIONS)
    command = ("score", "pairs.csv", "--model", tiny_encoder, "--device", "cpu")

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return forks.run(*command, *options, script=tmp_path / "sections.py", cwd=tmp_path)

    whole = run("--output", "whole.csv")
    assert whole.returncode == 0, whole.stderr
    process = forks.Fork(*command, "--output", "parts.csv", script=tmp_path / "sections.py", cwd=tmp_path)
    kept = tmp_path / "parts.csv.part"
    code, _ = stopped(process, lambda: len(list(kept.glob("answers-*.jsonl"))) >= 3, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not (tmp_path / "parts.csv").exists()
    done = run("--output", "parts.csv", "--resume")
    assert done.returncode == 0, done.stderr
    assert "resuming after" in done.stderr
    assert "1 of 1,200 rows could not be read" in done.stderr
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    names = {path.name for path in tmp_path.iterdir()} - {"cache"}
    assert names == {"pairs.csv", "sections.py", "whole.csv", "parts.csv"}


# 6. A corpus is fetched and used.

HEAD = "sentence1|sentence2|score"


@pytest.fixture
def invented(monkeypatch):
    """A corpus in the catalogue that a server of this machine publishes as a zip."""
    rng, rows = random.Random(6), []
    for _ in range(60):
        first = rng.sample(PLAIN, 5)
        shared = rng.randint(0, 5)
        rows.append(f"{' '.join(first)}|{' '.join([*first[:shared], *rng.sample(PLAIN, 3)])}|{shared}")
    parts = {"train": rows[:40], "test": rows[40:]}
    sums = canonical._stored()
    for name, lines in parts.items():
        digest = RowDigest(("sentence1", "sentence2", "score:number"))
        for line in lines:
            digest.add(dict(zip(HEAD.split("|"), line.split("|"), strict=True)))
        found = digest.result()
        stated = {"columns": list(found.columns), "rows": found.rows}
        sums = {
            **sums,
            f"invented/{name}.tsv": {**stated, "exact": found.exact, "keys": found.keys, "bag": found.bag},
        }
    splits = {
        name: {"file": f"invented/{name}.tsv.xz", "rows": len(lines), "sha256": "0" * 64}
        for name, lines in parts.items()
    }
    entry = {
        "title": "Invented pairs",
        "licence": "CC0",
        "citation": "nobody",
        "texts": ["sentence1", "sentence2"],
        "relations": {"similarity": {"column": "score", "scale": "0..5"}},
        "splits": splits,
    }
    known = {**catalogue._catalogue(), "invented": catalogue._corpus("invented", entry)}
    with serving() as server:
        server.files["/invented.zip"] = zipped(
            {f"in/{n}.txt": tsv(HEAD, *lines) for n, lines in parts.items()}
        )
        source = {
            "page": "https://example.org",
            "downloads": [{"url": server.url("/invented.zip"), "most": 1}],
            "targets": [
                {"file": f"invented/{name}.tsv", "layout": "table", "member": f"{name}.txt"} for name in parts
            ],
        }
        sources = {**listing.all_sources(), "invented": listing.make_source("invented", source)}
        monkeypatch.setattr(catalogue, "_catalogue", lambda: known)
        monkeypatch.setattr(canonical, "_stored", lambda: sums)
        monkeypatch.setattr(listing, "all_sources", lambda: sources)
        yield server


def test_stranger_fetches_a_corpus_and_runs_an_experiment_on_it(invented, here, tmp_path, tiny_encoder):
    (tmp_path / "suite.toml").write_text(
        'name = "mine"\n[[task]]\nname = "pairs"\ncorpus = "invented/test"\nrelation = "similarity"\n'
    )
    (tmp_path / "recipe.toml").write_text(
        f'name = "small"\nencoder = "{tiny_encoder}"\n[relation.similarity]\n[[stage]]\n'
        'data = [{ source = "invented/train" }]\ndev_share = 0.3\nmax_steps = 4\nbatch_size = 8\n'
        'objective = [{ relation = "similarity", head = "cosine", loss = "mse" }]\n'
    )
    (tmp_path / "small.toml").write_text(
        'name = "small"\nrecipe = "recipe.toml"\nsuite = "suite.toml"\nseeds = [1, 2]\nbaseline = "MSE"\n'
        '[[setting]]\nname = "MSE"\n[[setting]]\nname = "Pearson"\n'
        'set = { "stage.0.objective.0.loss" = "pearson" }\n'
    )
    command = ("experiment", "small.toml", "--summary", "sums", "--device", "cpu")
    code, said = here(*command)
    assert code == 1
    assert "likewise data get invented" in said
    assert not (tmp_path / "sums").exists()
    code, said = here("data", "get", "invented")
    assert code == 0, said
    assert "invented: Invented pairs. Licence: CC0." in said
    assert "40 rows, the same rows" in said
    assert "20 rows, the same rows" in said
    assert [path for path, _ in invented.asked] == ["/invented.zip"]
    code, said = here(*command)
    assert code == 0, said
    assert "MSE" in said
    assert "Pearson" in said
    summary = json.loads((tmp_path / "sums/small.json").read_text(encoding="utf8"))
    assert [setting["setting"] for setting in summary["settings"]] == ["MSE", "Pearson"]
    assert len(list((tmp_path / "runs/cells").glob("*.json"))) == 4
    code, said = here("evaluate", tiny_encoder, "--suite", "suite.toml", "--device", "cpu", "--json")
    assert code == 0, said
    [task] = document(said)["tasks"]
    assert task["n"] == 20
