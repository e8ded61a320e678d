"""Whatever is edited, captured, restored, undone and pruned, in whatever order:

a restore gives back what was captured, taking it back gives back what there was, nothing that is
listed is lost, ids stay valid, git state is not touched, and nothing is left lying about.
REWIND_PROPERTY=long tries much more.
"""

import contextlib
import os
import stat
from collections.abc import Callable

import pytest
from corpus.box import Box
from corpus.tree import Picture, differences
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sealed import close_all, opened, sealed_box

from coderewind import Rewind, RewindError
from coderewind.engine.moving import Outcome
from coderewind.model.records import Checkpoint

from . import edits

Coverage = dict[bytes, str]


class Saved:
    """What a listed checkpoint must give back."""

    def __init__(self, files: Picture, coverage: Coverage, moved_to: Picture) -> None:
        self.files = files
        self.coverage = coverage
        self.moved_to = moved_to  # what a move that began here put there
        self.pinned = False


class Machine(RuleBasedStateMachine):
    """One project and what is known of its checkpoints, by id."""

    git = True

    def __init__(self) -> None:
        super().__init__()
        self._stack = contextlib.ExitStack()
        self.box: Box = self._stack.enter_context(sealed_box(git=self.git))
        self.saved: dict[str, Saved] = {}
        self.dropped: set[str] = set()
        self.captured: set[bytes] = set()  # paths that some capture held

    def teardown(self) -> None:
        self._stack.close()

    @property
    def rewind(self) -> Rewind:
        return opened(self.box)

    # ---- the user's edits

    @initialize(files=st.dictionaries(edits.paths, edits.contents, max_size=5))
    def begin(self, files: dict[bytes, bytes]) -> None:
        for path, content in files.items():
            edits.put(self.box, path, "file", content, 0o644)
        self._check_save()

    @rule(
        path=edits.paths,
        kind=edits.kinds,
        content=edits.contents,
        mode=st.sampled_from(edits.MODES),
    )
    def edit(self, path: bytes, kind: str, content: bytes, mode: int) -> None:
        assume(not self._holds_repository(path))
        edits.put(self.box, path, kind, content, mode)

    @rule(data=st.data(), content=st.sampled_from(edits.CONTENTS))
    def edit_unseen(self, data: st.DataObject, content: bytes) -> None:
        path = self._one(data, "file")
        edits.overwrite_unseen(self.box, path, content)

    @rule(data=st.data(), mode=st.sampled_from(edits.MODES))
    def chmod(self, data: st.DataObject, mode: int) -> None:
        os.chmod(self.box.path(self._one(data, "file")), mode)

    @rule(data=st.data(), mode=st.sampled_from(edits.FOLDER_MODES))
    def chmod_folder(self, data: st.DataObject, mode: int) -> None:
        os.chmod(self.box.path(self._one(data, "directory")), mode)

    @rule(data=st.data(), to=edits.paths)
    def rename(self, data: st.DataObject, to: bytes) -> None:
        path = self._one(data, "file", "directory", "symlink")
        assume(not (path + b"/").startswith(to + b"/") and not to.startswith(path + b"/"))
        assume(not self._holds_repository(to))
        edits.clear(self.box, to)
        os.rename(self.box.path(path), self.box.path(to))

    @rule(data=st.data(), to=edits.paths)
    def hard_link(self, data: st.DataObject, to: bytes) -> None:
        path = self._one(data, "file")
        assume(not (path + b"/").startswith(to + b"/") and not to.startswith(path + b"/"))
        assume(not self._holds_repository(to))
        edits.clear(self.box, to)
        os.link(self.box.path(path), self.box.path(to))

    @rule(folder=st.sampled_from((b"", b"a/", b"ignored/")), rules=st.sampled_from(edits.RULES))
    def ignore(self, folder: bytes, rules: bytes) -> None:
        assume(not self._holds_repository(folder + b".gitignore"))
        edits.put(self.box, folder + b".gitignore", "file", rules, 0o644)

    @precondition(lambda self: self.git)
    @rule(rules=st.sampled_from(edits.RULES[:6]))
    def exclude(self, rules: bytes) -> None:
        self.box.write(".git/info/exclude", rules)

    @precondition(lambda self: self.git)
    @rule(message=st.sampled_from(("one", "two")))
    def commit(self, message: str) -> None:
        self.box.git("add", "-A", ok=False)  # some names git refuses
        self.box.git("commit", "-q", "--allow-empty", "-m", message)

    @precondition(lambda self: self.git)
    @rule(data=st.data())
    def force_add(self, data: st.DataObject) -> None:
        self.box.git("add", "-f", "--", "./" + os.fsdecode(self._one(data, "file")), ok=False)

    @rule(path=st.sampled_from((b"a/b", b"r", b"ignored/r")), commit=st.booleans())
    def nest(self, path: bytes, commit: bool) -> None:
        """A repository appears."""
        assume(not self._holds_repository(path))
        if not os.path.isdir(self.box.path(path)) or os.path.islink(self.box.path(path)):
            edits.put(self.box, path, "folder", b"", 0)
        os.chmod(self.box.path(path), 0o755)
        self.box.init(where=self.box.path(path)).write(path + b"/in", b"in\n")
        if commit:
            self.box.git("add", "in", cwd=self.box.path(path))
            self.box.git("commit", "-q", "-m", "nested", cwd=self.box.path(path))

    @rule(data=st.data())
    def unnest(self, data: st.DataObject) -> None:
        """A repository disappears, its files with it or not."""
        found = sorted(self._repositories())
        assume(found)
        path = data.draw(st.sampled_from(found))
        self.box.remove(path if data.draw(st.booleans()) else path + b"/.git")

    # ---- checkpoints

    @rule()
    def save(self) -> None:
        self._check_save()

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        target = data.draw(st.sampled_from(list(self.saved)))
        self._check_move(lambda rewind: rewind.restore(target), data)

    @rule(data=st.data(), path=edits.paths)
    def restore_path(self, data: st.DataObject, path: bytes) -> None:
        target = data.draw(st.sampled_from(list(self.saved)))
        name = os.fsdecode(path)
        self._check_move(lambda rewind: rewind.restore(target, paths=(name,)), data, only=path)

    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        self._check_move(lambda rewind: rewind.undo(), data, way_back="redo")

    @rule(data=st.data())
    def redo(self, data: st.DataObject) -> None:
        self._check_move(lambda rewind: rewind.redo(), data)

    @rule(data=st.data())
    def undo_restore(self, data: st.DataObject) -> None:
        self._check_move(lambda rewind: rewind.undo_restore(), data, way_back="redo")

    @rule(data=st.data())
    def plan(self, data: st.DataObject) -> None:
        """A dry run changes nothing, and adds nothing to the list."""
        target = data.draw(st.sampled_from(list(self.saved)))
        with self.box.expect_unchanged(), self._git_kept():
            self.rewind.plan(target)

    @rule(data=st.data(), text=st.text(max_size=5))
    def label(self, data: st.DataObject, text: str) -> None:
        target = data.draw(st.sampled_from(list(self.saved)))
        rewind = self.rewind
        rewind.engine.label(rewind.engine.resolve(target), text)
        assert self.rewind.timeline().by_id[target].label == text

    @rule(data=st.data(), pin=st.booleans())
    def pin(self, data: st.DataObject, pin: bool) -> None:
        target = data.draw(st.sampled_from(list(self.saved)))
        engine = self.rewind.engine
        (engine.pin if pin else engine.unpin)(engine.resolve(target))
        self.saved[target].pinned = pin

    @rule(keep=st.integers(1, 6))
    def prune(self, keep: int) -> None:
        newest = [cp.id for cp in self.rewind.timeline().checkpoints[:keep]]
        with self.box.expect_unchanged(), self._git_kept():
            self.rewind.prune(keep=keep)
        close_all()
        left = {cp.id for cp in self.rewind.timeline().checkpoints}
        assert {id for id, saved in self.saved.items() if saved.pinned} <= left
        unpinned = [id for id in newest if id in self.saved]
        assert set(unpinned) <= left
        gone = self.saved.keys() - left
        self.dropped |= gone
        for id in gone:
            del self.saved[id]

    # ---- other things that happen

    @rule()
    def other_process(self) -> None:
        close_all()

    @rule()
    def lose_caches(self) -> None:
        """The private state of a worktree is a cache: without it everything is read again."""
        close_all()
        for folder, _, files in os.walk(self.box.store_home):
            for name in files:
                if name == "state":
                    os.unlink(os.path.join(folder, name))

    @precondition(lambda self: self.git)
    @rule()
    def users_gc(self) -> None:
        self.box.git("reflog", "expire", "--expire=now", "--all")
        self.box.git("gc", "-q", "--prune=now")

    # ---- what must hold

    @invariant()
    def all_are_listed(self) -> None:
        listed = {cp.id for cp in self.rewind.timeline().checkpoints}
        assert listed == self.saved.keys()
        close_all()

    @invariant()
    def no_litter(self) -> None:
        assert os.listdir(self.box.tmp) == []

    def _check_save(self) -> None:
        before = self.box.picture()
        with self._git_kept():
            checkpoint = self.rewind.checkpoint()
        self.box.assert_like(before, "the project after a save")
        self._add(checkpoint, before, {})
        saved = self.saved[checkpoint.id]
        self._check_coverage(saved)
        for other in self.rewind.timeline().checkpoints:
            if other.snapshot == checkpoint.snapshot and other.id in self.saved:
                assert not differences(_held(saved), _held(self.saved[other.id]))

    def _add(self, checkpoint: Checkpoint, files: Picture, moved_to: Picture) -> None:
        assert checkpoint.id not in self.saved
        assert checkpoint.id not in self.dropped
        coverage = {item.path: item.reason for item in self.rewind.engine.coverage_of(checkpoint)}
        self.saved[checkpoint.id] = saved = Saved(files, coverage, moved_to)
        self.captured |= _held(saved).keys()

    def _check_coverage(self, saved: Saved) -> None:
        """What was left out as ignored is ignored, and what is ignored was left out."""
        asked = [
            path for path, node in saved.files.items()
            if node.type in ("file", "symlink") and not self._inside_repository(path)
        ]
        ignored = self._ignored(asked)
        for path in asked:
            reason = _reason(path, saved.coverage)
            if reason == "ignored":
                assert path in ignored, f"{path!r} is said to be ignored"
            elif not reason:
                assert path not in ignored or path in self.captured, f"{path!r} was captured"

    def _check_move(
        self,
        move: Callable[[Rewind], Outcome],
        data: st.DataObject,
        *,
        only: bytes = b"",
        way_back: str = "undo_restore",
    ) -> None:
        before, stats = self.box.picture(), self._stats()
        try:
            with self._git_kept():
                outcome = move(self.rewind)
        except RewindError as error:
            assert str(error)
            what = f"refused ({error})"
            self.box.assert_like(before, f"{what}, so the project")
            listed = self.rewind.timeline().by_id.keys()
            assert listed == self.saved.keys(), what
            return
        close_all()
        assert outcome.target is not None
        target = self.saved[outcome.target.id]
        if outcome.rescue is not None:
            self._add(outcome.rescue, before, _held(target))
            now = self.saved[outcome.rescue.id].coverage
        else:
            self.box.assert_like(before, "nothing was to be done, so the project")
            left_out = self.rewind.engine.current_snapshot().coverage
            now = {item.path: item.reason for item in left_out}
        self._check_moved(outcome, target, before, now, only)
        self._check_not_rewritten(before, stats)
        if outcome.rescue is not None and data.draw(st.booleans()):
            self._check_way_back(way_back, before)

    def _check_moved(
        self, outcome: Outcome, target: Saved, before: Picture, now: Coverage, only: bytes
    ) -> None:
        after = self.box.picture()
        kept = {item.path: item.why for item in outcome.plan.kept}
        then = _held(target)
        for path in sorted(then.keys() | after.keys() | before.keys()):
            if only and path != only and not path.startswith(only + b"/"):
                if after.get(path) != before.get(path):
                    assert only.startswith(path + b"/"), f"{path!r} changed beside the path"
            elif path in then:
                assert after.get(path) == then[path], f"{path!r}: {after.get(path)}"
            elif path in after:
                known = (before.get(path), target.files.get(path))
                assert after[path] in known, f"{path!r} came from nowhere"
                assert self._may_stay(path, after, target.coverage, now, kept), f"{path!r} stays"
            elif path in before and _reason(path, target.coverage) not in ("", "fifo"):
                in_the_way = any(p == path or p.startswith(path + b"/") or path.startswith(p + b"/")
                                 for p in then)
                of_move = before[path] == target.moved_to.get(path) and path not in target.files
                assert in_the_way or of_move, f"{path!r} was left out then, and is gone"

    def _may_stay(
        self, path: bytes, after: Picture, then: Coverage, now: Coverage, kept: Coverage
    ) -> bool:
        """Whether something that the checkpoint does not hold may be there after the restore."""
        inside = [other for other in after if other.startswith(path + b"/")]
        return any(
            _reason(other, then) or _reason(other, now) or _reason(other, kept)
            or self._inside_repository(other) or other in self._repositories()
            for other in (path, *inside)
        )

    def _check_not_rewritten(
        self, before: Picture, stats: dict[bytes, os.stat_result]
    ) -> None:
        after = self.box.picture()
        for path, was in stats.items():
            if after.get(path) == before[path] and stat.S_ISREG(was.st_mode):
                st_now = os.lstat(self.box.path(path))
                same = (st_now.st_ino, st_now.st_mtime_ns) == (was.st_ino, was.st_mtime_ns)
                assert same, f"{path!r} did not change and was written"

    def _check_way_back(self, way: str, wanted: Picture) -> None:
        rescued = self.box.picture()
        with self._git_kept():
            outcome: Outcome = getattr(self.rewind, way)()
        close_all()
        self.box.assert_like(wanted, f"the project after {way}")
        assert outcome.rescue is not None and outcome.target is not None
        self._add(outcome.rescue, rescued, _held(self.saved[outcome.target.id]))

    # ---- asking the project

    @contextlib.contextmanager
    def _git_kept(self):  # type: ignore[no-untyped-def]
        before = self.box.git_state()
        yield
        self.box._assert_git_kept(before)

    def _one(self, data: st.DataObject, *types: str) -> bytes:
        found = sorted(
            path for path, node in self.box.picture().items()
            if node.type in types and not self._holds_repository(path)
        )
        assume(found)
        path: bytes = data.draw(st.sampled_from(found))
        return path

    def _repositories(self) -> set[bytes]:
        found = set()
        for folder, names, files in os.walk(os.fsencode(self.box.project)):
            if b".git" in names + files and folder != os.fsencode(self.box.project):
                found.add(os.path.relpath(folder, os.fsencode(self.box.project)))
        return found

    def _holds_repository(self, path: bytes) -> bool:
        """Whether an edit at `path` would remove a repository."""
        return any(repo == path or repo.startswith(path + b"/") for repo in self._repositories())

    def _inside_repository(self, path: bytes) -> bool:
        return any(path.startswith(repo + b"/") for repo in self._repositories())

    def _ignored(self, paths: list[bytes]) -> set[bytes]:
        """What the user's own git ignores."""
        import subprocess

        if not paths:
            return set()
        asked = b"".join(b"./" + path + b"\0" for path in paths)
        env = dict(self.box.env)
        if not self.git:
            other = f"{self.box.root}/asked"
            if not os.path.isdir(other):
                os.mkdir(other)
                self.box.init(where=other)
            env |= {"GIT_DIR": f"{other}/.git", "GIT_WORK_TREE": self.box.project}
        done = subprocess.run(
            ["git", "check-ignore", "--stdin", "-z"],
            cwd=self.box.project, env=env, input=asked, capture_output=True, check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        return {path.removeprefix(b"./") for path in done.stdout.split(b"\0") if path}

    def _stats(self) -> dict[bytes, os.stat_result]:
        return {path: os.lstat(self.box.path(path)) for path in self.box.picture()}


def _reason(path: bytes, coverage: Coverage) -> str:
    """Why a path, or a folder above it, was left out; '' when it was not."""
    parts = path.split(b"/")
    for depth in range(len(parts), 0, -1):
        reason = coverage.get(b"/".join(parts[:depth]))
        if reason:
            return reason
    return ""


def _held(saved: Saved) -> Picture:
    """What a checkpoint holds of what there was; pipes are held by name and mode."""
    return {
        path: node for path, node in saved.files.items()
        if _reason(path, saved.coverage) in ("", "fifo")
    }


class PlainMachine(Machine):
    git = False


TestRepository = Machine.TestCase
TestPlainFolder = pytest.mark.slow(PlainMachine.TestCase)
TestRepository.settings = settings(stateful_step_count=25)
TestPlainFolder.settings = settings(stateful_step_count=25)
