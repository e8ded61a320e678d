"""The agent's own tools: checkpoint and rewind, where the user has turned them on.

Pi keeps its conversation itself, so a rewind is what Pi does with entries: each of the window's is
edited out of the context (`context_edit`), and a message brings the report. That is persistent,
holds on this branch of the conversation only, and lasts without Rewind. The state is kept in
entries of the session, as `rewind-window`, and read again when the session or its branch changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coderewind.agents import adapter as at
from coderewind.api import Rewind
from coderewind.bridge.agent import ASSISTANT, USER, Entry
from coderewind.bridge.bridge import Bridge
from coderewind.bridge.points import SAVE, Place
from coderewind.context.messages import CHECKPOINT, REWIND, Call, Messages, Result
from coderewind.context.projection import blocks, is_call, text_of
from coderewind.context.rewinder import ContextRewind, Rewound, Window
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

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.rewinder = ContextRewind(Rows(), files=_Files(bridge),
                                      gate=Rewind(bridge.engine).gate())
        self._entries: dict[str, str] = {}  # a checkpoint's call -> the entry of its reply

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
        self._entries = {}
        for entry in reversed(self.bridge.agent.branch(leaf)):
            if entry.custom != WINDOW:
                continue
            data = entry.data
            if data.get("op") == "open":
                windows.append(data)
                self._entries[str(data.get("call"))] = str(data.get("entry"))
            elif data.get("op") == "close":
                calls = [window.get("call") for window in windows]
                if data.get("call") in calls:
                    del windows[calls.index(data.get("call")):]
            else:
                windows = []
        self.rewinder.load({"windows": windows})
        self._show()

    def moved(self, data: Data, leaf: str) -> None:
        new = data.get("newLeafId")
        self.begin({}, new if isinstance(new, str) else leaf)

    def asked(self, _data: Data, _leaf: str) -> None:
        """A new prompt; what is sent to an agent at work is none."""
        if suspended := self.rewinder.new_prompt():
            self.bridge.agent.append(WINDOW, {"op": "suspend"})
            self._tell(suspended, "the agent's checkpoint “{}” ended with your new prompt")

    def turn_ended(self, data: Data, leaf: str) -> Data | None:
        """Apply what the tools were asked for, in entries that Pi appends."""
        if data.get("outcome") == "aborted":
            suspended = self.rewinder.aborted()
            self._show()
            return {"entries": [_note({"op": "suspend"})]} if suspended else None
        rows = self._rows(data, leaf) if self.rewinder.requested else []
        known = [window.call for window in self.rewinder.windows]
        rewound = self.rewinder.settle(rows)
        entries = [self._opened(window, data) for window in self.rewinder.windows
                   if window.call not in known]
        if rewound is not None:
            entries += _pruned(rewound, rows)
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
        words = "the agent's checkpoint is forgotten" if dropped else "no checkpoint is active"
        self.bridge.agent.notify(f"Rewind: {words}")
        self._show()

    # ----

    def _offer(self, tool: Tool) -> None:
        definition: Data = {"name": tool.name, "label": tool.name.capitalize(),
                            "description": tool.description, "parameters": tool.parameters,
                            "promptSnippet": tool.description.partition(".")[0],
                            "executionMode": "sequential"}
        self.bridge.tool(definition, lambda call, given: self._run(tool, call, given))

    def _run(self, tool: Tool, call: str, given: Data) -> Data:
        try:
            if tool.name == REWIND and given.get("restore_files") is True:
                self._confirm()
            said = str(tool.run(given, call))
        except ToolError as error:
            raise RewindError(str(error)) from error
        self._show()
        details: Data = {"startedAt": now()}
        if tool.name == CHECKPOINT:
            details["goal"] = given.get("goal")
        else:
            details |= {"report": given.get("report"), "rewound": True}
        return {"content": [{"type": "text", "text": said}], "details": details}

    def _confirm(self) -> None:
        """The setting allows it in general, the user's word in this case."""
        agent = self.bridge.agent
        if self.rewinder.gate.may_restore and agent.has_ui and not agent.confirm(
            "Restore files?", "The agent wants to put the files back as they were at its "
                              "checkpoint. Undo takes that back."
        ):
            raise ToolError("The user does not want the files to be restored.")

    def _opened(self, window: Window, data: Data) -> Data:
        self._entries[window.call] = str(data.get("messageEntryId"))
        return _note({"op": "open", **window.as_json(), "entry": self._entries[window.call]})

    def _rows(self, data: Data, leaf: str) -> list[Row]:
        """The branch, with the messages of the turns that hold checkpoint and rewind."""
        whole = {str(data.get("messageEntryId")), *_texts(data.get("toolResultEntryIds")),
                 *self._entries.values()}
        rows: list[Row] = []
        beside = False  # the results of a checkpoint's reply follow it
        for entry in reversed(self.bridge.agent.branch(leaf)):
            beside = beside and entry.kind != ASSISTANT
            wanted = entry.id in whole or (beside and entry.kind == _RESULT)
            rows.append(Row(entry, self.bridge.agent.message(entry.id) if wanted else None))
            beside = beside or entry.id in self._entries.values()
        return rows

    def _tell(self, windows: Sequence[Window], words: str) -> None:
        self.bridge.say(f"Rewind: {words.format(windows[-1].goal)}")
        self._show()

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


def _note(data: Mapping[str, object]) -> Data:
    return {"type": "custom", "customType": WINDOW, "data": dict(data)}


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def register(bridge: Bridge) -> None:
    exploring = Exploring(bridge)
    exploring.offer()
    for name, handler in (
        ("hello", exploring.begin),
        ("before_agent_start", exploring.asked),
        ("turn_end", exploring.turn_ended),
        ("session_tree", exploring.moved),
    ):
        bridge.on(name, handler)
