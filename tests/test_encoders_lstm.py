"""The LSTM encoder, plain and with peepholes: the printed equations, padding, folders, gradients."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling
from torch import nn

from likewise.encoders.features import TextFeatures
from likewise.encoders.lstm import PeepholeLSTM, lstm_encoder
from likewise.encoders.sentence import load_encoder
from likewise.encoders.vectors import encode_texts
from likewise.encoders.words import BEGIN, END, UNKNOWN
from likewise.errors import ModelError, UsageError

TEXTS = [
    "a man plays guitar .",
    "dog",
    "",
    "the old woman never reads a new book in the park near the river , not today !",
    "zzz qqq",
    "a man plays guitar .",
]
HIDDEN = 12


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "peepholes"])
def peepholes(request) -> bool:
    return request.param


@pytest.fixture
def encoder(peepholes, tiny_vectors) -> SentenceTransformer:
    return lstm_encoder(tiny_vectors, hidden=HIDDEN, peepholes=peepholes, device="cpu")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def printed_last_state(cell: PeepholeLSTM, words: np.ndarray) -> np.ndarray:
    """Eqs. 6–11 word by word in plain numpy: T×d → H."""
    weights = {name: value.detach().double().numpy() for name, value in cell.state_dict().items()}
    w_o, w_i, w_f, w_g = np.split(weights["weight_words"], 4)
    u_o, u_i, u_f, u_g = np.split(weights["weight_state"], 4)
    v_o, v_i, v_f = weights["peepholes"]
    b_o, b_i, b_f = np.split(weights["bias"], 3)
    c = h = np.zeros(cell.hidden_dim)
    for x in words.astype(float):
        i = sigmoid(w_i @ x + u_i @ h + v_i * c + b_i)
        f = sigmoid(w_f @ x + u_f @ h + v_f * c + b_f)
        o = sigmoid(w_o @ x + u_o @ h + v_o * c + b_o)
        c = f * c + i * np.tanh(w_g @ x + u_g @ h)
        h = o * np.tanh(c)
    return h


def random_batch(lengths: list[int], width: int) -> dict[str, torch.Tensor]:
    """Random words with random numbers, not zeros, where the padding is."""
    longest = max(lengths)
    words = torch.randn(len(lengths), longest, width, generator=torch.Generator().manual_seed(3))
    mask = (torch.arange(longest) < torch.tensor(lengths)[:, None]).long()
    return {"token_embeddings": words, "attention_mask": mask, "sentence_lengths": torch.tensor(lengths)}


def test_peephole_lstm_equals_the_printed_equations():
    cell, lengths = PeepholeLSTM(5, 7), [3, 9, 1, 9, 4]
    nn.init.normal_(cell.peepholes, generator=torch.Generator().manual_seed(1))
    batch = random_batch(lengths, 5)
    found = cell(batch)["sentence_embedding"].detach().numpy()
    words = batch["token_embeddings"].numpy()
    expected = [printed_last_state(cell, row[:length]) for row, length in zip(words, lengths, strict=True)]
    assert np.abs(found - np.stack(expected)).max() < 1e-5


def test_peephole_lstm_gradients_are_those_of_the_texts_alone():
    cell, lengths = PeepholeLSTM(3, 4), [2, 5, 1]
    batch = random_batch(lengths, 3)
    cell(batch)["sentence_embedding"].square().sum().backward()
    together = [parameter.grad.clone() for parameter in cell.parameters()]
    cell.zero_grad()
    for row, length in enumerate(lengths):
        alone = {key: value[row : row + 1] for key, value in batch.items()}
        alone = {key: value[:, :length] if value.ndim > 1 else value for key, value in alone.items()}
        cell(alone)["sentence_embedding"].square().sum().backward()
    for mine, parameter in zip(together, cell.parameters(), strict=True):
        assert torch.allclose(mine, parameter.grad, atol=1e-6)


def test_peephole_lstm_keeps_full_precision_under_autocast(tiny_vectors):
    encoder = lstm_encoder(tiny_vectors, hidden=HIDDEN, peepholes=True, device="cpu")
    assert np.array_equal(encode_texts(encoder, TEXTS, precision="bf16"), encode_texts(encoder, TEXTS))


def test_lstm_encoder_reads_the_state_at_the_last_real_token(encoder, peepholes):
    longest = max(TEXTS, key=len)
    for text in ("dog", "a man plays guitar ."):
        ids = encoder[0].tokenizer.tokenize(text)
        words = encoder[0].emb_layer(torch.tensor(ids)).detach()
        if peepholes:
            expected = printed_last_state(encoder[1], words.numpy())
        else:
            stock = nn.LSTM(8, HIDDEN, batch_first=True)
            stock.load_state_dict(encoder[1].encoder.state_dict())
            expected = stock(words[None])[1][0][0, 0].detach().numpy()
        assert np.abs(encoder.encode([longest, text])[1] - expected).max() < 1e-5


def test_lstm_encoder_gives_every_text_a_vector(encoder):
    vectors = encode_texts(encoder, [*TEXTS, "   "])
    assert vectors.shape == (7, HIDDEN) == (7, encoder.get_embedding_dimension())
    assert np.isfinite(vectors).all()
    assert np.abs(vectors[2]).max() > 0  # the empty text


def test_lstm_encoder_does_not_depend_on_batch_mates(encoder):
    together = encode_texts(encoder, TEXTS)
    assert np.abs(together - np.stack([encode_texts(encoder, [text])[0] for text in TEXTS])).max() < 1e-6
    assert np.abs(together - encoder.encode(TEXTS)).max() < 1e-6


def test_lstm_encoder_round_trips_through_a_folder(encoder, peepholes, tmp_path):
    encoder.prompts["likewise"] = "a "
    encoder.default_prompt_name = "likewise"
    encoder.save(str(tmp_path / "saved"), create_model_card=False)
    assert not list((tmp_path / "saved").rglob("*.bin"))
    loaded = [load_encoder(tmp_path / "saved", device="cpu")]
    # A class from outside sentence-transformers is loaded there only if its code is trusted.
    loaded.append(
        SentenceTransformer(str(tmp_path / "saved"), device="cpu", trust_remote_code=True)
        if peepholes
        else SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    )
    for again in loaded:
        assert np.abs(again.encode(TEXTS) - encoder.encode(TEXTS)).max() < 1e-6
        assert again[0].emb_layer.weight.requires_grad
        assert again.max_seq_length == 400
        assert again.prompts == encoder.prompts


def test_lstm_encoder_without_peepholes_is_saved_as_stock_modules(tiny_vectors, tmp_path):
    lstm_encoder(tiny_vectors, hidden=HIDDEN, device="cpu").save(str(tmp_path), create_model_card=False)
    entries = json.loads((tmp_path / "modules.json").read_text())
    assert [entry["type"].split(".")[0] for entry in entries] == ["sentence_transformers"] * 3


def test_load_encoder_runs_no_code_of_others(tiny_vectors, tmp_path):
    lstm_encoder(tiny_vectors, peepholes=True, device="cpu").save(str(tmp_path), create_model_card=False)
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(tmp_path), device="cpu")
    listed = tmp_path / "modules.json"
    listed.write_text(listed.read_text().replace("likewise.encoders.lstm.PeepholeLSTM", "elsewhere.Module"))
    with pytest.raises(ModelError, match=r"elsewhere\.Module"):
        load_encoder(tmp_path)


def test_load_encoder_reads_no_pickles(tiny_vectors, tmp_path):
    encoder = lstm_encoder(tiny_vectors, peepholes=True, device="cpu")
    encoder.save(str(tmp_path), create_model_card=False)
    weights = tmp_path / "1_PeepholeLSTM" / "model.safetensors"
    weights.unlink()
    with pytest.raises(ModelError, match=r"model\.safetensors is missing"):
        load_encoder(tmp_path)
    torch.save(encoder[1].state_dict(), weights.with_name("pytorch_model.bin"))
    with pytest.raises(ModelError, match="pickled weights"):
        load_encoder(tmp_path)


@pytest.mark.parametrize("train_vectors", [True, False])
def test_lstm_encoder_trains_word_vectors_only_if_told(tiny_vectors, peepholes, train_vectors):
    encoder = lstm_encoder(
        tiny_vectors, hidden=HIDDEN, peepholes=peepholes, train_vectors=train_vectors, device="cpu"
    )
    batch = TextFeatures(encoder).batch(["a dog", "the old woman sleeps"])
    encoder(batch)["sentence_embedding"].square().sum().backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in encoder[1].parameters())
    table = encoder[0].emb_layer.weight
    if not train_vectors:
        assert table.grad is None
        return
    touched = table.grad.abs().sum(dim=1).nonzero().flatten().tolist()
    assert touched == batch["input_ids"][batch["attention_mask"].bool()].unique().tolist()


def test_lstm_encoder_follows_its_seed(tiny_vectors, peepholes):
    def start(seed: int, deviation: float | None) -> torch.Tensor:
        built = lstm_encoder(
            tiny_vectors, peepholes=peepholes, seed=seed, start_deviation=deviation, device="cpu"
        )
        return torch.cat([value.flatten() for value in built.state_dict().values()])

    for deviation in (None, 0.1):
        assert torch.equal(start(1, deviation), start(1, deviation))
        assert not torch.equal(start(1, deviation), start(2, deviation))


def test_lstm_encoder_starts_from_a_truncated_normal(tiny_vectors, peepholes):
    encoder = lstm_encoder(tiny_vectors, hidden=50, peepholes=peepholes, start_deviation=0.1, device="cpu")
    for name, parameter in encoder[1].named_parameters():
        if "bias" in name:
            assert not parameter.any()
        else:
            assert 0.1 < parameter.abs().max() <= 0.2
            assert abs(parameter.mean()) < 0.03
            assert 0.07 < parameter.std() < 0.1  # cut at two deviations, a normal spreads 0.88 of them
    with pytest.raises(UsageError, match="above 0"):
        lstm_encoder(tiny_vectors, peepholes=peepholes, start_deviation=0.0)


def test_lstm_encoder_words_without_a_vector_are_unknown(tiny_vectors):
    encoder = lstm_encoder(tiny_vectors, words={"a", "dog"}, max_length=4, device="cpu")
    tokens = encoder[0].tokenizer.tokenizer.convert_ids_to_tokens
    assert tokens(encoder.preprocess(["A cat"])["input_ids"][0]) == [BEGIN, "a", UNKNOWN, END]
    assert encoder.preprocess(["a dog a dog a dog"])["input_ids"].shape == (1, 4)


def test_lstm_without_packing_gives_the_stock_states_and_gradients(tiny_vectors):
    encoder = lstm_encoder(tiny_vectors, hidden=HIDDEN, device="cpu")
    stock = LSTM(8, HIDDEN, bidirectional=False)
    stock.load_state_dict(encoder[1].state_dict())
    vectors = []
    for module in (stock, encoder[1]):
        batch = Pooling(HIDDEN, "lasttoken")(module(random_batch([3, 6, 1], 8)))
        batch["sentence_embedding"].square().sum().backward()
        vectors.append(batch["sentence_embedding"])
    assert torch.allclose(*vectors, atol=1e-6)
    for mine, theirs in zip(encoder[1].parameters(), stock.parameters(), strict=True):
        assert torch.allclose(mine.grad, theirs.grad, atol=1e-6)
