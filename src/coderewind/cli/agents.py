"""Connecting agents, for `rewind init` and `rewind config`."""

from __future__ import annotations

import click

from coderewind.agents import connect, tier
from coderewind.agents.connect import Found
from coderewind.agents.known import connection_of
from coderewind.cli.app import App
from coderewind.errors import RewindError


def choose(app: App, words: str | None, *, yes: bool) -> list[str]:
    """The agents to connect: those named, else those the user says yes to.

    Without a terminal nobody can say yes, and nobody's settings are changed.
    """
    if words is not None:
        return connect.chosen(words)
    if yes or app.as_json or not app.can_ask():
        return []
    found = [agent for agent in connect.find() if not connect.connected(agent.adapter.name)]
    return [agent.adapter.name for agent in found if _asked(agent)]


def _asked(agent: Found) -> bool:
    return click.confirm(f"Connect {agent.words}, so that each of its turns is a checkpoint?",
                         default=True)


def connect_agents(
    app: App, agents: list[str], tier_name: str, *, root: str, scope: str, yes: bool
) -> list[dict[str, object]]:
    """Connect some agents; asks before an existing connection is changed."""
    chosen = tier.load(tier_name)
    done: list[dict[str, object]] = []
    for agent in agents:
        connection = connection_of(agent)
        change = connection.plan(chosen, root, scope)
        if change.is_change and change.had_ours and not yes:
            app.confirm(f"{change.path} has hooks of Rewind already. Change them?", yes=yes)
        elsewhere = [path for path in connection.places(root) if path != change.path]
        if elsewhere:
            raise RewindError(f"{agent} is connected in {elsewhere[0]} already",
                              hint="rewind config --unregister-hooks first")
        change.apply()
        found = connect.found(agent)
        commands, problem = connection.add_commands(found.path, found.version)
        if problem:
            app.warn(f"{problem}; checkpoints are made without it")
        done.append({"agent": agent, "file": change.path, "changed": change.is_change,
                     "tier": tier_name, "plugin": commands})
    return done


def disconnect_agents(agents: list[str], *, root: str) -> list[dict[str, object]]:
    """Take what is ours out of every place of some agents."""
    done: list[dict[str, object]] = []
    for agent in agents:
        connection = connection_of(agent)
        changes = connection.plan_removal(root)
        for change in changes:
            change.apply()
        connection.remove_commands(connect.found(agent).path)
        done.append({"agent": agent, "files": [change.path for change in changes]})
    return done


def show_connected(rows: list[dict[str, object]]) -> None:
    for row in rows:
        word = "connected" if row["changed"] else "is connected already"
        commands = ", /rewind-list and more inside it" if row["plugin"] else ""
        click.echo(f"  {row['agent']} {word}: {row['file']} (tier {row['tier']}){commands}")
