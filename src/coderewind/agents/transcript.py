"""Read an agent's session file while the agent goes on writing it.

A session file is lines of JSON that only grow. What was archived of it is known by a mark: how
far, and a check of the last bytes before that, so that a file that was rewritten is noticed.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from coderewind.model import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 4 << 20
_CHECKED = 256
_HEAD = 64 << 10
_TAIL = 256 << 10


class Mark:
    """How far a session file is archived."""

    __slots__ = ("check", "offset")

    def __init__(self, offset: int = 0, check: str = "") -> None:
        self.offset = offset
        self.check = check

    def as_json(self) -> list[object]:
        return [self.offset, self.check]

    @classmethod
    def from_json(cls, data: object) -> Mark:
        if isinstance(data, list) and len(data) == 2:
            offset, check = data
            if type(offset) is int and offset >= 0 and isinstance(check, str):
                return cls(offset, check)
        return cls()


class Part:
    """What a session file gained since a mark, cut at the end of a line."""

    __slots__ = ("chunks", "end", "start")

    def __init__(self, start: int, chunks: list[bytes], end: Mark) -> None:
        self.start = start
        self.chunks = chunks
        self.end = end


def open_session(path: str) -> int:
    """A descriptor of a session file; -1 when it is not there or not a file of the user's."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return -1
    st = os.fstat(fd)
    if not S_ISREG(st.st_mode) or st.st_uid != os.geteuid():
        os.close(fd)
        return -1
    return fd


def part_since(path: str, mark: Mark, limit: int) -> Part | None:
    """At most `limit` bytes that came after `mark`; None when there are none.

    A file that is no longer what the mark speaks of is read from its start.
    """
    fd = open_session(path)
    if fd < 0:
        return None
    try:
        size = os.fstat(fd).st_size
        start = mark.offset
        if start and (size < start or _check(fd, start) != mark.check):
            start = 0
        chunks = []
        at = start
        while at < size and at - start < limit:
            data = os.pread(fd, min(CHUNK, size - at, limit - (at - start)), at)
            whole = data[: data.rfind(b"\n") + 1]
            if not whole:
                if at + len(data) >= size:
                    break  # the last line is still being written
                whole = data  # one line larger than a chunk
            chunks.append(whole)
            at += len(whole)
        if not chunks:
            return None
        return Part(start, chunks, Mark(at, _check(fd, at)))
    except OSError:
        return None
    finally:
        os.close(fd)


def _check(fd: int, offset: int) -> str:
    from hashlib import sha1

    length = min(offset, _CHECKED)
    return sha1(os.pread(fd, length, offset - length), usedforsecurity=False).hexdigest()


def read_session(path: str, limit: int = -1) -> bytes:
    """A session file's content, at most `limit` bytes of it; b"" when it cannot be read."""
    fd = open_session(path)
    if fd < 0:
        return b""
    with os.fdopen(fd, "rb") as file:
        try:
            return file.read(limit)
        except OSError:
            return b""


def first_row(path: str) -> dict[str, object]:
    """The first row of a session file; an empty one when there is none."""
    fd = open_session(path)
    if fd < 0:
        return {}
    try:
        return row_of(os.pread(fd, _HEAD, 0).partition(b"\n")[0]) or {}
    except OSError:
        return {}
    finally:
        os.close(fd)


def last_rows(path: str) -> list[dict[str, object]]:
    """The rows in the last 256 KiB of a session file; of a longer end where that holds none."""
    fd = open_session(path)
    if fd < 0:
        return []
    tail = _TAIL
    try:
        size = os.fstat(fd).st_size
        while True:
            lines = os.pread(fd, tail, max(0, size - tail)).split(b"\n")
            if size > tail:
                del lines[0]  # its beginning is further up
            rows = [row for line in lines if (row := row_of(line)) is not None]
            if rows or size <= tail:
                return rows
            tail *= 8
    except OSError:
        return []
    finally:
        os.close(fd)


def row_of(line: bytes) -> dict[str, object] | None:
    """One line as a row; None for what is no JSON object."""
    if not line.startswith(b"{"):
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def rows_of(data: bytes) -> Iterator[tuple[dict[str, object], bytes]]:
    """All rows of a session file, each with its line; broken lines are left out."""
    for line in data.split(b"\n"):
        row = row_of(line)
        if row is not None:
            yield row, line


def line_of(row: dict[str, object]) -> bytes:
    """A row as a line, in the agents' own spelling."""
    import json

    try:
        return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a surrogate pair: only its escape is valid UTF-8
        return json.dumps(row, separators=(",", ":")).encode()


def text_of(content: object) -> str:
    """The words in a message's content: a string, or the text blocks of a list."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    found = [block.get("text") for block in content
             if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join(text for text in found if isinstance(text, str))
