"""What label models are given and cannot use: said clearly, and nothing is changed on disk."""

from __future__ import annotations

import logging
import random

import numpy as np
import pytest

import likewise
from likewise.cli.classify import read_labels
from likewise.encoders.features import TextFeatures
from likewise.encoders.lstm import lstm_encoder
from likewise.encoders.sentence import load_encoder
from likewise.encoders.vocabulary import find_vocabulary
from likewise.encoders.words import average_encoder
from likewise.errors import UsageError
from likewise.kinds.labels import LabelCollate, LabelSteps, rows_by_task
from likewise.methods.label_embedding import LabelModel
from likewise.methods.label_texts import find_label_faults
from likewise.records import Record, Relation
from likewise.training.settings import FitSettings

PACE = {"fast": ["runs", "plays soccer"], "slow": ["sleeps", "reads a book"]}
AGE = {"old": ["in the house", "near the piano"], "new": ["on the street", "with a guitar"]}


def write_rows(path, *kinds, count=80, seed=1):
    """Texts that each task labels by one of its own words; a column per task."""
    generator = random.Random(seed)
    lines = [",".join(["text", *(name for name, _ in kinds)])]
    for number in range(count):
        labels = [generator.choice(list(ways)) for _, ways in kinds]
        said = [generator.choice(ways[label]) for label, (_, ways) in zip(labels, kinds, strict=True)]
        lines.append(",".join([f"the {generator.choice(['man', 'dog'])} {' '.join(said)} {number}", *labels]))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(params=["lstm", "sentence"])
def encoder(request, tiny_encoder, tiny_vectors):
    """A recipe's encoder: word vectors under an LSTM, or a sentence encoder."""
    if request.param == "sentence":
        return f'{{ name = "{tiny_encoder}", normalise = false }}'
    return word_encoder(tiny_vectors)


def word_encoder(vectors, kind="lstm", words="all"):
    hidden = "hidden = 8, " if kind == "lstm" else ""
    return f'{{ kind = "{kind}", vectors = "{vectors}", {hidden}train_vectors = true, words = "{words}" }}'


PACE_RELATION = 'labels = ["fast", "slow"]'


def write_recipe(path, encoder, relations, *, stage="", data="pace.csv", rate=5e-3):
    tasks = "".join(f'[relation.{name}]\nkind = "classes"\n{keys}\n' for name, keys in relations.items())
    path.write_text(
        f'name = "tasks"\nmethod = "labels"\nencoder = {encoder}\n{tasks}'
        f'[[stage]]\nkind = "labels"\ndata = [{{ source = "{data}" }}]\n'
        f"batch_size = 16\nlearning_rate = {rate}\n{stage}\n"
    )


@pytest.fixture
def folder(tmp_path):
    """A folder with labelled texts: one task, another, both."""
    write_rows(tmp_path / "pace.csv", ("pace", PACE))
    write_rows(tmp_path / "age.csv", ("age", AGE))
    write_rows(tmp_path / "both.csv", ("pace", PACE), ("age", AGE))
    return tmp_path


@pytest.fixture
def trained(folder, encoder, here):
    """The same with a trained model of the first task."""
    write_recipe(folder / "tasks.toml", encoder, {"pace": PACE_RELATION})
    code, said = here("train", "tasks.toml", "--output", "model", "--device", "cpu")
    assert code == 0, said
    return folder


