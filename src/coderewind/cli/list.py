"""`rewind list`: the checkpoints."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command
from coderewind.cli.showing import checkpoint_line

_DEFAULT = 30


@click.command("list")
@click.option("--all", "everything", is_flag=True,
              help="All of them, of all linked worktrees of this repository.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show at most N.")
@command
def list_(app: App, *, everything: bool, limit: int | None) -> None:
    """List the checkpoints, newest first.

    → marks the state that the folder was last seen in, ★ what is pinned.
    """
    engine = app.engine()
    if everything:
        found = [cp for timeline in engine.all_timelines() for cp in timeline.checkpoints]
        found.sort(key=lambda cp: cp.time, reverse=True)
    else:
        found = engine.timeline().checkpoints
    total = len(found)
    if limit is None and not everything and not app.as_json:
        limit = _DEFAULT
    found = found[:limit]

    def show() -> None:
        if not found:
            click.echo("no checkpoints yet; rewind save makes one")
        for cp in found:
            checkpoint_line(cp)
        if total > len(found):
            click.echo(f"… {total - len(found)} older (rewind list --all)")

    app.out({"checkpoints": [cp.as_json() for cp in found]}, show)
