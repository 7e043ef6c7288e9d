"""`likewise cache`: show and clear what is cached, such as the vectors of frozen encoders."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from likewise.cli import options
from likewise.cli.console import out, quiet_libraries
from likewise.wording import counted

app = typer.Typer(help="Show or clear the cached vectors of frozen encoders.", no_args_is_help=True)

CacheFolder = Annotated[
    Path | None,
    typer.Option("--folder", help="Cache folder. Defaults to LIKEWISE_CACHE, or to the user's cache folder."),
]


@app.command("info")
def info(folder: CacheFolder = None, as_json: options.Json = False) -> None:
    """List the encoders whose vectors are cached, with the number of texts and the disk space.

    Example: likewise cache info
    """
    quiet_libraries()
    from likewise.disk import to_json
    from likewise.encoders.cache import cache_entries, default_folder, prepared_bytes
    from likewise.evaluation.tables import align

    entries = cache_entries(folder)
    if as_json:
        out.print_json(to_json([asdict(entry) for entry in entries]))
        return
    out.print(f"{folder or default_folder()}: {counted(len(entries), 'encoder')}", markup=False)
    rows = [
        (entry.name, entry.fingerprint, str(entry.width), f"{entry.texts:,}", f"{entry.bytes / 2**20:,.1f}")
        for entry in entries
    ]
    if rows:
        table = align(("encoder", "fingerprint", "width", "texts", "MiB"), rows)
        out.print("\n".join(table), markup=False)
    if prepared := prepared_bytes(folder):
        out.print(f"prepared data: {prepared / 2**20:,.1f} MiB", markup=False)


@app.command("clear")
def clear(folder: CacheFolder = None, as_json: options.Json = False) -> None:
    """Remove everything from the cache. Runs compute it again when they need it.

    Example: likewise cache clear
    """
    quiet_libraries()
    from likewise.disk import to_json
    from likewise.encoders.cache import clear_cache

    freed = clear_cache(folder)
    if as_json:
        out.print_json(to_json({"freed_bytes": freed}))
        return
    out.print(f"freed {freed / 2**20:,.1f} MiB", markup=False)
