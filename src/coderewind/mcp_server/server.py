"""The MCP server: tools and resources over one folder, on stdin and stdout.

Every failure reaches the client as one line. Nothing an agent says is logged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import AnyUrl, ValidationError

from coderewind import __version__
from coderewind.cli.ending import printable, report_bug, system_error
from coderewind.errors import RewindError
from coderewind.mcp_server.desk import Desk
from coderewind.mcp_server.restoring import restoring_tools
from coderewind.mcp_server.tools import Tools, patch, show

_ABOUT = (
    "Checkpoints of this folder: exact copies of all its files, whoever changed them. Save one "
    "before something risky; list, show and compare them to see what changed when."
)
_MAY_RESTORE = " Restoring and undoing show a plan first and are done when it is given back."
_MAY_NOT = " Only the user restores: say which checkpoint, and `rewind restore N` puts it back."


def serve(directory: str) -> None:
    """Serve one folder until the client goes away."""
    server(directory).run("stdio")


def server(directory: str) -> MCPServer[Any]:
    desk = Desk(directory)
    may_restore = desk.may_restore()
    made = _Server("rewind", title="Rewind", version=__version__, log_level="CRITICAL",
                   instructions=_ABOUT + (_MAY_RESTORE if may_restore else _MAY_NOT))
    tools = Tools(desk)
    look = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    add = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    change = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)
    made.add_tool(tools.list_checkpoints, annotations=look)
    made.add_tool(tools.show_checkpoint, annotations=look)
    made.add_tool(tools.diff_checkpoints, annotations=look, structured_output=False)
    made.add_tool(tools.save_checkpoint, annotations=add)
    made.add_tool(tools.label_checkpoint, annotations=add)
    if may_restore:
        for tool in restoring_tools(desk):
            made.add_tool(tool, annotations=change)
    _add_resources(made, desk, tools)
    return made


def _add_resources(made: MCPServer[Any], desk: Desk, tools: Tools) -> None:
    def timeline() -> str:
        """The checkpoints of this folder, newest first."""
        return json.dumps(tools.list_checkpoints(200))

    def checkpoint(name: str) -> str:
        """One checkpoint: what changed, what it does not hold."""
        with desk.engine() as engine:
            return json.dumps(show(engine, name))

    def since(name: str) -> str:
        """What changed between a checkpoint and now."""
        with desk.engine() as engine:
            return patch(engine, name, None, [], stat=False)

    def between(name: str, other: str) -> str:
        """What changed between two checkpoints."""
        with desk.engine() as engine:
            return patch(engine, name, other, [], stat=False)

    for uri, function, kind in (
        ("rewind://timeline", timeline, "application/json"),
        ("rewind://checkpoint/{name}", checkpoint, "application/json"),
        ("rewind://diff/{name}", since, "text/x-diff"),
        ("rewind://diff/{name}/{other}", between, "text/x-diff"),
    ):
        made.resource(uri, mime_type=kind)(function)


class _Server(MCPServer[Any]):
    """The SDK's server, whose errors say in one line what is wrong and what to do."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            raise ToolError(_words(error)) from None

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        try:
            return await super().read_resource(uri, context)
        except ResourceError as error:
            raise ResourceError(_words(error)) from None


def _words(error: Exception) -> str:
    """What the client is told: never a traceback, never what it sent."""
    cause = error.__cause__ or error
    if isinstance(cause, (ToolError, ResourceError)) and cause.__cause__:
        cause = cause.__cause__
    if isinstance(cause, ValidationError):
        wrong = [f"{'.'.join(map(str, row['loc'])) or 'arguments'}: {row['msg']}"
                 for row in cause.errors(include_url=False, include_input=False)]
        return printable("; ".join(dict.fromkeys(wrong))[:1000])
    if isinstance(cause, OSError):
        cause = system_error(cause)
    if isinstance(cause, RewindError):
        return printable(f"{cause.message}; {cause.hint}" if cause.hint else cause.message)
    if isinstance(cause, (ToolError, ResourceError)):
        return printable(str(cause)[:1000])
    return report_bug(cause)
