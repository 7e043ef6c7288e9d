"""Model folders: save and load. A folder is a sentence-transformers folder with `likewise/` beside it.

    my-model/
      modules.json, model.safetensors, tokenizer…   loads anywhere with SentenceTransformer("my-model")
      likewise/model.json                           relations, objectives, recipe, versions, numbers
      likewise/heads.safetensors                    every trained head
      likewise/language.safetensors                 a multilingual model's language extractor, for probes
      README.md                                     a model card written from what was measured

Saving the folder again through sentence-transformers drops `likewise/`.
"""

from __future__ import annotations

from likewise.store.loading import kind_of, load_joint_model, load_labels, load_model, raw_model
from likewise.store.saving import AnyModel, save_model
from likewise.versions import versions

__all__ = [
    "AnyModel",
    "kind_of",
    "load_joint_model",
    "load_labels",
    "load_model",
    "raw_model",
    "save_model",
    "versions",
]
