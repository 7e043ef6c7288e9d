"""benchmarks/shipped.py measures any model the same way, and its tables hold what its results say."""

from __future__ import annotations

import argparse
import importlib
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import v_measure_score

import likewise
from likewise.evaluation.metrics import compute
from likewise.evaluation.suites import Suite
from likewise.evaluation.tasks import Task
from likewise.records import Record, Relation
from tests.tiny import WORDS

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
LABELS = {
    "entailment": ("contradiction", "neutral", "entailment"),
    "paraphrase": ("not_paraphrase", "paraphrase"),
    "question_type": ("human", "location"),
    "sentiment": ("negative", "positive"),
    "topic": ("earn", "acq", "trade"),
}


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    """The scripts are importable, as they are to each other."""
    monkeypatch.syspath_prepend(BENCHMARKS)


def module(name):
    return importlib.import_module(name)


def sentences(seed, count):
    rng = random.Random(seed)
    plain = [word for word in WORDS if word.isalpha()]
    return [" ".join(rng.sample(plain, rng.randint(3, 9))) for _ in range(count)]


def pairs(seed, count, **scales):
    """Pairs that share more or fewer words, rated by that, with labels in turn."""
    rng, found = random.Random(seed), []
    for row, first in enumerate(sentences(seed, count)):
        words = first.split()
        shared = rng.randint(0, len(words))
        second = " ".join([*words[:shared], *sentences(1000 * seed + row, 1)[0].split()[:3]])
        rated = {name: lo + (hi - lo) * shared / len(words) for name, (lo, hi) in scales.items()}
        labels = {name: LABELS[name][row % len(LABELS[name])] for name in ("entailment", "paraphrase")}
        found.append(Record((first, second), {**rated, **labels}))
    return found


def singles(seed, count, relation):
    return [
        Record((text,), {relation: LABELS[relation][row % len(LABELS[relation])]})
        for row, text in enumerate(sentences(seed, count))
    ]


@pytest.fixture
def rows():
    """Small stand-ins for the corpora, over the words that the tiny encoder knows."""
    shipping = module("shipping.rows")
    relations = {"trec_qc": "question_type", "sst2": "sentiment", "reuters46": "topic"}
    seen: dict[tuple[str, str], list[Record]] = {}

    class Small(shipping.Rows):
        def of(self, corpus, split="test"):
            seed = 1 + sum(map(ord, corpus + split))
            if (corpus, split) not in seen:
                seen[corpus, split] = (
                    singles(seed, 60, relations[corpus])
                    if corpus in relations
                    else pairs(seed, 60, relatedness=(1, 5))
                )
            return seen[corpus, split]

        @property
        def sts7(self):
            tasks = {"STS-B": ("stsb", "similarity", (0, 5)), "SICK-R": ("sick", "relatedness", (1, 5))}
            made = (
                Task(name, corpus, relation=relation, records=tuple(pairs(seed, 40, **{relation: scale})))
                for seed, (name, (corpus, relation, scale)) in enumerate(tasks.items(), 1)
            )
            return Suite("sts7", tuple(made), source="cosine")

        @property
        def clean_dev(self):
            return [(Task("STS-B", relation="similarity"), pairs(7, 40, similarity=(0, 5)))]

        @property
        def paraphrases(self):
            return [record.texts for record in pairs(8, 50)]

    return Small(None)


@pytest.fixture(scope="module")
def trained(tiny_pairs, tiny_encoder, tmp_path_factory):
    """A saved model of three relations; the one called paraphrase answers with numbers."""
    table = tmp_path_factory.mktemp("rated") / "pairs.csv"
    head, *lines = tiny_pairs.read_text().splitlines()
    table.write_text("\n".join([head.replace("topic", "paraphrase"), *lines]))
    model = likewise.train(
        table,
        encoder=tiny_encoder,
        relations=["similarity:0..5", "paraphrase:-2..2", "entailment:classes"],
        overrides={"stage.0.max_steps": 6, "stage.0.learning_rate": 1e-2, "stage.0.keep_start": False},
        device="cpu",
        quiet=True,
    )
    return model.save(tmp_path_factory.mktemp("models") / "my-model")


