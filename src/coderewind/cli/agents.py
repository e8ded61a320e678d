"""Connecting agents, for `rewind init` and `rewind config`."""

from __future__ import annotations

import click

from coderewind.agents import connect, plugin, settings, tier
from coderewind.agents.connect import Found
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
    """Register our hooks for some agents; asks before an existing registration is changed."""
    chosen = tier.load(tier_name)
    done: list[dict[str, object]] = []
    for agent in agents:
        change = connect.plan_connect(agent, chosen, root=root, scope=scope)
        if change.is_change and change.had_ours and not yes:
            app.confirm(f"{change.path} has hooks of Rewind already. Change them?", yes=yes)
        elsewhere = [path for path in connect.connected(agent, root) if path != change.path]
        if elsewhere:
            raise RewindError(f"{agent} is connected in {elsewhere[0]} already",
                              hint="rewind config --unregister-hooks first")
        settings.apply(change)
        done.append({"agent": agent, "file": change.path, "changed": change.is_change,
                     "tier": tier_name, "plugin": _plugin(app, agent)})
    return done


def _plugin(app: App, agent: str) -> bool:
    """Install Claude Code's plugin where it is missing; without it checkpoints are made, too."""
    found = next((f for f in connect.find() if f.adapter.name == agent), None)
    if agent != "claude" or found is None or not found.path:
        return False
    if plugin.is_installed(found.adapter.home()):
        plugin.write_out()
        return True
    if not plugin.runs_mods(found.version):
        return False
    problem = plugin.install(found.path)
    if problem:
        app.warn(f"Claude Code's plugin could not be installed: {problem}; "
                 "checkpoints are made without it")
    return not problem


def disconnect_agents(agents: list[str], *, root: str) -> list[dict[str, object]]:
    """Take our hooks out of every file of some agents."""
    done: list[dict[str, object]] = []
    for agent in agents:
        changes = connect.plan_disconnect(agent, root=root)
        for change in changes:
            settings.apply(change)
        found = next((f for f in connect.find() if f.adapter.name == agent), None)
        if agent == "claude" and found and found.path and plugin.is_installed(found.adapter.home()):
            plugin.uninstall(found.path)
        done.append({"agent": agent, "files": [change.path for change in changes]})
    return done


def show_connected(rows: list[dict[str, object]]) -> None:
    for row in rows:
        word = "connected" if row["changed"] else "is connected already"
        commands = ", /rewind-list and more inside it" if row["plugin"] else ""
        click.echo(f"  {row['agent']} {word}: {row['file']} (tier {row['tier']}){commands}")
