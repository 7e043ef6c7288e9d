"""Stage kind `inject`, phrase injection: train an encoder on phrase alignments of paraphrases.

    paraphrases → phrases and links → tokens → training → accuracy on held-out pairs

Links are cached on disk beside vectors. Another run with the same pairs and aligner reads them from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.data.filecache import FileCache, content_key
from likewise.data.links import LinkedPair, read_links, write_links
from likewise.data.paraphrases import read_paraphrases
from likewise.data.splits import FEWEST_TO_SPLIT, split_rows
from likewise.encoders.cache import identify
from likewise.encoders.resolve import resolve
from likewise.encoders.sentence import load_encoder
from likewise.errors import DataError
from likewise.kinds.base import (
    Carried,
    Job,
    Place,
    Plan,
    Runner,
    Shared,
    StageData,
    by_seed,
    run_options,
    stage_report,
)
from likewise.kinds.building import start_digests
from likewise.kinds.context import RunContext
from likewise.kinds.inject_steps import PhraseRows, fitting, phrase_accuracy, phrase_batches
from likewise.kinds.leaks import SideFilter
from likewise.kinds.reading import records_print, texts_print
from likewise.methods.paraphrase import InjectionModel
from likewise.phrases.joined import Joiner
from likewise.phrases.parsing import pipeline_print
from likewise.records import Record
from likewise.schema.inject import InjectStage
from likewise.training.state import FitEvent
from likewise.versions import versions
from likewise.wording import counted

if TYPE_CHECKING:
    from likewise.training.sampler import Batches, Share

# Links that were found before, by the pairs, the aligner and what finds phrases.
_LINKS = FileCache("alignments", ".jsonl.gz")


class InjectRunner(Runner[InjectStage]):
    """Runs the single stage of a phrase injection recipe."""

    def read(self, job: Job[InjectStage], shared: Shared) -> StageData:
        """Read paraphrases and drop those that have a side in an evaluation set."""
        stage, context = job.stage, job.context
        leaks = SideFilter.of(stage, context.data_dir)
        found: list[LinkedPair] = []
        notes: list[str] = []
        for spec in stage.data:
            pairs = read_paraphrases(
                context.tables.get(spec.source, spec.source),
                text_a=spec.text_a,
                text_b=spec.text_b,
                only=spec.only or None,
                limit=spec.limit,
                data_dir=context.data_dir,
                tell=context.tell,
            )
            found += leaks.paraphrases(spec.source, pairs, notes)
        if not found:
            raise DataError("no paraphrases are left. Check the files and what the leak filter dropped.")
        texts = [(one.text_a, one.text_b) for one in found]
        prints = {"train": records_print([]), "paraphrases": texts_print(texts)}
        if not all(pair.aligned for pair in found):
            prints |= {"aligner": _aligner_print(stage.aligner), "phrases": pipeline_print(stage.phraser)}
        return StageData(tuple(found), (), notes, prints, lambda: _texts(found))

    def start(self, job: Job[InjectStage], data: StageData, former: Carried) -> Carried:
        """The encoder with its injection heads; raises an error for too few pairs before any is aligned."""
        stage, count = job.stage, len(data.rows)
        _enough(round(count * stage.held_out), count, stage.held_out)
        with by_seed(job):
            model = InjectionModel(
                former.encoder(),
                learns=stage.learns,
                features=stage.features,
                two_tower=stage.two_tower,
                dropout=stage.dropout,
                max_length=stage.max_length,
            )
        return Carried(stage.gives, lambda: model.encoder, lambda: model)

    def plan(self, job: Job[InjectStage], data: StageData, carried: Carried) -> Plan:
        """Paraphrases, what is learnt, and the approximate number of steps."""
        stage, pairs = job.stage, data.rows
        linked = sum(bool(pair.links) for pair in pairs)
        form = "each text read alone (two towers)" if stage.two_tower else "both texts read as one input"
        learns = "sentences and phrases" if stage.learns == "both" else stage.learns
        shown = len(pairs) * (1 - stage.held_out) * (2 if _model(carried).draws_random else 1)
        an_epoch = math.ceil(shown / stage.batch_size / stage.accumulation)
        steps = stage.max_steps or math.ceil(an_epoch * stage.epochs)
        return Plan(
            f"{counted(len(pairs), 'paraphrase')}, {linked:,} of them with links",
            f"learns {learns} from {stage.features} features, {form}; "
            f"dev set: {stage.dev_share:.0%} of the pairs, test set: {stage.test_share:.0%}",
            f"at most {counted(steps, 'step')} (about {an_epoch:,} per epoch), "
            f"batch size {stage.batch_size}, {stage.optimiser} with learning rate {stage.learning_rate:g}",
            data.notes,
        )

    def fit(self, job: Job[InjectStage], data: StageData, carried: Carried, place: Place) -> dict[str, Any]:
        """Align the pairs that have no links, train, and measure accuracy on held-out pairs."""
        from likewise.training.fit import fit

        stage, context, model = job.stage, job.context, _model(carried)
        pairs = data.rows if stage.learns == "sentences" else _linked(stage, data.rows, context)
        joiner = Joiner(model.encoder.tokenizer)
        rows = _rows(job, pairs, joiner, model.max_length)

        def accuracy(part: PhraseRows) -> dict[str, float]:
            return phrase_accuracy(
                model, part, joiner, batch_size=stage.batch_size, precision=context.precision
            )

        options = run_options(job, place)
        options["evaluate"] = lambda _: accuracy(rows["dev"])

        def prepare(share: Share) -> Batches:
            return phrase_batches(model, rows["train"], options["settings"], share)

        report = fit(model, prepare, **options)
        measured = accuracy(rows["test"]) if rows["test"] else {}
        held_out = {name: value for name, value in measured.items() if name != "score"}
        for name, value in held_out.items():
            context.tell(f"  held-out accuracy, {name}: {100 * value:.1f} %")
        counts = {name: len(part) for name, part in rows.items()}
        by = sorted({pair.by for pair in pairs if pair.by})
        return stage_report(job, report, data, held_out=held_out, pairs_of=counts, aligned_by=by)


def _model(carried: Carried) -> InjectionModel:
    model: InjectionModel = carried.model()  # type: ignore[assignment]
    return model


def _texts(pairs: Sequence[LinkedPair]) -> Iterator[str]:
    for pair in pairs:
        yield from (pair.text_a, pair.text_b)


def _rows(
    job: Job[InjectStage], pairs: Sequence[LinkedPair], joiner: Joiner, longest: int
) -> dict[str, PhraseRows]:
    """Train, dev and test sets as tokens; no text is in two of them unless shared texts connect all pairs."""
    stage, tell = job.stage, job.context.tell
    parts = _split(pairs, stage, job.recipe.seed, tell)
    rows, dropped = {}, 0
    for name, part in parts.items():
        pieces = joiner.pairs(part)
        short = fitting(pieces, joiner, longest)
        dropped += len(pieces) - len(short)
        rows[name] = PhraseRows(short, job.recipe.seed, stage.negatives)
    if dropped:
        tell(f"  left out {counted(dropped, 'pair')} of more than {longest} tokens")
    links = sum(len(pair.links) for pair in rows["train"].pairs)
    tell(f"  {counted(len(rows['train']), 'training pair')} with {counted(links, 'phrase link')}")
    if not all(rows[name].pairs for name in ("train", "dev")):
        capped = longest < stage.max_length
        remedy = "Choose an encoder that reads longer inputs." if capped else "Raise stage.0.max_length."
        raise DataError(f"too few pairs have {longest} tokens or fewer. {remedy}")
    if stage.learns != "sentences" and not links:
        raise DataError("no pair has a phrase link, so no phrases can be learnt. Check phraser and aligner.")
    return rows


def _split(
    pairs: Sequence[LinkedPair], stage: InjectStage, seed: int, tell: Callable[[str], None]
) -> dict[str, list[LinkedPair]]:
    """Pairs to learn from, to select by and to measure on."""
    records = [Record((pair.text_a, pair.text_b), {}, pair.source) for pair in pairs]
    held, apart = split_rows(records, stage.held_out, seed)
    _enough(len(held), len(pairs), stage.held_out)
    if not apart:
        tell(
            "  the dev set was split off at random: shared texts connect the pairs, so it may share texts "
            "with the training pairs"
        )
    rows = sorted(held)
    share = stage.test_share / stage.held_out
    test = split_rows([records[row] for row in rows], share, seed)[0] if share else set()
    return {
        "train": [pairs[row] for row in range(len(pairs)) if row not in held],
        "dev": [pairs[row] for place, row in enumerate(rows) if place not in test],
        "test": [pairs[row] for place, row in enumerate(rows) if place in test],
    }


def _aligner_print(name: str) -> str:
    """A hash of the aligning encoder's files; an encoder on the hub is known by its name in the recipe."""
    return content_key(start_digests(Path(resolve(name))), length=16)


