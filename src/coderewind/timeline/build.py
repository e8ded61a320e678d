"""Replay the ledger into checkpoints, and into where the worktree stands among them."""

from __future__ import annotations

from coderewind.model.records import (
    ABORT,
    BIND,
    CHECKPOINT,
    IMPORT,
    LABEL,
    MOVES,
    PIN,
    PRUNED,
    REDO,
    RESTORE,
    UNDO,
    UNPIN,
    Anchor,
    Checkpoint,
    Record,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Position:
    """Where the worktree stands, and what can be stepped to from there.

    `standing` is the checkpoint whose files the worktree was last made or seen equal to ("" after
    a partial restore). `cursor` is where its history goes on: that same checkpoint, or the restore
    that brought the worktree there. `undone` is the nearest state that undo left and `move` the
    move that undo-restore takes back next; the ones behind them are reached from there, so that
    the positions of a long ledger share them.
    """

    __slots__ = ("cursor", "move", "standing", "undone")

    def __init__(
        self,
        cursor: str = "",
        standing: str = "",
        undone: Undone | None = None,
        move: Move | None = None,
    ) -> None:
        self.cursor = cursor
        self.standing = standing
        self.undone = undone
        self.move = move

    @property
    def redo(self) -> tuple[str, ...]:
        """The states that undo left, nearest last."""
        found = []
        undone = self.undone
        while undone is not None:
            found.append(undone.id)
            undone = undone.older
        return tuple(reversed(found))

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves that can be taken back, nearest last."""
        found = []
        move = self.move
        while move is not None:
            found.append(move)
            move = move.before.move
        return tuple(reversed(found))


class Undone:
    """A state that undo left, or undo-restore: what redo goes to."""

    __slots__ = ("id", "of_restore", "older")

    def __init__(self, id: str, older: Undone | None, *, of_restore: bool = False) -> None:
        self.id = id
        self.older = older
        self.of_restore = of_restore  # a restore was taken back


class Move:
    """A restore, undo or redo, and the position it started from."""

    __slots__ = ("before", "record")

    def __init__(self, record: Record, before: Position) -> None:
        self.record = record
        self.before = before


class Timeline:
    """The checkpoints of one worktree, newest first."""

    def __init__(self, records: list[Record], worktree: str = "main") -> None:
        self.by_id: dict[str, Checkpoint] = {}
        self.records = records
        self.position = Position()
        self._restores: dict[str, Record] = {}
        self._moves: dict[str, Move] = {}
        self.named: set[str] = set()  # checkpoints that a user labelled
        self._taken_over: set[str] = set()  # another program's: the worktree was never seen there
        for record in records:
            self._replay(record, worktree)
        self.checkpoints = sorted(self.by_id.values(), key=lambda cp: cp.number, reverse=True)
        here = self.current
        if here is not None:
            here.current = True

    @property
    def seen(self) -> list[Checkpoint]:
        """The checkpoints of states that this worktree was in, newest first."""
        return [cp for cp in self.checkpoints if cp.id not in self._taken_over]

    @property
    def current(self) -> Checkpoint | None:
        """The checkpoint that the worktree was last known to stand at."""
        return self.by_id.get(self.position.standing)

    def history(self, cursor: str) -> Iterator[tuple[Checkpoint, str]]:
        """The states that led here, nearest first, each with the cursor that belongs to it."""
        lowest = 1 << 62
        while True:
            restore = self._restores.get(cursor)
            checkpoint = self.by_id.get(cursor) or self._below(lowest)
            if checkpoint is None or checkpoint.number >= lowest:
                return
            lowest = checkpoint.number
            if restore is not None:
                target = self.by_id.get(restore.text("target"))
                if target is not None:
                    yield target, cursor
                yield checkpoint, checkpoint.parent
            else:
                yield checkpoint, checkpoint.id
            cursor = checkpoint.parent

    def _below(self, number: int) -> Checkpoint | None:
        """Where history goes on when a link of it was pruned."""
        older = [cp for cp in self.by_id.values()
                 if cp.number < number and cp.id not in self._taken_over]
        return max(older, key=lambda cp: cp.number, default=None)

    def _replay(self, record: Record, worktree: str) -> None:
        if record.op == CHECKPOINT or record.op in MOVES:
            if record.oid("snapshot") and not record.data.get(PRUNED):
                self.by_id[record.id] = Checkpoint(record, worktree)
            if record.op == CHECKPOINT:
                if record.text("kind") == "save" and record.text("label"):
                    self.named.add(record.id)
                before = self.position
                self.position = Position(record.id, record.id, before.undone, before.move)
            else:
                self._move(record)
            return
        if record.op == IMPORT:
            if record.oid("snapshot") and not record.data.get(PRUNED):
                self.by_id[record.id] = Checkpoint(record, worktree)
                self._taken_over.add(record.id)
            return
        if record.op == ABORT:
            self._abort(record)
            return
        target = self.by_id.get(record.text("target"))
        if target is None:
            return
        if record.op == LABEL:
            target.label = record.text("label")
            (self.named.add if target.label else self.named.discard)(target.id)
        elif record.op == PIN:
            target.pinned = True
        elif record.op == UNPIN:
            target.pinned = False
        elif record.op == BIND:
            target.anchor = _merged(target.anchor, record)
            _rename(target, record)

    def _move(self, record: Record) -> None:
        """Replay a move; one that finishes an interrupted move counts as that move itself."""
        first = self._moves.get(record.text("continues")) or Move(record, self.position)
        self._moves[record.id] = self._moves[first.record.id] = first
        start, begun = first.before, first.record.id
        target, cursor = record.text("target"), record.text("cursor")
        if record.op == RESTORE:
            self._restores[begun] = record
            standing = "" if record.texts("paths") else target
            self.position = Position(begun, standing, None, first)
        elif record.op == UNDO:
            self.position = Position(cursor, target, Undone(begun, start.undone), first)
        elif record.op == REDO:
            undone = start.undone.older if start.undone else None
            self.position = Position(cursor, target, undone, first)
        elif target in self._moves:
            self._take_back(self._moves[target], begun)

    def _take_back(self, move: Move, rescue: str) -> None:
        """undo-restore: the position from before the move that is taken back."""
        was = move.before
        stood = self.by_id.get(was.standing)
        same = stood is not None and stood.snapshot == move.record.oid("snapshot")
        standing = was.standing if same else move.record.id
        # One restore after the other is taken back, and each can be redone.
        of_restore = move.record.op == RESTORE
        here = self.position.undone
        older = here if of_restore and here and here.of_restore else was.undone
        undone = Undone(rescue, older, of_restore=of_restore)
        self.position = Position(was.cursor, standing, undone, was.move)

    def _abort(self, record: Record) -> None:
        """A move that changed nothing."""
        move = self._moves.get(record.text("target"))
        if move is not None:
            self.position = move.before


def _rename(checkpoint: Checkpoint, record: Record) -> None:
    """A checkpoint that turned out to be more: the last change of a turn is the turn's end."""
    checkpoint.kind = record.text("kind") or checkpoint.kind
    checkpoint.label = record.text("label") or checkpoint.label
    checkpoint.at = record.text("at") or checkpoint.at
    checkpoint.files = record.whole("files") or checkpoint.files
    if "flags" in record.data:
        checkpoint.flags = record.texts("flags")


def _merged(anchor: Anchor, record: Record) -> Anchor:
    """A checkpoint's anchor with what became known of it later."""
    later = Anchor.from_json(record.data.get("anchor"))
    for name in Anchor.__slots__:
        if not getattr(later, name):
            setattr(later, name, getattr(anchor, name))
    return later
