"""Published files of every source of the catalogue, in their layouts, with invented sentences; and a server.

`PUBLISHED[source](folder)` writes the files of a source below a folder, under the names of its downloads.
`MADE[file]` are the rows that must come out of them, for some columns.
"""

from __future__ import annotations

import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Files = Mapping[str, str | bytes]


def write(folder: Path, files: Files) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def zipped(files: Files) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__MACOSX/._x", b"\0")
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files: Files, mode: str = "w:gz") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, content in files.items():
            data = content.encode("utf-8") if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def tsv(*rows: str) -> str:
    """Rows with | for the tab."""
    return "".join(row.replace("|", "\t") + "\n" for row in rows)


def stsb(folder: Path) -> None:
    def part(name: str) -> str:
        return tsv(
            f'main-captions|MSRvid|2012test|0001|5.000|A {name} boat "floats.|A ship floats.',
            "main-news|headlines|2015|0002|1.250|Rain falls.|A cat sings.|licence text",
        )

    parts = {f"stsbenchmark/sts-{name}.csv": part(name) for name in ("train", "dev", "test")}
    write(folder, {"Stsbenchmark.tar.gz": tarred(parts)})


def semeval(files: Mapping[str, tuple[str, str]], subsets: Mapping[str, str], folder: Path) -> None:
    for name, (inside, prefix) in files.items():
        inner: dict[str, str] = {f"{inside}00-readme.txt": "scores"}
        for subset in subsets.get(name, "").split():
            inner[f"{inside}{prefix}.input.{subset}.txt"] = tsv(
                f"A {subset} boat.|A ship.|src1", "No score.|None.|src2", "Rain.|Snow.|src3"
            )
            inner[f"{inside}{prefix}.gs.{subset}.txt"] = "4.2\n\n0.800\n"
        write(folder, {name: zipped(inner)})


sts12 = partial(
    semeval,
    {
        "STS2012-en-train.zip": ("train/", "STS"),
        "STS2012-en-test.zip": ("test-gold/", "STS"),
    },
    {
        "STS2012-en-train.zip": "MSRpar MSRvid SMTeuroparl",
        "STS2012-en-test.zip": "MSRpar MSRvid SMTeuroparl surprise.OnWN surprise.SMTnews",
    },
)
sts13 = partial(
    semeval,
    {"STS2013-en-test.zip": ("test-gs/", "STS")},
    {"STS2013-en-test.zip": "FNWN headlines OnWN"},
)
sts14 = partial(
    semeval,
    {"STS2014-en-test.zip": ("sts-en-test-gs-2014/", "STS")},
    {"STS2014-en-test.zip": "deft-forum deft-news headlines images OnWN tweet-news"},
)
sts15 = partial(
    semeval,
    {"STS2015-en-test.zip": ("test_evaluation_task2a/", "STS")},
    {"STS2015-en-test.zip": "answers-forums answers-students belief headlines images"},
)
sts16 = partial(
    semeval,
    {"STS2016-en-test.zip": ("sts2016-english-with-gs-v1.0/", "STS2016")},
    {"STS2016-en-test.zip": "answer-answer headlines plagiarism postediting question-question"},
)


def sick(folder: Path) -> None:
    head = "pair_ID|sentence_A|sentence_B|relatedness_score|entailment_judgment"
    rows = tsv(head, "1|A boat floats|A ship floats|4.5|ENTAILMENT", "2|Rain falls|A cat sings|1|NEUTRAL")
    for archive, name in (("train", "train"), ("trial", "trial"), ("test_annotated", "test_annotated")):
        write(folder, {f"sick_{archive}.zip": zipped({f"SICK_{name}.txt": rows, "readme.txt": "x"})})


def sick9840(folder: Path) -> None:
    head = "pair_ID|sentence_A|sentence_B|entailment_label|relatedness_score|SemEval_set"
    rows = [f"{n}|A boat|A ship|NEUTRAL|3.3|{part}" for n, part in enumerate(("TRAIN", "TRIAL", "TEST"))]
    write(folder, {"SICK.zip": zipped({"SICK.txt": tsv(head, *rows)})})


