"""Move the worktree: plan, rescue, journal, apply, verify. Restore, undo, redo, undo-restore.

The rescue is in the ledger, durable, before the first change; a move that ends in any way but
success leaves both states reachable and says so.
"""

from __future__ import annotations

import os

from coderewind.errors import RewindError
from coderewind.ledger.chain import new_id
from coderewind.model import records as ops
from coderewind.model.coverage import LeftOut
from coderewind.model.paths import to_bytes, to_text
from coderewind.model.plan import DELETE, RMDIR, Plan
from coderewind.model.records import Checkpoint, Record
from coderewind.store.capture import Captured
from coderewind.store.staged import Staged, index_of
from coderewind.store.workspace import head_of
from coderewind.store.writer import Moved, Writer, stage_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.engine.engine import Engine
    from coderewind.engine.journal import Interrupted
    from coderewind.engine.planning import Planner

_TRIES = 5


class NoFurtherState(RewindError):
    """There is nothing to step to."""


class Outcome:
    """What a move did: the plan, and the rescue that takes it back."""

    __slots__ = ("done", "plan", "rescue", "steps", "target")

    def __init__(self, plan: Plan, rescue: Checkpoint | None, target: Checkpoint | None) -> None:
        self.plan = plan
        self.rescue = rescue
        self.target = target
        self.done = True
        self.steps = 1  # of an undo or redo that was to make several

    def as_json(self) -> dict[str, object]:
        rescue = self.rescue
        return {
            "plan": self.plan.as_json(),
            "done": self.done,
            "rescue": rescue.id if rescue else None,
            "rescueNumber": rescue.number if rescue else None,
            "target": self.target.as_json() if self.target else None,
        }


class Prepared:
    """A plan, and the capture of now that it was made against."""

    __slots__ = ("captured", "plan")

    def __init__(self, captured: Captured, plan: Plan) -> None:
        self.captured = captured
        self.plan = plan


def prepare(
    engine: Engine,
    now_ns: int,
    checkpoint: Checkpoint,
    left_out: list[LeftOut],
    paths: tuple[bytes, ...],
    *,
    must_know: bool = True,
) -> Prepared:
    """Capture now and plan towards a checkpoint; the caller holds the lock.

    With `must_know`, a path that is neither there nor in the checkpoint is an error.
    """
    extra: tuple[bytes, ...] = ()
    for _ in range(3):
        captured = engine.capture(now_ns, extra)
        engine.finish(captured)
        planner = engine.planner(captured, checkpoint, left_out, paths, rescued=extra)
        if must_know:
            _refuse_unknown(planner, paths)
        plan = planner.make()
        if set(plan.extra) <= set(extra):
            break
        extra = tuple(sorted({*extra, *plan.extra}))
    if warning := other_head(engine, checkpoint):
        plan.warnings.append(warning)
    return Prepared(captured, plan)


def _refuse_unknown(planner: Planner, paths: tuple[bytes, ...]) -> None:
    for path in paths:
        if not planner.knows(path):
            raise RewindError(f"{to_text(path)} is neither in the folder nor in the checkpoint",
                              hint="paths are relative to where you are")


def other_head(engine: Engine, checkpoint: Checkpoint) -> str:
    """A warning that names both, when the user's branch or HEAD is not what it was; else ''."""
    head, branch = head_of(engine.workspace)
    if checkpoint.branch != branch and (checkpoint.branch or branch):
        return (f"this checkpoint was made on branch {checkpoint.branch or '(detached)'}, now it "
                f"is {branch or '(detached)'}; only files change, the branch stays")
    if checkpoint.head != head:
        return (f"HEAD was {checkpoint.head[:10] or '(no commit)'} then and is "
                f"{head[:10] or '(no commit)'} now; only files change, HEAD stays")
    return ""


