"""`rewind hook`, `rewind bridge` and `rewind statusline`: what agents and status lines call.

Agents reach the first two before this module is loaded (see __main__); here are their help pages.
"""

from __future__ import annotations

import json
import select
import sys

import click

from coderewind.cli.app import App, command, plural
from coderewind.engine import settings
from coderewind.errors import RewindError


@click.command()
@click.argument("event")
@click.option("--agent", type=click.Choice(["claude", "droid"]), help="Who calls.")
def hook(event: str, agent: str | None) -> None:
    """Handle one EVENT of an agent, with its payload on stdin. For agents, not for people."""
    from coderewind.hooks.entry import run_hook

    raise click.exceptions.Exit(run_hook([*(["--agent", agent] if agent else []), event]))


@click.command()
def bridge() -> None:
    """Serve the extension in Pi and oh-my-pi. For agents, not for people.

    It speaks JSON-RPC on stdin and stdout.
    """
    from coderewind.bridge.entry import run_bridge

    raise click.exceptions.Exit(run_bridge())


@click.command()
@command
def statusline(app: App) -> None:
    """Print one short line for a status line.

    It says how many checkpoints there are. Reads Claude Code's status line JSON on stdin, if
    there is some, for the folder. Prints nothing where nothing is protected, or with
    silentCheckpoints.
    """
    folder = _folder_on_stdin()
    if folder:
        app.directory = folder
    try:
        engine = app.engine()
        silent = settings.load(engine.store).flag("silentCheckpoints")
        checkpoints = [] if silent else engine.timeline().checkpoints
    except RewindError:
        silent = True
    if silent:
        app.out({"text": "", "checkpoints": 0}, lambda: None)
        return
    text = f"◆ {plural(len(checkpoints), 'checkpoint')}"
    app.out({"text": text, "checkpoints": len(checkpoints)}, lambda: click.echo(text))


def _folder_on_stdin() -> str:
    if sys.stdin is None or sys.stdin.isatty() or not select.select([sys.stdin], [], [], 0.2)[0]:
        return ""
    try:
        data = json.loads(sys.stdin.buffer.read(1 << 20))
    except ValueError:
        return ""
    place = data.get("workspace") if isinstance(data, dict) else None
    folder = place.get("current_dir") if isinstance(place, dict) else None
    return folder if isinstance(folder, str) and folder.startswith("/") else ""
