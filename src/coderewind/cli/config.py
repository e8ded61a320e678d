"""`rewind config` and `rewind validate`."""

from __future__ import annotations

import json
import os

import click

from coderewind.agents import connect
from coderewind.agents.connection import SCOPES
from coderewind.agents.known import NAMES
from coderewind.cli.agents import (
    choose_anew,
    choose_tier,
    connect_agents,
    disconnect_agents,
    show_connected,
    show_disconnected,
    worktree_of,
)
from coderewind.cli.app import App, command, painted, plural
from coderewind.cli.ending import Unwell, printable
from coderewind.cli.offers import settings_and_values
from coderewind.engine import settings
from coderewind.errors import RewindError
from coderewind.store import home
from coderewind.store.folders import make_private
from coderewind.store.home import Store
from coderewind.wiring import find_workspace


@click.command()
@click.argument("key", required=False, shell_complete=settings_and_values)
@click.argument("value", required=False, shell_complete=settings_and_values)
@click.option("--tier", type=click.Choice(settings.TIERS),
              help="Set the tier, and change the hooks of the connected agents to it.")
@click.option("--project", is_flag=True, help="Set it for this folder only.")
@click.option("--unset", is_flag=True, help="Take KEY out of the file, so that its default holds.")
@click.option("--register-hooks", "register", is_flag=True, help="Connect agents.")
@click.option("--unregister-hooks", "unregister", is_flag=True, help="Disconnect agents.")
@click.option("--agents", metavar="NAMES", help=f"Which: {','.join(NAMES)} or all (the default).")
@click.option("--scope", type=click.Choice(SCOPES), default="user",
              help="In the user's settings, or in this folder's (Claude Code only).")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--schema", "as_schema", is_flag=True, help="Print the JSON Schema of the files.")
@command
def config(
    app: App,
    *,
    key: str | None,
    value: str | None,
    tier: str | None,
    project: bool,
    unset: bool,
    register: bool,
    unregister: bool,
    agents: str | None,
    scope: str,
    yes: bool,
    as_schema: bool,
) -> None:
    """Show the settings and their sources, or set one.

    They are kept in ~/.rewind/config.json, and with --project for this folder alone.
    """
    if as_schema:
        click.echo(json.dumps(settings.schema(), indent=2))
        return
    if register and unregister:
        raise click.UsageError("give --register-hooks or --unregister-hooks, not both")
    if tier is not None:
        if key is not None:
            raise click.UsageError("give --tier or KEY, not both")
        key, value = "tier", tier
    if unset and value is not None:
        raise click.UsageError("give VALUE or --unset, not both")
    if key is None and (unset or project):
        raise click.UsageError("--unset and --project go with a KEY")
    store = _store(app)
    if unregister:
        rows = disconnect_agents(_named(agents, list(NAMES)), root=worktree_of(app))
        app.out({"agents": rows}, lambda: show_disconnected(rows))
        return
    if key is None and register:
        asks = agents is None and not yes and not app.as_json and app.can_ask()
        names = choose_anew() if asks else _named(agents, connect.chosen("all"))
        if asks and names:
            _set_tier(store)
        _register(app, store, names, scope=scope, yes=yes, must=not asks and agents is None)
        return
    if key is None:
        _show_all(app, store)
        return
    if key not in settings.KEYS:
        settings.parse(key, "")  # raises, naming what is near
    changes = value is not None or unset
    if changes:
        path = _file(store, project=project)
        make_private(os.path.dirname(path))
        settings.write(path, key, None if unset else settings.parse(key, value or ""))
    loaded = settings.load(store)
    own = [name for name in NAMES if connect.connected(name, worktree_of(app))] \
        if key == "tier" and changes and not project else []
    if tier is not None:
        # Agents that are connected follow the tier; others only if that was asked for, too.
        names = _named(agents, connect.chosen("all")) if register else own
        if names and not project:
            _register(app, store, names, scope=scope, yes=yes or not register, must=True)
            return
    data = {"key": key, "value": loaded.get(key), "source": loaded.source(key)}
    written = "project" if project else "global"

    def show() -> None:
        click.echo(f"{key} = {json.dumps(data['value'])}  ({data['source']})")
        if changes and settings.is_stronger(loaded.source(key), written):
            done = f"{'taken out of' if unset else 'set in'} {os.fsdecode(path)}"
            click.echo(f"  {done}, but the {data['source']} setting is stronger")
        elif own:
            click.echo(f"  the hooks of {', '.join(own)} stay as they are; they follow with "
                       f"rewind config --tier {data['value']}")

    app.out(data, show)


def _named(agents: str | None, usual: list[str]) -> list[str]:
    return usual if agents is None else connect.chosen(agents)


def _set_tier(store: Store | None) -> None:
    """Ask for the tier, and keep it when it is another one."""
    current = settings.load(store).text("tier")
    picked = choose_tier(current)
    if picked != current:
        path = _file(store, project=False)
        make_private(os.path.dirname(path))
        settings.write(path, "tier", picked)


def _register(
    app: App,
    store: Store | None,
    names: list[str],
    *,
    scope: str,
    yes: bool,
    must: bool = False,
) -> None:
    if not names and must:
        raise RewindError("no agent was found here",
                          hint="name one: --agents " + " or --agents ".join(NAMES))
    tier = settings.load(store).text("tier")
    rows = connect_agents(app, names, tier, root=worktree_of(app), scope=scope, yes=yes,
                          replace=yes)
    none = "  no agent was connected" if connect.find() else "  no agent was found to connect"
    app.out({"agents": rows}, lambda: show_connected(rows) if rows else click.echo(none))


def _store(app: App) -> Store | None:
    try:
        return home.locate(find_workspace(app.directory))
    except RewindError:
        return None  # the global settings can be read and set from anywhere


def _file(store: Store | None, *, project: bool) -> bytes:
    if not project:
        return settings.files(None)["global"]
    if store is None:
        raise RewindError("this folder is not protected yet",
                          hint="rewind init protects it and takes the first checkpoint")
    return settings.files(store)["project"]


def _show_all(app: App, store: Store | None) -> None:
    loaded = settings.load(store)

    def show() -> None:
        for name, spec in settings.KEYS.items():
            value = json.dumps(loaded.get(name))
            click.echo(f"{name.ljust(32)} {value.ljust(16)} {loaded.source(name).ljust(12)} "
                       f"{spec.says}")

    app.out(loaded.as_json(), show)


@click.command()
@command
def validate(app: App) -> None:
    """Check the configuration files.

    Each problem is named with its file and key.
    """
    store = _store(app)
    problems = []
    checked = []
    for path in settings.files(store).values():
        if not os.path.exists(path):
            continue
        checked.append(os.fsdecode(path))
        problems += [error.message for error in settings.examine(path)[1]]
    data = {"files": checked, "problems": problems, "valid": not problems}

    def show() -> None:
        for path in checked:
            click.echo(f"checked {path}")
        if not checked:
            click.echo("there are no configuration files: the defaults hold")
        elif not problems:
            click.echo("the configuration is valid")
        for problem in problems:
            click.echo(painted("  problem: ", "red") + printable(problem))

    app.out(data, show)
    if problems:
        raise Unwell(plural(len(problems), "problem") + " found",
                     hint="rewind config lists all settings and what they may be")
