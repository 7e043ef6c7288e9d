"""Find phrases with spaCy's parser, and find a phraser by its name.

A parse gives noun chunks, the whole subtree of a word (clauses, objects, prepositional phrases), a verb with
its auxiliaries and particles, and this group extended to the right by one dependent at a time ("plays",
"plays guitar", "plays guitar in the park"). Marks at the edges are cut off.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.data.filecache import content_digests, content_key, files_in
from likewise.data.links import Span
from likewise.encoders.resolve import local_model
from likewise.errors import DataError, LikewiseError, ModelError, Problem, UsageError
from likewise.files import is_there, note_input
from likewise.phrases.chunking import RuleChunker
from likewise.phrases.pipelines import check_pipeline_config, check_pipeline_files
from likewise.phrases.spans import Phraser, Phrases, uncrossed

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

PACKAGES = ("en_core_web_lg", "en_core_web_md", "en_core_web_sm", "en_core_web_trf")
REMEDY = "pip install 'likewise[phrases]' and python -m spacy download en_core_web_md"

_UNUSED = ("ner", "lemmatizer", "senter", "entity_linker", "textcat")
_BATCH = 256
# English models and those of Universal Dependencies name some of these differently.
_BEFORE_VERB = frozenset({"aux", "auxpass", "aux:pass", "neg", "advmod", "mark"})
_AFTER_VERB = frozenset({"prt", "compound:prt"})
_NOT_PART = frozenset({"cc", "conj", "punct", "parataxis"})
_PREPOSITIONS = frozenset({"prep", "agent", "case"})
_VERBS = frozenset({"VERB", "AUX"})
_SURROGATE = re.compile("[\ud800-\udfff]")


class SpacyPhraser:
    """A phraser that uses a spaCy pipeline with a parser: a folder or the name of an installed package."""

    def __init__(self, path_or_name: str | os.PathLike[str]) -> None:
        """Load the pipeline without the components that phrases do not need."""
        folder = _folder(os.fspath(path_or_name))
        installed = folder in map(_package, {os.fspath(path_or_name), *PACKAGES})
        self._nlp = _load(folder, installed=installed)
        meta = self._nlp.meta
        self.name = f"spaCy {meta['lang']}_{meta['name']} {meta['version']}"

    def __call__(self, texts: Sequence[str]) -> list[Phrases]:
        """The phrases of each text."""
        most = self._nlp.max_length
        if long := [number for number, text in enumerate(texts) if len(text) > most]:
            what = f"the text has more than the {most:,} characters that spaCy parses at once"
            remedy = "cut it into shorter texts"
            raise DataError([Problem(f"text {number}", what, remedy) for number in long])
        # Half a character pair cannot be encoded, which spaCy wants to; the offsets stay the same.
        clean = (_SURROGATE.sub("\ufffd", text) for text in texts)
        with self._nlp.memory_zone():  # forgets the words of these texts, however many calls there are
            docs = self._nlp.pipe(clean, batch_size=_BATCH)
            return [self._phrases(text, doc) for text, doc in zip(texts, docs, strict=True)]

    def _phrases(self, text: str, doc: Doc) -> Phrases:
        parse = _read(doc)
        return Phrases(text, parse.words, uncrossed(_candidates(parse), len(parse.words)), self.name)


def phraser(name: str = "auto", tell: Callable[[str], None] | None = None) -> Phraser:
    """Find a phraser by name: "rules", "spacy", or the folder or package of a spaCy pipeline.

    "auto" uses spaCy if it and a model are installed, and otherwise the rules, which is reported in one line.
    """
    if name == "rules":
        return RuleChunker()
    if name != "auto":
        return SpacyPhraser(name)
    lacking = "spaCy is not installed" if not _has_spacy() else "no spaCy model was found"
    if _has_spacy() and _find_model() is not None:
        return SpacyPhraser("spacy")
    if tell is not None:
        tell(f"{lacking}, so phrases are found by rules. For better phrases, run {REMEDY}.")
    return RuleChunker()


def pipeline_print(name: str) -> str:
    """A hash of the pipeline that a phraser's name leads to; empty if phrases are found by rules."""
    if name == "rules" or (name == "auto" and (not _has_spacy() or _find_model() is None)):
        return ""
    return content_key(content_digests(_folder("spacy" if name == "auto" else name)), length=16)


