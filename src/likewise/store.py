"""Model folders: save and load. A folder is a sentence-transformers folder with `likewise/` beside it.

    my-model/
      modules.json, model.safetensors, tokenizer…   loads anywhere with SentenceTransformer("my-model")
      likewise/model.json                           relations, objectives, recipe, versions, numbers
      likewise/heads.safetensors                    every trained head
      likewise/language.safetensors                 a multilingual model's language extractor, for probes
      README.md                                     a model card written from what was measured

Saving the folder again through sentence-transformers drops `likewise/`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from likewise.encoders.external import TextFunction, external_encoder, is_external
from likewise.encoders.features import default_prompt
from likewise.encoders.resolve import resolve
from likewise.encoders.sentence import load_encoder, with_prompt
from likewise.encoders.words import padding_of, with_padding
from likewise.errors import ModelError, UsageError
from likewise.heads import Layers
from likewise.methods.injection import InjectionModel
from likewise.methods.joint import JointModel, load_joint
from likewise.methods.label_embedding import LabelModel
from likewise.methods.multilingual import FrozenPart
from likewise.methods.pairs import Objective, PairModel, objective_source
from likewise.records import Relation
from likewise.versions import versions

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

FORMAT = 1
RAW_RELATION = Relation(
    "similarity",
    lo=-1.0,
    hi=1.0,
    step=2.0,
    description="cosine of the two vectors of an encoder without heads",
)


AnyModel = PairModel | LabelModel | JointModel | InjectionModel


def save_model(
    model: AnyModel,
    folder: str | os.PathLike[str],
    *,
    about: Mapping[str, Any],
    overwrite: bool = False,
) -> Path:
    """Write a model folder aside and rename it into place; `about` goes into model.json and the card."""
    target = Path(folder)
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists already; choose another --output or pass --overwrite")
    aside = target.with_name(target.name + ".partial")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    own = aside / "likewise"
    own.mkdir()
    described = _save_joint(model, aside) if isinstance(model, JointModel) else _save_encoder(model, aside)
    document = {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        **described,
        **about,
    }
    (own / "model.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf8")
    (aside / "README.md").write_text(model_card(target.name, document), encoding="utf8")
    if target.exists():
        shutil.rmtree(target)
    aside.rename(target)
    return target


def _save_joint(model: JointModel, folder: Path) -> dict[str, Any]:
    """A stock sequence classifier: CrossEncoder and transformers load it."""
    model.encoder.save_pretrained(str(folder))
    model.tokenizer.save_pretrained(str(folder))
    return {
        "relations": [model.relation.to_dict()],
        "joint": {"texts": model.texts, "max_length": model.max_length},
        "source": {model.relation.name: "head"},
    }


def _save_encoder(model: PairModel | LabelModel | InjectionModel, folder: Path) -> dict[str, Any]:
    """A sentence-transformers folder, and beside it what answers."""
    own = folder / "likewise"
    if is_external(model.encoder):
        _save_layers(model.encoder, own / "layers")
    else:
        with_padding(model.encoder, "safe").save(str(folder), create_model_card=False)
    if isinstance(model, InjectionModel):
        save_file(_plain(model.heads.state_dict()), own / "injection.safetensors")
        taught = {"learns": model.learns, "features": model.features, "two_tower": model.two_tower}
        return {"relations": [], "source": {}, "injected": taught}
    described = _save_labels(model, own) if isinstance(model, LabelModel) else _save_pairs(model, own)
    return {
        "relations": [relation.to_dict() for relation in model.relations],
        "padding": padding_of(model.encoder),
        **described,
        **({"encoder_function": _function_to_dict(model.encoder)} if is_external(model.encoder) else {}),
    }


def _save_pairs(model: PairModel, own: Path) -> dict[str, Any]:
    save_file(_plain(model.heads.state_dict()), own / "heads.safetensors")
    if model.frozen is not None and model.frozen.tensors:
        save_file(_plain(model.frozen.tensors), own / "language.safetensors")
    return {
        "objectives": [objective_to_dict(objective) for objective in model.objectives],
        "source": {r.name: objective_source(model.answering(r.name)) for r in model.relations},
        **({"frozen": _frozen_to_dict(model.frozen)} if model.frozen is not None else {}),
    }


def _save_labels(model: LabelModel, own: Path) -> dict[str, Any]:
    if model.label_encoder is not None:
        model.label_encoder.save(str(own / "label_encoder"), create_model_card=False)
    save_file(_plain(model.matching_state()), own / "matcher.safetensors")
    return {"labels": model.options(), "source": {task.name: "matcher" for task in model.tasks}}


def _plain(state: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}


def load_labels(
    name: str | os.PathLike[str], *, device: str | None = None
) -> tuple[LabelModel, dict[str, Any]]:
    """Load a folder that holds a label model, or any encoder as one that compares by the cosine, untaught."""
    where = Path(resolve(name))
    if kind_of(name) == "raw":
        return LabelModel(load_encoder(name, device=device), (), matcher="cosine").eval(), {"raw": True}
    document = _read_document(where / "likewise" / "model.json")
    if "labels" not in document:
        raise ModelError(
            f"{where} answers pairs of texts and has no matcher for labels; "
            "train one on labelled texts (docs/methods/label_embedding.md), or score pairs with it"
        )
    own = where / "likewise"
    labels = load_encoder(own / "label_encoder", device=device) if (own / "label_encoder").is_dir() else None
    tasks = [Relation.from_dict(entry) for entry in document["relations"]]
    try:
        model = LabelModel(
            load_encoder(name, device=device), tasks, label_encoder=labels, **document["labels"]
        )
        model.load_matching(load_file(own / "matcher.safetensors", device=str(model.encoder.device)))
    except (OSError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"{own}: the matcher cannot be loaded ({reason}); copy or train it again") from error
    return model.eval(), document


def kind_of(name: str | os.PathLike[str]) -> Literal["pairs", "labels", "joint", "raw"]:
    """What a model answers: pairs of texts, the labels of single ones, or nothing that it was taught.

    A joint one reads its texts as one input, be it a pair or a single one.
    """
    own = Path(name) / "likewise" / "model.json"  # a model grown on a function has no encoder to resolve
    file = own if own.is_file() else Path(resolve(name)) / "likewise" / "model.json"
    document = _read_document(file) if file.is_file() else {"injected": {}}
    if "injected" in document:
        return "raw"
    return "labels" if "labels" in document else "joint" if "joint" in document else "pairs"


def load_joint_model(
    name: str | os.PathLike[str], *, device: str | None = None
) -> tuple[JointModel, dict[str, Any]]:
    """Load a folder that holds a joint encoder and its head."""
    document = _read_document(Path(resolve(name)) / "likewise" / "model.json")
    relation = Relation.from_dict(document["relations"][0])
    return load_joint(name, relation, device=device, **document["joint"]).eval(), document


def raw_model(encoder: SentenceTransformer) -> PairModel:
    """An encoder without heads: it answers by the cosine."""
    return PairModel(encoder, [Objective(RAW_RELATION, "cosine", "mse", floor=-1.0)]).eval()


def load_model(
    name: str | os.PathLike[str], *, device: str | None = None, encoder: TextFunction | None = None
) -> tuple[PairModel, dict[str, Any]]:
    """Load a Likewise folder, or any encoder as a raw model that answers `similarity` by cosine.

    A model grown on a function (`external`) is given that function again as `encoder`.
    """
    if encoder is not None or (Path(name) / "likewise" / "layers").is_dir():
        return _load_external(Path(name), encoder)
    return _load_own(name, load_encoder(name, device=device))


def _load_own(name: str | os.PathLike[str], encoder: SentenceTransformer) -> tuple[PairModel, dict[str, Any]]:
    where = Path(resolve(name))
    if not (where / "likewise" / "model.json").is_file():
        return raw_model(encoder), {"raw": True}
    document = _read_document(where / "likewise" / "model.json")
    if "injected" in document:
        return raw_model(encoder), {**document, "raw": True}
    if "labels" in document:
        raise ModelError(f"{where} classifies texts: use likewise.load_classifier, or likewise classify")
    return _finish(encoder, where, document)


def _finish(
    encoder: SentenceTransformer, where: Path, document: dict[str, Any]
) -> tuple[PairModel, dict[str, Any]]:
    model = _with_heads(encoder, where, document)
    model.frozen = _read_frozen(where / "likewise" / "language.safetensors", document)
    return model, document


def _save_layers(encoder: SentenceTransformer, folder: Path) -> None:
    """The modules after a function, one folder each; the function itself has no files."""
    for number, module in enumerate(list(encoder)[1:]):
        place = folder / f"{number}_Dense"
        place.mkdir(parents=True)
        module.save(str(place))


def _load_external(where: Path, function: TextFunction | None) -> tuple[PairModel, dict[str, Any]]:
    document = _read_document(where / "likewise" / "model.json")
    grown = document.get("encoder_function", {})
    if function is None:
        raise ModelError(
            f"{where} was grown on the vectors of {grown.get('name')!r}, which it does not hold; "
            "give that function or .npz again: likewise.load(folder, encoder=function)"
        )
    base = external_encoder(function)
    if base.get_embedding_dimension() != grown.get("width"):
        raise ModelError(
            f"{where} was grown on vectors of width {grown.get('width')}, "
            f"this encoder's have {base.get_embedding_dimension()}"
        )
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

    folders = sorted((where / "likewise" / "layers").glob("*_Dense"))
    layers = [Dense.load(str(folder)) for folder in folders]
    encoder = SentenceTransformer(modules=[*base, *layers], device="cpu")
    if grown.get("prompt"):
        with_prompt(encoder, grown["prompt"])
    return _finish(encoder, where, document)


def _function_to_dict(encoder: SentenceTransformer) -> dict[str, Any]:
    first = encoder[0]
    return {"name": first.name, "width": first.width, "prompt": default_prompt(encoder) or ""}


def _frozen_to_dict(part: FrozenPart) -> dict[str, Any]:
    names = ("modules", "pairs", "languages", "prelayer")
    return {name: getattr(part, name) for name in names}


def _read_frozen(file: Path, document: Mapping[str, Any]) -> FrozenPart | None:
    if "frozen" not in document:
        return None
    entry = document["frozen"]
    tensors = load_file(file) if file.is_file() else {}
    pairs, languages = tuple(entry["pairs"]), tuple(entry["languages"])
    return FrozenPart(entry["modules"], pairs, languages, entry["prelayer"], tensors)


def _read_document(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{path}: cannot be read ({error}); the folder is damaged: copy or train it again"
        ) from error
    if document.get("format") != FORMAT:
        raise ModelError(
            f"{path}: format {document.get('format')!r}, this version reads {FORMAT}; upgrade likewise"
        )
    return document


def _with_heads(encoder: SentenceTransformer, where: Path, document: Mapping[str, Any]) -> PairModel:
    try:
        objectives = [objective_from_dict(entry) for entry in document["objectives"]]
        model = PairModel(with_padding(encoder, document.get("padding", "safe")), objectives)
        model.heads.load_state_dict(
            load_file(where / "likewise" / "heads.safetensors", device=str(encoder.device))
        )
    except (OSError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(
            f"{where}/likewise: heads cannot be loaded ({reason}); copy or train the model again"
        ) from error
    return model.eval()


def objective_to_dict(objective: Objective) -> dict[str, Any]:
    """A JSON-ready objective."""
    entry = asdict(objective)
    entry["relation"] = objective.relation.to_dict()
    entry["options"] = dict(objective.options)
    return {**entry, "pairing": list(objective.pairing)}


def objective_from_dict(entry: Mapping[str, Any]) -> Objective:
    """The inverse of `objective_to_dict`."""
    read = {
        "relation": Relation.from_dict(entry["relation"]),
        "pairing": tuple(entry["pairing"]),
        "layers": Layers(**{**entry["layers"], "hidden": tuple(entry["layers"]["hidden"])}),
    }
    return Objective(**{**entry, **read})


def model_card(name: str, document: Mapping[str, Any]) -> str:
    """The README of a model folder, from what was measured and nothing else."""
    lines = [
        "---",
        "library_name: sentence-transformers",
        "tags: [likewise, sentence-similarity]",
        "---",
        f"# {name}",
        "",
    ]
    lines += [
        "Trained with Likewise. It answers:",
        "",
        "| relation | scale | answered by | description |",
        "|---|---|---|---|",
    ]
    for entry in document["relations"]:
        relation = Relation.from_dict(entry)
        source = document["source"][relation.name]
        lines.append(f"| {relation.name} | {relation.scale} | {source} | {relation.description or '–'} |")
    lines += ["", "```python", "import likewise", f'model = likewise.load("{name}")']
    lines += ['model.score([("first text", "second text")])', "```", ""]
    for stage in document.get("stages", []):
        best = stage.get("best_value")
        lines.append(
            f"- stage `{stage['name']}`: {stage['pairs']:,} pairs, {stage['steps']:,} steps"
            + (f", best dev score {best:.4f} at step {stage['best_step']:,}" if best is not None else "")
        )
        lines += [f"  - {line}" for line in stage.get("leakage", [])]
    lines += ["", _how_it_loads(document), ""]
    return "\n".join(lines)


def _how_it_loads(document: Mapping[str, Any]) -> str:
    if "encoder_function" in document:
        name = document["encoder_function"]["name"]
        return f"Holds layers only: load it with the encoder `{name}`, likewise.load(folder, encoder=…)."
    if document.get("recipe", {}).get("encoder", {}).get("peepholes"):
        return "Its LSTM has peepholes, which sentence-transformers does not know: load it with likewise."
    return "Loads with `SentenceTransformer` too: heads in `likewise/` are ignored there, and lost on saving."
