"""Compare two snapshots, file by file. Rename detection is never asked for: it hides deletions."""

from __future__ import annotations

from coderewind.errors import RewindError
from coderewind.store.manifest import Manifest, decode
from coderewind.store.objects import Objects, Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = 0o40000


class Difference:
    """One path that differs: git modes (0 = absent) and content ids of both sides."""

    __slots__ = ("new_mode", "new_oid", "old_mode", "old_oid", "path")

    def __init__(
        self, path: bytes, old_mode: int, new_mode: int, old_oid: bytes, new_oid: bytes
    ) -> None:
        self.path = path
        self.old_mode = old_mode
        self.new_mode = new_mode
        self.old_oid = old_oid
        self.new_oid = new_oid


class SnapshotView:
    """A snapshot's parts: the tree of its files and its manifest."""

    def __init__(self, objects: Objects, snapshot: bytes) -> None:
        self.objects = objects
        self.snapshot = snapshot
        entries = {
            name: oid for _, name, oid in objects.read_tree(objects.read_commit_tree(snapshot))
        }
        try:
            self.tree = entries[b"files"]
            manifest = entries[b"manifest.json"]
        except KeyError:
            raise RewindError(
                f"{snapshot.hex()[:12]} is not a snapshot",
                hint="rewind doctor shows what is damaged",
            ) from None
        self.manifest: Manifest = decode(objects.read(manifest)[1])

    def lookup(self, path: bytes) -> tuple[int, bytes] | None:
        """The git mode and content id at a path, None when nothing is there."""
        mode, oid = 0o40000, self.tree
        for part in path.split(b"/"):
            if mode != 0o40000:
                return None
            found = self.objects.tree(oid).get(part)
            if found is None:
                return None
            mode, oid = found
        return mode, oid

    def is_folder(self, path: bytes) -> bool:
        if path in self.manifest.folders:
            return True
        found = self.lookup(path)
        return found is not None and found[0] == 0o40000

    def walk(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Everything in the tree: (path, git mode, oid), folders before what they hold."""
        level = [(b"", self.tree)]
        while level:
            trees = self.objects.trees(tree for _, tree in level)
            below = []
            for prefix, tree in level:
                for name, (mode, oid) in trees[tree].items():
                    yield prefix + name, mode, oid
                    if mode == _FOLDER:
                        below.append((prefix + name + b"/", oid))
            level = below


def compare(objects: Objects, old: bytes, new: bytes) -> list[Difference]:
    """The files in which two trees differ; equal subtrees are not looked into."""
    found: list[Difference] = []
    level = [(b"", old, new)] if old != new else []
    while level:
        trees = objects.trees(tree for _, *both in level for tree in both)
        below: list[tuple[bytes, bytes, bytes]] = []
        for prefix, old_tree, new_tree in level:
            found += _differ(prefix, trees[old_tree], trees[new_tree], below)
        level = below
    found.sort(key=lambda difference: difference.path)
    return found


def _differ(
    prefix: bytes, before: Tree, after: Tree, below: list[tuple[bytes, bytes, bytes]]
) -> Iterator[Difference]:
    """The files of one folder that differ; folders that differ are added to `below`."""
    for name in before.keys() | after.keys():
        old_mode, old_oid = before.get(name, (0, b""))
        new_mode, new_oid = after.get(name, (0, b""))
        if (old_mode, old_oid) == (new_mode, new_oid):
            continue
        path = prefix + name
        was_folder, is_folder = old_mode == _FOLDER, new_mode == _FOLDER
        if was_folder or is_folder:
            below.append(
                (path + b"/", old_oid if was_folder else b"", new_oid if is_folder else b"")
            )
        if was_folder:
            old_mode, old_oid = 0, b""
        if is_folder:
            new_mode, new_oid = 0, b""
        if old_mode or new_mode:
            yield Difference(path, old_mode, new_mode, old_oid, new_oid)