def _has_spacy() -> bool:
    try:
        return importlib.util.find_spec("spacy") is not None
    except ValueError:  # a module that was put aside in sys.modules has no spec
        return False


def _find_model() -> Path | None:
    """The folder of the first model found: LIKEWISE_MODELS/spacy, then the packages, larger ones first."""
    folder = local_model("spacy")
    if folder is not None and _is_pipeline(folder):
        return folder
    return next(filter(None, map(_package, PACKAGES)), None)


def _is_pipeline(folder: Path) -> bool:
    return all((folder / name).is_file() for name in ("config.cfg", "meta.json"))


def _package(name: str) -> Path | None:
    """The pipeline's folder in an installed package, found without running the package."""
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    for place in (spec.submodule_search_locations if spec else None) or ():
        meta = Path(place) / "meta.json"
        if meta.is_file():
            said = json.loads(meta.read_text(encoding="utf8"))
            folder = meta.parent / f"{said['lang']}_{said['name']}-{said['version']}"
            if _is_pipeline(folder):
                return folder
    return None


def _folder(name: str) -> Path:
    """The folder of a pipeline; raises an error with a remedy if there is none."""
    if not _has_spacy():
        raise UsageError(f"phrases '{name}': spaCy is not installed. Run {REMEDY}, or use 'rules'.")
    if name == "spacy":
        found = _find_model()
        if found is None:
            raise UsageError(f"phrases 'spacy': no spaCy model was found. Run {REMEDY}, or use 'rules'.")
        return found
    folder = Path(os.path.expanduser(name))
    if is_there(folder) and folder.is_dir():
        if _is_pipeline(folder):
            return folder
        raise ModelError(
            f"{folder} is not a spaCy pipeline (it lacks config.cfg or meta.json). Install one: {REMEDY}."
        )
    found = local_model(name) or _package(name)
    if found is None or not _is_pipeline(found):
        raise UsageError(
            f"phrases '{name}' is not rules, spacy or auto, nor the folder or installed package of a spaCy "
            f"pipeline. Use one of these, or run {REMEDY}."
        )
    return found


@contextmanager
def _without_pickles(folder: Path) -> Iterator[None]:
    """Raise an error for layers of PyTorch and other frameworks in a pipeline, whose weights are pickles.

    Such weights always pass through a shim, however a folder refers to them. Pipelines that were installed as
    packages can run code anyway.
    """
    from thinc.shims.shim import Shim

    def refuse(self: Any, *given: Any, **options: Any) -> Any:
        raise ModelError(
            f"{folder} holds a PyTorch layer, whose weights are a pickle, and a pickle can run code. Use "
            f"another pipeline: {REMEDY}."
        )

    kinds, waiting = [], [Shim]
    while waiting:
        kind = waiting.pop()
        kinds.append(kind)
        waiting += kind.__subclasses__()
    own = [(kind, name) for kind in kinds for name in ("from_bytes", "from_disk") if name in vars(kind)]
    before = [getattr(kind, name) for kind, name in own]
    for kind, name in own:
        setattr(kind, name, refuse)
    try:
        yield
    finally:
        for (kind, name), method in zip(own, before, strict=True):
            setattr(kind, name, method)


def _load(folder: Path, *, installed: bool) -> Language:
    try:
        import spacy

        check_pipeline_files(folder)
        for file in (folder, *files_in(folder)):
            note_input(file)
        if not installed:
            check_pipeline_config(folder)
        with nullcontext() if installed else _without_pickles(folder):
            nlp = spacy.load(folder, exclude=list(_UNUSED))
    except ImportError as error:
        raise UsageError(f"spaCy cannot be imported ({error}). Run {REMEDY}, or use 'rules'.") from error
    except LikewiseError:
        raise
    except Exception as error:
        said = str(error).strip().partition("\n")[0][:300]
        raise ModelError(f"spaCy cannot load {folder} ({said}). Use another pipeline: {REMEDY}.") from error
    if "parser" not in nlp.pipe_names:
        raise ModelError(f"{folder}: this pipeline has no parser. Use another one: {REMEDY}.")
    return nlp


