"""The two tools and what they do, for any host: checkpoints set, reports taken, windows closed.

A window is what happens between a checkpoint and its rewind. The tools only take notes; the
context changes when the host says that a turn is over, so that no call loses its result. Files
come in as an object that can checkpoint them, count their changes and restore them: a
`coderewind.Rewind` is one.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Generic, Protocol

from coderewind.context import words
from coderewind.context.messages import (
    CHECKPOINT,
    REWIND,
    Cut,
    M,
    Messages,
    call_of,
    cut,
)
from coderewind.context.persist import Json
from coderewind.context.tools import (
    Gate,
    Tool,
    ToolError,
    arguments_error,
    checkpoint_parameters,
    rewind_parameters,
)
from coderewind.context.tree import now
from coderewind.errors import RewindError
from coderewind.model.changes import FileChange

MOST_REMINDERS = 2  # per checkpoint; a model that ignores two ignores twenty


class Held(Protocol):
    """A checkpoint of the files, known by its id."""

    @property
    def id(self) -> str: ...


class Files(Protocol):
    """The files that an agent works on."""

    def checkpoint(self, label: str = "") -> Held: ...
    def changes(self, before: str, after: str) -> Sequence[FileChange]: ...
    def restore(self, target: str) -> object: ...


class Window:
    """An open checkpoint."""

    __slots__ = ("call", "files", "goal", "name", "started_at")

    def __init__(
        self, goal: str, *, name: str = "", call: str = "", started_at: str = "", files: str = ""
    ) -> None:
        self.goal = goal
        self.name = name
        self.call = call  # the tool call's id: where in the conversation it is
        self.started_at = started_at
        self.files = files  # the id of the files' checkpoint

    def as_json(self) -> Json:
        return {"goal": self.goal, "name": self.name, "call": self.call,
                "startedAt": self.started_at, "files": self.files}

    @classmethod
    def from_json(cls, data: object) -> Window:
        found: Mapping[str, object] = data if isinstance(data, dict) else {}
        return cls(str(found.get("goal", "")), name=str(found.get("name", "")),
                   call=str(found.get("call", "")), started_at=str(found.get("startedAt", "")),
                   files=str(found.get("files", "")))


class Request:
    """A rewind that was asked for and is applied at the turn's end."""

    __slots__ = ("call", "report", "restore_files", "window")

    def __init__(self, window: Window, report: str, call: str, *, restore_files: bool) -> None:
        self.window = window
        self.report = report
        self.call = call
        self.restore_files = restore_files


class Rewound(Generic[M]):
    """A window that was closed: what stays of the messages, and the report in its frame."""

    __slots__ = ("cut", "frame", "report", "window")

    def __init__(self, window: Window, report: str, cut: Cut[M], frame: str) -> None:
        self.window = window
        self.report = report
        self.cut = cut
        self.frame = frame

    def messages(self, how: Messages[M]) -> list[M]:
        """The pruned list: the head unchanged, the user's messages, the report."""
        return [*self.cut.head, *self.cut.carried, how.report(self.frame)]


