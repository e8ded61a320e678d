"""`rewind mcp`: a server of the Model Context Protocol, for agents."""

from __future__ import annotations

import importlib.util

import click

from coderewind.errors import RewindError


@click.command()
@click.option("-C", "directory", metavar="DIR", help="Work in DIR instead of here.")
@click.pass_context
def mcp(ctx: click.Context, *, directory: str | None) -> None:
    """Serve the checkpoints of this folder to an agent, over stdin and stdout.

    For agents, not for people: tools to list, show, compare, save and label checkpoints. Restoring
    and undoing are offered only after `rewind config agents.mayRestore true`.
    """
    if importlib.util.find_spec("mcp") is None:
        raise RewindError("the MCP server needs a package that is not installed",
                          hint="./install.sh --mcp installs it, or pip install 'coderewind[mcp]'")
    from coderewind.mcp_server.server import serve

    above = ctx.obj["directory"] if isinstance(ctx.obj, dict) else None
    serve(directory or above or ".")
