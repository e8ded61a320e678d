"""Paths are bytes inside, text at the edges."""

from __future__ import annotations

import sys

_CASELESS = ("darwin", "win32", "cygwin")  # where .GIT is .git


def to_text(path: bytes) -> str:
    """A path as text that turns back into the same bytes, whatever the locale."""
    return path.decode("utf-8", "surrogateescape")


def to_bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def is_safe(path: bytes) -> bool:
    """Whether a path from a snapshot may be written: relative, inside, and nobody's git state."""
    if not path or b"\0" in path:
        return False
    if sys.platform in _CASELESS:
        path = path.lower()
    return all(part not in (b"", b".", b"..", b".git") for part in path.split(b"/"))


def within(path: bytes, roots: tuple[bytes, ...]) -> bool:
    """Whether `path` is one of `roots` or lies below one; no roots means everything."""
    return not roots or any(
        not root or path == root or path.startswith(root + b"/") for root in roots
    )
