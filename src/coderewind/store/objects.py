"""Find and read objects of the store.

Existence is answered here from the pack indexes, without a process; contents come from one
long-lived `git cat-file --batch`, and every content read is checked against its id.
"""

from __future__ import annotations

import mmap
import os
import sys
from array import array

from coderewind.errors import RewindError
from coderewind.store.git import Git, end
from coderewind.store.pack import new_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from subprocess import Popen

IDENTITY = b"rewind <rewind@localhost>"  # of our commits
_CHUNK = 1 << 20
_SMALL = 1 << 18
_AT_ONCE = 48  # questions that are asked together: 48 lines of 65 bytes fit into any pipe
_MOST_TREES = 20_000  # kept in memory

Tree = dict[bytes, tuple[int, bytes]]  # name -> git mode, oid


class DamagedObject(RewindError):
    """An object of the store is missing or does not have the content its id promises."""

    def __init__(self, oid: bytes, what: str) -> None:
        super().__init__(
            f"object {oid.hex()} of the store is {what}",
            hint="rewind doctor shows what is damaged; other checkpoints may be whole",
        )
        self.oid = oid


class PackIndex:
    """One pack's index (version 2): a small one read, a large one mapped.

    Python keeps a descriptor for each map, and a store has a small pack for each capture.
    """

    def __init__(self, path: bytes, width: int) -> None:
        self._width = width
        self._map: bytes | mmap.mmap
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            if size < 8 + 1024 + 2 * width:
                raise ValueError("short index")
            if size <= _SMALL:
                self._map = os.read(fd, size)
            else:
                self._map = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(fd)
        if len(self._map) != size or self._map[:8] != b"\xfftOc\0\0\0\2":
            raise ValueError("not a version 2 index")
        self.count = self._fan(255)
        if size < 1032 + self.count * (width + 8) + 2 * width:
            raise ValueError("short index")

    def _fan(self, byte: int) -> int:
        at = 8 + 4 * byte
        return int.from_bytes(self._map[at : at + 4], "big")

    def __contains__(self, oid: bytes) -> bool:
        first = oid[0]
        low = self._fan(first - 1) if first else 0
        high = self._fan(first)
        width, data = self._width, self._map
        while low < high:
            middle = (low + high) // 2
            at = 1032 + middle * width
            found = data[at : at + width]
            if found < oid:
                low = middle + 1
            elif found > oid:
                high = middle
            else:
                return True
        return False

    def oids(self) -> list[bytes]:
        """All objects of the pack."""
        width = self._width
        table = self._map[1032 : 1032 + self.count * width]
        return [table[at : at + width] for at in range(0, len(table), width)]

    def entries(self) -> list[tuple[int, int, bytes]]:
        """(offset, crc32, oid) of every object, in the order of the pack; none of large packs."""
        count = self.count
        start = 1032 + count * self._width
        numbers = array("I", self._map[start : start + 8 * count])
        if sys.byteorder == "little":
            numbers.byteswap()
        crcs, offsets = numbers[:count], numbers[count:]
        if any(offset >> 31 for offset in offsets):
            return []
        return sorted(zip(offsets, crcs, self.oids(), strict=True))


