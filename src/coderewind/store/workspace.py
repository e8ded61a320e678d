"""Find the worktree that a path belongs to, and its git directory if it has one.

No git process is asked: it would read the repository's configuration, and refuses folders of
another owner. Nothing here writes.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from coderewind.errors import RewindError
from coderewind.model.paths import is_safe
from coderewind.model.records import is_oid
from coderewind.store.git import Git

MAIN = "main"
_LONGEST_NAME = 60
_SYMBOLIC_DEPTH = 5  # as deep as git follows refs that name refs


class Workspace:
    """The folder being protected: a git work tree or any folder."""

    __slots__ = ("common_dir", "git_dir", "name", "root")

    def __init__(
        self,
        root: bytes,
        git_dir: bytes | None = None,
        common_dir: bytes | None = None,
        name: str = MAIN,
    ) -> None:
        self.root = root
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.name = name

    @property
    def key(self) -> bytes:
        """What a store is found by: one for all linked worktrees, before and after `git init`."""
        if self.common_dir is None:
            return self.root
        parent, base = os.path.split(self.common_dir)
        return parent if base == b".git" else self.common_dir

    def algo(self) -> str:
        """The repository's object format; sha1 for plain folders."""
        if self.common_dir is None:
            return "sha1"
        config = os.path.join(self.common_dir, b"config")
        return setting(config, "extensions.objectformat") or "sha1"


def all_roots(workspace: Workspace) -> list[bytes]:
    """The work trees that share a repository, this one first; itself for a plain folder."""
    found = [workspace.root]
    if workspace.common_dir is None:
        return found
    if os.path.basename(workspace.common_dir) == b".git":
        found.append(os.path.dirname(workspace.common_dir))
    linked = os.path.join(workspace.common_dir, b"worktrees")
    for name in sorted(os.listdir(linked)) if os.path.isdir(linked) else ():
        dot_git = _first_line(os.path.join(linked, name, b"gitdir"))
        if dot_git:
            found.append(os.path.realpath(os.path.dirname(dot_git)))
    return list(dict.fromkeys(found))


def find_repository(root: bytes) -> Workspace | None:
    """The repository whose work tree starts exactly at `root`, if there is one."""
    dot_git = os.path.join(root, b".git")
    git_dir = _follow(dot_git)
    if git_dir is None or not is_git_dir(git_dir):
        return None
    git_dir = os.path.realpath(git_dir)
    common = _first_line(os.path.join(git_dir, b"commondir"))
    common_dir = os.path.realpath(os.path.join(git_dir, common)) if common else git_dir
    name = MAIN
    if common_dir != git_dir:
        name = _linked(os.path.basename(git_dir))
    else:
        elsewhere = _worktree_setting(git_dir)
        if elsewhere:
            root = os.path.realpath(os.path.join(git_dir, os.fsencode(elsewhere)))
    return Workspace(root, git_dir, common_dir, name)


def find(path: bytes, is_protected: object = None) -> Workspace:
    """The worktree around `path`: the nearest repository or protected folder, else `path` itself.

    `is_protected` tells of a plain folder (bytes) whether a store exists for it.
    """
    start = os.path.realpath(path)
    if not os.path.isdir(start):
        raise RewindError(
            f"there is no folder {os.fsdecode(path)}", hint="give an existing folder with -C DIR"
        )
    current = start
    while True:
        if is_git_dir(current):
            raise RewindError(
                f"{os.fsdecode(start)} is inside a git directory, not in a work tree",
                hint="go to the work tree, or name it with -C DIR",
            )
        found = find_repository(current)
        if found is not None:
            if not os.path.isdir(found.root):
                raise RewindError(f"the work tree {os.fsdecode(found.root)} is gone")
            return found
        if callable(is_protected) and is_protected(current):
            return Workspace(current)
        parent = os.path.dirname(current)
        if parent == current:
            return Workspace(start)
        current = parent


def is_git_dir(path: bytes) -> bool:
    """git's own test: HEAD, and objects and refs either here or in the common directory."""
    if not os.path.lexists(os.path.join(path, b"HEAD")):
        return False
    if os.path.exists(os.path.join(path, b"commondir")):
        return True
    return os.path.isdir(os.path.join(path, b"objects")) and os.path.isdir(
        os.path.join(path, b"refs")
    )


