"""Parallel text: every layout, what is dropped, what is refused, and languages that do not fit."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.data.lines import MAX_LINE
from likewise.data.parallel.detection import find_mismatch
from likewise.data.parallel.languages import find_language, iso3_code, language_table, look_up, script_table
from likewise.data.parallel.reading import EMPTY, IDENTICAL, REPEATED, read_parallel
from likewise.errors import DataError, FormatError, LikewiseError, UsageError

ENGLISH = ["The kettle is on the stove.", "Who painted this door?", "I will call you in the evening."]
GERMAN = ["Der Kessel steht auf dem Herd.", "Wer hat diese Tür gestrichen?", "Ich rufe dich am Abend an."]
PAIRS = list(zip(ENGLISH, GERMAN, strict=True))
COUPLE = ("en", "de")

# Much the same text in each language, long enough for a verdict.
SAMPLES = {
    "en": (
        "The old house is at the end of the street. I have not seen him since we were in the city. She "
        "said that it was too late for a walk. What do you want to do with this chair? They are going to "
        "the market and will be here by noon. He did not know that the bridge was closed. If you can, "
        "bring all of your books. There was a letter from my aunt on the table. We had to wait for the "
        "next bus. Is this the key that you have been looking for? You can leave it with her. My brother "
        "would like to be a cook."
    ),
    "de": (
        "Das alte Haus steht am Ende der Straße. Ich habe ihn nicht gesehen, seit wir in der Stadt "
        "waren. Sie sagte, dass es für einen Spaziergang zu spät sei. Was willst du mit dem Stuhl "
        "machen? Sie gehen auf den Markt und sind bis Mittag wieder da. Er wusste nicht, dass die Brücke "
        "gesperrt war. Wenn du kannst, bring auch die Bücher mit. Auf dem Tisch lag ein Brief von der "
        "Tante. Wir haben auf den nächsten Bus gewartet. Ist das der Schlüssel, den du noch suchst? Das "
        "kann man ihr lassen. Mein Bruder wäre gern ein Koch."
    ),
    "nl": (
        "Het oude huis staat aan het eind van de straat. Ik heb hem niet gezien, want we waren in de "
        "stad. Ze zei dat het te laat was voor een wandeling. Wat wil je met die stoel doen? Zij gaan "
        "naar de markt en zijn er om twaalf uur weer. Hij wist niet dat de brug dicht was. Als je kan, "
        "neem dan ook je boeken mee. Er lag een brief van mijn tante op de tafel. We moesten op de bus "
        "wachten. Is dit de sleutel die je zoekt? Dat kan bij haar blijven. Mijn broer wil graag kok "
        "worden, maar dat is nog niet zeker."
    ),
    "fr": (
        "La vieille maison est au bout de la rue. Je ne l'ai pas vu depuis que nous sommes dans la "
        "ville. Elle a dit qu'il était trop tard pour une promenade. Que veux-tu faire avec cette chaise "
        "? Ils vont sur le marché et sont de retour pour midi. Il ne savait pas que le pont est fermé. "
        "Si tu peux, prends les livres et les cahiers. Une lettre de ma tante est sur la table. Nous "
        "avons attendu le bus du soir. C'est la clé que vous cherchez ? Laisse-la dans son sac. Mon "
        "frère est plus grand que ma sœur."
    ),
    "es": (
        "La casa vieja está al final de la calle. No lo he visto desde que vivimos en la ciudad. Ella "
        "dijo que era muy tarde para dar un paseo. ¿Qué quieres hacer con esta silla? Ellos van al "
        "mercado y vuelven por la tarde. Él no sabía que el puente está cerrado. Si puedes, trae los "
        "libros y las cartas. Una carta de mi tía está en la mesa. Esperamos el autobús con los niños. "
        "¿Es esta la llave que buscas? Se la dejo en su bolsa. Mi hermano es más alto que yo, pero no me "
        "gusta como él cocina."
    ),
    "pt": (
        "A casa velha fica no fim da rua. Eu não o vejo desde que moro na cidade. Ela disse que é muito "
        "tarde para um passeio. O que você quer fazer com a cadeira? Eles vão ao mercado e voltam à "
        "tarde. Ele não sabia que a ponte está fechada. Se você pode, traga os livros e as cartas. Uma "
        "carta da minha tia está em cima da mesa. Nós esperamos o ônibus com os meninos. Esta é a chave "
        "que você procura? Isso foi para o meu irmão. Ele tem mais livros do que eu, mas não são seus."
    ),
    "it": (
        "La casa vecchia è in fondo alla strada. Non lo vedo da quando sono in città. Lei ha detto che "
        "era molto tardi per una passeggiata. Che cosa vuoi fare con questa sedia? Loro hanno un banco "
        "al mercato e tornano per le due. Lui non sapeva che il ponte è chiuso. Se ti va, porta i libri "
        "e gli appunti. Una lettera della zia è nel cassetto. Io ho aspettato il treno con lei. È questa "
        "la chiave che ci serve? Mi piace come cucina mio fratello, ma non si siede mai con gli altri "
        "del gruppo."
    ),
    "pl": (
        "Stary dom jest na końcu ulicy. Nie widziałem go od kiedy mieszkam w mieście. Ona mówi, że jest "
        "już za późno na spacer. Co chcesz zrobić z tym krzesłem? Oni są na targu i wrócą do południa. "
        "On nie wiedział, że most jest zamknięty. Jak możesz, weź to dla mnie. Na stole był list od jej "
        "ciotki. Czekam tylko na autobus, ale go nie ma. Czy to jest klucz, o który ci chodzi? Mam tak "
        "mało czasu. Jego brat może być kucharzem, ale jeszcze się nie uczy."
    ),
    "ru": (
        "Старый дом стоит в конце улицы. Я не видел его с тех пор, как мы живём здесь. Она сказала, что "
        "было уже поздно. Что ты хочешь от меня? Они ушли на рынок, но вы не знали. Если бы он пришёл, "
        "мы все были бы рады. Это мой ключ, а не твой. У меня для тебя письмо. Когда же ты вернёшься? "
        "Так мне и надо."
    ),
    "uk": (
        "Старий будинок стоїть у кінці вулиці. Я не бачив його з того часу, як ми живемо тут. Вона "
        "сказала, що було вже пізно. Що ти хочеш від мене? Вони пішли на ринок, але ви не знали. Якщо "
        "він прийде, ми всі будемо раді. Це мій ключ, а не твій. Коли ж ти повернешся? Та в мене є для "
        "тебе лист. Так мені й треба."
    ),
    "zh": (
        "老房子在街的尽头。我们住在城里以后就没有见过他。她说散步太晚了。你想用这把椅子做什么？他们去市场了。"
    ),
    "ja": (
        "古い家は通りの端にあります。彼にはもう会っていません。"
        "散歩には遅すぎると彼女は言いました。鍵はどこですか。"
    ),
    "ko": (
        "오래된 집은 길 끝에 있습니다. 그를 본 적이 없습니다. 산책하기에는 너무 늦었어요. "
        "열쇠가 어디에 있나요?"
    ),
    "el": (
        "Το παλιό σπίτι είναι στο τέλος του δρόμου. Δεν τον έχω δει. Πού είναι το κλειδί; Ήταν αργά για "
        "βόλτα."
    ),
    "ar": "البيت القديم في نهاية الشارع. لم أره منذ زمن. أين المفتاح؟ كان الوقت متأخرا.",
}


def sentences(code: str) -> list[str]:
    text = SAMPLES[code]
    for mark in "。？؟;?":
        text = text.replace(mark, ".")
    return [part.strip() for part in text.split(".") if part.strip()]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    return path


def write_tsv(path: Path, rows: list[tuple[str, ...]], header: tuple[str, ...] = COUPLE) -> Path:
    return write(path, ["\t".join(row) for row in [header, *rows]])


def write_moses(folder: Path, *, a: list[str] = ENGLISH, b: list[str] = GERMAN) -> tuple[Path, Path]:
    return write(folder / "x.en", a), write(folder / "x.de", b)


# --- layouts


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_parallel_table_named_after_its_languages(tmp_path, ending):
    plain = write_tsv(tmp_path / "p.tsv", [(*pair, "mine") for pair in PAIRS], ("en", "de", "source"))
    path = plain.with_name(plain.name + ending)
    path.write_bytes(
        {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}[ending](
            plain.read_bytes()
        )
    )
    text = read_parallel(path)
    assert (text.name, text.language_a, text.language_b) == (path.name, "en", "de")
    assert (text.a, text.b, list(text), len(text)) == (ENGLISH, GERMAN, PAIRS, 3)
    assert (text.report.rows, text.report.kept, text.report.notes) == (3, 3, [])


@pytest.mark.parametrize(
    ("header", "languages", "expected"),
    [
        (("eng", "cmn"), None, ("en", "zh")),
        (("en1", "en2"), None, ("en", "en")),
        (("en_GB", "pt-BR"), None, ("en-gb", "pt-br")),
        (("src", "tgt"), ("eng", "deu"), ("en", "de")),
        (("sentence1", "sentence2"), COUPLE, ("en", "de")),
        (("pt", "zh"), ("pt-br", "zh-tw"), ("pt-br", "zh-tw")),
        (("en1", "en2"), ("en", "en"), ("en", "en")),
    ],
)
def test_parallel_table_languages_from_names_or_given(tmp_path, header, languages, expected):
    path = write_tsv(tmp_path / "p.tsv", [("a b", "c d")], header)
    text = read_parallel(path, languages)
    assert (text.language_a, text.language_b, text.a, text.b) == (*expected, ["a b"], ["c d"])


def test_parallel_table_columns_follow_the_languages_asked_for(tmp_path):
    path = write_tsv(tmp_path / "p.tsv", [("1", "a b", "c d")], ("id", "en", "de"))
    assert read_parallel(path).a == ["a b"]  # id numbers the rows here
    assert read_parallel(path, ("deu", "eng")).a == ["c d"]
    assert read_parallel(path, ("id", "en")).a == ["1"]
    named = read_parallel(path, ("fr", "it"), columns=("de", "en"))
    assert (named.language_a, named.a, named.b) == ("fr", ["c d"], ["a b"])


def test_parallel_reads_csv_jsonl_and_rows_in_memory(tmp_path):
    (tmp_path / "p.csv").write_text('en,de\n"a, b",c\n', encoding="utf8")
    assert read_parallel(tmp_path / "p.csv").a == ["a, b"]
    write(tmp_path / "p.jsonl", [json.dumps({"en": "a", "de": "b"})])
    assert read_parallel(tmp_path / "p.jsonl").b == ["b"]
    assert read_parallel([{"en": "a", "de": "b"}]).b == ["b"]
    assert read_parallel([("a", "b"), ("c", "d")], COUPLE).b == ["b", "d"]


def test_parallel_headerless_columns_are_numbers(tmp_path):
    path = write(tmp_path / "deu.txt", ["a\tb\tby me", "c\td\tby me"])
    text = read_parallel(path, COUPLE, columns=(1, 2))
    assert (text.a, text.b) == (["a", "c"], ["b", "d"])
    assert read_parallel(path, COUPLE, layout="headerless").b == ["b", "d"]
    with pytest.raises(UsageError, match=r"deu\.txt has no header\. Give two different numbers"):
        read_parallel(path, COUPLE, columns=("en", "de"), layout="headerless")


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".bz2"])
def test_parallel_moses_pairs_by_files_and_by_prefix(tmp_path, ending):
    squeeze = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}[ending]
    files = []
    for path in write_moses(tmp_path):
        files.append(path.with_name(path.name + ending))
        files[-1].write_bytes(squeeze(path.read_bytes().replace(b"\n", b"\r\n")))
        if ending:
            path.unlink()
    for text in (read_parallel(files), read_parallel(tmp_path / "x", ("eng", "deu"))):
        assert (text.language_a, text.language_b) == COUPLE
        assert list(text) == PAIRS


def test_parallel_moses_lines_end_at_line_feeds_only(tmp_path):
    files = write_moses(tmp_path, a=["one\u2028line", "two\x85lines"], b=["eine Zeile", "zwei Zeilen"])
    assert len(read_parallel(files)) == 2


def test_parallel_tatoeba_pairs(tmp_path):
    rows = [f"{i}\t{a}\t{900 + i}\t{b}" for i, (a, b) in enumerate(PAIRS, 1)]
    path = tmp_path / "Sentence pairs in English-German.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(rows).encode())
    assert list(read_parallel(path, ("eng", "deu"))) == PAIRS
    with pytest.raises(DataError, match=r"the two languages are unknown\. Name the languages: languages ="):
        read_parallel(path)


def write_export(folder: Path, *, languages: tuple[str, str] = ("eng", "cmn")) -> tuple[Path, Path]:
    first, second = languages
    rows = [
        f"1\t{first}\tone",
        f"2\t{second}\tzwei",
        f"3\t{first}\tthree",
        "4\tfra\tquatre",
        "5\t\\N\tfive",
        "",
    ]
    links = ["1\t2", "2\t1", "1\t4", "4\t1", "2\t3", "3\t77"]
    return write(folder / "sentences.csv", rows), write(folder / "links.csv", links)


def test_parallel_tatoeba_export_takes_each_link_once(tmp_path):
    files = write_export(tmp_path)
    for source in (tmp_path, files):
        text = read_parallel(source, ("en", "zh"))
        assert list(text) == [("one", "zwei"), ("three", "zwei")]
        assert (text.language_b, text.report.rows, text.report.notes) == ("zh", 2, [])
    assert list(read_parallel(files, ("zh-tw", "en"))) == [("zwei", "one"), ("zwei", "three")]


def test_parallel_tatoeba_export_within_one_language(tmp_path):
    files = write_export(tmp_path, languages=("eng", "eng"))
    assert list(read_parallel(files, ("en", "en"))) == [("one", "zwei"), ("zwei", "three")]


def test_parallel_tatoeba_exports_as_downloaded(tmp_path):
    """Tatoeba compresses by bzip2: a file of sentences for each language, one of links for a pair."""
    parts = {"eng_sentences": "1\teng\tone\n", "deu_sentences": "2\tdeu\teins\n", "eng-deu_links": "1\t2\n"}
    files = [tmp_path / f"{name}.tsv.bz2" for name in parts]
    for path, content in zip(files, parts.values(), strict=True):
        path.write_bytes(bz2.compress(content.encode()))
    assert list(read_parallel(files, ("de", "en"))) == [("eins", "one")]
    for path in write_export(tmp_path):
        path.with_name(f"{path.name}.bz2").write_bytes(bz2.compress(path.read_bytes()))
        path.unlink()
    assert len(read_parallel(tmp_path, ("en", "zh"))) == 2


# --- what is dropped and reported


def test_parallel_drops_and_reports_empty_identical_and_repeated(tmp_path):
    a = ["one", "  ", "Tom", "two", "one", "three", "one", " four "]
    b = ["eins", "leer", "Tom", "", "eins", "drei", "eins", "vier\t"]
    files = write_moses(tmp_path, a=a, b=b)
    text = read_parallel(files)
    assert list(text) == [("one", "eins"), ("three", "drei"), ("four", "vier")]
    report = text.report
    assert report.dropped == {EMPTY: 2, IDENTICAL: 1, REPEATED: 2}
    assert report.first == {EMPTY: "x.en:2", IDENTICAL: "x.en:3", REPEATED: "x.en:5"}
    assert (report.rows, report.kept) == (8, 3)
    assert str(report.notes[0]) == "x.en:2: 2 of 8 rows were dropped (an empty side). This is the first one."
    assert json.loads(json.dumps(report.to_dict()))["kept"] == 3


def test_parallel_empty_side_is_named_by_its_own_file(tmp_path):
    text = read_parallel(write_moses(tmp_path, a=["one", "two"], b=["eins", ""]))
    assert text.report.first == {EMPTY: "x.de:2"}


def test_parallel_keeps_identical_and_repeated_if_told(tmp_path):
    path = write_tsv(tmp_path / "p.tsv", [("Tom", "Tom"), ("a", "b"), ("a", "b"), ("a", "c"), ("", "x")])
    assert read_parallel(path).report.dropped == {IDENTICAL: 1, REPEATED: 1, EMPTY: 1}
    text = read_parallel(path, keep_identical=True, keep_repeated=True)
    assert list(text) == [("Tom", "Tom"), ("a", "b"), ("a", "b"), ("a", "c")]


def test_parallel_repeats_are_found_as_by_a_dictionary(tmp_path):
    rows = [(f"a {i * i % 97}", f"b {i % 13}") for i in range(2000)]
    text = read_parallel(write_tsv(tmp_path / "p.tsv", rows))
    assert list(text) == list(dict.fromkeys(rows))
    assert text.report.dropped == {REPEATED: 2000 - len(text)}


# --- what is refused: the source, its bytes by file, what the message must say

REFUSED = {
    "unequal line counts": (
        ("x.en", "x.de"),
        {"x.en": b"one\ntwo\nthree\n", "x.de": b"eins\nzwei"},
        (
            r"x\.de: there are too few lines: x\.en has 3 lines and x\.de 2, but each "
            r"line needs a translation.*same release"
        ),
    ),
    "one side empty": (
        ("x.en", "x.de"),
        {"x.en": b"one\ntwo\n", "x.de": b""},
        r"x\.de: there are too few lines: x\.en has 2 lines and x\.de 0",
    ),
    "both sides empty": (("x.en", "x.de"), {"x.en": b"", "x.de": b""}, r"x\.en, x\.de: this holds no pairs"),
    "every side blank": (
        ("x.en", "x.de"),
        {"x.en": b"one\ntwo\n", "x.de": b"\n \n"},
        r"no pair is left of 2 rows: 2 with an empty side. Check that the two sides",
    ),
    "one file twice": (
        ("x.en", "x.en"),
        {"x.en": b"one\ntwo\n"},
        r"no pair is left of 2 rows: 2 with the same text on both sides",
    ),
    "no second file": (("x.en", "x.de"), {"x.en": b"one\n"}, r"x\.de: this cannot be opened.*Check the path"),
    "no second side": ("x", {"x.en": b"one\n"}, r"x\.de: this cannot be opened.*Check the path"),
    "no UTF-8": (
        ("x.en", "x.de"),
        {"x.en": b"one\ntwo\n", "x.de": b"eins\nT\xfcr\n"},
        r"x\.de:2: byte 0xfc at offset 6 is not UTF-8\. Save it as UTF-8",
    ),
    "a NUL byte": (
        ("x.en", "x.de"),
        {"x.en": b"o\0ne\n", "x.de": b"eins\n"},
        r"x\.en:1: there is a NUL byte at offset 1",
    ),
    "cut short": (
        ("x.en.gz", "x.de"),
        {"x.en.gz": gzip.compress(b"one\ntwo\n" * 999)[:-9], "x.de": b"eins\nzwei\n" * 999},
        r"x\.en\.gz:\d+: the file is cut short or damaged",
    ),
    "bzip2 cut short": ("p.tsv.bz2", {"p.tsv.bz2": b"BZh9"}, r"p\.tsv\.bz2:1: the file is cut short"),
    "an archive": (
        ("sentences.tar.bz2", "links.csv"),
        {"sentences.tar.bz2": b"BZh9", "links.csv": b"1\t2\n"},
        (
            r"sentences\.tar\.bz2: this is an archive, and archives are not read\. Unpack it "
            r"first; a single file may be .* or \.bz2"
        ),
    ),
    "a field too many": (
        "p.tsv",
        {"p.tsv": b"en\tde\none\teins\ntwo\tzwei\tzwo\n"},
        r"p\.tsv:3: there are 3 fields, but 2 are expected \(en, de\). Replace each tab",
    ),
    "a field too few, Tatoeba": (
        "p.tsv",
        {"p.tsv": b"1\tone\t2\teins\n3\ttwo\t4\n"},
        r"p\.tsv:2: found 3 fields, but 4 \(id, sentence, id, translation\) are expected\. Put one tab",
    ),
    "a field too many, Tatoeba": (
        "p.tsv",
        {"p.tsv": b"1\tone\t2\teins\n3\ttwo\t4\tzwei\tzwo\n"},
        r"p\.tsv:2: found more than 4 fields, but 4 ",
    ),
    "no such columns": (
        "p.tsv",
        {"p.tsv": b"en\tfr\none\tun\n"},
        (
            r"p\.tsv: no two columns have known names for 'en' and 'de'\. The columns are "
            r"en, fr\. Name the columns: columns ="
        ),
    ),
    "sentences without text": (
        ("sentences.csv", "links.csv"),
        {"sentences.csv": b"1\teng\tone\n2\tdeu\n", "links.csv": b"1\t2\n"},
        r"sentences\.csv:2: found '2\\tdeu', but an id, a language and a text.*as it was exported",
    ),
    "links without ids": (
        ("sentences.csv", "links.csv"),
        {"sentences.csv": b"1\teng\tone\n2\tdeu\teins\n", "links.csv": b"1\t2\n1\tzwei\n"},
        r"links\.csv:2: found '1\\tzwei', but two sentence ids.*as it was exported",
    ),
    "no sentence in a language": (
        ("sentences.csv", "links.csv"),
        {"sentences.csv": b"1\teng\tone\n2\tfra\tun\n", "links.csv": b"1\t2\n"},
        (
            r"sentences\.csv: there is no sentence in 'de' \(German\)\. The languages "
            r"in the file are eng, fra\. Choose"
        ),
    ),
    "no link": (
        ("sentences.csv", "links.csv"),
        {"sentences.csv": b"1\teng\tone\n2\tdeu\teins\n", "links.csv": b"1\t3\n"},
        r"links\.csv: no link joins sentences in 'en' and 'de'. Take sentences and links from the same",
    ),
}


@pytest.mark.parametrize("case", REFUSED, ids=list(REFUSED))
def test_parallel_refuses_with_file_and_remedy(tmp_path, case):
    source, files, message = REFUSED[case]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    paths = tmp_path / source if isinstance(source, str) else [tmp_path / name for name in source]
    with pytest.raises(DataError, match=message):
        read_parallel(paths, COUPLE)


def test_parallel_refuses_what_the_call_gets_wrong(tmp_path):
    path = write_tsv(tmp_path / "p.tsv", PAIRS)
    with pytest.raises(UsageError, match=r"there is no layout 'mosses'\. Choose one of auto, table"):
        read_parallel(path, layout="mosses")
    with pytest.raises(UsageError, match=r"languages is 'en', but it must hold two"):
        read_parallel(path, "en")
    with pytest.raises(UsageError, match=r"layout 'tatoeba' needs one file"):
        read_parallel([path, path], COUPLE, layout="tatoeba")
    with pytest.raises(DataError, match=r"p\.tsv: there is no column 'dee' \(did you mean 'de'\?\)"):
        read_parallel(path, columns=("en", "dee"))
    with pytest.raises(DataError, match=r"both texts come from column 'en'"):
        read_parallel(path, columns=("en", "en"))
    other = write_tsv(tmp_path / "q.tsv", [("a", "b", "c")], ("en", "de", "fr"))
    with pytest.raises(
        DataError, match=r"q\.tsv: 3 columns are named after a language, but two are expected"
    ):
        read_parallel(other)


def test_parallel_memory_is_bounded_by_line_and_text(tmp_path):
    long = write_tsv(tmp_path / "p.tsv", [("one", "eins"), ("x" * 101, "y")])
    with pytest.raises(
        DataError, match=r"p\.tsv:3: en has 101 characters, which is more than the limit of 100"
    ):
        read_parallel(long, max_chars=100)
    files = write_moses(tmp_path, a=["x" * (MAX_LINE + 1)], b=["y"])
    with pytest.raises(FormatError, match=r"x\.en:1: this line has more than 10 MB"):
        read_parallel(files)
    half = write(tmp_path / "p.jsonl", ['{"en": "\\ud800", "de": "b"}'])
    with pytest.raises(DataError, match=r"p\.jsonl:1: en holds half of a surrogate pair"):
        read_parallel(half)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=st.binary(max_size=80),
    second=st.binary(max_size=80),
    layout=st.sampled_from(["auto", "headerless"]),
)
def test_parallel_any_bytes_give_text_or_a_clear_error(tmp_path, first, second, layout):
    (tmp_path / "x.en").write_bytes(first)
    (tmp_path / "x.de").write_bytes(second)
    (tmp_path / "p.tsv").write_bytes(first)
    for source in ((tmp_path / "x.en", tmp_path / "x.de"), (tmp_path / "x.en", tmp_path / "links")):
        with suppress(LikewiseError):
            read_parallel(source, COUPLE)
    with suppress(LikewiseError):
        text = read_parallel(tmp_path / "p.tsv", COUPLE, layout=layout)
        assert all(a and b and a != b for a, b in text)


# --- language codes


@pytest.mark.parametrize(
    ("given", "code", "base", "scripts"),
    [
        ("en", "en", "en", ("Latn",)),
        ("ENG", "en", "en", ("Latn",)),
        ("deu", "de", "de", ("Latn",)),
        ("ger", "de", "de", ("Latn",)),
        ("cmn", "zh", "zh", ("Hani",)),
        ("nob", "nb", "nb", ("Latn",)),
        ("arz", "arz", "arz", ("Arab",)),
        ("iw", "he", "he", ("Hebr",)),
        ("zh-TW", "zh-tw", "zh", ("Hani",)),
        ("pt_BR", "pt-br", "pt", ("Latn",)),
        ("es-419", "es-419", "es", ("Latn",)),
        ("eng_Latn", "en", "en", ("Latn",)),
        ("zho_Hant", "zh-hant", "zh", ("Hani",)),
        ("srp_Latn", "sr-latn", "sr", ("Latn",)),
        ("zh-Hant-TW", "zh-hant-tw", "zh", ("Hani",)),
        ("qaa", "qaa", "qaa", ()),
    ],
)
def test_languages_one_spelling_for_each(given, code, base, scripts):
    language = find_language(given)
    assert (language.code, language.base, language.scripts) == (code, base, scripts)
    assert find_language(language.code) == language


@pytest.mark.parametrize(
    ("code", "nearest"),
    [
        ("ua", "'uk', Ukrainian"),
        ("jp", "'ja', Japanese"),
        ("dee", "'de', German"),
        ("englsh", "'en', English"),
        ("german", "'de', German"),
        ("xx-br", "'[a-z]+', "),
        ("", "'[a-z]+', "),
        ("e" * 999, "'[a-z]+', "),
        ("..", "'[a-z]+', "),
    ],
)
def test_languages_unknown_code_is_refused_with_the_nearest(tmp_path, code, nearest):
    write_moses(tmp_path)
    message = (
        rf"x\.de: the language code '[^']{{0,40}}' is unknown \(nearest: {nearest}.*. Write an ISO 639 code"
    )
    with pytest.raises(DataError, match=message):
        read_parallel((tmp_path / "x.en", tmp_path / "x.de"), ("en", code))


def test_languages_unknown_ending_and_column_name_their_file(tmp_path):
    files = write(tmp_path / "x.en", ["one"]), write(tmp_path / "x.txt", ["eins"])
    with pytest.raises(DataError, match=r"x\.txt: the language code 'txt' is unknown"):
        read_parallel(files)
    path = write_tsv(tmp_path / "p.tsv", [("a", "b")], ("en", "other"))
    with pytest.raises(DataError, match=r"p\.tsv: the language code 'other'"):
        read_parallel(path, columns=("en", "other"))


def test_languages_table_is_consistent():
    table = language_table()
    assert len(table["languages"]) == 184
    assert all(look_up(code) for code in (*table["aliases"].values(), *table["hints"].values()))
    assert not any(look_up(code) for code in table["hints"])
    assert set(table["profiles"]) <= set(table["languages"])
    assert not set(table["near"]) & set(table["profiles"])
    assert all(
        look_up(code) and set(near.split()) <= set(table["profiles"]) for code, near in table["near"].items()
    )
    scripts = {script for code in (*table["languages"], *table["others"]) for script in look_up(code).scripts}
    assert scripts == set(script_table())
    assert all(
        word == word.lower() for profile in table["profiles"].values() for word in profile["words"].split()
    )


def test_languages_agree_with_the_iso_registry():
    registry = Path("/usr/share/iso-codes/json/iso_639-3.json")
    if not registry.is_file():
        pytest.skip("the ISO registry is not here: install Debian's iso-codes")
    entries = json.loads(registry.read_text(encoding="utf8"))["639-3"]
    two = {entry["alpha_2"]: entry["alpha_3"] for entry in entries if "alpha_2" in entry}
    table = language_table()
    assert {code: iso3_code(find_language(code)) for code in table["languages"]} == two
    # Berber is a group of languages, which Tatoeba takes for one.
    assert set(table["others"]) - {"ber"} <= {e["alpha_3"] for e in entries if "alpha_2" not in e}


# --- texts in another language than declared


@pytest.mark.parametrize("code", SAMPLES)
def test_detection_is_silent_about_the_right_language(code):
    assert find_mismatch(sentences(code), find_language(code), source="x") is None


@pytest.mark.parametrize("code", SAMPLES)
def test_detection_speaks_up_about_any_other(code):
    for declared in set(SAMPLES) - {code}:
        problem = find_mismatch(sentences(code), find_language(declared), source="x")
        assert str(problem).startswith(f"x: the declared language is '{declared}' (")
        assert "check that the file is the right one" in problem.remedy


@pytest.mark.parametrize(
    ("code", "declared", "said"),
    [
        ("en", "ru", "100% of the checked lines are in Latin script; Cyrillic script is expected"),
        ("en", "zh-tw", "in Latin script; Chinese script is expected"),
        ("zh", "ja", "in Chinese script; Japanese script is expected"),
        ("en", "sw", "its words and letters are those of 'en' (English)"),
        ("es", "pt-br", "its words and letters are those of 'es' (Spanish)"),
        ("ru", "sr-latn", "in Cyrillic script; Latin script is expected"),
    ],
)
def test_detection_says_what_it_saw(code, declared, said):
    assert said in find_mismatch(sentences(code), find_language(declared), source="x").message


@pytest.mark.parametrize(
    ("code", "declared"),
    [
        ("ru", "sr"),
        ("nl", "af"),
        ("es", "gl"),
        ("en", "sco"),
        ("en", "en-gb"),
        ("pt", "pt-br"),
        ("en", "qaa"),
    ],
)
def test_detection_is_silent_about_relatives_and_regions(code, declared):
    assert find_mismatch(sentences(code), find_language(declared), source="x") is None


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["OK", "Tom"],
        ["12:30", "3 + 4", "?!", "100 %"],
        ["Müller", "Café Zürich", "São Paulo", "Łódź"],
        ["Paris, New York, Madrid", "Tokyo 2020", "Bern", "Oslo"] * 30,
    ],
)
def test_detection_needs_evidence(texts):
    assert find_mismatch(texts, find_language("en"), source="x") is None
    assert find_mismatch(texts, find_language("fr"), source="x") is None


def test_detection_allows_for_foreign_lines():
    mixed = sentences("ru") + sentences("en")[:3] + sentences("zh")[:2]
    assert find_mismatch(mixed, find_language("ru"), source="x") is None


def test_parallel_warns_of_swapped_sides_in_its_report(tmp_path):
    rows = list(zip(sentences("en"), sentences("de"), strict=True))
    path = write_tsv(tmp_path / "p.tsv", rows)
    assert read_parallel(path).report.warnings == []
    warnings = read_parallel(path, ("de", "en"), columns=("en", "de")).report.warnings
    assert [str(warning).split(". ")[0] for warning in warnings] == [
        "p.tsv, en: the declared language is 'de' (German), "
        "but its words and letters are those of 'en' (English)",
        "p.tsv, de: the declared language is 'en' (English), "
        "but its words and letters are those of 'de' (German)",
    ]


# --- real data


@pytest.mark.realdata
@pytest.mark.parametrize(
    "pattern",
    [
        "tatoeba/*.test.tsv.xz",
        pytest.param("tatoeba/*train.tsv.xz", marks=pytest.mark.slow),
        "tatoeba_laser/*.tsv.xz",
    ],
)
def test_parallel_real_corpora_warn_only_when_swapped(pattern, data_dir):
    files = sorted(data_dir.glob(pattern))
    if not files:
        pytest.skip(f"{pattern} is not in {data_dir}")
    for path in files:
        text = read_parallel(path)
        assert text.report.warnings == [], path.name
        assert text.report.kept > 0.99 * text.report.rows
        if text.language_a != text.language_b:
            assert find_mismatch(text.a, find_language(text.language_b), source="a"), path.name
            assert find_mismatch(text.b, find_language(text.language_a), source="b"), path.name


@pytest.mark.realdata
def test_detection_on_translated_stsb(data_dir):
    files = sorted((data_dir / "stsb_multi_mt").glob("*.test.tsv.xz"))
    if not files:
        pytest.skip(f"stsb_multi_mt is not in {data_dir}")
    languages = [find_language(path.name.split(".")[0]) for path in files]
    for path, language in zip(files, languages, strict=True):
        texts = read_parallel(path, (language.code, language.code), columns=("sentence1", "sentence2")).a
        for declared in languages:
            problem = find_mismatch(texts, declared, source=path.name)
            assert (problem is None) == (declared == language), (path.name, declared.code, problem)
