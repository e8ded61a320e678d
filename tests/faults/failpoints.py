"""Make the Nth system call of this process fail, or be its last.

The functions of `os` that Rewind changes things with are wrapped while a `Failpoint` is in force.
In mode `die` the Nth call and all after it raise `Dead`, which nobody catches: what cleaning up
would have done is not done, as after `kill -9`. In any other mode the Nth call raises that error,
once.
"""

import errno
import os
from collections.abc import Callable
from typing import Any
from unittest import mock

CHANGING = ("chmod", "fchmod", "fsync", "ftruncate", "link", "mkdir", "mkfifo", "pwrite", "rename",
            "replace", "rmdir", "symlink", "unlink", "utime", "write")
READING = ("fstat", "listdir", "lstat", "pread", "read", "readlink", "scandir", "stat")
DIE = "die"


class Dead(BaseException):
    """This process was killed."""


class Failpoint:
    """A context manager; `fired` tells whether the Nth call came."""

    def __init__(self, at: int, how: str, calls: tuple[str, ...] = CHANGING) -> None:
        self._at = at
        self._how = how
        self._calls = calls
        self._patches: list[Any] = []
        self.count = 0
        self.fired = ""
        self._dead = False

    def __enter__(self) -> "Failpoint":
        for name in self._calls:
            self._patch(name, self._wrapped(name, getattr(os, name)))
        self._patch("open", self._opening(os.open))
        return self

    def __exit__(self, *_: object) -> None:
        for patch in self._patches:
            patch.stop()

    def _patch(self, name: str, function: Callable[..., Any]) -> None:
        patch = mock.patch.object(os, name, function)
        patch.start()
        self._patches.append(patch)

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self._tick(name)
            return real(*args, **options)

        return call

    def _opening(self, real: Callable[..., int]) -> Callable[..., int]:
        def call(path: Any, flags: int, *args: Any, **options: Any) -> int:
            creates = bool(flags & os.O_CREAT)
            if creates == (self._calls is CHANGING):
                self._tick("open")
            return real(path, flags, *args, **options)

        return call

    def _tick(self, name: str) -> None:
        if self._dead:
            raise Dead
        self.count += 1
        if self.count != self._at:
            return
        self.fired = f"{name} #{self.count}: {self._how}"
        if self._how == DIE:
            self._dead = True
            raise Dead
        number = getattr(errno, self._how)
        raise OSError(number, os.strerror(number))
