"""What an encoder's vocabulary makes of a text: the pieces it reads, and the words that it does not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokenizers import Tokenizer, models

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as its pieces, markers left out; what of it is unknown, in the text's own letters."""

    pieces: tuple[int | str, ...]
    unknown: tuple[str, ...]

    @property
    def says_nothing(self) -> bool:
        """Whether no piece of it is known."""
        return len(self.unknown) == len(self.pieces)


class Vocabulary:
    """The pieces an encoder knows: whole words with a vector each, or parts of words."""

    def __init__(self, tokenizer: Tokenizer, unknown: int | None) -> None:
        self._tokenizer, self._unknown = tokenizer, unknown

    @property
    def of_words(self) -> bool:
        """Whether a word is known as a whole or not at all, as in tables of word vectors."""
        return isinstance(self._tokenizer.model, models.WordLevel)

    def read(self, text: str) -> Reading:
        """The pieces of a text."""
        found = self._tokenizer.encode(text, add_special_tokens=False)
        read = [
            (piece, text[start:end])
            for piece, (start, end), used in zip(found.ids, found.offsets, found.attention_mask, strict=True)
            if used  # not the padding that an earlier call may have asked for
        ]
        unknown = tuple(letters for piece, letters in read if piece == self._unknown)
        return Reading(tuple(piece for piece, _ in read), unknown)


def find_vocabulary(encoder: SentenceTransformer) -> Vocabulary | None:
    """An encoder's vocabulary; None where a function encodes, or a tokenizer that cannot be asked."""
    named = getattr(encoder[0], "tokenizer", None)
    named = getattr(named, "tokenizer", named)  # sentence-transformers wraps those of word vectors
    backend = getattr(named, "backend_tokenizer", named)
    if not isinstance(backend, Tokenizer):
        return None
    name = getattr(named, "unk_token", None) or getattr(backend.model, "unk_token", None)
    return Vocabulary(backend, backend.token_to_id(str(name)) if name else None)
