"""/rewind: all checkpoints, newest first; what restoring one would change; and undo and redo.

In omp it is /checkpoints, because omp has a /rewind of its own. /checkpoint makes one by hand.
"""

from __future__ import annotations

import os

from coderewind.agents import adapter as at
from coderewind.agents.known import adapter_of
from coderewind.agents.rewind_hook import Point
from coderewind.agents.settings import plan_edit
from coderewind.bridge import marks, restores
from coderewind.bridge.agent import ASSISTANT, ERROR, USER, WARNING, Entry
from coderewind.bridge.bridge import Bridge
from coderewind.bridge.points import PROMPT, SAVE, Place
from coderewind.bridge.restores import Moved
from coderewind.bridge.rpc import CallFailed
from coderewind.cli.app import age, plural
from coderewind.cli.ending import printable
from coderewind.engine import legacy, moving
from coderewind.errors import RewindError
from coderewind.model import records as ops
from coderewind.model.paths import to_text
from coderewind.model.plan import Plan
from coderewind.model.records import Checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.bridge.bridge import Data
    from coderewind.engine.moving import Outcome
    from coderewind.timeline.build import Timeline

UNDO = "↩ Undo last rewind"
REDO = "↪ Redo"
FINISH = "Finish the interrupted restore"
GO_BACK = "Go back to before it"
BOTH = "Files + conversation"
FILES = "Files only"
TALK = "Conversation only"
OLDER = "… older checkpoints"
ESCAPES = "⚙ Open this with Esc Esc"
_ESCAPE = "doubleEscapeAction"
_MOST = 200
_MOST_CHANGES = 12
_LABEL = 70


