"""`likewise explain`: show which phrases of two texts match, which do not, and what each contributes to
the score.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from likewise.cli import options
from likewise.cli.answering import first_rows, texts_of
from likewise.cli.console import counting, note, out, quiet_libraries, written_json
from likewise.data.dialects import name_delimiter
from likewise.errors import DataError, UsageError
from likewise.files import is_there, refuse_endless, refuse_output_into_input
from likewise.outputs import check_output_file
from likewise.wording import counted, quoted

if TYPE_CHECKING:
    from likewise.data.rows import Row
    from likewise.explain.explainer import Explainer
    from likewise.explain.explanation import PairExplanation
    from likewise.phrases.linking import Asked

# A page with more pairs than anyone scrolls through is slow to open.
PAGE_LIMIT = 200
_LINES = (".jsonl", ".ndjson")

_Pair = TypeVar("_Pair")


@dataclass(frozen=True, slots=True)
class _Page:
    """Where to write a page, and whether it may replace an existing one."""

    path: Path
    replace: bool


class _Counted(Iterator[_Pair]):
    """Pairs that are read on demand, and how many there are in all."""

    def __init__(self, pairs: Iterable[_Pair]) -> None:
        self._pairs = iter(pairs)
        self._count = 0

    def __next__(self) -> _Pair:
        pair = next(self._pairs)
        self._count += 1
        return pair

    def total(self) -> int | None:
        """The number of pairs, after reading the rest; None if the rest holds a pair that cannot be read."""
        try:
            for _ in self:
                pass
        except DataError:
            return None
        return self._count


def explain(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT_A TEXT_B | FILE | -", help="Two texts, a file of pairs, or - for standard input."
        ),
    ] = None,
    model: options.Model = "default",
    relation: Annotated[
        str | None,
        typer.Option(
            "--relation", help="Relation whose score is explained. Defaults to the model's first relation."
        ),
    ] = None,
    phrases: Annotated[
        str,
        typer.Option(
            "--phrases", help="How to find phrases: auto, rules, spacy, or the name of a spaCy pipeline."
        ),
    ] = "auto",
    links: Annotated[
        Path | None,
        typer.Option(
            "--links", help="Explain with the links in this file (.jsonl) instead of computing them."
        ),
    ] = None,
    text_a: options.TextA = None,
    text_b: options.TextB = None,
    delimiter: options.Delimiter = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="File to write the phrase links of a file of pairs to (.jsonl or .jsonl.gz).",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="File to write a heat map to, as one HTML page.")
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
    device: options.Device = None,
    precision: options.Precision = "fp32",
) -> None:
    """Show which phrases of two texts match, which do not, and what each contributes to the score.

    Example: likewise explain "The old gardener watered the roses." "An elderly man gave water to the roses."

    Example: likewise explain pairs.tsv --output aligned.jsonl
    """
    texts = texts or []
    if delimiter is not None and len(texts) != 1:
        raise UsageError("--delimiter belongs to a file of pairs. Name the file, or leave it out.")
    name_delimiter(texts, delimiter)
    _check_call(texts, links, output, (text_a or text_b or "", relation or ""), html, as_json=as_json)
    for option, path in (("--output", output), ("--html", html)):
        if path is not None:
            read = [*texts, links, model]
            check_output_file(path, inputs=read, overwrite=overwrite, option=option)

    page = None if html is None else _Page(html, replace=overwrite)

    def load() -> Explainer:
        return _load(model, device, precision, relation, phrases)

    if links is not None:
        from likewise.data.links import read_links

        if not is_there(links):
            raise UsageError(f"--links {links}: there is no such file. Check the path.")
        refuse_endless(links)
        linked = _Counted(_peek(read_links(links), links))
        explainer = load()
        _tell(explainer.explain_linked(linked), linked, page, as_json=as_json)
    elif len(texts) == 2:
        from likewise.phrases.linking import Asked

        explainer = load()
        asked = _Counted([Asked(texts[0], texts[1])])
        _tell(explainer.explain(asked), asked, page, as_json=as_json, lines=False)
    else:
        pairs = _Counted(_rows(texts[0], (text_a, text_b), shown=output is None))
        explainer = load()
        if output is None:
            _tell(explainer.explain(pairs), pairs, page, as_json=as_json)
        else:
            _write(texts[0], explainer, pairs, output, replace=overwrite)


def _check_call(
    texts: list[str],
    links: Path | None,
    output: Path | None,
    named: tuple[str, str],
    html: Path | None,
    *,
    as_json: bool,
) -> None:
    """Refuse options that do not go together, before anything is loaded."""
    column, relation = named
    given = " ".join(texts)
    if links is not None and (texts or column or output):
        raise UsageError(
            "--links brings its own texts and links. Leave out the texts, --text-a, --text-b and --output."
        )
    if links is None and not texts:
        raise UsageError(
            "there is nothing to explain. Give two texts in quotes, a file of pairs, or --links FILE."
        )
    if len(texts) > 2:
        raise UsageError(
            f"found {len(texts)} arguments, expected two texts or one file. Put each text in quotes."
        )
    if output is not None and (html or as_json or relation):
        raise UsageError(
            "--output writes links and computes no scores. Leave out --html, --json and --relation."
        )
    if len(texts) == 2:
        _check_texts(texts, files_only=output is not None or bool(column))
    if output is not None:
        from likewise.data.compression import split_endings

        if split_endings(output)[0] not in _LINES:
            raise UsageError(
                f"--output {output}: links are written as JSON lines. Choose a name "
                "that ends in .jsonl or .jsonl.gz."
            )
    if any(0xD800 <= ord(char) <= 0xDFFF for char in given):
        raise UsageError("a text holds bytes that are not UTF-8. Give it in UTF-8.")


def _check_texts(texts: list[str], *, files_only: bool) -> None:
    if files_only:
        raise UsageError(
            "--output, --text-a and --text-b need a file of pairs, but two texts were given. Leave them out."
        )
    for text in texts:
        if not text.strip():
            raise UsageError("one of the two texts is empty. Give both, each in quotes.")
        if is_there(text) and Path(text).is_file():
            raise UsageError(f"{text!r} is a file. Give two texts in quotes, or one file alone.")


def _load(model: str, device: str | None, precision: str, relation: str | None, phrases: str) -> Explainer:
    quiet_libraries()
    from likewise.explain.explainer import Explainer
    from likewise.predict import load

    predictor = load(model, device=device, precision=precision)
    predictor.embedding().states("choose another --model")
    explainer = Explainer(predictor, relation=relation, phrases=phrases, tell=note)
    others = [r.name for r in predictor.relations if r.name != explainer.relation.name]
    if relation is None and others:
        note(f"explaining {explainer.relation.name} (to explain {' or '.join(others)}, use --relation)")
    return explainer


def _peek(found: Iterator[Any], links: Path) -> Iterator[Any]:
    """The same pairs. The first one is read now, so that a wrong file is refused before a model loads."""
    try:
        first = next(found)
    except StopIteration:
        raise UsageError(f"--links {links}: the file holds no pairs. Name a file with links.") from None
    return chain([first], found)


def _rows(name: str, columns: tuple[str | None, str | None], *, shown: bool) -> Iterator[Asked]:
    """The pairs of a file. Problems with its header are reported before a model loads."""
    from likewise.data import find_text_columns, open_table

    if name != "-" and not is_there(name) and (" " in name or "." not in name):
        raise UsageError(f"{quoted(name)} is not a file. For two texts, give both, each in quotes.")
    table = open_table(name)
    text_columns = find_text_columns(table.columns, *columns, source=table.name)
    note(f"{table.name}: reading texts from columns {text_columns[0]!r} and {text_columns[1]!r}")
    if shown and "links" in table.columns:
        note(f"{table.name} holds links, which are not used. To explain with them: --links {name}")
    first, rest = first_rows(table)
    return _asked(chain(first, rest), text_columns)


def _asked(rows: Iterable[Row], columns: tuple[str, str]) -> Iterator[Asked]:
    from likewise.phrases.linking import Asked

    for row in rows:
        [(a, b)] = texts_of([row], columns)
        named = row.fields.get("id")
        yield Asked(a, b, row.source, None if named in (None, "") else str(named))


def _tell(
    found: Iterator[PairExplanation],
    pairs: _Counted[Any],
    page: _Page | None,
    *,
    as_json: bool,
    lines: bool = True,
) -> None:
    """Write explanations as JSON (one per line for a file), as a page, or as text for the terminal."""
    kept: list[PairExplanation] = []
    more = False
    if lines:
        refuse_output_into_input()
    for one in found:
        if page is not None:
            more = len(kept) == PAGE_LIMIT
            if not more:
                kept.append(one)
            elif not as_json:
                break
        if as_json:
            layout = None if lines else 2
            sys.stdout.write(written_json(json.dumps(one.to_dict()), indent=layout) + "\n")
        elif page is None:
            _show(one)
    if page is not None:
        _write_page(page, kept, part=_part(len(kept), pairs.total()) if more else "")


def _show(found: PairExplanation) -> None:
    from likewise.cli.explain_view import show

    show(out, found)
    out.print()


def _part(shown: int, total: int | None) -> str:
    return f"the first {shown:,} pairs" if total is None else f"the first {shown:,} of {total:,} pairs"


def _write_page(page: _Page, kept: list[PairExplanation], *, part: str) -> None:
    """Write the page. If it holds only some of the pairs, both the page and the terminal say so."""
    from likewise.disk import write_text_aside
    from likewise.explain.page import explanation_page

    above = f"This page shows {part}. Run likewise explain with --json to get all of them." if part else ""
    write_text_aside(page.path, explanation_page(kept, note=above), replace=page.replace)
    pairs = counted(len(kept), "pair")
    rest = f" (only {part}; --json gives all of them)" if part else ""
    note(f"{pairs} explained: {page.path}{rest}")


def _write(name: str, explainer: Explainer, pairs: Iterable[Asked], output: Path, *, replace: bool) -> None:
    from likewise.data import count_rows
    from likewise.data.links import write_links

    phraser = explainer.phraser  # loaded, and told about, before the bar begins
    with counting("aligning", "pairs", count_rows(name)) as advance:
        count = write_links(output, _advancing(explainer.align(pairs), advance), replace=replace)
    note(f"{counted(count, 'pair')} aligned: {output} (phrases by {phraser.name})")


def _advancing(found: Iterator[Any], advance: Any) -> Iterator[Any]:
    for one in found:
        yield one
        advance(1)
