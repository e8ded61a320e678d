"""`rewind list`: the checkpoints."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command
from coderewind.cli.listing import list_now


@click.command("list")
@click.option("--all", "everything", is_flag=True,
              help="All of them, of all linked worktrees of this repository.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show at most N.")
@command
def list_(app: App, *, everything: bool, limit: int | None) -> None:
    """List the checkpoints, newest first.

    → marks the one that the files are exactly like now, ★ what is pinned.
    """
    list_now(app, everything=everything, limit=limit)
