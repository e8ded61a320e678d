"""/tree: which files belong to the place that is gone to.

An entry is appended there in any case: a leaf that was only moved is not in the session's file,
and would be lost when the agent ends.
"""

from __future__ import annotations

from coderewind.agents import adapter as at
from coderewind.bridge import marks, restores
from coderewind.bridge.agent import ERROR
from coderewind.bridge.bridge import Bridge
from coderewind.bridge.fork import CANCEL
from coderewind.bridge.points import BRANCH, SETTLE, Place
from coderewind.bridge.restores import Moved
from coderewind.errors import RewindError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.bridge.bridge import Data

KEEP = "Keep current files"
RESTORE = "Restore files to that point"


class Tree:
    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self._moved: Moved | None = None  # until the agent has moved, too

    def asked(self, data: Data, _leaf: str) -> Data | None:
        """The agent is about to go elsewhere in the tree."""
        bridge = self.bridge
        self._note_unfinished()
        try:
            if bridge.navigating:
                self._moved, bridge.navigating = bridge.navigating, None
                return None
            if not bridge.agent.has_ui:
                return None
            return self._choose(str(data.get("targetId")))
        except RewindError as error:
            bridge.agent.notify(
                f"Rewind: {error.message}, so you are where you were. {error.hint}".rstrip(), ERROR)
            return CANCEL

    def _choose(self, entry: str) -> Data | None:
        bridge = self.bridge
        bridge.points.refresh()
        point = restores.point_of(bridge, entry)
        undo = restores.before_last(bridge)
        options = [KEEP]
        options += [RESTORE] if point else []
        options += [restores.UNDO] if undo else []
        choice = KEEP
        if len(options) > 1:
            choice = bridge.agent.select(restores.title(bridge, point), options)
        if choice == RESTORE and point is not None:
            self._moved = restores.restore(bridge, point)
            bridge.say("Rewind: files restored to that point")
        elif choice == restores.UNDO and undo is not None:
            self._moved = restores.take_back(bridge, undo)
            bridge.say("Rewind: files are as before the last rewind")
        elif choice != KEEP:
            return CANCEL
        return None

    def moved(self, data: Data, _leaf: str) -> None:
        """The agent is there now: write down where the files stand."""
        bridge = self.bridge
        moved, self._moved = self._moved, None
        summary = data.get("id")
        bindings: list[marks.Binding] = []
        try:
            if isinstance(summary, str) and summary:
                for cp in bridge.points.make(Place(BRANCH, at.AT_ENTRY, summary,
                                                   label="branch summary")):
                    bindings.append((summary, cp.snapshot))
                    bridge.known.add(summary)
                    moved = moved or Moved(cp.snapshot)
            if moved is None:
                moved = Moved(bridge.points.baseline(
                    Place(SETTLE, at.AT_TURN, label="before the conversation was moved")))
        except RewindError as error:
            bridge.say_once(f"no checkpoint: {error.message}")
        bridge.mark(marks.OP, moved.op(bindings) if moved else marks.op())
        bridge.show()

    def _note_unfinished(self) -> None:
        """Files were moved, but then the agent did not go there: undo must know of it."""
        moved, self._moved = self._moved, None
        if moved is not None:
            self.bridge.mark(marks.OP, moved.op())

    def settled(self, _data: Data, _leaf: str) -> None:
        self._note_unfinished()


def register(bridge: Bridge) -> None:
    tree = Tree(bridge)
    bridge.on("session_before_tree", tree.asked)
    bridge.on("session_tree", tree.moved)
    for name in ("agent_settled", "session_stop", "session_shutdown", "session_before_fork"):
        bridge.on(name, tree.settled)
