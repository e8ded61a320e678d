"""Put a conversation back: cut the agent's session at a checkpoint, as a new session.

The old session's file is only read. When the agent has deleted it, the archive serves.
"""

from __future__ import annotations

import os
import uuid

from coderewind.agents import adapter as places
from coderewind.agents.adapter import Adapter, Cut, Position
from coderewind.agents.known import adapter_of
from coderewind.agents.transcript import read_session
from coderewind.engine.archive import MAIN, archived
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.model import records as ops
from coderewind.model.records import Checkpoint, Record

_LONGEST_PREFILL = 100_000  # bytes; Linux allows 128 KiB for one argument
_TITLE = 60


class Resume:
    """How to go on in a conversation: the one command, and the prompt that comes next."""

    __slots__ = ("agent", "command", "cwd", "prompt", "session")

    def __init__(
        self, agent: str, session: str, command: list[str], prompt: str, cwd: str
    ) -> None:
        self.agent = agent
        self.session = session
        self.command = command
        self.prompt = prompt
        self.cwd = cwd

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


class Talk:
    """A conversation, cut and ready to be written as a new session."""

    __slots__ = ("adapter", "archived", "checkpoint", "cut", "source")

    def __init__(
        self,
        adapter: Adapter,
        checkpoint: Checkpoint,
        cut: Cut,
        source: str,
        archived: dict[str, bytes],
    ) -> None:
        self.adapter = adapter
        self.checkpoint = checkpoint
        self.cut = cut
        self.source = source
        self.archived = archived

    @property
    def prompt(self) -> str:
        """The prompt to be edited and sent again; none after a turn's end."""
        if self.checkpoint.at in (places.AT_PROMPT, places.AT_TURN):
            return self.cut.prompt or self.checkpoint.anchor.prompt
        return self.cut.prompt if self.checkpoint.at == places.AT_START else ""

    def words(self) -> str:
        """Where the conversation goes back to, for a preview."""
        if not self.cut.has_prompts:
            return "starts fresh: nothing was said before this point"
        at = self.checkpoint.at
        if at == places.AT_TURN:
            return "the point lies inside a turn: back to just before the turn's prompt"
        if at == places.AT_PROMPT:
            return "back to just before the prompt"
        if at == places.AT_COMPACT:
            return "back to just before it was compacted"
        if at == places.AT_ENTRY:
            return "back to this very point"
        return "back to the end of this turn"


def prepare(engine: Engine, checkpoint: Checkpoint) -> Talk:
    """Find the conversation of a checkpoint and cut it. Nothing is written.

    Raises:
        RewindError: the checkpoint knows of none, or it can no longer be found.
    """
    anchor = checkpoint.anchor
    if not anchor.session or not checkpoint.at or not _is_id(anchor.session):
        raise RewindError(
            f"checkpoint #{checkpoint.number} knows of no conversation: "
            "no agent's session is connected to it",
            hint="restore without --context-only to put the files back",
        )
    adapter = adapter_of(anchor.agent)
    position = Position(checkpoint.at, anchor.prompt_id, anchor.entry, anchor.prompt)
    valid = adapter.valid_source(anchor.transcript, anchor.session)
    paths = dict.fromkeys([*([anchor.transcript] if valid else []),
                           *adapter.session_files(anchor.session)])
    for path in paths:
        data = read_session(path)
        cut = adapter.cut(data, position) if data else None
        if cut is not None:
            return Talk(adapter, checkpoint, cut, path, {})
    kept = archived(engine, anchor.agent, anchor.session)
    engine.store.objects.close()
    cut = adapter.cut(kept[MAIN], position) if MAIN in kept else None
    source = anchor.transcript if valid else next(iter(paths), "")
    if cut is None and checkpoint.at in (places.AT_START, places.AT_PROMPT) and not paths:
        cut = Cut([], anchor.prompt, has_prompts=False) if _is_first(engine, checkpoint) else None
    if cut is not None and not source:
        source = adapter.fresh_source(anchor.session, os.fsdecode(engine.workspace.root))
    if cut is None or not source:
        raise RewindError(
            f"the conversation of checkpoint #{checkpoint.number} is not there: "
            f"{adapter.title}'s session file does not hold it and the archive neither",
            hint="--code-only puts the files back",
        )
    return Talk(adapter, checkpoint, cut, source, kept)


def check_same_session(talk: Talk) -> None:
    """Whether a conversation can go on in its own file: only a tree, and only when nobody has it.

    Raises:
        RewindError: it cannot, or it is not known.
    """
    adapter = talk.adapter
    if not adapter.has_tree:
        raise RewindError(f"{adapter.title} cannot go on from an earlier point of a session",
                          hint="without --same-session it goes on in a new one", exit_code=2)
    if talk.archived:
        raise RewindError("the session's file is gone",
                          hint="without --same-session it goes on in a new one")
    _check_closed(adapter, talk.source)


