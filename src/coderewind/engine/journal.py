"""The journal of a move: written before the first change, removed after the last.

While it exists, the worktree may be between two states, both of which the ledger reaches.
"""

from __future__ import annotations

import json
import os

from coderewind.errors import RewindError
from coderewind.model.paths import to_bytes
from coderewind.store.home import Store
from coderewind.store.pack import fsync_dir, write_durably
from coderewind.store.workspace import Workspace
from coderewind.store.writer import remove_stage


class Interrupted:
    """A move that did not come to its end."""

    __slots__ = ("index", "paths", "record", "stage", "target")

    def __init__(self, data: dict[str, object]) -> None:
        self.record = str(data.get("record", ""))
        self.target = str(data.get("target", ""))
        self.stage = to_bytes(str(data.get("stage", "")))
        # What to put back into the user's index; None when it is to be left alone.
        index = data.get("index")
        self.index = index if isinstance(index, str) else None
        paths = data.get("paths")
        self.paths = tuple(str(path) for path in paths) if isinstance(paths, list) else ()


class Journal:
    """At most one move of a worktree is under way."""

    def __init__(self, store: Store, workspace: Workspace) -> None:
        self._path = os.path.join(store.private_dir(workspace.name), b"journal.json")

    def begin(self, data: dict[str, object]) -> None:
        write_durably(self._path, json.dumps(data).encode() + b"\n")
        fsync_dir(os.path.dirname(self._path))

    def end(self) -> None:
        try:
            os.unlink(self._path)
            fsync_dir(os.path.dirname(self._path))
        except FileNotFoundError:
            pass

    def read(self) -> Interrupted | None:
        """The interrupted move, if there is one; what it had staged is thrown away."""
        try:
            with open(self._path, "rb") as file:
                data = json.loads(file.read())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise RewindError("the journal of a restore is damaged", hint="rewind doctor --repair"
                              ) from error
        return Interrupted(data if isinstance(data, dict) else {})

    def exists(self) -> bool:
        return os.path.exists(self._path)

    def clear_stage(self) -> None:
        interrupted = self.read()
        if interrupted is not None and interrupted.stage:
            remove_stage(interrupted.stage)
