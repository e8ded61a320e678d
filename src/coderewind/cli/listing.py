"""What `rewind list` does, however its words were read (list.py, quick.py)."""

from __future__ import annotations

from coderewind.cli.app import App
from coderewind.cli.showing import checkpoint_lines
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.timeline.build import Timeline

_DEFAULT = 30
_PATIENCE = 0.5  # seconds; a list is wanted at once, also while something long is under way


def list_now(app: App, *, everything: bool, limit: int | None) -> None:
    """Show the checkpoints, newest first."""
    engine = app.engine()
    timelines = engine.all_timelines() if everything else [engine.timeline()]
    _mark_current(engine, timelines[0])
    found = [cp for timeline in timelines for cp in timeline.checkpoints]
    if everything:
        found.sort(key=lambda cp: cp.time, reverse=True)
    total = len(found)
    if not everything and not app.as_json:
        # Taken while another tool was at work: the batch's own checkpoint is the exact one.
        found = [cp for cp in found if "parallel" not in cp.flags or cp.current]
    if limit is None and not everything and not app.as_json:
        limit = _DEFAULT
    found = found[:limit]

    def show() -> None:
        if not found:
            print("no checkpoints yet; rewind save makes one")
        checkpoint_lines(found)
        if total > len(found):
            print(f"… {total - len(found)} older (rewind list --all)")

    app.out({"checkpoints": [cp.as_json() for cp in found]}, show)


def _mark_current(engine: Engine, timeline: Timeline) -> None:
    """Look at the files; when that cannot be done now, the mark stays where they were last seen."""
    try:
        engine.standing(timeline, engine.current_snapshot(_PATIENCE))
    except RewindError:
        return
