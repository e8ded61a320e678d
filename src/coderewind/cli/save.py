"""`rewind save`: a checkpoint now."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command
from coderewind.cli.saving import save_now


@click.command()
@click.argument("description", required=False)
@click.option("--message", "-m", metavar="TEXT", help="The description, also with a leading dash.")
@command
def save(app: App, *, description: str | None, message: str | None) -> None:
    """Make a checkpoint of the folder as it is now.

    A folder that is not protected yet becomes so.
    """
    if description is not None and message is not None:
        raise click.UsageError("give DESCRIPTION or --message, not both")
    save_now(app, description if description is not None else message or "")
