"""What a worktree's last capture saw, kept so that the next one looks only at what changed.

A cache: deleting it costs time, not data. It always lies below $REWIND_HOME, never in a project,
because marshal is fast and trusts its input.
"""

from __future__ import annotations

import marshal
import os
import zlib
from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

_MAGIC = b"rewind state 4\n"

# A folder's record is a tuple, so that marshal can write 100,000 files in a few milliseconds.
# SIG is b"" when the folder changed too recently for its times to be trusted.
SIG: Final = 0
PERM: Final = 1
NAMES: Final = 2
STATS: Final = 3
MODES: Final = 4
OIDS: Final = 5
SUBS: Final = 6
OTHERS: Final = 7
TREE: Final = 8
ODD: Final = 9

Folder = tuple[
    bytes,  # SIG: mtime, ctime and inode of the folder itself
    int,  # PERM: its permission bits
    bytes,  # NAMES of the captured files, joined by NUL
    bytes,  # STATS: four columns (ctime, mtime, inode, size) of 8 bytes for each file
    bytes,  # MODES: st_mode of each file, 2 bytes
    bytes,  # OIDS of each file's content, joined
    tuple[bytes, ...],  # SUBS: names of the captured folders
    tuple[tuple[bytes, int, str], ...],  # OTHERS: name, type bits, reason left out
    bytes,  # TREE: the tree object, b"" when there is nothing to put in one
    tuple[tuple[bytes, int], ...],  # ODD: (name, permission bits) a git tree cannot say
]


class State:
    """The cache of one worktree."""

    __slots__ = (
        "base",
        "contexts",
        "coverage",
        "folders",
        "manifest",
        "manifest_source",
        "packs",
        "root",
        "rules",
        "snapshot",
        "staged",
        "tree",
        "watched",
        "young",
    )

    def __init__(self) -> None:
        self.folders: dict[bytes, Folder] = {}
        # Files to be read again although their times did not change: path -> when last read (ns).
        self.young: dict[bytes, int] = {}
        # Left-out files whose own change can bring them in: path -> signature.
        self.watched: dict[bytes, bytes] = {}
        # Nested repositories (and b"" for the root itself) -> signature of their index.
        self.contexts: dict[bytes, bytes] = {}
        # What decides what is ignored, outside the tree, and the filters -> signature.
        self.rules: bytes = b""
        # The usual permission bits of files, executables and folders here.
        self.base: tuple[int, int, int] = (0o644, 0o755, 0o755)
        self.packs: tuple[tuple[bytes, int, int], ...] = ()
        self.tree = b""
        self.manifest = b""
        self.manifest_source: bytes = b""
        self.root = b""  # the snapshot's tree: files and manifest
        self.snapshot = b""
        # The last coverage list: its blob, and (path, reason) of everything in it.
        self.coverage: tuple[bytes, list[tuple[bytes, str]]] = (b"", [])
        self.staged: tuple[bytes, str] = (b"", "")

    def save(self, path: bytes) -> None:
        """Replace the file. Not fsynced: a torn one is recognised and costs a full capture.

        Where it cannot be written, the older one stays: it costs time, not data.
        """
        fields = tuple(getattr(self, name) for name in self.__slots__)
        body = marshal.dumps(fields)
        temp = path + b".new"
        try:
            fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.fchmod(fd, 0o600)
                view = memoryview(_MAGIC + zlib.crc32(body).to_bytes(4, "big") + body)
                while view:
                    view = view[os.write(fd, view) :]
            finally:
                os.close(fd)
            os.replace(temp, path)
        except OSError:
            try:
                os.unlink(temp)
            except OSError:
                pass

    @classmethod
    def load(cls, path: bytes) -> State:
        """The saved state, or an empty one when there is none that can be trusted."""
        state = cls()
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            return state
        start = len(_MAGIC) + 4
        body = memoryview(data)[start:]
        crc = int.from_bytes(data[len(_MAGIC) : start], "big")
        if not data.startswith(_MAGIC) or zlib.crc32(body) != crc:
            return state
        try:
            fields = marshal.loads(body)  # noqa: S302 - private to us, and checksummed
        except (ValueError, EOFError, TypeError):
            return state
        for name, value in zip(cls.__slots__, fields, strict=True):
            setattr(state, name, value)
        return state


def stat_columns(stats: list[os.stat_result]) -> bytes:
    """The STATS column of some files."""
    numbers = [st.st_ctime_ns for st in stats]
    numbers += [st.st_mtime_ns for st in stats]
    numbers += [st.st_ino for st in stats]
    numbers += [st.st_size for st in stats]
    return eight_bytes(numbers)


def eight_bytes(numbers: list[int]) -> bytes:
    try:
        return array("q", numbers).tobytes()
    except OverflowError:  # inode numbers above 2**63 exist
        return array("Q", [number & 0xFFFFFFFFFFFFFFFF for number in numbers]).tobytes()


def signature(st: os.stat_result) -> bytes:
    """A folder's or single file's identity and times."""
    return eight_bytes([st.st_mtime_ns, st.st_ctime_ns, st.st_ino])


def file_signature(path: bytes) -> bytes:
    """The signature of what a path points to; b"" when it is not there."""
    try:
        st = os.stat(path)
    except OSError:
        return b""
    return eight_bytes([st.st_mtime_ns, st.st_ctime_ns, st.st_ino, st.st_size])


def names_of(folder: Folder) -> list[bytes]:
    return folder[NAMES].split(b"\0") if folder[NAMES] else []


def oids_of(folder: Folder, width: int) -> list[bytes]:
    data = folder[OIDS]
    return [data[i : i + width] for i in range(0, len(data), width)]


def modes_of(folder: Folder) -> array[int]:
    modes = array("H")
    modes.frombytes(folder[MODES])
    return modes


def looks_like(path: bytes, root: bytes) -> bool:
    """Whether `root` is the folder that the state at `path` was made of, moved to a new place.

    Inode numbers alone are used again soon; a file's change time together with its inode is not.
    """
    checked = 0
    for folder_path, folder in State.load(path).folders.items():
        names = names_of(folder)
        for i, name in enumerate(names[:5]):
            try:
                st = os.lstat(os.path.join(root, folder_path, name))
            except OSError:
                continue
            mine = eight_bytes([st.st_ctime_ns])
            if folder[STATS][8 * i : 8 * i + 8] == mine:
                return True
            checked += 1
        if checked > 200:
            break
    return False


def join(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name


def parents(path: bytes) -> Iterable[bytes]:
    """The folders above a path, nearest first, down to the root b""."""
    while path:
        path = path.rpartition(b"/")[0]
        yield path
