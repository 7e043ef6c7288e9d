"""Read a text with an encoder's vocabulary: its tokens, and the words that the encoder does not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokenizers import Tokenizer, models

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as tokens without markers, and its unknown words as they are written in the text."""

    pieces: tuple[int | str, ...]
    unknown: tuple[str, ...]

    @property
    def says_nothing(self) -> bool:
        """Whether no token of the text is known."""
        return len(self.unknown) == len(self.pieces)


class Vocabulary:
    """The tokens that an encoder knows: whole words with a vector each, or parts of words."""

    def __init__(self, tokenizer: Tokenizer, unknown: int | None) -> None:
        self._tokenizer, self._unknown = tokenizer, unknown

    @property
    def of_words(self) -> bool:
        """Whether tokens are whole words, as in tables of word vectors."""
        return isinstance(self._tokenizer.model, models.WordLevel)

    def read(self, text: str) -> Reading:
        """The tokens of a text."""
        found = self._tokenizer.encode(text, add_special_tokens=False)
        read = [
            (piece, text[start:end])
            for piece, (start, end), used in zip(found.ids, found.offsets, found.attention_mask, strict=True)
            if used  # not the padding that an earlier call may have asked for
        ]
        unknown = tuple(letters for piece, letters in read if piece == self._unknown)
        return Reading(tuple(piece for piece, _ in read), unknown)


def find_vocabulary(encoder: SentenceTransformer) -> Vocabulary | None:
    """An encoder's vocabulary; None for a function or a tokenizer without a list of tokens."""
    named = getattr(encoder[0], "tokenizer", None)
    named = getattr(named, "tokenizer", named)  # sentence-transformers wraps those of word vectors
    backend = getattr(named, "backend_tokenizer", named)
    if not isinstance(backend, Tokenizer):
        return None
    name = getattr(named, "unk_token", None) or getattr(backend.model, "unk_token", None)
    return Vocabulary(backend, backend.token_to_id(str(name)) if name else None)
