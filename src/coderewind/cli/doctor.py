"""`rewind doctor`: check the store down to the objects."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command, plural
from coderewind.cli.ending import Unwell, printable
from coderewind.engine import health


@click.command()
@click.option("--repair", is_flag=True, help="Mend what can be mended; nothing is deleted.")
@command
def doctor(app: App, *, repair: bool) -> None:
    """Read every object of every checkpoint and find damage."""
    engine = app.engine()
    found = health.diagnose(engine)
    if repair and found.problems:
        first = found
        health.repair(engine, first)
        found = health.diagnose(engine)
        found.mended = first.mended

    def show() -> None:
        click.echo(f"{plural(found.checked, 'object')} read")
        for line in found.mended:
            click.echo(f"  mended: {printable(line)}")
        for line in found.problems:
            click.echo(click.style("  problem: ", fg="red") + printable(line))
        if not found.problems:
            click.echo("all is well")

    app.out(found.as_json(), show)
    if found.problems:
        hint = "" if repair else "rewind doctor --repair mends what can be mended"
        raise Unwell(plural(len(found.problems), "problem") + " found", hint=hint)
