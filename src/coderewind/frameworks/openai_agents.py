"""OpenAI Agents SDK: hooks, tools, an input filter and a session, for one conversation.

    rewind = RewindHooks("path/to/workspace")
    agent = Agent(name="coder", tools=[*rewind.tools])
    await Runner.run(agent, prompt, session=rewind.session(SQLiteSession("s")), hooks=rewind,
                     run_config=rewind.run_config())
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.lifecycle import RunHooks
from agents.memory import Session
from agents.run import CallModelData, ModelInputData, RunConfig
from agents.tool import FunctionTool
from agents.tool_context import ToolContext

from coderewind.context import Call, Gate, Messages, Result, Tool, ToolError
from coderewind.frameworks.replay import Replay
from coderewind.frameworks.workspace import Folder, Workspace

Item = Any  # a dictionary of the Responses API


class RewindHooks(RunHooks[Any]):
    """The tools checkpoint and rewind, and checkpoints of a folder where a run begins and ends.

    One object for each conversation. Without `session` the SDK's own history stays whole, and the
    windows are left out of each request as long as this object is used.
    """

    def __init__(self, workspace: Folder | None = None, *, gate: Gate | None = None) -> None:
        """`gate` is what the user allows; by default what their configuration says."""
        self.workspace = Workspace(workspace, "openai-agents", gate)
        self._replay = Replay(self.workspace.rewinder(_Items()))
        self.tools = [_function(tool) for tool in self._replay.rewinder.tools()]

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """A configuration with our filter, after the one that it has already."""
        config = config or RunConfig()
        first = config.call_model_input_filter

        async def filtered(data: CallModelData[Any]) -> ModelInputData:
            if first is not None:
                found = first(data)
                found = await found if inspect.isawaitable(found) else found
                data = replace(data, model_data=found)
            items = await asyncio.to_thread(self._request, data.model_data.input)
            return replace(data.model_data, input=items)

        return replace(config, call_model_input_filter=filtered)

    def session(self, session: Session) -> PrunedSession:
        """A session whose store is pruned as well, so that another process goes on from there."""
        return PrunedSession(session, self._replay)

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        await asyncio.to_thread(self.workspace.stopped)

    def _request(self, items: list[Item]) -> list[Item]:
        how = self._replay.rewinder.how
        if items and how.user(items[-1]) is not None:  # the user has just spoken
            self.workspace.prompted(how.text(items[-1]))
            self._replay.rewinder.new_prompt()
        return self._replay.request(items)


class PrunedSession:
    """A session of the SDK without the windows that were rewound."""

    def __init__(self, inner: Session, replay: Replay[Item]) -> None:
        self._inner = inner
        self._replay = replay
        self.session_id = inner.session_id
        self.session_settings = inner.session_settings

    async def get_items(self, limit: int | None = None) -> list[Item]:
        items: list[Item] = await self._inner.get_items(limit)
        return items

    async def add_items(self, items: list[Item]) -> None:
        await self._inner.add_items(items)
        await self._prune()

    async def pop_item(self) -> Item | None:
        return await self._inner.pop_item()

    async def clear_session(self) -> None:
        await self._inner.clear_session()

    async def _prune(self) -> None:
        """Take the end off up to where the windows begin, and put what stays in its place."""
        if not self._replay.closed:
            return
        stored = await self._inner.get_items()
        pruned = self._replay.seen(stored)
        same = next((i for i, pair in enumerate(zip(stored, pruned, strict=False))
                     if pair[0] != pair[1]), min(len(stored), len(pruned)))
        if same == len(stored):
            return
        for _ in stored[same:]:
            await self._inner.pop_item()
        await self._inner.add_items(pruned[same:])


class _Items(Messages[Item]):
    def calls(self, message: Item) -> Sequence[Call]:
        if message.get("type") != "function_call":
            return ()
        return [Call(message["call_id"], message["name"], _arguments(message["arguments"]))]

    def results(self, message: Item) -> Sequence[Result]:
        if message.get("type") != "function_call_output":
            return ()
        return [Result(message["call_id"], _words(message["output"]))]

    def user(self, message: Item) -> Item | None:
        return message if message.get("role") == "user" else None

    def text(self, message: Item) -> str:
        return _words(message.get("content"))

    def report(self, text: str) -> Item:
        return {"role": "user", "content": text}

    def stays(self, message: Item) -> bool:
        return message.get("role") in ("system", "developer")


def _function(tool: Tool) -> FunctionTool:
    async def run(context: ToolContext[Any], arguments: str) -> str:
        given = _arguments(arguments)
        if not isinstance(given, Mapping):
            return "The arguments must be a JSON object."
        try:
            return str(await asyncio.to_thread(tool.run, given, context.tool_call_id))
        except ToolError as error:
            return str(error)

    return FunctionTool(tool.name, tool.description, tool.parameters, run, strict_json_schema=False)


def _arguments(text: str) -> object:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts
                     if isinstance(part, Mapping) and isinstance(part.get("text"), str))