def _enough(held: int, pairs: int, share: float) -> None:
    """Raise an error if the held-out pairs are too few to select by."""
    if held < FEWEST_TO_SPLIT:
        needed = math.ceil(FEWEST_TO_SPLIT / share)
        raise DataError(
            f"{pairs} paraphrases leave only {held} for the dev and test sets, but {FEWEST_TO_SPLIT} are "
            f"needed. Use at least {needed} paraphrases, or raise stage.0.dev_share and stage.0.test_share."
        )


def _linked(stage: InjectStage, pairs: Sequence[LinkedPair], context: RunContext) -> Sequence[LinkedPair]:
    """The pairs with their links: as they were read, from the cache, or aligned now."""
    if all(pair.aligned for pair in pairs):
        return pairs
    from likewise.phrases.aligner import Aligner
    from likewise.phrases.linking import link_pairs
    from likewise.phrases.parsing import phraser

    encoder = load_encoder(stage.aligner, device=context.device)
    spans = phraser(stage.phraser, context.tell)
    key = _key(pairs, identify(encoder).fingerprint, f"{spans.name} {pipeline_print(stage.phraser)}")
    kept = _kept_links(key, len(pairs), context)
    if kept is not None:
        return kept
    by = f"likewise {versions()['likewise']}, {stage.aligner}"
    context.tell(f"  aligning {len(pairs):,} pairs with {stage.aligner}; {spans.name} finds the phrases")
    done = 0

    def progress(count: int) -> None:
        nonlocal done
        done += count
        context.emit(FitEvent("align", done, len(pairs)))

    found = list(link_pairs(pairs, spans, Aligner(encoder), by=by, progress=progress))
    _LINKS.write(key, partial(_write_links, found), optional=True)
    return found


def _kept_links(key: str, count: int, context: RunContext) -> list[LinkedPair] | None:
    """Links from the cache; None if there are none, or if their file is damaged."""
    file = _LINKS.find(key)
    if file is None:
        return None
    try:
        found = list(read_links(file))
    except (DataError, OSError, EOFError) as error:
        context.tell(f"  {file} cannot be read ({error}), so the pairs are aligned again")
        return None
    if len(found) != count:
        context.tell(f"  {file} holds only {len(found):,} of {count:,} pairs, so they are aligned again")
        return None
    return found


def _write_links(pairs: Sequence[LinkedPair], path: Path) -> None:
    write_links(path, pairs)


def _key(pairs: Sequence[LinkedPair], encoder: str, spans: str) -> str:
    from likewise.phrases.scoring import shipped

    texts = [
        [p.text_a, p.text_b, [list(p.words_a), [(link.a, link.b) for link in p.links]] if p.words_a else []]
        for p in pairs
    ]
    return content_key(encoder, spans, repr(shipped()), texts)
