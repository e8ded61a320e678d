"""What pi-rewind-hook 2 wrote into a session: which commit holds the files of which entry.

Three kinds of custom entries, of version 2: `rewind-turn` {snapshots, bindings}, `rewind-op`
{snapshots, bindings?, current?, undo?} and `rewind-fork-pending` {current, undo?}; a binding is
[entry, index into snapshots], current and undo of an op are such indexes. Only ever read.
Anything can be in a session file, so everything is checked.
"""

from __future__ import annotations

from coderewind.agents.branched import Tree, is_prompt, words_of
from coderewind.agents.transcript import row_of, rows_of
from coderewind.model.records import is_oid
from coderewind.store.refs import PI_REWIND_STORE

TURN = "rewind-turn"
OP = "rewind-op"
FORK = "rewind-fork-pending"
REF = PI_REWIND_STORE
APART = "rewind:"  # before our own snapshots' names, where git would find their commits
_VERSION = 2
_MARK = b'"rewind-'
_MOST = 100_000  # of bindings in one session


class Point:
    """The files of one entry, as a commit in the user's repository."""

    __slots__ = ("commit", "entry", "file", "label", "prompt", "session", "time")

    def __init__(self, entry: str, commit: str, session: str, file: str) -> None:
        self.entry = entry
        self.commit = commit
        self.session = session
        self.file = file
        self.time = ""  # as the session says it
        self.prompt = ""  # of a user entry, its words; else those before it
        self.label = ""

    def as_json(self) -> dict[str, object]:
        return {"commit": self.commit, "entry": self.entry, "session": self.session,
                "time": self.time, "prompt": self.prompt, "label": self.label}

    @property
    def is_prompt(self) -> bool:
        return self.label == "prompt"


class Found:
    """What one session file says."""

    __slots__ = ("bindings", "current", "pending", "undo")

    def __init__(self) -> None:
        self.bindings: dict[str, str] = {}  # entry -> commit; the newest word counts
        self.current = ""
        self.undo = ""
        self.pending: tuple[str, str] = ("", "")  # handed to the session that is forked off

    def commits(self) -> set[str]:
        return {commit for commit in (*self.bindings.values(), self.current, self.undo,
                                      *self.pending) if commit}


def read(data: bytes) -> Found:
    """Everything that a session file says of snapshots."""
    found = Found()
    if _MARK not in data:
        return found
    for line in data.split(b"\n"):
        row = row_of(line) if _MARK in line else None
        if row is not None and row.get("type") == "custom" and isinstance(row.get("data"), dict):
            _take(found, row)
    return found


def points(data: bytes, session: str, file: str) -> list[Point]:
    """The bound entries of a session that are in its tree, in the order of the file."""
    bindings = read(data).bindings
    if not bindings:
        return []
    tree = Tree(rows_of(data))
    made = []
    for entry in tree.order:
        commit = bindings.get(entry)
        if commit is None:
            continue
        point = Point(entry, commit, session, file)
        row = tree.rows[entry]
        stamp = row.get("timestamp")
        point.time = stamp if isinstance(stamp, str) else ""
        before = next((up for up in reversed(tree.path(entry)) if is_prompt(tree.rows[up])), "")
        point.prompt = words_of(tree.rows[before]) if before else ""
        point.label = "prompt" if before == entry else _kind(row)
        made.append(point)
    return made


def _take(found: Found, row: dict[str, object]) -> None:
    data = row["data"]
    assert isinstance(data, dict)
    if data.get("v") != _VERSION:
        return
    kind = row.get("customType")
    if kind == FORK:
        found.pending = (_oid(data.get("current")), _oid(data.get("undo")))
        return
    snapshots = data.get("snapshots")
    if kind not in (TURN, OP) or not isinstance(snapshots, list):
        return
    bindings = data.get("bindings")
    for binding in bindings if isinstance(bindings, list) else []:
        if isinstance(binding, list) and len(binding) == 2 and isinstance(binding[0], str):
            commit = _at(snapshots, binding[1])
            if commit and len(found.bindings) < _MOST:
                found.bindings[binding[0]] = commit
    if kind == OP:
        found.current = _at(snapshots, data.get("current")) or found.current
        found.undo = _at(snapshots, data.get("undo")) or found.undo


def _at(snapshots: list[object], index: object) -> str:
    if type(index) is not int or not 0 <= index < len(snapshots):
        return ""
    return _oid(snapshots[index])


def _oid(value: object) -> str:
    name = value.removeprefix(APART) if isinstance(value, str) else ""
    return name if is_oid(name) else ""


def _kind(row: dict[str, object]) -> str:
    message = row.get("message")
    role = message.get("role") if isinstance(message, dict) else ""
    return "answer" if role == "assistant" else str(row.get("type"))[:30].replace("_", " ")
