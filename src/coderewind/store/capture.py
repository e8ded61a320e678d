"""Make a snapshot of a worktree: scan, read what changed, write the trees that changed.

Everything new goes into one pack, which the caller finishes together with the ledger record;
until then nothing is visible, and a capture that fails leaves no trace.
"""

from __future__ import annotations

import marshal
import os
from array import array
from stat import S_IFMT, S_ISLNK

from coderewind.errors import RewindError
from coderewind.model import coverage as why
from coderewind.model.coverage import LeftOut
from coderewind.model.paths import to_text
from coderewind.store import manifest, trust
from coderewind.store.filters import Filters
from coderewind.store.home import Store
from coderewind.store.ignore import Vanished
from coderewind.store.intake import Intake, NotAFile, Unreadable
from coderewind.store.objects import Objects, commit_bytes, tree_bytes
from coderewind.store.pack import BLOB, COMMIT, PackWriter, object_id
from coderewind.store.pack import TREE as TREE_OBJECT
from coderewind.store.scan import MAPPED_FILES, MAPPED_NS, Draft, Scan, is_racy
from coderewind.store.state import (
    ODD,
    OTHERS,
    PERM,
    SUBS,
    TREE,
    Folder,
    State,
    join,
    modes_of,
    names_of,
    oids_of,
    stat_columns,
)
from coderewind.store.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES = 4
_MANY = 500  # from this many changed files on, speed of compression counts more than its ratio


class Captured:
    """What a capture found. `pack` holds the new objects; `keep` remembers the state."""

    __slots__ = (
        "changed",
        "coverage",
        "coverage_oid",
        "fresh",
        "manifest_oid",
        "pack",
        "previous",
        "reused",
        "root_tree",
        "snapshot",
        "state",
        "state_path",
        "tree",
    )

    def __init__(self, pack: PackWriter, state: State, state_path: bytes) -> None:
        self.pack = pack
        self.state = state
        self.state_path = state_path
        self.changed = 0  # files that differ from the previous capture
        self.previous = state.snapshot
        self.fresh = False  # whether the state has to be written
        self.reused = False
        self.tree = self.manifest_oid = self.root_tree = self.snapshot = self.coverage_oid = b""
        self.coverage: list[LeftOut] = []

    def file_count(self) -> int:
        return sum(len(names_of(folder)) for folder in self.state.folders.values())

    def keep(self, objects: Objects) -> None:
        """Remember what was seen; only after the pack was finished."""
        if self.fresh:
            self.state.packs = objects.pack_signature()
            try:
                self.state.save(self.state_path)
            except OSError:
                pass  # an older one costs time, and what was captured is safe already


def capture(
    store: Store,
    workspace: Workspace,
    filters: Filters,
    *,
    now_ns: int,
    extra: tuple[bytes, ...] = (),
    progress: Callable[[str, int], None] | None = None,
) -> Captured:
    """Capture the worktree as it is now; the caller holds the worktree's lock.

    Raises:
        RewindError: a file could not be read or an object not written. Nothing needs undoing.
    """
    private = store.private_dir(workspace.name)
    state_path = os.path.join(private, b"state")
    for _ in range(_TRIES):
        state = State.load(state_path)
        pack = store.pack()
        try:
            return _Capture(store, workspace, filters, state, pack, now_ns, progress).run(
                state_path, extra
            )
        except Vanished:
            pack.abandon()
        except OSError as error:
            pack.abandon()
            raise RewindError(
                f"the capture failed: {error.strerror or error}",
                hint="nothing was saved; earlier checkpoints are as they were",
            ) from error
        except BaseException:
            pack.abandon()
            raise
    raise RewindError("the folder changes faster than it can be read", hint="try again")


