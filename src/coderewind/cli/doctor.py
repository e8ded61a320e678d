"""`rewind doctor`: check the store down to the objects, and the agents' connections."""

from __future__ import annotations

import click

from coderewind.agents import connect
from coderewind.agents.connect import Health
from coderewind.cli.app import App, age, command, painted, plural
from coderewind.cli.ending import Unwell, printable
from coderewind.engine import health
from coderewind.model.paths import to_text
from coderewind.store import home
from coderewind.wiring import find_workspace


@click.command()
@click.option("--repair", is_flag=True, help="Mend what can be mended; nothing is deleted.")
@command
def doctor(app: App, *, repair: bool) -> None:
    """Read every object of every checkpoint and find damage.

    And say of each agent that is here how it is connected, and when it was heard last.
    """
    workspace = find_workspace(app.directory)
    agents = connect.health(to_text(workspace.root))
    if home.locate(workspace) is None:
        app.out({"agents": [agent.as_json() for agent in agents], "healthy": False},
                lambda: _show_agents(agents))
        raise Unwell("this folder is not protected yet",
                     hint="rewind init protects it and takes the first checkpoint")
    engine = app.engine()
    found = health.diagnose(engine)
    if repair and found.problems:
        first = found
        left = health.repair(engine, first)
        found = health.diagnose(engine)
        found.problems += left
        found.mended, found.lost = first.mended, first.lost
    unwell = [problem for agent in agents for problem in agent.problems]
    data = {**found.as_json(), "agents": [agent.as_json() for agent in agents],
            "healthy": not found.problems and not unwell}

    def show() -> None:
        click.echo(f"{plural(found.checked, 'object')} read")
        for line in found.mended:
            click.echo(f"  mended: {printable(line)}")
        if found.lost:
            numbers = ", ".join(f"#{number}" for number in found.lost)
            click.echo(painted("  lost: ", "red")
                       + f"of these checkpoints only the record is left: {numbers}")
        for line in found.problems:
            click.echo(painted("  problem: ", "red") + printable(line))
        _show_agents(agents)
        if not found.problems and not unwell:
            click.echo("the rest is well" if found.lost else "all is well")

    app.out(data, show)
    if found.problems:
        hint = "" if repair else "rewind doctor --repair mends what can be mended"
        raise Unwell(plural(len(found.problems), "problem") + " found", hint=hint)
    if found.lost:
        raise Unwell(plural(len(found.lost), "checkpoint") + " could not be mended")
    if unwell:
        raise Unwell(plural(len(unwell), "problem") + " found with the agents",
                     hint="rewind config --register-hooks connects them anew")


def _show_agents(agents: list[Health]) -> None:
    for agent in agents:
        name = agent.found.adapter.name
        if not agent.places:
            how = f"not connected: rewind init --agents {name}"
        else:
            heard = f"{agent.event} {age(int(agent.time * 1000))}"
            how = (f"connected in {', '.join(agent.places)}; "
                   f"last heard: {heard if agent.event else 'no event yet'}")
        click.echo(f"{agent.found.words}: {printable(how)}")
        for problem in agent.problems:
            click.echo(painted("  problem: ", "red") + printable(problem))
