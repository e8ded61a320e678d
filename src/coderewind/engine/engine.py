"""The engine of one worktree: save, plan, restore, undo, redo, and what a ledger can say.

What only moves need is loaded by them: a hook, which runs at every tool call, never does.
"""

from __future__ import annotations

import os

from coderewind.engine.journal import Interrupted, Journal
from coderewind.errors import RewindError
from coderewind.ledger.chain import Ledger, ledgers, new_id
from coderewind.model import records as ops
from coderewind.model.coverage import LeftOut
from coderewind.model.paths import to_bytes
from coderewind.model.plan import Plan
from coderewind.model.records import Anchor, Checkpoint, Record
from coderewind.store.capture import Captured, capture
from coderewind.store.diff import SnapshotView, compare
from coderewind.store.filters import Filters
from coderewind.store.home import Store
from coderewind.store.join import join
from coderewind.store.lock import PATIENCE, Lock
from coderewind.store.objects import DamagedObject
from coderewind.store.pack import BLOB, PackWriter
from coderewind.store.staged import record_staged
from coderewind.store.workspace import Workspace, head_of
from coderewind.timeline.build import Timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from coderewind.engine.moving import Outcome
    from coderewind.engine.planning import Planner


class Saved:
    """What `save` made: a checkpoint, and the coverage of its snapshot."""

    __slots__ = ("checkpoint", "coverage", "reused")

    def __init__(self, checkpoint: Checkpoint, coverage: list[LeftOut], *, reused: bool) -> None:
        self.checkpoint = checkpoint
        self.coverage = coverage
        self.reused = reused


