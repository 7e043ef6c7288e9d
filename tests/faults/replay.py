"""What the calls of a run must have left, played through on names alone: is any unseen, is any unsynced?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.faults.shim import Call
from tests.faults.trees import Tree, is_working


def uncounted(calls: Sequence[Call], before: Tree, after: Mapping[str, int]) -> list[str]:
    """Files that no counted call made, or that hold more than counted calls wrote; none if all are seen."""
    sizes: dict[str, float] = dict.fromkeys(before, float("inf"))
    for call in calls:
        if call.kind == "open":
            sizes.setdefault(call.path, 0)
        elif call.kind in ("write", "allocate", "truncate"):
            sizes[call.path] = sizes.get(call.path, 0) + call.size
        elif call.kind == "link":
            sizes[call.to] = sizes.get(call.path, 0)
        elif call.kind == "symlink":
            sizes[call.path] = 0
        else:
            _move(sizes, call)
    lines = [f"{name} was made" for name in sorted(after.keys() - sizes.keys())]
    known = sorted(after.keys() & sizes.keys())
    return lines + [f"{name} was written to" for name in known if after[name] > sizes[name]]


def unsynced(calls: Iterable[Call]) -> list[str]:
    """Files that took their name before what they hold was synced: a power cut may leave them empty."""
    written: dict[str, float] = {}
    found: dict[str, None] = {}
    for call in calls:
        if call.kind in ("write", "truncate"):
            written[call.path] = 0
        elif call.kind == "fsync":
            written.pop(call.path, None)
        elif call.kind in ("rename", "exchange"):
            loose = [name for name in written if name == call.path or name.startswith(f"{call.path}/")]
            named = (f"{call.to}{name[len(call.path) :]}" for name in loose)
            found |= dict.fromkeys(name for name in named if not is_working(name))
            _move(written, call)
        else:
            _move(written, call)
    return list(found)


def _move(files: dict[str, float], call: Call) -> None:
    """Carry out a call that moves or removes names."""
    if call.kind == "unlink":
        files.pop(call.path, None)
    if call.kind not in ("rename", "exchange"):
        return
    there, here = _taken(files, call.path), _taken(files, call.to)
    files |= {call.to + rest: value for rest, value in there.items()}
    if call.kind == "exchange":
        files |= {call.path + rest: value for rest, value in here.items()}


def _taken(files: dict[str, float], place: str) -> dict[str, float]:
    names = [name for name in files if name == place or name.startswith(f"{place}/")]
    return {name[len(place) :]: files.pop(name) for name in names}
