"""Find the session files of Pi and omp: those of a folder, and those a session was forked from."""

from __future__ import annotations

import os

from coderewind.agents.branched import Branched
from coderewind.agents.transcript import open_session, row_of

_HEADER = 1 << 16
_MOST_ANCESTORS = 1000


class Header:
    """The first lines of a session file."""

    __slots__ = ("cwd", "id", "parent", "path")

    def __init__(self, path: str, row: dict[str, object]) -> None:
        self.path = path
        self.id = _text(row.get("id"))
        self.cwd = _text(row.get("cwd"))
        self.parent = _text(row.get("parentSession"))  # a path, or an id


def header_of(path: str) -> Header | None:
    """What a session file says of itself; None when it is none."""
    fd = open_session(path)
    if fd < 0:
        return None
    try:
        lines = os.pread(fd, _HEADER, 0).split(b"\n")[:2]
    except OSError:
        return None
    finally:
        os.close(fd)
    for line in lines:
        row = row_of(line)
        if row is not None and row.get("type") == "session" and _text(row.get("id")):
            return Header(path, row)
    return None


def all_files(agent: Branched) -> list[str]:
    """Every session file of an agent."""
    found = []
    for folder in agent.session_folders():
        for top, folders, names in os.walk(folder):
            if top != folder:
                folders.clear()  # below a session's folder lie its subagents and artefacts
            found += [os.path.join(top, name) for name in sorted(names) if name.endswith(".jsonl")]
    return found


def files_of(agent: Branched, root: str) -> list[tuple[str, str]]:
    """The sessions that were held in a worktree, or in a folder of it: id and path."""
    found = []
    for path in all_files(agent):
        header = header_of(path)
        if header is not None and (header.cwd == root or header.cwd.startswith(root + "/")):
            found.append((header.id, path))
    return found


def lineage_of(path: str) -> list[tuple[str, str]]:
    """The sessions that a session was forked from, nearest first: id and path."""
    found: list[tuple[str, str]] = []
    seen = {os.path.realpath(path)}
    header = header_of(path)
    while header is not None and header.parent and len(found) < _MOST_ANCESTORS:
        above = _file_of(header)
        real = os.path.realpath(above) if above else ""
        if not real or real in seen:
            break
        seen.add(real)
        header = header_of(above)
        if header is not None:
            found.append((header.id, above))
    return found


def _file_of(child: Header) -> str:
    """The file of a session's parent: named by its path, or by its id, beside the child."""
    if child.parent.endswith(".jsonl"):
        return child.parent if os.path.isabs(child.parent) else ""
    folder = os.path.dirname(child.path)
    try:
        names = os.listdir(folder)
    except OSError:
        return ""
    own = [name for name in names if name.endswith(f"_{child.parent}.jsonl")]
    return os.path.join(folder, own[0]) if len(own) == 1 else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) and "\0" not in value else ""
