"""A small project with two saved states and unsaved work, to be broken again and again.

`reset` puts back everything there was at the start, the store included. `assert_sound` checks what
must hold after any fault: everything is listed and restorable, every file is whole, and nothing
is left lying about.
"""

import os
import subprocess
from collections.abc import Callable

from corpus.box import Box
from corpus.tree import Picture, differences
from sealed import close_all, opened

from coderewind import Rewind
from coderewind.engine import health, moving

EARLY = 2  # checkpoints for gc to drop


def _tree(box: Box, version: str) -> None:
    """Files to write, to delete, to create and to chmod, whichever way one goes."""
    box.empty()
    for number in range(2):
        box.write(f"common/{number}", f"{version} {number}\n" * 50)
    box.write(f"{version}/deep/er/file", f"only {version}\n")
    box.write(f"mode-{version}", "x", 0o600 if version == "old" else 0o755)
    box.symlink("link", version).mkdir(f"empty-{version}").write("same", "same\n")
    box.write("swap/file" if version == "old" else "swap", f"{version}\n")
    box.write("read-only/file", f"{version}\n")
    os.chmod(box.path("read-only"), 0o555)
    os.chmod(box.path("same"), 0o640 if version == "old" else 0o644)


class World:
    """The box, its states, and what is checked of them."""

    def __init__(self, box: Box) -> None:
        self.box = box
        if os.path.exists(box.path(".git")):
            box.write("a", "a").commit()
        rewind = opened(box)
        for number in range(EARLY):
            box.write("early", f"{number}\n")
            rewind.checkpoint(f"early {number}")
        _tree(box, "old")
        self.old = rewind.checkpoint("old")
        self.old_files = box.picture()
        _tree(box, "new")
        self.new = rewind.checkpoint("new")
        self.new_files = box.picture()
        box.write("common/0", "unsaved\n").write("unsaved", "precious\n")
        self.now_files = box.picture()
        self.git_state = box.git_state()
        close_all()
        self._kept = f"{box.root}.kept"
        self._copy(box.root, self._kept)

    def close(self) -> None:
        subprocess.run(["rm", "-rf", self._kept], check=True)

    def reset(self) -> None:
        """Everything as at the start."""
        close_all()
        subprocess.run(["rm", "-rf", self.box.root], check=True)
        self._copy(self._kept, self.box.root)

    @staticmethod
    def _copy(source: str, target: str) -> None:
        subprocess.run(["cp", "-a", source, target], check=True)

    # ---- what must hold

    def assert_sound(self, what: str, *, files: Picture | None = None) -> None:
        """After a fault: `files` is what the project must be like, if that is known."""
        box = self.box
        if files is not None:
            box.assert_like(files, f"{what}: the project")
        self._assert_each_whole(what)
        assert box.git_state() == self.git_state, f"{what}: the user's git state"
        rewind = opened(box)
        listed = {cp.id for cp in rewind.timeline().checkpoints}
        assert {self.old.id, self.new.id} <= listed, what
        self._end_interrupted(rewind, what)
        found = health.diagnose(opened(box).engine)
        assert found.problems == [], f"{what}: {found.problems}"
        assert os.listdir(box.tmp) == [], what
        self._restore_all(opened(box), what)
        close_all()

    def _assert_each_whole(self, what: str) -> None:
        states = (self.old_files, self.new_files, self.now_files)
        for path, node in self.box.picture().items():
            known = [state[path] for state in states if path in state]
            assert known, f"{what}: litter: {path!r}"
            if node.type == "file":
                contents = {other.data for other in known if other.type == "file"}
                assert node.data in contents, f"{what}: {path!r} is half"

    def _end_interrupted(self, rewind: Rewind, what: str) -> None:
        """Both ways out of an interrupted move, each from the same start."""
        if not rewind.engine.is_interrupted():
            return
        assert any("interrupted" in line for line in health.diagnose(rewind.engine).problems), what
        half = f"{self.box.root}.half"
        close_all()
        self._copy(self.box.root, half)
        self._end(moving.abort, f"{what}, then aborted", self._before)
        subprocess.run(["rm", "-rf", self.box.root], check=True)
        os.rename(half, self.box.root)
        self._end(moving.resume, f"{what}, then continued", self._target)
        self._back(opened(self.box))
        self.box.assert_like(self._before, f"{what}, then continued and taken back")
        close_all()

    def _end(self, way: Callable[..., object], what: str, wanted: Picture) -> None:
        rewind = opened(self.box)
        way(rewind.engine)
        self.box.assert_like(wanted, what)
        assert not rewind.engine.is_interrupted(), what
        close_all()

    def _back(self, rewind: Rewind) -> None:
        """Take back the move that was continued."""
        rewind.redo() if self._reverse else rewind.undo_restore()

    def _restore_all(self, rewind: Rewind, what: str) -> None:
        for cp in rewind.timeline().checkpoints:
            rewind.restore(cp)
            if cp.number <= EARLY:
                continue
            if cp.id == self.old.id:
                self.box.assert_like(self.old_files, f"{what}: old")
            elif cp.id == self.new.id:
                self.box.assert_like(self.new_files, f"{what}: new")
            else:
                found = self.box.picture()
                states = (self.old_files, self.new_files, self.now_files, self._before)
                half = cp.label.startswith("before")  # a rescue of something half done
                assert half or any(not differences(state, found) for state in states), what

    # Where the move that is being broken came from and goes to, and whether it is a reversal,
    # which redo takes back.
    _before: Picture
    _target: Picture
    _reverse = False

    def expect_move(self, before: Picture, target: Picture, *, reverse: bool = False) -> None:
        self._before, self._target, self._reverse = before, target, reverse
