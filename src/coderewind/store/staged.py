"""Record what the user had staged, so that `restore --index` can put it back.

The index is read, never written, and compared with HEAD; contents that only the index knows are
copied into our store, because the user's gc may drop them.
"""

from __future__ import annotations

import os

from coderewind.errors import RewindError
from coderewind.model import json
from coderewind.model.paths import is_safe, to_bytes, to_text
from coderewind.model.records import is_oid
from coderewind.store.git import GitError
from coderewind.store.home import Store
from coderewind.store.ignore import UserGit
from coderewind.store.objects import DamagedObject, Objects, tree_bytes
from coderewind.store.pack import BLOB, TREE, PackWriter, fsync_dir
from coderewind.store.state import State, file_signature
from coderewind.store.workspace import Workspace

_GITLINK, _DELETED = "160000", "000000"
_MODES = ("100644", "100755", "120000", _GITLINK, _DELETED)


def record_staged(
    store: Store, workspace: Workspace, state: State, pack: PackWriter, head: str
) -> bytes:
    """The tree that holds the staged changes, b"" when nothing is staged or it cannot be read.

    Asked anew only when the index or HEAD changed since the last time.
    """
    if workspace.git_dir is None:
        return b""
    index = os.path.join(workspace.git_dir, b"index")
    key = file_signature(index) + head.encode()
    if state.staged[0] == key:
        return bytes.fromhex(state.staged[1])
    tree = b""
    if os.path.exists(index) and store.algo == workspace.algo():
        try:
            tree = _write(store, workspace, pack, head)
        except (GitError, DamagedObject):
            tree = b""  # a corrupt index or missing objects: files are what matters
    state.staged = (key, tree.hex())
    return tree


def _write(store: Store, workspace: Workspace, pack: PackWriter, head: str) -> bytes:
    git = UserGit(workspace)
    against = head or git.run("hash-object", "-t", "tree", os.devnull).strip().decode()
    out = git.run("diff-index", "--cached", "--raw", "-r", "-z", "--no-renames", "--abbrev=64",
                  "--no-ext-diff", "--ignore-submodules=none", against, "--")
    fields = out.split(b"\0")
    changes: list[list[str]] = []
    for i in range(0, len(fields) - 1, 2):
        _, mode, _, oid, status = fields[i].lstrip(b":").split(b" ")[:5]
        if status.startswith(b"U"):
            continue
        changes.append([mode.decode(), oid.decode(), to_text(fields[i + 1])])
    unmerged = []
    for line in git.run("ls-files", "-u", "-z").split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        mode, oid, stage = facts.split(b" ")
        unmerged.append([mode.decode(), oid.decode(), stage.decode(), to_text(path)])
    if not changes and not unmerged:
        return b""
    entries = _copy_contents(store, workspace, pack,
                             {row[1] for row in changes + unmerged if row[0] != _GITLINK})
    data = {"version": 1, "head": head, "changes": changes, "unmerged": unmerged}
    text = json.dumps(data).encode() + b"\n"
    top = [(0o100644, b"staged.json", pack.add(BLOB, text))]
    if entries:
        top.append((0o40000, b"contents", pack.add(TREE, tree_bytes(entries))))
    return pack.add(TREE, tree_bytes(top))


def _copy_contents(
    store: Store, workspace: Workspace, pack: PackWriter, oids: set[str]
) -> list[tuple[int, bytes, bytes]]:
    assert workspace.common_dir is not None
    theirs = Objects(UserGit(workspace), os.path.join(workspace.common_dir, b"objects"),
                     store.algo)
    entries = []
    try:
        for text in sorted(oids):
            oid = bytes.fromhex(text)
            if not any(oid):
                continue
            if oid not in pack and not store.objects.has(oid):
                pack.add(BLOB, theirs.read(oid)[1], oid)
            entries.append((0o100644, text.encode(), oid))
    finally:
        theirs.close()
    return entries


