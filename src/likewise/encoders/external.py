"""Encoders of any framework: a function from texts to vectors, or an .npz file of texts and vectors.

Such an encoder is always frozen. It becomes the first module of a SentenceTransformer, so it can be used
wherever an encoder is expected. A model that is trained on it saves only its layers and needs the function
again when it is loaded.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import InputModule
from torch import Tensor

from likewise.errors import DataError, ModelError, Problem
from likewise.files import note_input, refuse_endless
from likewise.wording import counted

# Texts → N×d numbers.
TextFunction = Callable[[Sequence[str]], Any]
# What a function makes of these tells it from another.
_PROBES = ("a", "two words", "A longer sentence, with a comma.")


class ExternalTexts(InputModule):
    """A module that encodes texts with a function: B texts → B×d."""

    def __init__(self, function: TextFunction, name: str, fingerprint: str = "") -> None:
        super().__init__()
        self.function, self.name = function, name
        probes = self._vectors(_PROBES)
        self.width = probes.shape[1]
        self.print = fingerprint or hashlib.blake2b(probes.tobytes(), digest_size=8).hexdigest()

    @property
    def tokenizer(self) -> None:
        """None: a function has no tokenizer."""

    def preprocess(self, inputs: Sequence[str], prompt: str | None = None, **_: Any) -> dict[str, Any]:
        """The texts, with the prompt put before each of them."""
        return {"texts": [f"{prompt or ''}{text}" for text in inputs]}

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """The function's vectors as the sentence embedding."""
        made: Tensor = torch.from_numpy(self._vectors(features["texts"]))
        return {**features, "sentence_embedding": made}

    def get_embedding_dimension(self) -> int:
        """d, the width of a vector."""
        return int(self.width)

    def get_config_dict(self) -> dict[str, Any]:
        """The settings by which the cache distinguishes encoders."""
        return {"name": self.name, "print": self.print}

    def save(self, output_path: str, *args: Any, **options: Any) -> None:
        """Raise an error, because a function has no files."""
        raise ModelError(
            f"the encoder {self.name!r} is a function and cannot be saved. Save the layers that follow it."
        )

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        made = np.ascontiguousarray(self.function(list(texts)), dtype=np.float32)
        if made.ndim != 2 or len(made) != len(texts) or not np.isfinite(made).all():
            raise ModelError(
                f"the encoder {self.name!r} returned shape {made.shape} for {len(texts)} texts. It must "
                "return one row of finite numbers for each text."
            )
        return made


def external_encoder(source: TextFunction | str | Path) -> SentenceTransformer:
    """Make an encoder from a function or from an .npz file with `texts` (N strings) and `vectors` (N×d)."""
    if callable(source):
        module = ExternalTexts(source, getattr(source, "__name__", type(source).__name__))
    else:
        content = hashlib.blake2b(_read(Path(source)), digest_size=8).hexdigest()
        module = ExternalTexts(vectors_file(source), Path(source).name, content)
    return SentenceTransformer(modules=[module], device="cpu")


def _read(path: Path) -> bytes:
    try:
        note_input(path)
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            [Problem(str(path), f"this file cannot be read ({error.strerror})", "check the path")]
        ) from None


def is_external(encoder: SentenceTransformer) -> bool:
    """Whether an encoder's vectors come from a function."""
    return isinstance(encoder[0], ExternalTexts)


# Texts of very different lengths are padded and shrink well; what shrinks more than that holds nothing.
_MOST_GROWTH, _SLACK = 200, 2**26


def _refuse_bomb(path: Path) -> None:
    """Raise an error for a small file that unpacks to far more than compressed vectors can."""
    refuse_endless(path)
    try:
        with zipfile.ZipFile(path) as parts:
            unpacked = sum(part.file_size for part in parts.infolist())
            packed = path.stat().st_size
    except (OSError, zipfile.BadZipFile):
        return  # whoever reads it says why
    if unpacked > _MOST_GROWTH * packed + _SLACK:
        found = f"this file unpacks from {packed:,} to {unpacked:,} bytes, which vectors never do"
        remedy = "save it again with np.savez(path, texts=…, vectors=…)"
        raise DataError([Problem(str(path), found, remedy)])


def vectors_file(path: str | Path) -> TextFunction:
    """Make a function that looks up texts in an .npz file with `texts` (N strings) and `vectors` (N×d)."""
    _refuse_bomb(Path(path))
    try:
        with np.load(path, allow_pickle=False) as file:
            texts, vectors = file["texts"], np.asarray(file["vectors"], dtype=np.float32)
    except (OSError, ValueError, KeyError) as error:
        remedy = "save it with np.savez(path, texts=np.array(list_of_str), vectors=matrix)"
        raise DataError([Problem(str(path), f"this file cannot be read ({error})", remedy)]) from None
    if vectors.ndim != 2 or len(texts) != len(vectors) or texts.dtype.kind != "U":
        found = f"this file has {len(texts)} texts ({texts.dtype}) and vectors of shape {vectors.shape}"
        raise DataError([Problem(str(path), found, "save one row of numbers for each text")])
    place = {str(text): row for row, text in enumerate(texts)}

    def look_up(wanted: Sequence[str]) -> NDArray[np.float32]:
        missing = [text for text in wanted if text not in place and text not in _PROBES]
        if missing:
            found = (
                f"this file has no vector for {counted(len(missing), 'text')}, such as {missing[0][:60]!r}"
            )
            raise DataError([Problem(str(path), found, "add the vectors of these texts")])
        made = np.zeros((len(wanted), vectors.shape[1]), dtype=np.float32)
        for row, text in enumerate(wanted):
            if text in place:
                made[row] = vectors[place[text]]
        return made

    return look_up
