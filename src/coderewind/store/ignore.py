"""Ask git what is ignored, and what the user's index tracks.

The rules are git's, all of them, answered by git itself: `check-ignore` runs in a git directory
of our own beside the user's files, so the user's index and configuration are not involved except
for core.excludesFile, core.ignoreCase and info/exclude, which are carried over.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from stat import S_ISDIR, S_ISREG

from coderewind.model.paths import to_text
from coderewind.store.folders import make_private, user_home
from coderewind.store.git import Git, GitError, end
from coderewind.store.pack import write_durably
from coderewind.store.state import file_signature
from coderewind.store.workspace import Workspace, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import Popen

# A write of this many bytes into an empty pipe never blocks, however small the pipe.
_PIPE = 4096

_GIT_READS = (b"HEAD", b"config", b"config.worktree", b"commondir", b"index", b"packed-refs",
              b"shallow", b"info/attributes", b"info/exclude", b"objects/info/alternates")
_READ_ONLY = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.untrackedCache=keep",
              "core.excludesFile=/dev/null")


class Vanished(Exception):
    """git could not answer because the tree changed under it; ask again."""


class Rules:
    """What git ignores in a repository, or in a plain folder: .gitignore files count there too."""

    def __init__(self, workspace: Workspace, scratch: bytes) -> None:
        self._workspace = workspace
        self._scratch = scratch
        self._process: Popen[bytes] | None = None

    def signature(self) -> bytes:
        """Changes whenever a rule outside the tree may have changed."""
        parts = [file_signature(path) for path in self._configs()]
        exclude = self._info_exclude()
        parts.append(file_signature(exclude) if exclude else b"-")
        excludes_file, ignore_case = self._settings()
        parts.append(excludes_file + b"\0" + ignore_case + b"\0")
        parts.append(file_signature(excludes_file) if excludes_file else b"-")
        return b"\0\0".join(parts)

    def ignored(self, paths: list[bytes]) -> set[bytes]:
        """Which of these paths (relative to the root) git ignores, by patterns alone.

        Raises:
            Vanished: a path led through something that is no longer a folder.
        """
        found: set[bytes] = set()
        batch: list[bytes] = []
        size = 0
        for path in paths:
            if batch and size + len(path) + 3 > _PIPE:
                found |= self._ask(batch)
                batch, size = [], 0
            batch.append(path)
            size += len(path) + 3
        if batch:
            found |= self._ask(batch)
        return found

    def close(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            end(process)

    def _ask(self, batch: list[bytes]) -> set[bytes]:
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        found = set()
        try:
            # "./" keeps a name that starts with a colon from being taken for pathspec magic.
            process.stdin.write(b"".join(b"./" + path + b"\0" for path in batch))
            process.stdin.flush()
        except BrokenPipeError:
            self.close()
            raise Vanished from None
        fields: list[bytes] = []
        rest = b""
        while len(fields) < 4 * len(batch):
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                self.close()
                raise Vanished
            *whole, rest = (rest + chunk).split(b"\0")
            fields += whole
        for i in range(0, len(fields), 4):
            source, _line, pattern, path = fields[i : i + 4]
            if source and not pattern.startswith(b"!"):
                found.add(path[2:])
        return found

    def _start(self) -> Popen[bytes]:
        git_dir = self._git_dir()
        excludes_file, ignore_case = self._settings()
        if not os.path.isfile(excludes_file):
            excludes_file = os.devnull.encode()  # git would wait for a pipe
        config = [f"core.excludesFile={os.fsdecode(excludes_file)}"]
        if ignore_case:
            config.append(f"core.ignoreCase={ignore_case.decode()}")
        git = Git(git_dir, work_tree=self._workspace.root, config=tuple(config))
        self._process = git.popen(
            "check-ignore", "--stdin", "-z", "--no-index", "--verbose", "--non-matching"
        )
        return self._process

    def _git_dir(self) -> bytes:
        """A git directory with nothing in it but the user's info/exclude."""
        make_private(self._scratch)
        for name in (b"objects", b"refs", b"info"):
            make_private(os.path.join(self._scratch, name))
        exclude = self._info_exclude()
        rules = read_file(exclude) if exclude else b""
        write_durably(os.path.join(self._scratch, b"info/exclude"), rules)
        write_durably(os.path.join(self._scratch, b"HEAD"), b"ref: refs/heads/main\n")
        return self._scratch

    def _info_exclude(self) -> bytes | None:
        common_dir = self._workspace.common_dir
        return os.path.join(common_dir, b"info/exclude") if common_dir else None

    def _configs(self) -> list[bytes]:
        """The files in which git looks for the two settings that matter here."""
        paths = [b"/etc/gitconfig"]
        home = os.environb.get(b"HOME")
        if home:
            xdg = os.environb.get(b"XDG_CONFIG_HOME") or os.path.join(home, b".config")
            paths += [os.path.join(home, b".gitconfig"), os.path.join(xdg, b"git/config")]
        if self._workspace.common_dir and self._workspace.git_dir:
            paths.append(os.path.join(self._workspace.common_dir, b"config"))
            paths.append(os.path.join(self._workspace.git_dir, b"config.worktree"))
        return paths

    def _settings(self) -> tuple[bytes, bytes]:
        """core.excludesFile (git's default when it is not set) and core.ignoreCase."""
        excludes_file = ignore_case = b""
        if self._mentioned():
            excludes_file = self._get("core.excludesFile")
            ignore_case = self._get("core.ignoreCase")
        if not excludes_file and os.environb.get(b"HOME"):
            xdg = os.environb.get(b"XDG_CONFIG_HOME") or os.path.join(user_home(), b".config")
            excludes_file = os.path.join(xdg, b"git/ignore")
        return excludes_file, ignore_case

    def _mentioned(self) -> bool:
        """Whether any configuration file could hold one of the settings; most hold neither."""
        for path in self._configs():
            text = read_file(path).lower()
            if b"excludesfile" in text or b"ignorecase" in text or b"include" in text:
                return True
        return False

    def _get(self, key: str) -> bytes:
        git = UserGit(self._workspace, config=())
        out = git.run("config", "-z", "--get", key, ok=(0, 1, 128)).rstrip(b"\0")
        if key == "core.excludesFile" and out.startswith(b"~"):
            return os.path.expanduser(out)
        if key == "core.excludesFile" and out:
            return os.path.join(self._workspace.root, out)
        return out


