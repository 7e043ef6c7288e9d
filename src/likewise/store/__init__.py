"""Model folders. A model folder is a sentence-transformers folder with a folder `likewise/` in it.

    my-model/
      modules.json, model.safetensors, tokenizer…   loads anywhere with SentenceTransformer("my-model")
      likewise/model.json                           relations, objectives, recipe, versions, numbers
      likewise/heads.safetensors                    every trained head
      likewise/language.safetensors                 a multilingual model's language extractor, for probes
      likewise/matcher.safetensors, label_encoder/  of a model with label texts
      likewise/injection.safetensors                the heads of an encoder's phrase injection
      likewise/layers/                              instead of an encoder, if a function is the encoder
      README.md                                     a model card with the measured results

A joint model is a sequence classifier instead, which CrossEncoder and transformers load. Saving a folder
again with sentence-transformers drops `likewise/`.
"""

from __future__ import annotations

from likewise.store.saving import save_loaded, save_model

__all__ = ["save_loaded", "save_model"]
