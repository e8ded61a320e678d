"""/fork: which files the new session starts with.

The extension is loaded anew in the new session, so what was chosen is handed over in two steps:
an entry in the parent, read by the child when it starts.
"""

from __future__ import annotations

from coderewind.agents import adapter as at
from coderewind.bridge import marks, restores
from coderewind.bridge.agent import ERROR
from coderewind.bridge.bridge import Bridge
from coderewind.bridge.points import SETTLE, Place
from coderewind.errors import RewindError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.bridge.bridge import Data

CONVERSATION = "Conversation only (keep current files)"
ALL = "Restore all (files + conversation)"
CODE = "Code only (restore files, keep conversation)"
CANCEL: dict[str, object] = {"cancel": True}
_MAY_PREFER = ("fork-from-first",)  # extensions that may ask for a fork without a question


class Fork:
    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self._preferred_by = ""

    def begin(self, _data: Data, _leaf: str) -> None:
        """In the child: take over what the parent left for it."""
        session = self.bridge.session
        if session.reason == "fork" and session.previous_file:
            current, undo = marks.pending_fork(session.previous_file)
            if current:
                self.bridge.mark(marks.OP, marks.op(current, undo))

    def preferred(self, data: Data, _leaf: str) -> None:
        """Another extension forks next, and wants the files left alone."""
        source = data.get("source")
        if data.get("mode") == "conversation-only" and source in _MAY_PREFER:
            self._preferred_by = str(source)

    def asked(self, data: Data, _leaf: str) -> Data | None:
        """A session is about to be forked."""
        preferred_by, self._preferred_by = self._preferred_by, ""
        try:
            if preferred_by:
                self.bridge.say(f"Rewind: conversation only, current files kept ({preferred_by})")
            elif data.get("position") != "at" and self.bridge.agent.has_ui:
                return self._choose(str(data.get("entryId")))
            self._keep()
        except RewindError as error:
            self.bridge.agent.notify(
                f"Rewind: {error.message}, so nothing was forked. {error.hint}".rstrip(), ERROR)
            return CANCEL
        return None

    def _choose(self, entry: str) -> Data | None:
        bridge = self.bridge
        bridge.points.refresh()
        point = restores.point_of(bridge, entry)
        undo = restores.before_last(bridge)
        options = [CONVERSATION]
        options += [ALL, CODE] if point else []
        options += [restores.UNDO] if undo else []
        choice = options[0]
        if len(options) > 1:
            choice = bridge.agent.select(restores.title(bridge, point), options)
        if choice == CONVERSATION:
            self._keep()
        elif choice == ALL and point is not None:
            moved = restores.restore(bridge, point)
            bridge.mark(marks.FORK, marks.fork(moved.current, moved.undo))
            bridge.say("Rewind: files restored")
        elif choice == CODE and point is not None:
            bridge.mark(marks.OP, restores.restore(bridge, point).op())
            bridge.say("Rewind: files restored, the conversation is as it was")
            bridge.show()
            return CANCEL
        elif choice == restores.UNDO and undo is not None:
            bridge.mark(marks.OP, restores.take_back(bridge, undo).op())
            bridge.say("Rewind: files are as before the last rewind")
            bridge.show()
            return CANCEL
        else:
            return CANCEL
        return None

    def _keep(self) -> None:
        settle = Place(SETTLE, at.AT_TURN, label="before a fork")
        self.bridge.mark(marks.FORK, marks.fork(self.bridge.points.baseline(settle)))


def register(bridge: Bridge) -> None:
    fork = Fork(bridge)
    bridge.on("hello", fork.begin)
    bridge.on("rewind:fork-preference", fork.preferred)
    bridge.on("session_before_fork", fork.asked)
