"""Prune: apply retention, rewrite the ledger to what stays, and compact the store.

Pins, the newest checkpoint, the state the worktree stands at, and everything that undo, redo and
undo-restore can reach one step away always stay.
"""

from __future__ import annotations

import os
import time

from coderewind.engine.engine import Engine
from coderewind.engine.health import disk_usage
from coderewind.engine.settings import Settings
from coderewind.ledger.chain import Ledger, ledgers, new_id
from coderewind.ledger.rewrite import relink
from coderewind.model import records as ops
from coderewind.model.records import Checkpoint, Record
from coderewind.store.git import Git
from coderewind.store.home import Store
from coderewind.store.join import LARGEST
from coderewind.store.salvage import sweep
from coderewind.timeline.build import Timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Pruned:
    """What a prune did."""

    __slots__ = ("after", "before", "dropped", "kept")

    def __init__(self) -> None:
        self.dropped: list[int] = []
        self.kept = 0
        self.before = 0  # bytes on disk
        self.after = 0

    def as_json(self) -> dict[str, object]:
        return {"dropped": self.dropped, "kept": self.kept, "bytesBefore": self.before,
                "bytesAfter": self.after, "freed": max(0, self.before - self.after)}


def prune(
    engine: Engine,
    settings: Settings,
    *,
    keep: int | None = None,
    protect: frozenset[str] = frozenset(),
) -> Pruned:
    """Apply retention to this worktree's checkpoints and compact the store.

    `keep` overrides retention.maxSnapshots; `protect` names checkpoints that must stay.
    """
    result = Pruned()
    result.before = disk_usage(engine.store.git_dir)
    with engine.alone(), engine.lock() as lock:
        engine.store.objects.refresh()
        for name in ledgers(engine.store):
            Ledger(engine.store, name).check_end()
        timeline = engine.timeline()
        doomed = doomed_in(timeline, settings, keep=keep, protect=protect)
        if doomed:
            result.dropped += _rewrite(engine, timeline, doomed, lock.now_ns)
        if engine.progress:
            engine.progress("compacting the store", 0)
        compact(engine.store)
        limit = settings.whole("retention.maxBytes")
        while limit and disk_usage(engine.store.git_dir) > limit:
            timeline = engine.timeline()
            more = _oldest_unprotected(timeline, settings, protect)
            if not more:
                break
            result.dropped += _rewrite(engine, timeline, more, lock.now_ns)
            compact(engine.store)
        engine.store.objects.refresh()
    result.dropped.sort()
    result.kept = len(engine.timeline().checkpoints)
    result.after = disk_usage(engine.store.git_dir)
    return result


def drop(engine: Engine, choose: Callable[[Timeline], set[str]]) -> list[int]:
    """Drop what `choose` names; the store is not compacted, so that this is soon done."""
    with engine.working() as now_ns:
        timeline = engine.timeline()
        doomed = choose(timeline)
        if not doomed:
            return []
        try:
            return sorted(_rewrite(engine, timeline, doomed, now_ns))
        finally:
            engine.store.objects.close()


def doomed_in(
    timeline: Timeline,
    settings: Settings,
    *,
    keep: int | None = None,
    protect: frozenset[str] = frozenset(),
    among: Callable[[Checkpoint], bool] | None = None,
) -> set[str]:
    """The checkpoints that retention drops, of those that `among` lets through.

    `keep` counts checkpoints, retention.maxSnapshots different states: two checkpoints of the same
    files cost nothing more than one.
    """
    safe = protected(timeline, settings) | protect
    ours = [cp for cp in timeline.checkpoints if among is None or among(cp)]
    if keep is not None:
        unpinned = [cp for cp in ours if not cp.pinned]
        return {cp.id for cp in unpinned[keep:] if cp.id not in safe}
    doomed: set[str] = set()
    days = settings.whole("retention.maxAgeDays")
    if days:
        oldest = (time.time() - days * 86400) * 1000
        doomed |= {cp.id for cp in ours if cp.time < oldest}
    most = settings.whole("retention.maxSnapshots")
    if most:
        newest = set(list(dict.fromkeys(cp.snapshot for cp in ours if not cp.pinned))[:most])
        doomed |= {cp.id for cp in ours if cp.snapshot not in newest}
    per_session = settings.whole("retention.maxPerSession")
    if per_session:
        counts: dict[tuple[str, str], int] = {}
        for cp in ours:
            key = (cp.anchor.agent, cp.anchor.session)
            counts[key] = counts.get(key, 0) + 1
            if cp.anchor.session and counts[key] > per_session:
                doomed.add(cp.id)
    return doomed - safe


