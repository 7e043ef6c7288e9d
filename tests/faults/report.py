"""The counts of sweeps as one JSON file, scenario by scenario."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from filelock import FileLock

from tests.faults.sweep import Count


def read_counts(path: Path) -> dict[str, dict[str, Any]]:
    """The counts that a file holds, by scenario; none where there is no file."""
    if not path.is_file():
        return {}
    entries = json.loads(path.read_text(encoding="utf8"))["scenarios"]
    return {entry["scenario"]: entry for entry in entries}


def write_counts(path: Path, counts: Iterable[Count]) -> None:
    """Put counts into a file, each in place of what it held of the scenario; test processes take turns."""
    with FileLock(f"{path}.lock"):
        known = read_counts(path)
        known |= {count.scenario: count.to_dict() for count in counts}
        aside = path.with_name(path.name + ".partial")
        aside.write_text(
            json.dumps({"scenarios": list(known.values())}, indent=2, ensure_ascii=False) + "\n",
            encoding="utf8",
        )
        os.replace(aside, path)
    Path(f"{path}.lock").unlink(missing_ok=True)
