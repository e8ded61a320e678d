"""The agent's own tools: checkpoint and rewind, where the user has turned them on.

Pi keeps its conversation itself, so a rewind is what Pi does with entries: each of the window's is
edited out of the context (`context_edit`), and a message brings the report. That is persistent,
holds on this branch of the conversation only, and lasts without Rewind. The state is kept in
entries of the session, as `rewind-window`, and read again when the session or its branch changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from coderewind.agents import adapter as at
from coderewind.api import Rewind
from coderewind.bridge.agent import ASSISTANT, USER, Entry
from coderewind.bridge.bridge import Bridge
from coderewind.bridge.points import SAVE, Place
from coderewind.context import words
from coderewind.context.messages import CHECKPOINT, REWIND, Call, Messages, Result
from coderewind.context.projection import blocks, is_call, text_of
from coderewind.context.rewinder import ContextRewind, Rewound
from coderewind.context.tools import Tool, ToolError
from coderewind.context.tree import now
from coderewind.errors import RewindError
from coderewind.model.changes import FileChange
from coderewind.model.records import Checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.bridge.bridge import Data

WINDOW = "rewind-window"
REPORT = "rewind-report"
REMINDER = "rewind-reminder"
_RESULT = "toolResult"
_EDITABLE = (ASSISTANT, _RESULT, "custom_message")  # Pi would let us edit the user's as well


class Row:
    """An entry of the branch; its message, where it was asked for."""

    __slots__ = ("entry", "message")

    def __init__(self, entry: Entry, message: Data | None = None) -> None:
        self.entry = entry
        self.message = message or {}


class Rows(Messages[Row]):
    """The entries of a branch, as far as a rewind must know them."""

    def calls(self, message: Row) -> Sequence[Call]:
        return [Call(str(block.get("id")), str(block.get("name")), block.get("arguments"))
                for block in blocks(message.message) if is_call(block)]

    def results(self, message: Row) -> Sequence[Result]:
        call = message.message.get("toolCallId")
        return [Result(call, text_of(message.message))] if isinstance(call, str) else []

    def user(self, message: Row) -> Row | None:
        return message if message.entry.kind == USER else None

    def text(self, message: Row) -> str:
        return message.entry.text

    def is_report(self, message: Row) -> bool:
        return False  # ours are entries of another kind


class _Files:
    """The worktree, its checkpoints bound to where the conversation stands."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self._rewind = Rewind(bridge.engine)

    def checkpoint(self, label: str = "") -> Checkpoint:
        agent = self.bridge.agent
        entry = next((entry for entry in agent.branch(agent.leaf())
                      if entry.kind in (USER, ASSISTANT)), None)
        place = Place(SAVE, at.AT_ENTRY if entry else at.AT_START, entry.id if entry else "",
                      label=label)
        return self.bridge.points.make(place)[0]

    def changes(self, before: str, after: str) -> Sequence[FileChange]:
        return self._rewind.changes(before, after)

    def restore(self, target: str) -> None:
        from coderewind.bridge import marks, restores

        moved = restores.restore(self.bridge, self.bridge.engine.resolve(target))
        self.bridge.mark(marks.OP, moved.op())


