"""Edits of a worktree: every type of path, odd names, and changes that hide behind equal times."""

import os
import stat

from corpus.box import Box
from hypothesis import strategies as st

# Names that git refuses, takes for options or magic, ignores by the rules below, or filters.
NAMES = (
    b"a",
    b"b",
    b"A",
    b"-x",
    b":(top)*",
    b"new\nline",
    b"\xff\xfe",
    b"a.ign",
    b"keep.ign",
    b"ignored",
    b"node_modules",
    b"git~1",
    b".GIT",
    b".gitmodules",
    "e\u0301".encode(),
    b"n" * 255,
)
RULES = (
    b"",
    b"*.ign\n",
    b"*.ign\n!keep.ign\n",
    b"ignored/\n",
    b"ignored\nnode_modules\n",
    b"/a\n",
    b"a/b\n",
    b"*\n",
    b"*\n!*/\n!*.ign\n",
    b".gitignore\n",
)
MODES = (0o644, 0o755, 0o600, 0o700, 0o444, 0o400, 0o640, 0o666)
FOLDER_MODES = (0o755, 0o700, 0o555, 0o750)
# Of equal length, so that an edit may change nothing but the bytes.
CONTENTS = (b"one\n", b"two\n", b"\r\n\r\n", b"\0\xff\0\n")

names = st.sampled_from(NAMES)
paths = st.lists(names, min_size=1, max_size=3).map(b"/".join)
contents = st.sampled_from((*CONTENTS, b"", b"longer than the others\n"))
kinds = st.sampled_from(
    ("file", "file", "file", "folder", "link", "dangling", "loop", "fifo", "absent", "absent")
)


def clear(box: Box, path: bytes) -> None:
    """Make room at `path`: nothing there, and folders all the way down to it."""
    parts = path.split(b"/")
    for depth in range(1, len(parts)):
        up = b"/".join(parts[:depth])
        if not stat.S_ISDIR(_mode(box, up)):
            box.remove(up).mkdir(up)
    box.remove(path)


def put(box: Box, path: bytes, kind: str, content: bytes, mode: int) -> None:
    """Put something of a kind at a path, whatever stands there."""
    clear(box, path)
    if kind == "file":
        box.write(path, content, mode)
    elif kind == "folder":
        box.mkdir(path, FOLDER_MODES[mode % len(FOLDER_MODES)])
    elif kind == "link":
        box.symlink(path, b"a")
    elif kind == "dangling":
        box.symlink(path, b"../nowhere/" + content.replace(b"\0", b"-") + b".")
    elif kind == "loop":
        box.symlink(path, path.rpartition(b"/")[2])
    elif kind == "fifo":
        os.mkfifo(box.path(path), mode | 0o200)


def overwrite_unseen(box: Box, path: bytes, content: bytes) -> None:
    """Other bytes of the same length in place, and the old times put back."""
    full = box.path(path)
    before = os.lstat(full)
    with open(full, "r+b") as file:
        file.write(content[: before.st_size].ljust(before.st_size, b"."))
    os.utime(full, ns=(before.st_atime_ns, before.st_mtime_ns))


def _mode(box: Box, path: bytes) -> int:
    try:
        return os.lstat(box.path(path)).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
