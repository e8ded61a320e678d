"""Apply a plan to a worktree. The only module that writes into a worktree.

Rules: every folder on the way is opened without following links and changes are made relative to
it, so a link that flips under us leads nowhere; contents are staged and verified before the first
change; each file is renamed into its place; each system call's result counts; and nothing is
overwritten or deleted that is not, byte for byte, what the rescue holds.
"""

from __future__ import annotations

import errno
import os
from stat import S_ISDIR, S_ISFIFO, S_ISLNK, S_ISREG

from coderewind.errors import RewindError
from coderewind.model import plan as model
from coderewind.model.paths import is_safe, to_text
from coderewind.model.plan import Plan, Step
from coderewind.store.folders import remove_folder
from coderewind.store.objects import Objects
from coderewind.store.pack import new_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STAGE_PREFIX = b".rewind-stage-"
_ORDER = (model.DELETE, model.RMDIR, model.MKDIR, model.WRITE, model.FIFO, model.CHMOD)
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY)
_CHUNK = 1 << 20


class Moved(Exception):
    """Something changed between the rescue and its replacement; it was not touched."""

    def __init__(self, path: bytes) -> None:
        super().__init__(to_text(path))
        self.half_way = False  # whether other steps were done already


class Writer:
    """Stages the contents of one plan, then applies it."""

    def __init__(
        self,
        root: bytes,
        objects: Objects,
        stage: bytes,
        progress: Callable[[str, int], None] | None = None,
    ) -> None:
        self._root = root
        self._objects = objects
        self.stage_path = stage
        self._progress = progress
        self._root_fd = os.open(root, os.O_RDONLY | _FOLDER)
        self._parent_path: bytes | None = None
        self._parent_fd = -1
        self._staged: dict[bytes, bytes] = {}
        self._opened_up: dict[bytes, int] = {}  # read-only folders made writable: path -> mode

    def close(self) -> None:
        try:
            self._close_up()
        except OSError:
            pass  # it failed before, and that was said
        self._leave_parent()
        if self._root_fd >= 0:
            os.close(self._root_fd)
            self._root_fd = -1
        remove_stage(self.stage_path)

    def stage(self, plan: Plan) -> None:
        """Write every content to be restored into the stage, verified against its id.

        Raises:
            DamagedObject: the store cannot give a content back. Nothing was touched.
            RewindError: something is another user's, or on a disk that cannot be written.
        """
        self._refuse_what_is_not_ours(plan)
        os.mkdir(self.stage_path, 0o700)
        for number, step in enumerate(plan.steps):
            if not is_safe(step.path):
                raise RewindError(f"the snapshot holds an unsafe path: {to_text(step.path)!r}",
                                  hint="nothing was changed")
            if step.action == model.WRITE:
                self._staged[step.path] = self._stage_one(number, step)

    def apply(self, plan: Plan) -> None:
        """Make the changes, in an order in which every one is possible.

        Raises:
            Moved: a file is not what the rescue holds; it was left alone.
        """
        ordered = []
        for action in _ORDER:
            mine = [step for step in plan.steps if step.action == action]
            deepest_first = action in (model.RMDIR, model.CHMOD)
            mine.sort(key=lambda step: step.path, reverse=deepest_first)
            ordered += mine
        for step in ordered:
            self._opening_up(self._check, step)
        for number, step in enumerate(ordered):
            try:
                self._opening_up(self._try, step)
            except Moved as moved:
                moved.half_way = number > 0
                raise
            if self._progress:
                self._progress("restored", number + 1)
        self._close_up()
        self._flush()

    # ---- staging

    def _stage_one(self, number: int, step: Step) -> bytes:
        path = os.path.join(self.stage_path, b"%d" % number)
        if step.git_mode == 0o120000:
            os.symlink(self._objects.read(step.oid)[1], path)
            return path
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for chunk in self._objects.stream(step.oid):
                if self._progress:
                    self._progress("made ready", number + 1)
                view = memoryview(chunk)
                while view:
                    view = view[os.write(fd, view) :]
            os.fchmod(fd, step.perm)
        finally:
            os.close(fd)
        return path

    # ---- checks

    def _refuse_what_is_not_ours(self, plan: Plan) -> None:
        """Before the first change: may all of them be made? What is ours can be made writable."""
        for step in plan.steps:
            if step.action == model.CHMOD:
                self._refuse_foreign(step.path, needs_owner=True)
            elif step.action != model.MKDIR and not step.is_new:
                self._refuse_foreign(step.path, needs_owner=False)
        for folder in {os.path.dirname(step.path) for step in plan.steps}:
            full = os.path.join(self._root, folder)
            if os.path.isdir(full) and not os.access(full, os.W_OK | os.X_OK):
                if os.statvfs(full).f_flag & os.ST_RDONLY:
                    raise RewindError(f"{to_text(folder or self._root)} is on a disk that is "
                                      "mounted read-only", hint="nothing was changed")
                self._refuse_foreign(folder, needs_owner=True)

    def _refuse_foreign(self, path: bytes, *, needs_owner: bool) -> None:
        """In a sticky folder as /tmp is one, only the owner may take a file away."""
        full = os.path.join(self._root, path)
        try:
            owner, above = os.lstat(full).st_uid, os.lstat(os.path.dirname(full))
        except OSError:
            return
        us = os.geteuid()
        sticky = above.st_mode & 0o1000 and above.st_uid != us
        if us not in (0, owner) and (needs_owner or sticky):
            raise RewindError(f"{to_text(path) or 'the folder'} is another user's",
                              hint="nothing was changed; check its owner and mode")

    def _check(self, step: Step) -> None:
        """Refuse to go on when what is there is not what the rescue holds."""
        if step.action not in (model.WRITE, model.DELETE):
            return
        try:
            parent, name = self._enter(step.path)
        except (FileNotFoundError, NotADirectoryError):
            if step.old_oid:
                raise Moved(step.path) from None
            return
        self._expect(step, parent, name)

    def _expect(self, step: Step, parent: int, name: bytes) -> None:
        try:
            st = os.lstat(name, dir_fd=parent)
        except FileNotFoundError:
            if step.old_oid:
                raise Moved(step.path) from None
            return
        if S_ISFIFO(st.st_mode):
            return  # holds no bytes; the rescue knows its mode
        if S_ISDIR(st.st_mode) and not step.old_oid:
            return  # to be emptied and removed by steps of its own; rename refuses otherwise
        if not step.old_oid or self._content_id(st, parent, name) != step.old_oid:
            raise Moved(step.path)

    def _content_id(self, st: os.stat_result, parent: int, name: bytes) -> bytes:
        digest = new_hash(self._objects.algo)
        if S_ISLNK(st.st_mode):
            target = os.readlink(name, dir_fd=parent)
            digest.update(b"blob %d\0" % len(target) + target)
            return digest.digest()
        if not S_ISREG(st.st_mode):
            return b""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                         dir_fd=parent)
        except OSError:
            return b""
        try:
            size = os.fstat(fd).st_size
            digest.update(b"blob %d\0" % size)
            while chunk := os.read(fd, _CHUNK):
                digest.update(chunk)
        finally:
            os.close(fd)
        return digest.digest()

    # ---- changes

    def _try(self, step: Step) -> None:
        try:
            parent, name = self._enter(step.path)
            if step.action == model.DELETE:
                self._expect(step, parent, name)
                os.unlink(name, dir_fd=parent)
            elif step.action == model.RMDIR:
                self._rmdir(step, parent, name)
            elif step.action == model.MKDIR:
                self._mkdir(step, parent, name)
            elif step.action == model.WRITE:
                self._expect(step, parent, name)
                self._rename(self._staged[step.path], parent, name)
            elif step.action == model.FIFO:
                os.mkfifo(name, 0o600, dir_fd=parent)
                self._chmod(parent, name, step.perm)
            else:
                self._chmod(parent, name, step.perm)
                self._opened_up.pop(step.path, None)
        except PermissionError:
            raise
        except (FileNotFoundError, NotADirectoryError, FileExistsError, IsADirectoryError):
            raise Moved(step.path) from None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTEMPTY):
                raise Moved(step.path) from None
            raise RewindError(f"{to_text(step.path)}: {error.strerror}") from error

    def _rmdir(self, step: Step, parent: int, name: bytes) -> None:
        self._leave_parent_below(step.path)
        try:
            os.rmdir(name, dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise  # else something new is in it: the look afterwards says so
        self._opened_up.pop(step.path, None)

    def _mkdir(self, step: Step, parent: int, name: bytes) -> None:
        try:
            os.mkdir(name, 0o700, dir_fd=parent)
        except FileExistsError:
            if not S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
                raise
            return
        # Writable until everything inside is written.
        self._opened_up[step.path] = step.perm

    def _rename(self, staged: bytes, parent: int, name: bytes) -> None:
        try:
            os.rename(staged, name, dst_dir_fd=parent)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy_beside(staged, parent, name)

    def _copy_beside(self, staged: bytes, parent: int, name: bytes) -> None:
        """The file's folder is another file system: copy next to its place, then rename."""
        import shutil

        temp = STAGE_PREFIX + os.urandom(8).hex().encode()
        st = os.lstat(staged)
        try:
            if S_ISLNK(st.st_mode):
                os.symlink(os.readlink(staged), temp, dir_fd=parent)
            else:
                fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600,
                             dir_fd=parent)
                with open(staged, "rb") as source, os.fdopen(fd, "wb") as copy:
                    shutil.copyfileobj(source, copy, _CHUNK)
                    os.fchmod(fd, st.st_mode & 0o7777)
            os.rename(temp, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            try:
                os.unlink(temp, dir_fd=parent)
            except OSError:
                pass
            raise

    def _chmod(self, parent: int, name: bytes, perm: int) -> None:
        """Change a mode without following a link: chmod has no such flag on Linux.

        Without a name it is the mode of the root.
        """
        if not name:
            os.fchmod(parent, perm)
            return
        fd = os.open(name, _PATH_ONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            if not S_ISLNK(os.fstat(fd).st_mode):
                os.chmod(b"/proc/self/fd/%d" % fd if _PATH_ONLY != os.O_RDONLY else fd, perm)
        finally:
            os.close(fd)

    # ---- folders that were made writable for a while

    def _opening_up(self, act: Callable[[Step], None], step: Step) -> None:
        try:
            act(step)
        except PermissionError:
            self._open_up(os.path.dirname(step.path))
            act(step)

    def _open_up(self, folder: bytes) -> None:
        """Make a read-only folder writable until the end; its mode is put back by `_close_up`."""
        if folder in self._opened_up:
            raise RewindError(f"{to_text(folder) or 'the folder'} may not be written to",
                              hint="check its owner and mode")
        self._leave_parent()
        parent, name = self._enter(folder)
        st = os.lstat(name, dir_fd=parent) if folder else os.fstat(parent)
        self._opened_up[folder] = st.st_mode & 0o7777
        self._chmod(parent, name, st.st_mode & 0o7777 | 0o700)

    def _close_up(self) -> None:
        """Give the folders that were made writable, and new ones, the modes they are to have."""
        for folder in sorted(self._opened_up, reverse=True):
            try:
                parent, name = self._enter(folder)
                self._chmod(parent, name, self._opened_up.pop(folder))
            except (FileNotFoundError, NotADirectoryError):
                continue

    def _flush(self) -> None:
        """Wait until the disk has it all, before the journal says that the restore is complete."""
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "syncfs") or libc.syncfs(self._root_fd) != 0:
            os.sync()

    # ---- the folder that the next change happens in

    def _enter(self, path: bytes) -> tuple[int, bytes]:
        """An open descriptor of a path's folder, reached without following any link."""
        folder, _, name = path.rpartition(b"/")
        if folder == self._parent_path:
            return self._parent_fd, name
        self._leave_parent()
        if not folder:
            return self._root_fd, name
        fd = self._root_fd
        passed: list[bytes] = []
        try:
            for part in folder.split(b"/"):
                try:
                    below = os.open(part, os.O_RDONLY | _FOLDER, dir_fd=fd)
                except PermissionError:
                    below = os.open(part, _PATH_ONLY | _FOLDER, dir_fd=fd)
                if fd != self._root_fd:
                    os.close(fd)
                fd = below
                passed.append(part)
        except PermissionError:  # this folder may not be passed through
            if fd != self._root_fd:
                os.close(fd)
            self._open_up(b"/".join(passed))
            return self._enter(path)
        except BaseException:
            if fd != self._root_fd:
                os.close(fd)
            raise
        self._parent_path, self._parent_fd = folder, fd
        return fd, name

    def _leave_parent(self) -> None:
        if self._parent_fd >= 0:
            os.close(self._parent_fd)
        self._parent_path, self._parent_fd = None, -1

    def _leave_parent_below(self, path: bytes) -> None:
        if self._parent_path is not None and self._parent_path == path:
            self._leave_parent()


def stage_dir(private: bytes, root: bytes) -> bytes:
    """Where to stage: in the store when that is the root's file system, else inside the root."""
    name = STAGE_PREFIX + os.urandom(6).hex().encode()
    base = private if os.stat(private).st_dev == os.stat(root).st_dev else root
    return os.path.join(base, name)


def remove_stage(stage: bytes) -> None:
    if os.path.basename(stage).startswith(STAGE_PREFIX) and not os.path.islink(stage):
        remove_folder(stage)
