"""What changed in the files between two snapshots, path by path."""

from __future__ import annotations

ADDED = "added"
DELETED = "deleted"
MODIFIED = "modified"


class FileChange:
    """One path; `added` and `removed` count lines, None where lines mean nothing."""

    __slots__ = ("added", "path", "removed", "status")

    def __init__(
        self, path: bytes, status: str, added: int | None = None, removed: int | None = None
    ) -> None:
        self.path = path
        self.status = status
        self.added = added
        self.removed = removed

    @property
    def name(self) -> str:
        """The path to be read: on one line, whatever bytes it has."""
        text = self.path.decode("utf-8", "backslashreplace")
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
