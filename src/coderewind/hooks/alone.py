"""A batch of one call needs no second look: the files were captured when its call ended.

That is noted in a file of one line and found again without parsing anything, because agents call
us once more at each such batch. Whatever looks unusual is left to the usual way.
"""

from __future__ import annotations

import os

from coderewind.store.folders import rewind_home

_LONGEST = 128


def note(agent: str, session: str, call: str) -> None:
    """This call ended, ran alone, and its files are captured."""
    path = _path(agent.encode(), session.encode())
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(fd, call.encode())
    finally:
        os.close(fd)


def is_noted(agent: str, payload: bytes) -> bool:
    """Whether a batch's payload is about one call only, and that one is noted."""
    session, call = _only(b"session_id", payload), _only(b"tool_use_id", payload)
    if not agent or not session or not call:
        return False
    try:
        with open(_path(agent.encode(), session), "rb") as file:
            return file.read(_LONGEST + 1) == call
    except OSError:
        return False


def _only(key: bytes, payload: bytes) -> bytes:
    """The value of a key that is there once, at whatever level; within a text of JSON the quotes
    around it would be escaped."""
    mark = b'"' + key + b'":"'
    _, found, rest = payload.partition(mark)
    value = rest[: _LONGEST + 1].partition(b'"')[0]
    if not found or mark in rest or not value or len(value) > _LONGEST:
        return b""
    return value if value.replace(b"-", b"").replace(b"_", b"").isalnum() else b""


def _path(agent: bytes, session: bytes) -> bytes:
    return os.path.join(rewind_home(), b"sessions", agent + b"-" + session + b".alone")
