"""Language codes: ISO 639-1 and 639-3, with script and region, in one spelling (languages.toml)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from importlib import resources
from typing import Any

from likewise.errors import DataError, Problem

_TAG = re.compile(r"([a-z]{2,3})(?:-([a-z]{4}))?(?:-([a-z]{2}|[0-9]{3}))?")
# ISO 639 keeps these free for languages that it does not list.
_PRIVATE = re.compile(r"q[a-t][a-z]")
# Scripts that a tag may name, and the wider one under which the table has them.
_WIDER = {"Hans": "Hani", "Hant": "Hani", "Hira": "Jpan", "Kana": "Jpan", "Hrkt": "Jpan", "Hang": "Kore"}
_LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Language:
    """One language under the code that Likewise uses: "de", "arz", "zh-tw".

    `base` is the code without script and region. `scripts` are the scripts in which it is usually written,
    the most usual one first (ISO 15924). It is empty if nothing is known.
    """

    code: str
    base: str
    name: str
    scripts: tuple[str, ...]


def find_language(code: str, *, source: str = "language") -> Language:
    """The language of a code. For an unknown code, the error names `source` and the nearest known code."""
    language = look_up(code)
    if language is None:
        raise DataError([_unknown(code, source)])
    return language


def look_up(code: str) -> Language | None:
    """The language of an ISO 639-1 or 639-3 code, with script or region if the code has them ("zho_Hant",
    "pt-BR").

    The two-letter code is used if there is one, and the usual script is left out ("eng_Latn" becomes "en").
    """
    parts = _TAG.fullmatch(code.strip().lower().replace("_", "-"))
    known = _find_base(parts[1]) if parts else None
    if parts is None or known is None:
        return None
    script = parts[2].capitalize() if parts[2] else ""
    if not script or script == next(iter(known.scripts), ""):
        tag, scripts = known.base, known.scripts
    else:
        named = _WIDER.get(script, script)
        tag, scripts = f"{known.base}-{parts[2]}", (named,) if named in script_table() else ()
    return Language(f"{tag}-{parts[3]}" if parts[3] else tag, known.base, known.name, scripts)


def iso3_code(language: Language) -> str:
    """The language's three-letter code, without script and region."""
    entry = language_table()["languages"].get(language.base)
    return str(entry).split(" ", 1)[0] if entry else language.base


@cache
def script_table() -> Mapping[str, tuple[str, ...]]:
    """Each script's name and the words that begin the Unicode names of its letters."""
    entries = {code: tuple(entry.split("/")) for code, entry in language_table()["scripts"].items()}
    return {code: (name, *(words or (name,))) for code, (name, *words) in entries.items()}


@cache
def language_table() -> Mapping[str, Mapping[str, Any]]:
    """The sections of languages.toml."""
    text = resources.files("likewise.data.parallel").joinpath("languages.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _find_base(code: str) -> Language | None:
    languages = _languages()
    if code not in languages and _PRIVATE.fullmatch(code):
        return Language(code, code, "private use", ())
    return languages.get(code)


@cache
def _languages() -> Mapping[str, Language]:
    """Every known code with its language, including three-letter codes and older codes."""
    table = language_table()
    found = {}
    for code, entry in table["languages"].items():
        iso3, scripts, name = entry.split(" ", 2)
        found[code] = found[iso3] = Language(code, code, name, tuple(scripts.split("/")))
    for code, entry in table["others"].items():
        scripts, name = entry.split(" ", 1)
        found[code] = Language(code, code, name, tuple(scripts.split("/")))
    return found | {code: found[meant] for code, meant in table["aliases"].items()}


def _unknown(code: str, source: str) -> Problem:
    nearest = _nearest(re.split("[-_]", code.strip().lower())[0])
    found = (
        f"the language code {code[:_LONGEST_SHOWN]!r} is unknown (nearest: {nearest.code!r}, {nearest.name})"
    )
    remedy = (
        "write an ISO 639 code such as en, deu or pt-br; the codes qaa to qtz are free for "
        "languages not listed"
    )
    return Problem(source, found, remedy)


def _nearest(code: str) -> Language:
    """The language most likely meant by an unknown code. It is only a hint and never used instead."""
    languages, table = _languages(), language_table()
    if code in table["hints"]:
        return languages[table["hints"][code]]
    if len(code) > 3:
        names = {language.name.lower(): language for language in languages.values()}
        close = get_close_matches(code[:_LONGEST_SHOWN], names, n=1)
        if close:
            return names[close[0]]

    def closeness(known: str) -> tuple[float, bool, bool]:
        # Short codes are often equally far apart: then the first letter counts, then how common it is.
        ratio = SequenceMatcher(None, code[:_LONGEST_SHOWN], known).ratio()
        return ratio, known[:1] == code[:1], languages[known].base in table["profiles"]

    return languages[max(sorted(languages), key=closeness)]
