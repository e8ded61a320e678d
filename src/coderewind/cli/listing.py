"""What `rewind list` does, however its words were read (list.py, quick.py)."""

from __future__ import annotations

from coderewind.cli.app import App
from coderewind.cli.showing import checkpoint_lines, point_lines
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.store.refs import PI_REWIND_STORE, ref_exists
from coderewind.timeline.build import Timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.agents.rewind_hook import Point

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
    old = _points_of_others(engine)

    def show() -> None:
        if not found:
            print("no checkpoints yet; rewind save makes one")
        checkpoint_lines(found)
        if total > len(found):
            print(f"… {total - len(found)} older (rewind list --all)")
        if old:
            print("points of pi-rewind-hook; rewind restore takes them over:")
        point_lines(old[::-1] if everything else old[:-_DEFAULT - 1 : -1])

    app.out({"checkpoints": [cp.as_json() for cp in found],
             "legacy": [point.as_json() for point in old]}, show)


def _points_of_others(engine: Engine) -> list[Point]:
    if not ref_exists(engine.workspace, PI_REWIND_STORE):
        return []
    from coderewind.engine import legacy

    return legacy.points(engine)


def _mark_current(engine: Engine, timeline: Timeline) -> None:
    """Look at the files; when that cannot be done now, the mark stays where they were last seen."""
    try:
        engine.standing(timeline, engine.current_snapshot(_PATIENCE))
    except RewindError:
        return
