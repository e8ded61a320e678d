"""Connecting agents, for `rewind init` and `rewind config`."""

from __future__ import annotations

import click

from coderewind.agents import connect
from coderewind.agents import tier as tiers
from coderewind.agents.connect import Found
from coderewind.agents.connection import USER
from coderewind.agents.known import connection_of
from coderewind.cli.app import App
from coderewind.errors import RewindError
from coderewind.model.paths import to_text
from coderewind.wiring import find_workspace


def choose(app: App, words: str | None, *, yes: bool) -> list[str]:
    """The agents to connect: those named, else those the user says yes to.

    Without a terminal nobody can say yes, and nobody's settings are changed.
    """
    if words is not None:
        return connect.chosen(words)
    if yes or app.as_json or not app.can_ask():
        return []
    return [agent.adapter.name for agent in connect.find()
            if not connect.connected(agent.adapter.name) and _asked(agent)]


def choose_anew() -> list[str]:
    """All agents that are here, as far as the user says yes; those that are connected already are
    asked about when their connection would change."""
    return [agent.adapter.name for agent in connect.find()
            if connect.connected(agent.adapter.name) or _asked(agent)]


def choose_tier(current: str) -> str:
    """The tier that the user picks."""
    width = max(map(len, tiers.NAMES))
    for name in reversed(tiers.NAMES):
        click.echo(f"  {name.ljust(width)}  {tiers.load(name).description}")
    picked = click.prompt("How often shall checkpoints be made?", default=current,
                          type=click.Choice(tiers.NAMES), show_choices=False)
    return str(picked)


def _asked(agent: Found) -> bool:
    return click.confirm(f"Connect {agent.words}, so that each of its turns is a checkpoint?",
                         default=True)


def connect_agents(
    app: App,
    agents: list[str],
    tier_name: str,
    *,
    root: str,
    scope: str,
    yes: bool,
    replace: bool = False,
) -> list[dict[str, object]]:
    """Connect some agents; asks before an existing connection is changed, and before another
    extension is taken out (`replace` is the answer to that)."""
    chosen = tiers.load(tier_name)
    done: list[dict[str, object]] = []
    for agent in agents:
        connection = connection_of(agent)
        change = connection.plan(chosen, root, scope)
        if change.is_change and change.had_ours and not yes:
            question = f"{change.path} has hooks of Rewind already. Change them?"
            if app.can_ask() and not app.as_json:
                if not click.confirm(question, default=False):
                    continue
            else:
                app.confirm(question, yes=yes)
        for rival in connection.rivals():
            app.confirm(f"{rival.path} holds another checkpoint extension, which would do the "
                        "same work twice. Take it out? Its old points stay usable, and a copy "
                        "is kept beside it.", yes=replace)
            rival.apply()
        elsewhere = [path for path in connection.places(root) if path != change.path]
        if elsewhere:
            raise RewindError(f"{agent} is connected in {elsewhere[0]} already",
                              hint="rewind config --unregister-hooks first")
        change.apply()
        found = connect.found(agent)
        commands, problem = False, ""
        if scope == USER:
            commands, problem = connection.add_commands(found.path, found.version)
        if problem:
            app.warn(f"{problem}; checkpoints are made without it")
        done.append({"agent": agent, "file": change.path, "changed": change.is_change,
                     "tier": tier_name if connection.has_tiers else "", "commands": commands})
    return done


def disconnect_agents(agents: list[str], *, root: str) -> list[dict[str, object]]:
    """Take what is ours out of every place of some agents."""
    done: list[dict[str, object]] = []
    for agent in agents:
        connection = connection_of(agent)
        # First what the agent itself does, because it rewrites its settings for that.
        connection.remove_commands(connect.found(agent).path)
        changes = connection.plan_removal(root)
        for change in changes:
            change.apply()
        done.append({"agent": agent, "files": [change.path for change in changes]})
    return done


def show_disconnected(rows: list[dict[str, object]]) -> None:
    for row in rows:
        files = row["files"]
        assert isinstance(files, list)
        click.echo(f"  {row['agent']}: " + (", ".join(files) if files else "was not connected"))


def show_connected(rows: list[dict[str, object]]) -> None:
    for row in rows:
        word = "connected" if row["changed"] else "is connected already"
        commands = ", /rewind-list and more inside it" if row["commands"] else ""
        tier = f" (tier {row['tier']})" if row["tier"] else ""
        click.echo(f"  {row['agent']} {word}: {row['file']}{tier}{commands}")


def worktree_of(app: App) -> str:
    """The worktree around the current folder; '' when there is none."""
    try:
        return to_text(find_workspace(app.directory).root)
    except RewindError:
        return ""