class Exploring:
    """The windows of one session."""

    kept_apart: ClassVar[Data] = {"executionMode": "sequential"}  # from calls beside them

    def __init__(self, bridge: Bridge, how: Messages[Row]) -> None:
        self.bridge = bridge
        gate = Rewind(bridge.engine).gate(subagent=bridge.session.is_subagent)
        self.rewinder = ContextRewind(how, files=_Files(bridge), gate=gate)

    def offer(self) -> None:
        tools = self.rewinder.tools()
        for tool in tools:
            self._offer(tool)
        if tools:
            self.bridge.agent.register_command(
                "checkpoint-drop", "Forget the agent's open checkpoint; its context stays as it is")
            self.bridge.command("checkpoint-drop", self.drop)

    # ---- events

    def begin(self, _data: Data, leaf: str) -> None:
        """Take the state from the branch that the session is on."""
        windows: list[Data] = []
        request: Data | None = None
        ended = ""
        for entry in reversed(self.bridge.agent.branch(leaf)):
            data = self._note_in(entry)
            if not data:
                continue
            request, ended = None, ""
            if data.get("op") == "open":
                windows.append(data)
            elif data.get("op") == "rewind":
                request = {**data, "restoreFiles": False}  # the user was asked in another process
            elif data.get("op") == "close":
                calls = [window.get("call") for window in windows]
                if data.get("call") in calls:
                    del windows[calls.index(data.get("call")):]
                ended = words.COMPLETED
            else:
                windows = []
                ended = str(data.get("says") or "")
        self.rewinder.load({"windows": windows, "request": request, "ended": ended})
        self._show()

    def moved(self, data: Data, leaf: str) -> None:
        new = data.get("newLeafId")
        self.begin({}, new if isinstance(new, str) else leaf)

    def asked(self, _data: Data, leaf: str) -> Data | None:
        """A new prompt; what is sent to an agent at work is none."""
        suspended = self.rewinder.new_prompt()
        if suspended:
            self.bridge.agent.append(WINDOW, self._suspension())
            self.bridge.say(f"Rewind: the agent's checkpoint “{suspended[-1].goal}” ended with "
                            "your new prompt")
            self._show()
        return None

    def turn_ended(self, data: Data, leaf: str) -> Data | None:
        """Apply what the tools were asked for, in entries that Pi appends."""
        if data.get("outcome") == "aborted":
            suspended = self.rewinder.aborted()
            self._show()
            return {"entries": [_note(self._suspension())]} if suspended else None
        rows = self._rows(data, leaf) if self.rewinder.requested else []
        rewound = self.rewinder.settle(rows)
        entries = _pruned(rewound, rows) if rewound is not None else []
        reminder = "" if data.get("toolResultEntryIds") else self.rewinder.reminder()
        if reminder:
            entries.append({"type": "custom_message", "customType": REMINDER,
                            "content": reminder, "display": False})
        self._show()
        if not entries:
            return None
        return {"entries": entries, "continue": True} if rewound or reminder else {
            "entries": entries}

    # ---- the user

    def drop(self, _args: str) -> None:
        dropped = self.rewinder.drop()
        if dropped:
            self.bridge.agent.append(WINDOW, {"op": "drop"})
        said = "the agent's checkpoint is forgotten" if dropped else "no checkpoint is active"
        self.bridge.agent.notify(f"Rewind: {said}")
        self._show()

    # ----

    def _offer(self, tool: Tool) -> None:
        definition: Data = {"name": tool.name, "label": tool.name.capitalize(),
                            "description": tool.description, "parameters": tool.parameters,
                            "promptSnippet": tool.description.partition(".")[0],
                            **self.kept_apart}
        self.bridge.tool(definition, lambda call, given: self._run(tool, call, given))

    def _run(self, tool: Tool, call: str, given: Data) -> Data:
        try:
            if tool.name == REWIND and given.get("restore_files") is True:
                self._confirm()
            said = str(tool.run(given, call))
        except ToolError as error:
            raise RewindError(str(error)) from error
        details = self._opened() if tool.name == CHECKPOINT else self._requested()
        self._show()
        return {"content": [{"type": "text", "text": said}], "details": details}

    def _opened(self) -> Data:
        """Write a new window down, at once: no end of this process may lose it."""
        window = self._state("windows", -1)
        self.bridge.agent.append(WINDOW, {"op": "open", **window})
        return {"goal": window["goal"], "startedAt": window["startedAt"]}

    def _requested(self) -> Data:
        request = self._state("request")
        self.bridge.agent.append(WINDOW, {"op": "rewind", **request})
        return {"report": request["report"], "rewound": True}

    def _state(self, key: str, at: int | None = None) -> Data:
        found = self.rewinder.state()[key]
        found = found[at] if at is not None and isinstance(found, list) else found
        assert isinstance(found, dict)
        return found

    def _suspension(self) -> Data:
        return {"op": "suspend", "says": self.rewinder.state()["ended"]}

    def _confirm(self) -> None:
        """The setting allows it in general, the user's word in this case."""
        agent = self.bridge.agent
        self.rewinder.gate.may_restore = Rewind(self.bridge.engine).gate().may_restore
        if self.rewinder.gate.may_restore and agent.has_ui and not agent.confirm(
            "Restore files?", "The agent wants to put the files back as they were at its "
                              "checkpoint. Undo takes that back."
        ):
            raise ToolError("The user does not want the files to be restored.")

    def _note_in(self, entry: Entry) -> Data:
        return note_in(entry)

    def _rows(self, data: Data, leaf: str) -> list[Row]:
        """The branch, with the messages of the turns that hold checkpoint and rewind."""
        branch = self.bridge.agent.branch(leaf)[::-1]
        whole = {str(data.get("messageEntryId")), *_texts(data.get("toolResultEntryIds"))}
        reply, opens = "", False
        for entry in branch:
            if entry.kind == ASSISTANT:
                reply, opens = entry.id, False
            elif self._note_in(entry).get("op") == "open":
                opens = True
                whole.add(reply)
            elif opens and entry.kind == _RESULT:
                whole.add(entry.id)
        message = self.bridge.agent.message
        return [Row(entry, message(entry.id) if entry.id in whole else None) for entry in branch]

    def _show(self) -> None:
        windows = self.rewinder.windows
        self.bridge.exploring = windows[-1].goal if windows else ""
        self.bridge.show()


def _pruned(rewound: Rewound[Row], rows: Sequence[Row]) -> list[Data]:
    """The entries of a rewind. Pi appends them one by one: the report first, and a reply's results
    before the reply, so that whatever a crash leaves can be sent."""
    kept = {row.entry.id for row in (*rewound.cut.head, *rewound.cut.carried)}
    dropped = [row.entry for row in rows
               if row.entry.id not in kept and row.entry.kind in _EDITABLE]
    window = rewound.window
    details: Data = {"report": rewound.report, "goal": window.goal, "name": window.name,
                     "startedAt": window.started_at, "rewoundAt": now()}
    edits: list[Data] = [{"type": "context_edit", "targetId": entry.id, "replacement": None}
                         for entry in reversed(dropped)]
    return [
        {"type": "custom_message", "customType": REPORT, "content": rewound.frame,
         "display": True, "details": details},
        _note({"op": "close", "call": window.call}),
        *edits,
    ]


def note_in(entry: Entry) -> Data:
    """What an entry says about windows; empty for others."""
    return entry.data if entry.custom == WINDOW else {}


def _note(data: Mapping[str, object]) -> Data:
    return {"type": "custom", "customType": WINDOW, "data": dict(data)}


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def register(bridge: Bridge) -> None:
    exploring = Exploring(bridge, Rows())
    exploring.offer()
    for name, handler in (
        ("hello", exploring.begin),
        ("before_agent_start", exploring.asked),
        ("turn_end", exploring.turn_ended),
        ("session_tree", exploring.moved),
    ):
        bridge.on(name, handler)
