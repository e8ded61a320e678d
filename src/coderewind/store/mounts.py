"""What is mounted below a folder: it can be neither removed nor replaced, only looked into."""

from __future__ import annotations

import re

_ESCAPED = re.compile(rb"\\([0-7]{3})")


def mounted_below(root: bytes) -> set[bytes]:
    """The paths below `root` that are mount points; none where the system does not tell."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return set()
    start = root.rstrip(b"/") + b"/"
    found = set()
    for line in lines:
        fields = line.split(b" ")
        if len(fields) > 4:
            place = _ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), fields[4])
            if place.startswith(start):
                found.add(place[len(start) :])
    return found
