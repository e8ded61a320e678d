"""Make a plan: the steps from the worktree as it is to a snapshot, and what is kept and why."""

from __future__ import annotations

import os
from bisect import bisect_left
from errno import ENAMETOOLONG
from stat import S_IMODE, S_ISDIR

from coderewind.errors import RewindError
from coderewind.model import coverage as why
from coderewind.model import plan as model
from coderewind.model.coverage import LeftOut
from coderewind.model.paths import within
from coderewind.model.plan import Kept, Plan, Step
from coderewind.store.diff import Difference, SnapshotView, compare
from coderewind.store.folders import make_folders, make_private, remove_folder
from coderewind.store.home import Store
from coderewind.store.ignore import Rules
from coderewind.store.mounts import mounted_below
from coderewind.store.objects import DamagedObject
from coderewind.store.state import parents
from coderewind.store.workspace import Workspace

_CAN_RESCUE = (why.IGNORED, why.FILTERED, why.TOO_LARGE, why.TOO_MANY)
_MOUNTED = "something is mounted there"
_IN_THE_WAY = {
    why.SOCKET: "a socket stands in the way",
    why.DEVICE: "a device stands in the way",
    why.UNREADABLE: "what stands there cannot be read, so it cannot be rescued",
    why.TOO_LONG: "its path is too long",
    why.OWN_STORE: "Rewind's own store is there",
    why.GIT_STATE: "a repository's git directory is there",
}


