"""What each event becomes: which checkpoint, with which label, standing where in the conversation.

A capture that finds the files as the ledger last left them makes no checkpoint, except at the
points that a conversation is put back to: prompts, ends of turns, compactions, new sessions.
What changed while nobody was looking becomes a checkpoint of its own before anything else.
"""

from __future__ import annotations

from coderewind.agents import adapter as at
from coderewind.agents.adapter import Adapter
from coderewind.engine.archive import archive
from coderewind.engine.engine import Engine
from coderewind.hooks.destructive import is_destructive
from coderewind.hooks.names import DROID
from coderewind.hooks.payload import Call, Event
from coderewind.hooks.session import PROMPT_KEPT, SessionState
from coderewind.hooks.words import call_words, turn_words
from coderewind.model import records as ops
from coderewind.model.records import Anchor, Record
from coderewind.store.diff import SnapshotView, compare

SHELLS = ("Bash", "Execute", "PowerShell")
PARALLEL = "parallel"
DESTRUCTIVE = "destructive"
_ARCHIVE_AT = ("UserPromptSubmit", "Stop", "SubagentStop", "SessionEnd", "PreCompact")
_ARCHIVED_AT_ONCE = 8 << 20
_AFTER_A_TURN = ("UserPromptSubmit", "SessionStart", "SessionEnd")
_INSIDE_A_TURN = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Stop")
_TASK_NEWS = "<task-notification>"


