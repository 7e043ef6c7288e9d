"""Check whether texts look like their declared language: by script, then by letters and frequent words.

The check is cheap on purpose: it reads a sample of lines and uses no model. It reports only strong evidence.
No report therefore says little about closely related languages (Danish and Norwegian), and nothing about
languages without a profile.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from likewise.data.parallel.languages import Language, language_table, script_table
from likewise.errors import Problem

SAMPLE = 1000
_CHARS = 500
_FEWEST_LINES = 3
_FEWEST_WORDS = 60
# On 175 columns of Tatoeba and translated STS-B: by its own profile a language scores .10 to .33, and
# the next best stays .10 or more below it, save between Danish and Norwegian.
_LEAST_SCORE = 0.1
_LEAST_LEAD = 0.08
# What a language without a profile is taken to score: by those of others it was seen to reach .07 at most,
# relatives left out.
_BY_CHANCE = 0.04

_REMEDY = "check that the file is the right one and that its two sides are not swapped"
_WORD = re.compile(r"[^\W\d_]+")
# Japanese and Korean mix Chinese characters with their own: one character of their own decides a line.
_MIXED = ("Jpan", "Kore")


class LanguageProfile(NamedTuple):
    """What distinguishes a language from others in its script: its letters beyond a to z, and its most
    frequent words.
    """

    letters: frozenset[str]
    words: frozenset[str]


def find_mismatch(texts: Sequence[str], language: Language, *, source: str) -> Problem | None:
    """The problem of texts that are clearly not in their declared language, or None."""
    sample = [unicodedata.normalize("NFC", text[:_CHARS]) for text in _spread(texts)]
    scripts = Counter(filter(None, map(_line_script, sample)))
    seen = scripts.total()
    if seen < _FEWEST_LINES or not language.scripts:
        return None
    if 2 * sum(scripts[script] for script in language.scripts) < seen:
        found = (
            f"the declared language is {_shown(language)}, but {_script_shares(scripts)}; "
            f"{_names(language.scripts)} is expected"
        )
        return Problem(source, found, _REMEDY)
    main = max(language.scripts, key=lambda script: scripts[script])
    rival = _find_rival(sample, language, main)
    if rival is None:
        return None
    other = f"{rival!r} ({language_table()['languages'][rival].split(' ', 2)[2]})"
    return Problem(
        source,
        f"the declared language is {_shown(language)}, but its words and letters are those of {other}",
        _REMEDY,
    )


def _spread(texts: Sequence[str]) -> Iterable[str]:
    """Texts from all parts of the file, because its beginning may differ from the rest."""
    return texts[:: -(-len(texts) // SAMPLE) or 1]


def _line_script(text: str) -> str:
    """The script of most letters of a text, or "" if it has no letters."""
    scripts = Counter(script for char in text if char.isalpha() and (script := _letter_script(char)))
    for mixed in _MIXED:
        if scripts[mixed]:
            scripts[mixed] += scripts.pop("Hani", 0)
    return max(scripts, key=lambda script: scripts[script], default="")


@cache
def _letter_script(letter: str) -> str:
    # Unicode names a letter after its script: CYRILLIC SMALL LETTER A.
    return _scripts_by_word().get(unicodedata.name(letter, "").split(" ", 1)[0], "")


@cache
def _scripts_by_word() -> Mapping[str, str]:
    return {word.upper(): script for script, (_, *words) in script_table().items() for word in words}


def _find_rival(sample: Sequence[str], language: Language, script: str) -> str | None:
    """Another language of the same script that the sample resembles much more, or None."""
    profiles = _profiles(script)
    words = Counter(word for text in sample for word in _WORD.findall(text.lower()))
    if words.total() < _FEWEST_WORDS:
        return None
    scores = {code: _score(words, code, profiles) for code in profiles}
    own = scores.pop(language.base, _BY_CHANCE)
    for relative in language_table()["near"].get(language.base, "").split():
        scores.pop(relative, None)
    best = max(scores, key=lambda code: scores[code], default=None)
    if best is None or scores[best] < _LEAST_SCORE or scores[best] - own < _LEAST_LEAD:
        return None
    return best


def _score(words: Counter[str], code: str, profiles: Mapping[str, LanguageProfile]) -> float:
    """The share of words from a language's list, minus the share of words with letters that the language
    lacks.

    A word on several lists counts for each language in part: "de" says little, "het" indicates Dutch.
    """
    letters, frequent = profiles[code]
    known = sum(
        words[word] / sum(word in other.words for other in profiles.values())
        for word in frequent
        if word in words
    )
    foreign = sum(
        count
        for word, count in words.items()
        if not word.isascii() and any(char > "\x7f" and char not in letters for char in word)
    )
    return (known - foreign) / words.total()


@cache
def _profiles(script: str) -> Mapping[str, LanguageProfile]:
    """The profiles of the languages that are usually written in a script."""
    table = language_table()
    return {
        code: LanguageProfile(frozenset(entry["letters"]), frozenset(entry["words"].split()))
        for code, entry in table["profiles"].items()
        if table["languages"][code].split(" ", 2)[1].split("/")[0] == script
    }


def _shown(language: Language) -> str:
    return f"{language.code!r} ({language.name})"


def _names(scripts: Iterable[str]) -> str:
    return " or ".join(f"{script_table()[script][0]} script" for script in scripts)


def _script_shares(scripts: Counter[str]) -> str:
    most, count = scripts.most_common(1)[0]
    return f"{count / scripts.total():.0%} of the checked lines are in {_names([most])}"
