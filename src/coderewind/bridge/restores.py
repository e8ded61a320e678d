"""Moves of the files that a user chose inside the agent, and the one that takes the last one back.

Which state that is, the session's own entries say: two agents may work in one worktree, and the
newest move of the worktree may be the other one's.
"""

from __future__ import annotations

from coderewind.bridge import marks
from coderewind.bridge.bridge import Bridge
from coderewind.engine.moving import other_head
from coderewind.model.records import Checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.engine.moving import Outcome

UNDO = "Undo last file rewind"


class Moved:
    """Where the files stand now, and the snapshot that goes back; both in the session's terms."""

    __slots__ = ("changes", "current", "undo")

    def __init__(self, current: str, undo: str = "", changes: int = 0) -> None:
        self.current = current
        self.undo = undo
        self.changes = changes

    def op(self, bindings: list[marks.Binding] | None = None) -> dict[str, object]:
        return marks.op(self.current, self.undo, bindings)


def before_last(bridge: Bridge, leaf: str) -> Checkpoint | None:
    """The state before the last file rewind on this branch of the conversation."""
    for entry in bridge.agent.branch(leaf):
        if entry.custom == marks.OP and (snapshot := marks.undo_in(entry.data)):
            return bridge.points.with_snapshot(snapshot)
    return None


def title(bridge: Bridge, *checkpoints: Checkpoint | None) -> str:
    """The head of a dialog that offers these, with what is to be said of them."""
    warnings = [other_head(bridge.engine, cp) for cp in checkpoints if cp is not None]
    return "\n".join(["Restore Options", *(f"! {words}" for words in dict.fromkeys(warnings)
                                           if words)])


def restore(bridge: Bridge, checkpoint: Checkpoint) -> Moved:
    """Make the files as a checkpoint holds them.

    Raises:
        RewindError: they cannot be restored; nothing was changed, or it says how to go on.
    """
    return _moved(bridge, bridge.engine.restore(checkpoint), checkpoint)


def take_back(bridge: Bridge, checkpoint: Checkpoint) -> Moved:
    """Go back to the state before a file rewind; redo brings it back."""
    engine = bridge.engine
    move = engine.timeline().position.move
    if move is not None and move.record.oid("snapshot") == checkpoint.snapshot:
        return _moved(bridge, engine.undo_restore(), checkpoint)
    return restore(bridge, checkpoint)


def _moved(bridge: Bridge, outcome: Outcome, checkpoint: Checkpoint) -> Moved:
    bridge.points.refresh()
    undo = outcome.rescue.snapshot if outcome.rescue else ""
    return Moved(checkpoint.snapshot, undo, len(outcome.plan.steps))
