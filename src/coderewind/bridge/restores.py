"""Moves of the files that a user chose inside the agent, and the one that takes the last one back.

Which state that is, the session's own entries say: two agents may work in one worktree, and the
newest move of the worktree may be the other one's.
"""

from __future__ import annotations

from coderewind.agents import adapter as at
from coderewind.agents.rewind_hook import Point
from coderewind.bridge import marks
from coderewind.bridge.bridge import Bridge
from coderewind.bridge.points import SETTLE, Place
from coderewind.engine import legacy
from coderewind.engine.moving import other_head
from coderewind.model.records import Checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.engine.moving import Outcome

UNDO = "Undo last file rewind"


class Moved:
    """Where the files stand now, and the snapshot that goes back; both in the session's terms.
    `record` is the move in the ledger, '' when no file had to be changed."""

    __slots__ = ("changes", "current", "record", "undo")

    def __init__(
        self, current: str, undo: str = "", *, record: str = "", changes: int = 0
    ) -> None:
        self.current = current
        self.undo = undo
        self.record = record
        self.changes = changes

    def op(self, bindings: list[marks.Binding] | None = None) -> dict[str, object]:
        return marks.op(self.current, self.undo, bindings)


def point_of(bridge: Bridge, entry: str) -> Checkpoint | Point | None:
    """The point of an entry: ours, or else the one that pi-rewind-hook made."""
    return bridge.points.find(entry) or bridge.points.older().get(entry)


def before_last(bridge: Bridge) -> Checkpoint | None:
    """The state before the last file rewind of this session, on whichever branch it was."""
    for entry in reversed(bridge.agent.entries()):
        if entry.custom == marks.OP and (snapshot := marks.undo_in(entry.data)):
            return bridge.points.with_snapshot(snapshot)
    return None


def title(bridge: Bridge, point: Checkpoint | Point | None) -> str:
    """The head of a dialog that offers a point, with what is to be said of it."""
    warning = other_head(bridge.engine, point) if isinstance(point, Checkpoint) else ""
    return f"Restore Options\n! {warning}" if warning else "Restore Options"


def restore(bridge: Bridge, point: Checkpoint | Point) -> Moved:
    """Make the files as a point holds them.

    Raises:
        RewindError: they cannot be restored; nothing was changed, or it says how to go on.
    """
    checkpoint = legacy.take_over(bridge.engine, point) if isinstance(point, Point) else point
    return moved_to(checkpoint, bridge.engine.restore(checkpoint), bridge)


def take_back(bridge: Bridge, checkpoint: Checkpoint) -> Moved:
    """Go back to the state before a file rewind; redo brings it back."""
    engine = bridge.engine
    move = engine.timeline().position.move
    if move is not None and move.record.oid("snapshot") == checkpoint.snapshot:
        return moved_to(checkpoint, engine.undo_restore(), bridge)
    return restore(bridge, checkpoint)


def navigate(bridge: Bridge, entry: str, moved: Moved | None = None) -> bool:
    """Move the conversation without asking anything; the files have been moved, or stay.

    Raises:
        CallFailed: the agent refuses, with its reason.
    """
    settle = Place(SETTLE, at.AT_TURN, label="before the conversation was moved")
    bridge.navigating = moved or Moved(bridge.points.baseline(settle))
    try:
        return bridge.agent.navigate(entry)
    finally:
        bridge.navigating = None


def moved_to(checkpoint: Checkpoint, outcome: Outcome, bridge: Bridge) -> Moved:
    """What is to be written down of a move that the engine has made."""
    bridge.points.refresh()
    rescue, changes = outcome.rescue, len(outcome.plan.steps)
    if rescue is None:
        return Moved(checkpoint.snapshot, changes=changes)
    return Moved(checkpoint.snapshot, rescue.snapshot, record=rescue.id, changes=changes)