def on_disk(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def refuse(here, folder):
    """Run a command that must fail, and leave every file as it was and none beside them."""

    def run(*arguments, code=2):
        before = on_disk(folder)
        found, said = here(*arguments)
        assert found == code, said
        assert "Traceback" not in said
        assert on_disk(folder) == before, sorted(set(on_disk(folder)) ^ set(before))
        return said

    return run


TRAIN = ("train", "tasks.toml", "--output", "out", "--device", "cpu")
UNKNOWN = {
    "its name": ('labels = ["fast", "zzz"]', "label 'zzz' has no word"),
    "its text": (
        f'{PACE_RELATION}\ntexts = {{ slow = "zzz qqq" }}',
        "'slow' (label text 'zzz qqq') has no word",
    ),
    "one of its texts": (
        f'{PACE_RELATION}\ntexts = {{ slow = ["sleeps", "zzz qqq"] }}',
        "'slow' (label text 'zzz qqq') has no word",
    ),
}


@pytest.mark.parametrize("kind", ["lstm", "average", "bilstm"])
@pytest.mark.parametrize("case", UNKNOWN)
def test_a_label_without_a_known_word_stops_training_before_it_begins(
    folder, refuse, tiny_vectors, kind, case
):
    relation, found = UNKNOWN[case]
    encoder = word_encoder(tiny_vectors, kind, words="data")
    write_recipe(folder / "tasks.toml", encoder, {"pace": relation})
    if case == "its name":
        (folder / "pace.csv").write_text((folder / "pace.csv").read_text().replace(",slow", ",zzz"))
    said = refuse(*TRAIN)
    assert "relation.pace: label" in said
    assert found in said
    assert "(zzz" in said
    assert "relation.pace.texts" in said
    assert "step" not in said
    assert found in refuse("train", "tasks.toml", "--dry-run")


def test_every_label_that_says_nothing_is_named_at_once(folder, refuse, tiny_vectors):
    relations = {"pace": 'labels = ["fast", "zzz"]', "age": 'labels = ["xxx", "yyy", "new"]'}
    write_recipe(folder / "tasks.toml", word_encoder(tiny_vectors), relations, data="both.csv")
    (folder / "both.csv").write_text(
        "text,pace,age\n" + "the man 1,fast,xxx\nthe dog 2,zzz,new\na cat 3,fast,yyy\n" * 10
    )
    said = refuse(*TRAIN)
    assert [f"label {word!r} has no word" in said for word in ("zzz", "xxx", "yyy", "new")] == [
        *(True, True, True, False)
    ]


def test_one_hot_heads_do_not_care_what_labels_say(folder, here, tiny_vectors):
    relation = f'{PACE_RELATION}\ntexts = {{ slow = "zzz", fast = "zzz" }}'
    write_recipe(
        folder / "tasks.toml", word_encoder(tiny_vectors), {"pace": relation}, stage='matcher = "one-hot"'
    )
    code, said = here(*TRAIN)
    assert code == 0, said


def test_a_label_with_some_unknown_words_is_told(folder, here, tiny_vectors, caplog):
    relation = f'{PACE_RELATION}\ntexts = {{ slow = "zzz sleeps qqq" }}'
    write_recipe(folder / "tasks.toml", word_encoder(tiny_vectors), {"pace": relation})
    code, said = here(*TRAIN)
    assert code == 0, said
    assert (
        "relation.pace: label 'slow' (label text 'zzz sleeps qqq') has words unknown to the encoder (" in said
    )
    assert "zzz, qqq" in said
    (folder / "mail.csv").write_text("text\n" + "the man sleeps\n" * 5000)
    with caplog.at_level(logging.WARNING, logger="likewise"):
        code, said = here(
            "classify", "mail.csv", "--model", "out", "--labels", "sings, dog zzz", "--output", "x.csv"
        )
    assert code == 0, said
    told = [record.message for record in caplog.records if "unknown to the encoder (zzz)" in record.message]
    assert len(told) == 1  # not once per window of the file


def test_a_sentence_encoder_is_asked_too(folder, here, refuse, tiny_encoder):
    """Parts of words are mostly known; labels of which none is cannot be told from each other."""
    encoder = f'{{ name = "{tiny_encoder}" }}'
    write_recipe(folder / "tasks.toml", encoder, {"pace": f'{PACE_RELATION}\ntexts = {{ slow = "zzz" }}'})
    code, said = here(*TRAIN)
    assert code == 0, said
    assert "label 'slow' (label text 'zzz') has no part known to the encoder (zzz)" in said
    said = refuse("classify", "the man", "--model", str(tiny_encoder), "--labels", "zzz, qqq")
    assert "'zzz' and 'qqq' are the same for the encoder" in said


ALIKE = {
    "one text": f'{PACE_RELATION}\ntexts = {{ slow = "fast" }}',
    "one of several texts": f'{PACE_RELATION}\ntexts = {{ slow = ["sleeps", "fast"] }}',
    "case": f'{PACE_RELATION}\ntexts = {{ slow = "Fast" }}',
    "blanks": f'{PACE_RELATION}\ntexts = {{ slow = " fast " }}',
}


@pytest.mark.parametrize("case", ALIKE)
def test_labels_of_a_task_that_read_the_same_are_refused(folder, refuse, encoder, case):
    write_recipe(folder / "tasks.toml", encoder, {"pace": ALIKE[case]})
    said = refuse(*TRAIN)
    assert "relation.pace: labels 'fast' and 'slow' are the same for the encoder" in said
    assert "different words" in said


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ('["fast"]', "at least two different labels, but found 'fast'"),
        ("[]", "at least two different labels, but found none"),
        ('["fast", "fast"]', "at least two different labels, but found 'fast', 'fast'"),
        ('["fast", " "]', "a label is empty"),
    ],
)
def test_a_task_needs_labels_to_choose_from(folder, refuse, encoder, labels, found):
    write_recipe(folder / "tasks.toml", encoder, {"pace": f"labels = {labels}"})
    said = refuse(*TRAIN)
    assert "relation 'pace': " in said
    assert found in said


