"""Where a repository's branches and stashes stood: read from its files, never written.

A command that throws commits away leaves the objects until the user's gc; with their ids written
down they can be named again.
"""

from __future__ import annotations

import os

from coderewind.store.git import Git
from coderewind.store.workspace import Workspace, read_file

PI_REWIND_STORE = "refs/pi-rewind/store"  # keeps the points of pi-rewind-hook alive
_MOST = 500
_DEEPEST = 12


def branches(workspace: Workspace) -> dict[str, str]:
    """The local branches and the commits they stand at, at most 500."""
    if workspace.common_dir is None:
        return {}
    if os.path.isdir(os.path.join(workspace.common_dir, b"reftable")):
        return _ask_git(workspace.common_dir)
    found: dict[str, str] = {}
    for line in read_file(os.path.join(workspace.common_dir, b"packed-refs")).split(b"\n"):
        oid, _, name = line.partition(b" ")
        if name.startswith(b"refs/heads/") and _is_oid(oid):
            found[os.fsdecode(name[11:])] = oid.decode()
    heads = os.path.join(workspace.common_dir, b"refs/heads")
    for top, folders, names in os.walk(heads):
        if len(found) > _MOST or top.count(b"/") - heads.count(b"/") > _DEEPEST:
            folders.clear()
            break
        for name in names:
            path = os.path.join(top, name)
            oid = read_file(path, 128).strip()
            if _is_oid(oid):
                found[os.fsdecode(os.path.relpath(path, heads))] = oid.decode()
    return dict(sorted(found.items())[:_MOST])


def ref_exists(workspace: Workspace, ref: str) -> bool:
    """Whether the user's repository has a ref."""
    common = workspace.common_dir
    if common is None:
        return False
    name = ref.encode()
    if os.path.isdir(os.path.join(common, b"reftable")):
        return bool(Git(common).run("for-each-ref", "--count=1", name))
    return os.path.isfile(os.path.join(common, name)) or any(
        line.endswith(b" " + name)
        for line in read_file(os.path.join(common, b"packed-refs")).split(b"\n"))


def stashes(workspace: Workspace) -> list[list[str]]:
    """The stash list, newest first: commit and message, at most 500."""
    if workspace.common_dir is None:
        return []
    rows = []
    for line in read_file(os.path.join(workspace.common_dir, b"logs/refs/stash")).split(b"\n"):
        facts, _, message = line.partition(b"\t")
        words = facts.split(b" ")
        if len(words) > 2 and _is_oid(words[1]):
            rows.append([words[1].decode(), os.fsdecode(message)[:200]])
    return rows[::-1][:_MOST]


def _is_oid(oid: bytes) -> bool:
    return len(oid) in (40, 64) and all(c in b"0123456789abcdef" for c in oid)


def _ask_git(common_dir: bytes) -> dict[str, str]:
    """Refs that are not files (reftable)."""
    git = Git(common_dir, config=("core.fsmonitor=false", "core.hooksPath=/dev/null"))
    out = git.run("for-each-ref", f"--count={_MOST}", "--format=%(objectname) %(refname:lstrip=2)",
                  "refs/heads/")
    rows = (line.partition(b" ") for line in out.split(b"\n") if line)
    return {os.fsdecode(name): oid.decode() for oid, _, name in rows}
