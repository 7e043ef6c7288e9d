"""Find phrases by rules, without a model: small word lists, word endings and patterns, for English only.

Each word gets a one-letter tag, first by itself and then with its neighbours. A pattern over the tags cuts
chunks like those that people marked for SemEval's interpretable similarity task: "on tree branches", "a black
and white cat", "is standing", "to compete". A text without a known word, such as one in another language, is
cut at its punctuation.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from likewise.data.links import Span
from likewise.phrases.spans import Phrases, uncrossed
from likewise.phrases.words import split_words

# Tags that stay as they are. c conjunction, d determiner, h pronoun that is no subject, i preposition,
# j adjective, k comma, m number, o pronoun, p mark, q possessive 's, w word that opens a clause, x adverb,
# a form of be or have. n noun, v verb, t to of an infinitive and r particle come out of the others as well.
_LISTED = {
    "c": "and or but nor & plus",
    "i": "of in on at by for from with into onto upon over under above below beneath beside besides "
    "between among amongst amid against along across through throughout during before after since "
    "until till about around behind beyond near toward towards within without inside outside past "
    "via per despite except like unlike as than off atop underneath",
    "d": "the these those all both some any many several few most more no half such my your his her its "
    "our their other",
    "s": "a an another each every one this either neither",
    "m": "two three four five six seven eight nine ten eleven twelve dozen hundred thousand million billion",
    "o": "i you he she it we they someone somebody something everyone everybody everything nobody nothing "
    "anyone anybody anything who",
    "h": "me him us them myself yourself himself herself itself ourselves themselves there here whom mine "
    "yours theirs",
    "w": "that which what when where why how whether while because although though if unless whose once",
    "a": "is are was were be been being am has have had having isn't aren't wasn't weren't hasn't haven't "
    "hadn't ain't",
    "l": "will would can could may might shall should must do does did cannot won't wouldn't can't "
    "couldn't shouldn't mustn't don't doesn't didn't gonna",
    "x": "not never n't very too also just still only almost quite rather so now then again already "
    "always often soon even ever yet perhaps maybe together away back apart forward alone",
    "j": "black white red blue green yellow brown gray grey orange pink purple tan golden silver dark "
    "light bright big small large little tiny huge tall short long old young new good bad great high "
    "low hot cold warm wet dry dirty clean empty full closed wooden wood metal plastic leather stone "
    "brick early late first last next same different own main ready dead alive able happy sad former "
    "senior deadly elderly lonely friendly ugly lovely double single foreign national nuclear "
    "european american british french german chinese russian indian italian spanish israeli iranian "
    "syrian afghan pakistani iraqi turkish greek irish asleep busy awake clear unclear wide",
    # Nouns that look like something else.
    "n": "building ceiling morning evening wedding clothing thing king ring wing spring string "
    "bombing shooting meeting hearing beijing series "
    "u.s. table cable vegetable shed seed sled speed breed family july italy supply ally",
    "R": "up down out",
    "T": "to",
    # Verbs that are seldom anything else; irregular forms, which no ending gives away.
    "v": "sat stood ran ate took held wore rode made said told got went came gave kept fell felt brought "
    "bought caught taught thought wrote drove threw drew flew grew knew spoke broke chose stole woke "
    "tore shook swam sang began drank met sent spent built led fed fled hid bit hung dug struck shot "
    "fought sought paid laid sold heard meant slept swept lay lit became won lost found put says "
    "sits goes gets seems becomes eats dies die eat sit become seem wears wear gives give takes take "
    "makes make keeps brings bring sings sing throws lies kills kill sends sells meets wins let get "
    "go come see say tell want know think seen done gone taken given written eaten driven broken "
    "chosen shown thrown worn born sworn left hurt shut",
    # Verbs that are as often nouns.
    "b": "stand play run walk look hold ride jump talk watch work drive cut cook show open close help use "
    "move turn stop start swim dance climb push pull kick catch fly smile laugh sleep wait read "
    "write drink fight leave live love hate need try ask call plan vote claim hit attack visit rise "
    "urge seek face warn vow rule approve reject report head fall drop hope grow raise set win end "
    "begin test launch",
}
_TAGS = {word: tag for tag, words in _LISTED.items() for word in words.split()}
_TAGS |= {
    verb + ending: "b"
    for verb in _LISTED["b"].split()
    for ending in ("s", "es")
    if verb + ending not in _TAGS
}
_CLITICS = ("s", "re", "ve", "ll", "d", "m")
# Prepositions of several words.
_TOGETHER = {
    tuple(words.split())
    for words in (
        "next to|in front of|on top of|out of|because of|instead of|close to|due to|according to|ahead of|"
        "along with|up to|as well as|such as|away from|back to|inside of|outside of|"
        "at least|at most|more than|less than"
    ).split("|")
}
_LONGEST = max(map(len, _TOGETHER))
_ENDINGS = (
    (("ly",), "x"),
    (("ing",), "g"),
    (("ed",), "e"),
    (("ous", "ful", "less", "able", "ible", "ive", "ish"), "j"),
    (("tion", "sion", "ment", "ness", "ity", "ance", "ence", "ship", "ism", "ist", "er", "or"), "n"),
    (("ss", "us", "is"), "u"),
    (("s",), "z"),
)
_SHORTEST = 4
_NOMINAL = "njmuzgeb"
_STOPS = frozenset(".!?…。！？।؟")

_BAR = r"(?:x(?=[xjm]))*(?:[jmn]|(?<=[jm])[ck](?=[jm]+n))*n"
_NOUNS = rf"(?:d*(?:(?<=d)(?:x+|j+k)(?=[jm]*n))?{_BAR}(?:q(?:{_BAR})?)*|d*[jm]*mj?|d+j*|[oh])"
_CHUNK = re.compile(
    rf"(?P<preposition>i{{1,4}}+(?P<inner>{_NOUNS}|j+))|(?P<nouns>{_NOUNS})"
    r"|(?P<verb>(?:x*[ta])*x*vr?|(?:x*[ta])+(?:x(?![xjm]))?)|(?P<other>[xj]+|.)"
)
_VERB_NEXT = re.compile("x*[va]")
# A longer list is not looked for: a page of commas would be read from each of its words.
_MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A chunk of words; `inner` is the place where its nouns begin, after a preposition."""

    kind: str
    start: int
    end: int
    inner: int


