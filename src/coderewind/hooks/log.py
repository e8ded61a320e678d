"""The log of what failed while an agent was working: `$REWIND_HOME/hook.log`."""

from __future__ import annotations

import os
import time

_KEPT = 256 << 10


def log(line: str) -> None:
    """Append a line; at most twice 256 KiB are kept."""
    from coderewind.store.folders import make_private, rewind_home

    make_private(rewind_home())
    path = os.path.join(rewind_home(), b"hook.log")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        os.write(fd, f"{stamp} {' '.join(line.split())}\n".encode("utf-8", "replace"))
        if os.fstat(fd).st_size > _KEPT:
            os.replace(path, path + b".1")
    finally:
        os.close(fd)


def where(error: BaseException) -> str:
    """The kind of a failure and where it happened, without its words: they may be the user's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    name = os.path.basename(trace.tb_frame.f_code.co_filename)
    return f"{type(error).__name__} at {name}:{trace.tb_lineno}"
