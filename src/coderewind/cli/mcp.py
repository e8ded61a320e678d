"""`rewind mcp`: a server of the Model Context Protocol, for agents."""

from __future__ import annotations

import importlib.util

import click

from coderewind.cli.app import folder_of, in_folder
from coderewind.errors import RewindError


@click.command()
@in_folder
@click.pass_context
def mcp(ctx: click.Context, *, directories: tuple[str, ...]) -> None:
    """Serve the checkpoints of this folder to an agent (MCP).

    For agents, not for people, over stdin and stdout: tools to list, show, compare, save and
    label checkpoints. Restoring and undoing are offered only after `rewind config
    agents.mayRestore true`.
    """
    if importlib.util.find_spec("mcp") is None:
        raise RewindError("the MCP server needs a package that is not installed",
                          hint="./install.sh --mcp installs it, or pip install 'coderewind[mcp]'")
    from coderewind.mcp_server.server import serve

    serve(folder_of(ctx, directories) or ".")