class Browser:
    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge

    # ---- commands

    def rewind(self, _args: str) -> None:
        bridge = self.bridge
        if not self._is_idle():
            return
        try:
            if bridge.engine.is_interrupted():
                self._mend()
            else:
                self._browse()
        except (RewindError, CallFailed) as error:
            hint = f". {error.hint}" if isinstance(error, RewindError) and error.hint else ""
            bridge.agent.notify(f"Rewind: {error}{hint}", ERROR)

    def checkpoint(self, args: str) -> None:
        """Made at the entry that stands last, which keeps its own point."""
        bridge = self.bridge
        entry = next((e for e in bridge.agent.branch(bridge.agent.leaf())
                      if e.kind in (USER, ASSISTANT)), None)
        label = " ".join(args.split())
        place = Place(SAVE, at.AT_ENTRY if entry else at.AT_START, entry.id if entry else "",
                      label=label)
        made = bridge.points.make(place)[0]
        bridge.mark(marks.OP, marks.op(made.snapshot))
        if entry is not None and label:
            bridge.agent.set_label(entry.id, label)
        bridge.agent.notify(f"Rewind: checkpoint #{made.number}{': ' + label if label else ''}")

    def _is_idle(self) -> bool:
        """Whether the agent does nothing; somebody may make it work while a dialog is open."""
        idle = self.bridge.agent.is_idle()
        if not idle:
            self.bridge.agent.notify("Rewind: the agent is at work; stop it (Esc) or wait for it",
                                     WARNING)
        return idle

    # ---- the browser

    def _mend(self) -> None:
        """Finish an interrupted restore, or go back."""
        bridge = self.bridge
        choice = bridge.agent.select("A restore was interrupted: files may be of two states",
                                     [FINISH, GO_BACK])
        if not choice:
            return
        outcome = moving.resume(bridge.engine) if choice == FINISH else moving.abort(bridge.engine)
        bridge.points.refresh()
        if choice == FINISH and outcome.target is not None:
            bridge.mark(marks.OP, restores.moved_to(outcome.target, outcome, bridge).op())
        bridge.agent.notify(f"Rewind: {plural(len(outcome.plan.steps), 'change')}, verified")

    def _browse(self) -> None:
        bridge = self.bridge
        bridge.points.refresh()
        now = bridge.engine.current_snapshot()
        timeline = bridge.engine.timeline()
        bridge.engine.standing(timeline, now)
        bridge.engine.store.objects.close()
        entries = {entry.id: entry for entry in bridge.agent.entries()}
        rows: dict[str, Checkpoint | Point] = {}
        for cp in timeline.checkpoints:
            rows[_row(cp, bridge.session.lineage)] = cp
        for point in reversed(bridge.points.older().values()):
            rows[_older_row(point)] = point
        before, undone = self._last_move(timeline), timeline.position.redo
        undo = f"{UNDO}  (to #{before.number}, {age(before.time)})" if before else UNDO
        extra = [undo] if before else []
        extra += [REDO] if undone else []
        names, start = list(rows), 0
        while True:
            older = [OLDER] if len(names) > start + _MOST else []
            choice = bridge.agent.select("Rewind to", [
                *extra, *names[start : start + _MOST], *older, *self._offer_keys()])
            if choice == OLDER:
                start += _MOST
                continue
            if choice == undo and self._is_idle():
                self._step(bridge.engine.undo_restore(), "undone")
            elif choice == REDO and self._is_idle():
                self._step(bridge.engine.redo(), "redone")
            elif choice == ESCAPES:
                self._set_keys()
            elif choice in rows and self._offer(rows[choice], entries):
                continue
            return

    def _offer(self, point: Checkpoint | Point, entries: dict[str, Entry]) -> bool:
        """Show what restoring would change, and do it; True to go back to the list."""
        bridge = self.bridge
        checkpoint = (legacy.take_over(bridge.engine, point) if isinstance(point, Point)
                      else point)
        plan = bridge.engine.plan(checkpoint)
        bridge.engine.store.objects.close()
        target = self._target(checkpoint, entries)
        options = [BOTH, FILES, TALK] if target else [FILES]
        choice = bridge.agent.select(_preview(checkpoint, plan), options)
        if not choice:
            return True
        if not self._is_idle():
            return False
        moved = None
        if choice != TALK:
            moved = restores.restore(bridge, checkpoint)
        if choice == FILES or target is None:
            assert moved is not None
            bridge.mark(marks.OP, moved.op())
        else:
            self._navigate(target.id, moved, checkpoint)
            if target.kind == USER:
                bridge.agent.set_editor_text(target.text)
        done = plural(moved.changes, "change") if moved else "files are as they were"
        back = f"; /{bridge.session.browser} takes it back" if moved and moved.record else ""
        bridge.agent.notify(f"Rewind: back at #{checkpoint.number} ({done}){back}")
        bridge.show()
        return False

    def _target(self, checkpoint: Checkpoint, entries: dict[str, Entry]) -> Entry | None:
        """The entry to go to, if it is in this session."""
        anchor = checkpoint.anchor
        if anchor.session not in self.bridge.session.lineage:
            return None
        if anchor.entry:
            return entries.get(anchor.entry)
        if checkpoint.at == at.AT_START and anchor.session == self.bridge.session.id:
            return next((entry for entry in entries.values() if entry.kind == USER), None)
        return None

    def _navigate(self, entry: str, moved: Moved | None, checkpoint: Checkpoint) -> None:
        """Move the conversation, after the files if they were moved."""
        bridge = self.bridge
        before = bridge.agent.leaf()
        if entry == before:  # nothing to move
            if moved is not None:
                bridge.mark(marks.OP, moved.op())
            return
        if not restores.navigate(bridge, entry, moved):
            raise RewindError("the conversation stayed where it was", hint="files were "
                              f"restored; /{bridge.session.browser} takes it back")
        data: dict[str, object] = {"agent": bridge.session.agent, "session": bridge.session.id,
                                   "from": before, "to": entry, "checkpoint": checkpoint.id}
        if moved is not None and moved.record:
            data["move"] = moved.record
        bridge.engine.note(ops.NAVIGATE, data)

    # ---- undo and redo

    def _last_move(self, timeline: Timeline) -> Checkpoint | None:
        move = timeline.position.move
        return timeline.by_id.get(move.record.id) if move else None

    def _step(self, outcome: Outcome, word: str) -> None:
        """Files went a step back or forward; the conversation follows, if it was moved along."""
        bridge, target = self.bridge, outcome.target
        assert target is not None
        moved = restores.moved_to(target, outcome, bridge)
        stood = self._stood_before(target)
        if stood:
            self._navigate(stood, moved, target)
        else:
            bridge.mark(marks.OP, moved.op())
        bridge.agent.notify(f"Rewind: {word} ({plural(moved.changes, 'change')})")
        bridge.show()

    def _stood_before(self, rescue: Checkpoint) -> str:
        """Where this session stood before the move that a rescue was taken for, if it was moved
        along with the files."""
        bridge = self.bridge
        for record in bridge.engine.notes(ops.NAVIGATE):
            entry = record.text("from")
            if (record.text("move") == rescue.id and record.text("session") == bridge.session.id
                    and bridge.agent.entry(entry) is not None):
                return entry
        return ""

    # ---- Esc Esc

    def begin(self, _data: Data, _leaf: str) -> None:
        bridge = self.bridge
        if bridge.session.mode == "tui" and bridge.session.settings.get(_ESCAPE) == "none":
            bridge.agent.listen_to_keys()
        if bridge.engine.journal.exists():
            bridge.agent.notify(f"Rewind: a restore was interrupted; /{bridge.session.browser} "
                                "finishes it or goes back", WARNING)

    def _offer_keys(self) -> list[str]:
        """The agent's own Esc Esc goes elsewhere. Only when that is off can it open this."""
        session = self.bridge.session
        free = session.mode != "tui" or session.settings.get(_ESCAPE) == "none"
        return [] if free else [ESCAPES]

    def _set_keys(self) -> None:
        bridge = self.bridge
        of_pi = bridge.session.agent == "pi"
        path = os.path.join(adapter_of("pi").home(), "settings.json")
        where = path if of_pi else "the settings of omp"
        command = f"/{bridge.session.browser}"
        if not bridge.agent.confirm(f"Esc Esc opens {command}",
                                    f'This sets "{_ESCAPE}": "none" in {where}: what Esc Esc '
                                    "opened so far stays behind its command."):
            return
        if of_pi:
            plan_edit(path, lambda data: data.update({_ESCAPE: "none"})).apply()
        else:
            bridge.agent.set_setting(_ESCAPE, "none")
            bridge.agent.listen_to_keys()
        bridge.session.settings[_ESCAPE] = "none"
        when = ", in the next session or after /reload" if of_pi else ""
        bridge.agent.notify(f"Rewind: Esc Esc on an empty line opens {command}{when}")