def activities(folder: Path) -> None:
    rows = 'qid,act1,act2,sim,rel,ma,pac\n1_1,"sing, loudly",sing,3.5,4,4,2\n1_2,sail,sleep,0,0.5,1,-2\n'
    write(folder, {f"{part}.csv": rows for part in ("train", "dev", "test")})


def inference(archive: str, members: list[str], folder: Path) -> None:
    def line(label: str, premise: str, hypothesis: str) -> str:
        return json.dumps({"gold_label": label, "sentence1": premise, "sentence2": hypothesis, "pairID": "1"})

    rows = [
        line("neutral", "A boat floats.", "The boat is old."),
        line("-", "A boat floats.", "Nobody knows."),
        line("entailment", "Rain falls.", "It rains."),
    ]
    write(folder, {archive: zipped({name: "\n".join(rows) + "\n" for name in members})})


snli = partial(
    inference, "snli_1.0.zip", [f"snli_1.0/snli_1.0_{part}.jsonl" for part in ("train", "dev", "test")]
)
mnli = partial(
    inference,
    "multinli_1.0.zip",
    [f"multinli_1.0/multinli_1.0_{part}.jsonl" for part in ("train", "dev_matched", "dev_mismatched")],
)


def counterfactual(folder: Path) -> None:
    rows = tsv("sentence1|sentence2|gold_label", "A boat floats.|A ship floats.|entailment")
    kinds, parts = ("original", "revised_premise", "revised_hypothesis"), ("train", "dev")
    write(folder, {f"{kind}/{part}.tsv": rows for kind in kinds for part in parts})


def rte(folder: Path) -> None:
    labelled = tsv("index|sentence1|sentence2|label", "0|A boat floats.|It floats.|entailment")
    unlabelled = tsv("index|sentence1|sentence2", "0|A boat floats.|It sinks.")
    parts = {"RTE/train.tsv": labelled, "RTE/dev.tsv": labelled, "RTE/test.tsv": unlabelled}
    write(folder, {"RTE.zip": zipped(parts)})


def mrpc(folder: Path) -> None:
    head = "Quality|#1 ID|#2 ID|#1 String|#2 String"
    train = tsv(head, '1|11|12|"A boat floats.|A ship floats.', "0|13|14|Rain falls.|A cat sings.")
    files = {
        "msr_paraphrase_train.txt": b"\xef\xbb\xbf" + train.encode(),
        "msr_paraphrase_test.txt": tsv(head, "1|21|22|The sun rises.|The sun comes up."),
        "mrpc_dev_ids.tsv": tsv("13|14"),
    }
    write(folder, files)


def qqp(folder: Path) -> None:
    rows = tsv(
        "id|qid1|qid2|question1|question2|is_duplicate",
        '"18"|"1"|"2"|"Why does a ""boat"" float?"|"How does a boat float?"|"1"',
        '"19"|"3"|"4"|"Who sings?"|"Who sleeps?"|"0"',
        '"211"|"5"|"6"|"Where is rain?"|"Where is\nsnow?"|"0"',
    )
    write(folder, {"quora_duplicate_questions.tsv": rows})


def qqp_partition(folder: Path) -> None:
    rows = tsv("1|Why do boats float ?|How do boats float ?|77")
    parts = {f"Quora_question_pair_partition/{part}.tsv": rows for part in ("train", "dev", "test")}
    write(folder, {"Quora_question_pair_partition.zip": zipped(parts)})


def paws(folder: Path) -> None:
    rows = tsv("id|sentence1|sentence2|label", "1|A meets B .|B meets A .|1", "2|A leads B .|B leads A .|0")
    parts = {f"final/{part}.tsv": rows for part in ("train", "dev", "test")}
    write(folder, {"paws_wiki_labeled_final.tar.gz": tarred(parts)})


