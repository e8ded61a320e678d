"""Find what changed in a worktree since its last capture.

Every captured file is looked at with one lstat; a folder is listed again only when its own times
changed; git is asked only about names never seen before. So an unchanged worktree costs about as
much as `git status` and starts no process (benchmarks/speed.py).

Times are compared in nanoseconds, and what changed within one tick of the clock before it was
read is read again next time, so that no edit can hide behind an equal size and time.
"""

from __future__ import annotations

import os
from array import array
from stat import S_IFDIR, S_IFLNK, S_IFMT, S_IFREG

from coderewind.errors import RewindError
from coderewind.model import coverage as why
from coderewind.model.paths import to_text
from coderewind.store.filters import Filters
from coderewind.store.ignore import Rules, Tracked
from coderewind.store.look import different
from coderewind.store.state import (
    OTHERS,
    SIG,
    STATS,
    SUBS,
    Folder,
    State,
    join,
    names_of,
    oids_of,
    parents,
    signature,
    stat_columns,
)
from coderewind.store.workspace import Workspace, find_repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

TICK_NS = 50_000_000  # the kernel stamps files with a clock of 1-10 ms
COARSE_TICK_NS = 2_100_000_000  # file systems that keep whole seconds, or two (FAT)
# A program writing through a memory map changes a file's times only when the page was clean; the
# kernel cleans dirty pages after 30 s. Up to this many files are read again for that long.
MAPPED_NS = 35_000_000_000
MAPPED_FILES = 256
MAPPED_BYTES = 64 << 20
_MOST_ASKED = 6  # git processes that wait for the next question; two descriptors each

_SPECIAL = {0o010000: why.FIFO, 0o140000: why.SOCKET, 0o020000: why.DEVICE, 0o060000: why.DEVICE}
_GONE = (FileNotFoundError, NotADirectoryError)


def is_racy(st: os.stat_result, read_ns: int) -> bool:
    """Whether a file read at `read_ns` may have changed afterwards within the same clock tick."""
    newest = max(st.st_ctime_ns, st.st_mtime_ns) if st.st_mtime_ns <= read_ns else st.st_ctime_ns
    tick = TICK_NS if newest % 1_000_000_000 else COARSE_TICK_NS
    return newest >= read_ns - tick


class Draft:
    """A folder that is not as the state says: what is in it now."""

    __slots__ = ("files", "others", "path", "perm", "sig", "subs")

    def __init__(self, path: bytes, sig: bytes, perm: int) -> None:
        self.path = path
        self.sig = sig
        self.perm = perm
        # name -> (stat, oid), the oid b"" when the file must be read
        self.files: dict[bytes, tuple[os.stat_result, bytes]] = {}
        self.subs: set[bytes] = set()
        self.others: dict[bytes, tuple[int, str]] = {}  # name -> (st_mode, reason)


class Context:
    """A repository (the worktree itself or one nested in it): its own rules decide inside it."""

    __slots__ = ("index_changed", "is_repository", "prefix", "rules", "tracked")

    def __init__(self, prefix: bytes, workspace: Workspace, scratch: bytes) -> None:
        self.prefix = prefix
        self.is_repository = workspace.git_dir is not None
        self.rules = Rules(workspace, scratch)
        self.tracked = Tracked(workspace)
        self.index_changed = False

    def inside(self, path: bytes) -> bytes:
        return path[len(self.prefix) + 1 :] if self.prefix else path


