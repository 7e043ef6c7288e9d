"""`likewise cache`: what is kept of frozen encoders' vectors, and away with it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from likewise.cli import options
from likewise.cli.console import out, quiet_libraries
from likewise.wording import counted

app = typer.Typer(help="Vectors of frozen encoders that are kept on disk.", no_args_is_help=True)

CacheFolder = Annotated[
    Path | None,
    typer.Option("--folder", help="The cache's folder; default: LIKEWISE_CACHE, or the user's cache."),
]


@app.command("info")
def info(folder: CacheFolder = None, as_json: options.Json = False) -> None:
    """Show which encoders have vectors here, how many texts, how much room.

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
    """Remove all kept vectors; they are made again when a run needs them.

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
