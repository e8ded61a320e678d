"""Keep packs few: a new pack takes in the small packs before it.

Every checkpoint adds a pack of a few kilobytes; after a thousand of them each question for an
object would go through a thousand indexes. A pack takes in all smaller than what it holds by
then, the smallest first, so that sizes double from pack to pack: there are about as many packs
as the number of checkpoints has binary digits, and a byte is copied about as often.
"""

from __future__ import annotations

import os

from coderewind.store.objects import Objects, PackIndex
from coderewind.store.pack import BLOB, COMMIT, PackWriter, new_hash
from coderewind.store.trust import own_checksum

# Smaller packs are always taken in: their sizes vary too much for any order to come of it.
SMALL = 32 << 10
# Copying this much takes about as long as looking at 5,000 files. Larger packs are left for
# `rewind gc`; some 3,000 checkpoints fill one.
LARGEST = 16 << 20


def join(pack: PackWriter, objects: Objects) -> None:
    """Let an unfinished pack take in the small packs of its folder; `finish` removes those."""
    total = pack.size
    for size, name in sorted(_own_packs(objects)):
        if size > max(total, SMALL) or total + size > LARGEST:
            break
        if _take_in(pack, objects, name):
            total += size


def _own_packs(objects: Objects) -> list[tuple[int, bytes]]:
    """Size and base name of the packs that nobody shares and nothing keeps."""
    with os.scandir(objects.pack_dir) as found:
        entries = {entry.name: entry for entry in found}
    packs = []
    for name, entry in entries.items():
        base, suffix = os.path.splitext(name)
        if suffix != b".pack" or base + b".idx" not in entries or base + b".keep" in entries:
            continue
        st = entry.stat(follow_symlinks=False)
        if st.st_nlink == 1:
            packs.append((st.st_size, base))
    return packs


def _take_in(pack: PackWriter, objects: Objects, name: bytes) -> bool:
    """Copy a pack's objects as they are; not from one that is damaged, or has deltas."""
    path = os.path.join(objects.pack_dir, name)
    width = objects.width
    try:
        with open(path + b".pack", "rb") as file:
            data = file.read()
        index = PackIndex(path + b".idx", width)
    except (OSError, ValueError):
        return False  # somebody else took it in, or it is damaged
    body = memoryview(data)[:-width]
    digest = new_hash(objects.algo)
    digest.update(body)
    entries = index.entries()
    starts = [start for start, _, _ in entries]
    if digest.digest() != data[-width:] or not starts or starts[0] != 12:
        return False
    if not own_checksum(objects, path + b".idx"):
        return False
    if not all(COMMIT <= data[start] >> 4 & 7 <= BLOB for start in starts):
        return False
    for (start, crc, oid), end in zip(entries, [*starts[1:], len(body)], strict=True):
        pack.copy(oid, data[start:end], crc)
    pack.takes_place_of.append(path)
    return True
