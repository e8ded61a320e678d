"""Coverage: what a snapshot did not hold, and why."""

from __future__ import annotations

from coderewind.model.paths import to_text

# Reasons. Words that users see, in `status`, `show` and --json.
IGNORED = "ignored"
FILTERED = "filtered-directory"
TOO_MANY = "too-many-files"
TOO_LARGE = "too-large"
FIFO = "fifo"
SOCKET = "socket"
DEVICE = "device"
UNREADABLE = "unreadable"
TOO_LONG = "path-too-long"
OWN_STORE = "rewind-store"
GIT_STATE = "git-directory"  # of a repository whose `.git` only names it
NOT_RECORDED = "not-recorded"  # by the program that a checkpoint was taken over from
FOREIGN_INDEX = "index-unreadable"


class LeftOut:
    """One path (a folder stands for all below it) that a snapshot does not hold."""

    __slots__ = ("path", "reason")

    def __init__(self, path: bytes, reason: str) -> None:
        self.path = path
        self.reason = reason

    def as_json(self) -> dict[str, str]:
        return {"path": to_text(self.path), "reason": self.reason}

    def __repr__(self) -> str:
        return f"LeftOut({self.path!r}, {self.reason!r})"