def test_tasks_with_the_same_labels_are_kept_apart(folder, here, tiny_encoder):
    """Labels of one name: each task has its own rows, its own words for them, its own answers."""
    write_rows(folder / "both.csv", ("pace", PACE), ("age", AGE), count=200)
    text = (folder / "both.csv").read_text()
    for word, label in (("fast", "yes"), ("slow", "no"), ("old", "yes"), ("new", "no")):
        text = text.replace(f",{word}", f",{label}")
    (folder / "both.csv").write_text(text)
    relations = {
        "pace": 'labels = ["yes", "no"]\ntexts = { yes = "fast", no = "slow" }',
        "age": 'labels = ["yes", "no"]\ntexts = { yes = "old", no = "new" }',
    }
    encoder = f'{{ name = "{tiny_encoder}", normalise = false }}'
    stage = "epochs = 10\nhead_learning_rate = 5e-3"
    write_recipe(folder / "tasks.toml", encoder, relations, data="both.csv", stage=stage, rate=2e-3)
    code, said = here(*TRAIN)
    assert code == 0, said
    assert "360 texts" in said  # 180 in each task, 20 for dev
    model = likewise.load_classifier(folder / "out", device="cpu")
    texts = ["the man runs with a guitar 3", "the dog sleeps near the piano 7"]
    assert model.classify(texts, task="pace").best == ["yes", "no"]
    assert model.classify(texts, task="age").best == ["no", "yes"]


def test_tasks_may_share_labels_and_their_words(folder, here, encoder):
    text = (folder / "both.csv").read_text()
    (folder / "both.csv").write_text(text.replace(",old", ",fast").replace(",new", ",slow"))
    write_recipe(
        folder / "tasks.toml", encoder, {"pace": PACE_RELATION, "age": PACE_RELATION}, data="both.csv"
    )
    code, said = here(*TRAIN)
    assert code == 0, said
    assert "accuracy pace" in said
    assert "accuracy age" in said


@pytest.mark.parametrize("empty", ["", "   ", "\t"])
def test_an_empty_text_is_named_by_file_and_line(trained, refuse, empty):
    (trained / "bad.csv").write_text(f"text,tone\nthe man sings,fast\n{empty},slow\nthe dog,slow\n")
    recipe = (trained / "tasks.toml").read_text().replace("pace.csv", "bad.csv")
    (trained / "tasks.toml").write_text(recipe.replace("[relation.pace]", "[relation.tone]"))
    place = "bad.csv:3: text is empty"
    assert place in refuse(*TRAIN, code=1)
    stop = ("--output", "sorted.csv", "--on-bad", "stop")
    assert place in refuse("classify", "bad.csv", "--model", "model", "--task", "pace", *stop, code=1)
    for mode in ("zero", "hot", "cold"):
        said = refuse(
            *("update", "model", "bad.csv", "--task", "tone", "--mode", mode, "--output", "new"), code=1
        )
        assert place in said


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_text_on_the_command_line_is_refused_as_by_score(trained, refuse, tiny_encoder, empty):
    said = refuse("classify", empty, "--model", "model", "--task", "pace", code=1)
    assert "is empty" in said
    assert "is empty" in refuse("score", empty, "the man", "--model", str(tiny_encoder), code=1)


