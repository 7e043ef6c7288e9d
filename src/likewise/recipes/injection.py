"""A stage that teaches phrases: paraphrases → spans and links → pieces → fit → held-out accuracy.

Links are kept on disk beside vectors: another run over the same pairs and aligner reads them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from likewise.data.links import LinkedPair, read_links, write_links
from likewise.data.paraphrases import read_paraphrases, without_texts
from likewise.data.splits import FEWEST_TO_SPLIT, split_rows
from likewise.encoders.cache import default_folder, identify
from likewise.encoders.sentence import load_encoder
from likewise.errors import DataError
from likewise.methods.injection import InjectionModel
from likewise.phrases.joined import Joiner
from likewise.recipes.leakfilter import side_keys, sides_line
from likewise.recipes.runfiles import Place, stage_report
from likewise.recipes.schema import Recipe
from likewise.recipes.schema_stages import InjectStageSpec
from likewise.recipes.stages import StageData
from likewise.records import Record
from likewise.training.injection_steps import PhraseRows, fitting, phrase_accuracy
from likewise.training.state import FitEvent
from likewise.versions import versions
from likewise.wording import counted

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.recipes.context import RunContext


def load_paraphrases(
    stage: InjectStageSpec,
    *,
    data_dir: Path | str | None,
    tables: Mapping[str, object] | None = None,
    tell: Callable[[str], None],
) -> tuple[list[LinkedPair], list[str]]:
    """A stage's paraphrases without those that have a side in an evaluation set, and what was left out."""
    given = tables or {}
    keys = side_keys(stage.filter_against, data_dir=data_dir)
    found: list[LinkedPair] = []
    lines = []
    for spec in stage.data:
        pairs = read_paraphrases(
            given.get(spec.source, spec.source),
            text_a=spec.text_a,
            text_b=spec.text_b,
            only=spec.only or None,
            limit=spec.limit,
            data_dir=data_dir,
            tell=tell,
        )
        kept = without_texts(pairs, keys) if keys and not stage.allow_leak else pairs
        if keys:
            total = len(pairs)
            lines.append(sides_line(spec.source, kept=len(kept), total=total, against=stage.filter_against))
        found += kept
    if not found:
        raise DataError("no paraphrase is left: check the files and the leak filter's report")
    return found, lines


def start_injection(
    recipe: Recipe, stage: InjectStageSpec, encoder: SentenceTransformer, data: StageData
) -> InjectionModel:
    """The model before its first step; what cannot be taught is refused before anything is aligned."""
    _enough(round(len(data.paraphrases) * _held_out(stage)), len(data.paraphrases), _held_out(stage))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return InjectionModel(
            encoder,
            learns=stage.learns,
            features=stage.features,
            two_tower=stage.two_tower,
            dropout=stage.dropout,
            max_length=stage.max_length,
        )


def injection_plan_lines(
    number: int, stage: InjectStageSpec, model: InjectionModel, data: StageData
) -> list[str]:
    """What the stage will do, said before it does it."""
    linked = sum(bool(pair.links) for pair in data.paraphrases)
    form = "two towers" if stage.two_tower else "jointly encoded"
    shown = len(data.paraphrases) * (1 - _held_out(stage)) * (2 if model.draws_random else 1)
    an_epoch = math.ceil(shown / stage.batch_size / stage.accumulation)
    steps = stage.max_steps or math.ceil(an_epoch * stage.epochs)
    return [
        f"stage {number} {stage.name}".rstrip()
        + f": {counted(len(data.paraphrases), 'paraphrase')}, {linked:,} of them with links",
        f"  teaches {stage.learns} by {stage.features} features, {form}; "
        f"{stage.dev_share:.0%} dev, {stage.test_share:.0%} measured at the end",
        f"  at most {counted(steps, 'step')}, about {an_epoch:,} an epoch, batch {stage.batch_size}, "
        f"{stage.optimiser} at {stage.learning_rate:g}",
        *(f"  {line}" for line in data.leakage),
    ]


def run_injection(
    recipe: Recipe,
    stage: InjectStageSpec,
    encoder: SentenceTransformer,
    data: StageData,
    place: Place,
    context: RunContext,
) -> tuple[InjectionModel, list[dict[str, Any]]]:
    """Align what has no links, teach, measure on pairs that were held out."""
    from likewise.training.fit import fit

    model = start_injection(recipe, stage, encoder, data)
    for line in injection_plan_lines(0, stage, model, data):
        context.tell(line)
    pairs = data.paraphrases if stage.learns == "sentences" else _linked(stage, data.paraphrases, context)
    joiner = Joiner(encoder.tokenizer)
    rows = _rows(recipe, stage, pairs, joiner, model.max_length, context)

    def accuracy(part: PhraseRows) -> dict[str, float]:
        return phrase_accuracy(model, part, joiner, batch_size=stage.batch_size, precision=context.precision)

    report = fit(
        model,
        rows["train"],
        settings=context.settings(recipe, stage),
        evaluate=lambda _: accuracy(rows["dev"]),
        metric="score",
        emit=context.emit,
        resumable=place.resumable,
        **place.options(0),
    )
    held_out = (
        {name: value for name, value in accuracy(rows["test"]).items() if name != "score"}
        if rows["test"]
        else {}
    )
    for name, value in held_out.items():
        context.tell(f"  held out, {name}: {100 * value:.1f} % right")
    counts = {name: len(part) for name, part in rows.items()}
    about = {"held_out": held_out, "pairs_of": counts, "aligned_by": _aligned_by(pairs)}
    return model, [{**stage_report(stage.name or "stage 0", report, data), **about}]


