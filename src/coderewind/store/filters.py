"""Filters: what is left out by choice, and never deleted or overwritten for it."""

from __future__ import annotations

REPOSITORY_FOLDERS = (
    ".cache",
    ".mypy_cache",
    ".pytest_cache",
    ".tox",
    ".venv",
    "__pycache__",
    "node_modules",
    "venv",
)
PLAIN_FOLDERS = (*REPOSITORY_FOLDERS, ".env", "build", "dist", "env", "target")
MAX_FILE_BYTES = 100 << 20


class Filters:
    """The limits in force for one worktree; they concern untracked files and folders only."""

    __slots__ = ("max_dir_files", "max_file_bytes", "plain", "repository")

    def __init__(
        self,
        max_file_bytes: int = MAX_FILE_BYTES,
        max_dir_files: int = 0,
        directories: tuple[str, ...] | None = None,
    ) -> None:
        self.max_file_bytes = max_file_bytes
        self.max_dir_files = max_dir_files
        chosen = None if directories is None else tuple(directories)
        self.repository = _names(REPOSITORY_FOLDERS if chosen is None else chosen)
        self.plain = _names(PLAIN_FOLDERS if chosen is None else chosen)

    @classmethod
    def smart(cls, directories: tuple[str, ...] | None = None) -> Filters:
        """pi-rewind's own limits."""
        return cls(10 << 20, 200, PLAIN_FOLDERS if directories is None else directories)

    def signature(self) -> bytes:
        names = b"/".join(sorted(self.repository)) + b"//" + b"/".join(sorted(self.plain))
        return b"%d %d " % (self.max_file_bytes, self.max_dir_files) + names

    def folder(self, name: bytes, *, in_repository: bool) -> bool:
        return name in (self.repository if in_repository else self.plain)


def _names(names: tuple[str, ...]) -> frozenset[bytes]:
    return frozenset(name.encode() for name in names)
