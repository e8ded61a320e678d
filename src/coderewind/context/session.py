"""A small agent, complete: a loop over a model, tools, and a session tree that it lives in.

Whatever the process knows is in the tree first, so a session that was killed goes on where it
stood: open checkpoints, a rewind that was asked for and not yet applied, all of it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from coderewind.context import projection, words
from coderewind.context.messages import CHECKPOINT, REWIND, Call, Messages, Result
from coderewind.context.persist import Json
from coderewind.context.projection import CARRIED, SUMMARIZED, Item, blocks, is_call, text_of
from coderewind.context.rewinder import ContextRewind, Files, Rewound, Window
from coderewind.context.summary import Summarise, summarize_from, summarize_up_to
from coderewind.context.tools import Gate, Tool, ToolError
from coderewind.context.tree import SessionTree, now
from coderewind.errors import RewindError

STATE = "checkpoint"  # the custom entries that hold the state of the tools
REPORT = "rewind-report"
REMINDER = "checkpoint-active-reminder"

_log = logging.getLogger(__name__)


class Reply:
    """What a model answers: words, tool calls, or both."""

    __slots__ = ("calls", "text")

    def __init__(self, text: str = "", calls: Sequence[Call] = ()) -> None:
        self.text = text
        self.calls = calls

    def message(self) -> Json:
        content: list[Json] = [{"type": "text", "text": self.text}] if self.text else []
        content += [{"type": "toolCall", "id": call.id, "name": call.name,
                     "arguments": call.arguments or {}} for call in self.calls]
        return {"role": "assistant", "content": content}


Model = Callable[[list[Json], list[Tool]], Reply | str]


class TreeMessages(Messages[Item]):
    """The messages of a session tree."""

    def calls(self, message: Item) -> Sequence[Call]:
        if message.message.get("role") != "assistant":
            return ()
        return [Call(str(block.get("id")), str(block.get("name")), block.get("arguments"))
                for block in blocks(message.message) if is_call(block)]

    def results(self, message: Item) -> Sequence[Result]:
        if message.message.get("role") != "toolResult":
            return ()
        return [Result(str(message.message.get("toolCallId")), text_of(message.message))]

    def user(self, message: Item) -> Item | None:
        return message if message.message.get("role") == "user" else None

    def text(self, message: Item) -> str:
        return text_of(message.message)

    def report(self, text: str) -> Item:
        return Item("", {"role": "branchSummary", "summary": text})

    def is_report(self, message: Item) -> bool:
        return False  # ours are not in the user's role

    def stays(self, message: Item) -> bool:
        return message.message.get("role") == "system"


class AgentSession:
    """One agent. `model` gets the messages and the tools, and answers with a `Reply` or a text."""

    def __init__(
        self, model: Model, tools: Sequence[Tool] = (), *, tree: SessionTree | None = None,
        files: Files | None = None, gate: Gate | None = None, max_turns: int = 500,
    ) -> None:
        self.model = model
        self.tree = SessionTree.memory() if tree is None else tree
        self.rewinder = ContextRewind(TreeMessages(), files=files, gate=gate)
        self.max_turns = max_turns
        self._tools = list(tools)
        self._steering: deque[object] = deque()
        self._stop = threading.Event()
        self.reload()

    @property
    def messages(self) -> list[Json]:
        """The context, as the model's next request would have it."""
        return self.tree.messages()

    def tools(self) -> list[Tool]:
        return [*self._tools, *self.rewinder.tools()]

    def reload(self) -> None:
        """Take the tools' state from the tree; after its leaf was moved by hand."""
        self.rewinder.load(state_of(self.tree))

    # --- the conversation

    def prompt(self, content: object) -> str:
        """Let the agent work on a user's message, a text or content blocks; its last words."""
        self._settle()
        self._stop.clear()
        suspended = self.rewinder.new_prompt()
        self._append([*_suspension(suspended, words.WHY_PROMPT), _user(content)])
        for _ in range(self.max_turns):
            reply = self._ask()
            calls = [block for block in blocks(reply) if is_call(block)]
            for i, call in enumerate(calls):
                if self._stop.is_set():
                    self._append([("message", {"message": _result(
                        each, "Aborted by the user.", error=True)}) for each in calls[i:]])
                    break
                self._append(self._called(call))
            if self._stop.is_set():
                self._append(_suspension(self.rewinder.aborted(), words.WHY_ABORT))
                return text_of(reply)
            self._settle()
            steered = self._append([_user(self._steering.popleft())
                                    for _ in range(len(self._steering))])
            if not calls and not steered and not self._remind():
                return text_of(reply)
        raise RewindError(f"the agent did not finish within {self.max_turns} turns")

    def steer(self, content: object) -> None:
        """Say something while the agent works; from any thread. It reads it after its turn."""
        self._steering.append(content)

    def abort(self) -> None:
        """Stop the agent at the next tool call or turn; from any thread."""
        self._stop.set()

    def drop_checkpoint(self) -> list[Window]:
        """Forget the open checkpoints; the context stays as it is."""
        dropped = self.rewinder.drop()
        if dropped:
            self.tree.append_custom(STATE, {"op": "drop"})
        return dropped

    def summarize_from(self, entry: str, summarise: Summarise) -> str:
        """Let a summary stand for an entry and all after it; the summary's entry."""
        made = summarize_from(self.tree, entry, summarise)
        self.reload()
        return made

    def summarize_up_to(self, entry: str, summarise: Summarise) -> str:
        """Let a summary stand for everything up to an entry; the summary's entry."""
        made = summarize_up_to(self.tree, entry, summarise)
        self.reload()
        return made

    # --- a turn

    def _ask(self) -> Json:
        reply = self.model(self.messages, self.tools())
        message = (Reply(reply) if isinstance(reply, str) else reply).message()
        return self._message(self.tree.append("message", {"message": message}))

    def _called(self, call: Json) -> list[tuple[str, Mapping[str, object]]]:
        """The entries of one tool's run: its result, and what the tools' state became."""
        name, id = str(call.get("name")), str(call.get("id"))
        arguments = call.get("arguments")
        tool = next((tool for tool in self.tools() if tool.name == name), None)
        before = self.rewinder.state()
        try:
            if tool is None:
                raise ToolError(self.rewinder.gate.refusal() if name in (CHECKPOINT, REWIND)
                                else f"There is no tool {name}.")
            said = tool.run(arguments if isinstance(arguments, dict) else {}, id)
            text, error = str(said), False
        except ToolError as refused:
            text, error = str(refused), True
        except Exception as failed:  # noqa: BLE001 - a tool's failure is the model's to know
            text, error = f"{type(failed).__name__}: {failed}", True
        entries: list[tuple[str, Mapping[str, object]]] = []
        details: Json | None = None
        after = self.rewinder.state()
        if after != before and name == CHECKPOINT:
            windows = after["windows"]
            assert isinstance(windows, list)
            details = {"goal": windows[-1]["goal"], "startedAt": windows[-1]["startedAt"]}
            entries = [_state("open", windows[-1])]
        elif after != before and name == REWIND:
            request = after["request"]
            assert isinstance(request, dict)
            details = {"report": request["report"], "rewound": True}
            entries = [_state("rewind", request)]
        return [("message", {"message": _result(call, text, error=error, details=details)}),
                *entries]

    def _settle(self) -> None:
        """The turn is over: apply a rewind that was asked for."""
        path = rewound_path(self.tree) if self.rewinder.requested else []
        rewound = self.rewinder.settle(path)
        if rewound is not None:
            branch_from(self.tree, rewound)

    def _remind(self) -> bool:
        reminder = self.rewinder.reminder()
        if reminder:
            self.tree.append_custom_message(REMINDER, reminder, display=False)
        return bool(reminder)

    def _append(self, entries: Sequence[tuple[str, Mapping[str, object]]]) -> list[Json]:
        return self.tree.append_all(entries)

    @staticmethod
    def _message(entry: Json) -> Json:
        message = entry["message"]
        assert isinstance(message, dict)
        return message