def _check_closed(adapter: Adapter, path: str) -> None:
    try:
        running = adapter.running(path)
    except OSError:
        raise RewindError(f"it cannot be told here whether {adapter.title} is running",
                          hint="without --same-session it goes on in a new session") from None
    if running:
        pids = ", ".join(str(pid) for pid in running[:5])
        raise RewindError(f"{adapter.title} is running (process {pids}): its sessions are left "
                          "alone", hint="close it, or go on in a new session, "
                          "without --same-session")


def restore(
    engine: Engine, talk: Talk, *, move: str = "", same_session: bool = False
) -> Resume:
    """Put the conversation back and record it; `move` is the restore it belongs to.

    As a new session, or with `same_session` in its own file, where the path that is left stays.
    """
    anchor = talk.checkpoint.anchor
    new = stood = ""
    if same_session:
        check_same_session(talk)
        new = anchor.session
        stood = _move(talk.adapter, talk.source, talk.cut.leaf)
    elif talk.cut.has_prompts:
        new = str(uuid.uuid4())
        try:
            talk.adapter.write_fork(talk.cut, talk.source, anchor.session, new, _title(talk),
                                    talk.archived)
        except OSError as error:
            raise RewindError(f"the new session could not be written: {error.strerror}",
                              hint="files are as the restore left them") from error
    prompt = talk.prompt
    data: dict[str, object] = {"agent": anchor.agent, "from": anchor.session, "session": new,
                               "checkpoint": talk.checkpoint.id}
    if move:
        data["target"] = move
    if same_session:
        data["stood"], data["path"] = stood, talk.source
    engine.note(ops.CONVERSATION, data)
    fits = prompt if len(os.fsencode(prompt)) < _LONGEST_PREFILL and "\0" not in prompt else ""
    command = talk.adapter.resume_command(new, fits)
    return Resume(anchor.agent, new, command, prompt, os.fsdecode(engine.workspace.root))


def newest(engine: Engine) -> Record | None:
    """The newest conversation that was put back and not taken back since."""
    undone: set[str] = set()
    for record in reversed(engine.ledger.records()):
        if record.op == ops.CONVERSATION and record.id not in undone:
            if not record.text("undone"):
                return record
            undone.add(record.text("undone"))
    return None


def check_back(engine: Engine, record: Record) -> None:
    """Whether a conversation can be taken back, before files are: a session may have to be closed.

    Raises:
        RewindError: the agent is running.
    """
    move = engine.timeline().position.move
    if record.text("path") and move and move.record.id == record.text("target"):
        _check_closed(adapter_of(record.text("agent")), record.text("path"))


def take_back(engine: Engine, record: Record) -> Resume:
    """Point to the session that a restore had left."""
    agent, session = record.text("agent"), record.text("from")
    if not _is_id(session):
        raise RewindError("the earlier session is not known",
                          hint="the agent's own list of sessions may have it")
    adapter, path = adapter_of(agent), record.text("path")
    if path and adapter.valid_source(path, session):
        _check_closed(adapter, path)
        _move(adapter, path, record.text("stood"))
    engine.note(ops.CONVERSATION, {"agent": agent, "from": record.text("session"),
                                   "session": session, "undone": record.id})
    command = adapter.resume_command(session, "")
    return Resume(agent, session, command, "", os.fsdecode(engine.workspace.root))


def _move(adapter: Adapter, path: str, entry: str) -> str:
    try:
        return adapter.move(path, entry)
    except OSError as error:
        raise RewindError(f"the session could not be moved: {error.strerror}",
                          hint="without --same-session it goes on in a new one") from error


def stands_alone(engine: Engine, record: Record) -> bool:
    """Whether only a conversation was put back, and no file was moved since."""
    if record.text("target"):
        return False
    for other in reversed(engine.ledger.records()):
        if other.id == record.id:
            return True
        if other.op in ops.MOVES:
            return False
    return False


def _title(talk: Talk) -> str:
    words = " ".join((talk.checkpoint.anchor.prompt or talk.prompt).split())
    words = words if len(words) <= _TITLE else words[: _TITLE - 1] + "…"
    after = talk.checkpoint.at in (places.AT_END, places.AT_ENTRY)
    where = ("after " if after else "before ") + f"“{words}”" if words else "earlier"
    return f"↩ {where} (rewind #{talk.checkpoint.number})"


def _is_first(engine: Engine, checkpoint: Checkpoint) -> bool:
    """Whether nothing was said in a session before a checkpoint."""
    return not any(
        cp.anchor.session == checkpoint.anchor.session and cp.number < checkpoint.number
        and cp.at != places.AT_START and cp.anchor.prompt_id != checkpoint.anchor.prompt_id
        for cp in engine.timeline().checkpoints
    )


def _is_id(session: str) -> bool:
    return len(session) <= 128 and session[:1] not in ("", ".") and all(
        c.isascii() and (c.isalnum() or c in "-_.:") for c in session
    )
