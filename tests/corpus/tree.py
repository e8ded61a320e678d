"""A lossless picture of a folder, and the differences of two pictures in words.

Every path is bytes, relative to the folder, and holds a type, permission bits and content (a
file's bytes, a symlink's target). `.git` is left out unless asked for, since a checkpoint is
about the files; `git_picture` is the opposite: only what lies under a `.git`.
"""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

TYPES = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


@dataclass(frozen=True)
class Node:
    """What stands at one path."""

    type: str
    mode: int
    data: bytes = b""


Picture = dict[bytes, Node]


def picture(folder: str | bytes, *, git: bool = False, skip: Iterable[bytes] = ()) -> Picture:
    """Everything below `folder`, without following symlinks; paths in `skip` are left out."""
    found: Picture = {}
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _look(root, b"", found, git, frozenset(skip))
    finally:
        os.close(root)
    return found


def git_picture(folder: str | bytes) -> Picture:
    """Everything below `folder` that is a `.git` or lies in one."""
    return {
        path: node
        for path, node in picture(folder, git=True).items()
        if b".git" in path.split(b"/")
    }


def _look(at: int, prefix: bytes, found: Picture, git: bool, skip: frozenset[bytes]) -> None:
    for entry in sorted(os.listdir(at)):
        name = os.fsencode(entry)
        path = prefix + name
        if (name == b".git" and not git) or path in skip:
            continue
        try:
            seen = os.lstat(name, dir_fd=at)
        except PermissionError:
            found[path] = Node("hidden", 0)
            continue
        kind = TYPES[stat.S_IFMT(seen.st_mode)]
        mode = stat.S_IMODE(seen.st_mode)
        if kind == "file":
            found[path] = Node(kind, mode, _read(name, at))
        elif kind == "symlink":
            found[path] = Node(kind, 0, os.readlink(name, dir_fd=at))
        else:
            found[path] = Node(kind, mode)
        if kind == "directory":
            try:
                inside = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            except PermissionError:
                continue
            try:
                _look(inside, path + b"/", found, git, skip)
            finally:
                os.close(inside)


def _read(name: bytes, at: int) -> bytes:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=at)
    except PermissionError:
        return b"<unreadable>"
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def differences(wanted: Picture, found: Picture) -> list[str]:
    """One line for each path that differs."""
    lines = []
    for path in sorted(wanted.keys() | found.keys()):
        one, other = wanted.get(path), found.get(path)
        if one == other:
            continue
        if one is None:
            assert other is not None
            lines.append(f"should not be there: {other.type} {_short(path)}")
        elif other is None:
            lines.append(f"missing: {one.type} {_short(path)}")
        elif one.type != other.type:
            lines.append(f"type: {_short(path)} should be {one.type}, is {other.type}")
        else:
            if one.mode != other.mode:
                lines.append(f"mode: {_short(path)} should be {one.mode:04o}, is {other.mode:04o}")
            if one.data != other.data:
                lines.append(
                    f"bytes: {_short(path)} should be {_short(one.data)}, is {_short(other.data)}"
                )
    return lines


def assert_same(wanted: Picture, found: Picture, what: str = "the folder") -> None:
    """Fail, naming each path that differs."""
    lines = differences(wanted, found)
    if lines:
        more = [f"... and {len(lines) - 30} more"] if len(lines) > 30 else []
        raise AssertionError("\n".join([f"{what} is not as it was:", *lines[:30], *more]))


def _short(data: bytes) -> str:
    text = repr(data[:70])
    return text if len(data) <= 70 else f"{text}... ({len(data)} bytes)"