def restore(
    engine: Engine, checkpoint: Checkpoint, *, paths: tuple[bytes, ...], index: bool
) -> Outcome:
    data: dict[str, object] = {"target": checkpoint.id}
    if paths:
        data["paths"] = [to_text(path) for path in paths]
    return _move(engine, ops.RESTORE, checkpoint, data, paths=paths, index=index)


def undo(engine: Engine, steps: int) -> Outcome:
    outcome: Outcome | None = None
    for step in range(steps):
        try:
            outcome = _undo_once(engine)
            outcome.steps = step + 1
        except NoFurtherState:
            if outcome is None:
                raise
            break
    assert outcome is not None
    return outcome


def _undo_once(engine: Engine) -> Outcome:
    checkpoint, cursor = next_undo(engine)
    return _move(engine, ops.UNDO, checkpoint, {"target": checkpoint.id, "cursor": cursor})


def next_undo(engine: Engine) -> tuple[Checkpoint, str]:
    """The state that undo goes back to, and the cursor that belongs to it.

    Raises:
        RewindError: there is none.
    """
    now = engine.current_snapshot()
    timeline = engine.timeline()
    for checkpoint, cursor in timeline.history(timeline.position.cursor):
        if checkpoint.snapshot == now.snapshot.hex():
            continue
        plan = engine.planner(now, checkpoint, engine.coverage_of(checkpoint), ()).make()
        if plan.is_empty and not plan.blocked:
            continue  # it differs only in what restores leave alone: no step that a user would see
        return checkpoint, cursor
    raise NoFurtherState("there is no earlier state to go back to", hint="rewind list")


def redo(engine: Engine, steps: int) -> Outcome:
    outcome: Outcome | None = None
    for step in range(steps):
        timeline = engine.timeline()
        redoable = [timeline.by_id[i] for i in timeline.position.redo if i in timeline.by_id]
        if not redoable:
            if outcome is not None:
                break
            raise RewindError("there is nothing to redo", hint="rewind list shows every state")
        target = redoable[-1]
        data: dict[str, object] = {"target": target.id, "cursor": target.parent}
        outcome = _move(engine, ops.REDO, target, data)
        outcome.steps = step + 1
    assert outcome is not None
    return outcome


def undo_restore(engine: Engine) -> Outcome:
    timeline = engine.timeline()
    moves = [m for m in timeline.position.moves if m.record.id in timeline.by_id]
    if not moves:
        raise RewindError("there is no restore to take back",
                          hint="rewind list shows what can be restored")
    move = moves[-1]
    data: dict[str, object] = {"target": move.record.id, "cursor": move.before.cursor}
    return _move(engine, ops.UNDO_RESTORE, timeline.by_id[move.record.id], data,
                 index=move.record.data.get("index") is True)


def _move(
    engine: Engine,
    op: str,
    checkpoint: Checkpoint,
    data: dict[str, object],
    *,
    paths: tuple[bytes, ...] = (),
    index: bool = False,
    rescue: Checkpoint | None = None,
) -> Outcome:
    """Make the worktree as `checkpoint` holds it, and record the move with its rescue.

    A file that somebody changes between the rescue and its replacement starts it over. What was
    half done by then is finished under the first rescue: one undo-restore takes it all back.
    """
    left_out = engine.coverage_of(checkpoint)
    if index:
        data["index"] = True
    with engine.working() as now_ns, engine.store.objects:
        interrupted = engine.interrupted()
        staged = _staged_of(engine, checkpoint) if index else None
        for attempt in range(_TRIES):
            prepared = prepare(engine, now_ns, checkpoint, left_out, paths,
                               must_know=rescue is None)
            _refuse_if_blocked(prepared.plan)
            if op == ops.RESTORE and prepared.plan.is_empty and not index:
                engine.journal.end()  # an interrupted restore may just have come to its end
                return Outcome(prepared.plan, rescue, checkpoint)
            id = new_id()
            writer = _writer(engine)
            try:
                _announce(engine, rescue.id if rescue else id, writer, prepared.plan, checkpoint,
                          interrupted, index=index)
                _stage(engine, writer, prepared.plan, first=not (rescue or interrupted))
                record = _record_move(engine, op, checkpoint, {**data, "id": id}, prepared, now_ns)
                rescue = rescue or Checkpoint(record, engine.workspace.name)
                _apply(engine, writer, prepared.plan, checkpoint, staged)
                break
            except Moved as moved:
                if attempt == _TRIES - 1:
                    raise RewindError(
                        f"{moved} keeps changing while it is restored",
                        hint="stop the program that writes it; rewind restore --continue goes on",
                    ) from None
                assert rescue is not None
                if moved.half_way:
                    data = _going_on(record, rescue.id)
                elif "continues" not in data:
                    _abandon(engine, record, now_ns)
                    rescue = None
            finally:
                writer.close()
        there = _verify(engine, now_ns, checkpoint, left_out, prepared.plan)
        engine.journal.end()
        assert rescue is not None
        _note_state(engine, rescue, checkpoint, there, now_ns)
    return Outcome(prepared.plan, rescue, checkpoint)


