"""The session that the agent is in, and the sessions it was forked from."""

from __future__ import annotations

import os

from coderewind.agents.sessions import header_of
from coderewind.model.records import Checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

HOSTS = ("pi", "omp")
RESPAWN = "respawn"  # the reason of a bridge that takes the place of one that failed
_LONGEST_ID = 128
_MOST_ANCESTORS = 1000


class Session:
    """What the agent said of its session when the bridge was started."""

    def __init__(self, facts: dict[str, object]) -> None:
        host = facts.get("host")
        self.agent = host if host in HOSTS and isinstance(host, str) else HOSTS[0]
        self.id = session_id(facts.get("session"))
        self.file = _text(facts.get("sessionFile"))
        self.parent_file = _text(facts.get("parentSession"))
        self.previous_file = _text(facts.get("previousSessionFile"))
        self.reason = _text(facts.get("reason"))
        self.mode = _text(facts.get("mode"))
        self.has_ui = facts.get("hasUI") is True
        self.cwd = _text(facts.get("cwd"))
        self.leaf = _text(facts.get("leaf"))
        settings = facts.get("settings")
        self.settings: dict[str, object] = settings if isinstance(settings, dict) else {}
        self.is_silent = False
        self.lineage: list[str] = [self.id] if self.id else []

    @property
    def browser(self) -> str:
        """The command that lists the checkpoints; omp has a /rewind of its own."""
        return "checkpoints" if self.agent == "omp" else "rewind"

    @property
    def parent(self) -> str:
        """The session that this one was forked from, '' when it was not."""
        return id_of_file(self.parent_file)

    @property
    def is_subagent(self) -> bool:
        """Whether another agent started this one: omp keeps such a session below its parent's."""
        below = self.parent_file.removesuffix(".jsonl")
        return bool(below) and os.path.dirname(self.file) == below

    def find_lineage(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Follow the parents: by the headers of session files and, where one is gone, by what
        the ledger knows."""
        known = {cp.anchor.session: cp.anchor.parent_session for cp in checkpoints
                 if cp.anchor.parent_session}
        lineage = [self.id] if self.id else []
        file, parent = self.parent_file, self.parent
        while parent and parent not in lineage and len(lineage) < _MOST_ANCESTORS:
            lineage.append(parent)
            header = header_of(file) if file else None
            file = header.parent if header else ""
            parent = id_of_file(file) or known.get(parent, "")
        self.lineage = lineage


def id_of_file(path: str) -> str:
    """The session that a file holds, by its name, `<time>_<id>.jsonl`; an id is one already."""
    name = os.path.basename(path)
    return session_id(name.removesuffix(".jsonl").rpartition("_")[2]) if path else ""


def session_id(value: object) -> str:
    """An id that is safe in a ledger and a file name; '' for anything else."""
    if not isinstance(value, str) or not value or len(value) > _LONGEST_ID or value[0] == ".":
        return ""
    return value if all(c.isascii() and (c.isalnum() or c in "-_.:") for c in value) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) and "\0" not in value else ""