def challenge_items():
    """Small stand-ins for the items of the challenge set."""
    from likewise.evaluation.challenge import ChallengeItem

    return tuple(
        ChallengeItem(str(row), ("tense", "negation")[row % 2], *record.texts, other, "neutral")
        for row, (record, other) in enumerate(zip(pairs(5, 40), sentences(6, 40), strict=True))
    )


def run(rows, monkeypatch, *words):
    """The command, on small corpora."""
    shipped = module("shipped")
    if "challenge" in shipped.PARTS:
        monkeypatch.setattr(shipped.PARTS["challenge"], "_items", challenge_items())
    monkeypatch.setattr(shipped, "Rows", lambda data_dir: rows)
    monkeypatch.setattr("sys.argv", ["shipped.py", *map(str, words)])
    shipped.main()


def result_of(path):
    return json.loads(path.read_text())


def test_shipped_measures_every_part_of_a_model_of_several_relations(
    rows, trained, tiny_encoder, tmp_path, monkeypatch
):
    monkeypatch.setattr(module("shipping.regression"), "STRENGTHS", (1e-2, 1e-1))
    output = tmp_path / "found.json"
    run(rows, monkeypatch, trained, "--raw", tiny_encoder, "--baselines", "--output", output)
    found = result_of(output)
    raw, mine = found["models"]
    assert (raw["name"], raw["untrained"], raw["raw"]) == ("encoder", True, None)
    assert (mine["name"], mine["untrained"], mine["raw"]) == ("my-model", False, "encoder")
    assert set(mine["parts"]) == set(module("shipped").PARTS)
    assert set(raw["parts"]) == {*mine["parts"], "regression"} - {"entailment"}
    assert raw["left_out"] == {"entailment": "it answers no relation 'entailment'"}
    assert set(mine["relations"]) == {"similarity", "paraphrase", "entailment"}
    assert "model.safetensors" in mine["files"]
    assert raw["encoder"] != mine["encoder"]
    assert set(found["made_by"]) == {"commit", "versions", "machine", "device", "matmul"}
    for part, name in (("retrieval", "accuracy"), ("clustering", "v-measure"), ("zero-shot", "SST-2")):
        low, high = find(mine["parts"][part], "interval", "against_raw")
        assert low <= high, name
    assert str(tmp_path) not in output.read_text()


def find(part, wanted, below):
    """The first value of a key below another one."""
    for key, inner in part.items():
        if isinstance(inner, dict):
            if key == below:
                return next(iter(inner.values()))[wanted]
            if (found := find(inner, wanted, below)) is not None:
                return found
    return None


def test_shipped_numbers_are_those_of_the_model_itself(rows, trained, tmp_path, monkeypatch):
    output = tmp_path / "found.json"
    run(rows, monkeypatch, trained, "--output", output)
    parts = result_of(output)["models"][0]["parts"]
    model = likewise.load(trained, device="cpu")
    for task in rows.sts7.tasks:
        asked = [record.texts for record in task.records]
        gold = [record.values[task.relation_name] for record in task.records]
        for source, said in (("cosine", {"source": "cosine"}), ("answer", {})):
            expected = 100 * compute("spearman", gold, model.score(asked, **said)["similarity"])
            assert parts["sts7"][source]["tasks"][task.name]["value"] == pytest.approx(expected, abs=0.02)
    test = rows.of("snli")
    said = model.score([record.texts for record in test])["entailment"]
    right = np.mean([one == record.values["entailment"] for one, record in zip(said, test, strict=True)])
    assert parts["entailment"]["SNLI"]["answer"]["accuracy"]["value"] == pytest.approx(100 * right)


