"""`rewind init`: protect a folder."""

from __future__ import annotations

import click

from coderewind.agents import connect
from coderewind.agents.known import NAMES
from coderewind.cli.agents import (
    choose,
    connect_agents,
    disconnect_agents,
    show_connected,
    show_disconnected,
    worktree_of,
)
from coderewind.cli.app import App, command, plural
from coderewind.cli.ending import printable
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
@click.option("--agents", metavar="NAMES",
              help=f"Connect these agents: {','.join(NAMES)}, all or none. Without it: asks.")
@click.option("--remove", metavar="NAMES",
              help="Disconnect these agents (or all), in every folder; nothing else is done.")
@click.option("--yes", is_flag=True, help="Do not ask anything.")
@click.option("--force", is_flag=True, help="Protect even / or the home folder.")
@command
def init(
    app: App,
    *,
    mode: str | None,
    agents: str | None,
    remove: str | None,
    yes: bool,
    force: bool,
) -> None:
    """Protect this folder and take the first checkpoint.

    Says where the store is and what it does not hold. Agents that are connected make a
    checkpoint of each turn, in every folder. Running it again changes nothing.
    """
    if remove is not None:
        if agents is not None or mode is not None:
            raise click.UsageError("--remove goes without --agents and --mode")
        gone = list(NAMES) if remove == "all" else connect.chosen(remove)
        rows = disconnect_agents(gone, root=worktree_of(app))
        app.out({"agents": rows}, lambda: show_disconnected(rows))
        return
    names = choose(app, agents, yes=yes)
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
    app.end_progress()
    connected = connect_agents(app, names, settings.load(store).text("tier"),
                               root=to_text(workspace.root), scope="user",
                               yes=yes or agents is not None, replace=yes)
    data = {
        "created": made,
        "worktree": to_text(workspace.root),
        "store": to_text(store.git_dir),
        "mode": store.mode,
        "checkpoint": saved.checkpoint.as_json() if saved else None,
        "coverage": [item.as_json() for item in saved.coverage] if saved else [],
        "agents": connected,
    }

    def show() -> None:
        word = "protected" if made else "already protected"
        click.echo(f"{printable(to_text(workspace.root))} is {word}.")
        click.echo(f"  store: {printable(to_text(store.git_dir))} (mode {store.mode})")
        if saved:
            files = plural(saved.checkpoint.files, "file")
            click.echo(f"  checkpoint #{saved.checkpoint.number}: {files}")
            if saved.coverage:
                click.echo(f"  not held ({len(saved.coverage)}):")
                coverage_lines(saved.coverage, limit=10)
        show_connected(connected)
        click.echo("  next: rewind save, rewind list, rewind restore CP, rewind undo")

    app.out(data, show)