def protected(timeline: Timeline, settings: Settings) -> set[str]:
    """The checkpoints that no retention may drop."""
    safe = {cp.id for cp in timeline.checkpoints if cp.pinned}
    if settings.flag("retention.pinLabeledEntries"):
        safe |= timeline.named
    if timeline.seen:
        safe.add(timeline.seen[0].id)
    position = timeline.position
    safe |= {position.standing, position.cursor, *position.redo}
    if position.move is not None:
        safe.add(position.move.record.id)
    for checkpoint, _ in timeline.history(position.cursor):
        safe.add(checkpoint.id)
        if timeline.current is None or checkpoint.snapshot != timeline.current.snapshot:
            break  # the state that the next undo goes back to
    return safe


def _oldest_unprotected(
    timeline: Timeline, settings: Settings, protect: frozenset[str]
) -> set[str]:
    safe = protected(timeline, settings) | protect
    loose = [cp.id for cp in reversed(timeline.checkpoints) if cp.id not in safe]
    return set(loose[: max(1, len(loose) // 4)]) if loose else set()


def _rewrite(engine: Engine, timeline: Timeline, doomed: set[str], now_ns: int) -> list[int]:
    """Write the chain anew without the doomed checkpoints, and put it in the old one's place."""
    store = engine.store
    before = engine.ledger.head()
    known = {cp.id for cp in timeline.checkpoints} - doomed
    pack = store.pack()
    parent = ""
    sessions = {cp.anchor.session for cp in timeline.checkpoints if cp.id in known}
    records = [record for record in timeline.records
               if _stays(record, known, doomed, sessions)]
    last = timeline.records[-1]
    facts: dict[str, object] = {
        "id": new_id(),
        "op": ops.PRUNE,
        "time": now_ns // 1_000_000,
        "dropped": len(doomed),
        "last": last.whole("last"),
        "cursor": last.text("cursor"),
        "state": last.oid("state"),
    }
    try:
        for record in records:
            parent = relink(store, engine.ledger, pack, record, parent,
                            keep=record.id not in doomed)
        parent = engine.ledger.prepare(pack, facts, f"prune: {len(doomed)} dropped", parent=parent,
                                       snapshot=b"", tree=[])
        pack.finish()
    except BaseException:
        pack.abandon()
        raise
    store.objects.refresh()
    store.objects.close()
    engine.ledger.replace(parent, before=before)
    store.release()
    return [timeline.by_id[id].number for id in doomed]


def _stays(record: Record, known: set[str], doomed: set[str], sessions: set[str]) -> bool:
    """Whether a record is written again. Moves are, as facts: undo and redo go by them."""
    if record.op == ops.PRUNE or (
            record.op in (ops.CHECKPOINT, ops.IMPORT) and record.id in doomed):
        return False
    if record.op in (ops.LABEL, ops.PIN, ops.UNPIN, ops.BIND, ops.STATE):
        return record.text("target") in known
    if record.op == ops.TRANSCRIPT:
        return record.text("session") in sessions
    return True


def compact(store: Store) -> None:
    """Make one pack of all, and drop what no ledger reaches. The caller keeps others away.

    In mode `repo` the objects are the repository's, and so is the work: its own gc does it.
    """
    sweep(store)
    if store.mode == "repo":
        return
    store.objects.close()
    kept = _keep_shared_packs(store)
    try:
        git = Git(store.git_dir, private=True,
                  config=("pack.writeBitmaps=false", "repack.writeBitmaps=false",
                          "pack.threads=1", "core.fsync=all"))
        repack = ("repack", "-a", "-d", "-q", "--no-write-bitmap-index")
        # git makes no deltas between objects that one pack holds whole, as ours do. Making all
        # anew takes 20 times as long, so the large packs, of first captures, are left out of it.
        large = [b"--keep-pack=" + name for name in _large_packs(store)]
        git.run(*repack, "-f", *large)
        git.run(*repack)
        git.run("prune", "--expire=now")
    finally:
        for path in kept:
            os.unlink(path)
    make_files_private(store.objects.pack_dir)
    store.objects.refresh()


def _large_packs(store: Store) -> list[bytes]:
    return [entry.name for entry in os.scandir(store.objects.pack_dir)
            if entry.name.endswith(b".pack") and entry.stat().st_size > LARGEST]


def _keep_shared_packs(store: Store) -> list[bytes]:
    """Packs that the user's repository has too cost nothing: leave them out of the joining."""
    made = []
    for entry in os.scandir(store.objects.pack_dir):
        if entry.name.endswith(b".pack") and entry.stat().st_nlink > 1:
            path = entry.path[:-5] + b".keep"
            if not os.path.exists(path):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
                made.append(path)
    return made


def make_files_private(folder: bytes) -> None:
    """git writes packs 0444; ours are for nobody else. Shared inodes keep the user's mode."""
    for entry in os.scandir(folder):
        st = entry.stat(follow_symlinks=False)
        if st.st_nlink == 1 and st.st_mode & 0o077:
            os.chmod(entry.path, 0o600)