class RuleChunker:
    """A phraser without a model: it cuts English into chunks by rules and other languages at punctuation."""

    name = "rules"

    def __call__(self, texts: Sequence[str]) -> list[Phrases]:
        """The phrases of each text."""
        return [self.over(text, split_words(text)) for text in texts]

    def over(self, text: str, words: tuple[tuple[int, int], ...]) -> Phrases:
        """The phrases of a text whose words are already found."""
        lowered = _lowered(text, words)
        first = _first_tags(lowered)
        marks = [place for place, tag in enumerate(first) if tag in "pk"]
        if text.isascii() or any(word in _TAGS for word in lowered):
            spans = _chunk_spans(_settled(first, lowered), lowered)
        else:
            spans = _between(marks, len(words))
        stops = [place for place in marks if lowered[place][0] in _STOPS]
        sentences = [_trim(span, marks) for span in _between(stops, len(words))]
        wanted = [*sentences, *spans] if len(sentences) > 1 else spans
        kept = uncrossed((span for span in wanted if span[1] - span[0] > 1), len(words))
        return Phrases(text, words, kept, self.name)


def _lowered(text: str, words: Sequence[tuple[int, int]]) -> list[str]:
    """The words in lower case, except "US", which is not "us"."""
    lowered = [text[start:end].lower().replace("’", "'") for start, end in words]
    if "us" in lowered and not text.isupper():
        return [
            "u.s." if text[start:end] == "US" else word
            for word, (start, end) in zip(lowered, words, strict=True)
        ]
    return lowered


def _between(marks: Sequence[int], count: int) -> list[Span]:
    """The runs of words between marks."""
    edges = [-1, *marks, count]
    return [(a + 1, b) for a, b in pairwise(edges) if b - a > 1]


def _trim(span: Span, marks: Sequence[int]) -> Span:
    """A span without the marks at its edges; an empty span if it holds only marks."""
    start, end = span
    low, high = bisect_left(marks, start), bisect_left(marks, end)
    while low < high and marks[low] == start:
        start, low = start + 1, low + 1
    while low < high and marks[high - 1] == end - 1:
        end, high = end - 1, high - 1
    return start, end


def _first_tags(lowered: Sequence[str]) -> list[str]:
    """The tag of each word by itself, except in prepositions of several words and split possessives."""
    tags = [_tag(word) for word in lowered]
    for place, word in enumerate(lowered):
        if word == "'" and lowered[place + 1 : place + 2] == ["s"]:
            tags[place : place + 2] = "qq"
        for length in range(_LONGEST, 1, -1):
            if tags[place] != "I" and tuple(lowered[place : place + length]) in _TOGETHER:
                tags[place : place + length] = "I" * length
    return tags


