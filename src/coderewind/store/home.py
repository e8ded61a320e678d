"""Where stores live: find the store of a worktree, or make one.

`$REWIND_HOME/storage/<id>/` always exists for a protected folder: it holds `about.json` and what
each worktree needs privately (locks, capture state, the journal of a restore). The git directory
itself is there too in mode `global`, in `<root>/.agent/rewind` in mode `project`, and in
`<git dir>/rewind`, with the repository's own object directory, in mode `repo`.
"""

from __future__ import annotations

import os

from coderewind.errors import RewindError
from coderewind.model import json
from coderewind.model.paths import to_bytes, to_text
from coderewind.store.folders import make_private, rewind_home
from coderewind.store.git import Git
from coderewind.store.objects import Objects
from coderewind.store.pack import PackWriter, fsync_dir, write_durably
from coderewind.store.workspace import Workspace

MODES = ("global", "project", "repo")
FORMAT = 1

# Bytes go in as they are, whatever any .gitattributes says: info/attributes outranks them all.
_ATTRIBUTES = (
    b"* -text -eol -crlf -filter -ident -working-tree-encoding -export-subst -export-ignore\n"
)

# Names and contents that git's fsck frowns upon are a user's files here, to be kept as they are.
_TOLERATED = (
    *("hasDot", "hasDotdot", "hasDotgit", "gitmodulesBlob", "gitmodulesLarge", "gitmodulesName"),
    *("gitmodulesParse", "gitmodulesUrl", "gitmodulesPath", "gitmodulesUpdate"),
    *("gitmodulesSymlink", "gitignoreSymlink", "gitattributesSymlink", "mailmapSymlink"),
)


class DamagedStore(RewindError):
    """What is known of a store cannot be read or leads nowhere; `rewind init` begins anew."""


class Store:
    """The git directory that keeps the objects and ledgers of one repository or folder."""

    __slots__ = ("_guards", "about", "algo", "git", "git_dir", "home", "mode", "objects")

    def __init__(self, home: bytes, about: dict[str, str]) -> None:
        self.home = home
        self.about = about
        self._guards: list[bytes] = []
        self.mode = about["mode"]
        self.algo = about["algo"]
        self.git_dir = to_bytes(about["git_dir"])
        object_dir = to_bytes(about["object_dir"])
        self.git = Git(self.git_dir, object_dir=object_dir, private=self.mode != "repo")
        self.objects = Objects(self.git, object_dir, self.algo, own=self.mode != "repo")

    @property
    def id(self) -> str:
        return os.fsdecode(os.path.basename(self.home))

    def pack(self) -> PackWriter:
        """A new pack; in mode `repo` guarded, because the user's gc works on those objects."""
        guards = self._guards if self.mode == "repo" else None
        return PackWriter(self.objects.pack_dir, self.algo, guards)

    def release(self) -> None:
        """Take away the guards of this process's packs: the ledger refers to what it needs."""
        while self._guards:
            try:
                os.unlink(self._guards.pop())
            except FileNotFoundError:
                continue

    def private_dir(self, worktree: str) -> bytes:
        """The folder for a worktree's lock, state and journal; made when it is missing."""
        path = os.path.join(self.home, b"worktrees", os.fsencode(worktree))
        if not os.path.isdir(path):
            make_private(os.path.join(self.home, b"worktrees"))
            make_private(path)
        return path

    def identity(self) -> tuple[tuple[int, int], ...]:
        """Device and inode of every folder that is ours and must never be captured or deleted."""
        found = []
        for path in (rewind_home(), self.home, self.git_dir):
            try:
                st = os.stat(path)
            except OSError:
                continue
            found.append((st.st_dev, st.st_ino))
        return tuple(found)


def locate(workspace: Workspace) -> Store | None:
    """The store of a worktree, also after the worktree was moved; None when there is none."""
    storage = os.path.join(rewind_home(), b"storage")
    for key in dict.fromkeys((workspace.key, workspace.root)):
        home = os.path.join(storage, _store_id(key))
        about = _read_about(home)
        if about is not None:
            return _opened(home, about, workspace)
    return _moved_here(storage, workspace)


def is_protected(folder: bytes) -> bool:
    """Whether a plain folder has a store."""
    home = os.path.join(rewind_home(), b"storage", _store_id(folder))
    return os.path.exists(os.path.join(home, b"about.json"))


