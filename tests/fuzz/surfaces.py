"""Every surface that is fuzzed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from hypothesis import strategies as st

from tests.fuzz.arena import Case
from tests.fuzz.arguments import argument_cases
from tests.fuzz.documents import experiment_cases, recipe_cases, suite_cases
from tests.fuzz.folders import DOCUMENT, settings_cases, weights_cases
from tests.fuzz.hunting import Surface
from tests.fuzz.tables import WRITERS, link_cases, table_cases

_TABLES = ("data check", "data split", "audit", "score", "explain", "classify", "train --dry-run")
_MODELS = ("score", "classify", "explain")
_NETWORK = ("config.json",)
_MODULES = (
    *("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
    *("1_Pooling/config.json", "2_Dense/config.json", "3_Dense/config.json"),
    *("likewise/encoder/modules.json", "likewise/encoder/config_sentence_transformers.json"),
    "likewise/encoder/1_Pooling/config.json",
)
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def _table(ending: str, models: Path) -> st.SearchStrategy[Case]:
    return table_cases(ending)


def _compressed(models: Path) -> st.SearchStrategy[Case]:
    return st.sampled_from(sorted(WRITERS)).flatmap(lambda ending: table_cases(ending, compressed=True))


def _settings(wanted: tuple[str, ...], models: Path) -> st.SearchStrategy[Case]:
    return settings_cases(models, wanted)


SURFACES = {
    surface.name: surface
    for surface in (
        Surface("CSV", _TABLES, partial(_table, ".csv")),
        Surface("TSV", _TABLES, partial(_table, ".tsv")),
        Surface("JSON lines", _TABLES, partial(_table, ".jsonl")),
        Surface("parquet", _TABLES, partial(_table, ".parquet")),
        Surface("compressed tables", _TABLES, _compressed),
        Surface("links", ("explain --links",), lambda models: link_cases()),
        Surface(
            "words of the command line",
            ("score", "classify", "explain", "data check", "data split", "audit", "train --dry-run"),
            lambda models: argument_cases(),
        ),
        Surface("recipe", ("train --dry-run",), lambda models: recipe_cases()),
        Surface("suite", ("evaluate --suite", "audit --against"), lambda models: suite_cases()),
        Surface("experiment", ("experiment",), lambda models: experiment_cases()),
        Surface("model.json", _MODELS, partial(_settings, (DOCUMENT,))),
        Surface("network settings", _MODELS, partial(_settings, _NETWORK)),
        Surface("module settings", _MODELS, partial(_settings, _MODULES)),
        Surface("tokenizer", _MODELS, partial(_settings, _TOKENIZER)),
        Surface("safetensors", _MODELS[:2], weights_cases),
    )
}