class UserGit(Git):
    """git on the user's own repository, reading only, and never running anything it names."""

    def __init__(self, workspace: Workspace, config: tuple[str, ...] = _READ_ONLY) -> None:
        git_dir = workspace.git_dir or workspace.root
        super().__init__(git_dir, work_tree=workspace.root, config=config)
        if workspace.git_dir is None:
            del self._env[b"GIT_DIR"], self._env[b"GIT_WORK_TREE"]
        for name in (b"GIT_CONFIG_SYSTEM", b"GIT_CONFIG_GLOBAL", b"GIT_CONFIG_NOSYSTEM"):
            del self._env[name]
        self._reads = [os.path.join(folder, name) for name in _GIT_READS
                       for folder in {workspace.git_dir, workspace.common_dir} if folder]

    def popen(self, *args: str | bytes, quiet: bool = True) -> Popen[bytes]:
        """`Git.popen`, but for a pipe or device in the place of a file, which never ends."""
        for path in self._reads:
            try:
                mode = os.stat(path).st_mode
            except OSError:
                continue
            if not S_ISREG(mode) and not S_ISDIR(mode):
                raise GitError(f"{to_text(path)} is no file")
        return super().popen(*args, quiet=quiet)


class Tracked:
    """The paths in the index of one repository, asked for at most once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._paths: list[bytes] | None = None
        self.readable = True

    def signature(self) -> bytes:
        git_dir = self._workspace.git_dir
        return file_signature(os.path.join(git_dir, b"index")) if git_dir else b""

    def holds(self, path: bytes) -> bool:
        """Whether the path, or anything below it, is tracked."""
        if self._workspace.git_dir is None:
            return False
        if self._paths is None:
            self._paths = self._read()
        at = bisect_left(self._paths, path)
        if at < len(self._paths) and self._paths[at] == path:
            return True
        below = path + b"/"
        at = bisect_left(self._paths, below)
        return at < len(self._paths) and self._paths[at].startswith(below)

    def _read(self) -> list[bytes]:
        if not self.signature():
            return []
        try:
            out = UserGit(self._workspace).run("ls-files", "-z", "--cached")
        except GitError:
            self.readable = False
            return []
        return sorted(out.rstrip(b"\0").split(b"\0")) if out else []
