"""Set damaged packs aside and keep every object in them that is still whole."""

from __future__ import annotations

import os
import re

from coderewind.store.folders import make_private
from coderewind.store.git import Git, GitError
from coderewind.store.home import Store
from coderewind.store.objects import DamagedObject, Objects, PackIndex
from coderewind.store.pack import BLOB, COMMIT, GUARD, TREE
from coderewind.store.trust import own_checksum
from coderewind.store.workspace import read_file

# What write_durably and PackWriter leave behind when they are killed.
_LEFT_OVER = re.compile(rb"\.tmp[0-9a-f]{8}$|^rewind_tmp_[0-9a-f]{16}$")
_KINDS = {b"commit": COMMIT, b"tree": TREE, b"blob": BLOB}


def salvage(store: Store) -> int:
    """Replace damaged packs by their whole objects; how many packs were damaged.

    The damaged files are moved to `quarantine/`, not deleted.
    """
    if store.mode == "repo":
        return 0  # the packs are the user's
    sweep(store)
    damaged = [name for name in _packs(store) if not _is_whole(store, name)]
    for name in damaged:
        if not _index_again(store, name):
            _rescue(store, name)
    store.objects.refresh()
    return len(damaged)


def sweep(store: Store) -> None:
    """Clear up after killed processes; the caller keeps all others away from the store.

    A pack that lost its index, or never got one, gets it now: what nobody needs of it goes with
    the next compaction.
    """
    pack_dir = store.objects.pack_dir
    folders = [store.git_dir, os.path.join(store.git_dir, b"refs/heads"), store.home, pack_dir]
    for worktree in _listed(os.path.join(store.home, b"worktrees")):
        folders.append(os.path.join(store.home, b"worktrees", worktree))
    for folder in folders:
        for name in _listed(folder):
            if _LEFT_OVER.search(name):
                os.unlink(os.path.join(folder, name))
    names = set(_listed(pack_dir))
    for name in sorted(names):
        path = os.path.join(pack_dir, name)
        if name.endswith(b".keep") and (store.mode != "repo" or read_file(path) == GUARD):
            os.unlink(path)
        elif name.endswith(b".pack") and name[:-5] + b".idx" not in names and store.mode != "repo":
            store.git.run("index-pack", path, ok=(0, 128))


def _listed(folder: bytes) -> list[bytes]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _packs(store: Store) -> list[bytes]:
    return sorted({os.path.splitext(name)[0] for name in os.listdir(store.objects.pack_dir)
                   if name.endswith((b".pack", b".idx")) and name.startswith(b"pack-")})


def _is_whole(store: Store, name: bytes) -> bool:
    path = os.path.join(store.objects.pack_dir, name)
    try:
        store.git.run("verify-pack", path + b".idx")
    except GitError:
        return False
    return True


def _index_again(store: Store, name: bytes) -> bool:
    """Make a new index for a pack that is whole itself; whether that was all that was wrong."""
    path = os.path.join(store.objects.pack_dir, name)
    if not own_checksum(store.objects, path + b".pack"):
        return False
    _set_aside(store, name, (b".idx", b".rev"))
    store.git.run("index-pack", path + b".pack", ok=(0, 128))
    return _is_whole(store, name)


def _rescue(store: Store, name: bytes) -> None:
    pack_dir = store.objects.pack_dir
    width = 20 if store.algo == "sha1" else 32
    try:
        oids = PackIndex(os.path.join(pack_dir, name + b".idx"), width).oids()
    except (OSError, ValueError):
        oids = []
    reader = Objects(Git(store.git_dir, object_dir=store.objects.dir), store.objects.dir,
                     store.algo)
    pack = store.pack()
    for oid in oids:
        try:
            kind, data = reader.read(oid)
        except (DamagedObject, ValueError):
            reader.close()
            continue
        pack.add(_KINDS.get(kind, BLOB), data, oid)
    reader.close()
    if pack.finish() != name:  # else it has taken the damaged one's place
        _set_aside(store, name, (b".pack", b".idx", b".rev"))


def _set_aside(store: Store, name: bytes, suffixes: tuple[bytes, ...]) -> None:
    quarantine = os.path.join(store.git_dir, b"quarantine")
    make_private(quarantine)
    for suffix in suffixes:
        source = os.path.join(store.objects.pack_dir, name + suffix)
        if os.path.exists(source):
            os.replace(source, os.path.join(quarantine, name + suffix))