def cxc(folder: Path) -> None:
    def row(first: int, second: int, score: str, how: str) -> str:
        ids = ",".join(f"COCO_val2014:sentid:{number}" for number in (first, second))
        return f"{ids},{score},{how}\n"

    rows = "caption1,caption2,agg_score,sampling_method\n"
    rows += row(12, 7, "4.5", "c2c_cocaption") + row(7, 40, "0.25", "c2c_isim")
    texts = {
        7: 'A boat, "floating" . ',
        12: "A ship\non the water.",
        40: "Rain falls.",
        41: "Nobody rated it.",
    }
    sentences = [
        {"tokens": text.split(), "raw": text, "imgid": number // 10, "sentid": number}
        for number, text in texts.items()
    ]
    images = {"images": [{"filepath": "val2014", "split": "test", "sentences": sentences}], "dataset": "coco"}
    write(folder, {"sts_test.csv": rows, "sts_val.csv": rows})
    write(folder, {"caption_datasets.zip": zipped({"dataset_coco.json": json.dumps(images)})})


def semrel(folder: Path) -> None:
    rows = 'PairID,Text,Score\nENG-0,"A boat floats.\nA ship, ""afloat"".",0.94\nENG-1,"Rain.\nSnow.",0.2\n'
    write(folder, {"eng_train.csv": rows, "eng_dev_with_labels.csv": rows})


def semrel_other(folder: Path) -> None:
    def rows(code: str) -> str:
        return f'PairID,Text,Score\nX-1,"""One {code}.""\n""Two {code}.""",0.5\n'

    codes = ("amh", "arq", "ary", "esp", "hau", "kin", "mar", "tel")
    for part in ("train", "dev_with_labels"):
        write(folder, {f"{code}_{part}.csv": rows(code) for code in codes})


def jsts(folder: Path) -> None:
    pairs = [("船が浮かぶ。", "ボートが浮いている。", 4.2), ("雨が降る。", "猫が歌う。", 0.0)]
    rows = "".join(
        json.dumps({"sentence_pair_id": "0", "sentence1": a, "sentence2": b, "label": score}) + "\n"
        for a, b, score in pairs
    )
    write(folder, {"train-v1.3.json": rows, "valid-v1.3.json": rows})


def joci(folder: Path) -> None:
    rows = "CONTEXT,HYPOTHESIS,LABEL,CONTEXT_FROM,HYPOTHESIS_FROM,SUBSET\n"
    rows += '"A boat, afloat",The boat floats .,5,SNLI-train,AGCI-WK,AGCI\n'
    rows += "Rain falls.,The cat sings .,0,ROCStories-1st,ROCStories-2nd,ROC\n"
    write(folder, {"joci.csv.zip": zipped({"joci.csv": rows})})


def parade(folder: Path) -> None:
    rows = tsv("3|1|boat|what floats|a thing that floats", "0|0|boat|what floats|it has -sails  -a mast")
    write(folder, {"PARADE_train.txt": rows, "PARADE_validation.txt": rows})


def sst1(folder: Path) -> None:
    trees = "(3 (2 (2 The) (2 Boat)) (4 (3 -LRB-) (2 floats)))\n(0 (1 Awful) (2 .))\n"
    parts = {f"trees/{part}.txt": trees for part in ("train", "dev", "test")}
    write(folder, {"trainDevTestTrees_PTB.zip": zipped(parts)})


def sst2(folder: Path) -> None:
    rows = tsv("sentence|label", "a fine boat |1", "a dull cat |0")
    held_back = tsv("index|sentence", "0|no label here")
    parts = {"SST-2/train.tsv": rows, "SST-2/dev.tsv": rows, "SST-2/test.tsv": held_back}
    write(folder, {"SST-2.zip": zipped(parts), "sentiment-test": tsv("a lively rain . |1")})


def imdb(folder: Path) -> None:
    parts = {"aclImdb/imdb.vocab": "the\n"}
    for part in ("test", "train"):
        parts |= {
            f"aclImdb/{part}/pos/0_9.txt": "A fine boat.",
            f"aclImdb/{part}/neg/10_2.txt": "A dull cat.",
            f"aclImdb/{part}/neg/9_1.txt": "Awful<br /><br />rain.",
            f"aclImdb/{part}/unsup/1_0.txt": "Nobody rated it.",
        }
    write(folder, {"aclImdb_v1.tar.gz": tarred(parts)})


def mdsd(folder: Path) -> None:
    def review(text: str) -> str:
        return (
            f"<review>\n<unique_id>\nX:{text[:3]}\n</unique_id>\n<rating>\n5.0\n</rating>\n"
            f"<title>\nSo it is\n</title>\n<review_text>\n{text}\n</review_text>\n</review>\n"
        )

    parts: dict[str, str | bytes] = {}
    for domain in ("books", "dvd", "electronics", "kitchen_&_housewares"):
        parts[f"sorted_data_acl/{domain}/positive.review"] = review("A fine\nboat.") + review("It floats.")
        parts[f"sorted_data_acl/{domain}/negative.review"] = review("Dull caf").encode() + b""
    parts["sorted_data_acl/books/negative.review"] = review("Dull caf\0").encode().replace(b"\0", b"\xe9")
    write(folder, {"domain_sentiment_data.tar.gz": tarred(parts)})


def trec(folder: Path) -> None:
    rows = b"NUM:dist How far is the harbour ?\nENTY:cremat What films has Ren\xe9 made ?\n"
    write(folder, {"train_5500.label": rows, "TREC_10.label": rows})


def reuters(folder: Path) -> None:
    def story(number: int, body: str) -> str:
        return (
            f'<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="9" NEWID="{number}">\n'
            "<TOPICS><D>cocoa</D></TOPICS>\n<TEXT>&#2;\n"
            f"<TITLE>RAIN &lt;RN> AND\n  SNOW</TITLE>\n{body}</TEXT>\n</REUTERS>\n"
        )

    first = story(1, "<DATELINE>here</DATELINE><BODY>Rain fell.\n Reuter\n&#3;</BODY>") + story(2, "")
    second = story(5, "<BODY>Snow.</BODY>") + story(9, "<BODY>Hail.</BODY>")
    files = {"reut2-000.sgm": first, "reut2-001.sgm": second}
    write(folder, {"reuters21578.tar.gz": tarred({"README.txt": "x", **files})})


def cola(folder: Path) -> None:
    rows = tsv("gj04|1||A boat floats.", "gj04|0|*|A floats boat.")
    names = ("in_domain_train", "in_domain_dev", "out_of_domain_dev")
    parts = {f"cola_public/raw/{name}.tsv": rows for name in names}
    write(folder, {"cola_public_1.1.zip": zipped(parts)})


def stsb_multi(folder: Path) -> None:
    rows = '"Ein ""Boot"", das schwimmt.",Ein Schiff.,4.2\nRegen.,Schnee.,0.0\n'
    codes = ("de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "zh")
    parts = ("train", "dev", "test")
    write(folder, {f"stsb-{code}-{part}.csv": rows for code in codes for part in parts})


# As the Challenge names the pairs: three letters, in the order of the alphabet.
CHALLENGE = {
    **{"ara-eng": "en-ar", "deu-eng": "en-de", "eng-spa": "en-es", "eng-fra": "en-fr", "eng-ita": "en-it"},
    **{"eng-nld": "en-nl", "eng-pol": "en-pl", "eng-rus": "en-ru", "eng-tur": "en-tr", "eng-ukr": "en-uk"},
    **{"eng-zho": "en-zh", "spa-zho": "es-zh", "fra-spa": "fr-es", "deu-rus": "ru-de", "pol-tur": "tr-pl"},
    **{"spa-ukr": "uk-es", "rus-zho": "zh-ru"},
}


def challenge(name: str, pairs: list[str], folder: Path) -> None:
    def rows(pair: str) -> str:
        first, second = pair.split("-")
        return tsv(f"{first}|{second}|A {first} boat.|A {second} boat.")

    files = {f"data/test/{pair}/test.txt": rows(pair) for pair in [*pairs, "avk-fra"]}
    write(folder, {name: tarred(files, mode="w")})


def laser(folder: Path) -> None:
    from likewise.data.sources.listing import all_sources

    for download in all_sources()["tatoeba_laser"].downloads:
        write(folder, {download.name: f"One in {download.name[-3:]}.\nTwo.\n"})


def asset(folder: Path) -> None:
    for part in ("valid", "test"):
        write(folder, {f"asset.{part}.orig": "A large boat floats.\nRain falls.\n"})
        write(folder, {f"asset.{part}.simp.{n}": f"A boat floats {n}.\nIt rains {n}.\n" for n in range(10)})


def turk(folder: Path) -> None:
    for part in ("tune", "test"):
        head = f"{part}.8turkers.tok"
        write(folder, {f"{head}.norm": "a large boat .\n", f"{head}.simp": "a boat .\n"})
        write(folder, {f"{head}.turk.{n}": f"boat {n} .\n" for n in range(8)})


def paranmt(folder: Path) -> None:
    rows = tsv("a boat floats .|a ship floats .|0.8")
    write(folder, {"para-nmt-50m.zip": zipped({"para-nmt-50m/para-nmt-50m.txt": rows})})


PUBLISHED: dict[str, Callable[[Path], None]] = {
    "stsb": stsb,
    **{"sts12": sts12, "sts13": sts13, "sts14": sts14, "sts15": sts15, "sts16": sts16},
    **{"sick": sick, "sick9840": sick9840, "human_activity_phrases": activities, "snli": snli, "mnli": mnli},
    **{"snli_counterfactual": counterfactual, "rte": rte, "mrpc": mrpc, "qqp": qqp},
    **{"qqp_partition": qqp_partition, "paws_wiki": paws, "sst1": sst1, "sst2": sst2, "imdb": imdb},
    **{"mdsd": mdsd, "trec_qc": trec, "reuters46": reuters, "cola": cola, "stsb_multi_mt": stsb_multi},
    "tatoeba": partial(challenge, "test-v2020-07-28.tar", list(CHALLENGE)),
    "tatoeba_english": partial(challenge, "test-v2021-03-30.tar", ["eng-eng"]),
    **{"cxc": cxc, "semrel": semrel, "semrel_other": semrel_other, "jsts": jsts, "joci": joci},
    "parade": parade,
    **{"tatoeba_laser": laser, "asset": asset, "turkcorpus": turk, "paranmt": paranmt},
}

# Rows of the files, by the catalogue's columns. A file that is not here has as many rows as stands in ROWS.
MADE: dict[str, list[dict[str, object]]] = {
    "stsb/dev.tsv": [
        {
            "file": "MSRvid",
            "score": "5.000",
            "sentence1": 'A dev boat "floats.',
            "sentence2": "A ship floats.",
        },
        {"file": "headlines", "score": "1.250", "sentence1": "Rain falls.", "sentence2": "A cat sings."},
    ],
    "sick/trial.tsv": [
        {"sentence_A": "A boat floats", "relatedness_score": "4.5", "entailment_judgment": "ENTAILMENT"},
        {"sentence_A": "Rain falls", "relatedness_score": "1", "entailment_judgment": "NEUTRAL"},
    ],
    "human_activity_phrases/test.tsv": [
        {"phrase1": "sing, loudly", "phrase2": "sing", "sim": "4.5", "rel": "5.0", "ma": "5.0", "pac": "5.0"},
        {"phrase1": "sail", "phrase2": "sleep", "sim": "1.0", "rel": "1.5", "ma": "2.0", "pac": "1.0"},
    ],
    "snli/dev.tsv": [
        {"label": "neutral", "premise": "A boat floats.", "hypothesis": "The boat is old."},
        {"label": "entailment", "premise": "Rain falls.", "hypothesis": "It rains."},
    ],
    # In the order of the sample.
    "snli/train_sample.tsv": [
        {"label": "entailment", "premise": "Rain falls.", "hypothesis": "It rains."},
        {"label": "neutral", "premise": "A boat floats.", "hypothesis": "The boat is old."},
    ],
    "mnli/train_sample.tsv": [{"premise": "Rain falls.", "hypothesis": "It rains."}],
    "mnli/mismatched_sample_1k.tsv": [{"premise": "A boat floats.", "hypothesis": "The boat is old."}],
    "qqp/duplicates_only.tsv": [
        {"question1": 'Why does a "boat" float?', "question2": "How does a boat float?"}
    ],
    "paranmt_sample/sample.tsv": [{"sentence1": "a boat floats .", "sentence2": "a ship floats ."}],
    "snli_counterfactual/revised_premise.dev.tsv": [
        {"label": "entailment", "premise": "A boat floats.", "hypothesis": "A ship floats."}
    ],
    "rte/dev.tsv": [{"sentence1": "A boat floats.", "sentence2": "It floats.", "label": "entailment"}],
    "rte/test.tsv": [{"sentence1": "A boat floats.", "sentence2": "It sinks.", "label": ""}],
    "mrpc/train.tsv": [{"label": "1", "sentence1": '"A boat floats.', "sentence2": "A ship floats."}],
    "mrpc/dev.tsv": [{"label": "0", "sentence1": "Rain falls.", "sentence2": "A cat sings."}],
    "mrpc/test.tsv": [{"label": "1", "sentence1": "The sun rises.", "sentence2": "The sun comes up."}],
    # Ids 18 and 211 are rows of the sample, 19 is not.
    "qqp/train_sample.tsv": [
        {"label": "1", "question1": 'Why does a "boat" float?', "question2": "How does a boat float?"},
        {"label": "0", "question1": "Where is rain?", "question2": "Where is snow?"},
    ],
    "qqp/dev.tsv": [{"label": "1", "question1": "Why do boats float ?", "question2": "How do boats float ?"}],
    "paws_wiki/test.tsv": [{"label": "1", "sentence1": "A meets B ."}, {"label": "0"}],
    "cxc_sts/caps_test.tsv": [
        {
            "sentence1": "A ship on the water.",
            "sentence2": 'A boat, "floating" .',
            "score": "4.5",
            "sampling": "c2c_cocaption",
        },
        {"sentence1": 'A boat, "floating" .', "sentence2": "Rain falls.", "score": "0.25"},
    ],
    # The sample has the second row, as our copy may write it.
    "cxc_sts/caps_val.tsv": [{"sentence2": "Rain falls.", "sampling": "c2c_isim"}],
    "semrel2024_eng/dev.tsv": [
        {"sentence1": "A boat floats.", "sentence2": 'A ship, "afloat".', "score": "0.94"},
        {"sentence1": "Rain.", "sentence2": "Snow.", "score": "0.2"},
    ],
    "semrel2024_other/train.tsv": [
        {"lang": code, "sentence1": f"One {code}.", "sentence2": f"Two {code}.", "score": "0.5"}
        for code in ("amh", "arq", "ary", "esp", "hau", "kin", "mar", "tel")
    ],
    "jsts/valid.tsv": [
        {"sentence1": "船が浮かぶ。", "sentence2": "ボートが浮いている。", "score": "4.2"},
        {"sentence2": "猫が歌う。", "score": "0.0"},
    ],
    "joci/joci.tsv": [
        {"context": "A boat, afloat", "hypothesis": "The boat floats .", "label": "5", "subset": "AGCI"},
        {"label": "0", "subset": "ROC"},
    ],
    "parade/dev.tsv": [
        {"entity": "boat", "definition1": "what floats", "label4": "3", "label2": "1"},
        {"definition2": "it has -sails  -a mast", "label4": "0", "label2": "0"},
    ],
    "sst1/dev.tsv": [{"label": "3", "sentence": "the boat -lrb- floats"}, {"label": "0"}],
    "sst2/dev.tsv": [{"label": "1", "sentence": "a fine boat"}, {"label": "0", "sentence": "a dull cat"}],
    "sst2/test.tsv": [{"label": "1", "sentence": "a lively rain ."}],
    "imdb/train.tsv": [
        {"label": "neg", "id": "9", "rating": "1", "text": "Awful  rain."},
        {"label": "neg", "id": "10", "rating": "2", "text": "A dull cat."},
        {"label": "pos", "id": "0", "rating": "9", "text": "A fine boat."},
    ],
    "mdsd/books.tsv": [
        {"label": "positive", "text": "A fine boat.", "title": "So it is", "rating": "5.0"},
        {"label": "positive", "text": "It floats."},
        {"label": "negative", "text": "Dull caf\ufffd"},
    ],
    "trec_qc/test.tsv": [
        {"coarse": "NUM", "fine": "dist", "question": "How far is the harbour ?"},
        {"coarse": "ENTY", "fine": "cremat", "question": "What films has René made ?"},
    ],
    # Stories 1 and 5 are rows of the training sample, and 9 of the test sample, which know their topics.
    "reuters21578/topics46_test.tsv": [{"topic": "earn", "newid": "9", "body": "Hail."}],
    "reuters21578/topics46_train.tsv": [
        {"topic": "cocoa", "newid": "1", "title": "RAIN <RN> AND SNOW", "body": "Rain fell. Reuter"},
        {"topic": "grain", "newid": "5", "body": "Snow."},
    ],
    "cola/dev_in_domain.tsv": [{"label": "1", "sentence": "A boat floats."}, {"label": "0"}],
    "stsb_multi_mt/de.dev.tsv": [
        {"score": "4.2", "sentence1": 'Ein "Boot", das schwimmt.', "sentence2": "Ein Schiff."},
        {"score": "0.0"},
    ],
    "tatoeba/en-de.test.tsv": [{"en": "A eng boat.", "de": "A deu boat."}],
    "tatoeba/en-es.test.tsv": [{"en": "A eng boat.", "es": "A spa boat."}],
    "tatoeba/zh-ru.test.tsv": [{"zh": "A zho boat.", "ru": "A rus boat."}],
    "tatoeba/en-en.test.tsv": [{"en1": "A eng boat.", "en2": "A eng boat."}],
    "tatoeba_laser/ara-eng.tsv": [{"ara": "One in ara.", "eng": "One in eng."}, {"ara": "Two."}],
    "simple_wikipedia/asset.valid.jsonl": [
        {
            "normal": "A large boat floats.",
            "crowd_simplifications": [f"A boat floats {n}." for n in range(10)],
        },
        {"normal": "Rain falls."},
    ],
    "simple_wikipedia/turkcorpus.tune.jsonl": [
        {
            "normal": "a large boat .",
            "simple_wiki": "a boat .",
            "crowd_simplifications": [f"boat {n} ." for n in range(8)],
        }
    ],
}


@dataclass
class Server:
    """A server on this machine: contents by path, and what goes wrong at the first requests for a path."""

    files: dict[str, bytes] = field(default_factory=dict)
    # By path, one for each request: "break", "503", "stall", "no-range", "html", "huge", "junk",
    # "to:URL", or "says:STATUS HEADER: VALUE", which sends the file with that header.
    faults: dict[str, list[str]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0
    etag: str = '"one"'

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


class Handler(BaseHTTPRequestHandler):
    """Answers as the server says."""

    protocol_version = "HTTP/1.1"
    served: Server
    stop: threading.Event

    def do_GET(self) -> None:
        """Answer one request, with the next fault of its path if there is one."""
        self.served.asked.append((self.path, self.headers.get("Range", "")))
        waiting = self.served.faults.get(self.path, [])
        fault = waiting.pop(0) if waiting else ""
        if self.path not in self.served.files and not fault:
            self._end(404)
        elif fault == "503":
            self._end(503)
        elif fault.startswith("to:"):
            self._end(302, Location=fault[3:])
        elif fault == "html":
            self._end(200, b"<html>sign in", kind="text/html")
        elif fault == "huge":
            self.send_response(200)
            self.send_header("Content-Length", str(2**40))
            self.end_headers()
            self.close_connection = True
        elif fault == "junk":
            self.wfile.write(b"\xff" * 1000)
            self.close_connection = True
        elif fault.startswith("says:"):
            status, name, value = fault.removeprefix("says:").split(" ", 2)
            self.send_response(int(status))
            self.send_header(name.rstrip(":"), value)
            self.end_headers()
            self.wfile.write(self.served.files[self.path])
            self.close_connection = True
        else:
            self._send(fault)

    def _send(self, fault: str) -> None:
        content, start = self.served.files[self.path], 0
        asked = self.headers.get("Range", "")
        if asked and self.headers.get("If-Range") == self.served.etag and fault != "no-range":
            start = int(asked.removeprefix("bytes=").partition("-")[0])
        body = content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("ETag", self.served.etag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if fault in ("break", "stall") else body)
        self.wfile.flush()
        if fault == "stall":
            self.stop.wait(5)
        if fault in ("break", "stall"):
            self.close_connection = True

    def _end(self, code: int, body: bytes = b"", kind: str = "text/plain", **headers: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[Server]:
    """A server in a thread, with real sockets."""
    server, stop = Server(), threading.Event()
    handler = type("Served", (Handler,), {"served": server, "stop": stop})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        server.port = http.server_address[1]
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            stop.set()
            http.shutdown()
            thread.join()
