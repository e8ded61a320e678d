"""The entries that Rewind keeps in the session itself, where forks and copies carry them along.

Three custom types, with the fields that pi-rewind-hook 2 writes, so that either can go on from
the other. They name snapshots; the ledger is what holds them.
"""

from __future__ import annotations

import json
import os

from coderewind.agents.rewind_hook import APART

TURN = "rewind-turn"
OP = "rewind-op"
FORK = "rewind-fork-pending"
VERSION = 2
_TAIL = 1 << 18

Binding = tuple[str, str]  # an entry and its snapshot


def turn(bindings: list[Binding]) -> dict[str, object]:
    """What one prompt bound."""
    snapshots: list[str] = []
    return {"v": VERSION, "snapshots": snapshots, "bindings": _bind(snapshots, bindings)}


def op(current: str = "", undo: str = "", bindings: list[Binding] | None = None
       ) -> dict[str, object]:
    """Where the files stand after something, and the state that undo goes back to."""
    snapshots: list[str] = []
    data: dict[str, object] = {"v": VERSION, "snapshots": snapshots}
    if bindings:
        data["bindings"] = _bind(snapshots, bindings)
    for key, snapshot in (("current", current), ("undo", undo)):
        if snapshot:
            data[key] = _index(snapshots, snapshot)
    return data


def fork(current: str, undo: str = "") -> dict[str, object]:
    """What the session that is being forked off takes over."""
    return {"v": VERSION, "current": current, **({"undo": undo} if undo else {})}


def apart(data: dict[str, object]) -> dict[str, object]:
    """The same for a store in the repository."""
    found = dict(data)
    snapshots = data.get("snapshots")
    if isinstance(snapshots, list):
        found["snapshots"] = [APART + snapshot for snapshot in snapshots]
    for key in ("current", "undo"):
        if isinstance(snapshot := data.get(key), str):
            found[key] = APART + snapshot
    return found


def undo_in(data: dict[str, object]) -> str:
    """The snapshot that an op goes back to; '' when it has none."""
    snapshots, index = data.get("snapshots"), data.get("undo")
    if not isinstance(snapshots, list) or not isinstance(index, int) or isinstance(index, bool):
        return ""
    return _name(snapshots[index]) if 0 <= index < len(snapshots) else ""


def pending_fork(path: str) -> tuple[str, str]:
    """What a session handed over when it was forked: current snapshot and undo, '' for none."""
    for line in reversed(_tail(path)):
        if FORK.encode() not in line:
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(row, dict) or row.get("customType") != FORK:
            continue
        data = row.get("data")
        if isinstance(data, dict) and data.get("v") == VERSION:
            return _name(data.get("current")), _name(data.get("undo"))
    return "", ""


def _tail(path: str) -> list[bytes]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    with os.fdopen(fd, "rb") as file:
        try:
            file.seek(max(0, os.fstat(fd).st_size - _TAIL))
            return file.read().split(b"\n")
        except OSError:
            return []


def _bind(snapshots: list[str], bindings: list[Binding]) -> list[list[object]]:
    return [[entry, _index(snapshots, snapshot)] for entry, snapshot in bindings]


def _index(snapshots: list[str], snapshot: str) -> int:
    if snapshot not in snapshots:
        snapshots.append(snapshot)
    return snapshots.index(snapshot)


def _name(value: object) -> str:
    return value.removeprefix(APART) if isinstance(value, str) else ""