class Engine:
    """All that can be done with one protected worktree.

    Safe to use from several processes at once: every change holds the worktree's lock.
    """

    def __init__(
        self,
        store: Store,
        workspace: Workspace,
        filters: Filters,
        progress: Callable[[str, int], None] | None = None,
    ) -> None:
        self.store = store
        self.workspace = workspace
        self.filters = filters
        self.ledger = Ledger(store, workspace.name)
        self.journal = Journal(store, workspace)
        self.progress = progress
        self._private = store.private_dir(workspace.name)

    # ---- locks

    def working(self, patience: float = PATIENCE) -> Working:
        """Hold what every capture, restore and record needs; gives the kernel's clock."""
        return Working(self, patience)

    def lock(self, patience: float = PATIENCE) -> Lock:
        """The lock of this worktree: one process at a time captures, restores or records."""
        return Lock(os.path.join(self._private, b"lock"), patience=patience)

    def shared(self, patience: float = PATIENCE) -> Lock:
        """The lock that keeps a compaction of the store away."""
        return Lock(os.path.join(self.store.home, b"gc.lock"), shared=True, patience=patience)

    def alone(self, patience: float = PATIENCE) -> Lock:
        """The lock of a compaction: nobody else writes to the store."""
        return Lock(os.path.join(self.store.home, b"gc.lock"), patience=patience)

    # ---- interrupted moves

    def interrupted(self) -> Interrupted | None:
        """The move that did not come to its end, if there is one.

        Raises:
            RewindError: the journal, or the ledger that knows what began, is damaged.
        """
        found = self.journal.read()
        if found is None:
            return None
        known = {record.id for record in self.ledger.records()}
        while found is not None and found.record not in known:
            found = found.before
        return found

    def is_interrupted(self) -> bool:
        """Whether a move has to be finished or taken back; a damaged journal says so, too."""
        try:
            return self.interrupted() is not None
        except RewindError:
            return True

    # ---- captures and records

    def capture(self, now_ns: int, extra: tuple[bytes, ...] = ()) -> Captured:
        """Capture the worktree; the caller holds the lock, and finishes the pack."""
        return capture(
            self.store,
            self.workspace,
            self.filters,
            now_ns=now_ns,
            extra=extra,
            progress=self.progress,
        )

    def save(
        self,
        kind: str = "save",
        *,
        label: str = "",
        anchor: Anchor | None = None,
        flags: tuple[str, ...] = (),
        reuse: bool = False,
    ) -> Saved:
        """Capture the worktree and record it as a checkpoint.

        With `reuse`, a worktree that still is as the newest checkpoint holds it gets no new one.
        """
        with self.working() as now_ns:
            captured = self.capture(now_ns)
            last = self.ledger.last()
            reused = last is not None and last.text("state") == captured.snapshot.hex()
            if reuse and reused:
                same = Timeline(self.ledger.records(), self.workspace.name)
                newest = same.seen[0] if same.seen else None
                if newest and newest.current and newest.snapshot == captured.snapshot.hex():
                    self.finish(captured)
                    return Saved(newest, captured.coverage, reused=True)
            data: dict[str, object] = {"kind": kind}
            if label:
                data["label"] = label
            if anchor is not None and (facts := anchor.as_json()):
                data["anchor"] = facts
            if flags:
                data["flags"] = list(flags)
            record = self.append_state(ops.CHECKPOINT, data, captured, now_ns, last=last)
        checkpoint = Checkpoint(record, self.workspace.name)
        checkpoint.current = True
        checkpoint.reused = reused
        return Saved(checkpoint, captured.coverage, reused=reused)

    def finish(self, captured: Captured) -> None:
        """Make a capture durable without recording it."""
        try:
            if captured.pack.finish():
                self.store.objects.refresh()
        except OSError as error:
            raise _not_written("the store", error) from error
        captured.keep(self.store.objects)

    def append_state(
        self,
        op: str,
        data: dict[str, object],
        captured: Captured,
        now_ns: int,
        *,
        last: Record | None,
    ) -> Record:
        """Record a captured state; the caller holds the lock. Durable when it returns."""
        head, branch = head_of(self.workspace)
        staged = record_staged(self.store, self.workspace, captured.state, captured.pack, head)
        if staged and captured.state.staged[1]:
            captured.fresh = True
        number = (last.whole("last") if last else 0) + 1
        snapshot = captured.snapshot.hex()
        facts: dict[str, object] = {
            **_stamp(op, now_ns),
            "number": number,
            "last": number,
            "snapshot": snapshot,
            "parent": last.text("cursor") if last else "",
            "state": snapshot,
            "files": self._files_changed(captured, last),
            "coverage": captured.coverage_oid.hex(),
            "head": head,
            "branch": branch,
            "staged": staged.hex(),
            **data,
        }
        facts.setdefault("cursor", facts["id"])
        tree = [
            (0o40000, b"files", captured.tree),
            (0o100644, b"manifest.json", captured.manifest_oid),
            (0o100644, b"coverage.json", captured.coverage_oid),
        ]
        if staged:
            tree.append((0o40000, b"staged", staged))
        subject = f"#{number} {data.get('kind', op)} {data.get('label', '')}"
        record = self._publish(captured.pack, facts, subject, captured.snapshot, tree, last)
        captured.keep(self.store.objects)
        return record

    def note(
        self, op: str, data: dict[str, object], *, keep: dict[str, bytes] | None = None
    ) -> Record:
        """Append any other fact; `keep` are named contents kept alive with it."""
        with self.working() as now_ns:
            return self.append_note(op, data, now_ns, keep=keep)

    def append_note(
        self,
        op: str,
        data: dict[str, object],
        now_ns: int,
        *,
        keep: dict[str, bytes] | None = None,
        trees: list[tuple[int, bytes, bytes]] | None = None,
    ) -> Record:
        """`note`, for a caller that holds the lock; `trees` are objects kept alive with it."""
        last = self.ledger.last()
        pack = self.store.pack()
        blobs: dict[str, str] = {}
        tree = list(trees or ())
        for name, content in sorted((keep or {}).items()):
            oid = pack.add(BLOB, content)
            blobs[name] = oid.hex()
            tree.append((0o100644, oid.hex().encode(), oid))
        facts: dict[str, object] = {
            **_stamp(op, now_ns),
            "last": last.whole("last") if last else 0,
            "cursor": last.text("cursor") if last else "",
            "state": last.oid("state") if last else "",
            **data,
        }
        if blobs:
            facts["blobs"] = blobs
        snapshot = data.get("snapshot")
        kept = bytes.fromhex(snapshot) if isinstance(snapshot, str) else b""
        return self._publish(pack, facts, op, kept, sorted(set(tree)), last)

    def notes(self, op: str) -> list[Record]:
        """All facts of one kind, oldest first."""
        return [record for record in self.ledger.records() if record.op == op]

    def read_blob(self, oid: str) -> bytes:
        return self.store.objects.read(bytes.fromhex(oid))[1]

    def _publish(
        self,
        pack: PackWriter,
        facts: dict[str, object],
        subject: str,
        snapshot: bytes,
        tree: list[tuple[int, bytes, bytes]],
        last: Record | None,
    ) -> Record:
        before = last.commit if last else ""
        try:
            commit = self.ledger.prepare(
                pack, facts, subject, parent=before, snapshot=snapshot, tree=tree
            )
            if self.store.mode != "repo":
                join(pack, self.store.objects)
            pack.finish()
        except OSError as error:
            pack.abandon()
            raise _not_written("the store", error) from error
        except BaseException:
            pack.abandon()
            raise
        try:
            record = self.ledger.publish(commit, facts, before=before)
        except OSError as error:
            raise _not_written("the ledger", error) from error
        self.store.objects.refresh()
        return record

    def _files_changed(self, captured: Captured, last: Record | None) -> int:
        """How many files differ from the state that the newest record left behind.

        A number for people: that the older state is damaged must not stop a new one.
        """
        before = last.oid("state") if last else ""
        if before == captured.snapshot.hex():
            return 0
        if not before:
            return captured.file_count()
        if before == captured.previous.hex():
            return captured.changed
        if captured.pack.finish():  # its trees must be readable to be compared
            self.store.objects.refresh()
        captured.pack = self.store.pack()
        try:
            old = SnapshotView(self.store.objects, bytes.fromhex(before))
            return len(compare(self.store.objects, old.tree, captured.tree))
        except DamagedObject:
            return captured.changed

    # ---- reading

    def timeline(self) -> Timeline:
        """The checkpoints of this worktree."""
        return Timeline(self.ledger.records(), self.workspace.name)

    def all_timelines(self) -> list[Timeline]:
        """The timelines of all worktrees of this store, this one's first."""
        names = [name for name in ledgers(self.store) if name != self.workspace.name]
        others = [Timeline(Ledger(self.store, name).records(), name) for name in names]
        return [self.timeline(), *others]

    def resolve(self, words: str) -> Checkpoint:
        """The checkpoint that a user's words name, in this worktree or another of the store."""
        from coderewind.timeline.select import select

        timeline = self.timeline()
        try:
            return select(timeline, words)
        except RewindError:
            for other in self.all_timelines()[1:]:
                if words in other.by_id:
                    return other.by_id[words]
            raise

    def coverage_of(self, checkpoint: Checkpoint) -> list[LeftOut]:
        """What the checkpoint's snapshot did not hold."""
        return self.coverage_from(checkpoint.coverage)

    def coverage_from(self, oid: str) -> list[LeftOut]:
        if not oid:
            return []
        import json

        try:
            rows = json.loads(self.read_blob(oid))
            return [LeftOut(to_bytes(path), reason) for path, reason in rows
                    if isinstance(path, str) and isinstance(reason, str)]
        except (ValueError, TypeError, RecursionError) as error:
            raise RewindError("this checkpoint's coverage is damaged",
                              hint="rewind doctor shows what is damaged") from error

    def snapshot_view(self, checkpoint: Checkpoint) -> SnapshotView:
        return SnapshotView(self.store.objects, bytes.fromhex(checkpoint.snapshot))

    def changes_of(self, checkpoint: Checkpoint) -> list[tuple[bytes, str]]:
        """The files that a checkpoint changed, compared with the state before it: (path, A/M/D)."""
        before = self._state_before(checkpoint)
        after = self.snapshot_view(checkpoint)
        old = SnapshotView(self.store.objects, bytes.fromhex(before)).tree if before else b""
        return [
            (d.path, "A" if not d.old_mode else "D" if not d.new_mode else "M")
            for d in compare(self.store.objects, old, after.tree)
        ]

    def _state_before(self, checkpoint: Checkpoint) -> str:
        """The newest state before a checkpoint that is still there to be compared with."""
        records = Ledger(self.store, checkpoint.worktree).records()
        kept = {record.oid("snapshot") for record in records if not record.data.get(ops.PRUNED)}
        state = ""
        for record in records:
            if record.id == checkpoint.id:
                break
            if record.oid("state") in kept:
                state = record.oid("state") or state
        return state

    def current_snapshot(self, patience: float = PATIENCE) -> Captured:
        """The worktree as it is now, captured but not recorded."""
        with self.working(patience) as now_ns:
            captured = self.capture(now_ns)
            self.finish(captured)
            return captured

    def standing(self, timeline: Timeline, now: Captured) -> Checkpoint | None:
        """The checkpoint that the worktree is exactly like: the one it was last at, or the newest.

        Marks it as the current one.
        """
        snapshot = now.snapshot.hex()
        found = timeline.current
        if found is None or found.snapshot != snapshot:
            found = next((cp for cp in timeline.checkpoints if cp.snapshot == snapshot), None)
        for checkpoint in timeline.checkpoints:
            checkpoint.current = checkpoint is found
        return found

    # ---- moving the worktree

    def plan(self, checkpoint: Checkpoint, *, paths: tuple[bytes, ...] = ()) -> Plan:
        """What restoring a checkpoint would change, compared with the worktree now."""
        from coderewind.engine import moving

        with self.working() as now_ns:
            left_out = self.coverage_of(checkpoint)
            return moving.prepare(self, now_ns, checkpoint, left_out, paths).plan

    def restore(
        self, checkpoint: Checkpoint, *, paths: tuple[bytes, ...] = (), index: bool = False
    ) -> Outcome:
        """Make the worktree as the checkpoint holds it; reversible by `undo_restore`."""
        from coderewind.engine import moving

        return moving.restore(self, checkpoint, paths=paths, index=index)

    def undo(self, steps: int = 1) -> Outcome:
        """Step back to the newest earlier state whose files differ from now."""
        from coderewind.engine import moving

        return moving.undo(self, steps)

    def redo(self, steps: int = 1) -> Outcome:
        """Step forward again to a state that undo left."""
        from coderewind.engine import moving

        return moving.redo(self, steps)

    def undo_restore(self) -> Outcome:
        """Reverse the newest restore, undo or redo that is not reversed yet."""
        from coderewind.engine import moving

        return moving.undo_restore(self)

    def planner(
        self,
        captured: Captured,
        target: Checkpoint,
        left_out: list[LeftOut],
        paths: tuple[bytes, ...],
        *,
        rescued: tuple[bytes, ...] = (),
    ) -> Planner:
        from coderewind.engine.planning import Planner

        return Planner(self.store, self.workspace, captured.snapshot, captured.coverage,
                       bytes.fromhex(target.snapshot), left_out, paths, rescued=rescued,
                       made=bytes.fromhex(target.moved_to), stood=target.stood)

    # ---- names and protection

    def label(self, checkpoint: Checkpoint, text: str) -> None:
        self.note(ops.LABEL, {"target": checkpoint.id, "label": text})

    def pin(self, checkpoint: Checkpoint) -> None:
        self.note(ops.PIN, {"target": checkpoint.id})

    def unpin(self, checkpoint: Checkpoint) -> None:
        self.note(ops.UNPIN, {"target": checkpoint.id})


class Working:
    """The locks of a change to one worktree, and no guard of a pack left behind."""

    def __init__(self, engine: Engine, patience: float) -> None:
        self._store = engine.store
        self._journal = engine.journal
        self._shared = engine.shared(patience)
        self._lock = engine.lock(patience)

    def __enter__(self) -> int:
        self._shared.__enter__()
        try:
            now_ns = self._lock.__enter__().now_ns
        except BaseException:
            self._shared.__exit__()
            raise
        self._journal.sweep()
        return now_ns

    def __exit__(self, *exc: object) -> None:
        self._store.release()
        self._lock.__exit__()
        self._shared.__exit__()


def _not_written(what: str, error: OSError) -> RewindError:
    return RewindError(f"{what} could not be written: {error.strerror}",
                       hint="nothing was changed; earlier checkpoints are as they were")


def _stamp(op: str, now_ns: int) -> dict[str, object]:
    return {"id": new_id(), "op": op, "time": now_ns // 1_000_000}
