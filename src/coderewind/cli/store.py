"""`rewind store`: where the checkpoints are."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command
from coderewind.cli.ending import printable
from coderewind.model.paths import to_text


@click.command()
@click.option("--path", "only_path", is_flag=True, help="Print the path and nothing else.")
@command
def store(app: App, *, only_path: bool) -> None:
    """Say where the store is, to look into with plain git.

    \b
    For example:
      git --git-dir="$(rewind store --path)" log --first-parent --oneline
    """
    engine = app.engine()
    path = to_text(engine.store.git_dir)
    data = {"path": path, "mode": engine.store.mode, "home": to_text(engine.store.home),
            "ledger": engine.workspace.name}

    def show() -> None:
        if only_path:
            click.echo(engine.store.git_dir)
            return
        click.echo(f"store   {printable(path)}")
        click.echo(f"mode    {engine.store.mode}")
        click.echo(f"ledger  refs/heads/{engine.workspace.name}")

    app.out(data, show)