def setting(config: bytes, key: str) -> str:
    """One value of one git configuration file, without includes; '' when it is not set."""
    word = key.rpartition(".")[2].encode()
    if word not in read_file(config).lower():
        return ""  # the usual case, and it saves a process
    out = Git(os.path.dirname(config)).run(
        "config", "--file", config, "--no-includes", "-z", "--get", key, ok=(0, 1, 128)
    )
    return os.fsdecode(out.rstrip(b"\0"))


def _worktree_setting(git_dir: bytes) -> str:
    """core.worktree, which `git sparse-checkout` moves to a file of its own."""
    config = os.path.join(git_dir, b"config")
    if setting(config, "extensions.worktreeconfig").lower() not in ("", "false"):
        moved = setting(os.path.join(git_dir, b"config.worktree"), "core.worktree")
        if moved:
            return moved
    return setting(config, "core.worktree")


def head_of(workspace: Workspace) -> tuple[str, str]:
    """The commit HEAD stands at and the branch, both '' when there is none."""
    git_dir, common_dir = workspace.git_dir, workspace.common_dir
    if git_dir is None or common_dir is None:
        return "", ""
    head = _first_line(os.path.join(git_dir, b"HEAD"))
    if head == b"ref: refs/heads/.invalid":
        return _ask_git_for_head(git_dir)
    branch = os.fsdecode(_symbolic(head).removeprefix(b"refs/heads/"))
    for _ in range(_SYMBOLIC_DEPTH):
        ref = _symbolic(head)
        if not ref:
            break
        head = _value(ref, git_dir, common_dir)
    commit = head.decode("ascii", "replace")
    return commit if is_oid(commit) else "", branch


def _ask_git_for_head(git_dir: bytes) -> tuple[str, str]:
    """HEAD of a repository whose refs are not files (reftable)."""
    git = Git(git_dir, config=("core.fsmonitor=false", "core.hooksPath=/dev/null"))
    ok = (0, 1, 128)
    commit = git.run("rev-parse", "--verify", "-q", "HEAD", ok=ok).strip().decode()
    branch = os.fsdecode(git.run("symbolic-ref", "-q", "--short", "HEAD", ok=ok).strip())
    return commit, branch


def _symbolic(value: bytes) -> bytes:
    """The ref that a ref's value names, b"" when it names none or a file that is no ref."""
    ref = value.removeprefix(b"ref:").strip()
    is_one = value.startswith(b"ref:") and ref.startswith(b"refs/") and is_safe(ref)
    return ref if is_one else b""


def _value(ref: bytes, git_dir: bytes, common_dir: bytes) -> bytes:
    """What a ref holds, b"" when it does not exist."""
    for base in (git_dir, common_dir):
        value = _first_line(os.path.join(base, ref))
        if value:
            return value.strip()
    for line in read_file(os.path.join(common_dir, b"packed-refs")).split(b"\n"):
        if line.endswith(b" " + ref):
            return line.split(b" ")[0]
    return b""


def _follow(dot_git: bytes) -> bytes | None:
    if os.path.isdir(dot_git):
        return dot_git
    line = _first_line(dot_git)
    if line.startswith(b"gitdir: "):
        return os.path.join(os.path.dirname(dot_git), line[8:])
    return None


def read_file(path: bytes, limit: int = 1 << 24) -> bytes:
    """A regular file's content, b"" when there is none; a FIFO in its place does not block."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        if not S_ISREG(os.fstat(fd).st_mode):
            return b""
        return os.read(fd, limit)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _first_line(path: bytes) -> bytes:
    return read_file(path, 8192).split(b"\n")[0]


def _linked(name: bytes) -> str:
    """The name of a linked worktree's ledger: readable, and never that of another one."""
    text = os.fsdecode(name)
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in text)
    if safe != text or len(safe) > _LONGEST_NAME:
        from hashlib import sha1

        safe = f"{safe[:_LONGEST_NAME]}-{sha1(name, usedforsecurity=False).hexdigest()[:8]}"
    return "linked-" + safe