class Scan:
    """One look at the whole worktree. After `run`, `drafts` and `gone` say what changed."""

    def __init__(
        self,
        workspace: Workspace,
        state: State,
        filters: Filters,
        *,
        now_ns: int,
        scratch: bytes,
        own: tuple[tuple[int, int], ...],
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.root = workspace.root
        self.state = state
        self.filters = filters
        self.now_ns = now_ns
        self.drafts: dict[bytes, Draft] = {}
        self.gone: set[bytes] = set()
        self.reread: list[bytes] = []  # unchanged by their times, but to be read again
        self.rules_signature = b""
        self._scratch = scratch
        self._own = own
        self._progress = progress
        self._taken_out: dict[bytes, str] = {}  # folders that cannot be captured any more
        self._seen = 0
        self._asking: list[Rules] = []  # whose git may still be running
        self._width = 20
        self.contexts: dict[bytes, Context] = {b"": Context(b"", workspace, scratch + b"/root")}
        self._git_state = self._named_by(workspace)

    # ---- the whole scan

    def run(self, width: int, *, extra: tuple[bytes, ...] = ()) -> None:
        """Look at everything. `extra` paths are captured whatever filters and rules say.

        Raises:
            Vanished: the tree changed so that git could not answer; scan again.
        """
        self._width = width
        self._extra = set(extra)
        try:
            changed = self._compare()
            again = self._contexts_and_rules()
            queue = [path for path in changed if path not in self.drafts]
            self._list_all(queue)
            self._watch()
            self._ask_again(again | self._rule_files_changed())
            self._settle()
            self._leave_git_state()
            self._find_young()
        finally:
            for context in self.contexts.values():
                context.rules.close()

    def close_index_questions(self) -> bool:
        """Whether every index that was asked could be read."""
        return all(context.tracked.readable for context in self.contexts.values())

    def context_of(self, path: bytes) -> Context:
        """The repository that decides about the names in folder `path`."""
        if len(self.contexts) == 1:
            return self.contexts[b""]
        if path in self.contexts:
            return self.contexts[path]
        return next(self.contexts[up] for up in parents(path) if up in self.contexts)

    # ---- first pass: is anything different?

    def _compare(self) -> list[bytes]:
        """Compare every known folder and file with the state; the folders to list again."""
        if not self.state.folders:
            return [b""]
        gone = self.gone
        relist: list[bytes] = []
        for path in different(self.root, self.state.folders):
            if gone and path.rpartition(b"/")[0] in gone and path:
                gone.add(path)
            else:
                self._classify(path, self.state.folders[path], relist)
        if self._progress:
            self._seen += len(self.state.folders)
            self._progress(self._seen)
        if b"" in gone:
            gone.clear()
            return [b""]
        return relist

    def _classify(self, path: bytes, folder: Folder, relist: list[bytes]) -> None:
        """A folder that is not as before: gone, to be listed again, or only a file is different."""
        full = self.root + b"/" + path if path else self.root
        try:
            st = os.lstat(full)
            if S_IFMT(st.st_mode) != S_IFDIR and path:
                self.gone.add(path)
            elif signature(st) != folder[SIG]:
                relist.append(path)
            else:
                stats = [os.lstat(full + b"/" + name) for name in names_of(folder)]
                if stat_columns(stats) != folder[STATS]:
                    self._touched(path, folder, st, stats)
        except _GONE:
            if lost(full):
                self.gone.add(path)
            else:
                relist.append(path)
        except PermissionError:
            relist.append(path)

    def _touched(
        self, path: bytes, folder: Folder, st: os.stat_result, stats: list[os.stat_result]
    ) -> None:
        """Same names as before, but some file is different."""
        draft = Draft(path, self._folder_sig(st), st.st_mode & 0o7777)
        draft.subs = set(folder[SUBS])
        draft.others = {name: (mode, reason) for name, mode, reason in folder[OTHERS]}
        known = _Known(folder, self._width)
        for name, now in zip(names_of(folder), stats, strict=True):
            self._add_file(draft, name, now, known)
        self.drafts[path] = draft

    # ---- second pass: list folders

    def _list_all(self, queue: list[bytes]) -> None:
        for path in queue:
            if path and path.rpartition(b"/")[0] in self.gone:
                self.gone.add(path)
                continue
            try:
                draft = self._list(path)
            except PermissionError:
                self._lock_out(path)
                continue
            if draft is None:
                self.gone.add(path)
            else:
                self.drafts[path] = draft
            if self._progress:
                self._seen += 1
                self._progress(self._seen)

    def _lock_out(self, path: bytes) -> None:
        """A captured folder that can no longer be read goes from the snapshot into coverage."""
        if not path:
            raise RewindError(
                f"{to_text(self.root)} cannot be read", hint="nothing was saved; check its mode"
            )
        self._leave_out(path, why.UNREADABLE)

    def _leave_git_state(self) -> None:
        """A folder may have been taken in before the `.git` was met that names it."""
        taken_in = [path for path in sorted(self._git_state) if path not in self.gone
                    and (path in self.drafts or path in self.state.folders)]
        for path in taken_in:
            for draft in [p for p in self.drafts if p == path or p.startswith(path + b"/")]:
                del self.drafts[draft]
            self._leave_out(path, why.GIT_STATE)
        if taken_in:
            self._settle()

    def _leave_out(self, path: bytes, reason: str) -> None:
        """Take a folder out of what is captured."""
        self.gone.add(path)
        self._taken_out[path] = reason  # also when its folder is listed again
        folder, _, name = path.rpartition(b"/")
        if folder not in self.drafts:
            self._list_all([folder])
        elif name in self.drafts[folder].subs:  # else it is not even there any more
            self.drafts[folder].subs.discard(name)
            self.drafts[folder].others[name] = (S_IFDIR, reason)

    def _list(self, path: bytes) -> Draft | None:
        """What is in a folder now; names not known before are left for `_settle` to decide."""
        full = self.root + b"/" + path if path else self.root
        folder = self.state.folders.get(path)
        known = _Known(folder, self._width) if folder else None
        subs = folder[SUBS] if folder else ()
        others = {name: (mode, reason) for name, mode, reason in folder[OTHERS]} if folder else {}
        try:
            st = os.lstat(full)
            if S_IFMT(st.st_mode) != S_IFDIR and path:
                return None
            entries = list(os.scandir(full))
        except _GONE:
            return None
        draft = Draft(path, self._folder_sig(st), st.st_mode & 0o7777)
        dot_git = 0
        for entry in entries:
            name = entry.name
            if name == b".git":
                dot_git = S_IFDIR if entry.is_dir(follow_symlinks=False) else S_IFREG
                continue
            if entry.is_dir(follow_symlinks=False):
                mode = S_IFDIR
                if reason := self._taken_out and self._taken_out.get(join(path, name)):
                    draft.others[name] = (mode, reason)
                    continue
                if name in subs:
                    draft.subs.add(name)
                    continue
            else:
                try:
                    now = os.lstat(full + b"/" + name)
                except _GONE:
                    continue
                except OSError as error:
                    self._unreachable(draft, name, error)
                    continue
                mode = now.st_mode
                if S_IFMT(mode) in _SPECIAL:
                    draft.others[name] = (mode, _SPECIAL[S_IFMT(mode)])
                    continue
                if known and name in known:
                    self._add_file(draft, name, now, known)
                    continue
            before = others.get(name)
            if (
                before is not None
                and before[1] in (why.IGNORED, why.FILTERED)
                and S_IFMT(before[0]) == S_IFMT(mode)
                and not self._wanted(join(path, name))
            ):
                draft.others[name] = before
            else:
                draft.others[name] = (mode, _UNDECIDED)
        self._note_context(path, nested=dot_git != 0 and path != b"")
        if dot_git and not (path in self.contexts and self.contexts[path].is_repository):
            draft.others[b".git"] = (dot_git, why.GIT_STATE)  # of no repository, or not yet
        return draft

    def _wanted(self, path: bytes) -> bool:
        """Whether this path leads to, is, or lies below one that is captured whatever rules say."""
        return any(
            path == extra or extra.startswith(path + b"/") or path.startswith(extra + b"/")
            for extra in self._extra
        )

    def _note_context(self, path: bytes, *, nested: bool) -> None:
        """Keep `contexts` in step with the nested repositories that are really there."""
        was = path in self.state.contexts and path != b""
        if nested and path not in self.contexts:
            self._open_context(path)
        elif not nested and path in self.contexts and path:
            del self.contexts[path]
        if was != (path in self.contexts and path != b""):
            self._appeared.add(path)

    _appeared: set[bytes]

    def _open_context(self, path: bytes) -> bool:
        found = find_repository(self.root + b"/" + path)
        if found is None:
            return False
        # Its configuration may claim a work tree elsewhere; what is captured is what is here.
        workspace = Workspace(self.root + b"/" + path, found.git_dir, found.common_dir, found.name)
        scratch = b"%s/%s" % (self._scratch, path.hex().encode()[-80:])
        self.contexts[path] = Context(path, workspace, scratch)
        self._git_state |= self._named_by(workspace)
        return True

    def _named_by(self, workspace: Workspace) -> set[bytes]:
        """Git directories that lie among the files, because a `.git` only names them."""
        start = self.root.rstrip(b"/") + b"/"
        places = (workspace.git_dir, workspace.common_dir)
        inside = {place[len(start) :] for place in places if place and place.startswith(start)}
        return {path for path in inside if b".git" not in path.split(b"/")}

    def _add_file(
        self, draft: Draft, name: bytes, now: os.stat_result, known: _Known | None
    ) -> None:
        """A file that is captured: with its old content id if nothing about it changed."""
        if S_IFMT(now.st_mode) not in (S_IFREG, S_IFLNK):
            reason = _SPECIAL.get(S_IFMT(now.st_mode))
            draft.others[name] = (now.st_mode, reason or _UNDECIDED)
            return
        oid = known.oid(name, now) if known else b""
        draft.files[name] = (now, oid)

    def _unreachable(self, draft: Draft, name: bytes, error: OSError) -> None:
        if error.errno == 36:  # ENAMETOOLONG
            draft.others[name] = (0, why.TOO_LONG)
        elif isinstance(error, PermissionError):
            draft.others[name] = (0, why.UNREADABLE)
        else:
            raise error

    # ---- what else can bring in names that were left out

    def _contexts_and_rules(self) -> set[bytes]:
        """Open the known repositories; the folders below which everything must be asked again."""
        self._appeared = set()
        again: set[bytes] = set()
        for path in self.state.contexts:
            if path and path not in self.gone and not self._open_context(path):
                again.add(path)
        parts = [self.filters.signature()]
        for path in sorted(self.contexts):
            context = self.contexts[path]
            parts.append(context.rules.signature())
            context.index_changed = self.state.contexts.get(path) != context.tracked.signature()
        self.rules_signature = b"\0\0\0".join(parts)
        if self.state.folders and self.rules_signature != self.state.rules:
            again.add(b"")
        return again

    def _rule_files_changed(self) -> set[bytes]:
        """Folders whose .gitignore changed, or that became or ceased to be a repository."""
        found = set(self._appeared)
        for path, draft in self.drafts.items():
            old = self.state.folders.get(path)
            if old is None:
                continue
            now = draft.files.get(b".gitignore")
            before = b".gitignore" in names_of(old)
            if before != (now is not None) or (now is not None and not now[1]):
                found.add(path)
        for path in self.state.watched:
            if path.rpartition(b"/")[2] == b".gitignore" and self._watch_signature(path) != (
                self.state.watched[path]
            ):
                found.add(path.rpartition(b"/")[0])
        for path, read_ns in self.state.young.items():
            folder, _, name = path.rpartition(b"/")
            if name == b".gitignore" and self._may_differ(path, read_ns):
                found.add(folder)
        return found

    def _may_differ(self, path: bytes, read_ns: int) -> bool:
        """Whether a file may have changed since it was read although its times did not."""
        try:
            return is_racy(os.lstat(self.root + b"/" + path), read_ns)
        except OSError:
            return True

    def _ask_again(self, tops: set[bytes]) -> None:
        """Put the left-out names below these folders, and of changed indexes, to the question."""
        indexes = {path for path, context in self.contexts.items() if context.index_changed}
        if not tops and not indexes:
            return
        for path, folder in self.state.folders.items():
            if path in self.gone or not folder[OTHERS]:
                continue
            draft = self.drafts.get(path)
            ask = any(not top or path == top or path.startswith(top + b"/") for top in tops)
            if not ask and self.context_of(path).prefix not in indexes:
                continue
            if draft is None:
                self._list_all([path])
                draft = self.drafts.get(path)
                if draft is None:
                    continue
            context = self.context_of(path)
            for name, (mode, reason) in draft.others.items():
                if reason not in (why.IGNORED, why.FILTERED):
                    continue
                if ask or context.tracked.holds(context.inside(join(path, name))):
                    draft.others[name] = (mode, _UNDECIDED)

    def _watch(self) -> None:
        """Left-out files whose own change may bring them in: too large, unreadable."""
        folders = set()
        for path, before in self.state.watched.items():
            folder, _, name = path.rpartition(b"/")
            if self._watch_signature(path) != before or (
                name == b".git" and find_repository(os.path.join(self.root, folder))
            ):
                folders.add(folder)
        for path in self._extra:
            folders.add(next((up for up in parents(path) if up in self.state.folders), b""))
        for path in folders:
            if path in self.state.folders and path not in self.gone:
                self._list_all([path])

    def _watch_signature(self, path: bytes) -> bytes:
        try:
            st = os.lstat(self.root + b"/" + path)
        except OSError:
            return b""
        return signature(st) + st.st_size.to_bytes(8, "big")

    def watched(self, path: bytes) -> bytes:
        return self._watch_signature(path)

    # ---- third pass: decide about names never seen before

    def _settle(self) -> None:
        """Decide every undecided name, descending into new folders until none is left."""
        pending = list(self.drafts.values())
        while pending:
            undecided: dict[bytes, list[tuple[Draft, bytes]]] = {}
            for draft in pending:
                context = self.context_of(draft.path)
                new = [name for name, other in draft.others.items() if other[1] is _UNDECIDED]
                undecided.setdefault(context.prefix, []).extend((draft, name) for name in new)
            pending = []
            for prefix, names in undecided.items():
                context = self.contexts[prefix]
                paths = [context.inside(join(draft.path, name)) for draft, name in names]
                if not paths:
                    continue
                with _Unblocked(self.root, self._rule_fifos()):
                    ignored = context.rules.ignored(paths)
                self._keep_few_running(context.rules)
                for (draft, name), path in zip(names, paths, strict=True):
                    found = self._decide(draft, name, context, path, ignored=path in ignored)
                    if found is not None:
                        pending.append(found)

    def _keep_few_running(self, asked: Rules) -> None:
        if asked in self._asking:
            self._asking.remove(asked)
        self._asking.append(asked)
        if len(self._asking) > _MOST_ASKED:
            self._asking.pop(0).close()

    def _rule_fifos(self) -> list[bytes]:
        """FIFOs named .gitignore: git would wait for ever for somebody to write into them."""
        found = []
        for path, draft in self.drafts.items():
            if draft.others.get(b".gitignore", (0, ""))[1] == why.FIFO:
                found.append(join(path, b".gitignore"))
        for path, folder in self.state.folders.items():
            if path not in self.drafts and any(
                name == b".gitignore" and reason == why.FIFO for name, _, reason in folder[OTHERS]
            ):
                found.append(join(path, b".gitignore"))
        return found

    def _decide(
        self, draft: Draft, name: bytes, context: Context, inside: bytes, *, ignored: bool
    ) -> Draft | None:
        """Take a name in or leave it out; the draft of a folder that must be looked into."""
        mode, _ = draft.others.pop(name)
        path = join(draft.path, name)
        full = self.root + b"/" + path
        wanted = self._wanted(path)
        if ignored and not wanted and not context.tracked.holds(inside):
            draft.others[name] = (mode, why.IGNORED)
            return None
        if S_IFMT(mode) == S_IFDIR:
            return self._decide_folder(draft, name, context, inside, wanted=wanted)
        try:
            now = os.lstat(full)
        except _GONE:
            return None
        except OSError as error:
            self._unreachable(draft, name, error)
            return None
        limit = self.filters.max_file_bytes
        if (
            limit
            and now.st_size > limit
            and S_IFMT(now.st_mode) == S_IFREG
            and not wanted
            and not context.tracked.holds(inside)
        ):
            draft.others[name] = (now.st_mode, why.TOO_LARGE)
            return None
        self._add_file(draft, name, now, None)
        if draft.others.get(name, (0, ""))[1] is _UNDECIDED:  # became a folder meanwhile
            del draft.others[name]
        return None

    def _decide_folder(
        self, draft: Draft, name: bytes, context: Context, inside: bytes, *, wanted: bool
    ) -> Draft | None:
        path = join(draft.path, name)
        mode = S_IFDIR
        try:
            st = os.lstat(self.root + b"/" + path)
            if (st.st_dev, st.st_ino) in self._own:
                draft.others[name] = (mode, why.OWN_STORE)
                return None
            if path in self._git_state:
                draft.others[name] = (mode, why.GIT_STATE)
                return None
            filtered = self.filters.folder(name, in_repository=context.is_repository)
            if filtered and not wanted and not context.tracked.holds(inside):
                draft.others[name] = (mode, why.FILTERED)
                return None
            new = self._list(path)
        except _GONE:
            return None
        except OSError as error:
            self._unreachable(draft, name, error)
            return None
        if new is None:
            return None
        limit = self.filters.max_dir_files
        if limit and not wanted and not context.tracked.holds(inside):
            files = sum(1 for other in new.others.values() if S_IFMT(other[0]) != S_IFDIR)
            if files > limit:
                draft.others[name] = (mode, why.TOO_MANY)
                return None
        draft.subs.add(name)
        self.drafts[path] = new
        if self._progress:
            self._seen += 1
            self._progress(self._seen)
        return new

    # ---- files whose times cannot be trusted yet

    def _find_young(self) -> None:
        """Choose the files to read again although their times did not change."""
        mapped: list[tuple[int, int, bytes]] = []
        for path, read_ns in self.state.young.items():
            folder, _, name = path.rpartition(b"/")
            if not self._is_unread(folder, name):
                continue
            try:
                st = os.lstat(self.root + b"/" + path)
            except OSError:
                continue
            if is_racy(st, read_ns):
                self.reread.append(path)
            else:
                mapped.append((-st.st_ctime_ns, st.st_size, path))
        budget = MAPPED_BYTES
        for _, size, path in sorted(mapped)[:MAPPED_FILES]:
            budget -= size
            if budget < 0:
                break
            self.reread.append(path)

    def _is_unread(self, folder: bytes, name: bytes) -> bool:
        """Whether this is a captured file that nobody is going to read anyway."""
        draft = self.drafts.get(folder)
        if draft is not None:
            return name in draft.files and draft.files[name][1] != b""
        known = self.state.folders.get(folder)
        return known is not None and folder not in self.gone and name in names_of(known)

    def _folder_sig(self, st: os.stat_result) -> bytes:
        return b"" if is_racy(st, self.now_ns) else signature(st)


class _Known:
    """The files of a folder as the state has them."""

    def __init__(self, folder: Folder, width: int) -> None:
        self._at = {name: i for i, name in enumerate(names_of(folder))}
        self._numbers = array("q")
        self._numbers.frombytes(folder[STATS])
        self._oids = oids_of(folder, width)
        self._count = len(self._oids)

    def __contains__(self, name: bytes) -> bool:
        return name in self._at

    def oid(self, name: bytes, now: os.stat_result) -> bytes:
        """The file's content id, or b"" when it must be read."""
        i = self._at.get(name)
        if i is None:
            return b""
        numbers = array("q")
        numbers.frombytes(stat_columns([now]))
        mine = self._numbers[i :: self._count]
        return self._oids[i] if mine == numbers else b""


class _Unblocked:
    """While this is held, opening one of these FIFOs to read does not wait; nothing is read."""

    def __init__(self, root: bytes, fifos: list[bytes]) -> None:
        self._paths = [root + b"/" + fifo for fifo in fifos]
        self._fds: list[int] = []

    def __enter__(self) -> None:
        for path in self._paths:
            try:
                self._fds.append(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW))
            except OSError:
                continue

    def __exit__(self, *exc: object) -> None:
        for fd in self._fds:
            os.close(fd)


class _Undecided(str):
    __slots__ = ()


_UNDECIDED = _Undecided("undecided")


def lost(full: bytes) -> bool:
    return not os.path.isdir(full) or os.path.islink(full)
