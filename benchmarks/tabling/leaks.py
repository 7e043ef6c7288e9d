"""Leak filters: what they leave of STS-B and SICK, and what test sets share with what is left."""

from __future__ import annotations

from tabling.common import markdown, read

SPLITS = {
    "stsb/train": "STS-B train",
    "sick/train": "SICK train",
    "train": "**both, to train on**",
    "stsb/dev": "STS-B dev",
    "sick/trial": "SICK trial",
    "dev": "**both, to select on**",
}


def splits() -> str:
    """Rows of every split, after the filter by pair and after the strict one."""
    found = read("leaks")["splits"]
    keys = ("rows", "by_pair", "with_text", "near_copies", "strict")
    header = [
        "",
        "rows",
        "left by `pair`",
        "of these share a text",
        "are near-duplicates",
        "left by `strict`",
    ]
    return markdown(header, [[label, *(f"{found[n][k]:,}" for k in keys)] for n, label in SPLITS.items()])


def tests() -> str:
    """Rows of every test set that share a text with the training rows which the filter by pair leaves."""
    rows = [
        [
            "**all**" if entry["name"] == "sts7" else entry["name"],
            f"{entry['rows']:,}",
            f"{entry['with_text']:,} ({100 * entry['share_with_text']:.1f} %)",
            f"{entry['with_all_texts']:,}",
            f"{entry['near_copies']:,}",
        ]
        for entry in read("leaks")["tests"]
    ]
    return markdown(["test set", "rows", "share a text", "share both texts", "have a near-duplicate"], rows)
