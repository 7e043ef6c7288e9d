"""A quicker start: no garbage is collected while libraries load for the first time."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# What takes seconds to import. Once it is there, nothing is gained.
_HEAVY = "sentence_transformers"


@contextmanager
def importing() -> Iterator[None]:
    """While libraries load for the first time, collect no garbage: they make objects that stay."""
    if _HEAVY in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
