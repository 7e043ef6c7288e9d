"""Answerer: the Python methods of a loaded model: `score`, `classify`, `encode`, `explain`.

Each kind of model defines how it answers (`answer`, `sources`, `embedding`). Reading rows and returning
answers is the same for all kinds and is done here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from torch import nn

from likewise.answering import Answering, Answers, Classes, Progress, Rows, Scores, Vectors, find_relation
from likewise.arguments import listed_names, listed_texts, require_function, require_text
from likewise.encoders.inputs import check_texts
from likewise.errors import UsageError
from likewise.files import is_there
from likewise.records import Relation

if TYPE_CHECKING:
    from likewise.explain.explanation import PairExplanation
    from likewise.phrases.spans import Phraser

_log = logging.getLogger("likewise")
Labels = Sequence[str] | Mapping[str, str | Sequence[str]]


class Answerer(Answering):
    """A loaded model; `likewise.load(model)` returns one."""

    model: nn.Module

    def source(self, relation: str) -> str:
        """The source that answers a relation by default."""
        return self.sources(relation)[0]

    def score(
        self,
        pairs: Any,
        *,
        relation: str | Sequence[str] | None = None,
        source: str | None = None,
        text_a: str | None = None,
        text_b: str | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        """Score pairs on every relation, or only on the named ones.

        Pairs are a list of (a, b), a file, a frame or a dataset. A model of single texts takes those instead,
        and `text_a` then names their column. `source` chooses `cosine`, `head` or another of its sources.
        """
        for name, value in (("source", source), ("text_a", text_a), ("text_b", text_b)):
            require_text(value, name)
        require_function(progress, "progress")
        names = listed_names(relation, "relation") or [r.name for r in self.relations]
        rows = self._rows(pairs, text_a, text_b)
        return Scores(self._answer_all(rows, names, source, progress))

    def _answer_all(
        self, rows: Rows, names: Sequence[str], source: str | None, progress: Progress | None
    ) -> list[Answers]:
        return [self.answer(rows, name, source=source, progress=progress) for name in names]

    def _rows(self, source: Any, text_a: str | None, text_b: str | None) -> Rows:
        """Turn the argument into checked rows of as many texts as this model reads."""
        given = isinstance(source, list | tuple) and len(source) > 0
        if 2 in self.texts:
            if given and all(isinstance(one, str) for one in source):
                raise UsageError("this model reads pairs of texts. Pass (first, second) for each pair.")
            pairs = as_pairs(source, text_a=text_a, text_b=text_b)
            check_texts([text for pair in pairs for text in pair], name=place_in_pairs)
            return pairs
        if given and any(isinstance(one, list | tuple) for one in source):
            raise UsageError("this model reads single texts. Pass a list of texts, not of pairs.")
        texts = as_texts(source, text=text_a)
        check_texts(texts)
        return [(text,) for text in texts]

    def classify(
        self,
        texts: str | Sequence[str],
        *,
        task: str | None = None,
        labels: Labels | None = None,
        progress: Progress | None = None,
    ) -> Classes:
        """Probabilities of a task's labels for single texts, or of any labels if the model reads labels.

        `labels` may give several label texts for each label: {"praise": ["praise", "a kind word"]}.
        """
        require_text(task, "task")
        asked = self.wanted(task, labels)
        many = listed_texts(texts, "texts")
        check_texts(many)
        found = self.answer([(text,) for text in many], asked, progress=progress)
        if found.probabilities is None:
            raise UsageError(
                f"this model answers {asked.name} by a number on the scale {asked.scale}. Use score instead."
            )
        return Classes(asked.labels, found.probabilities)

    def wanted(self, task: str | None, labels: Labels | None) -> Relation:
        """The task to answer for single texts: the named one, or the only one."""
        self.check_classifies()
        named = [relation for relation in self.relations if relation.labels]
        if labels is not None or (task is not None and task not in [relation.name for relation in named]):
            own = ", ".join(repr(relation.name) for relation in named)
            raise UsageError(
                f"this model was fine-tuned on the labels of {own} and answers no others. Leave labels out."
            )
        return named[0] if task is None else find_relation(self, task)

    def check_classifies(self) -> None:
        """Raise an error for a model that does not classify single texts."""
        if 1 in self.texts and any(relation.labels for relation in self.relations):
            return
        first = self.relations[0]
        what = f"with a number ({first.scale})" if 1 in self.texts else "pairs of texts"
        raise UsageError(f"this model answers {what} and does not classify single texts. Use score instead.")

    def encode(self, texts: str | Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """The vectors of texts, N×d, or d for a single string; SentenceTransformer gives the same."""
        embedding = self.embedding()
        many = listed_texts(texts, "texts")
        check_texts(many)
        vectors = embedding.encode(many, progress=progress)
        return vectors[0] if isinstance(texts, str) else vectors

    @overload
    def explain(
        self, a: str, b: str, *, relation: str | None = None, phrases: str | Phraser = "auto"
    ) -> PairExplanation: ...
    @overload
    def explain(
        self,
        a: Any,
        b: None = None,
        *,
        relation: str | None = None,
        phrases: str | Phraser = "auto",
        text_a: str | None = None,
        text_b: str | None = None,
    ) -> list[PairExplanation]: ...
    def explain(
        self,
        a: Any,
        b: str | None = None,
        *,
        relation: str | None = None,
        phrases: str | Phraser = "auto",
        text_a: str | None = None,
        text_b: str | None = None,
    ) -> PairExplanation | list[PairExplanation]:
        """Explain a score: which phrases of two texts match, which do not, and what each contributes.

        Two texts give one explanation; pairs, as `score` takes them, give a list. `relation` defaults to the
        first. `phrases` is a Phraser or names one (auto, rules, spacy, a pipeline). `text_a` and `text_b` are
        the columns of a table of pairs.
        """
        from likewise.explain.explainer import Explainer
        from likewise.phrases.linking import Asked

        for name, value in (("relation", relation), ("text_a", text_a), ("text_b", text_b)):
            require_text(value, name)
        if not callable(phrases):
            require_text(phrases, "phrases", optional=False)
        self.embedding().states("load another `model` with likewise.load")
        rows = [(a, b)] if isinstance(b, str) else as_pairs(a, text_a=text_a, text_b=text_b)
        check_texts([text for pair in rows for text in pair], name=place_in_pairs)
        known: dict[str, Phraser] = self.__dict__.setdefault("_phrasers", {})
        if isinstance(phrases, str):
            phrases = known.get(phrases, phrases)
        explainer = Explainer(self, relation=relation, phrases=phrases, tell=_log.warning)
        asked = [Asked(*pair, source=f"pair {place}") for place, pair in enumerate(rows)]
        found = [replace(one, source="") for one in explainer.explain(asked)]
        if isinstance(phrases, str) and found:
            known[phrases] = explainer.phraser  # loading a parser takes a second
        return found[0] if isinstance(b, str) else found


def as_pairs(pairs: Any, *, text_a: str | None = None, text_b: str | None = None) -> list[tuple[str, str]]:
    """Pairs of strings from a list of pairs, or from anything that `data.read` takes."""
    plain = isinstance(pairs, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(t, str) for t in pair)
        for pair in pairs
    )
    if plain:
        return [(str(a), str(b)) for a, b in pairs]
    from likewise.data import read

    source = str(pairs) if isinstance(pairs, Path) else pairs
    return [(record.a, record.b) for record in read(source, relations=(), text_a=text_a, text_b=text_b)]


def as_texts(texts: Any, *, text: str | None = None) -> list[str]:
    """Single texts from a list, or from anything with a column of texts that `data.read` takes."""
    texts = texts.tolist() if hasattr(texts, "tolist") else texts  # a pandas Series, an array
    if isinstance(texts, str) and " " in texts.strip() and not _is_file(texts):
        raise UsageError("a single text was passed instead of a list of texts or a file. Pass [text].")
    if isinstance(texts, list | tuple) and all(isinstance(one, str) for one in texts):
        return list(texts)
    from likewise.data import read

    source = str(texts) if isinstance(texts, Path) else texts
    return [record.texts[0] for record in read(source, relations=(), text_a=text, pairs=False)]


def _is_file(text: str) -> bool:
    return is_there(text)


def place_in_pairs(index: int) -> str:
    """The name in errors of a text in a flat list of pairs: "pair 3, text b"."""
    return f"pair {index // 2}, text {'ab'[index % 2]}"
