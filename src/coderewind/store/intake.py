"""Read the content of changed files into the store.

A file is opened without following a link and without waiting (a FIFO may have taken its place),
and its times are compared before and after: what was changed while it was read is read again.
"""

from __future__ import annotations

import errno
import os
from stat import S_ISLNK, S_ISREG

from coderewind.errors import RewindError
from coderewind.model.paths import to_text
from coderewind.store.objects import Objects
from coderewind.store.pack import BLOB, PackWriter, SizeChanged, new_hash, object_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_WHOLE = 4 << 20  # files up to this size are read in one piece, larger ones streamed
_CHUNK = 1 << 20
_TRIES = 4

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class NotAFile(Exception):
    """The path no longer names a regular file or a link."""


class Unreadable(Exception):
    """The file exists and may not be read."""


class Intake:
    """Reads files, and adds to the pack what the store does not hold yet."""

    def __init__(
        self,
        root: bytes,
        objects: Objects,
        pack: PackWriter,
        progress: Callable[[str, int], None] | None = None,
    ) -> None:
        self._root = root
        self._objects = objects
        self._pack = pack
        self._progress = progress
        # Contents that were already in the store, unread: oid -> path, for `verify`.
        self.reused: dict[bytes, bytes] = {}
        self.distrusted: set[bytes] = set()

    def take(self, path: bytes) -> tuple[bytes, os.stat_result]:
        """The content id of a file or link, its content in the store or the pack.

        Raises:
            NotAFile: it vanished or became something else.
            Unreadable: permission denied.
            RewindError: the disk failed, or the store could not be written.
        """
        full = self._root + b"/" + path
        for attempt in range(_TRIES):
            try:
                st = os.lstat(full)
                if S_ISLNK(st.st_mode):
                    target = os.readlink(full)
                    return self._keep(target, path), st
                if not S_ISREG(st.st_mode):
                    raise NotAFile
                found = self._read(full, path, last=attempt == _TRIES - 1)
            except (FileNotFoundError, NotADirectoryError):
                raise NotAFile from None
            except PermissionError:
                raise Unreadable from None
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENXIO, errno.EINVAL):
                    continue  # a link or FIFO took its place; look again
                raise RewindError(
                    f"{to_text(path)} could not be captured: {error.strerror}",
                    hint="nothing was saved; earlier checkpoints are as they were",
                ) from error
            if found is not None:
                return found
        raise NotAFile

    def _read(self, full: bytes, path: bytes, *, last: bool) -> tuple[bytes, os.stat_result] | None:
        fd = os.open(full, _OPEN)
        try:
            before = os.fstat(fd)
            if not S_ISREG(before.st_mode):
                return None
            if before.st_size <= _WHOLE:
                data = _read_all(fd, before.st_size)
                after = os.fstat(fd)
                if not last and _differ(before, after):
                    return None
                return self._keep(data, path), before
            try:
                oid = self._stream(fd, before.st_size, path)
            except SizeChanged:
                return None
            if not last and _differ(before, os.fstat(fd)):
                return None
            return oid, before
        finally:
            os.close(fd)

    def _keep(self, data: bytes, path: bytes) -> bytes:
        oid = object_id(BLOB, data, self._objects.algo)
        if oid in self._pack:
            return oid
        if oid not in self.distrusted and self._objects.has(oid):
            self.reused.setdefault(oid, path)
            return oid
        return self._pack.add(BLOB, data, oid)

    def _stream(self, fd: int, size: int, path: bytes) -> bytes:
        """A large file: first its id, and only if the store lacks it, its content."""
        digest = new_hash(self._objects.algo)
        digest.update(b"blob %d\0" % size)
        seen = 0
        for chunk in self._chunks(fd, size, "read"):
            digest.update(chunk)
            seen += len(chunk)
        if seen != size:
            raise SizeChanged
        oid = digest.digest()
        if oid in self._pack:
            return oid
        if oid not in self.distrusted and self._objects.has(oid):
            self.reused.setdefault(oid, path)
            return oid
        os.lseek(fd, 0, os.SEEK_SET)
        return self._pack.add_stream(size, self._chunks(fd, size, "stored"))

    def _chunks(self, fd: int, size: int, verb: str) -> Iterator[bytes]:
        left = size
        while left:
            piece = os.read(fd, min(left, _CHUNK))
            if not piece:
                return
            left -= len(piece)
            if self._progress:
                self._progress(verb, size - left)
            yield piece


def _differ(a: os.stat_result, b: os.stat_result) -> bool:
    return (a.st_size, a.st_mtime_ns, a.st_ctime_ns) != (b.st_size, b.st_mtime_ns, b.st_ctime_ns)


def _read_all(fd: int, size: int) -> bytes:
    """The file's content; one byte more than its size is asked for, to meet its end."""
    pieces = []
    want = size + 1
    while want > 0:
        piece = os.read(fd, want)
        if not piece:
            break
        pieces.append(piece)
        want -= len(piece)
    return b"".join(pieces)[:size] if want <= 0 else b"".join(pieces)


