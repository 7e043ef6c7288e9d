"""Split off rows that share no text with the others, also where shared texts connect all rows.

`splits.split_rows` moves whole groups of connected rows. Where one group holds most rows, as among captions
that stand in many pairs, no group can be moved. Here a group that is larger than the part is cut into regions
of connected texts. Some regions go to the part, and rows that join a text of the part to a text of the rest
are left out of both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from likewise.data.keys import text_key
from likewise.data.splits import check_enough, label_counts, text_groups
from likewise.errors import DataError
from likewise.records import Record

# A region of a large group has at most this share of the part's rows, so that the part has many of them.
_REGION = 0.1
# Smaller regions have more rows on their border than inside.
_FEWEST = 10


def split_by_text(records: Sequence[Record], share: float, seed: int) -> tuple[set[int], set[int]]:
    """Row numbers of a part of about `share`, and of the rows that are left out of both sides.

    No text of the part occurs in the rows that remain. A region is taken if it leaves out no more rows than
    it adds, and if every label keeps a row to learn from.
    """
    check_enough(records)
    rng = np.random.default_rng([seed, len(records)])
    wanted = max(1, round(len(records) * share))
    regions = _regions(records, wanted, rng)
    touching: dict[int, list[int]] = defaultdict(list)
    for row, joined in enumerate(regions):
        for region in joined:
            touching[region].append(row)
    left = label_counts(records)
    chosen: set[int] = set()
    part: set[int] = set()
    out: set[int] = set()
    for region in rng.permutation(sorted(touching)):
        rows = touching[region]
        added = {row for row in rows if regions[row] <= chosen | {region}}
        lost = [row for row in rows if row not in added and row not in out]
        taken = label_counts([records[row] for row in rows if row not in out])
        if len(part) + len(added) > wanted or len(lost) > len(added):
            continue
        if any(left[label] == count for label, count in taken.items()):
            continue
        left.subtract(taken)
        chosen.add(region)
        part |= added
        out -= added
        out.update(lost)
    if not part:
        raise DataError(
            f"the {len(records):,} rows share so many texts that none can be split off without leaving out "
            "more. Name a dev set in the recipe (stage.0.dev)."
        )
    return part, out


def _regions(records: Sequence[Record], wanted: int, rng: np.random.Generator) -> list[frozenset[int]]:
    """The regions of each row's texts.

    A group of at most `wanted` connected rows is a region. In larger groups, rows join the regions of their
    texts in random order, as long as no region grows too large.
    """
    whole = {row for group in text_groups(records) if len(group) <= wanted for row in group}
    most = max(round(wanted * _REGION), min(wanted, _FEWEST))
    numbers: dict[str, int] = {}
    ends = [
        sorted({numbers.setdefault(text_key(text), len(numbers)) for text in record.texts})
        for record in records
    ]
    parent, size = list(range(len(numbers))), [0] * len(numbers)

    def root(text: int) -> int:
        while parent[text] != text:
            parent[text] = parent[parent[text]]
            text = parent[text]
        return text

    for row in rng.permutation(len(records)):
        roots = {root(text) for text in ends[row]}
        rows = sum(size[one] for one in roots) + 1
        if row in whole or rows <= most:
            first = min(roots)
            for one in roots:
                parent[one] = first
            size[first] = rows
    return [frozenset(root(text) for text in texts) for texts in ends]