@pytest.mark.parametrize("mode", ["zero", "hot", "cold"])
def test_an_update_that_cannot_be_made_says_why(trained, refuse, mode):
    end = ("--mode", mode, "--output", "new", "--device", "cpu")
    said = refuse("update", "model", "pace.csv", "--task", "pace", *end)
    assert "the model already answers 'pace'. Choose another --task NAME." in said
    (trained / "one.csv").write_text("text,tone\n" + "the man,fast\n" * 20)
    said = refuse("update", "model", "one.csv", "--task", "tone", *end, code=1)
    assert "only the label 'fast', but two or more are needed" in said
    assert "--labels" in said
    assert "--relation" not in said
    said = refuse("update", "model", "age.csv", "--task", "tone", *end, code=1)
    assert "no column 'tone'" in said
    assert "--column" in said
    assert "names only 'old'" in refuse(
        "update", "model", "age.csv", "--task", "age", "--labels", "old", *end
    )
    said = refuse("update", "model", "age.csv", "--task", "age", "--labels", "old | new, new", *end)
    assert "'old' and 'new' are the same for the encoder" in said
    said = refuse("update", "model", "age.csv", "--task", "age", "--labels", "old, red", *end, code=1)
    assert "is 'new', but it must be one of old, red" in said


@pytest.mark.parametrize("mode", ["zero", "hot", "cold"])
def test_an_update_refuses_labels_without_a_known_word(folder, here, refuse, tiny_vectors, mode):
    write_recipe(folder / "tasks.toml", word_encoder(tiny_vectors, words="data"), {"pace": PACE_RELATION})
    assert here("train", "tasks.toml", "--output", "model", "--device", "cpu")[0] == 0
    (folder / "age.csv").write_text((folder / "age.csv").read_text().replace(",new", ",zzz"))
    end = ("--task", "age", "--mode", mode, "--output", "new", "--device", "cpu")
    said = refuse("update", "model", "age.csv", *end)
    assert "label 'zzz' has no word" in said
    # A name that says nothing is said in words. Only training anew learns words that it was not begun with.
    code, said = here("update", "model", "age.csv", "--labels", "old, zzz = the street", *end)
    assert (code == 0) == (mode == "cold"), said
    if mode == "cold":
        new = likewise.load_classifier(folder / "new", device="cpu").relations[1]
        assert (new.labels, new.label_texts) == (("old", "zzz"), (("old",), ("the street",)))
    else:
        assert "label 'old' has no word" in said
        assert "--mode cold" in said
        assert not (folder / "new").exists()


def test_models_without_a_matcher_cannot_be_given_a_task(
    folder, here, refuse, encoder, tiny_encoder, tiny_pairs
):
    write_recipe(folder / "tasks.toml", encoder, {"pace": PACE_RELATION}, stage='matcher = "one-hot"')
    assert here("train", "tasks.toml", "--output", "fixed", "--device", "cpu")[0] == 0
    code, said = here(
        *("train", str(tiny_pairs), "--encoder", str(tiny_encoder), "--output", "pairs", "--device", "cpu"),
        *("--set", "stage.0.epochs=1"),
    )
    assert code == 0, said
    end = ("age.csv", "--task", "age", "--output", "new", "--device", "cpu")
    said = refuse("update", "fixed", *end)
    assert "has a fixed layer per task and cannot read labels. Train one with a matcher" in said
    code, said = here("classify", "the man", "--model", "pairs", "--labels", "old, new", "--device", "cpu")
    assert code == 0, said
    said = refuse("update", str(tiny_encoder), *end, code=1)
    assert "was not trained by Likewise, so it cannot be updated" in said
    assert "likewise train" in said
    assert "has one head per relation and none that reads descriptions" in refuse("update", "pairs", *end)


def test_rows_that_nothing_can_be_learnt_from_leave_no_run_behind(folder, refuse, encoder):
    both = {"pace": PACE_RELATION, "age": 'labels = ["old", "new"]'}
    write_recipe(folder / "tasks.toml", encoder, both)
    assert "age: no training text has a label of this task" in refuse(*TRAIN, code=1)
    (folder / "pace.csv").write_text("text,pace\n" + "the man sings,fast\n" * 20)
    write_recipe(
        folder / "tasks.toml", encoder, {"pace": PACE_RELATION}, stage='dev = [{ source = "both.csv" }]'
    )
    assert "all 20 training texts have the label 'fast'" in refuse(*TRAIN, code=1)
    write_rows(folder / "pace.csv", ("pace", PACE))
    (folder / "both.csv").write_text("text,pace\nthe man,\nthe dog,\n")
    assert "both.csv: no dev text has a label of any task" in refuse(*TRAIN, code=1)
    write_recipe(folder / "tasks.toml", encoder, {"pace": ""})
    graded = (
        (folder / "tasks.toml")
        .read_text()
        .replace('[relation.pace]\nkind = "classes"\n', "[relation.pace]\n")
    )
    (folder / "tasks.toml").write_text(graded)
    (folder / "pace.csv").write_text("text,pace\n" + "the man sings,3\nthe dog,2\n" * 10)
    assert "a task needs labels" in refuse(*TRAIN)


