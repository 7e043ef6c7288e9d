"""Model folders. A folder is a sentence-transformers folder with `likewise/` beside it.

    my-model/
      modules.json, model.safetensors, tokenizer…   loads anywhere with SentenceTransformer("my-model")
      likewise/model.json                           relations, objectives, recipe, versions, numbers
      likewise/heads.safetensors                    every trained head
      likewise/language.safetensors                 a multilingual model's language extractor, for probes
      likewise/matcher.safetensors, label_encoder/  of a model whose labels are texts
      likewise/injection.safetensors                the heads that an encoder was taught phrases by
      likewise/layers/                              instead of an encoder, where a function is the encoder
      README.md                                     a model card written from what was measured

A joint model is a sequence classifier instead, which CrossEncoder and transformers load. Saving a folder
again through sentence-transformers drops `likewise/`.
"""

from __future__ import annotations

from likewise.store.saving import save_model

__all__ = ["save_model"]
