"""`rewind init`: protect a folder."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command, plural
from coderewind.cli.showing import coverage_lines
from coderewind.engine import settings
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.model.paths import to_text
from coderewind.store import home
from coderewind.wiring import find_workspace, make_store, refuse_home


@click.command()
@click.option("--mode", type=click.Choice(home.MODES),
              help="Where the store goes: ~/.rewind, this folder, or its .git.")
@click.option("--yes", is_flag=True, help="Do not ask anything.")
@click.option("--force", is_flag=True, help="Protect even / or the home folder.")
@command
def init(app: App, *, mode: str | None, yes: bool, force: bool) -> None:
    """Protect this folder and take the first checkpoint.

    Says where the store is and what it does not hold. Running it again changes nothing.
    """
    workspace = find_workspace(app.directory)
    refuse_home(workspace.root, force=force)
    try:
        store = home.locate(workspace)
    except home.DamagedStore:
        store = None  # written anew below
    made = store is None
    if store is None:
        store = make_store(workspace, mode, force=force)
    elif mode is not None and mode != store.mode:
        raise RewindError(f"this folder already has a store in mode {store.mode}",
                          hint="rewind status shows where")
    engine = Engine(store, workspace, settings.load(store).filters(), app.progress)
    saved = engine.save("start", label="first checkpoint") if made or not engine.ledger.head() \
        else None
    data = {
        "created": made,
        "worktree": to_text(workspace.root),
        "store": to_text(store.git_dir),
        "mode": store.mode,
        "checkpoint": saved.checkpoint.as_json() if saved else None,
        "coverage": [item.as_json() for item in saved.coverage] if saved else [],
    }

    def show() -> None:
        word = "protected" if made else "already protected"
        click.echo(f"{to_text(workspace.root)} is {word}.")
        click.echo(f"  store: {to_text(store.git_dir)} (mode {store.mode})")
        if saved:
            files = plural(saved.checkpoint.files, "file")
            click.echo(f"  checkpoint #{saved.checkpoint.number}: {files}")
            if saved.coverage:
                click.echo(f"  not held ({len(saved.coverage)}):")
                coverage_lines(saved.coverage, limit=10)
        click.echo("  next: rewind save, rewind list, rewind restore CP, rewind undo")

    app.out(data, show)
