"""`likewise data`: list and get the named corpora; check, split and import files; choose pairs to rate."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from likewise.cli import data_import, data_next, options
from likewise.cli.completion import corpora, offering
from likewise.cli.console import PrintableConsole, out
from likewise.cli.data_get import columns_of, get_corpora, show_corpus, source_json, source_words, trial_words
from likewise.data.catalogue import Corpus, corpus_names, find_corpus
from likewise.data.checking import check
from likewise.data.corpora import locate
from likewise.data.dialects import name_delimiter
from likewise.data.findings import CheckReport, Summary
from likewise.data.reading import name_splits
from likewise.data.sources.listing import corpus_sources, unobtainable
from likewise.data.splits import split_file
from likewise.data.values import MAX_CHARS
from likewise.disk import to_json
from likewise.records import Relation
from likewise.wording import counted

app = typer.Typer(
    help="List or get corpora; check, split or import a file; choose pairs to rate.", no_args_is_help=True
)
app.command("get")(get_corpora)
app.command("import")(data_import.import_export)
app.command("next")(data_next.next_to_rate)

_FEW = 6

CorporaDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder that holds the named corpora. Defaults to LIKEWISE_DATA."),
]


@app.command("list")
def list_corpora(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME…]", help="Corpora to show in detail. All of them if left out."),
    ] = None,
    data_dir: CorporaDir = None,
    as_json: options.Json = False,
) -> None:
    """List the named corpora with their relations, scales, splits, rows, licences and sources.

    The column "here" says whether a corpus is in the data folder, and if not, how `likewise data get` can
    get it. Corpora of translations and of paraphrases, which have no ratings, follow in tables of their own.
    For corpora that you name, everything is shown: columns, addresses and terms too.

    Example: likewise data list --data-dir corpora
    """
    corpora = [find_corpus(name) for name in names or corpus_names()]
    if as_json:
        out.print_json(to_json([_describe(corpus, data_dir) for corpus in corpora]))
        return
    if names:
        for corpus in corpora:
            show_corpus(corpus, _here(corpus, data_dir))
        return
    console = PrintableConsole(highlight=False, markup=False, emoji=False)
    console.print(_table("relations", [c for c in corpora if c.kind == "rated"], _relations, data_dir))
    console.print("\nParallel text: sentences and their translations")
    console.print(_table("languages", [c for c in corpora if c.kind == "translations"], _languages, data_dir))
    console.print("\nParaphrases: texts with the same meaning; the first is paired with each of the others")
    console.print(_table("texts", [c for c in corpora if c.kind == "paraphrases"], _texts, data_dir))
    console.print(f"\n{trial_words()} `likewise data list NAME` shows addresses, terms and columns.")


@app.command("check")
def check_source(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A file, - for standard input, or a corpus such as stsb/dev.",
            autocompletion=offering(corpora),
        ),
    ],
    relation: Annotated[
        list[str] | None,
        typer.Option(
            "--relation",
            help="Relation: NAME:lo..hi, NAME:classes, NAME:a|b or NAME:low<high. Can be repeated.",
        ),
    ] = None,
    text_a: options.TextA = None,
    text_b: options.TextB = None,
    delimiter: options.Delimiter = None,
    max_chars: Annotated[
        int, typer.Option("--max-chars", min=1, help="Maximum number of characters in a text.")
    ] = MAX_CHARS,
    strict: Annotated[bool, typer.Option("--strict", help="Count conflicting ratings as problems.")] = False,
    data_dir: CorporaDir = None,
    as_json: options.Json = False,
) -> None:
    """Check a file and report all its problems at once. The exit code is 1 if there are any.

    Example: likewise data check pairs.csv --relation similarity:0..5
    """
    name_delimiter([file], delimiter)
    reports = [
        check(
            source,
            relations=relation or (),
            text_a=text_a,
            text_b=text_b,
            data_dir=data_dir,
            max_chars=max_chars,
            strict=strict,
        )
        for source in name_splits(file)
    ]
    ok = all(report.ok for report in reports)
    if as_json:
        out.print_json(to_json({"ok": ok, "reports": [report.to_dict() for report in reports]}))
    else:
        for report in reports:
            _show(report)
    if not ok:
        raise typer.Exit(1)


@app.command("split")
def split_source(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of rated pairs or single texts.")],
    output: Annotated[
        Path, typer.Option("--output", help="Folder to write the train, dev and test files to.")
    ],
    test: Annotated[float, typer.Option("--test", help="Share of the rows for the test set.")] = 0.2,
    dev: Annotated[
        float,
        typer.Option("--dev", help="Share of the rows for the dev set. With 0, no dev file is written."),
    ] = 0.0,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Random seed. Another seed gives another split.")
    ] = 1,
    text_a: options.TextA = None,
    text_b: options.TextB = None,
    delimiter: options.Delimiter = None,
    overwrite: options.Overwrite = False,
    safe_csv: options.SafeCsv = False,
    as_json: options.Json = False,
) -> None:
    """Split a file into train, dev and test sets so that no text is in two of them.

    Example: likewise data split ratings.csv --test 0.2 --output ratings
    """
    name_delimiter([file], delimiter)
    parts = split_file(
        file,
        output,
        test=test,
        dev=dev,
        seed=seed,
        text_a=text_a,
        text_b=text_b,
        safe=safe_csv,
        overwrite=overwrite,
    )
    if as_json:
        found = {
            n: {"file": p.file, "rows": p.rows, "apart": p.apart, "texts": p.texts} for n, p in parts.items()
        }
        out.print_json(to_json(found))
        return
    for part in parts.values():
        out.print(f"{part.file}: {counted(part.rows, 'row')}", markup=False)
    texts = parts["train"].texts
    if len(texts) == 1:
        named = "If the rows are pairs, name both columns: --text-a NAME --text-b NAME"
        out.print(f"{_texts_in(texts)}. {named}", markup=False)
    if not all(part.apart for part in parts.values()):
        out.print(
            "note: shared texts connect most rows, so the rows were split at random. Some texts "
            "are in both the test file and the train file. Run likewise audit to see which pairs "
            "are in both."
        )


def _table(
    title: str, corpora: Sequence[Corpus], content: Callable[[Corpus], str], data_dir: Path | None
) -> Table:
    table = Table(Column("name", no_wrap=True), title, "splits", "licence", "here", box=None, pad_edge=False)
    for corpus in corpora:
        here = _here(corpus, data_dir)
        table.add_row(
            corpus.name,
            content(corpus),
            _splits(corpus),
            corpus.licence,
            "yes" if all(here.values()) else "in part" if any(here.values()) else _elsewhere(corpus),
        )
    return table


def _here(corpus: Corpus, data_dir: Path | None) -> dict[str, bool]:
    return {split.name: locate(corpus, split, data_dir) is not None for split in corpus.splits.values()}


def _relations(corpus: Corpus) -> str:
    return "\n".join(_scale(relation) for relation in corpus.relations)


def _languages(corpus: Corpus) -> str:
    return f"{' '.join(corpus.languages)}, in {counted(len(corpus.language_pairs), 'pair')}"


def _texts(corpus: Corpus) -> str:
    return "\n".join(corpus.texts)


def _scale(relation: Relation) -> str:
    many = len(relation.labels) > _FEW
    return f"{relation.name} {f'{len(relation.labels)} labels' if many else relation.scale}"


def _splits(corpus: Corpus) -> str:
    splits = corpus.splits.values()
    if corpus.kind == "translations":
        counted = {part: sum(split.rows for split in splits if split.part == part) for part in corpus.parts}
        return "\n".join(f"XX-YY_{part} {rows:,}" for part, rows in counted.items())
    if len(splits) > _FEW:
        crossed = "\nand any XX-YY_SPLIT" if corpus.translated else ""
        return f"{len(splits)} splits {sum(split.rows for split in splits):,}{crossed}"
    return "\n".join(f"{split.name} {split.rows:,}" for split in splits)


def _elsewhere(corpus: Corpus) -> str:
    return f"no; {source_words(corpus)}" if corpus.hub is None else "no; on the hub"


def _describe(corpus: Corpus, data_dir: Path | None) -> dict[str, object]:
    here = _here(corpus, data_dir)
    return {
        "name": corpus.name,
        "kind": corpus.kind,
        "title": corpus.title,
        "licence": corpus.licence,
        "citation": corpus.citation,
        "hub": corpus.hub.id if corpus.hub is not None else None,
        "languages": list(corpus.languages),
        "crossed": "XX-YY_SPLIT" if corpus.translated else None,
        "relations": [relation.to_dict() for relation in corpus.relations],
        "splits": [
            {
                "name": split.name,
                "language": split.language,
                "rows": split.rows,
                "file": split.file,
                "columns": list(columns_of(corpus, split)),
                "here": here[split.name],
            }
            for split in corpus.splits.values()
        ],
        "sources": [source_json(source) for source in corpus_sources(corpus)],
        "unobtainable": list(unobtainable(corpus)),
    }


def _show(report: CheckReport) -> None:
    console = partial(out.print, markup=False)
    console(_headline(report))
    for summary in report.relations:
        console(f"  {_describe_relation(summary)}")
    for kind, count in report.counts.items():
        shown = [finding for finding in report.findings if finding.kind == kind]
        part = f", the first {len(shown)} shown" if len(shown) < count else ""
        severity = report.severity(kind)
        console(
            f"{severity}: {kind} ({count:,}{part})", style="bold red" if severity == "problem" else "yellow"
        )
        for finding in shown:
            console(f"  {finding.problem}")
    console(f"{counted(report.problems, 'problem')}, {counted(report.warnings, 'warning')}")


def _headline(report: CheckReport) -> str:
    lengths = report.length_range
    sizes = "" if lengths is None else f", {lengths[0]:,} to {lengths[2]:,} characters, median {lengths[1]:,}"
    texts = f", {_texts_in(report.texts)}" if report.texts else ""
    return f"{report.name}: {counted(report.rows, 'row')}{texts}{sizes}"


def _texts_in(columns: Sequence[str]) -> str:
    """Which columns hold the texts of a table."""
    return (
        f"single texts in column {columns[0]}"
        if len(columns) == 1
        else f"texts in columns {' and '.join(columns)}"
    )


def _describe_relation(summary: Summary) -> str:
    relation = summary.relation
    parts = [f"{relation.name} {relation.scale}", f"{summary.rated:,} rated"]
    if summary.missing:
        parts.append(f"{summary.missing:,} missing")
    if summary.mean is not None:
        parts.append(f"{summary.lo:g} to {summary.hi:g}, mean {summary.mean:.3g}")
    parts += [f"{label} {count:,}" for label, count in sorted(summary.labels.items())]
    if summary.inferred:
        form = shlex.quote(f"{relation.name}:{'a|b' if relation.labels else 'lo..hi'}")
        if not relation.labels:
            form += f", or as labels --relation {shlex.quote(f'{relation.name}:classes')}"
        parts.append(f"scale inferred (to declare another one: --relation {form})")
    return ", ".join(parts)
