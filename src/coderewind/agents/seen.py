"""The last event of each agent: one small file each in `$REWIND_HOME/agents`, for `rewind doctor`.
"""

from __future__ import annotations

import os

from coderewind.store.folders import make_private, rewind_home

_LONGEST = 100


def note(agent: str, event: str) -> None:
    """An event came; the file's own time says when."""
    folder = os.path.join(rewind_home(), b"agents")
    path = os.path.join(folder, agent.encode())
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        fd = os.open(path, flags, 0o600)
    except FileNotFoundError:
        make_private(rewind_home())
        make_private(folder)
        fd = os.open(path, flags, 0o600)
    try:
        os.write(fd, event.encode() + b"\n")
    finally:
        os.close(fd)


def last(agent: str) -> tuple[str, float]:
    """The last event and its time in seconds; ("", 0) when there was none."""
    path = os.path.join(rewind_home(), b"agents", agent.encode())
    try:
        with open(path, "rb") as file:
            return file.read(_LONGEST).decode("ascii", "replace").strip(), os.stat(path).st_mtime
    except OSError:
        return "", 0.0