def _note_state(
    engine: Engine, rescue: Checkpoint, checkpoint: Checkpoint, there: Captured, now_ns: int
) -> None:
    """With files kept, or only some restored: what the next save is to be compared with."""
    snapshot = there.snapshot.hex()
    if snapshot == checkpoint.snapshot:
        return
    facts: dict[str, object] = {"target": rescue.id, "snapshot": snapshot, "state": snapshot}
    try:
        engine.append_note(ops.STATE, facts, now_ns)
    except RewindError:
        pass  # the move is done; only a number of files will be less exact


def _refuse_if_blocked(plan: Plan) -> None:
    if plan.blocked:
        first = plan.blocked[0]
        more = f" (and {len(plan.blocked) - 1} more)" if len(plan.blocked) > 1 else ""
        raise RewindError(
            f"{to_text(first.path)} cannot be restored: {first.why}{more}",
            hint="nothing was changed; move it away, or restore other paths with --path",
        )


def _record_move(
    engine: Engine,
    op: str,
    checkpoint: Checkpoint,
    data: dict[str, object],
    prepared: Prepared,
    now_ns: int,
) -> Record:
    verb = "undo-restore" if op == ops.UNDO_RESTORE else op
    facts: dict[str, object] = {
        "kind": "restore",
        "label": f"before {verb} to #{checkpoint.number}",
        "state": checkpoint.snapshot,
        **data,
    }
    if prepared.plan.stood:
        facts["stood"] = {to_text(path): perm for path, perm in prepared.plan.stood.items()}
    captured = prepared.captured
    captured.pack = engine.store.pack()
    return engine.append_state(op, facts, captured, now_ns, last=engine.ledger.last())


def _staged_of(engine: Engine, checkpoint: Checkpoint) -> Staged:
    """What is to be put back into the index: all of it read before anything is touched."""
    if os.path.lexists(index_of(engine.workspace) + b".lock"):
        raise RewindError("the index is locked by another git process",
                          hint="nothing was changed; try again when it is done")
    return Staged.read(engine.store, checkpoint.staged)


def _writer(engine: Engine) -> Writer:
    root = engine.workspace.root
    private = engine.store.private_dir(engine.workspace.name)
    try:
        return Writer(root, engine.store.objects, stage_dir(private, root), engine.progress)
    except OSError as error:
        raise _not_prepared(error) from error


def _stage(engine: Engine, writer: Writer, plan: Plan, *, first: bool) -> None:
    """Put every content beside its place, verified; nothing is touched.

    The journal knows where, so that the next command clears up if we are killed. When it fails
    and there is no other move to go back to, the journal goes.
    """
    try:
        writer.stage(plan)
    except BaseException as error:
        if first:
            engine.journal.end()
        if isinstance(error, OSError):
            raise _not_prepared(error) from error
        raise


