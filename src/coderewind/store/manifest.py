"""The manifest: what a git tree cannot say about a folder.

Permission bits other than the usual ones, empty folders, FIFOs, and the nested repositories, as a
JSON blob beside the tree. docs/format.md describes it.
"""

from __future__ import annotations

from coderewind.errors import RewindError
from coderewind.model import json
from coderewind.model.paths import is_safe, to_bytes, to_text

VERSION = 1

Source = tuple[
    tuple[int, int, int],
    list[tuple[bytes, int]],
    list[bytes],
    list[tuple[bytes, int]],
    list[bytes],
]


class Manifest:
    """One snapshot's manifest, read."""

    __slots__ = ("base", "fifos", "folders", "modes", "repositories")

    def __init__(self, source: Source) -> None:
        base, modes, folders, fifos, repositories = source
        self.base = base  # usual permission bits of files, executables, folders
        self.modes = dict(modes)
        self.folders = set(folders)
        self.fifos = dict(fifos)
        self.repositories = set(repositories)

    def perm(self, path: bytes, git_mode: int) -> int:
        """The permission bits of a captured path."""
        usual = self.base[2 if git_mode == 0o40000 else 1 if git_mode == 0o100755 else 0]
        return self.modes.get(path, usual)

    def within_repository(self, path: bytes) -> bytes:
        """The nested repository that a path lies in, b"" if in none."""
        for repository in self.repositories:
            if path.startswith(repository + b"/"):
                return repository
        return b""


def encode(source: Source) -> bytes:
    base, modes, folders, fifos, repositories = source
    data = {
        "version": VERSION,
        "usual": {
            "file": f"{base[0]:o}",
            "executable": f"{base[1]:o}",
            "folder": f"{base[2]:o}",
        },
        "modes": {to_text(path): f"{perm:o}" for path, perm in modes},
        "emptyFolders": [to_text(path) for path in folders],
        "fifos": {to_text(path): f"{perm:o}" for path, perm in fifos},
        "repositories": [to_text(path) for path in repositories],
    }
    return json.dumps(data, sort_keys=True).encode() + b"\n"


def decode(data: bytes) -> Manifest:
    """Read a manifest, trusting nothing: a store can come with a hostile repository."""
    try:
        raw = json.loads(data)
        if raw["version"] != VERSION:
            raise RewindError(
                f"this snapshot has manifest version {raw['version']}", hint="upgrade Rewind"
            )
        usual = raw["usual"]
        base = (_perm(usual["file"]), _perm(usual["executable"]), _perm(usual["folder"]))
        return Manifest(
            (
                base,
                [(_path(path), _perm(perm)) for path, perm in raw["modes"].items()],
                [_path(path) for path in raw["emptyFolders"]],
                [(_path(path), _perm(perm)) for path, perm in raw["fifos"].items()],
                [_path(path) for path in raw["repositories"]],
            )
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RewindError("this snapshot's manifest is damaged",
                          hint="rewind doctor shows what is damaged") from error


def _perm(text: str) -> int:
    value = int(text, 8)
    if not 0 <= value <= 0o7777:
        raise ValueError(text)
    return value


def _path(text: str) -> bytes:
    path = to_bytes(text)
    if not is_safe(path):
        raise ValueError(text)
    return path
