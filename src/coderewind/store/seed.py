"""Give a new store the packs of its repository, by hard links, so that nothing is stored twice.

As `git clone --local` does it: links cost no space, and the user's gc can only unlink its own name.
Never alternates, from which that gc would take objects away under us.
"""

from __future__ import annotations

import os

from coderewind.store.home import Store
from coderewind.store.workspace import Workspace


def seed(store: Store, workspace: Workspace) -> int:
    """Link the repository's packs into the store; how many were linked."""
    if workspace.common_dir is None or store.mode == "repo" or store.algo != workspace.algo():
        return 0
    theirs = os.path.join(workspace.common_dir, b"objects/pack")
    linked = 0
    try:
        entries = [entry for entry in os.scandir(theirs) if entry.name.endswith(b".idx")]
    except OSError:
        return 0
    for entry in entries:
        stem = entry.path[:-4]
        # A partial clone's packs refer to objects that are not here.
        if os.path.exists(stem + b".promisor") or not _ours(stem):
            continue
        name = os.path.join(store.objects.pack_dir, entry.name[:-4])
        try:
            os.link(stem + b".pack", name + b".pack", follow_symlinks=False)
            os.link(stem + b".idx", name + b".idx", follow_symlinks=False)
        except OSError:
            _unlink(name + b".pack")
            break  # another file system, or links not allowed: nothing is shared
        linked += 1
    return linked


def _ours(stem: bytes) -> bool:
    """Only plain files of this user: somebody else could change theirs later."""
    for suffix in (b".pack", b".idx"):
        try:
            st = os.lstat(stem + suffix)
        except OSError:
            return False
        if (st.st_mode & 0o170000) != 0o100000 or st.st_uid != os.geteuid():
            return False
    return True


def _unlink(path: bytes) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