def test_labels_of_the_command_line_are_read():
    assert read_labels("praise, complaint | grievance") == {
        "praise": ["praise"],
        "complaint": ["complaint", "grievance"],
    }
    assert read_labels("acq = mergers | a purchase, earn=profits,") == {
        "acq": ["mergers", "a purchase"],
        "earn": ["profits"],
    }
    for text, found in (
        ("a, a", "twice"),
        ("a = x, a = y", "twice"),
        ("a", "only 'a'"),
        (" , ", "no label"),
        ("a = , b", "NAME = WORDS"),
        ("= x, b", "NAME = WORDS"),
    ):
        with pytest.raises(UsageError, match=found):
            read_labels(text)


def test_a_vocabulary_says_what_it_knows(tiny_vectors, tiny_encoder):
    words = find_vocabulary(average_encoder(tiny_vectors, device="cpu"))
    assert words.of_words
    reading = words.read("The Zzz, sleeps QQQ")
    assert reading.unknown == ("Zzz", "QQQ")
    assert len(reading.pieces) == 5
    assert not reading.says_nothing
    assert words.read("zzz").says_nothing
    assert words.read("").says_nothing
    parts = find_vocabulary(load_encoder(tiny_encoder, device="cpu"))
    assert not parts.of_words
    assert parts.read("books").unknown == ()
    assert parts.read("zzz books").unknown == ("zzz",)


def test_an_encoder_that_is_a_function_knows_labels_by_their_texts(tmp_path):
    from likewise.encoders.external import external_encoder

    encoder = external_encoder(lambda texts: np.ones((len(texts), 3), dtype=np.float32))
    same = Relation.classes("pace", ["a", "b"], texts=(("x y",), ("x  y",)))
    assert len(find_label_faults(encoder, same, place="pace").problems) == 1
    assert not find_label_faults(encoder, Relation.classes("pace", ["a", "b"]), place="pace").problems


@pytest.mark.parametrize("kind", ["lstm", "sentence"])
@pytest.mark.parametrize("order", ["length", "random"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_step_is_never_padded_beyond_its_own_longest_text(tiny_vectors, tiny_encoder, kind, order, chunked):
    encoder = (
        load_encoder(tiny_encoder, device="cpu")
        if kind == "sentence"
        else lstm_encoder(tiny_vectors, hidden=8, device="cpu")
    )
    task = Relation.classes("pace", ["fast", "slow"])
    records = [
        Record(
            (" ".join(["dog"] * (1 + 40 * (n % 16 == 0) + n % 8)) + f" {n}",), {"pace": task.labels[n % 2]}
        )
        for n in range(160)
    ]
    rows, features = rows_by_task(records, [task]), TextFeatures(encoder)
    lengths = [features.length(text) for text in rows["pace"].texts]
    settings = FitSettings(batch_size=8, order=order)
    steps = LabelSteps(rows, {"pace": lengths}, settings)
    collate = LabelCollate(LabelModel(encoder, [task]), rows, features, chunked=chunked)
    widths, seen = [], 0
    for items in steps.of_epoch(0):
        step = collate(items)
        assert len(step["rows"]) == len(items)
        assert max(chunk["input_ids"].shape[1] for chunk in step["chunks"]) == max(
            lengths[n] for _, n, _ in items
        )
        for chunk in step["chunks"]:
            assert int(chunk["attention_mask"].sum(1).max()) == chunk["input_ids"].shape[1]
            seen += len(chunk["input_ids"])
            widths.append(chunk["input_ids"].shape[1])
    assert seen == len(records)
    if order == "length":
        assert min(widths) < max(lengths) / 4
        assert sorted(widths)[len(widths) // 2] < max(lengths) / 2
