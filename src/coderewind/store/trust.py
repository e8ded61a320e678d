"""Decide whether contents that an earlier capture stored are still there and whole.

Deduplication keeps damage alive: a content that the store is believed to hold is never written
again. So whenever the packs are not as the last capture left them, they are looked at.
"""

from __future__ import annotations

import os

from coderewind.store.objects import DamagedObject, Objects
from coderewind.store.pack import new_hash
from coderewind.store.state import TREE, State, oids_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CHUNK = 1 << 20


def lost(objects: Objects, state: State, now: tuple[tuple[bytes, int, int], ...]) -> set[bytes]:
    """The objects a state relies on that are missing or damaged; `now` is the packs' signature."""
    before = {name: (size, time) for name, size, time in state.packs}
    after = {name: (size, time) for name, size, time in now}
    rewritten = [
        name for name, facts in before.items()
        if name in after and facts != after[name] and not is_whole(objects, name)
    ]
    if not rewritten and before.keys() <= after.keys():
        return set()  # packs were only added, or touched
    wanted = _relied_on(state, objects.width)
    bad = set(objects.missing(wanted))
    if rewritten:
        bad |= damaged(objects, [oid for oid in wanted if oid not in bad])
    return bad


def is_whole(objects: Objects, name: bytes) -> bool:
    """Whether a pack or pack index still has the content that its own checksum speaks of.

    git touches a pack whenever it is about to write an object that is in there already, also
    through the other name of a pack that a repository shares with our store: `git add` of a known
    content is enough. Reading every object for that would take a hundred times as long.
    """
    path = os.path.join(objects.pack_dir, name)
    checksum = own_checksum(objects, path)
    if checksum and name.endswith(b".pack"):
        try:
            with open(path[:-5] + b".idx", "rb") as file:
                file.seek(-2 * objects.width, os.SEEK_END)
                return file.read(objects.width) == checksum
        except OSError:
            return False
    return checksum != b""


def own_checksum(objects: Objects, path: bytes) -> bytes:
    """The checksum at the end of a pack or index, b"" if it is not that of the rest."""
    digest = new_hash(objects.algo)
    try:
        with open(path, "rb") as file:
            left = os.fstat(file.fileno()).st_size - objects.width
            while left > 0:
                chunk = file.read(min(left, _CHUNK))
                if not chunk:
                    return b""
                digest.update(chunk)
                left -= len(chunk)
            checksum = file.read()
    except OSError:
        return b""
    return checksum if digest.digest() == checksum else b""


def damaged(objects: Objects, oids: Iterable[bytes]) -> set[bytes]:
    """Which of these do not have the content that their ids promise."""
    bad = set()
    for oid in oids:
        try:
            for _ in objects.stream(oid):
                pass
        except DamagedObject:
            bad.add(oid)
    return bad


def _relied_on(state: State, width: int) -> list[bytes]:
    wanted = dict.fromkeys((state.snapshot, state.manifest, state.tree, state.coverage[0]))
    for folder in state.folders.values():
        wanted.update(dict.fromkeys(oids_of(folder, width)))
        wanted[folder[TREE]] = None
    wanted.pop(b"", None)
    return list(wanted)
