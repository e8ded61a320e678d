"""Write git packs: every capture adds its objects as one pack, and syncs pack and index once.

Loose objects would cost a file, an fsync and a 4 KiB block for every tree and blob, and git's
own `add` a process. A pack becomes visible to readers only when its index is renamed into
place, after the pack itself is on the disk.
"""

from __future__ import annotations

import os
import struct
import zlib

COMMIT, TREE, BLOB = 1, 2, 3
KIND_NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}

GUARD = b"rewind: until the ledger refers to this pack\n"
_SPILL = 8 << 20  # a small pack is built in memory, a larger one in a file
_CHUNK = 1 << 20

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from hashlib import _Hash


class SizeChanged(Exception):
    """A streamed file did not have the number of bytes announced for it."""


def new_hash(algo: str) -> _Hash:
    from hashlib import sha1, sha256  # a look that finds nothing changed hashes nothing

    return sha1(usedforsecurity=False) if algo == "sha1" else sha256()


def object_id(kind: int, data: bytes, algo: str) -> bytes:
    digest = new_hash(algo)
    digest.update(b"%s %d\0" % (KIND_NAMES[kind], len(data)))
    digest.update(data)
    return digest.digest()


class PackWriter:
    """Collect objects, then make them durable all at once with `finish`.

    Nothing is visible to anybody before `finish` returns; `abandon` leaves no trace. With
    `guards`, a `.keep` file that is added to that list stops anybody's gc from taking the pack
    away before something refers to it.
    """

    def __init__(self, pack_dir: bytes, algo: str, guards: list[bytes] | None = None) -> None:
        self._dir = pack_dir
        self._algo = algo
        self.level = 6
        self._guards = guards
        self._entries: dict[bytes, tuple[int, int]] = {}  # oid -> (crc32, offset)
        self._buffer = bytearray(b"PACK" + struct.pack(">LL", 2, 0))
        self._flushed = 0
        self._fd = -1
        self._temp = b""
        self.takes_place_of: list[bytes] = []  # packs (without suffix) whose objects are all here

    @property
    def size(self) -> int:
        """The bytes written so far."""
        return self._flushed + len(self._buffer)

    def __contains__(self, oid: bytes) -> bool:
        return oid in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, kind: int, data: bytes, oid: bytes | None = None) -> bytes:
        """Add an object that fits in memory; adding it twice stores it once."""
        if oid is None:
            oid = object_id(kind, data, self._algo)
        if oid not in self._entries:
            offset = self.size
            packed = _header(kind, len(data)) + zlib.compress(data, self.level)
            self._entries[oid] = (zlib.crc32(packed), offset)
            self._write(packed)
        return oid

    def copy(self, oid: bytes, packed: bytes, crc: int) -> None:
        """Add an object as another pack has it."""
        if oid not in self._entries:
            self._entries[oid] = (crc, self.size)
            self._write(packed)

    def add_stream(self, size: int, chunks: Iterable[bytes]) -> bytes:
        """Add a blob of `size` bytes without holding it in memory.

        Raises:
            SizeChanged: the chunks did not add up to `size`; the pack is as it was before.
        """
        offset = self.size
        digest = new_hash(self._algo)
        digest.update(b"blob %d\0" % size)
        deflate = zlib.compressobj(1)
        piece = _header(BLOB, size)
        crc = zlib.crc32(piece)
        self._write(piece)
        seen = 0
        for chunk in chunks:
            seen += len(chunk)
            digest.update(chunk)
            piece = deflate.compress(chunk)
            crc = zlib.crc32(piece, crc)
            self._write(piece)
        piece = deflate.flush()
        self._write(piece)
        oid = digest.digest()
        if seen != size or oid in self._entries:
            self._truncate(offset)
        if seen != size:
            raise SizeChanged
        self._entries.setdefault(oid, (zlib.crc32(piece, crc), offset))
        return oid

    def finish(self) -> bytes | None:
        """Make all objects durable and visible; the pack's base name, or None if there are none."""
        if not self._entries:
            self.abandon()
            return None
        try:
            checksum = self._seal()
            name = b"pack-" + checksum.hex().encode()
            path = os.path.join(self._dir, name)
            if self._guards is not None:
                self._guards.append(path + b".keep")
                write_durably(path + b".keep", GUARD)
            is_new = not os.path.lexists(path + b".pack")
            os.replace(self._temp, path + b".pack")
            self._temp = path + b".pack" if is_new else b""
            write_durably(path + b".idx", self._index(checksum))
            fsync_dir(self._dir)
        except BaseException:
            if self._temp.endswith(b".pack"):
                _unlink(path + b".idx")
            self.abandon()
            raise
        self._temp = b""  # from here on it is not ours alone: nothing may take it away again
        self._remove_replaced(path)
        return name

    def _remove_replaced(self, path: bytes) -> None:
        """The index goes last: without its pack it is ignored, a pack without it is not."""
        for replaced in self.takes_place_of:
            if replaced != path:  # what cannot be removed costs space, nothing else
                _unlink(replaced + b".pack")
                _unlink(replaced + b".idx")

    def abandon(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._temp:
            _unlink(self._temp)
            self._temp = b""
        self._entries.clear()
        self._buffer.clear()

    def _write(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > _SPILL:
            self._flush()

    def _flush(self) -> None:
        if self._fd < 0:
            # In a user's repository, `git prune` would take what is named tmp_*.
            self._temp = os.path.join(self._dir, b"rewind_tmp_" + os.urandom(8).hex().encode())
            self._fd = os.open(self._temp, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            os.fchmod(self._fd, 0o600)
        buffer, self._buffer = self._buffer, bytearray()
        view = memoryview(buffer)
        while view:
            written = os.write(self._fd, view)
            self._flushed += written
            view = view[written:]

    def _truncate(self, offset: int) -> None:
        if offset >= self._flushed:
            del self._buffer[offset - self._flushed :]
            return
        os.ftruncate(self._fd, offset)
        os.lseek(self._fd, offset, os.SEEK_SET)
        self._flushed = offset
        self._buffer = bytearray()

    def _seal(self) -> bytes:
        """Put the object count into the header, append the checksum, fsync."""
        count = struct.pack(">L", len(self._entries))
        digest = new_hash(self._algo)
        if self._fd < 0:
            self._buffer[8:12] = count
            digest.update(self._buffer)
        else:
            self._flush()
            os.pwrite(self._fd, count, 8)
            position = 0
            while chunk := os.pread(self._fd, _CHUNK, position):
                digest.update(chunk)
                position += len(chunk)
        self._buffer += digest.digest()
        self._flush()
        os.fsync(self._fd)
        os.close(self._fd)
        self._fd = -1
        return digest.digest()

    def _index(self, pack_checksum: bytes) -> bytes:
        oids = sorted(self._entries)
        fanout = [0] * 256
        for oid in oids:
            fanout[oid[0]] += 1
        total = 0
        for byte in range(256):
            total += fanout[byte]
            fanout[byte] = total
        small: list[int] = []
        large: list[int] = []
        for oid in oids:
            offset = self._entries[oid][1]
            if offset < 1 << 31:
                small.append(offset)
            else:
                small.append(1 << 31 | len(large))
                large.append(offset)
        crcs = [self._entries[oid][0] for oid in oids]
        body = b"".join(
            [
                b"\xfftOc" + struct.pack(">L", 2),
                struct.pack(">256L", *fanout),
                b"".join(oids),
                struct.pack(f">{len(crcs)}L", *crcs),
                struct.pack(f">{len(small)}L", *small),
                struct.pack(f">{len(large)}Q", *large),
                pack_checksum,
            ]
        )
        digest = new_hash(self._algo)
        digest.update(body)
        return body + digest.digest()


def _header(kind: int, size: int) -> bytes:
    byte = kind << 4 | size & 15
    size >>= 4
    out = bytearray()
    while size:
        out.append(byte | 128)
        byte = size & 127
        size >>= 7
    out.append(byte)
    return bytes(out)


def write_durably(path: bytes, data: bytes, mode: int = 0o600) -> None:
    """Write a file beside its place, private until it is whole, fsync it, rename it into place."""
    temp = write_aside(path, data, mode)
    try:
        os.replace(temp, path)
    except BaseException:
        _unlink(temp)
        raise


def write_aside(path: bytes, data: bytes, mode: int = 0o600) -> bytes:
    """Write and fsync a temporary file beside a path; where it is."""
    temp = path + b".tmp" + os.urandom(4).hex().encode()
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fchmod(fd, mode)
            os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        _unlink(temp)
        raise
    return temp


def _unlink(path: bytes) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def fsync_dir(path: bytes) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