class _Capture:
    def __init__(
        self,
        store: Store,
        workspace: Workspace,
        filters: Filters,
        state: State,
        pack: PackWriter,
        now_ns: int,
        progress: Callable[[str, int], None] | None,
    ) -> None:
        self.store = store
        self.objects = store.objects
        self.workspace = workspace
        self.state = state
        self.pack = pack
        self.now_ns = now_ns
        self.width = store.objects.width
        self.progress = progress
        self.read = 0  # files
        self.intake = Intake(workspace.root, store.objects, pack, progress)
        self.changed = 0
        self.young: dict[bytes, int] = {}
        self.racy: set[bytes] = set()
        self.scan = Scan(
            workspace,
            state,
            filters,
            now_ns=now_ns,
            scratch=os.path.join(store.home, b"ignore"),
            own=store.identity(),
            progress=(lambda count: progress("looked at", count)) if progress else None,
        )

    def run(self, state_path: bytes, extra: tuple[bytes, ...]) -> Captured:
        state, scan = self.state, self.scan
        store_changed = self._check_store()
        first = not state.folders
        scan.run(self.width, extra=extra)
        if len(scan.drafts) > _MANY:
            self.pack.level = 1
        self._read_again()
        rebuilt = self._read_drafts()
        if first:
            self._choose_base()
            self._verify_reused()
        self._drop_gone(rebuilt)
        self._write_trees(rebuilt)
        out = Captured(self.pack, state, state_path)
        contexts = {path: c.tracked.signature() for path, c in scan.contexts.items()}
        touched = bool(rebuilt or scan.gone) or contexts.keys() != state.contexts.keys()
        if touched or not state.manifest:
            self._write_manifest()
            self._write_coverage()
        self._forget_old_young()
        out.fresh = (
            touched
            or store_changed
            or state.contexts != contexts
            or state.rules != scan.rules_signature
            or state.young != self.young
            or len(self.pack) > 0
        )
        state.contexts = contexts
        state.rules = scan.rules_signature
        state.young = self.young
        self._describe(out)
        return out

    # ---- contents

    def _read_again(self) -> None:
        """Read files whose times cannot be trusted; one that differs joins the drafts."""
        state, scan = self.state, self.scan
        again = set(scan.reread)
        for path in again:
            folder_path, _, name = path.rpartition(b"/")
            draft = scan.drafts.get(folder_path)
            try:
                oid, st = self.intake.take(path)
            except (NotAFile, Unreadable):
                continue  # changed just now: the next capture sees it by its times
            if draft is not None:
                if name in draft.files:
                    draft.files[name] = (st, oid if draft.files[name][1] == oid else b"")
            else:
                folder = state.folders[folder_path]
                names = names_of(folder)
                if oids_of(folder, self.width)[names.index(name)] != oid:
                    scan.drafts[folder_path] = self._draft_of(folder_path, folder, name)
            self._note_young(path, st)

    def _draft_of(self, path: bytes, folder: Folder, changed: bytes) -> Draft:
        """A draft equal to the state but for one file that must be read."""
        draft = Draft(path, folder[0], folder[PERM])
        draft.subs = set(folder[SUBS])
        draft.others = {name: (mode, reason) for name, mode, reason in folder[OTHERS]}
        for name, oid in zip(names_of(folder), oids_of(folder, self.width), strict=True):
            try:
                st = os.lstat(os.path.join(self.workspace.root, path, name))
            except OSError:
                continue
            draft.files[name] = (st, b"" if name == changed else oid)
        return draft

    def _read_drafts(self) -> set[bytes]:
        """Read what must be read and turn every draft into a folder of the state."""
        rebuilt = set()
        for path, draft in self.scan.drafts.items():
            for name, (_, oid) in list(draft.files.items()):
                if not oid:
                    self._read_file(draft, name)
            folder = self._finish(draft)
            old = self.state.folders.get(path)
            if old != folder:
                self.state.folders[path] = folder
                rebuilt.add(path)
                self._count(old, folder)
        return rebuilt

    def _read_file(self, draft: Draft, name: bytes) -> None:
        path = join(draft.path, name)
        if self.progress:
            self.read += 1
            self.progress("captured", self.read)
        try:
            oid, st = self.intake.take(path)
        except NotAFile:
            del draft.files[name]
            draft.sig = b""
            return
        except Unreadable:
            st = draft.files.pop(name)[0]
            draft.others[name] = (st.st_mode, why.UNREADABLE)
            return
        draft.files[name] = (st, oid)
        self._note_young(path, st)

    def _note_young(self, path: bytes, st: os.stat_result) -> None:
        if is_racy(st, self.now_ns):
            self.racy.add(path)
            self.young[path] = self.now_ns
        elif st.st_ctime_ns >= self.now_ns - MAPPED_NS:
            self.young[path] = self.now_ns

    def _forget_old_young(self) -> None:
        """Keep all files whose times say nothing yet, and a few that may be memory-mapped."""
        if len(self.young) > MAPPED_FILES:
            mapped = [path for path in self.young if path not in self.racy]
            for path in mapped[:-MAPPED_FILES]:
                del self.young[path]

    def _finish(self, draft: Draft) -> Folder:
        names = sorted(draft.files)
        stats = [draft.files[name][0] for name in names]
        odd = []
        usual_file, usual_executable, _ = self.state.base
        for name, st in zip(names, stats, strict=True):
            if not S_ISLNK(st.st_mode):
                perm = st.st_mode & 0o7777
                if perm != (usual_executable if perm & 0o100 else usual_file):
                    odd.append((name, perm))
        old = self.state.folders.get(draft.path)
        return (
            draft.sig,
            draft.perm,
            b"\0".join(names),
            stat_columns(stats),
            array("H", [st.st_mode for st in stats]).tobytes(),
            b"".join([draft.files[name][1] for name in names]),
            tuple(sorted(draft.subs)),
            tuple(sorted((n, mode, str(reason)) for n, (mode, reason) in draft.others.items())),
            old[TREE] if old else b"",
            tuple(odd),
        )

    def _count(self, old: Folder | None, new: Folder) -> None:
        """Count the files that differ between two versions of a folder."""
        before = self._contents(old) if old else {}
        after = self._contents(new)
        for name in before.keys() | after.keys():
            if before.get(name) != after.get(name):
                self.changed += 1

    def _contents(self, folder: Folder) -> dict[bytes, tuple[int, bytes]]:
        return dict(
            zip(
                names_of(folder),
                zip(modes_of(folder), oids_of(folder, self.width), strict=True),
                strict=True,
            )
        )

    # ---- trees

    def _drop_gone(self, rebuilt: set[bytes]) -> None:
        """Forget folders that are no longer there, with everything below them."""
        folders = self.state.folders
        if not self.scan.gone:
            return
        for path in self.scan.gone:
            folder = folders.pop(path, None)
            if folder is not None:
                self.changed += len(names_of(folder))
            parent, _, name = path.rpartition(b"/")
            above = folders.get(parent)
            if above is not None and name in above[SUBS]:
                subs = tuple(sub for sub in above[SUBS] if sub != name)
                folders[parent] = (b"", *above[1:SUBS], subs, *above[SUBS + 1 :])  # type: ignore[assignment]
                rebuilt.add(parent)
        for path in [p for p in folders if p and p.rpartition(b"/")[0] not in folders]:
            self._drop_orphan(path)

    def _drop_orphan(self, path: bytes) -> None:
        for below in [p for p in self.state.folders if p == path or p.startswith(path + b"/")]:
            self.changed += len(names_of(self.state.folders.pop(below)))

    def _write_trees(self, rebuilt: set[bytes]) -> None:
        """Write the trees of changed folders and of those above them, deepest first."""
        folders = self.state.folders
        levels: dict[int, set[bytes]] = {}
        for path in rebuilt | ({b""} if not self.state.tree else set()):
            if path in folders:
                levels.setdefault(_depth(path), set()).add(path)
        while levels:
            depth = max(levels)
            for path in levels.pop(depth):
                folder = folders[path]
                tree = self._tree(path, folder)
                if tree != folder[TREE] or (not path and not self.state.tree):
                    folders[path] = (*folder[:TREE], tree, folder[ODD])
                    if path:
                        up = path.rpartition(b"/")[0]
                        levels.setdefault(depth - 1, set()).add(up)
        self.state.tree = folders[b""][TREE] or self._put(TREE_OBJECT, b"")

    def _tree(self, path: bytes, folder: Folder) -> bytes:
        entries = []
        for name, mode, oid in zip(
            names_of(folder), modes_of(folder), oids_of(folder, self.width), strict=True
        ):
            if S_ISLNK(mode):
                entries.append((0o120000, name, oid))
            else:
                entries.append((0o100755 if mode & 0o100 else 0o100644, name, oid))
        for name in folder[SUBS]:
            sub = self.state.folders.get(join(path, name))
            if sub is not None and sub[TREE]:
                entries.append((0o40000, name, sub[TREE]))
        if not entries:
            return b""
        return self._put(TREE_OBJECT, tree_bytes(entries))

    def _put(self, kind: int, data: bytes) -> bytes:
        """Add an object to the pack unless the store has it, undamaged."""
        oid = object_id(kind, data, self.objects.algo)
        if oid in self.pack or (oid not in self.intake.distrusted and self.objects.has(oid)):
            return oid
        return self.pack.add(kind, data, oid)

    # ---- what trees cannot say

    def _choose_base(self) -> None:
        """On the first capture, take the most common permission bits as the usual ones."""
        counts: dict[tuple[int, int], int] = {}
        for folder in self.state.folders.values():
            for mode in modes_of(folder):
                if S_IFMT(mode) == 0o100000:
                    key = (1 if mode & 0o100 else 0, mode & 0o7777)
                    counts[key] = counts.get(key, 0) + 1
            key = (2, folder[PERM])
            counts[key] = counts.get(key, 0) + 1
        best = list(self.state.base)
        for kind in range(3):
            mine = [(count, perm) for (k, perm), count in counts.items() if k == kind]
            if mine:
                best[kind] = max(mine)[1]
        base = (best[0], best[1], best[2])
        if base == self.state.base:
            return
        self.state.base = base
        for path, draft in self.scan.drafts.items():
            self.state.folders[path] = self._finish(draft)

    def _write_manifest(self) -> None:
        state = self.state
        modes: list[tuple[bytes, int]] = []
        empty: list[bytes] = []
        fifos: list[tuple[bytes, int]] = []
        usual = state.base[2]
        for path, folder in state.folders.items():
            if path and folder[PERM] != usual:
                modes.append((path, folder[PERM]))
            if path and not folder[TREE]:
                empty.append(path)
            for name, perm in folder[ODD]:
                modes.append((join(path, name), perm))
            for name, mode, reason in folder[OTHERS]:
                if reason == why.FIFO:
                    fifos.append((join(path, name), mode & 0o7777))
        nested = sorted(path for path in self.scan.contexts if path)
        source: manifest.Source = (
            state.base, sorted(modes), sorted(empty), sorted(fifos), nested
        )
        packed = marshal.dumps(source)
        if packed != state.manifest_source or not state.manifest:
            state.manifest = self._put(BLOB, manifest.encode(source))
            state.manifest_source = packed

    def _write_coverage(self) -> None:
        state = self.state
        found: list[tuple[bytes, str]] = []
        state.watched = {}
        for path, folder in state.folders.items():
            for name, _, reason in folder[OTHERS]:
                full = join(path, name)
                found.append((full, reason))
                if reason in (why.TOO_LARGE, why.UNREADABLE) or name in (b".git", b".gitignore"):
                    state.watched[full] = self.scan.watched(full)
        if not self.scan.close_index_questions():
            found.append((b".git/index", why.FOREIGN_INDEX))
        found.sort()
        if found != state.coverage[1] or not state.coverage[0]:
            import json

            text = json.dumps([[to_text(path), reason] for path, reason in found])
            state.coverage = (self._put(BLOB, text.encode() + b"\n"), found)

    # ---- the store's own health

    def _check_store(self) -> bool:
        """Before trusting that known contents are stored: was the store touched since?

        Returns whether it was. Contents found missing or damaged are stored anew by this capture.
        """
        signature = self.objects.pack_signature()
        if signature == self.state.packs:
            return False
        self.objects.refresh()
        bad = trust.lost(self.objects, self.state, signature) if self.state.folders else set()
        if bad:
            self.intake.distrusted = bad
            self._start_over()
        return True

    def _start_over(self) -> None:
        """Forget the state, so that every file is read, and what is damaged stored anew."""
        base = self.state.base
        fresh = State()
        for name in State.__slots__:
            setattr(self.state, name, getattr(fresh, name))
        self.state.base = base

    def _verify_reused(self) -> None:
        """A first capture reuses objects it did not write: read them once, store anew the bad."""
        for oid in trust.damaged(self.objects, list(self.intake.reused)):
            self.intake.distrusted.add(oid)
            self.intake.take(self.intake.reused[oid])

    # ---- the result

    def _describe(self, out: Captured) -> None:
        state = self.state
        out.changed = self.changed
        out.tree = state.tree
        out.manifest_oid = state.manifest
        out.coverage_oid = state.coverage[0]
        out.coverage = [LeftOut(path, reason) for path, reason in state.coverage[1]]
        root = tree_bytes(
            [(0o40000, b"files", state.tree), (0o100644, b"manifest.json", state.manifest)]
        )
        out.root_tree = object_id(TREE_OBJECT, root, self.objects.algo)
        if out.root_tree == state.root and state.snapshot:
            out.snapshot, out.reused = state.snapshot, True
            return
        self._put(TREE_OBJECT, root)
        # Without a time: one state of the folder is one snapshot, however often it comes back.
        commit = commit_bytes(out.root_tree, [], 0, b"snapshot\n")
        state.root = out.root_tree
        out.snapshot = state.snapshot = self._put(COMMIT, commit)
        out.fresh = True


def _depth(path: bytes) -> int:
    return path.count(b"/") + 1 if path else 0
