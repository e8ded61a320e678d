"""The journal of a move: written before the move is recorded, removed after its last change.

With its record in the ledger, the worktree may be between two states, both of which the ledger
reaches. Without, the move never began, and what the journal said before still holds.
"""

from __future__ import annotations

import os

from coderewind.errors import RewindError
from coderewind.model import json
from coderewind.model.paths import to_bytes
from coderewind.store.home import Store
from coderewind.store.pack import fsync_dir, write_durably
from coderewind.store.workspace import Workspace
from coderewind.store.writer import remove_stage


class Interrupted:
    """A move that did not come to its end."""

    __slots__ = ("before", "data", "index", "paths", "record", "stage", "target")

    def __init__(self, data: dict[str, object]) -> None:
        before = data.get("before")
        # The interrupted move that this one found, for when it did not even begin.
        self.before = Interrupted(before) if isinstance(before, dict) else None
        self.data = {key: value for key, value in data.items() if key != "before"}
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

    def begin(self, data: dict[str, object], found: Interrupted | None) -> None:
        """Announce a move; `found` is the interrupted one that it takes the place of."""
        if found is not None and found.record != data["record"]:
            data = {**data, "before": found.data}
        write_durably(self._path, json.dumps(data).encode() + b"\n")
        fsync_dir(os.path.dirname(self._path))

    def end(self) -> None:
        try:
            os.unlink(self._path)
            fsync_dir(os.path.dirname(self._path))
        except FileNotFoundError:
            pass

    def read(self) -> Interrupted | None:
        """What was announced; the ledger knows whether it began (`Engine.interrupted`)."""
        try:
            with open(self._path, "rb") as file:
                data = json.loads(file.read())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise RewindError("the journal of a restore is damaged",
                              hint="rewind doctor --repair removes it") from error
        return Interrupted(data if isinstance(data, dict) else {})

    def exists(self) -> bool:
        return os.path.exists(self._path)

    def sweep(self) -> None:
        """Remove what a killed move had staged, which may be among the user's files.

        The caller holds the lock; a move that goes on stages anew.
        """
        if not self.exists():
            return
        try:
            found = self.read()
        except RewindError:
            return  # said by whoever needs it
        if found is not None and found.stage:
            remove_stage(found.stage)
