"""`rewind undo`, `rewind redo` and `rewind undo-restore`."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command
from coderewind.cli.restore import show_outcome


@click.command()
@click.argument("steps", metavar="[N]", type=click.IntRange(min=1), default=1)
@command
def undo(app: App, *, steps: int) -> None:
    """Step back to the newest earlier state with other files.

    N times. What is undone is kept: `rewind redo` steps forward again.
    """
    outcome = app.engine().undo(steps)
    app.out(outcome.as_json(), lambda: show_outcome(outcome, back="redo"))


@click.command()
@click.argument("steps", metavar="[N]", type=click.IntRange(min=1), default=1)
@command
def redo(app: App, *, steps: int) -> None:
    """Step forward again to what undo left; N times."""
    outcome = app.engine().redo(steps)
    app.out(outcome.as_json(), lambda: show_outcome(outcome, back="undo"))


@click.command("undo-restore")
@command
def undo_restore(app: App) -> None:
    """Take back the last restore, undo or redo.

    Again for the one before it.
    """
    outcome = app.engine().undo_restore()
    app.out(outcome.as_json(), lambda: show_outcome(outcome, back=None))