class Planner:
    """Compares what is (snapshot `now`, with its coverage) with what shall be (`target`)."""

    def __init__(
        self,
        store: Store,
        workspace: Workspace,
        now: bytes,
        left_out: list[LeftOut],
        target: bytes,
        target_left_out: list[LeftOut],
        paths: tuple[bytes, ...] = (),
        *,
        rescued: tuple[bytes, ...] = (),
        made: bytes = b"",
        stood: dict[bytes, int] | None = None,
    ) -> None:
        """`rescued` paths were captured only because they stand in the way, and may go. `made` is
        the snapshot of the move that is taken back: what it put there may go, too, but for the
        folders that `stood` there before."""
        self._store = store
        self._workspace = workspace
        self._now = SnapshotView(store.objects, now)
        self._target = SnapshotView(store.objects, target)
        self._left_out = {item.path: item.reason for item in left_out}
        self._target_left_out = {item.path: item.reason for item in target_left_out}
        self._git_state = tuple(path for path, reason in self._left_out.items()
                                if reason == why.GIT_STATE)
        self._mounted = mounted_below(workspace.root)
        self._paths = paths
        self._rescued = rescued
        self._made_by_move = _view_if_there(store, made)
        self._stood = stood or {}
        self._fifos_of_move = self._find_fifos_of_move()
        self._left_out_sorted = sorted(self._left_out.keys() - self._fifos_of_move)
        self.plan = Plan(target.hex(), now.hex(), paths)
        self._kept_paths: set[bytes] = set()
        self._made: set[bytes] = set()
        self._removed: set[bytes] = set()

    def _concerns(self, path: bytes) -> bool:
        """Whether a path is to be restored: a git directory was never ours to touch."""
        return within(path, self._paths) and not (
            self._git_state and within(path, self._git_state))

    def knows(self, path: bytes) -> bool:
        """Whether a path means anything, now or then."""
        return (
            not path
            or (os.path.lexists(self._full(path)) and self._is_reached_by_folders(path))
            or self._target.is_folder(path)
            or self._target.lookup(path) is not None
            or path in self._target.manifest.fifos
            or path in self._target_left_out
        )

    def make(self) -> Plan:
        differences = [
            difference
            for difference in compare(self._store.objects, self._now.tree, self._target.tree)
            if self._concerns(difference.path)
        ]
        gone = [difference for difference in differences if not difference.new_mode]
        self._deletions(gone)
        for difference in differences:
            if difference.new_mode:
                self._write(difference)
        self._fifos()
        self._empty_folders()
        self._modes(differences)
        self._obstacles()
        self._say_left_out()
        self.plan.steps.sort(key=lambda step: step.path)
        self.plan.kept.sort(key=lambda kept: kept.path)
        return self.plan

    # ---- deletions

    def _deletions(self, gone: list[Difference]) -> None:
        empty = [folder for folder in self._now.manifest.folders
                 if self._concerns(folder) and not self._target.is_folder(folder)]
        hidden = self._hidden_then([difference.path for difference in gone], empty)
        for difference in gone:
            path = difference.path
            reason = self._reason_to_keep(difference, hidden)
            if reason:
                self.plan.kept.append(Kept(path, reason))
                self._kept_paths.add(path)
            else:
                step = Step(model.DELETE, path, git_mode=difference.old_mode,
                            old_oid=difference.old_oid)
                self.plan.steps.append(step)
        self._remove_folders_of_move()
        folders = {up for step in self.plan.steps for up in parents(step.path) if up}
        for folder in sorted(folders.union(empty), reverse=True):
            if self._concerns(folder) and not self._target.is_folder(folder):
                reason = self._reason_to_keep_folder(folder, hidden)
                if reason:
                    self.plan.kept.append(Kept(folder, reason))
                    self._kept_paths.add(folder)
                else:
                    self._remove_folder(folder)

    def _remove_folders_of_move(self) -> None:
        """Empty folders that the move that is taken back has made where rules hide them now."""
        if self._made_by_move is None:
            return
        stays = self._stood.keys() | self._mounted
        for folder in sorted(self._made_by_move.manifest.folders, reverse=True):
            if folder in stays or self._target.is_folder(folder):
                continue
            if self._concerns(folder) and self._stands(folder) and self._becomes_empty(folder):
                self.plan.steps.append(Step(model.RMDIR, folder))
                self._removed.add(folder)
        self._left_out_sorted = sorted(set(self._left_out_sorted) - self._removed)

    def _becomes_empty(self, folder: bytes) -> bool:
        try:
            names = os.listdir(self._full(folder))
        except OSError:
            return False
        return all(folder + b"/" + name in self._removed for name in names)

    def _reason_to_keep(self, difference: Difference, hidden: set[bytes]) -> str:
        path = difference.path
        if path in self._mounted:
            return _MOUNTED
        if self._rescued and within(path, self._rescued):
            return ""
        put = self._put_by_move(path)
        if put is not None and put[1] == difference.old_oid:
            return ""
        repository = self._now.manifest.within_repository(path)
        if repository and repository not in self._target.manifest.repositories:
            return "belongs to a repository that appeared later"
        if self._target.is_folder(path):
            return ""  # whatever the rules of then say of files: a folder belongs there
        return self._left_out_then(path, hidden)

    def _reason_to_keep_folder(self, folder: bytes, hidden: set[bytes]) -> str:
        if folder in self._mounted:
            return _MOUNTED
        if self._rescued and within(folder, self._rescued):
            return ""
        put = self._put_by_move(folder)
        if put is not None and put[0] == 0o40000 and folder not in self._stood:
            return ""
        return self._left_out_then(folder, hidden)

    def _put_by_move(self, path: bytes) -> tuple[int, bytes] | None:
        """The git mode and content id that the move that is taken back put at a path."""
        if self._made_by_move is None:
            return None
        if path in self._made_by_move.manifest.folders:
            return 0o40000, b""
        try:
            return self._made_by_move.lookup(path)
        except DamagedObject:
            return None

    def _left_out_then(self, path: bytes, hidden: set[bytes]) -> str:
        """Whether the target knows nothing of a path because it was not to be captured."""
        for up in (path, *parents(path)):
            reason = self._target_left_out.get(up)
            if reason and reason not in (why.FIFO, why.IGNORED):
                return f"was left out of that checkpoint ({reason})"
            if reason == why.IGNORED:
                return "was ignored then"
        return "is ignored by that checkpoint's rules" if path in hidden else ""

    def _hidden_then(self, paths: list[bytes], folders: list[bytes]) -> set[bytes]:
        """Which of these the target's own ignore rules would have hidden."""
        if not paths and not folders:
            return set()
        scratch = os.path.join(self._store.home, b"ignore")
        make_private(scratch)
        then = os.path.join(scratch, b"then-" + os.urandom(6).hex().encode())
        tree = os.path.join(then, b"tree")
        make_private(then)
        make_private(tree)
        # The shape of the tree is built too: a rule like `build/` asks whether it is a folder.
        view = Workspace(tree, self._workspace.git_dir, self._workspace.common_dir)
        rules = Rules(view, os.path.join(then, b"git"))
        try:
            for path, mode, oid in self._target.walk():
                name = path.rpartition(b"/")[2]
                if name == b".gitignore" and mode in (0o100644, 0o100755):
                    _put(tree, path, self._store.objects.read(oid)[1])
            for path in paths:
                _put(tree, path, b"")
            for folder in folders:
                _put(tree, folder + b"/", b"")
            return rules.ignored(paths + folders)
        except OSError as error:
            raise RewindError(f"the plan could not be made: {error.strerror}",
                              hint="nothing was changed") from error
        finally:
            rules.close()
            remove_folder(then)

    def _remove_folder(self, folder: bytes) -> None:
        if folder in self._now.manifest.repositories or self._holds_kept(folder):
            self._kept_paths.add(folder)
            return
        if self._now.is_folder(folder):
            self.plan.steps.append(Step(model.RMDIR, folder))
            self._removed.add(folder)

    def _holds_kept(self, folder: bytes) -> bool:
        start = folder + b"/"
        at = bisect_left(self._left_out_sorted, start)
        if at < len(self._left_out_sorted) and self._left_out_sorted[at].startswith(start):
            return True
        if any(kept.startswith(start) for kept in self._kept_paths):
            return True
        return any(repo.startswith(start) for repo in self._now.manifest.repositories)

    def _say_left_out(self) -> None:
        """What neither snapshot holds, and so stays as it is; ignored files go without saying."""
        said = {kept.path for kept in self.plan.kept}
        said |= {step.path for step in self.plan.steps}
        for left_out, words in (
            (self._left_out, "is not captured: {}"),
            (self._target_left_out, "was not captured then: {}"),
        ):
            for path, reason in left_out.items():
                if reason == why.IGNORED or path in said or not within(path, self._paths):
                    continue
                said.add(path)
                why_kept = words.format(reason)
                if not os.path.lexists(self._full(path)):
                    why_kept = f"is gone and does not come back, it {why_kept}"
                self.plan.kept.append(Kept(path, why_kept))

    # ---- what is written

    def _write(self, difference: Difference) -> None:
        path, mode = difference.path, difference.new_mode
        if mode not in (0o100644, 0o100755, 0o120000):
            self.plan.blocked.append(Kept(path, "has a type that cannot be restored"))
            return
        perm = self._target.manifest.perm(path, mode)
        same_content = difference.old_oid == difference.new_oid and difference.old_mode
        if same_content and (mode == 0o120000) == (difference.old_mode == 0o120000):
            self._change_mode(path, mode, perm, difference.new_oid)
            return
        if path in self._mounted:
            self.plan.blocked.append(Kept(path, _MOUNTED))
            return
        self._need_parents(path)
        self.plan.steps.append(
            Step(model.WRITE, path, git_mode=mode, perm=perm, oid=difference.new_oid,
                 old_oid=difference.old_oid, is_new=not difference.old_mode)
        )

    def _need_parents(self, path: bytes) -> None:
        for up in parents(path):
            if not up or up in self._made:
                return
            if self._now.is_folder(up) and up not in self._removed:
                return
            self._make_folder(up)

    def _make_folder(self, path: bytes) -> None:
        self._made.add(path)
        self._make_way(path)
        perm = self._target.manifest.perm(path, 0o40000)
        action = model.MKDIR
        if self._stands(path):
            self.plan.stood[path] = stood = self._perm_now(path)
            if stood == perm:
                return
            action = model.CHMOD
        self.plan.steps.append(Step(action, path, git_mode=0o40000, perm=perm))

    def _make_way(self, path: bytes) -> None:
        """Of a file in the place of a folder: the rescue has it, whatever paths were asked for."""
        there = self._now.lookup(path)
        if there is not None and there[0] != 0o40000 and not self._concerns(path):
            self.plan.steps.append(
                Step(model.DELETE, path, git_mode=there[0], old_oid=there[1])
            )

    def _stands(self, path: bytes) -> bool:
        """Whether this is a folder already, but left out."""
        return any(up in self._left_out for up in (path, *parents(path))) and (
            self._is_folder_now(path) and self._is_reached_by_folders(path)
        )

    def _stands_as_kept(self, path: bytes, perm: int) -> bool:
        """Whether a folder that the move found there is there still, but not with its mode."""
        if path in self._removed or self._target.is_folder(path):
            return False
        there = self._is_folder_now(path) and self._is_reached_by_folders(path)
        return there and self._perm_now(path) != perm

    def _perm_now(self, path: bytes) -> int:
        return S_IMODE(os.lstat(self._full(path)).st_mode)

    def _find_fifos_of_move(self) -> set[bytes]:
        """The pipes that the move that is taken back has made."""
        if self._made_by_move is None:
            return set()
        there = self._made_by_move.manifest.fifos.keys() & self._now.manifest.fifos.keys()
        gone = there - self._target.manifest.fifos.keys()
        return {path for path in gone if self._concerns(path)}

    def _empty_folders(self) -> None:
        for folder in sorted(self._target.manifest.folders):
            if self._concerns(folder) and not self._now.is_folder(folder):
                if folder not in self._made:
                    self._make_folder(folder)
                self._need_parents(folder)

    def _fifos(self) -> None:
        for path, perm in self._target.manifest.fifos.items():
            if path in self._now.manifest.fifos or not self._concerns(path):
                continue
            if path in self._kept_paths or path in self._left_out:
                continue
            self._need_parents(path)
            self.plan.steps.append(Step(model.FIFO, path, perm=perm))
        for path in self._fifos_of_move:
            self.plan.steps.append(Step(model.DELETE, path))

    def _modes(self, differences: list[Difference]) -> None:
        """Permission bits that differ although content and git mode do not."""
        now, target = self._now.manifest, self._target.manifest
        changed = {difference.path for difference in differences}
        if now.base == target.base:
            candidates = now.modes.keys() | target.modes.keys()
        else:
            candidates = {path for path, _, _ in self._target.walk()} | target.folders
        for path in sorted(candidates):
            if path in changed or path in self._made or not self._concerns(path):
                continue
            found = self._target.lookup(path)
            mode = found[0] if found else 0o40000 if path in target.folders else 0
            there = self._now.lookup(path)
            mode_now = there[0] if there else 0o40000 if path in now.folders else 0
            if not mode or mode != mode_now or mode == 0o120000:
                continue
            perm = target.perm(path, mode)
            if perm != now.perm(path, mode):
                self._change_mode(path, mode, perm, found[1] if found else b"")
        for path, perm in sorted(self._stood.items()):
            if self._concerns(path) and self._stands_as_kept(path, perm):
                self._change_mode(path, 0o40000, perm, b"")

    def _change_mode(self, path: bytes, mode: int, perm: int, oid: bytes) -> None:
        """A file with more than one name is written anew, so that its other names keep theirs; one
        of another user, too, who alone may change its mode."""
        try:
            st = os.lstat(self._full(path))
            anew = st.st_nlink > 1 or os.geteuid() not in (0, st.st_uid)
        except OSError:
            anew = False
        action = model.WRITE if anew and mode != 0o40000 else model.CHMOD
        self.plan.steps.append(
            Step(action, path, git_mode=mode, perm=perm, oid=oid, old_oid=oid)
        )

    # ---- what stands in the way

    def _obstacles(self) -> None:
        """Left-out things where something must be written: into the rescue first, or blocked."""
        extra: set[bytes] = set()
        fifos: set[bytes] = set()
        for step in list(self.plan.steps):
            if step.action in (model.WRITE, model.MKDIR, model.FIFO):
                for path, reason in self._in_the_way(step):
                    if reason in _CAN_RESCUE:
                        extra.add(path)
                    elif reason == why.FIFO:
                        if step.action != model.WRITE or path != step.path:
                            fifos.add(path)
                    else:
                        said = _IN_THE_WAY.get(reason, "something that is kept is there")
                        self.plan.blocked.append(Kept(path, said))
        for path in sorted(fifos):
            self.plan.steps.append(Step(model.DELETE, path))
        self.plan.extra = tuple(sorted(extra))

    def _in_the_way(self, step: Step) -> list[tuple[bytes, str]]:
        path = step.path
        found: list[tuple[bytes, str]] = []
        reason = self._left_out.get(path)
        if reason and not (step.action == model.MKDIR and self._is_folder_now(path)):
            found.append((path, reason))
        for up in parents(path):
            reason = self._left_out.get(up)
            if not up or not reason:
                continue
            if not self._is_folder_now(up) or reason == why.UNREADABLE:
                found.append((up, reason))
            elif os.path.lexists(self._full(path)) and not (
                step.action == model.MKDIR and self._is_folder_now(path)
            ):
                found.append((path, reason))
        if step.action != model.MKDIR:
            start = path + b"/"
            at = bisect_left(self._left_out_sorted, start)
            while at < len(self._left_out_sorted):
                below = self._left_out_sorted[at]
                if not below.startswith(start):
                    break
                found.append((below, self._left_out[below]))
                at += 1
        for kept in {path, *parents(path)} & self._kept_paths:
            if not self._now.is_folder(kept) or (kept == path and step.action != model.MKDIR):
                found.append((kept, "kept"))
        removed = path in self._removed
        if step.action != model.MKDIR and self._now.is_folder(path) and not removed:
            found.append((path, "kept"))
        return found

    def _is_reached_by_folders(self, path: bytes) -> bool:
        return all(self._is_folder_now(up) for up in parents(path) if up)

    def _full(self, path: bytes) -> bytes:
        return os.path.join(self._workspace.root, path)

    def _is_folder_now(self, path: bytes) -> bool:
        try:
            return S_ISDIR(os.lstat(self._full(path)).st_mode)
        except OSError:
            return False


def _view_if_there(store: Store, snapshot: bytes) -> SnapshotView | None:
    """A snapshot that only helps: retention may have dropped it."""
    try:
        return SnapshotView(store.objects, snapshot) if snapshot else None
    except DamagedObject:
        return None


def _put(tree: bytes, path: bytes, content: bytes) -> None:
    """A file in a scratch folder of ours, its folders made; what is there already stays."""
    full = os.path.join(tree, path)
    try:
        make_folders(os.path.dirname(full))
        if content or not os.path.lexists(full):
            with open(full, "wb") as file:
                file.write(content)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        pass  # a file now where a folder was then: no rule of that folder concerns it
    except OSError as error:
        if error.errno != ENAMETOOLONG:
            raise