def create(workspace: Workspace, mode: str) -> Store:
    """Make the store of a worktree. Safe to call twice, and by two processes at once."""
    if mode not in MODES:
        raise RewindError(f"unknown mode {mode!r}", hint="modes: " + ", ".join(MODES), exit_code=2)
    if mode == "repo" and workspace.common_dir is None:
        raise RewindError(
            "mode repo needs a git repository", hint="use --mode global or --mode project"
        )
    top = rewind_home()
    storage = os.path.join(top, b"storage")
    make_private(top)
    make_private(storage)
    home = os.path.join(storage, _store_id(workspace.key))
    make_private(home)
    git_dir, object_dir = _places(home, workspace, mode)
    if mode == "project":
        _make_project_folder(workspace.root)
    algo = workspace.algo()
    if not os.path.isdir(os.path.join(git_dir, b"refs/heads")):
        _forget_ledgers(home)
    _lay_out(git_dir, algo)
    anchor = os.stat(workspace.common_dir or workspace.root)
    about = {
        "format": str(FORMAT),
        "key": to_text(workspace.key),
        "root": to_text(workspace.root),
        "mode": mode,
        "algo": algo,
        "git_dir": to_text(git_dir),
        "object_dir": to_text(object_dir),
        "inode": f"{anchor.st_dev}:{anchor.st_ino}",
    }
    _write_about(home, about)
    return Store(home, about)


def _forget_ledgers(home: bytes) -> None:
    """A store that begins anew in the place of one that is gone knows none of its records."""
    worktrees = os.path.join(home, b"worktrees")
    for name in os.listdir(worktrees) if os.path.isdir(worktrees) else ():
        try:
            os.unlink(os.path.join(worktrees, name, b"ledger.jsonl"))
        except FileNotFoundError:
            pass


def abandoned_mode(workspace: Workspace) -> str | None:
    """The mode of a store that is there although its description is damaged."""
    home = os.path.join(rewind_home(), b"storage", _store_id(workspace.key))
    if not os.path.isdir(home):
        return None
    for mode in MODES:
        if mode == "repo" and workspace.common_dir is None:
            continue
        git_dir, _ = _places(home, workspace, mode)
        if os.path.exists(os.path.join(git_dir, b"refs/heads", os.fsencode(workspace.name))):
            return mode
    return None


def lay_out_again(store: Store) -> None:
    """Put back what of the git directory's skeleton was lost or changed."""
    _lay_out(store.git_dir, store.algo)


def _places(home: bytes, workspace: Workspace, mode: str) -> tuple[bytes, bytes]:
    if mode == "project":
        git_dir = os.path.join(workspace.root, b".agent", b"rewind")
    elif mode == "repo":
        assert workspace.common_dir is not None
        git_dir = os.path.join(workspace.common_dir, b"rewind")
        return git_dir, os.path.join(workspace.common_dir, b"objects")
    else:
        git_dir = os.path.join(home, b"git")
    return git_dir, os.path.join(git_dir, b"objects")


def _make_project_folder(root: bytes) -> None:
    """<root>/.agent/rewind, which ignores itself; `.agent` may be the user's own folder."""
    agent = os.path.join(root, b".agent")
    try:
        os.mkdir(agent, 0o755)
    except FileExistsError:
        if os.path.islink(agent) or not os.path.isdir(agent):
            raise RewindError(
                f"{to_text(agent)} is not a folder", hint="use --mode global instead"
            ) from None
    store = os.path.join(agent, b"rewind")
    make_private(store)
    write_durably(os.path.join(store, b".gitignore"), b"*\n")


def _lay_out(git_dir: bytes, algo: str) -> None:
    """A git directory's skeleton, without asking git; files that are as they should be stay."""
    make_private(git_dir)
    for name in (b"objects", b"objects/pack", b"objects/info", b"refs", b"refs/heads", b"info"):
        make_private(os.path.join(git_dir, name))
    files = {
        b"HEAD": b"ref: refs/heads/main\n",
        b"config": _config(algo),
        b"info/attributes": _ATTRIBUTES,
    }
    for name, content in files.items():
        path = os.path.join(git_dir, name)
        if _content(path) != content:
            write_durably(path, content)
    for foreign in (b"objects/info/alternates", b"info/grafts", b"shallow", b"commondir"):
        try:
            os.unlink(os.path.join(git_dir, foreign))
        except OSError:
            pass


def _config(algo: str) -> bytes:
    core = {
        "repositoryformatversion": "1" if algo != "sha1" else "0",
        "bare": "true",
        "logAllRefUpdates": "false",
        "fsync": "all",
        "hooksPath": "/dev/null",
        "attributesFile": "/dev/null",
        "excludesFile": "/dev/null",
        "fsmonitor": "false",
        "untrackedCache": "false",
        "protectNTFS": "false",
        "protectHFS": "false",
        "bigFileThreshold": "16m",
        # What git maps of a pack counts as its memory: by default up to 1 GiB at a time.
        "packedGitWindowSize": "4m",
        "packedGitLimit": "32m",
        "quotePath": "false",
    }
    text = "[core]\n" + "".join(f"\t{key} = {value}\n" for key, value in core.items())
    if algo != "sha1":
        text += f"[extensions]\n\tobjectFormat = {algo}\n"
    text += "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[diff]\n\trenames = false\n"
    text += "[fsck]\n" + "".join(f"\t{name} = ignore\n" for name in _TOLERATED)
    return text.encode()


