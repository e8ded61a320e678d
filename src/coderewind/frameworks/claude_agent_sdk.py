"""Claude Agent SDK: a client that goes on in a fork of the session after a rewind.

    rewind = RewindClient("path/to/workspace", options=ClaudeAgentOptions(...))
    async for message in rewind.query(prompt):
        ...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    ResultMessage,
    SdkMcpTool,
    SessionMessage,
    create_sdk_mcp_server,
    fork_session,
    get_session_messages,
    query,
)

from coderewind.context import Call, Gate, Messages, Result, Tool, ToolError, words
from coderewind.frameworks.workspace import Folder, Workspace

_SERVER = "rewind"
_PREFIX = f"mcp__{_SERVER}__"


class RewindClient:
    """One conversation: the tools checkpoint and rewind, and checkpoints of a folder at each turn.

    Claude Code keeps the conversation in its own process, so a rewind ends that turn; the same
    `query` goes on in a fork of the session that ends at the checkpoint, with the report as prompt.
    Agents below the main one do not get at the tools.
    """

    def __init__(
        self, workspace: Folder | None = None, *, options: ClaudeAgentOptions | None = None,
        gate: Gate | None = None,
    ) -> None:
        """`gate` is what the user allows; by default what their configuration says."""
        self.workspace = Workspace(workspace, "claude-agent-sdk", gate)
        self.session_id: str | None = None
        self._options = options or ClaudeAgentOptions()
        self._folder = self._options.cwd or self.workspace.root
        self._rewinder = self.workspace.rewinder(_Transcript())
        self._called: list[tuple[str, str]] = []  # (tool, id), of calls that are about to run

    async def query(self, prompt: str) -> AsyncIterator[Any]:
        """One turn of the user; the SDK's messages of all its parts."""
        self._rewinder.new_prompt()
        await asyncio.to_thread(self.workspace.prompted, prompt, self.session_id or "")
        words_: str | None = prompt
        while words_ is not None:
            async for message in query(prompt=words_, options=self._prepared()):
                if isinstance(message, ResultMessage):
                    self.session_id = message.session_id
                yield message
            words_ = await asyncio.to_thread(self._settle)
        await asyncio.to_thread(self.workspace.stopped, self.session_id or "")

    def _settle(self) -> str | None:
        """Apply a rewind that was asked for: the prompt to go on with, None when there is none."""
        if self.session_id is None:
            return None
        messages = get_session_messages(self.session_id, directory=self._directory())
        rewound = self._rewinder.settle(messages)
        if rewound is None:
            return None
        how, parts = self._rewinder.how, rewound.cut
        if parts.head:
            fork = fork_session(self.session_id, directory=self._directory(),
                                up_to_message_id=parts.head[-1].uuid)
            self.session_id = fork.session_id
        else:
            self.session_id = None
        return "\n\n".join([*map(how.text, parts.carried), rewound.frame])

    def _directory(self) -> str | None:
        return str(self._folder) if self._folder else None

    def _prepared(self) -> ClaudeAgentOptions:
        """The developer's options with our tools and hooks, going on in our session."""
        options = replace(self._options, cwd=self._folder,
                          resume=self.session_id or self._options.resume)
        tools = self._rewinder.tools()
        if not tools or not isinstance(options.mcp_servers, dict):
            return options
        server = create_sdk_mcp_server(_SERVER, tools=[self._tool(tool) for tool in tools])
        hooks: dict[Any, list[HookMatcher]] = dict(options.hooks or {})
        ours = "|".join(_PREFIX + tool.name for tool in tools)
        hooks["PreToolUse"] = [*hooks.get("PreToolUse", ()),
                               HookMatcher(matcher=ours, hooks=[self._before])]
        hooks["PostToolBatch"] = [*hooks.get("PostToolBatch", ()),
                                  HookMatcher(hooks=[self._after_batch])]
        return replace(options, hooks=hooks,
                       mcp_servers={**options.mcp_servers, _SERVER: server},
                       allowed_tools=[*options.allowed_tools, *ours.split("|")])

    def _tool(self, tool: Tool) -> SdkMcpTool[Any]:
        async def run(arguments: dict[str, Any]) -> dict[str, Any]:
            call = next((pair for pair in self._called if pair[0] == tool.name), None)
            if call is not None:
                self._called.remove(call)
            failed = False
            try:
                text = str(await asyncio.to_thread(tool.run, arguments, call[1] if call else ""))
            except ToolError as error:
                text, failed = str(error), True
            return {"content": [{"type": "text", "text": text}], "is_error": failed}

        return SdkMcpTool(tool.name, tool.description, tool.parameters, run)

    async def _before(self, data: Any, call: str | None, context: Any) -> Any:
        if data.get("agent_id") and not self.workspace.gate.subagents:
            return {"hookSpecificOutput": {
                "hookEventName": "PreToolUse", "permissionDecision": "deny",
                "permissionDecisionReason": words.NOT_IN_SUBAGENTS}}
        self._called.append((str(data["tool_name"]).removeprefix(_PREFIX), call or ""))
        return {}

    async def _after_batch(self, data: Any, call: str | None, context: Any) -> Any:
        """All calls of a reply have answered: after a rewind, go on in the fork."""
        if data.get("agent_id"):
            return {}
        if self._rewinder.requested:
            return {"continue_": False, "stopReason": "The context is rewound."}
        self._rewinder.turn_end([])
        return {}


class _Transcript(Messages[SessionMessage]):
    def calls(self, message: SessionMessage) -> Sequence[Call]:
        return [Call(str(block.get("id")), str(block.get("name")).removeprefix(_PREFIX),
                     block.get("input"))
                for block in _blocks(message) if block.get("type") == "tool_use"]

    def results(self, message: SessionMessage) -> Sequence[Result]:
        return [Result(str(block.get("tool_use_id")), _said(block.get("content")))
                for block in _blocks(message) if block.get("type") == "tool_result"]

    def user(self, message: SessionMessage) -> SessionMessage | None:
        return message if message.type == "user" and not self.results(message) else None

    def text(self, message: SessionMessage) -> str:
        return _said(message.message.get("content"))

    def report(self, text: str) -> SessionMessage:
        return SessionMessage("user", "", "", {"role": "user", "content": text})


def _blocks(message: SessionMessage) -> list[Mapping[str, Any]]:
    content = message.message.get("content")
    return [block for block in content if isinstance(block, Mapping)] \
        if isinstance(content, list) else []


def _said(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts
                     if isinstance(part, Mapping) and isinstance(part.get("text"), str))