def _aligned_by(pairs: Sequence[LinkedPair]) -> list[str]:
    return sorted({pair.by for pair in pairs if pair.by})


def _rows(
    recipe: Recipe,
    stage: InjectStageSpec,
    pairs: Sequence[LinkedPair],
    joiner: Joiner,
    longest: int,
    context: RunContext,
) -> dict[str, PhraseRows]:
    """Train, dev and test as pieces; no text stands in two of them, unless all hang together."""
    parts = _split(pairs, stage, recipe.seed, context.tell)
    rows, dropped = {}, 0
    for name, part in parts.items():
        pieces = joiner.pairs(part)
        short = fitting(pieces, joiner, longest)
        dropped += len(pieces) - len(short)
        rows[name] = PhraseRows(short, recipe.seed, stage.negatives)
    if dropped:
        context.tell(f"  {counted(dropped, 'pair')} of more than {longest} pieces left out")
    links = sum(len(pair.links) for pair in rows["train"].pairs)
    context.tell(f"  {counted(len(rows['train']), 'training pair')} with {counted(links, 'link')} of phrases")
    if not all(rows[name].pairs for name in ("train", "dev")):
        remedy = (
            "choose an encoder that reads more" if longest < stage.max_length else "raise stage.0.max_length"
        )
        raise DataError(f"too few pairs have {longest} pieces or fewer: {remedy}")
    if stage.learns != "sentences" and not links:
        raise DataError("no pair has a link: there are no phrases to teach; check spans and aligner")
    return rows


def _split(
    pairs: Sequence[LinkedPair], stage: InjectStageSpec, seed: int, tell: Callable[[str], None]
) -> dict[str, list[LinkedPair]]:
    """Pairs to learn from, to select by and to measure on."""
    held_out = _held_out(stage)
    records = [Record((pair.text_a, pair.text_b), {}, pair.source) for pair in pairs]
    held, apart = split_rows(records, held_out, seed)
    _enough(len(held), len(pairs), held_out)
    if not apart:
        tell("  dev was split off at random: the pairs hang together through shared texts")
    rows = sorted(held)
    share = stage.test_share / held_out
    test = split_rows([records[row] for row in rows], share, seed)[0] if share else set()
    return {
        "train": [pairs[row] for row in range(len(pairs)) if row not in held],
        "dev": [pairs[row] for place, row in enumerate(rows) if place not in test],
        "test": [pairs[row] for place, row in enumerate(rows) if place in test],
    }


def _held_out(stage: InjectStageSpec) -> float:
    return stage.dev_share + stage.test_share


def _enough(held: int, pairs: int, share: float) -> None:
    """Refuse to select by a handful of pairs."""
    if held < FEWEST_TO_SPLIT:
        found = f"{pairs} paraphrases leave {held} to hold out, fewer than {FEWEST_TO_SPLIT}"
        needed = math.ceil(FEWEST_TO_SPLIT / share)
        raise DataError(f"{found}; give {needed}, or raise stage.0.dev_share and stage.0.test_share")


def _linked(stage: InjectStageSpec, pairs: Sequence[LinkedPair], context: RunContext) -> Sequence[LinkedPair]:
    """The pairs with their links: as they came, as they were kept, or aligned now."""
    if all(pair.aligned for pair in pairs):
        return pairs
    from likewise.phrases.aligner import Aligner
    from likewise.phrases.linking import link_pairs
    from likewise.phrases.parsing import phraser

    encoder = load_encoder(stage.aligner, device=context.device)
    spans = phraser(stage.phraser, context.tell)
    file = (
        default_folder() / "alignments" / f"{_key(pairs, identify(encoder).fingerprint, spans.name)}.jsonl.gz"
    )
    if file.is_file():
        return list(read_links(file))
    by = f"likewise {versions()['likewise']}, {stage.aligner}"
    context.tell(f"  aligning {len(pairs):,} pairs by {stage.aligner}, spans by {spans.name}")
    done = 0

    def progress(count: int) -> None:
        nonlocal done
        done += count
        context.emit(FitEvent("align", done, len(pairs)))

    found = list(link_pairs(pairs, spans, Aligner(encoder), by=by, progress=progress))
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_links(file, found)
    return found


def _key(pairs: Sequence[LinkedPair], encoder: str, spans: str) -> str:
    from likewise.phrases.scoring import shipped

    digest = hashlib.sha256(json.dumps([encoder, spans, repr(shipped())]).encode())
    for pair in pairs:
        given = [list(pair.words_a), [(link.a, link.b) for link in pair.links]] if pair.words_a else []
        digest.update(json.dumps([pair.text_a, pair.text_b, given]).encode())
    return digest.hexdigest()[:24]
