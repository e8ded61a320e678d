"""`rewind undo`, `rewind redo` and `rewind undo-restore`."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command
from coderewind.cli.restore import show_outcome


@click.command()
@click.argument("steps", metavar="[N]", type=click.IntRange(min=1), default=1)
@command
def undo(app: App, *, steps: int) -> None:
    """Step back to the newest earlier checkpoint whose files differ from now; N times."""
    outcome = app.engine().undo(steps)
    app.out(outcome.as_json(), lambda: show_outcome(outcome))


@click.command()
@click.argument("steps", metavar="[N]", type=click.IntRange(min=1), default=1)
@command
def redo(app: App, *, steps: int) -> None:
    """Step forward again to what undo left; N times."""
    outcome = app.engine().redo(steps)
    app.out(outcome.as_json(), lambda: show_outcome(outcome))


@click.command("undo-restore")
@command
def undo_restore(app: App) -> None:
    """Reverse the last restore, undo or redo; again for the one before it."""
    outcome = app.engine().undo_restore()
    app.out(outcome.as_json(), lambda: show_outcome(outcome))
