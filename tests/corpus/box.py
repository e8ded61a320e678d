"""A sealed place to try `rewind` in: its own HOME, store, temporary folder and project.

Only the real command is driven. Every call is checked for what holds always: no traceback, no
exit code 3, one JSON document on stdout, and nothing under any `.git` of the project changed.
Set REWIND_SRC to try another source tree.
"""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .tree import Picture, assert_same, differences, git_picture, picture

SOURCE = os.environ.get("REWIND_SRC", str(Path(__file__).resolve().parents[2] / "src"))
PROGRAM = [sys.executable, "-m", "coderewind"]
IDENTITY = ["-c", "user.name=Ursula User", "-c", "user.email=ursula@example.org"]


@dataclass
class Answer:
    """What one run of the command gave back."""

    args: tuple[str, ...]
    code: int
    out: bytes
    err: bytes
    data: Any

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    @property
    def said(self) -> str:
        """Everything it said, on both channels, for a person or as JSON."""
        text = self.out.decode(errors="replace") + self.err.decode(errors="replace")
        if self.data is not None:
            text += json.dumps(self.data, ensure_ascii=False, default=str)
        return text

    def __str__(self) -> str:
        return (
            f"rewind {' '.join(self.args)!r} exited {self.code}\n"
            f"stdout: {self.out[-2000:]!r}\nstderr: {self.err.decode(errors='replace')[-3000:]}"
        )