def test_shipped_zero_shot_is_that_of_the_classifier(tiny_encoder):
    general = module("shipping.general")
    asked = module("shipping.asked").Asked(str(tiny_encoder), device="cpu")
    texts = sentences(3, 60)
    asked.encode(texts)
    task = Relation.classes("kind", ["animal", "food"], texts=(("a dog", "a cat"), ("bread and soup",)))
    said = general.classified(general.label_reader(asked.encoder), task, asked.unit(texts))
    model = likewise.load_classifier(tiny_encoder, device="cpu")
    labels = {"animal": ["a dog", "a cat"], "food": "bread and soup"}
    assert said == model.classify(texts, labels=labels).best
    assert len(set(said)) == 2


def test_shipped_encodes_each_text_once(rows, tiny_encoder, tmp_path, monkeypatch):
    from likewise.encoders import vectors

    seen, encode = [], vectors.encode_texts

    def counted(encoder, texts, **settings):
        seen.extend(texts)
        return encode(encoder, texts, **settings)

    monkeypatch.setattr(vectors, "encode_texts", counted)
    run(rows, monkeypatch, tiny_encoder, "--output", tmp_path / "found.json", "--device", "cpu")
    entry = result_of(tmp_path / "found.json")["models"][0]
    assert len(seen) == len(set(seen)) == entry["texts"]


def test_shipped_trained_encoder_without_heads_is_no_raw_encoder(
    rows, trained, tiny_encoder, tmp_path, monkeypatch
):
    plain = tmp_path / "plain"
    shutil.copytree(trained, plain, ignore=shutil.ignore_patterns("likewise"))
    output = tmp_path / "found.json"
    run(rows, monkeypatch, plain, "--raw", tiny_encoder, "--only", "dev", "--output", output)
    raw, mine = result_of(output)["models"]
    assert (raw["untrained"], mine["untrained"], mine["raw"]) == (True, False, "encoder")
    assert raw["parts"] != mine["parts"]


def test_shipped_result_grows_by_parts(rows, tiny_encoder, tmp_path, monkeypatch):
    output = tmp_path / "found.json"
    run(rows, monkeypatch, tiny_encoder, "--only", "relatedness", "--output", output)
    run(rows, monkeypatch, tiny_encoder, "--only", "clustering,dev", "--output", output)
    [entry] = result_of(output)["models"]
    assert set(entry["parts"]) == {"relatedness", "clustering", "dev"}
    assert set(result_of(output)["tasks"]) == set(entry["parts"])
    document = result_of(output)
    document["made_by"]["device"] = "another one"
    output.write_text(json.dumps(document))
    with pytest.raises(SystemExit, match="another device"):
        run(rows, monkeypatch, tiny_encoder, "--only", "dev", "--output", output)
    assert result_of(output) == document


def test_shipped_refuses_what_it_does_not_know(rows, tiny_encoder, tmp_path, monkeypatch, capsys):
    with pytest.raises(argparse.ArgumentTypeError, match="sts8: the parts are sts7"):
        module("shipped").named_parts("dev,sts8")
    two = ["a", "--seed-label", "1", "2", "--output", "x"]
    for words in (["a", "b", "--name", "one", "--output", "x"], two, []):
        with pytest.raises(SystemExit):
            run(rows, monkeypatch, *words)
    assert "--seed-label" in capsys.readouterr().err


def test_shipped_means_of_cosines_are_standardised_on_dev(rows, trained, tiny_encoder, tmp_path, monkeypatch):
    output = tmp_path / "found.json"
    run(rows, monkeypatch, trained, tiny_encoder, "--ensemble", "--output", output)
    plain, standard = result_of(output)["ensembles"]
    assert [plain["standardised"], standard["standardised"]] == [False, True]
    assert plain["models"] == ["my-model", "encoder"]
    [(task, dev)], cosines = rows.clean_dev, {}
    for name in (trained, tiny_encoder):
        model = likewise.load(name, device="cpu")
        cosines[name] = np.asarray(model.score([r.texts for r in dev], source="cosine")["similarity"])
    gold = [record.values["similarity"] for record in dev]
    for found, mean in (
        (plain, sum(cosines.values())),
        (standard, sum((one - one.mean()) / one.std() for one in cosines.values())),
    ):
        expected = 100 * compute("spearman", gold, mean)
        assert found["dev"]["tasks"][task.name]["value"] == pytest.approx(expected, abs=0.02)