def rewound_path(tree: SessionTree) -> list[Item]:
    """What a rewind must know of a path: what the user said, and the turns of the tools.

    It is as if it had never been compacted: a rewind undoes that, too. A user's message that was
    edited out of the context does not come back. The exploration itself is not even read.
    """
    wanted: dict[str, None] = {}
    turn: list[str] = []
    turns: list[list[str]] = []  # those that hold an entry with the state of the tools
    ids = tree.branch_ids()
    for id in ids:
        kind, role = tree.kind(id), tree.role(id)
        if role == "assistant":
            turn = [id]
        elif role == "toolResult":
            turn.append(id)
        elif kind == "custom" and (tree.find(id) or {}).get("customType") == STATE:
            turns.append(turn)
        elif kind in ("message", "branch_summary", "context_edit"):
            wanted[id] = None
    wanted |= dict.fromkeys(id for turn in turns for id in turn)
    path = [_unsummarized(tree, entry) for id in ids
            if id in wanted and (entry := tree.find(id))]
    removed = {str(entry.get("targetId")) for entry in path
               if entry.get("type") == "context_edit" and entry.get("replacement") is None}
    raw = [entry for entry in path if entry.get("type") != "context_edit"]
    items = projection.project(raw, tree.find)
    return [item for item in items
            if not (item.entry in removed and item.message.get("role") == "user")]


