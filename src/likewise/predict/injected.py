"""Encoders after phrase injection: they answer by the cosine; their injection heads are kept beside them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from likewise.encoders.resolve import local_folder
from likewise.encoders.sentence import load_encoder
from likewise.encoders.weights import read_tensors
from likewise.methods.pairs import PairModel
from likewise.methods.paraphrase import InjectionModel
from likewise.predict.families import Family, Running
from likewise.predict.pairs import Predictor, encoder_card_line, raw_model
from likewise.store.card import CardParts, pair_example
from likewise.store.encoder import plain, save_encoder


class InjectedFamily(Family[Any]):
    """Encoders of the same size as before phrase injection; the injection heads are not used for answers."""

    def save(self, model: InjectionModel, folder: Path) -> dict[str, Any]:
        """Write the encoder's folder, with the heads in `likewise/`."""
        save_encoder(model.encoder, folder)
        save_file(plain(model.heads.state_dict()), folder / "likewise" / "injection.safetensors")
        taught = {"learns": model.learns, "features": model.features, "two_tower": model.two_tower}
        return {"relations": [], "source": {}, "injected": taught}

    def load(
        self, name: str | os.PathLike[str], document: Mapping[str, Any] | None, running: Running
    ) -> PairModel:
        """Load the encoder, which answers by its cosine."""
        heads = local_folder(name) / "likewise" / "injection.safetensors"
        if os.path.lexists(heads):
            read_tensors(heads)
        return raw_model(load_encoder(name, device=running.device))

    def answerer(
        self, model: InjectionModel | PairModel, about: Mapping[str, Any], running: Running
    ) -> Predictor:
        """A Predictor that answers by the cosine."""
        return Predictor(
            raw_model(model.encoder),
            {**about, "raw": True},
            **running.computing(),
        )

    def card(self, name: str, document: Mapping[str, Any]) -> CardParts:
        """The card says whether the cosine answers or the encoder must first be fine-tuned."""
        if document["injected"].get("two_tower"):
            said = "An encoder after phrase injection, trained with each text read alone. Its cosine answers:"
            use = [said, "", *pair_example(name)]
        else:
            use = [
                "An encoder after phrase injection. It answers no relation yet. Fine-tune it:",
                "",
                "```bash",
                f"likewise train finetune --encoder {shlex.quote(name)} --data ratings.csv --output my-model",
                "```",
            ]
        return CardParts("sentence-similarity", use, encoder_card_line(document))