class Turn:
    """One event, observed in one worktree."""

    def __init__(
        self, engine: Engine, adapter: Adapter, event: Event, state: SessionState, *, exact: bool
    ) -> None:
        self.engine = engine
        self.exact = exact  # whether the tier lets every event be observed
        self.adapter = adapter
        self.event = event
        self.state = state
        self.recorded = 0
        self.done = ""

    def observe(self) -> str:
        """Capture the worktree and record what the event means; the call that ended, if it ran
        alone: its batch then has nothing to add."""
        engine, event = self.engine, self.event
        with engine.working() as now_ns:
            self.now_ns = now_ns
            self.last = engine.ledger.last()
            self.captured = engine.capture(now_ns)
            self.snapshot = self.captured.snapshot.hex()
            self.changed = self.last is None or self.last.text("state") != self.snapshot
            try:
                self._notice_new_turn()
                _HANDLERS[event.name](self)
                if not self.recorded:
                    engine.finish(self.captured)
                if event.name in _ARCHIVE_AT and event.transcript:
                    self._archive()
            finally:
                engine.store.objects.close()
        return self.done

    def _notice_new_turn(self) -> None:
        """A `!` command of the user's begins a turn that no event announces."""
        event, state = self.event, self.state
        if event.name not in _INSIDE_A_TURN or event.subagent or not event.prompt_id:
            return
        if not state.prompt_id or event.prompt_id == state.prompt_id:
            return
        prompt_id, prompt = self.adapter.last_prompt(event.transcript)
        before = self.last.text("state") if self.last else ""
        state.background = []
        if prompt_id != event.prompt_id:
            # Not on the disk yet. Where prompts are announced, only a `!` command is not.
            prompt = "!" if state.prompt else ""
        state.begin_turn(prompt, event.prompt_id, before)
        if self.changed:
            self._settle(at.AT_TURN)

    # ---- events

    def session_started(self) -> None:
        state, source = self.state, self.event.source
        if source == "compact" and state.prompt_id:  # the turn goes on, if one is under way
            if self.changed:
                self._settle(at.AT_TURN)
            return
        goes_on = source in ("resume", "fork", "compact")
        state.parent = state.parent or (self._parent() if source != "startup" else "")
        entry = self.adapter.last_entry(self.event.transcript) if goes_on else ""
        where = at.AT_ENTRY if entry else at.AT_START
        first = self.last is None
        if self.changed and self.exact and not first:
            self._settle(where, entry=entry)
        if first or not goes_on:
            self._append("start", "session cleared" if source == "clear" else "session started",
                         where, entry=entry)
        state.forget_calls(also_subagents=True)
        state.background = []
        state.begin_turn("", "", self.snapshot)

    def prompt_given(self) -> None:
        event, state = self.event, self.state
        prompt_id = event.prompt_id or event.message_id
        if prompt_id and prompt_id == state.prompt_id:
            # Said while the agent is at work, and so a part of this turn.
            if self.changed:
                self._settle(at.AT_TURN, flags=self._flags())
            self._append("prompt", "", at.AT_TURN, prompt=event.prompt[:PROMPT_KEPT],
                         flags=self._flags())
            return
        if event.prompt.startswith(_TASK_NEWS):
            if self.changed:
                self._settle(at.AT_END if state.prompt_id else at.AT_PROMPT)
            state.begin_turn("background task", prompt_id, self.snapshot)
            state.background = []
            return
        if self.changed:
            self._settle(at.AT_PROMPT, prompt_id=prompt_id, prompt=event.prompt[:PROMPT_KEPT])
        state.forget_calls(also_subagents=True)
        state.begin_turn(event.prompt, prompt_id, self.snapshot)
        self._append("prompt", "", at.AT_PROMPT)

    def tool_begins(self) -> None:
        state, call = self.state, self.event.call
        self._find_prompt()
        if self.changed and self.exact:
            self._settle(at.AT_TURN, flags=self._flags())
        if call is None:
            return
        words = call_words(call)
        if destroys(call):
            self._append("before", "before " + words, at.AT_TURN, flags=[DESTRUCTIVE],
                         call=call, git=self._git())
        elif self.changed:
            self._append("before", "before " + words, at.AT_TURN, call=call)
        if not self.exact:
            return  # when the call ends may not be told
        key = call.id or words
        state.open.pop(key, None)
        if state.open:
            state.batch += [key, *(other for other in state.open if other not in state.batch)]
        state.open[key] = words
        if self.event.subagent:
            state.subagents[key] = self.event.subagent

    def tool_ended(self) -> None:
        state, call = self.state, self.event.call
        self._find_prompt()
        if call is None:
            return
        words = call_words(call)
        key = call.id or words
        overlapped = self._close(key)
        self.done = "" if overlapped else call.id
        failed = " (failed)" if self.event.name == "PostToolUseFailure" else ""
        state.note_tool(words + failed)
        if call.input.get("run_in_background") is True:
            state.background.append(words)
        if self.changed:
            flags = [PARALLEL] if overlapped else []
            state.turn_record = self._append("tool", words + failed, at.AT_TURN, flags=flags,
                                             call=call).id

    def batch_ended(self) -> None:
        """The one moment of a batch when no call of it is half done."""
        state, calls = self.state, self.event.calls
        keys = [call.id or call_words(call) for call in calls]
        overlapped = [self._close(key) for key in keys]
        state.batch = [key for key in state.batch if key not in keys]
        label = ", ".join(dict.fromkeys(call_words(call) for call in calls))[:300]
        if self.changed:
            state.turn_record = self._append("batch", label, at.AT_TURN, flags=self._flags()).id
        elif any(overlapped) and not state.open and self._stands_at(state.turn_record):
            self._become("batch", label, at.AT_TURN)

    def turn_ended(self) -> None:
        state = self.state
        self._find_prompt()
        label = turn_words(state.prompt, state.tools)
        files = self._files_of_turn()
        if not self.changed and self._stands_at(state.turn_record):
            self._become("after", label, at.AT_END, files)
        elif files:
            self._append("after", label, at.AT_END, files=files)
        else:
            self._append("after", label, at.AT_END)
        state.turn_record = ""
        state.forget_calls()

    def subagent_ended(self) -> None:
        state, event = self.state, self.event
        for key in [key for key, agent in state.subagents.items() if agent == event.subagent]:
            self._close(key)
        if self.changed:
            label = f"subagent {event.agent_type}".rstrip()
            state.turn_record = self._append("stop", label, at.AT_TURN, flags=self._flags()).id

    def session_ended(self) -> None:
        if self.changed:
            where = at.AT_END if self.state.prompt_id else at.AT_START
            self._append("end", self._what_happened(), where)

    def before_compaction(self) -> None:
        self._find_prompt()
        entry = self.adapter.last_entry(self.event.transcript)
        where = at.AT_COMPACT if entry else at.AT_END
        if self.event.source == "auto" and self.state.prompt_id:
            where = at.AT_TURN  # the agent's own: in the middle of a turn
        self._append("compact", "before compaction", where, entry=entry)

    def folder_changed(self) -> None:
        if self.changed:
            self._settle(at.AT_TURN)

    # ---- records

    def _settle(
        self,
        where: str,
        *,
        entry: str = "",
        prompt_id: str = "",
        prompt: str = "",
        flags: list[str] | None = None,
    ) -> None:
        """What changed while no hook was looking gets a checkpoint of its own."""
        record = self._append("settle", self._what_happened(), where, entry=entry,
                              prompt_id=prompt_id, prompt=prompt, flags=flags)
        if where == at.AT_TURN:
            self.state.turn_record = record.id

    def _what_happened(self) -> str:
        state = self.state
        if self.last is None:
            return "first checkpoint"
        if not self.exact:
            return "changed since the last checkpoint"
        if state.open:
            how = "interrupted: " if self.event.name in _AFTER_A_TURN else "during: "
            return how + ", ".join(state.open.values())[:200]
        if state.prompt.startswith("!"):
            return "! " + " ".join(state.prompt[1:200].split())
        if state.background:
            return "in the background: " + ", ".join(state.background)[:200]
        return "changed outside the agent"

    def _append(
        self,
        kind: str,
        label: str,
        where: str,
        *,
        flags: list[str] | None = None,
        call: Call | None = None,
        entry: str = "",
        prompt_id: str = "",
        prompt: str = "",
        git: dict[str, object] | None = None,
        files: int = 0,
    ) -> Record:
        event, state, engine = self.event, self.state, self.engine
        anchor = Anchor(
            agent=event.agent,
            session=event.session,
            entry=entry,
            prompt_id=prompt_id or state.prompt_id,
            tool_call=call.id if call else "",
            parent_session=state.parent,
            prompt=prompt or state.prompt,
            tool=call.name if call else "",
            transcript=event.transcript,
        )
        data: dict[str, object] = {"kind": kind, "at": where, "anchor": anchor.as_json()}
        for key, value in (("label", label), ("flags", flags), ("git", git), ("files", files)):
            if value:
                data[key] = value
        if self.recorded:
            self.captured.pack = engine.store.pack()
        self.last = engine.append_state(ops.CHECKPOINT, data, self.captured, self.now_ns,
                                        last=self.last)
        self.recorded += 1
        self.changed = False
        return self.last

    def _become(self, kind: str, label: str, where: str, files: int = 0) -> None:
        """The newest checkpoint holds these very files: it is that point, too."""
        data: dict[str, object] = {"target": self.state.turn_record, "kind": kind, "at": where,
                                   "label": label, "flags": []}
        if files:
            data["files"] = files
        self.engine.append_note(ops.BIND, data, self.now_ns)

    def _stands_at(self, record_id: str) -> bool:
        return bool(record_id and self.last and self.last.text("cursor") == record_id)

    def _files_of_turn(self) -> int:
        """How many files differ from when the turn began."""
        before = self.state.turn_snapshot
        if not before or before == self.snapshot:
            return 0
        engine = self.engine
        engine.finish(self.captured)
        self.captured.pack = engine.store.pack()
        try:
            old = SnapshotView(engine.store.objects, bytes.fromhex(before))
            return len(compare(engine.store.objects, old.tree, self.captured.tree))
        except ValueError:
            return 0

    # ---- what else has to be known

    def _flags(self) -> list[str]:
        """The marks of a point that is taken while some call is under way."""
        return [PARALLEL] if self.state.open else []

    def _close(self, key: str) -> bool:
        """A call is over; whether another one ran at the same time."""
        state = self.state
        state.open.pop(key, None)
        state.subagents.pop(key, None)
        overlapped = key in state.batch or bool(state.open)
        if overlapped:
            state.batch += [other for other in (key, *state.open) if other not in state.batch]
        return overlapped

    def _find_prompt(self) -> None:
        """`droid exec` tells of no prompt: its session file does. One turn may follow the other
        there, when a subagent sends news."""
        state, event = self.state, self.event
        if not state.prompt_id and event.prompt_id:
            state.prompt_id = event.prompt_id
        elif event.agent == DROID and event.transcript and (
            not state.prompt_id or event.name == "Stop"
        ):
            prompt_id, prompt = self.adapter.last_prompt(event.transcript)
            if prompt_id and prompt_id != state.prompt_id:
                state.prompt_id, state.prompt = prompt_id, prompt[:PROMPT_KEPT]

    def _parent(self) -> str:
        """The session that this one goes on from: as far as this worktree's ledger knows."""
        records = self.engine.ledger.records()
        for record in reversed(records):
            if record.op == ops.CONVERSATION and record.text("session") == self.event.session:
                return record.text("from")
        for record in reversed(records):
            anchor = Anchor.from_json(record.data.get("anchor"))
            if anchor.agent == self.event.agent and anchor.session:
                return anchor.session if anchor.session != self.event.session else ""
        return ""

    def _git(self) -> dict[str, object]:
        """What a git command may throw away besides files."""
        from coderewind.store.refs import branches, stashes

        workspace = self.engine.workspace
        return {"branches": branches(workspace), "stashes": stashes(workspace)}

    def _archive(self) -> None:
        event = self.event
        archive(self.engine, self.adapter, event.session, event.transcript,
                self.state.archived, self.now_ns, limit=_ARCHIVED_AT_ONCE)
        if event.subagent_transcript:
            archive(self.engine, self.adapter, event.subagent, event.subagent_transcript, {},
                    self.now_ns, limit=_ARCHIVED_AT_ONCE)


def destroys(call: Call) -> bool:
    command = call.input.get("command")
    return call.name in SHELLS and isinstance(command, str) and is_destructive(command)


_HANDLERS = {
    "SessionStart": Turn.session_started,
    "UserPromptSubmit": Turn.prompt_given,
    "PreToolUse": Turn.tool_begins,
    "PostToolUse": Turn.tool_ended,
    "PostToolUseFailure": Turn.tool_ended,
    "PostToolBatch": Turn.batch_ended,
    "Stop": Turn.turn_ended,
    "SubagentStop": Turn.subagent_ended,
    "SessionEnd": Turn.session_ended,
    "PreCompact": Turn.before_compaction,
    "CwdChanged": Turn.folder_changed,
}