@pytest.mark.realdata
def test_shipped_rows_are_the_known_ones(data_dir):
    rows = module("shipping.rows").Rows(data_dir)
    assert [part["rows"] for part in module("shipping.similarity").Dev().facts(rows).values()] == [363, 486]
    assert module("shipping.general").Retrieval().facts(rows) == {"rows": 9999}
    tests = module("shipping.similarity").Sts7().facts(rows)
    assert [one["rows"] for one in tests.values()] == [3108, 1500, 3750, 3000, 1186, 1379, 4927]
    train, dev = module("shipping.regression").Regression().parts("SICK", rows)
    assert (len(train), len(dev)) == (4367, 486)


def test_shipped_challenge_is_compared_with_the_raw_cosine(rows, trained, tiny_encoder):
    if "challenge" not in module("shipped").PARTS:
        pytest.skip("this version of Likewise has no challenge set")
    part = module("shipping.challenge").Challenge()
    part._items = challenge_items()
    found, asked = {}, {}
    for name, model, raw in (("raw", tiny_encoder, None), ("mine", trained, "raw")):
        asked[name] = module("shipping.asked").Asked(str(model), device="cpu")
        asked[name].encode(part.texts(asked[name], rows))
        found[name] = part.measure(asked[name], rows, asked.get(raw))
    assert part.facts(rows) == {"items": {"tense": 20, "negation": 20}}
    difference = found["mine"]["all"]["similarity"]["value"] - found["raw"]["all"]["cosine"]["value"]
    assert found["mine"]["against_raw"]["similarity"]["value"] == pytest.approx(difference)
    halves = [one["cosine"]["value"] for one in found["raw"]["phenomena"].values()]
    assert np.mean(halves) == pytest.approx(found["raw"]["all"]["cosine"]["value"])


@pytest.mark.parametrize("seed", range(4))
def test_shipped_v_measure_is_that_of_scikit_learn(seed):
    draw = np.random.default_rng(seed)
    gold, clusters = draw.integers(0, 5, 80), draw.integers(0, 3, (80, 2))
    expected = np.mean([v_measure_score(gold, column) for column in clusters.T])
    assert module("shipping.general").v_measure(gold, clusters) == pytest.approx(expected)
    assert module("shipping.general").v_measure(gold, gold[:, None]) == pytest.approx(1)


def test_shipped_gain_holds_the_difference_and_its_interval():
    ours, theirs = np.array([1, 1, 1, 0] * 100), np.array([1, 0, 1, 0] * 100)
    found = module("shipping.parts").gain(ours, theirs)
    assert found["value"] == pytest.approx(25)
    assert found["interval"][0] < 25 < found["interval"][1]
    assert found == module("shipping.parts").gain(ours, theirs)


def entry(name, seed, average, *, raw="minilm", untrained=False, against=None):
    parts = {"sts7": {"cosine": {"average": {"value": average}, "tasks": {"STS12": {"value": average - 5}}}}}
    if against is not None:
        parts["retrieval"] = {"accuracy": {"value": 90.0}, "against_raw": {"accuracy": against}}
    about = {"files": {}, "encoder": name, "relations": {}, "left_out": {}, "seconds": {}}
    return {"name": name, "seed": seed, "raw": raw, "untrained": untrained, "parts": parts, **about}


