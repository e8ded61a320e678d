"""What must be known from one hook of a session to the next.

`$REWIND_HOME/sessions/<agent>-<session>.json`, private, because it holds the prompt's words.
Losing it costs a label, never a state. Parallel hooks of one session take turns by its lock.
"""

from __future__ import annotations

import os
import time

from coderewind.errors import RewindError
from coderewind.model import json
from coderewind.store.folders import make_private, rewind_home
from coderewind.store.lock import Lock

PROMPT_KEPT = 4000  # characters; the whole prompt is in the transcript
_TOOLS_KEPT = 60
_LARGEST = 1 << 20
_KEEP_DAYS = 60


class SessionState:
    """One session, as far as its hooks told."""

    __slots__ = (
        "archived",
        "background",
        "batch",
        "open",
        "parent",
        "prompt",
        "prompt_id",
        "said",
        "subagents",
        "tools",
        "turn_record",
        "turn_snapshot",
        "worktree",
    )

    def __init__(self) -> None:
        self.prompt = ""
        self.prompt_id = ""
        self.tools: list[str] = []  # of this turn, in words
        self.turn_snapshot = ""  # the files when the turn began
        self.turn_record = ""  # the newest checkpoint of this turn that holds a change
        self.open: dict[str, str] = {}  # calls that have begun and not ended: id -> words
        self.subagents: dict[str, str] = {}  # which of them are a subagent's: id -> subagent
        self.batch: list[str] = []  # calls that overlapped another one
        self.background: list[str] = []  # commands that go on by themselves
        self.parent = ""  # the session that this one goes on from
        self.worktree = ""  # the folder that the session began in
        self.said: list[str] = []  # what was said to the user once
        self.archived: dict[str, list[object]] = {}  # transcript -> how far it is archived

    def begin_turn(self, prompt: str, prompt_id: str, snapshot: str) -> None:
        self.prompt = prompt[:PROMPT_KEPT]
        self.prompt_id = prompt_id
        self.turn_snapshot = snapshot
        self.turn_record = ""
        self.tools = []
        self.forget_calls()

    def forget_calls(self, *, also_subagents: bool = False) -> None:
        """No call is under way any more; those of subagents outlive the turn that began them."""
        kept = {} if also_subagents else self.subagents
        self.subagents = {key: agent for key, agent in kept.items() if key in self.open}
        self.open = {key: self.open[key] for key in self.subagents}
        self.batch = [key for key in self.batch if key in self.subagents]

    def note_tool(self, words: str) -> None:
        if len(self.tools) < _TOOLS_KEPT:
            self.tools.append(words)


class Sessions:
    """The states of all sessions, one file each."""

    def __init__(self) -> None:
        self._folder = os.path.join(rewind_home(), b"sessions")

    def lock(self, agent: str, session: str, patience: float) -> Lock:
        make_private(rewind_home())
        make_private(self._folder)
        return Lock(self._path(agent, session, b".lock"), patience=patience)

    def load(self, agent: str, session: str) -> SessionState:
        state = SessionState()
        try:
            with open(self._path(agent, session, b".json"), "rb") as file:
                data = json.loads(file.read(_LARGEST))
        except (OSError, ValueError):
            return state
        if isinstance(data, dict):
            _fill(state, data)
        return state

    def save(self, agent: str, session: str, state: SessionState) -> None:
        """Replace the file. Not fsynced: after a power cut it may be lost, which costs a label."""
        path = self._path(agent, session, b".json")
        temp = path + b".%d.new" % os.getpid()
        text = json.dumps({name: getattr(state, name) for name in SessionState.__slots__})
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW,
                     0o600)
        try:
            view = memoryview(text.encode())
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)
        os.replace(temp, path)

    def sweep(self) -> None:
        """Forget sessions that were silent for long; called at a session's start."""
        oldest = time.time() - _KEEP_DAYS * 86400
        try:
            for entry in os.scandir(self._folder):
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)
        except OSError:
            pass

    def _path(self, agent: str, session: str, suffix: bytes) -> bytes:
        if "/" in session or not session:
            raise RewindError("the agent named no session")
        return os.path.join(self._folder, f"{agent}-{session}".encode() + suffix)


def _fill(state: SessionState, data: dict[str, object]) -> None:
    """Take over what has the right shape."""
    for name in SessionState.__slots__:
        value, default = data.get(name), getattr(state, name)
        if type(value) is not type(default):
            continue
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            continue
        if name in ("open", "subagents") and isinstance(value, dict) and not all(
            isinstance(item, str) for item in value.values()
        ):
            continue
        setattr(state, name, value)