def _unsummarized(tree: SessionTree, entry: Json, seen: frozenset[str] = frozenset()) -> Json:
    """A summary as if it had carried over what the user said in the part that it stands for."""
    details, own = entry.get("details"), str(entry.get("id"))
    if not isinstance(details, dict) or SUMMARIZED not in details or own in seen:
        return entry
    before = set(tree.branch_ids(own))
    said: list[str] = []
    for id in tree.branch_ids(str(entry.get("fromId"))):
        if id not in before and tree.kind(id) == "branch_summary":
            said += projection.carried(_unsummarized(tree, tree.find(id) or {}, seen | {own}))
        elif id not in before and tree.role(id) == "user":
            said.append(id)
    return {**entry, "details": {CARRIED: said}}


def branch_from(tree: SessionTree, rewound: Rewound[Item]) -> str:
    """Write a rewind into the tree as one entry, so that it is there entirely or not at all."""
    window, parts = rewound.window, rewound.cut
    place = None if parts.gone else parts.head[-1].entry
    carried = [*(parts.head if parts.gone else ()), *parts.carried]
    if parts.gone:
        _log.warning("Rewind branch checkpoint missing, falling back to root")
    report: Json = {"report": rewound.report, "goal": window.goal, "name": window.name,
                    "call": window.call, "startedAt": window.started_at, "rewoundAt": now()}
    made = tree.branch_with_summary(place, rewound.frame, {
        "startedAt": window.started_at, REWIND: report,
        CARRIED: list(dict.fromkeys(item.entry for item in carried))})
    tree.append_custom(REPORT, report)
    return made


def state_of(tree: SessionTree) -> Json:
    """The state of the tools at the leaf; reads only the few entries that hold it."""
    windows: list[Json] = []
    request: object = None
    ended = ""
    for id in tree.branch_ids():
        if tree.kind(id) not in ("custom", "branch_summary"):
            continue
        entry = tree.find(id) or {}
        details = entry.get("details")
        if entry.get("type") == "branch_summary":
            rewound = details.get(REWIND) if isinstance(details, dict) else None
            if isinstance(rewound, dict):
                windows = _before(windows, rewound.get("call"))
                request, ended = None, words.COMPLETED
            continue
        data = entry.get("data")
        if entry.get("customType") != STATE or not isinstance(data, dict):
            continue
        if data.get("op") == "open":
            windows, ended = [*windows, data], ""
        elif data.get("op") == "rewind":
            request = data
        else:
            said = data.get("says")
            windows, request, ended = [], None, said if isinstance(said, str) else ""
    return {"windows": windows, "request": request, "ended": ended}


def _before(windows: list[Json], call: object) -> list[Json]:
    for i, window in enumerate(windows):
        if window.get("call") == call:
            return windows[:i]
    return windows


def _state(op: str, data: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    return "custom", {"customType": STATE, "data": {"op": op, **data}}


def _suspension(
    windows: Sequence[Window], why: str
) -> list[tuple[str, Mapping[str, object]]]:
    if not windows:
        return []
    return [_state("suspend", {"says": words.SUSPENDED.format(goal=windows[-1].goal, why=why)})]


def _user(content: object) -> tuple[str, Mapping[str, object]]:
    whole = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return "message", {"message": {"role": "user", "content": whole}}


def _result(call: Json, text: str, *, error: bool, details: Json | None = None) -> Json:
    message: Json = {"role": "toolResult", "toolCallId": call.get("id"),
                     "toolName": call.get("name"), "content": [{"type": "text", "text": text}]}
    if details is not None:
        message["details"] = details
    return {**message, "isError": error}
