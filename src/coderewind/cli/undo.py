"""`rewind undo`, `rewind redo` and `rewind undo-restore`."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command, plural
from coderewind.cli.restore import show_outcome, show_resume
from coderewind.engine import conversation
from coderewind.engine.moving import Outcome


@click.command()
@click.argument("steps", metavar="[N]", type=click.IntRange(min=1), default=1)
@command
def undo(app: App, *, steps: int) -> None:
    """Step back to the newest earlier state with other files.

    N times. What is undone is kept: `rewind redo` steps forward again.
    """
    outcome = app.engine().undo(steps)
    _say_fewer(app, outcome, steps)
    app.out(outcome.as_json(), lambda: show_outcome(outcome, back="redo"))


@click.command()
@click.argument("steps", metavar="[N]", type=click.IntRange(min=1), default=1)
@command
def redo(app: App, *, steps: int) -> None:
    """Step forward again to what undo left; N times."""
    outcome = app.engine().redo(steps)
    _say_fewer(app, outcome, steps)
    app.out(outcome.as_json(), lambda: show_outcome(outcome, back="undo"))


def _say_fewer(app: App, outcome: Outcome, wanted: int) -> None:
    if outcome.steps < wanted:
        app.warn(f"{plural(outcome.steps, 'step')} of the {wanted}: there is no further state")


@click.command("undo-restore")
@command
def undo_restore(app: App) -> None:
    """Take back the last restore, undo or redo.

    Again for the one before it. If a conversation was put back with it, says how to go on in
    the earlier session.
    """
    engine = app.engine()
    talk = conversation.newest(engine)
    if talk is not None and conversation.stands_alone(engine, talk):
        resume = conversation.take_back(engine, talk)
        app.out({"done": True, "resume": resume.as_json()}, lambda: show_resume(resume))
        return
    if talk is not None:
        conversation.check_back(engine, talk)
    outcome = engine.undo_restore()
    assert outcome.target is not None
    earlier = None
    if talk is not None and talk.text("target") == outcome.target.id:
        earlier = conversation.take_back(engine, talk)
    data = {**outcome.as_json(), "resume": earlier.as_json() if earlier else None}
    app.out(data, lambda: show_outcome(outcome, resume=earlier, back=None))