def _opened(home: bytes, about: dict[str, str], workspace: Workspace) -> Store | None:
    """The store that `about` speaks of, its skeleton checked against what we would write.

    Raises:
        DamagedStore: its git directory is gone; that must not pass for an empty store.
    """
    about = _about_here(home, about, workspace)
    store = Store(home, about)
    if store.mode == "project" and os.path.islink(os.path.join(workspace.root, b".agent")):
        raise RewindError(f"{to_text(workspace.root)}/.agent is a symbolic link",
                          hint="the store lies in the folder itself: put that back")
    if not os.path.isdir(store.git_dir):
        if store.mode == "global":
            raise DamagedStore(f"the checkpoints of this folder are gone: there is no "
                               f"{to_text(store.git_dir)}",
                               hint="put it back; rewind init starts anew without them")
        return None  # the folder that held it is gone; `init` starts anew
    if _content(os.path.join(store.git_dir, b"config")) != _config(store.algo) or _content(
        os.path.join(store.git_dir, b"info/attributes")
    ) != _ATTRIBUTES:
        lay_out_again(store)
    return store


def _about_here(home: bytes, about: dict[str, str], workspace: Workspace) -> dict[str, str]:
    """`about` with the places where things are now: it may have been written before a move."""
    git_dir, object_dir = _places(home, workspace, about["mode"])
    if about["mode"] == "project" and not os.path.isdir(git_dir):
        return about  # a linked worktree: the store lies in another one
    return about | {"git_dir": to_text(git_dir), "object_dir": to_text(object_dir)}


def _moved_here(storage: bytes, workspace: Workspace) -> Store | None:
    """A store whose worktree left its old place and is, by inode and file times, this one."""
    try:
        homes = [entry.path for entry in os.scandir(storage) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return None
    anchor = os.stat(workspace.common_dir or workspace.root)
    inode = f"{anchor.st_dev}:{anchor.st_ino}"
    for home in homes:
        try:
            about = _read_about(home)
        except RewindError:
            continue  # a damaged or newer store is no business of this folder
        if about is None or about["inode"] != inode or os.path.lexists(to_bytes(about["key"])):
            continue
        from coderewind.store.state import looks_like

        state = os.path.join(home, b"worktrees", os.fsencode(workspace.name), b"state")
        if not looks_like(state, workspace.root):
            continue
        new_home = os.path.join(storage, _store_id(workspace.key))
        try:
            os.rename(home, new_home)
        except FileNotFoundError:
            pass  # another process was faster
        fsync_dir(storage)
        about |= {"key": to_text(workspace.key), "root": to_text(workspace.root)}
        about = _about_here(new_home, about, workspace)
        _write_about(new_home, about)
        return _opened(new_home, about, workspace)
    return None


def _store_id(key: bytes) -> bytes:
    word = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-"
                   for c in to_text(os.path.basename(key)))[:32].strip(".-")
    try:
        from _sha1 import sha1  # type: ignore[import-not-found]  # without hashlib's OpenSSL
    except ImportError:
        from hashlib import sha1
    digest = sha1(key, usedforsecurity=False).hexdigest()[:12]
    return f"{word or 'folder'}-{digest}".encode()


_FIELDS = ("format", "key", "root", "mode", "algo", "git_dir", "object_dir", "inode")


def _read_about(home: bytes) -> dict[str, str] | None:
    data = _content(os.path.join(home, b"about.json"))
    if data is None:
        return None
    try:
        about = json.loads(data)
    except (ValueError, RecursionError):
        about = None
    if isinstance(about, dict) and about.get("format") not in (None, FORMAT, str(FORMAT)):
        raise RewindError(
            f"this store has format {about['format']}, this Rewind knows {FORMAT}",
            hint="upgrade Rewind",
        )
    if (
        not isinstance(about, dict)
        or not all(isinstance(about.get(field), str) for field in _FIELDS)
        or about["mode"] not in MODES
    ):
        raise DamagedStore(
            f"{to_text(home)}/about.json is damaged",
            hint="rewind init writes it anew; checkpoints are not touched",
        )
    return about


def _write_about(home: bytes, about: dict[str, str]) -> None:
    import json

    text = json.dumps(about, indent=1, sort_keys=True) + "\n"
    write_durably(os.path.join(home, b"about.json"), text.encode())


def _content(path: bytes) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
