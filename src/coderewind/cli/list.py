"""`rewind list`: the checkpoints."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command
from coderewind.cli.showing import checkpoint_lines, point_lines
from coderewind.engine import legacy
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.timeline.build import Timeline

_DEFAULT = 30
_PATIENCE = 0.5  # seconds; a list is wanted at once, also while something long is under way


@click.command("list")
@click.option("--all", "everything", is_flag=True,
              help="All of them, of all linked worktrees of this repository.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show at most N.")
@command
def list_(app: App, *, everything: bool, limit: int | None) -> None:
    """List the checkpoints, newest first.

    → marks the one that the files are exactly like now, ★ what is pinned.
    """
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
    old = legacy.points(engine)

    def show() -> None:
        if not found:
            click.echo("no checkpoints yet; rewind save makes one")
        checkpoint_lines(found)
        if total > len(found):
            click.echo(f"… {total - len(found)} older (rewind list --all)")
        if old:
            click.echo("points of pi-rewind-hook; rewind restore takes them over:")
        point_lines(old[::-1] if everything else old[:-_DEFAULT - 1 : -1])

    app.out({"checkpoints": [cp.as_json() for cp in found],
             "legacy": [point.as_json() for point in old]}, show)


def _mark_current(engine: Engine, timeline: Timeline) -> None:
    """Look at the files; when that cannot be done now, the mark stays where they were last seen."""
    try:
        engine.standing(timeline, engine.current_snapshot(_PATIENCE))
    except RewindError:
        return
