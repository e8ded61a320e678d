"""The process behind Pi's extension: starts the conversation with it and ends with it."""

from __future__ import annotations

import os
import signal

from coderewind.bridge.bridge import Bridge
from coderewind.bridge.rpc import Connection
from coderewind.errors import RewindError
from coderewind.hooks.log import log, where


def run_bridge() -> int:
    """Serve an agent on stdin and stdout until stdin is closed; the exit code."""
    for name in (signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)  # a key in the agent's terminal; stdin says when to end
    reads, writes = _take_standard_streams()
    bridge = Bridge()
    connection = Connection(reads, writes, bridge.handle, _report)
    bridge.connect(connection)
    from coderewind.bridge import parts  # noqa: F401 - loaded while the agent gets ready, too

    connection.serve()
    bridge.end()
    return 0


def _take_standard_streams() -> tuple[int, int]:
    """Keep the pipes for ourselves: nothing that is printed, here or by git, may get into them."""
    reads, writes = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(null, 1)
    return reads, writes


def _report(error: Exception) -> str:
    """Log a bug, without the user's words; what is said of it."""
    what = f"a bug in Rewind ({where(error)}); please report it"
    try:
        log(f"bridge {what}")
    except (OSError, RewindError):
        pass  # nowhere to write
    return what
