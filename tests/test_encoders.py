"""Every encoder by table: finite, independent of batch mates, and a sentence-transformers folder."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from likewise.data.keys import text_key
from likewise.encoders.features import TextFeatures
from likewise.encoders.resolve import resolve
from likewise.encoders.sentence import load_encoder, transformer_layers, without_normalisation
from likewise.encoders.vectors import VectorCache, encode_texts
from likewise.encoders.words import average_encoder, bilstm_encoder, distinct_words, load_vectors
from likewise.errors import DataError, ModelError, UsageError

TEXTS = [
    "a man plays guitar .",
    "dog",
    "the old woman never reads a new book in the park near the river , not today !",
    "zzz qqq",
    "two children",
    "a man plays guitar .",
]
KINDS = ["transformer", "bilstm", "average"]


@pytest.fixture(scope="module", params=KINDS)
def encoder(request, tiny_encoder, tiny_vectors) -> SentenceTransformer:
    if request.param == "transformer":
        return load_encoder(tiny_encoder, device="cpu")
    build = bilstm_encoder if request.param == "bilstm" else average_encoder
    options = {"hidden": 12} if request.param == "bilstm" else {}
    return build(tiny_vectors, device="cpu", **options)


def test_encoder_gives_finite_vectors_also_for_unknown_and_empty_text(encoder):
    vectors = encode_texts(encoder, [*TEXTS, "", "   "])
    assert vectors.shape == (8, encoder.get_embedding_dimension())
    assert np.isfinite(vectors).all()


def test_encoder_does_not_depend_on_batch_mates(encoder):
    together = encode_texts(encoder, TEXTS)
    alone = np.stack([encode_texts(encoder, [text])[0] for text in TEXTS])
    assert np.abs(together - alone).max() < 1e-5


def test_encoder_agrees_with_sentence_transformers_own_encode(encoder):
    assert np.abs(encode_texts(encoder, TEXTS) - encoder.encode(TEXTS)).max() < 1e-5


def test_encoder_round_trips_through_a_plain_sentence_transformers_folder(encoder, tmp_path):
    encoder.save(str(tmp_path / "saved"), create_model_card=False)
    again = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert np.abs(again.encode(TEXTS) - encoder.encode(TEXTS)).max() < 1e-6
    assert not list((tmp_path / "saved").rglob("*.bin"))


def test_features_pad_like_the_encoder_itself(encoder):
    features = TextFeatures(encoder)
    mine, theirs = features.batch(TEXTS), encoder.preprocess(TEXTS)
    for key, value in theirs.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(mine[key], value), key


def test_encode_texts_encodes_each_distinct_text_once(encoder):
    seen = []
    encode_texts(encoder, TEXTS * 3, progress=seen.append)
    assert sum(seen) == len(set(TEXTS))


def test_bilstm_words_can_be_limited_to_the_data(tiny_vectors):
    words, table = load_vectors(tiny_vectors, words=distinct_words(["A man, a DOG!"]))
    assert sorted(words) == ["!", ",", "a", "dog", "man"]
    assert table.shape == (5, 8)


def test_load_vectors_reads_text_files_with_and_without_a_header(tmp_path):
    (tmp_path / "glove.txt").write_text("man 1 2\ndog 3 4\n", encoding="utf8")
    (tmp_path / "fast.vec").write_text("2 2\nman 1 2\ndog 3 4\n", encoding="utf8")
    for name in ("glove.txt", "fast.vec"):
        words, table = load_vectors(tmp_path / name)
        assert words == ["man", "dog"]
        assert table.tolist() == [[1, 2], [3, 4]]
    (tmp_path / "bad.txt").write_text("man 1 2\ndog 3\n", encoding="utf8")
    with pytest.raises(DataError, match=r"bad\.txt:2: this line has 1 number instead of 2"):
        load_vectors(tmp_path / "bad.txt")
    with pytest.raises(UsageError, match="no such word vectors"):
        load_vectors(tmp_path / "none.txt")


def test_transformer_layers_are_found_from_bottom_to_top(tiny_encoder):
    layers = transformer_layers(load_encoder(tiny_encoder, device="cpu"))
    assert [layer.rstrip(".").rpartition(".")[2] for layer in layers] == ["0", "1"]


def test_plain_transformers_folder_gets_mean_pooling(tiny_encoder):
    encoder = load_encoder(tiny_encoder.parent / "bert", device="cpu")
    assert np.abs(encoder.encode(TEXTS) - load_encoder(tiny_encoder, device="cpu").encode(TEXTS)).max() < 1e-5


@pytest.mark.parametrize("mode", ["max", "cls"])
def test_pooling_is_taken_from_the_checkpoint(tiny_encoder, tmp_path, mode):
    from sentence_transformers.sentence_transformer.modules import Pooling

    source = load_encoder(tiny_encoder, device="cpu")
    SentenceTransformer(modules=[source[0], Pooling(32, mode)], device="cpu").save(str(tmp_path / mode))
    found = load_encoder(tmp_path / mode, device="cpu")
    assert found[1].pooling_mode == mode
    assert np.abs(encode_texts(found, TEXTS) - found.encode(TEXTS)).max() < 1e-5


def test_without_normalisation_leaves_cosines_alone(minilm):
    encoder = load_encoder(minilm, device="cpu")
    bare = without_normalisation(encoder)
    unit, free = encoder.encode(TEXTS[:3]), bare.encode(TEXTS[:3])
    assert not np.allclose(np.linalg.norm(free, axis=1), 1)
    assert np.allclose(free / np.linalg.norm(free, axis=1, keepdims=True), unit, atol=1e-6)


@pytest.mark.parametrize("name", ["./absent", "absent", "/nowhere/at/all"])
def test_resolve_names_an_absent_folder(name):
    with pytest.raises(ModelError, match="no such model folder"):
        resolve(name)


def test_resolve_refuses_a_folder_that_is_no_model(tmp_path):
    with pytest.raises(ModelError, match="is not a model folder"):
        resolve(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ModelError, match="is a file"):
        resolve(tmp_path / "file")


def test_load_encoder_reports_damage_in_one_line(tiny_encoder, tmp_path):
    import shutil

    shutil.copytree(tiny_encoder, tmp_path / "broken")
    weights = next((tmp_path / "broken").rglob("model.safetensors"))
    weights.write_bytes(weights.read_bytes()[:2000])
    with pytest.raises(ModelError, match="damaged or incomplete") as caught:
        load_encoder(tmp_path / "broken")
    assert "\n" not in str(caught.value)


def test_vector_cache_stays_bounded():
    cache = VectorCache(capacity=3)
    for start in range(5):
        texts = [f"t{start}", f"t{start + 1}"]
        new = cache.missing(texts)
        cache.put(new, np.ones((len(new), 2), dtype=np.float32) * start)
        assert cache.take(texts).shape == (2, 2)
    assert len(cache) == 3


def test_text_key_is_the_pinned_one():
    assert text_key("Ａ man’s  DOG, 3.2!") == "amansdog32"


def test_load_encoder_refuses_pickled_weights(tiny_encoder, tmp_path):
    import shutil

    from safetensors.torch import load_file

    shutil.copytree(tiny_encoder, tmp_path / "pickled")
    weights = next((tmp_path / "pickled").rglob("model.safetensors"))
    torch.save(load_file(weights), weights.with_name("pytorch_model.bin"))
    load_encoder(tmp_path / "pickled", device="cpu")  # safetensors beside it: the pickle is never opened
    weights.unlink()
    with pytest.raises(ModelError, match="pickled weights"):
        load_encoder(tmp_path / "pickled", device="cpu")


def test_bilstm_v1_padding_is_a_named_quirk(tiny_vectors):
    safe, quirk = (
        bilstm_encoder(tiny_vectors, hidden=12, padding=padding, device="cpu")
        for padding in ("safe", "infersent-v1")
    )
    short, long = "a dog", "a man plays guitar in the park"
    plain = safe.encode([short])[0]
    assert (plain < 0).any()
    assert np.abs(quirk.encode([short])[0] - plain).max() < 1e-6  # alone there is no padding
    assert np.abs(quirk.encode([short, long])[0] - np.maximum(plain, 0)).max() < 1e-6
