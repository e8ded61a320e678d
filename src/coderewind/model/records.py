"""The ledger's records, and the checkpoints that a timeline makes of them.

A record is one fact and never changes. Its JSON form is the `data` dictionary; unknown keys of
a newer version are kept. Everything read from a ledger is validated here, because a ledger can
come with a hostile repository.
"""

from __future__ import annotations

from coderewind.model.paths import is_safe, to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

VERSION = 1

# Operations. "checkpoint" adds a state; the next four move the worktree and carry a rescue.
CHECKPOINT = "checkpoint"
RESTORE = "restore"
UNDO = "undo"
REDO = "redo"
UNDO_RESTORE = "undo-restore"
ABORT = "abort"
LABEL = "label"
PIN = "pin"
UNPIN = "unpin"
BIND = "bind"
PRUNE = "prune"
IMPORT = "import"  # a point of another program, taken over; the worktree did not stand there
TRANSCRIPT = "transcript"  # a part of an agent's session file
CONVERSATION = "conversation"  # a conversation was put back, as a new session
NAVIGATE = "navigate"  # a conversation was put back inside its own running session
STATE = "state"  # what a move really left behind, when that is not its target entirely
MOVES = (RESTORE, UNDO, REDO, UNDO_RESTORE)

# A record with this fact set no longer keeps its snapshot, and is no longer listed.
PRUNED = "pruned"

_MOST = 1 << 53  # what JSON readers of other languages take as a whole number, too


class Anchor:
    """Where a conversation stood, in the agent's own ids. Empty text means unknown."""

    __slots__ = (
        "agent",
        "entry",
        "parent_session",
        "prompt",
        "prompt_id",
        "session",
        "tool",
        "tool_call",
        "transcript",
    )

    def __init__(
        self,
        agent: str = "",
        session: str = "",
        entry: str = "",
        prompt_id: str = "",
        tool_call: str = "",
        parent_session: str = "",
        prompt: str = "",
        tool: str = "",
        transcript: str = "",
    ) -> None:
        self.agent = agent
        self.session = session
        self.entry = entry
        self.prompt_id = prompt_id
        self.tool_call = tool_call
        self.parent_session = parent_session
        self.prompt = prompt
        self.tool = tool
        self.transcript = transcript

    def as_json(self) -> dict[str, str]:
        return {name: value for name in self.__slots__ if (value := getattr(self, name))}

    @classmethod
    def from_json(cls, data: object) -> Anchor:
        anchor = cls()
        if isinstance(data, dict):
            for name in cls.__slots__:
                value = data.get(name)
                if isinstance(value, str):
                    setattr(anchor, name, value)
        return anchor


class Record:
    """One link of the ledger chain."""

    __slots__ = ("commit", "data", "id", "op", "time")

    def __init__(self, data: dict[str, object], commit: str = "") -> None:
        self.data = data
        self.commit = commit
        self.id = _text(data, "id")
        self.op = _text(data, "op")
        self.time = _whole(data, "time")

    def text(self, key: str) -> str:
        return _text(self.data, key)

    def oid(self, key: str) -> str:
        """An object's id in hexadecimal, "" when it is none."""
        value = _text(self.data, key)
        return value if is_oid(value) else ""

    def whole(self, key: str) -> int:
        return _whole(self.data, key)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.data.get(key)
        if not isinstance(value, list):
            return ()
        return tuple(item for item in value if isinstance(item, str))

    def section(self, key: str) -> dict[str, object]:
        value = self.data.get(key)
        return value if isinstance(value, dict) else {}


class Checkpoint:
    """A moment bound to a snapshot: what a user picks. Built by the timeline, never stored."""

    __slots__ = (
        "_record",
        "anchor",
        "at",
        "branch",
        "coverage",
        "current",
        "files",
        "flags",
        "git",
        "head",
        "id",
        "kind",
        "label",
        "moved_to",
        "number",
        "parent",
        "pinned",
        "reused",
        "snapshot",
        "staged",
        "stood",
        "time",
        "worktree",
    )

    anchor: Anchor
    at: str  # where it stands in its conversation: agents/adapter.py
    branch: str
    coverage: str
    files: int
    flags: tuple[str, ...]
    git: dict[str, object]  # branches and stashes, before a destructive command
    head: str
    kind: str
    label: str
    moved_to: str  # a rescue knows the snapshot that the worktree was moved to
    parent: str
    snapshot: str
    staged: str
    stood: dict[bytes, int]  # left-out folders that a move found in its place, with their modes

    def __init__(self, record: Record, worktree: str = "main") -> None:
        self.id = record.id
        self.number = record.whole("number")
        self.time = record.time
        self.worktree = worktree
        self.pinned = False
        self.current = False
        self.reused = False
        self._record = record

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """What else the record says is read when it is asked for: of ten thousand checkpoints
            a list shows thirty."""
            if name not in _LATER:
                raise AttributeError(name)
            value = _LATER[name](self._record)
            setattr(self, name, value)
            return value

    def as_json(self) -> dict[str, object]:
        anchor = self.anchor
        return {
            "id": self.id,
            "number": self.number,
            "time": self.time / 1000,
            "kind": self.kind,
            "label": self.label,
            "prompt": anchor.prompt,
            "agent": anchor.agent,
            "session": anchor.session,
            "entry": anchor.entry,
            "files": self.files,
            "pinned": self.pinned,
            "snapshot": self.snapshot,
            "current": self.current,
            "flags": list(self.flags),
            "head": self.head,
            "branch": self.branch,
            "worktree": self.worktree,
        }


_LATER: dict[str, Callable[[Record], object]] = {
    "anchor": lambda record: Anchor.from_json(record.data.get("anchor")),
    "at": lambda record: record.text("at"),
    "branch": lambda record: record.text("branch"),
    "coverage": lambda record: record.oid("coverage"),
    "files": lambda record: record.whole("files"),
    "flags": lambda record: record.texts("flags"),
    "git": lambda record: record.section("git"),
    "head": lambda record: record.oid("head"),
    "kind": lambda record: record.text("kind") or "save",
    "label": lambda record: record.text("label"),
    "moved_to": lambda record: record.oid("state") if record.op in MOVES else "",
    "parent": lambda record: record.text("parent"),
    "snapshot": lambda record: record.oid("snapshot"),
    "staged": lambda record: record.oid("staged"),
    "stood": lambda record: _stood(record),
}


def _stood(record: Record) -> dict[bytes, int]:
    found = {}
    for text, perm in record.section("stood").items():
        path = to_bytes(text)
        if is_safe(path) and isinstance(perm, int) and 0 <= perm <= 0o7777:
            found[path] = perm
    return found


def is_oid(text: str) -> bool:
    """Whether a text is an object's full id in hexadecimal."""
    return len(text) in (40, 64) and not text.strip("0123456789abcdef")


def _text(data: dict[str, object], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def _whole(data: dict[str, object], key: str) -> int:
    value = data.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value < _MOST else 0
