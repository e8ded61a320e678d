"""What changed between two checkpoints, file by file, with lines counted as git counts them."""

from __future__ import annotations

from coderewind.engine.engine import Engine
from coderewind.model.changes import ADDED, DELETED, MODIFIED, FileChange
from coderewind.model.records import Checkpoint
from coderewind.store.diff import compare


def changes_between(engine: Engine, before: Checkpoint, after: Checkpoint) -> list[FileChange]:
    """The files in which two checkpoints differ, sorted by path."""
    old, new = engine.snapshot_view(before).tree, engine.snapshot_view(after).tree
    counted = engine.store.git.run(
        "diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv",
        old.hex(), new.hex(),
    )
    lines: dict[bytes, tuple[int | None, int | None]] = {}
    for row in counted.split(b"\0")[:-1]:
        added, removed, path = row.split(b"\t", 2)
        lines[path] = (None, None) if added == b"-" else (int(added), int(removed))
    return [
        FileChange(
            d.path,
            ADDED if not d.old_mode else DELETED if not d.new_mode else MODIFIED,
            *lines.get(d.path, (None, None)),
        )
        for d in compare(engine.store.objects, old, new)
    ]
