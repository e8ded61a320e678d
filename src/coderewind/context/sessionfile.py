"""The bytes of a session file: its lines found without parsing them, and appends that survive.

Rules: what is in the file is never changed (omp's title slot, which has a place of its own, is
the exception). A half last line, left by a crash, is closed by a line end and stays as it is:
every reader skips a broken line. An append is one write, on the disk before it is believed; when
it fails, the file is as long as before.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator

from coderewind.store.lock import Lock
from coderewind.store.pack import fsync_dir

TITLE_SLOT = 256  # bytes of omp's first line, padded, rewritten in place

# Pi and omp write the ids either first or last. Both patterns hold for any valid JSON line:
# neither can begin inside a text, where each quotation mark is escaped.
_IDS = rb'"id":\s?"([^"\\]+)",\s?"parentId":\s?(?:null|"([^"\\]*)")'
_ROLE = rb'"timestamp":\s?"[^"\\]*",\s?"message":\s?\{\s?"role":\s?"([^"\\]+)"'
_HEAD = re.compile(rb'\{\s?"type":\s?"([^"\\]+)"(?:,\s?' + _IDS
                   + rb"(?=[,}])(?:,\s?" + _ROLE + rb")?)?")
_TAIL = re.compile(rb",\s?" + _IDS + rb',\s?"timestamp":\s?"[^"\\]*"\}\Z')
_TAIL_BYTES = 400


class Spot:
    """Where an entry lies in its file, and what the tree needs to know of it."""

    __slots__ = ("id", "length", "offset", "parent", "role", "type")

    def __init__(
        self, offset: int, length: int, type: str, id: str, parent: str, role: str = ""
    ) -> None:
        self.offset = offset
        self.length = length
        self.type = type
        self.id = id
        self.parent = parent  # "": none
        self.role = role  # of a message; "": only a full parse can say


def spot(offset: int, line: bytes) -> Spot | None:
    """The entry of a line by its ids alone; None when a full parse must say what it is."""
    head = _HEAD.match(line)
    if head is None:
        return None
    ids = 2
    found: re.Match[bytes] | None = head
    if head[2] is None:
        found = _TAIL.search(line, max(0, len(line) - _TAIL_BYTES))
        ids = 1
    if found is None:
        return None
    try:
        return Spot(offset, len(line), head[1].decode(), found[ids].decode(),
                    (found[ids + 1] or b"").decode(), (head[4] or b"").decode())
    except UnicodeDecodeError:
        return None


class SessionFile:
    """One file, locked while it is written so that two of our processes never interleave."""

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)

    def size(self) -> int:
        try:
            return os.stat(self.path).st_size
        except FileNotFoundError:
            return 0

    def lines(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Each line from an offset on, without its line end; the last may be half."""
        with open(self.path, "rb", buffering=1 << 20) as file:
            file.seek(start)
            for line in file:
                yield start, line.rstrip()
                start += len(line)

    def read(self, offset: int, length: int) -> bytes:
        with open(self.path, "rb", buffering=0) as file:
            return os.pread(file.fileno(), length, offset)

    def append(self, data: bytes) -> int:
        """Write whole lines at the end; their offset.

        Raises:
            OSError: nothing was written, or the disk did not confirm it.
        """
        fresh = not os.path.exists(self.path)
        with Lock(os.fsencode(self.path)):
            fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            try:
                size = os.fstat(fd).st_size
                half = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
                _write(fd, b"\n" + data if half else data, size)
                os.fsync(fd)
            finally:
                os.close(fd)
        if fresh:
            fsync_dir(os.path.dirname(os.fsencode(self.path)))
        return size + half

    def overwrite_title(self, slot: bytes) -> None:
        """Replace the title slot, and nothing beyond it."""
        assert len(slot) == TITLE_SLOT
        with Lock(os.fsencode(self.path)):
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.pwrite(fd, slot, 0)
                os.fsync(fd)
            finally:
                os.close(fd)


class Memory:
    """The same for a session that is kept nowhere."""

    path = ""

    def __init__(self) -> None:
        self._data = bytearray()

    def size(self) -> int:
        return len(self._data)

    def lines(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        for line in io.BytesIO(self._data[start:]):
            yield start, line.rstrip()
            start += len(line)

    def read(self, offset: int, length: int) -> bytes:
        return bytes(self._data[offset : offset + length])

    def append(self, data: bytes) -> int:
        offset = len(self._data)
        self._data += data
        return offset

    def overwrite_title(self, slot: bytes) -> None:
        self._data[:TITLE_SLOT] = slot


def _write(fd: int, data: bytes, size: int) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        if os.fstat(fd).st_size == size + len(data) - len(view):  # nobody else wrote meanwhile
            os.ftruncate(fd, size)
        raise
