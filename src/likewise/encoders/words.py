"""Encoders over word vectors: a BiLSTM with max pooling (as in InferSent), and the plain average.

Both are built from stock sentence-transformers modules, so a saved folder loads without Likewise, and padding
does not affect vectors there. A word-level Hugging Face tokenizer splits the texts. The BiLSTM sees begin and
end markers, so an empty text also has a vector.

    BiLSTM-max   ids T → vectors T×d → BiLSTM T×2H → max over time 2H        Conneau et al. 2017
    average      ids T → vectors T×d → mean d
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, StaticEmbedding, WordEmbeddings
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import nn
from torch.nn import functional
from transformers import PreTrainedTokenizerFast

from likewise.answering import Vectors
from likewise.encoders.resolve import local_model
from likewise.errors import DataError, Problem, UsageError
from likewise.files import note_input, refuse_endless
from likewise.wording import counted

PAD, UNKNOWN, BEGIN, END = "<pad>", "<unk>", "<s>", "</s>"
SPECIAL = (PAD, UNKNOWN, BEGIN, END)
# A word and some thousand numbers.
_LONGEST_LINE = 2**20
Padding = Literal["safe", "infersent-v1"]
# Words, each once, and their vectors.
WordTable = tuple[list[str], Vectors]
# Where word vectors come from: a folder, a file, or a table that is there already.
Source = str | os.PathLike[str] | WordTable


class PaddingTakesPart(nn.Module):
    """InferSent v1's padding rule: zeros after a text's end take part in the max over time.

    A text's vector then depends on the other texts of its batch: it is max(h, 0) unless the text is the
    longest. Use it only to reproduce results. It is not saved with the modules; `store` records and restores
    it.
    """

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Let pooling see every position."""
        return {**features, "attention_mask": torch.ones_like(features["attention_mask"])}


def padding_of(encoder: SentenceTransformer) -> Padding:
    """The padding rule of an encoder."""
    return "infersent-v1" if any(isinstance(m, PaddingTakesPart) for m in encoder) else "safe"


def with_padding(encoder: SentenceTransformer, padding: Padding) -> SentenceTransformer:
    """An encoder of the same modules with a padding rule; weights are shared, not copied."""
    if padding_of(encoder) == padding:
        return encoder
    *modules, pooling = [m for m in encoder if not isinstance(m, PaddingTakesPart)]
    quirk = [PaddingTakesPart()] if padding == "infersent-v1" else []
    return SentenceTransformer(modules=[*modules, *quirk, pooling], device=str(encoder.device))


def bilstm_encoder(
    vectors: Source,
    *,
    hidden: int = 2048,
    words: Iterable[str] | None = None,
    max_length: int = 256,
    train_vectors: bool = False,
    padding: Padding = "safe",
    seed: int = 1,
    device: str | None = None,
) -> SentenceTransformer:
    """Make a BiLSTM encoder: `hidden` units per direction over word vectors, max over time, width 2·hidden.

    `words` restricts the vocabulary to these words; others become <unk>.
    """
    lookup = word_lookup(vectors, words=words, max_length=max_length, train_vectors=train_vectors, seed=seed)
    with seeded(seed):
        recurrent = LSTM(lookup.get_embedding_dimension(), hidden)
    pooling = Pooling(2 * hidden, "max")
    encoder = SentenceTransformer(modules=[lookup, recurrent, pooling], device=device)
    return with_padding(encoder, padding)


def word_lookup(
    vectors: Source,
    *,
    words: Iterable[str] | None,
    max_length: int,
    train_vectors: bool,
    seed: int,
) -> WordEmbeddings:
    """The first module of recurrent encoders: texts → vectors of their words between two markers, B×T×d."""
    vocabulary, table = load_vectors(vectors, words=words)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=word_tokenizer(vocabulary, markers=True),
        pad_token=PAD,
        unk_token=UNKNOWN,
        bos_token=BEGIN,
        eos_token=END,
    )
    weights = _with_specials(table, seed)
    return WordEmbeddings(tokenizer, weights, update_embeddings=train_vectors, max_seq_length=max_length)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw first weights with a seed and leave the global random state unchanged."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def average_encoder(
    vectors: Source,
    *,
    words: Iterable[str] | None = None,
    train_vectors: bool = False,
    seed: int = 1,
    device: str | None = None,
) -> SentenceTransformer:
    """Make an encoder that averages word vectors; words without a vector and empty texts count as zero.

    If the vectors are trained, this is the neural bag of words: words without a vector share one that is
    learnt.
    """
    vocabulary, table = load_vectors(vectors, words=words)
    tokenizer = word_tokenizer(vocabulary, markers=False)
    weights = _with_specials(table, seed)
    weights[2:4] = 0.0
    lookup = StaticEmbedding(tokenizer, embedding_weights=weights)
    lookup.embedding.weight.requires_grad_(train_vectors)
    return SentenceTransformer(modules=[lookup], device=device)