class ContextRewind(Generic[M]):
    """The state of one conversation. Safe to call from the threads of parallel tools."""

    def __init__(
        self, how: Messages[M], *, files: Files | None = None, gate: Gate | None = None
    ) -> None:
        self.how = how
        self.files = files
        self.gate = gate or Gate()
        self.windows: list[Window] = []  # open ones, outermost first
        self._fresh: list[Window] = []  # set in this turn, open from its end on
        self._request: Request | None = None
        self._ended = ""  # what to say when none is active
        self._reminders = 0
        self._lock = threading.RLock()

    # --- the tools

    def tools(self) -> list[Tool]:
        """Both, or none where the user has not turned them on or this is a subagent."""
        if self.gate.refusal():
            return []
        nests = not self.how.cuts_itself
        about = words.CHECKPOINT_TOOL if nests else words.CHECKPOINT_ALONE_TOOL
        return [
            Tool(CHECKPOINT, about, checkpoint_parameters(nests=nests), self._run_checkpoint),
            Tool(REWIND, words.REWIND_TOOL, rewind_parameters(self.gate, nests=nests),
                 self._run_rewind),
        ]

    def checkpoint(self, goal: str, name: str = "", *, call: str = "") -> str:
        """The tool `checkpoint`; what it answers. `call` is the tool call's id, if known.

        Raises:
            ToolError: refused, with words for the model.
        """
        with self._lock:
            if refusal := self.gate.refusal():
                raise ToolError(refusal)
            goal, name = goal.strip(), name.strip()
            if self._request is not None:
                raise ToolError(words.REWIND_UNDER_WAY)
            active = self.windows + self._fresh
            if any(window.name == name or self.how.cuts_itself for window in active):
                raise ToolError(words.ALREADY_ACTIVE)
            window = Window(goal, name=name, call=call, started_at=now())
            window.files = self._checkpoint_files(f"checkpoint: {goal}")
            self._fresh.append(window)
            self._ended = ""
            self._reminders = 0
            return words.CHECKPOINT.format(goal=goal)

    def rewind(
        self, report: str, to: str = "", *, restore_files: bool = False, call: str = ""
    ) -> str:
        """The tool `rewind`; what it answers. The context changes in `turn_end`.

        Raises:
            ToolError: refused, with words for the model.
        """
        with self._lock:
            if refusal := self.gate.refusal():
                raise ToolError(refusal)
            if self._request is not None:
                raise ToolError(words.ALREADY_REQUESTED)
            window = self._target(to.strip())
            report = report.strip()
            if not report:
                raise ToolError(words.EMPTY_REPORT)
            if restore_files and not self.gate.may_restore:
                raise ToolError(words.MAY_NOT_RESTORE)
            if restore_files and not (self.files is not None and window.files):
                raise ToolError(words.NOTHING_TO_RESTORE)
            self._request = Request(window, report, call, restore_files=restore_files)
            return words.REWIND

    # --- the host's turns

    def turn_end(self, messages: Sequence[M]) -> list[M]:
        """The messages to go on with, after every tool of a turn has answered.

        Call it before each request to the model; without a rewind they are the same.
        """
        rewound = self.settle(messages)
        return list(messages) if rewound is None else rewound.messages(self.how)

    def settle(self, messages: Sequence[M]) -> Rewound[M] | None:
        """The same, for a host that keeps its messages in another way than a list."""
        with self._lock:
            for window in self._fresh:
                window.call = window.call or call_of(messages, self.how, CHECKPOINT)
            self.windows += self._fresh
            self._fresh = []
            request, self._request = self._request, None
            if request is None:
                return None
            return self._close(request, messages)

    def outcome(self, messages: Sequence[M]) -> Rewound[M] | None:
        """What `settle` would give; files are restored here already, if that was asked for.

        For a host that cuts by itself: it needs the report when the tool answers, and says with
        `load` what has become of it.
        """
        with self._lock:
            return None if self._request is None else self._rewound(self._request, messages)

    def new_prompt(self) -> list[Window]:
        """The user wrote again: what follows is not part of any exploration.

        Suspends the open checkpoints, so that no later rewind can take out this prompt and its
        answer; they are returned. Messages that the user sends while the agent works are no new
        prompt: a rewind carries them over.
        """
        return self._suspend(words.WHY_PROMPT)

    def aborted(self) -> list[Window]:
        """The user interrupted the agent; as a new prompt."""
        return self._suspend(words.WHY_ABORT)

    def drop(self) -> list[Window]:
        """Forget the open checkpoints on the user's word; everything stays in the context."""
        with self._lock:
            dropped = self.windows + self._fresh
            self.windows, self._fresh, self._request = [], [], None
            return dropped

    def reminder(self) -> str:
        """What to tell a model that is about to stop with a checkpoint open; "" for nothing."""
        with self._lock:
            if not self.windows or self._request is not None:
                return ""
            if self._reminders >= MOST_REMINDERS:
                return ""
            self._reminders += 1
            return words.REMINDER.format(goal=self.windows[-1].goal)

    @property
    def requested(self) -> bool:
        """Whether a rewind was asked for and waits for the turn's end."""
        return self._request is not None

    # --- keeping the state

    def state(self) -> Json:
        """What a host with a store of its own keeps between turns, as JSON."""
        with self._lock:
            return {"windows": [window.as_json() for window in self.windows + self._fresh],
                    "ended": self._ended, "request": self._request_as_json()}

    def load(self, state: Mapping[str, object]) -> None:
        """Take up the state of another process."""
        with self._lock:
            windows = state.get("windows")
            self.windows = [Window.from_json(window)
                            for window in (windows if isinstance(windows, list) else [])]
            self._fresh = []
            self._ended = str(state.get("ended") or "")
            self._request = None
            request = state.get("request")
            if isinstance(request, dict) and isinstance(request.get("report"), str):
                for window in self.windows:
                    if window.call == request.get("window"):
                        self._request = Request(
                            window, request["report"], str(request.get("call") or ""),
                            restore_files=request.get("restoreFiles") is True)

    def resume(self, messages: Sequence[M]) -> None:
        """Rebuild the state from the messages alone, for a host that keeps nothing else.

        A checkpoint that a user's message follows counts as suspended, whatever that was; the
        diff stat of one that is still open is not known.
        """
        names: dict[str, str] = {}
        windows: list[Window] = []
        for message in messages:
            for call in self.how.calls(message):
                if call.name == CHECKPOINT:
                    arguments = call.arguments if isinstance(call.arguments, dict) else {}
                    names[call.id] = str(arguments.get("name") or "")
            for result in self.how.results(message):
                first, _, rest = result.text.partition("\n")
                opening, _, last = words.CHECKPOINT.partition("{goal}")
                if result.call in names and first.startswith(opening) and rest == last.strip():
                    windows.append(Window(first.removeprefix(opening), call=result.call,
                                          name=names.pop(result.call)))
            own = self.how.user(message)
            if own is None:
                continue
            text = self.how.text(own)
            if words.is_report(text):
                windows = windows[:-1]
            elif not words.is_frame(text):
                windows = []
        with self._lock:
            self.load({"windows": [window.as_json() for window in windows]})

    # ---

    def _run_checkpoint(self, arguments: Mapping[str, object], call: str) -> str:
        _check(arguments, checkpoint_parameters())
        return self.checkpoint(str(arguments["goal"]), str(arguments.get("name", "")), call=call)

    def _run_rewind(self, arguments: Mapping[str, object], call: str) -> str:
        _check(arguments, rewind_parameters(Gate(may_restore=True)))
        return self.rewind(str(arguments["report"]), str(arguments.get("to", "")),
                           restore_files=arguments.get("restore_files") is True, call=call)

    def _target(self, name: str) -> Window:
        if not self.windows:
            raise ToolError(self._ended or words.NONE_ACTIVE)
        if not name:
            return self.windows[-1]
        for window in self.windows:
            if window.name == name:
                return window
        active = ", ".join(window.name or "(no name)" for window in self.windows)
        raise ToolError(words.UNKNOWN_NAME.format(name=name, active=active))

    def _close(self, request: Request, messages: Sequence[M]) -> Rewound[M]:
        rewound = self._rewound(request, messages)
        del self.windows[self.windows.index(request.window):]
        self._ended = words.COMPLETED
        return rewound

    def _rewound(self, request: Request, messages: Sequence[M]) -> Rewound[M]:
        window = request.window
        parts = cut(messages, self.how, window.call, request.call)
        repeated = parts.carried if self.how.cuts_itself else []
        frame = words.frame(
            window.goal, request.report, files=self._files_said(request),
            siblings=parts.siblings, users=len(parts.carried) - len(repeated),
            said=[self.how.text(message) for message in repeated], gone=parts.gone,
        )
        return Rewound(window, request.report, parts, frame)

    def _files_said(self, request: Request) -> str:
        """What happened to the files, after restoring them if that was asked for."""
        window = request.window
        if self.files is None:
            return ""
        if not window.files:
            return words.files_unknown("they were not captured at the checkpoint")
        try:
            held = self.files.checkpoint(f"rewind: {window.goal}")
            changes = self.files.changes(window.files, held.id)
        except (RewindError, OSError) as error:
            said = words.files_unknown(str(error))
            return said + "\n" + words.not_restored("see above") if request.restore_files else said
        if not (request.restore_files and self.gate.may_restore):
            return words.files_changed(changes)
        try:
            self.files.restore(window.files)
        except (RewindError, OSError) as error:
            return words.files_changed(changes) + "\n" + words.not_restored(str(error))
        return words.files_changed(changes, what=words.RESTORED)

    def _checkpoint_files(self, label: str) -> str:
        """The id of the files' checkpoint; "" when there is none: that never stops an agent."""
        try:
            return self.files.checkpoint(label).id if self.files is not None else ""
        except (RewindError, OSError):
            return ""

    def _suspend(self, why: str) -> list[Window]:
        with self._lock:
            suspended = self.windows + self._fresh
            self.windows, self._fresh, self._request = [], [], None
            if suspended:
                self._ended = words.SUSPENDED.format(goal=suspended[-1].goal, why=why)
            return suspended

    def _request_as_json(self) -> Json | None:
        if self._request is None:
            return None
        return {"window": self._request.window.call, "report": self._request.report,
                "call": self._request.call, "restoreFiles": self._request.restore_files}


def _check(arguments: Mapping[str, object], parameters: Json) -> None:
    if error := arguments_error(arguments, parameters):
        raise ToolError(error)
