"""A tiny BERT, word vectors and rated pairs, made without a network: for fixtures and the fault harness."""

from __future__ import annotations

from pathlib import Path

WORDS = (
    "a the man woman dog cat child band train river plays sings runs sleeps eats cooks reads writes is was "
    "not never "
    "no one two three four five red blue old new fast slow in on under near with and or guitar piano book "
    "bread soup "
    "soccer park street house kitchen night morning today tomorrow . , ? ! ' \" - ##s ##ing ##ed"
).split()


def build_encoder(folder: Path) -> Path:
    """A randomly initialised two-layer BERT with mean pooling, as a sentence-transformers folder."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: index for index, word in enumerate([*special, *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    )
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder / "bert")
    fast.save_pretrained(folder / "bert")
    transformer = Transformer(str(folder / "bert"), max_seq_length=64)
    SentenceTransformer(modules=[transformer, Pooling(32, "mean")], device="cpu").save(
        str(folder / "encoder"), create_model_card=False
    )
    return folder / "encoder"


def build_vectors(folder: Path) -> Path:
    """Word vectors of width 8 as a folder with words.txt and vectors.npy."""
    import numpy as np

    words = [word for word in WORDS if not word.startswith("##")]
    (folder / "words.txt").write_text("\n".join(words) + "\n", encoding="utf8")
    np.save(folder / "vectors.npy", np.random.default_rng(0).normal(size=(len(words), 8)).astype("float32"))
    return folder


def build_pairs(path: Path) -> Path:
    """Forty rated pairs over the tiny vocabulary.

    Similarity 0..5, topic -2..2 with holes, entailment labels.
    """
    import csv
    import random

    rng = random.Random(0)
    plain = [word for word in WORDS if word.isalpha()]
    with path.open("w", newline="", encoding="utf8") as file:
        writer = csv.writer(file)
        writer.writerow(["text_a", "text_b", "similarity", "topic", "entailment"])
        for row in range(40):
            first = rng.sample(plain, rng.randint(3, 9))
            shared = rng.randint(0, len(first))
            second = first[:shared] + rng.sample(plain, rng.randint(1, 4))
            topic = "" if row % 5 == 0 else round(4 * shared / len(first) - 2, 2)
            label = ("contradiction", "neutral", "entailment")[min(2, 3 * shared // (len(first) + 1))]
            writer.writerow(
                [" ".join(first), " ".join(second), round(5 * shared / len(first), 2), topic, label]
            )
    return path
