"""`rewind config` and `rewind validate`."""

from __future__ import annotations

import json
import os

import click

from coderewind.cli.app import App, command
from coderewind.cli.top import Unwell
from coderewind.engine import settings
from coderewind.errors import RewindError
from coderewind.store import home
from coderewind.store.home import Store
from coderewind.wiring import find_workspace


@click.command()
@click.argument("key", required=False)
@click.argument("value", required=False)
@click.option("--tier", type=click.Choice(settings.TIERS), help="Short for: config tier NAME.")
@click.option("--project", is_flag=True, help="Set it for this folder only.")
@click.option("--unset", is_flag=True, help="Take KEY out of the file.")
@click.option("--schema", "as_schema", is_flag=True, help="Print the JSON Schema.")
@command
def config(
    app: App,
    *,
    key: str | None,
    value: str | None,
    tier: str | None,
    project: bool,
    unset: bool,
    as_schema: bool,
) -> None:
    """Show the settings and where each comes from, or set one.

    Settings are kept in ~/.rewind/config.json, and with --project in the folder's store.
    """
    if as_schema:
        click.echo(json.dumps(settings.schema(), indent=2))
        return
    if tier is not None:
        if key is not None:
            raise click.UsageError("give --tier or KEY, not both")
        key, value = "tier", tier
    store = _store(app)
    if key is None:
        _show_all(app, store)
        return
    if key not in settings.KEYS:
        settings.parse(key, "")  # raises, naming what is near
    if value is not None or unset:
        path = _file(store, project=project)
        home.make_private(os.path.dirname(path))
        settings.write(path, key, None if unset else settings.parse(key, value or ""))
    loaded = settings.load(store)
    data = {"key": key, "value": loaded.get(key), "source": loaded.source(key)}
    app.out(data, lambda: click.echo(f"{key} = {json.dumps(data['value'])}  ({data['source']})"))


def _store(app: App) -> Store | None:
    try:
        return home.locate(find_workspace(app.directory))
    except RewindError:
        return None  # the global settings can be read and set from anywhere


def _file(store: Store | None, *, project: bool) -> bytes:
    if not project:
        return settings.files(None)["global"]
    if store is None:
        raise RewindError("this folder is not protected yet", hint="rewind init")
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
    """Check the configuration files; each problem is named with its file and key."""
    store = _store(app)
    problems = []
    checked = []
    for path in settings.files(store).values():
        if not os.path.exists(path):
            continue
        checked.append(os.fsdecode(path))
        try:
            settings.read(path)
        except RewindError as error:
            problems.append(error.message)
    data = {"files": checked, "problems": problems, "valid": not problems}

    def show() -> None:
        for path in checked:
            click.echo(f"checked {path}")
        if not problems:
            click.echo("the configuration is valid")

    app.out(data, show)
    if problems:
        raise Unwell("; ".join(problems), hint="rewind config lists all settings")
