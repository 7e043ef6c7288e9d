"""Answerer: the Python methods of a loaded model: `score`, `classify`, `encode`, `explain`.

Each kind of model defines how it answers (`answer`, `sources`, `embedding`). Reading rows and returning
answers is the same for all kinds and is done here.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from torch import nn

from likewise.answering import (
    Answering,
    Answers,
    Classes,
    Numbers,
    Progress,
    Rows,
    Scores,
    Vectors,
    find_relation,
)
from likewise.arguments import (
    listed_names,
    require_flag,
    require_folder_name,
    require_function,
    require_number,
    require_text,
)
from likewise.data.asked import BLANK, SKIP, STOP, BadRows
from likewise.data.dialects import delimited_by
from likewise.encoders.inputs import check_texts
from likewise.errors import UsageError
from likewise.frames import index_of
from likewise.predict.given import asked_pairs, asked_texts, given_pairs, given_texts, read_places
from likewise.records import Relation
from likewise.spelling import spelt, spelt_call

if TYPE_CHECKING:
    from likewise.explain.explanation import PairExplanation
    from likewise.phrases.spans import Phraser

_log = logging.getLogger("likewise")
Labels = Sequence[str] | Mapping[str, str | Sequence[str]]


class Answerer(Answering):
    """A loaded model; `likewise.load(model)` returns one."""

    model: nn.Module

    def forget(self) -> None:
        """Empty the memory of texts, if the model has one. It changes no answer."""

    def source(self, relation: str) -> str:
        """The source that answers a relation by default."""
        return self.sources(relation)[0]

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the model to a folder, which `likewise.load` and SentenceTransformer load.

        The folder is complete or absent. `overwrite` replaces another model of Likewise, but never the folder
        that this model was loaded or trained from.
        """
        from likewise.store import save_loaded

        require_folder_name(folder, "folder")
        require_flag(overwrite, "overwrite")
        self._check_whole()
        return save_loaded(self.model, folder, about=self.about, overwrite=overwrite)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        token: str | None = None,
        commit_message: str | None = None,
    ) -> str:
        """Put the model on the Hugging Face hub and return its address; `likewise.load(repo_id)` loads it.

        A repository that does not exist is made, `private` or not. The model arrives in one commit, so that
        an interruption leaves the repository as it was. The `token` defaults to that of `hf auth login`.
        """
        from likewise.store.pushing import push_model

        for name, value in (("token", token), ("commit_message", commit_message)):
            require_text(value, name)
        require_text(repo_id, "repo_id", optional=False)
        if private is not None:
            require_flag(private, "private")
        self._check_whole()
        return push_model(
            self.model, repo_id, about=self.about, private=private, token=token, message=commit_message
        )

    def _check_whole(self) -> None:
        """Raise an error for a model that a folder would hold only in part, or that has nothing to save."""
        if not self.relations:
            raise UsageError(
                "this is a raw encoder that classifies, and it has nothing of its own to save. Load it with "
                "likewise.load and save that, or train a model."
            )
        if self.about.get("raw") and self.about.get("recipe"):
            raise UsageError(
                "only the encoder of this model is loaded, without the heads of its training. Copy its "
                "folder, or train it again into another one."
            )

    def score(
        self,
        pairs: Any,
        b: Any = None,
        *,
        relation: str | Sequence[str] | None = None,
        source: str | None = None,
        text_a: str | None = None,
        text_b: str | None = None,
        on_bad: str = STOP,
        delimiter: str | None = None,
        progress: Progress | None = None,
    ) -> Scores:
        """Score pairs on every relation, or only on the named ones.

        Pairs are a list of (a, b), two texts, two lists, a file, a frame or a dataset. A model of single
        texts takes those instead, and `text_a` then names their column. `source` chooses `cosine`, `head` or
        another of its sources.

        `on_bad` says what happens to a row whose text is empty, missing or unreadable: "stop" raises an
        error, "blank" gives it NaN (None for a label), and "skip" leaves it out. `delimiter` is that of a
        CSV file, if it is not to be recognised.
        """
        named = (("source", source), ("text_a", text_a), ("text_b", text_b), ("delimiter", delimiter))
        for name, value in named:
            require_text(value, name)
        require_text(on_bad, "on_bad", optional=False)
        require_function(progress, "progress")
        names = listed_names(relation, "relation") or [r.name for r in self.relations]
        bad = BadRows(on_bad)
        with delimited_by([pairs], delimiter):
            rows = self._asked_rows(pairs, b, text_a, text_b, bad)
        places = read_places(rows, bad)
        _tell_bad(bad, len(rows))
        with self.cut_texts.telling(_log.warning):
            found = self._answer_all([row for row in rows if row is not None], names, source, progress)
        spread = [one.spread(places, len(rows)) for one in found] if bad.policy == BLANK else found
        return Scores(spread, index=_index_of_kept(pairs, places, bad))

    def _asked_rows(
        self, source: Any, b: Any, text_a: str | None, text_b: str | None, bad: BadRows
    ) -> list[tuple[str, ...] | None]:
        """The rows of as many texts as this model reads, None for those that could not be read."""
        if bad.policy == STOP:
            return [*self._rows(source, b, text_a, text_b)]
        if 2 in self.texts:
            return asked_pairs(source, b, bad, text_a=text_a, text_b=text_b)
        if b is not None:
            raise UsageError("this model reads single texts. Pass a list of texts, not of pairs.")
        return asked_texts(source, bad, text=text_a, files=True, option="text_a")

    def _answer_all(
        self, rows: Rows, names: Sequence[str], source: str | None, progress: Progress | None
    ) -> list[Answers]:
        return [self.answer(rows, name, source=source, progress=progress) for name in names]

    def _rows(self, source: Any, b: Any, text_a: str | None, text_b: str | None) -> Rows:
        """Turn the arguments into checked rows of as many texts as this model reads."""
        if 2 in self.texts:
            pairs = given_pairs(source, b, text_a=text_a, text_b=text_b)
            check_texts([text for pair in pairs for text in pair], name=place_in_pairs)
            return pairs
        if b is not None:
            raise UsageError("this model reads single texts. Pass a list of texts, not of pairs.")
        texts = given_texts(source, text=text_a, files=True, option="text_a")
        check_texts(texts)
        return [(text,) for text in texts]

    def classify(
        self,
        texts: Any,
        *,
        task: str | None = None,
        labels: Labels | None = None,
        templates: str | Sequence[str] | None = None,
        none_below: float | None = None,
        text: str | None = None,
        on_bad: str = STOP,
        progress: Progress | None = None,
    ) -> Classes:
        """Probabilities of a task's labels for single texts, or of any labels if the model reads labels.

        Texts are a text, a list, a Series, an array, or a frame or dataset whose column `text` names.
        `labels` may give several label texts for each label: {"praise": ["praise", "a kind word"]}.
        `templates` are sentences around them. A text whose labels all stay below the probability
        `none_below` is "none of these". `on_bad` is that of `score`.
        """
        require_text(task, "task")
        require_text(text, "text")
        require_number(none_below, "none_below", low=0, high=1, optional=True)
        asked = self.wanted(task, labels)
        require_text(on_bad, "on_bad", optional=False)
        bad = BadRows(on_bad)
        rows: list[tuple[str, ...] | None]
        if bad.policy == STOP:
            many = given_texts(texts, text=text)
            check_texts(many)
            rows = [(one,) for one in many]
        else:
            rows = asked_texts(texts, bad, text=text)
            _tell_bad(bad, len(rows))
        places = read_places(rows, bad)
        with self.cut_texts.telling(_log.warning), self.saying(listed_names(templates, "templates")):
            found = self.answer([row for row in rows if row is not None], asked, progress=progress)
        if bad.policy == BLANK:
            found = found.spread(places, len(rows))
        if found.probabilities is None:
            raise UsageError(
                f"this model answers {asked.name} by a number on the scale {asked.scale}. Use score instead."
            )
        return Classes(asked.labels, found.probabilities, none_below, _index_of_kept(texts, places, bad))

    def label_scores(self, task: Relation, texts: Sequence[str]) -> Numbers:
        """The scores N×C of texts for the labels of a task, which calibration turns into probabilities."""
        raise _not_calibrated()

    def calibrate(self, task: Relation, texts: Sequence[str], labels: Sequence[str]) -> float:
        """Fit the probabilities of a task to labelled texts that were not trained on; the temperature."""
        raise _not_calibrated()

    def keep_templates(self, templates: Sequence[str]) -> None:
        """Put label texts into other templates from now on; only models that read labels can."""
        with self.saying(templates):
            pass

    def saying(self, templates: Sequence[str]) -> AbstractContextManager[None]:
        """Put label texts into other templates for a while; only models that read labels can."""
        if templates:
            raise UsageError("this model reads no label texts, so templates have no effect. Leave them out.")
        return nullcontext()

    def wanted(self, task: str | None, labels: Labels | None) -> Relation:
        """The task to answer for single texts: the named one, or the only one."""
        self.check_classifies()
        named = [relation for relation in self.relations if relation.labels]
        if labels is not None or (task is not None and task not in [relation.name for relation in named]):
            own = ", ".join(repr(relation.name) for relation in named)
            raise UsageError(
                f"this model was fine-tuned on the labels of {own} and answers no others. Leave "
                f"{spelt('labels')} out."
            )
        return named[0] if task is None else find_relation(self, task)

    def check_classifies(self) -> None:
        """Raise an error for a model that does not classify single texts."""
        if 1 in self.texts and any(relation.labels for relation in self.relations):
            return
        first = self.relations[0]
        what = f"with a number ({first.scale})" if 1 in self.texts else "pairs of texts"
        raise UsageError(f"this model answers {what} and does not classify single texts. Use score instead.")

    def encode(self, texts: Any, *, text: str | None = None, progress: Progress | None = None) -> Vectors:
        """The vectors of texts, N×d, or d for a single string; SentenceTransformer gives the same.

        Texts are a text, a list, a Series, an array, or a frame or dataset whose column `text` names.
        """
        require_text(text, "text")
        embedding = self.embedding()
        many = given_texts(texts, text=text)
        check_texts(many)
        with self.cut_texts.telling(_log.warning):
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
        b: Any = None,
        *,
        relation: str | None = None,
        phrases: str | Phraser = "auto",
        text_a: str | None = None,
        text_b: str | None = None,
    ) -> list[PairExplanation]: ...
    def explain(
        self,
        a: Any,
        b: Any = None,
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
        rows = given_pairs(a, b, text_a=text_a, text_b=text_b)
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


def _tell_bad(bad: BadRows, asked: int) -> None:
    for line in bad.told(asked + (bad.count if bad.policy == SKIP else 0)):
        _log.warning("%s", line)


def _not_calibrated() -> UsageError:
    train = spelt_call("train", "FILE", text="COLUMN", label="COLUMN")
    return UsageError(f"only models with label texts can be calibrated. Train one with {train}.")


def _index_of_kept(given: Any, places: Sequence[int], bad: BadRows) -> Any:
    """The index of a frame that was asked about, without the rows that were left out."""
    index = index_of(given)
    return index[list(places)] if index is not None and bad.policy == SKIP else index


def place_in_pairs(index: int) -> str:
    """The name in errors of a text in a flat list of pairs: "pair 3, text b"."""
    return f"pair {index // 2}, text {'ab'[index % 2]}"
