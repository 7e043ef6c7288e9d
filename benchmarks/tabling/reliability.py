"""What was done to commands and inputs, what came of it, and what safety costs."""

from __future__ import annotations

from typing import Any

from tabling.common import markdown, read

# Results from before the name `raw` call the raw encoder `default`.
_MODELS = dict.fromkeys(("raw", "default"), "all-MiniLM-L6-v2") | {"mpnet": "all-mpnet-base-v2"}
_KINDS = {"encoder": "one encoder", "two encoders": "a second encoder for labels"}


def score_file() -> str:
    """A large file of pairs, scored undisturbed and with two kills."""
    found = read("score-file")
    rows = [
        ["pairs, and distinct texts", f"{found['pairs']:,}, {found['distinct_texts']:,}"],
        ["pairs a second", f"{found['pairs_per_second']:.0f}"],
        ["largest memory of a run", f"{found['max_rss_mb']:,.0f} MB"],
        ["runs killed by SIGKILL, then resumed", str(len(found["kills"]))],
        ["each row once and in order", "yes" if found["each_row_once_in_order"] else "no"],
        ["rows written, and files left over", f"{found['rows_written']:,}, {len(found['left_over'])}"],
    ]
    if found["same_bytes"] is not None:
        rows.append(["same bytes as an undisturbed run", "yes" if found["same_bytes"] else "no"])
    return markdown(
        ["`benchmarks/score_file.py`", f"all-MiniLM-L6-v2, CPU, {found['threads']} threads"], rows
    )


def faults() -> str:
    """Every call of every command that changes a file: failed, and killed there."""
    found = read("faults")["scenarios"]
    rows = [
        [f"`{one['scenario']}`", *(_count(one[key]) for key in ("calls", "failures", "kills", "findings"))]
        for one in found
    ]
    rows.append(_total(found, ("calls", "failures", "kills", "findings")))
    return markdown(["command", "calls that change a file", "made to fail", "killed there", "damage"], rows)


def bad_inputs() -> str:
    """Damaged and hostile inputs by kind, and what the commands did with them."""
    document = read("fuzz")
    found = document["surfaces"]
    keys = ("examples", "accepted", "refused", "findings")
    rows = [
        [
            one["surface"],
            *(_count(one[key]) for key in keys),
            f"{one['longest_seconds']:.1f} s",
            f"{one['largest_growth_mb']:,.0f} MB",
        ]
        for one in found
    ]
    longest = max(one["longest_seconds"] for one in found)
    largest = max(one["largest_growth_mb"] for one in found)
    rows.append([*_total(found, keys), f"**{longest:.1f} s**", f"**{largest:,.0f} MB**"])
    header = ["input", "examples", "accepted", "refused", "findings", "longest", "most memory added"]
    return markdown(header, rows)


def verify_cost() -> str:
    """Seconds that a model needs to load, with and without verification."""
    rows = []
    for one in read("verify-cost")["models"]:
        seconds, per_gigabyte = one["seconds"], one["seconds per gigabyte"]["verification"]["wall"]
        rows.append(
            [
                f"{_MODELS[one['model']]}, {_KINDS[one['kind']]}",
                f"{one['gigabytes']:.2f} GB",
                *(f"{seconds[way]['wall']:.2f} s" for way in ("plain", "quick", "full")),
                f"{per_gigabyte:.2f} s",
            ]
        )
    header = ["model", "weights", "sentence-transformers", "`quick`", "default", "verification per GB"]
    return markdown(header, rows)


def sync_cost() -> str:
    """What syncing and hashing take of the demo's training."""
    found = read("sync-cost")

    def row(name: str, key: str) -> list[str]:
        of = found[key]
        return [name, *(f"{100 * of[which]:.1f} %" for which in ("median", "least", "most"))]

    rows = [
        row("time in `fsync`, of the training's processor time", "share"),
        row("hashing what was written, of the training's processor time", "hashing"),
        row("duration, synced against not synced", "ratio"),
        row("duration, synced against synced again (noise)", "control"),
    ]
    return markdown(["", "median", "least", "most"], rows)


def _count(value: Any) -> str:
    """A number, or the length of a list."""
    return f"{len(value) if isinstance(value, list) else value:,}"


def _total(found: list[dict[str, Any]], keys: tuple[str, ...]) -> list[str]:
    """The last row: sums."""
    sums = [sum(len(one[key]) if isinstance(one[key], list) else one[key] for one in found) for key in keys]
    return ["**all**", *(f"**{value:,}**" for value in sums)]
