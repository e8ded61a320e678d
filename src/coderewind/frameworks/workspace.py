"""The folder that an agent works in: checkpoints at its turns, and what its user allows there."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence

from coderewind.api import Rewind
from coderewind.context import ContextRewind, Gate, Messages
from coderewind.context.messages import M
from coderewind.engine import settings
from coderewind.errors import RewindError
from coderewind.model.changes import FileChange
from coderewind.model.records import Anchor, Checkpoint

PROMPT_KEPT = 1000  # characters of a prompt that a checkpoint remembers
Folder = str | os.PathLike[str] | Rewind

_log = logging.getLogger(__name__)


class Workspace:
    """One folder and one agent, from any thread. Without a folder there are only the tools.

    A failure to capture is logged and never stops the agent.
    """

    def __init__(self, folder: Folder | None, agent: str, gate: Gate | None = None) -> None:
        """`gate` is what the user allows; by default what their configuration says."""
        self._agent = agent
        self._one_at_a_time = threading.Lock()
        self._rewind = _opened(folder)
        self._is_ours = not isinstance(folder, Rewind)  # to close, which is cheap to undo
        self.gate = gate or self._users_gate()

    @property
    def root(self) -> str | None:
        """The folder, if there is one."""
        return self._rewind.root if self._rewind else None

    def rewinder(self, how: Messages[M]) -> ContextRewind[M]:
        """The state of one conversation in this folder."""
        return ContextRewind(how, files=self if self._rewind else None, gate=self.gate)

    def prompted(self, prompt: str, session: str = "") -> None:
        """A turn begins: hold the files as they are."""
        words = prompt[:PROMPT_KEPT].encode("utf-8", "replace").decode()
        self._save("prompt", Anchor(agent=self._agent, session=session, prompt=words))

    def stopped(self, session: str = "") -> None:
        """A turn is over: hold the files, unless they are as they were."""
        self._save("after", Anchor(agent=self._agent, session=session), reuse=True)
        if self._rewind is not None and self._is_ours:
            with self._one_at_a_time:
                self._rewind.close()

    # ---- what a ContextRewind asks of files

    def checkpoint(self, label: str = "") -> Checkpoint:
        with self._one_at_a_time:
            return self._open().checkpoint(label, anchor=Anchor(agent=self._agent))

    def changes(self, before: str, after: str) -> Sequence[FileChange]:
        with self._one_at_a_time:
            return self._open().changes(before, after)

    def restore(self, target: str) -> object:
        with self._one_at_a_time:
            return self._open().restore(target)

    # ----

    def _open(self) -> Rewind:
        assert self._rewind is not None, "there is no folder"
        return self._rewind

    def _save(self, kind: str, anchor: Anchor, *, reuse: bool = False) -> None:
        if self._rewind is None:
            return
        try:
            with self._one_at_a_time:
                self._rewind.engine.save(kind, anchor=anchor, reuse=reuse)
        except (RewindError, OSError) as error:
            _log.warning("no checkpoint of the files was made: %s", error)

    def _users_gate(self) -> Gate:
        if self._rewind is not None:
            return self._rewind.gate()
        values = settings.load(None)
        return Gate(enabled=values.flag("checkpoint.enabled"),
                    subagents=values.flag("checkpoint.subagents"))


def _opened(folder: Folder | None) -> Rewind | None:
    return folder if folder is None or isinstance(folder, Rewind) else Rewind.open(folder)