def _row(cp: Checkpoint, lineage: list[str]) -> str:
    """A checkpoint in one line, as it is picked."""
    mark = "●" if cp.current else " "
    words = cp.label or (f'"{cp.anchor.prompt}"' if cp.anchor.prompt else cp.kind)
    words = printable(" ".join(words.split()))
    words = words if len(words) <= _LABEL else words[: _LABEL - 1] + "…"
    if cp.kind == PROMPT:
        words = f"before {words}"
    files = f"  {plural(cp.files, 'file')}" if cp.files else ""
    other = cp.anchor.session and cp.anchor.session not in lineage
    whose = f"  ({cp.anchor.agent}, another session)" if other else ""
    return f"{mark} #{cp.number}  {age(cp.time)}  {words}{files}{whose}"


def _older_row(point: Point) -> str:
    words = printable(" ".join(point.prompt.split()))[:_LABEL]
    return f"  {point.commit[:8]}  {point.label} “{words}”  (pi-rewind-hook)"


def _preview(checkpoint: Checkpoint, plan: Plan) -> str:
    """What restoring would change now."""
    lines = [f"Restore #{checkpoint.number}"]
    lines += [f"! {warning}" for warning in plan.warnings]
    if plan.is_empty:
        lines.append("  files are like that already")
    rows = [f"  {step.word} {printable(to_text(step.path))}" for step in plan.steps]
    rows += [f"  keep {printable(to_text(kept.path))}: {kept.why}" for kept in plan.kept]
    rows += [f"  blocked {printable(to_text(kept.path))}: {kept.why}" for kept in plan.blocked]
    lines += rows[:_MOST_CHANGES]
    if len(rows) > _MOST_CHANGES:
        lines.append(f"  … and {len(rows) - _MOST_CHANGES} more")
    return "\n".join(lines)


def register(bridge: Bridge) -> None:
    browser = Browser(bridge)
    bridge.on("hello", browser.begin)
    bridge.command(bridge.session.browser, browser.rewind)
    bridge.command("checkpoint", browser.checkpoint)