class Staged:
    """What was staged at a checkpoint: read and checked, to be put back into the index."""

    def __init__(
        self,
        changes: list[list[str]],
        unmerged: list[list[str]],
        contents: dict[str, bytes],
    ) -> None:
        self._changes = changes  # mode, oid, path
        self._unmerged = unmerged  # mode, oid, stage, path
        self._contents = contents

    @classmethod
    def read(cls, store: Store, tree: str) -> Staged:
        """Read the tree that `record_staged` made, "" when nothing was staged.

        Raises:
            RewindError: it, or a content, is damaged or missing, or is nothing we would write.
        """
        if not tree:
            return cls([], [], {})
        entries = {name: oid for _, name, oid in store.objects.read_tree(bytes.fromhex(tree))}
        try:
            data = json.loads(store.objects.read(entries[b"staged.json"])[1])
            changes, unmerged = data["changes"], data["unmerged"]
            good = all(_is_row(row, 3) for row in changes) and all(
                _is_row(row, 4) and row[2] in ("1", "2", "3") for row in unmerged)
        except (ValueError, KeyError, TypeError, RecursionError):
            good = False
        if not good:
            raise RewindError("what was staged then cannot be read",
                          hint="rewind doctor shows what is damaged")
        contents = {}
        for mode, oid, *_ in [*changes, *unmerged]:
            if mode not in (_GITLINK, _DELETED) and oid.strip("0"):
                contents[oid] = store.objects.read(bytes.fromhex(oid))[1]
        return cls(changes, unmerged, contents)

    def put_back(self, workspace: Workspace, head: str) -> None:
        """Make the user's index hold what it held then: HEAD of then, and the staged changes.

        Only on the user's word (`--index`). The new index is built beside the old one and put in
        place under git's own lock.
        """
        index = index_of(workspace)
        lock = index + b".lock"
        try:
            fd = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise RewindError(
                "the index is locked by another git process",
                hint="files are restored; run again with --index when it is done",
            ) from None
        os.close(fd)
        building = index + b".rewind"
        try:
            git = IndexGit(workspace, building)
            _start_from(git, index, building, head)
            self._give_contents(workspace)
            git.run("update-index", "-z", "--index-info", input=self._index_info())
            # No --refresh: it would run the repository's clean filters. The user's next git does.
            if os.path.exists(index):
                os.chmod(building, os.stat(index).st_mode & 0o777)
            os.replace(building, index)
            fsync_dir(os.path.dirname(index))
        finally:
            for path in (building, building + b".lock", lock):
                try:
                    os.unlink(path)
                except FileNotFoundError:
                    pass

    def _give_contents(self, workspace: Workspace) -> None:
        """Put the staged contents back into the user's objects, where a gc has dropped them."""
        git = UserGit(workspace)
        for oid, content in self._contents.items():
            if git.run("cat-file", "-t", oid, ok=(0, 128)).strip() != b"blob":
                git.run("hash-object", "-w", "-t", "blob", "--no-filters", "--stdin",
                        input=content)

    def _index_info(self) -> bytes:
        lines = []
        for mode, oid, path in self._changes:
            zero = "0" * len(oid)
            mode, oid = ("0", zero) if mode == _DELETED else (mode, oid)
            lines.append(f"{mode} {oid}\t".encode() + to_bytes(path))
        for path in dict.fromkeys(row[3] for row in self._unmerged):
            lines.append(b"0 " + b"0" * len(self._unmerged[0][1]) + b"\t" + to_bytes(path))
        for mode, oid, stage, path in self._unmerged:
            lines.append(f"{mode} {oid} {stage}\t".encode() + to_bytes(path))
        return b"".join(line + b"\0" for line in lines)


def index_of(workspace: Workspace) -> bytes:
    """Where the user's index is.

    Raises:
        RewindError: the folder is no repository.
    """
    if workspace.git_dir is None:
        raise RewindError("this folder has no git index", hint="restore without --index")
    return os.path.join(workspace.git_dir, b"index")


def _is_row(row: object, width: int) -> bool:
    """Whether this can be an entry of an index; a store can come with a hostile repository."""
    return (
        isinstance(row, list) and len(row) == width and all(isinstance(x, str) for x in row)
        and row[0] in _MODES and is_oid(row[1]) and is_safe(to_bytes(row[-1]))
    )


def _start_from(git: IndexGit, index: bytes, building: bytes, head: str) -> None:
    """An index equal to a commit that keeps what the present one knows besides: stat data, flags.

    skip-worktree is such a flag: without it a sparse checkout would seem full of deletions.
    """
    try:
        with open(index, "rb") as present, open(building, "wb") as copy:
            copy.write(present.read())
        git.run("read-tree", "--reset", "-i", head or "--empty")
    except (OSError, GitError):  # there is none, or it cannot be read
        try:
            os.unlink(building)
        except FileNotFoundError:
            pass
        git.run("read-tree", head or "--empty")


class IndexGit(UserGit):
    """git building an index of the user's repository in a file of ours."""

    def __init__(self, workspace: Workspace, index: bytes) -> None:
        super().__init__(workspace)
        self._env[b"GIT_INDEX_FILE"] = index
        self._config = (*self._config, "core.splitIndex=false", "index.sparse=false")
