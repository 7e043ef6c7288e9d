"""Export a trained model as a delta folder: the change of its encoder's weights, cut to a low rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from likewise.data import open_table
from likewise.encoders.delta import (
    SETTINGS,
    TENSORS,
    Base,
    JoinedEncoder,
    add_change,
    open_base,
    with_settings,
)
from likewise.encoders.lowrank import network_of, network_tensors
from likewise.encoders.opening import open_settings
from likewise.encoders.resolve import BASE_NAME, base_folders, base_name, how_to_get, local_folder
from likewise.encoders.vectors import encode_texts
from likewise.errors import UsageError
from likewise.outputs import check_model_folder
from likewise.predict import Answerer, load
from likewise.recipes.run import Target
from likewise.spelling import spelt
from likewise.store.delta import StoredChange, check_storage, reduce_folder, store_change
from likewise.store.saving import save_model, training_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

DELTA = "delta"
# Of a vector's length: sums of floats in another order differ by less.
_SAME_VECTOR = 1e-3
_SAMPLE_PAIRS = 32
_MOST_TOKENS = 2**20


@dataclass(frozen=True, slots=True)
class ExportReport:
    """A delta folder that was written.

    `kept` is the share of the change that it keeps: the Frobenius norm of the change that is read from it,
    divided by the norm of the whole change. `difference` is the largest difference of a vector from that of
    the whole model, divided by the vector's length, over `texts` bundled texts.
    """

    output: Path
    base: str
    rank: int
    storage: str
    bytes: int
    kept: float
    difference: float
    texts: int


@dataclass
class _Export:
    """An export under way: what is known before the folder is reduced, and what is measured on the way."""

    encoder: SentenceTransformer
    base: JoinedEncoder
    entry: Base
    probes: Sequence[str]
    change: StoredChange = field(init=False)
    difference: float = field(init=False)

    def reduce(self, folder: Path) -> Mapping[str, Any]:
        """Reduce a complete model folder to its change, and measure what that loses."""
        own, network = network_of(self.encoder, "the model"), network_of(self.base.encoder, self.base.source)
        before, after = network_tensors(network), network_tensors(own)
        self.change = store_change(before, after, rank=self.entry.rank, storage=self.entry.storage)
        reduce_folder(folder, self.change)
        place = folder / SETTINGS
        joined = with_settings(self.base.encoder, place, open_settings(place), self.entry, device="cpu")
        expected = encode_texts(self.encoder, self.probes)
        add_change(network, folder / TENSORS, self.entry)
        self.difference = _largest_difference(expected, encode_texts(joined, self.probes))
        network.load_state_dict(after, strict=False)
        if not _largest_difference(expected, encode_texts(joined, self.probes)) < _SAME_VECTOR:
            raise UsageError(
                f"the base {self.entry.name} reads texts differently from the model (another tokenizer, or "
                "other settings), so the model is no change of its weights. Name the encoder that it was "
                f"trained from ({spelt('base')})."
            )
        return {"base": self.entry.to_dict()}


def export_delta(
    model: str | Path,
    output: str | Path,
    *,
    base: str | None = None,
    rank: int = 32,
    storage: str = "float16",
    overwrite: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> ExportReport:
    """Write a trained model as a delta on its base. The model's folder stays as it is."""
    check_storage(rank, storage)
    target = Target.of(Path(output), overwrite)
    check_model_folder(target.folder, inputs=[model, base], overwrite=overwrite)
    answerer = load(model, device="cpu")
    encoder = _encoder_of(answerer, model)
    start = base or _trained_from(answerer, model)
    name = base_name(start)
    if BASE_NAME.fullmatch(name) is None:
        raise UsageError(
            f"the base {name!r} has a name that a delta cannot hold. Rename its folder to letters, digits, "
            "dots and dashes."
        )
    own = _known_start(answerer)
    if own and base_name(own) != name:
        tell(f"{model} was trained from {own}, so its change from {name} is larger and loses more in the cut")
    joined = open_base(local_folder(start))
    _check_same_shapes(encoder, joined, name, model)
    longest = encoder.max_seq_length
    most = int(longest) if longest is not None and longest <= _MOST_TOKENS else None
    entry = Base(name, joined.fingerprint, rank, storage, most)
    export = _Export(encoder, joined, entry, _probes())
    save_model(
        answerer.model,
        target.folder,
        about=training_of(answerer.about, target.folder.name),
        overwrite=overwrite,
        former=target.former,
        inputs=[model, base],
        reduce=export.reduce,
    )
    if not any(base_folders(name, target.folder)):
        tell(f"whoever loads {target.folder} needs its base {name}. {how_to_get(name)}")
    size = sum(path.stat().st_size for path in target.folder.rglob("*") if path.is_file())
    kept, difference = export.change.kept, export.difference
    return ExportReport(target.folder, name, rank, storage, size, kept, difference, len(export.probes))


def _encoder_of(answerer: Answerer, model: str | Path) -> SentenceTransformer:
    """The encoder of a model whose texts are read one by one."""
    answerer.embedding()  # raises an error for a cross-encoder, which has no vectors of texts
    encoder: SentenceTransformer = answerer.model.encoder
    network_of(encoder, model)
    return encoder


def _known_start(answerer: Answerer) -> str:
    """The base of a model that is a delta itself, or else the encoder that a model's recipe names."""
    known = answerer.about.get("base")
    if isinstance(known, Mapping) and known.get("name"):
        return str(known["name"])
    recipe = answerer.about.get("recipe")
    return str((recipe.get("encoder", {}).get("name") if isinstance(recipe, Mapping) else None) or "")


def _trained_from(answerer: Answerer, model: str | Path) -> str:
    """The encoder from which a delta is made if no base is named."""
    named = _known_start(answerer)
    if not named:
        raise UsageError(
            f"{model} does not say which encoder it was trained from. Name it ({spelt('base', 'NAME')})."
        )
    return named


def _check_same_shapes(
    encoder: SentenceTransformer, base: JoinedEncoder, name: str, model: str | Path
) -> None:
    """Raise an error for a base of another architecture."""
    before = network_tensors(network_of(base.encoder, base.source))
    after = network_tensors(network_of(encoder, model))
    shapes = [{key: tuple(tensor.shape) for key, tensor in one.items()} for one in (before, after)]
    if shapes[0] != shapes[1]:
        raise UsageError(
            f"{model} is no change of {name}: its tensors have other names or shapes. Name the encoder that "
            f"it was trained from ({spelt('base')})."
        )


def _probes() -> list[str]:
    """The texts on which vectors are compared: bundled ones, all of them as one long text, and capitals."""
    table = open_table(str(files("likewise") / "samples" / "test.csv"))
    rows = [row.fields for row, _ in zip(table, range(_SAMPLE_PAIRS), strict=False)]
    texts = [str(row[side]) for row in rows for side in ("text_a", "text_b")]
    return [*dict.fromkeys(texts), " ".join(texts), texts[0].upper()]


def _largest_difference(expected: Any, found: Any) -> float:
    """The largest difference of two vectors of a text, in lengths of the first."""
    if expected.shape != found.shape:
        return float("inf")
    lengths = np.maximum(np.linalg.norm(expected, axis=1), torch.finfo(torch.float32).tiny)
    return float((np.linalg.norm(expected - found, axis=1) / lengths).max())