@dataclass(frozen=True, slots=True)
class _Parse:
    """A parse as numbers of words without white space, from which phrases are made."""

    words: tuple[tuple[int, int], ...]
    heads: list[int]
    labels: list[str]
    kinds: list[str]
    marks: list[bool]
    nouns: list[Span]
    children: list[list[int]]
    wholes: list[Span | None]  # what hangs on each word, itself included, where that is one stretch


def _read(doc: Doc) -> _Parse:
    kept = [token for token in doc if not token.is_space]
    number = {token.i: place for place, token in enumerate(kept)}
    heads = [number.get(_head(token).i, place) for place, token in enumerate(kept)]
    children: list[list[int]] = [[] for _ in kept]
    for place, head in enumerate(heads):
        if head != place:
            children[head].append(place)
    return _Parse(
        words=tuple((token.idx, token.idx + len(token)) for token in kept),
        heads=heads,
        labels=[token.dep_ for token in kept],
        kinds=[token.pos_ for token in kept],
        marks=[token.is_punct for token in kept],
        nouns=_noun_chunks(doc, number),
        children=children,
        wholes=_wholes(heads, children),
    )


def _head(token: Any) -> Any:
    """The head of a token, skipping white space that spaCy may have put between."""
    head = token.head
    while head.is_space and head.head.i != head.i:
        head = head.head
    return head


def _noun_chunks(doc: Doc, number: dict[int, int]) -> list[Span]:
    try:
        found = [[number[token.i] for token in chunk if token.i in number] for chunk in doc.noun_chunks]
    except NotImplementedError:  # spaCy knows noun chunks for some languages only
        return []
    return [(places[0], places[-1] + 1) for places in found if places]


def _wholes(heads: Sequence[int], children: Sequence[Sequence[int]]) -> list[Span | None]:
    first, last, size = list(range(len(heads))), list(range(len(heads))), [1] * len(heads)
    ordered = [place for place, head in enumerate(heads) if head == place]
    for place in ordered:  # grows while it is walked: parents before children
        ordered.extend(children[place])
    for place in reversed(ordered):
        head = heads[place]
        if head != place:
            first[head], last[head] = min(first[head], first[place]), max(last[head], last[place])
            size[head] += size[place]
    return [
        (start, end + 1) if end + 1 - start == count else None
        for start, end, count in zip(first, last, size, strict=True)
    ]


def _candidates(parse: _Parse) -> Iterator[Span]:
    """Spans of two or more words in order of preference: noun chunks, then the longest spans."""
    parts = [*filter(None, parse.wholes), *_verb_spans(parse), *_preposition_spans(parse)]
    parts.sort(key=lambda span: (span[0] - span[1], span[0]))
    for wanted in (parse.nouns, parts):
        for span in wanted:
            start, end = _trimmed(span, parse.marks)
            if end - start > 1:
                yield start, end


def _trimmed(span: Span, marks: Sequence[bool]) -> Span:
    start, end = span
    while start < end and marks[start]:
        start += 1
    while start < end and marks[end - 1]:
        end -= 1
    return start, end


def _verb_spans(parse: _Parse) -> Iterator[Span]:
    """A verb with its auxiliaries and particles, then with each of its dependents to the right."""
    for verb, kind in enumerate(parse.kinds):
        if kind not in _VERBS:
            continue
        start, end = _group_start(parse, verb), verb + 1
        for child in sorted(child for child in parse.children[verb] if child > verb):
            whole = parse.wholes[child]
            if whole is None or whole[0] != end or parse.labels[child] in _NOT_PART:
                break
            if parse.labels[child] not in _AFTER_VERB:  # "give up" is not also "give"
                yield start, end
            end = whole[1]
        yield start, end


def _group_start(parse: _Parse, verb: int) -> int:
    """The start of the auxiliaries, negations and single adverbs directly before a verb."""
    start = verb
    for child in sorted((child for child in parse.children[verb] if child < verb), reverse=True):
        if parse.labels[child] not in _BEFORE_VERB or parse.wholes[child] != (start - 1, start):
            break
        start -= 1
    return start


def _preposition_spans(parse: _Parse) -> Iterator[Span]:
    """A preposition with the noun chunk directly after it, without the chunk's dependents."""
    begins = {start: end for start, end in parse.nouns}
    for place, label in enumerate(parse.labels):
        if label in _PREPOSITIONS and place + 1 in begins:
            yield place, begins[place + 1]
