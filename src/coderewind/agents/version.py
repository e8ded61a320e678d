"""What a program says its version is."""

from __future__ import annotations

import re
import subprocess

_PATIENCE = 20
_VERSION = re.compile(r"\b\d+(?:\.\d+)+\S*")


class Version(str):
    """A version in the program's own words; empty when it does not say."""

    def is_at_least(self, least: tuple[int, ...]) -> bool:
        return tuple(int(part) for part in re.findall(r"\d+", self)[: len(least)]) >= least


def version_of(program: str) -> Version:
    """Ask a program; never fails."""
    if not program:
        return Version()
    try:
        ended = subprocess.run([program, "--version"], capture_output=True, text=True,
                               timeout=_PATIENCE, stdin=subprocess.DEVNULL, check=False)
    except (OSError, ValueError, subprocess.SubprocessError):
        return Version()
    found = _VERSION.search(ended.stdout) if ended.returncode == 0 else None
    return Version(found[0] if found else "")
