"""The public Python API: one class over the engine, with paths and results as plain values."""

from __future__ import annotations

import os

from coderewind.engine import retention, settings
from coderewind.engine.changes import changes_between
from coderewind.engine.engine import Engine
from coderewind.engine.moving import Outcome
from coderewind.model.changes import FileChange
from coderewind.model.plan import Plan
from coderewind.model.records import Anchor, Checkpoint
from coderewind.timeline.build import Timeline
from coderewind.wiring import open_engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.context.tools import Gate


class Rewind:
    """One protected folder; a context manager that closes it.

    Every method may raise RewindError, which says in one line what is wrong and what to do, and
    OSError where the system itself failed; either way nothing is half done.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def open(cls, path: str | os.PathLike[str] = ".", *, create: bool = True) -> Rewind:
        """Open the worktree around `path`; its store is made when there is none."""
        return cls(open_engine(os.fsencode(path), create=create))

    def close(self) -> None:
        """End the git processes that read the store; the next call starts them again."""
        self.engine.store.objects.close()

    def __enter__(self) -> Rewind:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def root(self) -> str:
        """The folder that is protected."""
        return os.fsdecode(self.engine.workspace.root)

    def checkpoint(self, label: str = "", *, anchor: Anchor | None = None) -> Checkpoint:
        """Capture the folder as it is now."""
        return self.engine.save(label=label, anchor=anchor).checkpoint

    def timeline(self) -> Timeline:
        """All checkpoints, newest first in `.checkpoints`."""
        return self.engine.timeline()

    def changes(self, before: Checkpoint | str, after: Checkpoint | str) -> list[FileChange]:
        """The files in which two checkpoints differ, with their lines counted."""
        return changes_between(self.engine, self._checkpoint(before), self._checkpoint(after))

    def plan(self, target: Checkpoint | str, *, paths: tuple[str, ...] = ()) -> Plan:
        """What restoring would change, without changing anything."""
        return self.engine.plan(self._checkpoint(target), paths=_bytes(paths))

    def restore(self, target: Checkpoint | str, *, paths: tuple[str, ...] = ()) -> Outcome:
        """Make the files as the checkpoint holds them; `undo_restore` takes it back."""
        return self.engine.restore(self._checkpoint(target), paths=_bytes(paths))

    def undo(self, steps: int = 1) -> Outcome:
        """Step back to the newest earlier state whose files differ from now."""
        return self.engine.undo(steps)

    def redo(self, steps: int = 1) -> Outcome:
        """Step forward again to what undo left."""
        return self.engine.redo(steps)

    def undo_restore(self) -> Outcome:
        """Reverse the last restore, undo or redo."""
        return self.engine.undo_restore()

    def gate(self, *, subagent: bool = False) -> Gate:
        """What the user's configuration lets an agent do with its context and these files."""
        from coderewind.context.tools import Gate

        values = settings.load(self.engine.store)
        return Gate(enabled=values.flag("checkpoint.enabled"),
                    may_restore=values.flag("agents.mayRestore"), subagent=subagent,
                    subagents=values.flag("checkpoint.subagents"))

    def prune(self, keep: int | None = None) -> retention.Pruned:
        """Apply retention and compact the store."""
        return retention.prune(self.engine, settings.load(self.engine.store), keep=keep)

    def _checkpoint(self, target: Checkpoint | str) -> Checkpoint:
        return target if isinstance(target, Checkpoint) else self.engine.resolve(target)


def _bytes(paths: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(os.fsencode(path).rstrip(b"/") for path in paths)
