"""Records as a test writes them: a ledger in a few words.

`Story` keeps what the engine would keep: numbers, parents, cursors and states, so that a test can
tell what happened and ask the timeline what it makes of it.
"""

from coderewind.model import records as ops
from coderewind.model.records import Record
from coderewind.timeline.build import Timeline

TIME = 1_700_000_000_000


def oid(name: str) -> str:
    """An object id that can be read: its name in hexadecimal."""
    return name.encode().hex().ljust(40, "0")


class Story:
    """What happened in a worktree, told in order."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._number = 0
        self._cursor = ""

    def save(self, name: str, tree: str = "", **facts: object) -> "Story":
        """A checkpoint with the id `name` of the files `tree`."""
        self._state(ops.CHECKPOINT, name, tree or name, {"kind": "save", **facts})
        return self

    def move(
        self, op: str, name: str, target: str, *, now: str, to: str, **facts: object
    ) -> "Story":
        """A move with the id `name`, from the files `now` to the files `to` of `target`."""
        self._state(op, name, now, {"kind": "restore", "target": target, "state": oid(to), **facts})
        return self

    def note(self, op: str, target: str, **facts: object) -> "Story":
        """Any other record."""
        self.records.append(Record({
            "id": f"n{len(self.records)}", "op": op, "target": target, "time": TIME,
            "cursor": self._cursor, "last": self._number, **facts,
        }))
        return self

    def restore(self, name: str, target: str, *, now: str, to: str, **facts: object) -> "Story":
        return self.move(ops.RESTORE, name, target, now=now, to=to, **facts)

    def undo(self, name: str, *, now: str) -> "Story":
        """As the engine does it: to the nearest earlier state that is not `now`."""
        timeline = self.timeline()
        for checkpoint, cursor in timeline.history(timeline.position.cursor):
            if checkpoint.snapshot != oid(now):
                to = bytes.fromhex(checkpoint.snapshot).rstrip(b"\0").decode()
                return self.move(ops.UNDO, name, checkpoint.id, now=now, to=to, cursor=cursor)
        raise AssertionError("there is nothing to undo")

    def redo(self, name: str, *, now: str) -> "Story":
        timeline = self.timeline()
        target = timeline.by_id[timeline.position.redo[-1]]
        to = bytes.fromhex(target.snapshot).rstrip(b"\0").decode()
        return self.move(ops.REDO, name, target.id, now=now, to=to, cursor=target.parent)

    def undo_restore(self, name: str, *, now: str) -> "Story":
        move = self.timeline().position.moves[-1]
        to = bytes.fromhex(move.record.text("snapshot")).rstrip(b"\0").decode()
        return self.move(ops.UNDO_RESTORE, name, move.record.id, now=now, to=to,
                         cursor=move.before.cursor)

    def _state(self, op: str, name: str, tree: str, facts: dict[str, object]) -> None:
        self._number += 1
        data = {
            "id": name, "op": op, "time": TIME + 1000 * self._number, "number": self._number,
            "last": self._number, "snapshot": oid(tree), "parent": self._cursor,
            "state": oid(tree), **facts,
        }
        self._cursor = str(data.setdefault("cursor", name))
        self.records.append(Record(data))

    def timeline(self) -> Timeline:
        return Timeline(self.records)


def undo_target(timeline: Timeline, now: str) -> str:
    """The checkpoint that undo would go back to from the files `now`, '' for none."""
    for checkpoint, _ in timeline.history(timeline.position.cursor):
        if checkpoint.snapshot != oid(now):
            return checkpoint.id
    return ""


def moves(timeline: Timeline) -> list[str]:
    """The moves that undo-restore can take back, the next one last."""
    return [move.record.id for move in timeline.position.moves]