def test_shipped_summary_gives_the_mean_over_seeds(tmp_path, monkeypatch, capsys):
    raw = entry("minilm", None, 78.0, raw=None, untrained=True)
    for seed, average in ((1, 80.0), (2, 81.0), (3, 82.0)):
        document = {"models": [raw, entry(f"run-{seed}", str(seed), average)]}
        (tmp_path / f"{seed}.json").write_text(json.dumps(document))
    files = [str(file) for file in sorted(tmp_path.glob("*.json"))]
    monkeypatch.setattr("sys.argv", ["shipped.py", "--summary", *files, "--name", "mini"])
    module("shipped").main()
    said = capsys.readouterr().out
    assert "mini: 3 of one kind, seeds 1, 2, 3" in said
    assert "sts7 > cosine > average        81.00 ± 2.48" in said
    monkeypatch.setattr("sys.argv", ["shipped.py", "--summary", *files])
    module("shipped").main()
    assert "run-2: 1 of one kind, seeds 2" in capsys.readouterr().out


def test_shipped_tables_hold_what_the_results_say(tmp_path, monkeypatch):
    tables = module("tables")
    monkeypatch.setattr("tabling.common.RESULTS", tmp_path)
    tables.make.cache_clear()
    assert tables.make("shipped-sts7").count("\n") == 2  # no result, no row
    asked = {"similarity": {"value": 75.0}, "cosine": {"value": 60.0}}
    against = {"value": -0.25, "interval": [-0.5, 0.125]}
    models = [
        entry("mini", "1", 80.0, against=against),
        entry("minilm", None, 78.0, raw=None, untrained=True),
        entry("base", "1", 84.0, raw="mpnet"),
    ]
    models[0]["parts"]["challenge"] = {"all": asked, "phenomena": {"tense": asked}}
    models[1]["parts"]["challenge"] = {"all": {"cosine": {"value": 55.0}}, "phenomena": {}}
    tasks = {"challenge": {"items": {"tense": 50}}}
    document = {"models": models, "tasks": tasks, "ensembles": []}
    (tmp_path / "shipped-one.json").write_text(json.dumps(document))
    more = {**document, "models": [entry("mini", "2", 81.0), entry("mini", "3", 82.0)]}
    more["ensembles"] = [
        {
            "models": ["bge-small", "mpnet"],
            "standardised": True,
            "sts7": {"average": {"value": 85.0}},
            "dev": {"average": {"value": 88.0}},
        }
    ]
    (tmp_path / "shipped-two.json").write_text(json.dumps(more))
    tables.make.cache_clear()
    lines = tables.make("shipped-sts7").splitlines()[2:]
    assert lines[0].startswith("| all-MiniLM-L6-v2 | none: raw cosine | 73.0 | – |")
    assert "| `mini` | 76.0 |" in lines[1]
    assert "**81.00 ± 2.48**" in lines[1]
    assert lines[1].endswith("| 3 |")
    assert lines[2].startswith("| all-mpnet-base-v2 | `base` |")
    assert "| 90.0 (-0.2, -0.5 to +0.1) |" in tables.make("shipped-general")
    assert "bge-small-en-v1.5 + all-mpnet-base-v2 | standardised on dev | 85.00 | 88.00" in tables.make(
        "shipped-ensembles"
    )
    assert "| all-MiniLM-L6-v2 | `mini` | 75.0 | 60.0 | – | – | 3 |" in tables.make("shipped-challenge")
    by_phenomenon = tables.make("shipped-phenomena:mini").splitlines()
    assert by_phenomenon[0].startswith("| phenomenon | items | raw cosine of all-MiniLM-L6-v2 | similarity")
    assert by_phenomenon[2:] == ["| tense | 50 | – | 75.0 | 60.0 |", "| all | 50 | 55.0 | 75.0 | 60.0 |"]
    assert "| sts7 cosine average | 78.00 | 81.00 ± 2.48 |" in tables.make("shipped-card:mini")
    tables.make.cache_clear()