class Box:
    """One sealed user with one project."""

    def __init__(self, root: str, project: str | bytes = "project") -> None:
        self.root = root
        self.home = f"{root}/home"
        self.store_home = f"{root}/rewind-home"
        self.tmp = f"{root}/tmp"
        self.canary = f"{root}/canary"
        self.project = f"{root}/{os.fsdecode(project)}"
        for folder in (self.home, self.tmp, self.project):
            os.makedirs(folder)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": self.home,
            "REWIND_HOME": self.store_home,
            "TMPDIR": self.tmp,
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": SOURCE,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.prefix: list[str] = []
        self.git_may_change = False
        self.watched: list[str] = []
        self.skip: set[bytes] = set()

    # The project's files.

    def path(self, name: str | bytes = "") -> str:
        return os.path.join(self.project, os.fsdecode(name)) if name else self.project

    def write(self, name: str | bytes, data: str | bytes = b"", mode: int | None = None) -> "Box":
        """Write a file, making the folders it needs."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        if mode is not None:
            os.chmod(path, mode)
        return self

    def read(self, name: str | bytes) -> bytes:
        with open(self.path(name), "rb") as file:
            return file.read()

    def mkdir(self, name: str | bytes, mode: int = 0o755) -> "Box":
        os.makedirs(self.path(name), exist_ok=True)
        os.chmod(self.path(name), mode)
        return self

    def symlink(self, name: str | bytes, target: str | bytes) -> "Box":
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        os.symlink(os.fsdecode(target), self.path(name))
        return self

    def remove(self, name: str | bytes) -> "Box":
        """Remove whatever stands there."""
        path = self.path(name)
        if os.path.isdir(path) and not os.path.islink(path):
            if os.getuid():  # root may remove what is in a read-only folder
                subprocess.run(["chmod", "-R", "u+rwx", path], check=True)
            shutil.rmtree(os.fsencode(path))
        elif os.path.lexists(path):
            os.unlink(path)
        return self

    def empty(self) -> "Box":
        """Remove everything of the project but `.git`."""
        for name in os.listdir(self.project):
            if name != ".git" and os.fsencode(name) not in self.skip:
                self.remove(name)
        return self

    def exists(self, name: str | bytes) -> bool:
        return os.path.lexists(self.path(name))

    def mode(self, name: str | bytes) -> int:
        return stat.S_IMODE(os.lstat(self.path(name)).st_mode)

    def picture(self) -> Picture:
        return picture(self.project, skip=self.skip)

    def assert_like(self, wanted: Picture, what: str = "the project") -> None:
        assert_same(wanted, self.picture(), what)

    # The user's own git.

    def git(self, *args: str, cwd: str | None = None, ok: bool = True) -> bytes:
        """Run git as the user does."""
        done = subprocess.run(
            ["git", *IDENTITY, *args],
            cwd=cwd or self.project,
            env=self.env,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
        assert not ok or done.returncode == 0, f"git {args}: {done.stderr.decode()}"
        return done.stdout

    def init(self, *options: str, where: str | None = None) -> "Box":
        """Make a repository without template files."""
        self.git("init", "-q", "-b", "main", "--template=", *options, cwd=where)
        return self

    def commit(self, message: str = "a commit", cwd: str | None = None) -> "Box":
        self.git("add", "-A", cwd=cwd)
        self.git("commit", "-q", "--allow-empty", "-m", message, cwd=cwd)
        return self

    def git_state(self) -> Picture:
        """All of the user's git state: under every `.git` of the project, and what is watched."""
        state = git_picture(self.project)
        for folder in self.watched:
            for path, node in picture(folder, git=True).items():
                state[os.fsencode(folder) + b"/" + path] = node
        return state

    # The command.

    def start(self, *args: str, **options: Any) -> "subprocess.Popen[bytes]":
        """Start the command and do not wait."""
        settings: dict[str, Any] = {
            "cwd": self.root,
            "env": self.env,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        } | options
        return subprocess.Popen([*self.prefix, *PROGRAM, *args], **settings)

    def rewind(
        self,
        command: str,
        *args: str,
        ok: bool = True,
        at: str | None = None,
        env: dict[str, str] | None = None,
        check_git: bool = True,
        timeout: float = 60,
        **options: Any,
    ) -> Answer:
        """Run one command with --json at the project (or `at`); `ok` demands exit code 0."""
        before = self.git_state() if check_git and not self.git_may_change else None
        words = ("-C", at or self.project, command, "--json", *args)
        process = self.start(*words, env=self.env if env is None else env, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        out, err = out or b"", err or b""
        answer = Answer(words, process.returncode, out, err, None)
        assert b"Traceback" not in err, f"a traceback: {answer}"
        assert answer.code in (0, 1, 2), str(answer)
        if ok:
            assert answer.code == 0, str(answer)
        elif answer.code:
            assert out.strip() or err.strip(), f"failed without a word: {answer}"
        if out.strip():
            try:
                answer.data = json.loads(out)
            except ValueError:
                raise AssertionError(f"stdout is not one JSON document: {answer}") from None
        if before is not None:
            self._assert_git_kept(before)
        return answer

    def _assert_git_kept(self, before: Picture) -> None:
        # The one thing that may appear is a file of our own directly in a git directory, by
        # which a moved repository finds its store again.
        after = {
            path: node
            for path, node in self.git_state().items()
            if path in before or not path.rsplit(b"/", 1)[-1].startswith((b"rewind", b"coderewind"))
        }
        assert_same(before, after, "the user's git state")

    def save(self, *args: str, **options: Any) -> str:
        """Checkpoint now; its id."""
        answer = self.rewind("save", *args, **options)
        assert isinstance(answer["id"], str), str(answer)
        assert answer["id"], str(answer)
        return str(answer["id"])

    def restore(self, checkpoint: str, *args: str, **options: Any) -> Answer:
        return self.rewind("restore", checkpoint, "--yes", *args, **options)

    def checkpoints(self, *args: str) -> list[dict[str, Any]]:
        """What `list` lists, newest first."""
        found = self.rewind("list", *args)["checkpoints"]
        assert isinstance(found, list)
        return found

    def store(self) -> str:
        """The folder of the store."""
        answer = self.start("-C", self.project, "store", "--path")
        out, err = answer.communicate(timeout=60)
        assert answer.returncode == 0, err
        return os.fsdecode(out.rstrip(b"\n"))

    def round_trip(self, change: Callable[[], object], *, undo: bool = True) -> str:
        """Save, change, restore: as before. Undo that: as after the change. The checkpoint's id."""
        before = self.picture()
        checkpoint = self.save()
        self.assert_like(before, "the project after a save")
        change()
        after = self.picture()
        assert differences(before, after), "the test changed nothing"
        self.restore(checkpoint)
        self.assert_like(before, "the project after the restore")
        if undo:
            self.rewind("undo-restore")
            self.assert_like(after, "the project after undoing the restore")
        return checkpoint

    @contextlib.contextmanager
    def expect_unchanged(self) -> Iterator[None]:
        before = self.picture()
        yield
        self.assert_like(before)


def coverage(answer: Answer) -> dict[bytes, str]:
    """The paths a checkpoint says it does not hold, with the reasons."""
    return {os.fsencode(item["path"]): item["reason"] for item in answer["coverage"]}


def rescue_of(answer: Answer) -> str:
    """The id of the checkpoint taken just before a restore."""
    rescue = answer["rescue"]
    assert isinstance(rescue, str), str(answer)
    return rescue
