"""`likewise cache`: what is kept of frozen encoders' vectors, and away with it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from likewise.cli import options
from likewise.cli.console import quiet_libraries
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
    from likewise.data.aside import to_json
    from likewise.encoders.cache import cache_entries, default_folder, prepared_bytes
    from likewise.evaluation.tables import align

    entries = cache_entries(folder)
    if as_json:
        typer.echo(to_json([asdict(entry) for entry in entries], indent=2))
        return
    typer.echo(f"{folder or default_folder()}: {counted(len(entries), 'encoder')}")
    rows = [
        (entry.name, entry.fingerprint, str(entry.width), f"{entry.texts:,}", f"{entry.bytes / 2**20:,.1f}")
        for entry in entries
    ]
    if rows:
        typer.echo("\n".join(align(("encoder", "fingerprint", "width", "texts", "MiB"), rows)))
    if prepared := prepared_bytes(folder):
        typer.echo(f"prepared data: {prepared / 2**20:,.1f} MiB")


@app.command("clear")
def clear(folder: CacheFolder = None, as_json: options.Json = False) -> None:
    """Remove all kept vectors; they are made again when a run needs them.

    Example: likewise cache clear
    """
    quiet_libraries()
    from likewise.data.aside import to_json
    from likewise.encoders.cache import clear_cache

    freed = clear_cache(folder)
    typer.echo(to_json({"freed_bytes": freed}) if as_json else f"freed {freed / 2**20:,.1f} MiB")