def _announce(
    engine: Engine,
    record: str,
    writer: Writer,
    plan: Plan,
    checkpoint: Checkpoint,
    interrupted: Interrupted | None,
    *,
    index: bool,
) -> None:
    """Write the journal: if the record follows, the move has begun."""
    move: dict[str, object] = {
        "record": record,
        "target": checkpoint.snapshot,
        "coverage": checkpoint.coverage,
        "stage": to_text(writer.stage_path),
        "paths": [to_text(path) for path in plan.paths],
        "index": checkpoint.staged if index else None,
    }
    try:
        engine.journal.begin(move, interrupted)
    except OSError as error:
        raise _not_prepared(error) from error


def _not_prepared(error: OSError) -> RewindError:
    return RewindError(f"the restore could not be prepared: {error.strerror}",
                       hint="nothing was changed")


def _apply(
    engine: Engine, writer: Writer, plan: Plan, checkpoint: Checkpoint, staged: Staged | None
) -> None:
    """Change the worktree; from here on, only the end or `--abort` makes it whole again."""
    try:
        writer.apply(plan)
        if staged is not None:
            staged.put_back(engine.workspace, checkpoint.head)
    except OSError as error:
        raise RewindError(
            f"the restore stopped half-way: {error.strerror}",
            hint="rewind restore --continue goes on, rewind restore --abort goes back",
        ) from error


def _abandon(engine: Engine, record: Record, now_ns: int) -> None:
    """A move that met a change: the rescue stays listed, the next try takes a new one."""
    engine.append_note(ops.ABORT, {"target": record.id}, now_ns)
    engine.journal.end()


def _verify(
    engine: Engine,
    now_ns: int,
    checkpoint: Checkpoint,
    left_out: list[LeftOut],
    plan: Plan,
) -> Captured:
    """Look again: nothing of the plan may still be open. What is there now.

    A deletion that was not in the plan is no fault: with the rules of then back in force, files
    that were ignored a moment ago are seen now, and stay.
    """
    prepared = prepare(engine, now_ns, checkpoint, left_out, plan.paths, must_know=False)
    again = prepared.plan
    planned = {step.path for step in plan.steps}
    left = [step.path for step in again.steps
            if step.action not in (DELETE, RMDIR) or step.path in planned]
    left += [kept.path for kept in again.blocked]
    if left:
        raise RewindError(
            f"after the restore {to_text(left[0])} is still different: "
            "something else is writing here",
            hint="rewind restore --continue tries again, rewind restore --abort goes back",
        )
    return prepared.captured


def resume(engine: Engine) -> Outcome:
    """Finish an interrupted move."""
    interrupted = engine.interrupted()
    if interrupted is None:
        raise RewindError("no restore was interrupted",
                          hint="rewind status says how things stand")
    timeline = engine.timeline()
    record = next(r for r in timeline.records if r.id == interrupted.record)
    checkpoint = engine.resolve(record.text("target"))
    return _move(engine, record.op, checkpoint, _going_on(record, record.id),
                 paths=tuple(to_bytes(path) for path in interrupted.paths),
                 index=interrupted.index is not None, rescue=timeline.by_id.get(record.id))


def _going_on(record: Record, first: str) -> dict[str, object]:
    """The facts of a move that finishes the one that `record` began."""
    facts: dict[str, object] = {"target": record.text("target"), "cursor": record.text("cursor"),
                                "continues": first}
    return facts | {key: record.data[key] for key in ("paths", "index") if key in record.data}


def abort(engine: Engine) -> Outcome:
    """Go back to the state before an interrupted move."""
    interrupted = engine.interrupted()
    if interrupted is None:
        raise RewindError("no restore was interrupted",
                          hint="rewind status says how things stand")
    timeline = engine.timeline()
    rescue = timeline.by_id.get(interrupted.record)
    if rescue is None:
        raise RewindError("the rescue of the interrupted restore is gone",
                          hint="rewind list shows what can be restored")
    return _move(engine, ops.UNDO_RESTORE, rescue,
                 {"target": rescue.id, "cursor": rescue.parent})
