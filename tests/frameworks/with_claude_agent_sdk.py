"""The Claude Agent SDK with the real Claude Code and a fake model on loopback."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from agents.fake_model import FakeModel, Json, call, text
from agents.install import program
from claude_agent_sdk import ClaudeAgentOptions, SdkMcpTool, create_sdk_mcp_server

from coderewind.context import Gate
from coderewind.frameworks.claude_agent_sdk import RewindClient

from .driver import Driver, Request, Row

_SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
_FILLER = "No response requested."  # Claude Code's own, where a session is taken up again


class ClaudeAgentSDK(Driver):
    name = "claude-agent-sdk"

    def make(self, workspace: Any, gate: Gate | None) -> None:
        self.model = _Scripted(self)
        env = {"ANTHROPIC_BASE_URL": self.model.url, "ANTHROPIC_API_KEY": "dummy",
               "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
               "ENABLE_TOOL_SEARCH": "false", "NO_PROXY": "127.0.0.1",
               "TMPDIR": os.environ["HOME"]}

        async def explore(arguments: dict[str, Any]) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": self.explore(arguments["n"])}]}

        tool = SdkMcpTool("explore", "look", _SCHEMA, explore)
        look = create_sdk_mcp_server("look", tools=[tool])
        options = ClaudeAgentOptions(
            cli_path=program("claude"), env=env, tools=[], setting_sources=[],
            mcp_servers={"look": look}, allowed_tools=["mcp__look__explore"], max_turns=1000)
        if workspace is None:
            options.cwd = os.environ["HOME"]
        self.client = RewindClient(workspace, options=options, gate=gate)

    def send(self, prompt: str) -> None:
        async def talk() -> None:
            async for _ in self.client.query(prompt):
                pass

        asyncio.run(talk())

    def heard(self, body: Json) -> list[Json]:
        rows, raw = [], []
        for message in body["messages"]:
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for block in blocks:
                row = _row(message["role"], block)
                if row is not None:
                    rows.append(row)
                    raw.append({key: value for key, value in block.items()
                                if key != "cache_control"})
        tools = [tool["name"].rpartition("__")[2] for tool in body["tools"]]
        self.requests.append(Request(rows, raw, tools))
        step = self.steps.pop(0)
        if isinstance(step, str):
            return [text(step)]
        return [call(f"mcp__{'look' if name == 'explore' else 'rewind'}__{name}", **given)
                for name, given in step]


class _Scripted(FakeModel):
    def __init__(self, driver: ClaudeAgentSDK) -> None:
        super().__init__()
        self.driver = driver

    def answer(self, body: Json) -> list[Json]:
        return self.driver.heard(body) if body.get("tools") else super().answer(body)


def _row(role: str, block: Json) -> Row | None:
    if block["type"] == "tool_use":
        return Row("call", block["name"].rpartition("__")[2])
    if block["type"] == "tool_result":
        said = block["content"]
        return Row("result", said if isinstance(said, str) else said[0]["text"])
    words = block.get("text", "")
    if role == "system":
        return None
    if not words or words.startswith("<system-reminder>") or words == _FILLER:
        return None
    return Row("user" if role == "user" else "said", words)
