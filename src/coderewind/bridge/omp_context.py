"""The agent's own checkpoints in oh-my-pi, which has tools of these names and cuts by itself.

Ours take their place. omp goes by a tool's name and details: after `checkpoint` it reminds the
model, after `rewind` it branches from the checkpoint's result and takes over `report`, when the
turn is over. So the report is complete when the tool answers, and says what omp would lose. A
message of type `rewind-report` is where omp takes a window for closed when it reads a session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from coderewind.bridge import restores
from coderewind.bridge.agent import USER, Entry
from coderewind.bridge.bridge import Bridge
from coderewind.bridge.context import REPORT, WINDOW, Exploring, Row, note_in
from coderewind.context import words
from coderewind.context.messages import CHECKPOINT, Call, Messages, Result
from coderewind.context.persist import MOST_CHARACTERS, capped
from coderewind.context.projection import blocks
from coderewind.context.tools import Tool
from coderewind.context.tree import now
from coderewind.errors import RewindError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.bridge.bridge import Data

_PATIENCE = 50  # questions to omp until it has appended a message
_LONGEST = MOST_CHARACTERS - 1_000  # of a report; omp puts a few words of its own around it


class OmpRows(Messages[Row]):
    """A branch as omp cuts it. Our note of a window stands for the checkpoint's call."""

    cuts_itself = True

    def calls(self, message: Row) -> Sequence[Call]:
        note = note_in(message.entry)
        return [Call(str(note.get("call")), CHECKPOINT)] if note.get("op") == "open" else []

    def results(self, message: Row) -> Sequence[Result]:
        return []

    def user(self, message: Row) -> Row | None:
        return message if message.entry.kind == USER else None

    def text(self, message: Row) -> str:
        images = sum(block.get("type") == "image" for block in blocks(message.message))
        return message.entry.text + (f"\n[with {words.count(images, 'image')}, not kept]"
                                     if images else "")

    def is_report(self, message: Row) -> bool:
        return False


class OmpExploring(Exploring):
    kept_apart: ClassVar[Data] = {"concurrency": "exclusive", "loadMode": "essential",
                                  "approval": "read"}

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge, OmpRows())
        self._calls: set[str] = set()  # of the newest reply
        self._at_work = False

    # ---- events

    def called(self, data: Data, _leaf: str) -> None:
        """All calls of a reply are announced before the first of them runs."""
        self._calls.add(str(data.get("toolCallId")))

    def turned(self, _data: Data, leaf: str) -> None:
        """The model is about to be asked: a turn is over, and with it a rewind was applied."""
        self._calls.clear()
        if self.rewinder.requested:
            self.begin({}, leaf)

    def asked(self, data: Data, leaf: str) -> Data | None:
        """A new prompt, or one that is sent to an agent at work: omp announces both."""
        self.turned(data, leaf)
        before, self._at_work = self._at_work, True
        if before or not self.rewinder.windows:
            return None
        super().asked(data, leaf)
        self.bridge.say("Rewind: omp still wants its rewind; /checkpoint-drop ends that")
        said = self.rewinder.state()["ended"]
        return {"message": _closing(words.NOTICE.format(said))}

    def stopped(self, _data: Data, _leaf: str) -> None:
        self._at_work = False

    def reminded(self, _data: Data, _leaf: str) -> Data | None:
        """omp asks the model for a rewind, and does so for ever. Enough is enough."""
        return None if self.rewinder.reminder() else {"stop": True}

    # ---- the user

    def drop(self, _args: str) -> None:
        """omp reads the branch again when it is moved to, and then finds the window closed."""
        agent = self.bridge.agent
        if not any(note_in(entry).get("op") == "open" for entry in agent.branch(agent.leaf())):
            agent.notify("Rewind: no checkpoint is active")
            return
        self.rewinder.drop()
        agent.append(WINDOW, {"op": "drop"})
        agent.wait_for_idle()
        before = agent.leaf()
        agent.send_message(_closing(words.NOTICE.format(words.DROPPED)))
        self._wait_for_report(before)
        agent.append(WINDOW, {"op": "drop"})
        place = agent.leaf()
        agent.append(WINDOW, {"op": "drop"})  # to be moved from
        restores.navigate(self.bridge, place)
        agent.notify("Rewind: the agent's checkpoint is forgotten")
        self._show()

    # ----

    def _run(self, tool: Tool, call: str, given: Data) -> Data:
        if self._calls - {call}:
            raise RewindError(words.NOT_ALONE.format(tool=tool.name))
        return super()._run(tool, call, given)

    def _opened(self) -> Data:
        details = super()._opened()
        self.rewinder.settle([])
        return details

    def _requested(self) -> Data:
        agent = self.bridge.agent
        rewound = self.rewinder.outcome([
            Row(entry, agent.message(entry.id) if entry.kind == USER else None)
            for entry in agent.branch(agent.leaf())[::-1]])
        assert rewound is not None
        return {"report": capped(rewound.frame, _LONGEST), "rewound": True}

    def _note_in(self, entry: Entry) -> Data:
        if entry.custom != REPORT:
            return note_in(entry)
        opening, _, closing = words.NOTICE.partition("{}")
        said = entry.text.removeprefix(opening).removesuffix(closing)
        return {"op": "end", "says": words.COMPLETED if words.OPENING in said else said}

    def _wait_for_report(self, before: str) -> None:
        """omp appends a message in its own time."""
        agent = self.bridge.agent
        for _ in range(_PATIENCE):
            if any(entry.custom == REPORT for entry in agent.branch(agent.leaf(), before)):
                return
        raise RewindError("omp did not take the message", hint="try again")


def _closing(said: str) -> Data:
    """A message with which omp takes a window for closed; nothing is cut."""
    stamp = now()
    return {"customType": REPORT, "content": said, "display": False,
            "details": {"report": said, "startedAt": stamp, "rewoundAt": stamp}}


def register(bridge: Bridge) -> None:
    exploring = OmpExploring(bridge)
    exploring.offer()
    for name, handler in (
        ("hello", exploring.begin),
        ("before_agent_start", exploring.asked),
        ("tool_call", exploring.called),
        ("context", exploring.turned),
        ("checkpoint_reminder", exploring.reminded),
        ("session_stop", exploring.stopped),
        ("session_tree", exploring.moved),
    ):
        bridge.on(name, handler)