class _Drop:
    """Dropout on the output of a lookup during training."""

    def __init__(self, share: float) -> None:
        self._share = share

    def __call__(
        self, module: nn.Module, _: object, features: dict[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        key = "token_embeddings" if "token_embeddings" in features else "sentence_embedding"
        dropped = functional.dropout(features[key], self._share, module.training)
        return {**features, key: dropped}


def with_dropout(encoder: SentenceTransformer, share: float) -> SentenceTransformer:
    """Add dropout on the word vectors in place, as a hook, so that the saved folder does not change."""
    encoder[0].register_forward_hook(_Drop(share))
    return encoder


def distinct_words(texts: Iterable[str]) -> set[str]:
    """The distinct words of texts."""
    found: set[str] = set()
    for text in texts:
        found.update(word_list(text))
    return found


def word_list(text: str) -> list[str]:
    """The words of a text as the word-level tokenizer splits it: in lower case, punctuation separately."""
    normalise, split = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    return [word for word, _ in split.pre_tokenize_str(normalise.normalize_str(text))]


def word_tokenizer(vocabulary: list[str], *, markers: bool) -> Tokenizer:
    """Make a word-level tokenizer: lower case, split at spaces and punctuation, unknown words as <unk>."""
    ids = {word: index for index, word in enumerate([*SPECIAL, *vocabulary])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if markers:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{BEGIN} $A {END}", special_tokens=[(BEGIN, ids[BEGIN]), (END, ids[END])]
        )
    return tokenizer


def load_vectors(path: Source, *, words: Iterable[str] | None = None) -> WordTable:
    """Read word vectors: a folder with words.txt + vectors.npy, or GloVe / fastText text (.txt .vec, .gz)."""
    if isinstance(path, tuple):
        return path
    where = Path(path).expanduser()
    if not where.exists():
        where = local_model(str(path)) or where
    wanted = None if words is None else set(words)
    if where.is_dir():
        return _load_folder(where, wanted)
    if not where.is_file():
        raise UsageError(
            f"{where}: there are no such word vectors. Name a folder (words.txt + vectors.npy) or a .txt or "
            ".vec file."
        )
    vocabulary: list[str] = []
    rows: list[Vectors] = []
    for word, row in _text_rows(where):
        if (wanted is None or word in wanted) and word not in SPECIAL:
            vocabulary.append(word)
            rows.append(row)
    if not rows:
        raise DataError(
            [Problem(str(where), "there is no vector for any word of the data", "check language and case")]
        )
    return vocabulary, np.stack(rows)


def _load_folder(folder: Path, wanted: set[str] | None) -> WordTable:
    note_input(folder)
    for name in ("words.txt", "vectors.npy"):
        refuse_endless(folder / name)
        note_input(folder / name)
    try:
        vocabulary = (folder / "words.txt").read_text(encoding="utf8").splitlines()
        table = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        found = f"this is not a folder of word vectors ({error})"
        remedy = "save words.txt and vectors.npy in it"
        raise DataError([Problem(str(folder), found, remedy)]) from error
    if table.ndim != 2 or table.dtype.kind != "f" or not table.shape[1]:
        found = f"vectors.npy holds {table.dtype} of shape {table.shape}, but rows of floats are expected"
        raise DataError([Problem(str(folder), found, "save one vector of floats for each word")])
    if len(vocabulary) != len(table):
        found = f"words.txt has {len(vocabulary)} words, but vectors.npy has {len(table)} vectors"
        raise DataError([Problem(str(folder), found, "save one vector for each word")])
    keep = [
        i for i, word in enumerate(vocabulary) if (wanted is None or word in wanted) and word not in SPECIAL
    ]
    if not keep:
        raise DataError(
            [Problem(str(folder), "there is no vector for any word of the data", "check language and case")]
        )
    return [vocabulary[i] for i in keep], np.asarray(table[keep], dtype=np.float32)


def _text_rows(path: Path) -> Iterator[tuple[str, Vectors]]:
    try:
        yield from _rows_in(path)
    except (EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        found = f"this cannot be read as word vectors ({error})"
        raise DataError([Problem(str(path), found, "download the file again, or save it as UTF-8")]) from None


def _rows_in(path: Path) -> Iterator[tuple[str, Vectors]]:
    width: int | None = None
    note_input(path)
    refuse_endless(path)
    with (
        gzip.open(path, "rt", encoding="utf8") if path.suffix == ".gz" else path.open(encoding="utf8") as file
    ):
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), ""), start=1):
            word, *numbers = line.rstrip().split(" ")
            if not numbers or len(line) == _LONGEST_LINE:
                found = f"{path.name}:{number}"
                wrong = "this line is not a word followed by its numbers"
                raise DataError([Problem(found, wrong, "check the file")])
            if number == 1 and len(numbers) == 1:
                continue  # word2vec and fastText begin with "count width"
            width = width or len(numbers)
            if len(numbers) != width:
                raise DataError(
                    [
                        Problem(
                            f"{path.name}:{number}",
                            f"this line has {counted(len(numbers), 'number')} instead of {width}",
                            "check the file",
                        )
                    ]
                )
            try:
                vector = np.array(numbers, dtype=np.float32)
                if not np.isfinite(vector).all():
                    raise ValueError
                yield word, vector
            except ValueError:
                raise DataError(
                    [
                        Problem(
                            f"{path.name}:{number}",
                            "the vector holds something other than finite numbers",
                            "check the file",
                        )
                    ]
                ) from None


def _with_specials(table: Vectors, seed: int) -> torch.Tensor:
    """The table after rows for <pad>, <unk> (zero) and the markers (random, of the table's spread)."""
    rng = np.random.default_rng(seed)
    markers = rng.normal(0.0, float(table.std()), size=(2, table.shape[1]))
    zeros = np.zeros((2, table.shape[1]))
    return torch.from_numpy(np.concatenate([zeros, markers, table]).astype(np.float32))