class Objects:
    """The objects below one object directory."""

    def __init__(self, git: Git, object_dir: bytes, algo: str, *, own: bool = True) -> None:
        """`own`: the folder is ours alone. In a user's, loose objects go with any `git prune`."""
        self.algo = algo
        self._own = own
        self.dir = object_dir
        self.pack_dir = os.path.join(object_dir, b"pack")
        self._git = git
        self.width = 20 if algo == "sha1" else 32
        self._packs: dict[bytes, PackIndex] | None = None
        self._reader: Popen[bytes] | None = None
        self._kinds: Popen[bytes] | None = None
        self._trees: dict[bytes, Tree] = {}
        self._sizes: Popen[bytes] | None = None

    def has(self, oid: bytes) -> bool:
        """Whether the object is there, to stay. Its content is checked only when it is read."""
        if self._packs is None:
            self.refresh()
            assert self._packs is not None
        if any(oid in pack for pack in self._packs.values()):
            return True
        if not self._own:
            return False
        name = oid.hex().encode()
        return os.path.exists(os.path.join(self.dir, name[:2], name[2:]))

    def refresh(self) -> None:
        """Look at the pack folder again."""
        known = self._packs or {}
        packs: dict[bytes, PackIndex] = {}
        for entry in os.scandir(self.pack_dir):
            if not entry.name.endswith(b".idx"):
                continue
            if entry.name in known:
                packs[entry.name] = known[entry.name]
            elif os.path.exists(entry.path[:-4] + b".pack"):
                try:
                    packs[entry.name] = PackIndex(entry.path, self.width)
                except (OSError, ValueError):
                    continue  # a damaged index hides its pack: its objects are stored anew
        self._packs = packs

    def pack_signature(self) -> tuple[tuple[bytes, int, int], ...]:
        """Names, sizes and times of all packs: changes whenever somebody touched the store.

        Packs that another process removed are forgotten here, so that `has` does not promise what
        was in them.
        """
        found = []
        with os.scandir(self.pack_dir) as entries:
            for entry in entries:
                if entry.name.endswith((b".pack", b".idx")):
                    st = entry.stat()
                    found.append((entry.name, st.st_size, st.st_mtime_ns))
        if self._packs is not None and not self._packs.keys() <= {name for name, _, _ in found}:
            self.refresh()
        return tuple(sorted(found))

    def read(self, oid: bytes) -> tuple[bytes, bytes]:
        """An object's kind and content.

        Raises:
            DamagedObject: it is missing, or its content is not what its id says.
        """
        return self.read_many([oid])[0]

    def read_many(self, oids: list[bytes]) -> list[tuple[bytes, bytes]]:
        """What `read` gives for each; git answers one question while the one before is read."""
        found = []
        for start in range(0, len(oids), _AT_ONCE):
            batch = oids[start : start + _AT_ONCE]
            self._send(batch)
            try:
                found += [self._content(oid) for oid in batch]
            except DamagedObject:
                if len(batch) > 1:  # answers that nobody waits for any more
                    self.close()
                raise
        return found

    def _content(self, oid: bytes) -> tuple[bytes, bytes]:
        """The next answer, which must be this object."""
        kind, size = self._head(oid)
        assert self._reader is not None and self._reader.stdout is not None
        data = self._reader.stdout.read(size + 1)[:-1]
        digest = new_hash(self.algo)
        digest.update(b"%s %d\0" % (kind, size))
        digest.update(data)
        if len(data) != size or digest.digest() != oid:
            raise DamagedObject(oid, "damaged")
        return kind, data

    def stream(self, oid: bytes) -> Iterator[bytes]:
        """A blob's content in pieces; DamagedObject after the last piece if it was not right."""
        self._send([oid])
        kind, size = self._head(oid)
        assert self._reader is not None and self._reader.stdout is not None
        digest = new_hash(self.algo)
        digest.update(b"%s %d\0" % (kind, size))
        left = size
        while left:
            chunk = self._reader.stdout.read(min(left, _CHUNK))
            if not chunk:
                break
            left -= len(chunk)
            digest.update(chunk)
            yield chunk
        self._reader.stdout.read(1)
        if left or digest.digest() != oid:
            self.close()
            raise DamagedObject(oid, "damaged")

    def kind(self, oid: bytes) -> bytes:
        """blob, tree or commit."""
        if self._kinds is None:
            self._kinds = self._git.popen("cat-file", "--batch-check=%(objecttype)")
        assert self._kinds.stdin is not None and self._kinds.stdout is not None
        try:
            self._kinds.stdin.write(oid.hex().encode() + b"\n")
            self._kinds.stdin.flush()
            word = self._kinds.stdout.readline().strip()
        except BrokenPipeError:
            word = b""
        if word not in (b"blob", b"tree", b"commit"):
            raise DamagedObject(oid, "missing")
        return word

    def size(self, oid: bytes) -> int:
        """An object's size, without reading it."""
        if self._sizes is None:
            self._sizes = self._git.popen("cat-file", "--batch-check=%(objectsize)")
        assert self._sizes.stdin is not None and self._sizes.stdout is not None
        try:
            self._sizes.stdin.write(oid.hex().encode() + b"\n")
            self._sizes.stdin.flush()
            word = self._sizes.stdout.readline().strip()
        except BrokenPipeError:
            word = b""
        if not word.isdigit():
            raise DamagedObject(oid, "missing")
        return int(word)

    def missing(self, oids: list[bytes]) -> list[bytes]:
        """Which of these are not there at all."""
        self.refresh()
        assert self._packs is not None
        packed = {oid for pack in self._packs.values() for oid in pack.oids()}
        oids = [oid for oid in oids if oid not in packed]
        if not oids:
            return []
        asked = b"".join(oid.hex().encode() + b"\n" for oid in oids)
        answers = self._git.run("cat-file", "--batch-check", input=asked).splitlines()
        return [oid for oid, line in zip(oids, answers, strict=True) if line.endswith(b" missing")]

    def tree(self, oid: bytes) -> Tree:
        """A tree's entries by name; b"" is the empty one."""
        found = self._trees.get(oid)
        return self.trees([oid])[oid] if found is None else found

    def trees(self, oids: Iterable[bytes]) -> dict[bytes, Tree]:
        """Some trees' entries by name, all of them asked for at once; each is read only once.

        Raises:
            DamagedObject: one is missing, or is not what its id says.
        """
        wanted = set(oids)
        if len(self._trees) > _MOST_TREES:
            self._trees.clear()
        unread = [oid for oid in wanted if oid and oid not in self._trees]
        for oid, (kind, data) in zip(unread, self.read_many(unread), strict=True):
            entries = parse_tree(data, self.width) if kind == b"tree" else self.read_tree(oid)
            self._trees[oid] = {name: (mode, child) for mode, name, child in entries}
        return {oid: self._trees[oid] if oid else {} for oid in wanted}

    def read_tree(self, oid: bytes) -> list[tuple[int, bytes, bytes]]:
        """A tree's entries as (mode, name, oid)."""
        kind, data = self.read(oid)
        if kind != b"tree":
            raise DamagedObject(oid, "not a tree")
        return parse_tree(data, self.width)

    def read_commit_tree(self, oid: bytes) -> bytes:
        kind, data = self.read(oid)
        if kind != b"commit" or not data.startswith(b"tree "):
            raise DamagedObject(oid, "not a commit")
        return bytes.fromhex(data[5 : 5 + 2 * self.width].decode())

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the reader processes, if there are any."""
        for process in (self._reader, self._kinds, self._sizes):
            if process is not None:
                end(process)
        self._reader = self._kinds = self._sizes = None

    def _send(self, oids: list[bytes]) -> None:
        """Ask for objects, no more of them at once than a pipe takes without waiting."""
        if self._reader is None:
            self._reader = self._git.popen("cat-file", "--batch")
        assert self._reader.stdin is not None
        try:
            self._reader.stdin.write(b"".join(oid.hex().encode() + b"\n" for oid in oids))
            self._reader.stdin.flush()
        except BrokenPipeError:
            pass  # there will be no answer

    def _head(self, oid: bytes) -> tuple[bytes, int]:
        """The kind and size with which the next answer begins."""
        assert self._reader is not None and self._reader.stdout is not None
        words = self._reader.stdout.readline().split()
        if len(words) != 3:
            if not words:  # git gave up on a damaged object; the next question needs a new one
                self.close()
                raise DamagedObject(oid, "damaged")
            raise DamagedObject(oid, "missing")
        return words[1], int(words[2])


def parse_tree(data: bytes, width: int) -> list[tuple[int, bytes, bytes]]:
    entries = []
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        null = data.index(b"\0", space)
        entries.append(
            (int(data[at:space], 8), data[space + 1 : null], data[null + 1 : null + 1 + width])
        )
        at = null + 1 + width
    return entries


def tree_bytes(entries: list[tuple[int, bytes, bytes]]) -> bytes:
    """A tree object's content from (mode, name, oid), in git's order."""
    ordered = sorted((name + b"/" if mode == 0o40000 else name, mode, name, oid)
                     for mode, name, oid in entries)
    return b"".join([b"%o %s\0%s" % (mode, name, oid) for _, mode, name, oid in ordered])


def commit_bytes(tree: bytes, parents: list[bytes], time: int, message: bytes) -> bytes:
    """A commit object's content. The identity is ours: no configuration of the user's is asked."""
    who = IDENTITY + b" %d +0000" % time
    lines = [b"tree " + tree.hex().encode()]
    lines += [b"parent " + parent.hex().encode() for parent in parents]
    lines += [b"author " + who, b"committer " + who, b"", message]
    return b"\n".join(lines)