@lru_cache(maxsize=1 << 16)
def _tag(word: str) -> str:
    """The tag of a lower-case word without its neighbours."""
    if word in _TAGS:
        return _TAGS[word]
    stem, apostrophe, clitic = word.rpartition("'")
    if apostrophe and clitic in _CLITICS:
        if not stem:
            return "q"
        return "o" if _TAGS.get(stem) in ("o", "w", "h", "s") else "n"
    if word[0].isdigit() or unicodedata.category(word[0]) == "Sc" or word == "%":
        return "m"
    if not any(map(str.isalnum, word)):
        return "k" if word == "," else "p"
    for endings, tag in _ENDINGS:
        if len(word) >= _SHORTEST and word.endswith(endings):
            return tag
    return "u"


@dataclass(slots=True)
class _Clause:
    """The state of a clause when a word is read: the tag before it, and the noun phrase around it."""

    before: str = "p"
    ends_in_s: bool = False
    determined: bool = False
    singular: bool = False
    in_phrase: bool = False
    has_verb: bool = False

    def read(self, tag: str, first: str, word: str) -> None:
        """Add a word with its tag and the tag that it had by itself."""
        if tag in "pwck":
            self.in_phrase = False
            self.has_verb = self.has_verb and tag == "k"
        elif tag == "i":
            self.in_phrase = True
        elif tag in "va":
            # A man wearing a hat has no verb yet.
            self.has_verb, self.in_phrase = self.has_verb or first != "g" or self.before == "a", False
        if tag not in "jmnxq":
            self.determined, self.singular = tag == "d", first == "s"
        if tag != "x" or self.before not in "tla":  # "did not kick" is read like "did kick"
            self.before = tag
        self.ends_in_s = word.endswith("s")


def _settle_ing(clause: _Clause, after: str) -> str:
    """A word in -ing: part of a noun phrase ("a living room", "for racketeering"), otherwise a verb."""
    if clause.before in "djmq":
        return "j" if after in _NOMINAL else "n"
    if clause.before == "i":
        return "v" if after in "dsoh" else "j" if after in _NOMINAL else "n"
    return "j" if clause.before in "pkc" and after in _NOMINAL else "v"


def _settle_ed(clause: _Clause, after: str) -> str:
    """A word in -ed: an adjective before a noun ("a gated yard"), otherwise a verb."""
    if clause.before in "dqi":
        return "j" if after in _NOMINAL else "n"
    return "j" if clause.before in "jmpkc" and after in _NOMINAL else "v"


def _settle_s(clause: _Clause, after: str) -> str:
    """A word in -s: a verb where a plural is impossible ("a bus drives") or rare."""
    if clause.before == "o" or (clause.before == "d" and clause.singular):
        return "v"
    if clause.before != "n" or clause.has_verb or clause.ends_in_s:
        return "n"
    if clause.singular:
        return "v"
    if clause.in_phrase:
        return "v" if after in "dsoh" else "n"
    return "v" if after in "dsohmnujT" or (clause.determined and after in "iITRx") else "n"


def _settle_verb(clause: _Clause, after: str) -> str:
    """A verb that may also be a noun: a verb after a subject, an auxiliary or to, and before an object."""
    if clause.before in "otaxwl":
        return "v"
    if clause.before == "n":
        return "n" if clause.has_verb or (clause.in_phrase and not clause.singular) else "v"
    return "v" if clause.before in "pkc" and after in "dsohi" else "n"


def _settle_unknown(clause: _Clause, after: str) -> str:
    """An unknown word: a noun, unless only a verb can follow the word before it."""
    return "v" if clause.before in "tl" or (clause.before == "o" and not clause.has_verb) else "n"


def _settle_to(clause: _Clause, after: str) -> str:
    """To: of an infinitive, otherwise a preposition."""
    return "t" if after in "vbualxe" else "i"


def _settle_particle(clause: _Clause, after: str) -> str:
    """Up, down, out: a particle of the verb before it, or a preposition of the nouns after it."""
    if after in "dsohmjnuzgeb":
        return "i"
    return "r" if clause.before == "v" else "x"


