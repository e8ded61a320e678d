"""`rewind save`: a checkpoint now."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command, plural
from coderewind.model.paths import to_text


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
    engine = app.engine(create=True)
    saved = engine.save(label=description if description is not None else message or "")
    cp = saved.checkpoint
    data = {
        "id": cp.id,
        "number": cp.number,
        "snapshot": cp.snapshot,
        "reused": saved.reused,
        "files": cp.files,
        "coverage": [item.as_json() for item in saved.coverage],
    }

    def show() -> None:
        first = cp.number == 1
        if saved.reused:
            what = "nothing changed"
        elif not cp.files and not first:
            what = "only modes or folders changed"
        else:
            what = plural(cp.files, "file") + ("" if first else " changed")
        click.echo(f"checkpoint #{cp.number}: {what}")
        if first:
            click.echo(f"  this folder is protected now; store: {to_text(engine.store.git_dir)}")
        notable = [item for item in saved.coverage if item.reason != "ignored"]
        if notable:
            click.echo(f"  {plural(len(notable), 'path')} not held; rewind show {cp.number} lists")

    app.out(data, show)
