"""Check the folder of a spaCy pipeline before spaCy opens it.

spaCy opens every file that it expects, and config.cfg names functions that it calls: loggers that write
files, callbacks, readers, other pipelines. Only functions that build components are allowed. The sections
[training], [corpora], [pretraining] and [initialize] are never used when a pipeline is loaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from likewise.encoders.reading import LARGE
from likewise.errors import ModelError
from likewise.files import refuse_endless

_MOST_FILES, _MOST_CONFIG, _MOST_COMPONENTS = 10_000, 2**18, 64
# Sections that are read when a pipeline is trained, and not when it is loaded.
_TRAINING = frozenset({"training", "corpora", "pretraining", "initialize"})
_CALLBACKS = ("before_creation", "after_creation", "after_pipeline_creation")
_REGISTRIES = frozenset({"@architectures", "@layers", "@misc", "@scorers", "@tokenizers", "@vectors"})
# spaCy's and thinc's own; of the miscellaneous ones those that open no file.
_FUNCTION = re.compile(r"(spacy(-legacy)?\.)?(\w+\.)?\w+")
_MISC = re.compile(r"spacy\.(\w+_(suggester|filter|compare)|EmptyKB|Candidate(Batch)?Generator)\.v\d")
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_REPEATED = re.compile(r"depth|layers|window_size|pieces")
_MOST_REPEATED, _MOST_WIDTH = 64, 2**20
_REMEDY = "Correct it, or install the pipeline as a package if you trust it."


def check_pipeline_files(folder: Path) -> None:
    """Raise an error for special files in a folder or behind its links, and for text that is too large."""
    for path in _below(folder):
        refuse_endless(path)
        if path.suffix in (".json", ".cfg", ".jsonl") and path.is_file() and path.stat().st_size > LARGE:
            raise ModelError(
                f"{path} has {path.stat().st_size:,} bytes, but at most {LARGE:,} are read. {_REMEDY}"
            )


def _below(folder: Path) -> Iterator[Path]:
    """All files in a folder and its subfolders; links are followed, but a loop only once."""
    waiting, seen, count = [folder], set(), 0
    while waiting:
        place = waiting.pop()
        real = os.path.realpath(place)
        if real in seen:
            continue
        seen.add(real)
        for path in sorted(place.iterdir()):
            count += 1
            if count > _MOST_FILES:
                raise ModelError(
                    f"{folder} holds more than {_MOST_FILES:,} files, counted through links. {_REMEDY}"
                )
            if path.is_dir():
                waiting.append(path)
            else:
                yield path


def check_pipeline_config(folder: Path) -> None:
    """Raise an error for a config.cfg that calls other functions than those of components."""
    from thinc.api import Config

    path = folder / "config.cfg"
    if path.stat().st_size > _MOST_CONFIG:
        raise ModelError(
            f"{path} is larger than {_MOST_CONFIG:,} bytes, but no pipeline needs more. {_REMEDY}"
        )
    config: dict[str, Any] = Config().from_disk(path, interpolate=False)
    nlp = config.get("nlp") if isinstance(config.get("nlp"), dict) else {}
    for name in _CALLBACKS:
        if nlp and nlp.get(name) is not None:
            raise ModelError(f"{path}: [nlp] {name} is set and would run code. Remove it. {_REMEDY}")
    if nlp and not _LANGUAGE.fullmatch(str(nlp.get("lang"))):
        raise ModelError(
            f"{path}: [nlp] lang = {str(nlp.get('lang'))[:60]!r} is not a language code. {_REMEDY}"
        )
    components = config.get("components")
    if isinstance(components, dict) and len(components) > _MOST_COMPONENTS:
        raise ModelError(f"{path} has more than {_MOST_COMPONENTS} components. {_REMEDY}")
    for place, value in _entries(config, ()):
        _check_entry(path, config, place, value)


def _entries(value: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value that is not a table or list, with the keys that lead to it."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else ((str(n), one) for n, one in enumerate(value))
        for key, one in pairs:
            yield from _entries(one, (*place, str(key)))
    else:
        yield place, value


def _check_entry(path: Path, config: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    named, key = f"{path}: [{'.'.join(place[:-1])}] {place[-1]} = {str(value)[:60]!r}", place[-1]
    loaded = place[0] not in _TRAINING
    references = _REFERENCE.findall(value) if isinstance(value, str) else []
    # A reference to a section, or several in one value, would make more of the text at every step.
    if len(references) > 2 or any(isinstance(_find(config, one), dict | list) for one in references):
        raise ModelError(f"{named} refers to more than a value. {_REMEDY}")
    if not loaded:
        return
    if references and value != "${" + references[0] + "}":
        raise ModelError(f"{named} refers to more than a value. {_REMEDY}")
    if key.startswith("@") and not _may_be_called(key, value):
        raise ModelError(f"{named} is not a function of a component, but would be run. {_REMEDY}")
    if place[0] == "components" and len(place) == 3 and key == "source":
        raise ModelError(f"{named} would load another pipeline. {_REMEDY}")
    number = _followed(config, value)
    called = next(name for name in reversed(place) if not name.isdigit() or name is place[0])
    most = _MOST_REPEATED if _REPEATED.search(called) else _MOST_WIDTH
    if place[0] == "components" and isinstance(number, int | float) and abs(number) > most:
        raise ModelError(f"{named} is larger than in any pipeline ({most:,}). {_REMEDY}")


def _may_be_called(registry: str, name: Any) -> bool:
    known = registry in _REGISTRIES and isinstance(name, str) and _FUNCTION.fullmatch(name) is not None
    return known and (registry != "@misc" or _MISC.fullmatch(name) is not None)


def _find(config: Any, reference: str) -> Any:
    """The value to which a reference such as a.b.c or a.b:c leads; None if it leads nowhere."""
    for key in re.split(r"[.:]", reference):
        config = config.get(key) if isinstance(config, dict) else None
    return config


def _followed(config: dict[str, Any], value: Any) -> Any:
    """A value, or the value to which its references finally lead."""
    for _ in range(10):
        found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            return value
        value = _find(config, found[1])
    return value