def _settle_preposition(clause: _Clause, after: str) -> str:
    """A preposition with nothing to govern belongs to the verb before it; "would like" has none."""
    if clause.before == "l":
        return "v"
    return "r" if clause.before == "v" and after in "pkciI" else "i"


def _settle_adverb(clause: _Clause, after: str) -> str:
    """Back, light: an adverb, unless a noun is due ("on the back")."""
    return "n" if clause.before == "d" and after not in _NOMINAL + "x" else "x"


def _settle_singular(clause: _Clause, after: str) -> str:
    """A, each, one: a determiner, but for "a black one"."""
    return "n" if clause.before == "j" and after not in _NOMINAL else "d"


_SETTLE: dict[str, Callable[[_Clause, str], str]] = {
    "g": _settle_ing,
    "e": _settle_ed,
    "z": _settle_s,
    "b": _settle_verb,
    "u": _settle_unknown,
    "T": _settle_to,
    "R": _settle_particle,
    "i": _settle_preposition,
    "x": _settle_adverb,
    "s": _settle_singular,
}


def _settled(first: Sequence[str], lowered: Sequence[str]) -> str:
    """The tags of words beside their neighbours."""
    clause, tags = _Clause(), []
    for place, tag in enumerate(first):
        settle = _SETTLE.get(tag)
        after = first[place + 1] if place + 1 < len(first) else "p"
        found = settle(clause, after) if settle else tag.replace("I", "i")
        clause.read(found, tag, lowered[place])
        tags.append(found)
    return "".join(tags).replace("l", "a")


def _chunk_spans(tags: str, lowered: Sequence[str]) -> list[Span]:
    """The chunks, the nouns inside them, and chunks together with the of-phrases that follow."""
    chunks = _coordinated(list(_chunks(tags)), tags)
    wanted = [(chunk.start, chunk.end) for chunk in chunks]
    wanted += [(chunk.inner, chunk.end) for chunk in chunks]
    wanted += _with_of(chunks, lowered)
    wanted += [(chunk.inner, chunk.end) for chunk in _chunks(tags) if chunk.kind != "other"]
    return wanted


def _chunks(tags: str) -> Iterator[_Chunk]:
    for found in _CHUNK.finditer(tags):
        kind = str(found.lastgroup)
        inner = found.start("inner") if kind == "preposition" else found.start()
        yield _Chunk(kind, found.start(), found.end(), inner)


def _coordinated(chunks: list[_Chunk], tags: str) -> list[_Chunk]:
    """The chunks; noun chunks are joined over conjunctions ("a computer and papers", "wine, bread and soup").

    They are not joined if the last one begins its own clause: "on a bench and a woman stands".
    """
    joined: list[_Chunk] = []
    place, verb = 0, False
    while place < len(chunks):
        chunk, after = chunks[place], place + 1
        if chunk.kind in ("nouns", "preposition"):
            last = _last_of_list(chunks, place, tags)
            opens_clause = _VERB_NEXT.match(tags, chunks[last].end) is not None
            if last > place and not (opens_clause and (verb or chunk.kind == "preposition")):
                chunk, after = _Chunk(chunk.kind, chunk.start, chunks[last].end, chunk.inner), last + 1
        verb = tags[chunk.start] != "p" and (verb or chunk.kind == "verb")
        joined.append(chunk)
        place = after
    return joined


def _last_of_list(chunks: Sequence[_Chunk], place: int, tags: str) -> int:
    """The end of the list of noun chunks that begins at a place; the place itself if there is no list."""
    last, here, found = place, place + 1, False
    while here < min(len(chunks), place + 2 * _MOST_LISTED) and not found:
        between = here
        while between < len(chunks) and between < here + 2 and tags[chunks[between].start] in "kc":
            between += 1
        found = between > here and tags[chunks[between - 1].start] == "c"
        if between == here or between == len(chunks) or chunks[between].kind != "nouns":
            return place
        last, here = between, between + 1
    return last if found else place


def _with_of(chunks: Sequence[_Chunk], lowered: Sequence[str]) -> list[Span]:
    """Noun and preposition chunks, each with the following chunks that begin with "of"."""
    wanted: list[Span] = []
    for before, chunk in pairwise(chunks):
        if lowered[chunk.start] == "of" and chunk.kind == "preposition":
            if wanted and wanted[-1][1] == before.end:
                wanted[-1] = (wanted[-1][0], chunk.end)
            elif before.kind in ("nouns", "preposition"):
                wanted.append((before.start, chunk.end))
    return wanted
