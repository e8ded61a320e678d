"""A plan: what a restore would do, inspectable before anything is touched."""

from __future__ import annotations

from coderewind.model.paths import to_text

WRITE = "write"  # create or replace a file or link
DELETE = "delete"
MKDIR = "mkdir"
RMDIR = "rmdir"
CHMOD = "chmod"
FIFO = "fifo"


class Step:
    """One change to one path."""

    __slots__ = ("action", "git_mode", "is_new", "oid", "old_oid", "path", "perm")

    def __init__(
        self,
        action: str,
        path: bytes,
        *,
        git_mode: int = 0,
        perm: int = 0,
        oid: bytes = b"",
        old_oid: bytes = b"",
        is_new: bool = False,
    ) -> None:
        self.action = action
        self.path = path
        self.git_mode = git_mode
        self.perm = perm
        self.oid = oid  # the content to write
        self.old_oid = old_oid  # the content that is there now and is in the rescue
        self.is_new = is_new

    @property
    def word(self) -> str:
        """The change in a user's word."""
        if self.action == WRITE:
            return "create" if self.is_new else "change"
        return {DELETE: "delete", MKDIR: "create folder", RMDIR: "delete folder",
                CHMOD: "change mode", FIFO: "create pipe"}[self.action]

    def as_json(self) -> dict[str, object]:
        return {"action": self.word, "path": to_text(self.path)}


class Kept:
    """A path that restoring leaves as it is, or that stands in its way, and why."""

    __slots__ = ("path", "why")

    def __init__(self, path: bytes, why: str) -> None:
        self.path = path
        self.why = why

    def as_json(self) -> dict[str, str]:
        return {"path": to_text(self.path), "why": self.why}


class Plan:
    """The difference between the worktree now and a target snapshot, as steps."""

    __slots__ = (
        "blocked", "extra", "kept", "paths", "rescue", "steps", "stood", "target", "warnings"
    )

    def __init__(self, target: str, rescue: str, paths: tuple[bytes, ...] = ()) -> None:
        self.target = target  # snapshot ids
        self.rescue = rescue
        self.paths = paths
        self.steps: list[Step] = []
        self.kept: list[Kept] = []
        self.blocked: list[Kept] = []
        self.warnings: list[str] = []
        # Left-out paths that stand in the way: to be captured into the rescue first.
        self.extra: tuple[bytes, ...] = ()
        # Left-out folders that the target holds too: they stay, and this was their mode.
        self.stood: dict[bytes, int] = {}

    @property
    def is_empty(self) -> bool:
        return not self.steps

    def as_json(self) -> dict[str, object]:
        return {
            "target": self.target,
            "changes": [step.as_json() for step in self.steps],
            "kept": [kept.as_json() for kept in self.kept],
            "blocked": [kept.as_json() for kept in self.blocked],
            "warnings": self.warnings,
        }
