"""The result file: what it was made with, one entry for each model, and parts that are added later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likewise.disk import write_json_aside
from likewise.versions import commit, machine, versions

# Numbers in one file come from one computer, one set of versions and one precision.
SAME = ("versions", "device", "matmul")


class Results:
    """A result file that grows model by model; what is in it stays, unless it is measured again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.document: dict[str, Any] = {"made_by": {}, "tasks": {}, "models": [], "ensembles": []}
        if path.is_file():
            self.document = json.loads(path.read_text(encoding="utf8"))

    def begin(self, device: str) -> None:
        """State what the numbers are made with; exit if those in the file were made with something else."""
        import torch

        made = {
            "commit": commit(),
            "versions": versions(),
            "machine": machine(),
            "device": device,
            "matmul": torch.get_float32_matmul_precision(),
        }
        known = self.document["made_by"]
        other = [name for name in SAME if known and known[name] != made[name]]
        if other:
            raise SystemExit(
                f"{self._path} holds results that were made with another {' and another '.join(other)}. "
                "Name another --output, or remove the file."
            )
        self.document["made_by"] = made

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        """Add what holds for every model."""
        self.document["tasks"] |= facts

    def add_model(self, entry: dict[str, Any]) -> None:
        """Add an entry, or its parts if the same model with the same seed is there already."""
        models = self.document["models"]
        places = [at for at, known in enumerate(models) if same(known, entry, "name", "seed")]
        if not places:
            models.append(entry)
        elif same(models[places[0]], entry, "files", "encoder"):
            models[places[0]] = joined(models[places[0]], entry)
        else:
            models[places[0]] = entry

    def add_ensembles(self, ensembles: list[dict[str, Any]]) -> None:
        """Add means of cosines; one of the same encoders takes the place of the former."""

        def key(one: Mapping[str, Any]) -> tuple[Any, ...]:
            return (*one["models"], one["standardised"])

        new = {key(one) for one in ensembles}
        kept = [one for one in self.document["ensembles"] if key(one) not in new]
        self.document["ensembles"] = [*kept, *ensembles]

    def write(self) -> None:
        """Write the file, whole."""
        write_json_aside(self._path, self.document)


def same(a: Mapping[str, Any], b: Mapping[str, Any], *keys: str) -> bool:
    """Whether two entries agree in these keys."""
    return all(a.get(key) == b.get(key) for key in keys)


def joined(known: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with the parts of two runs of one model; the newer numbers stay."""
    parts = known["parts"] | new["parts"]
    left_out = {name: why for name, why in (known["left_out"] | new["left_out"]).items() if name not in parts}
    seconds = known["seconds"] | new["seconds"]
    raw = new["raw"] or known["raw"]
    return {**new, "raw": raw, "parts": parts, "left_out": left_out, "seconds": seconds}


def read_entries(paths: list[Path]) -> list[dict[str, Any]]:
    """The models of several result files."""
    return [entry for path in paths for entry in json.loads(path.read_text(encoding="utf8"))["models"]]
