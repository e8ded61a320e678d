"""`rewind label`, `rewind pin` and `rewind unpin`."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command
from coderewind.cli.offers import checkpoints


@click.command()
@click.argument("checkpoint", metavar="CP", shell_complete=checkpoints)
@click.argument("text", required=False)
@click.option("--message", "-m", metavar="TEXT", help="The label, also with a leading dash.")
@command
def label(app: App, *, checkpoint: str, text: str | None, message: str | None) -> None:
    """Name a checkpoint; an empty TEXT takes its name away."""
    if (text is None) == (message is None):
        raise click.UsageError("give TEXT or --message")
    engine = app.engine()
    cp = engine.resolve(checkpoint)
    cp.label = text if text is not None else message or ""
    engine.label(cp, cp.label)
    word = "labelled" if cp.label else "has no label now"
    app.out(cp.as_json(), lambda: click.echo(f"checkpoint #{cp.number} {word}"))


@click.command()
@click.argument("checkpoint", metavar="CP", shell_complete=checkpoints)
@command
def pin(app: App, *, checkpoint: str) -> None:
    """Keep a checkpoint for ever, whatever `rewind gc` drops."""
    _set_pin(app, checkpoint, on=True)


@click.command()
@click.argument("checkpoint", metavar="CP", shell_complete=checkpoints)
@command
def unpin(app: App, *, checkpoint: str) -> None:
    """Let `rewind gc` drop a pinned checkpoint again."""
    _set_pin(app, checkpoint, on=False)


def _set_pin(app: App, checkpoint: str, *, on: bool) -> None:
    engine = app.engine()
    cp = engine.resolve(checkpoint)
    engine.pin(cp) if on else engine.unpin(cp)
    cp.pinned = on
    word = "pinned" if on else "no longer pinned"
    app.out(cp.as_json(), lambda: click.echo(f"checkpoint #{cp.number} {word}"))
