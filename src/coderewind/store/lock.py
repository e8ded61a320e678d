"""Locks that end with their holder: flock, with bounded waiting."""

from __future__ import annotations

import fcntl
import os
import time

from coderewind.errors import RewindError

PATIENCE = 60.0  # seconds; a first capture of a very large tree may hold the lock for long


class Lock:
    """An flock on a private file, as a context manager.

    The kernel drops it when the process dies, so there are no stale locks. Its file is touched on
    entry; `now_ns` is the kernel's clock at that moment, the one that stamps files.
    """

    def __init__(self, path: bytes, *, shared: bool = False, patience: float = PATIENCE) -> None:
        self._path = path
        self._how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._patience = patience
        self._fd = -1
        self.now_ns = 0

    def __enter__(self) -> Lock:
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise RewindError(f"{os.fsdecode(self._path)} cannot be locked: {error.strerror}",
                              hint="nothing was changed; Rewind needs its folder, and to write "
                                   "there") from error
        try:
            self._wait(fd)
            os.utime(fd)
            self.now_ns = os.fstat(fd).st_ctime_ns
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._fd)
        self._fd = -1

    def _wait(self, fd: int) -> None:
        pause, waited = 0.002, 0.0
        while True:
            try:
                fcntl.flock(fd, self._how | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                pass
            if waited >= self._patience:
                raise RewindError(
                    "another rewind process is working on this store and does not finish",
                    hint="wait for it, or end it; nothing was changed",
                )
            time.sleep(pause)
            waited += pause
            pause = min(pause * 1.5, 0.05)
