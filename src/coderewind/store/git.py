"""Run git. The only module that starts a git process.

Rules: argument lists, never a shell; bytes in and bytes out, because paths are bytes; every
GIT_* variable of the caller is dropped, so running inside a user's git hook is safe; no
configuration but that of our own git directory is read, so nothing a repository says can make
git run a program.
"""

from __future__ import annotations

import os

from coderewind.errors import RewindError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import Popen

_SEALED = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    # git before 2.45 does not know GIT_NO_LAZY_FETCH; an unknown protocol list stops it too.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}


class GitError(RewindError):
    """git ended with an error; the message is git's own last words."""


class Git:
    """git, bound to one git directory, sealed from everything else."""

    def __init__(
        self,
        git_dir: bytes,
        *,
        work_tree: bytes | None = None,
        index: bytes | None = None,
        object_dir: bytes | None = None,
        alternates: tuple[bytes, ...] = (),
        config: tuple[str, ...] = (),
        private: bool = False,
    ) -> None:
        """What a `private` git writes is for nobody else, whatever the umask."""
        self.git_dir = git_dir
        self._umask = 0o077 if private else -1
        self._cwd = work_tree or git_dir
        self._config = config
        env = {k: v for k, v in os.environb.items() if not k.startswith(b"GIT_")}
        env.update({k.encode(): v.encode() for k, v in _SEALED.items()})
        env[b"GIT_DIR"] = git_dir
        env[b"TMPDIR"] = git_dir
        if work_tree is not None:
            env[b"GIT_WORK_TREE"] = work_tree
        if index is not None:
            env[b"GIT_INDEX_FILE"] = index
        if object_dir is not None:
            env[b"GIT_OBJECT_DIRECTORY"] = object_dir
        if alternates:
            env[b"GIT_ALTERNATE_OBJECT_DIRECTORIES"] = b":".join(map(_quoted, alternates))
        self._env = env

    def popen(self, *args: str | bytes, quiet: bool = True) -> Popen[bytes]:
        """Start git with pipes on stdin and stdout (stderr dropped when quiet)."""
        import subprocess  # 13 ms of start-up that an unchanged capture never needs

        argv: list[str | bytes] = ["git"]
        for setting in self._config:
            argv += ["-c", setting]
        try:
            return subprocess.Popen(
                [*argv, *args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if quiet else subprocess.PIPE,
                env=self._env,
                cwd=self._cwd,
                umask=self._umask,
            )
        except FileNotFoundError as error:
            if os.path.isdir(self._cwd):
                raise GitError(
                    "git was not found on PATH",
                    hint="install git 2.34 or newer, or add it to PATH",
                ) from error
            raise GitError(f"the folder {os.fsdecode(self._cwd)} is gone") from error
        except OSError as error:
            raise GitError(f"git could not be started: {error.strerror}") from error

    def run(self, *args: str | bytes, input: bytes = b"", ok: tuple[int, ...] = (0,)) -> bytes:
        """Run git to its end and return what it printed.

        Raises:
            GitError: git ended with a code that is not in `ok`.
        """
        process = self.popen(*args, quiet=False)
        out, err = process.communicate(input)
        if process.returncode not in ok:
            raise GitError(_last_words(args, process.returncode, err))
        return out


def end(process: Popen[bytes]) -> None:
    """Close the pipes of a git that was started by `popen`, and wait for its end."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.close()
    except OSError:
        pass  # it had ended already
    process.stdout.close()
    process.wait()


def _last_words(args: tuple[str | bytes, ...], code: int, err: bytes) -> str:
    lines = [line for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    verb = os.fsdecode(args[0]) if args else ""
    said = lines[-1] if lines else f"ended with code {code}"
    return f"git {verb}: {said.removeprefix('fatal: ')}"


def _quoted(path: bytes) -> bytes:
    """git splits GIT_ALTERNATE_OBJECT_DIRECTORIES at colons unless a path is C-quoted."""
    if not any(c in path for c in (b":", b'"', b"\n", b"\\")):
        return path
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'
