"""Claude Code's slash commands where it runs no code of plugins: an older version, or by policy.

There each is a command of the user's, one file in `commands/` of Claude Code's folder, and a hook
answers before the model is asked (hooks/typed.py). Where the plugin's code runs, its commands of
the same names come first. Only files that are recognised as ours are replaced or removed.
"""

from __future__ import annotations

import os

from coderewind.agents import bundled
from coderewind.errors import RewindError
from coderewind.store.pack import write_durably

NAMES = ("rewind-list", "rewind-restore", "rewind-undo", "rewind-redo", "rewind-diff",
         "rewind-save")
_MARK = b"A hook of coderewind answers this command"


def write(config: str) -> list[str]:
    """Put the commands into Claude Code's folder; those that are somebody else's, which stay.

    Raises:
        RewindError: they cannot be written.
    """
    theirs = []
    for name in NAMES:
        with open(os.path.join(bundled.folder("claude"), "commands", name + ".md"), "rb") as file:
            wanted = file.read()
        path = _path(config, name)
        there = _read(path)
        if there is not None and _MARK not in there:
            theirs.append("/" + name)
        elif there != wanted:
            try:
                os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
                write_durably(os.fsencode(path), wanted, 0o644)
            except OSError as error:
                raise RewindError(f"{path} cannot be written: {error.strerror}") from error
    return theirs


def remove(config: str) -> None:
    """Take out the commands that are ours."""
    for name in NAMES:
        path = _path(config, name)
        if _MARK in (_read(path) or b""):
            os.unlink(path)
    try:
        os.rmdir(os.path.join(config, "commands"))
    except OSError:
        pass  # somebody else's are in there


def _path(config: str, name: str) -> str:
    return os.path.join(config, "commands", name + ".md")


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError:
        return b""  # not readable, so not ours
