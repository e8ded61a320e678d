"""pydantic-ai: a capability.

    agent = Agent(model, capabilities=[RewindCapability("path/to/workspace")])
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic_ai import ModelRequestContext, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.run import AgentRunResult
from pydantic_ai.toolsets import FunctionToolset

from coderewind import context
from coderewind.context import Call, Gate, Messages, Result, ToolError
from coderewind.context.words import is_frame
from coderewind.frameworks.workspace import Folder, Workspace


class RewindCapability(AbstractCapability[Any]):
    """The tools checkpoint and rewind, and checkpoints of a folder at each run's begin and end."""

    def __init__(
        self, workspace: Folder | Workspace | None = None, *, gate: Gate | None = None
    ) -> None:
        """`gate` is what the user allows; by default what their configuration says."""
        self.workspace = (workspace if isinstance(workspace, Workspace)
                          else Workspace(workspace, "pydantic-ai", gate))
        self._rewinder = self.workspace.rewinder(_PydanticMessages())
        self._begun = False

    async def for_run(self, ctx: RunContext[Any]) -> RewindCapability:
        return RewindCapability(self.workspace)

    def get_toolset(self) -> FunctionToolset[Any]:
        return FunctionToolset([self._tool(tool) for tool in self._rewinder.tools()])

    async def before_run(self, ctx: RunContext[Any]) -> None:
        prompt = ctx.prompt
        words = prompt if isinstance(prompt, str) else _words(prompt or ())
        await asyncio.to_thread(self.workspace.prompted, words, ctx.conversation_id or "")

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        messages = request_context.messages
        if not self._begun:
            self._begun = True
            self._rewinder.resume(messages[:-1])
            self._rewinder.new_prompt()
        pruned = await asyncio.to_thread(self._rewinder.turn_end, messages)
        if len(pruned) != len(messages):
            request_context.messages = pruned
            ctx.messages[:] = pruned  # the run's own history, and so the result's
        return request_context

    async def after_run(
        self, ctx: RunContext[Any], *, result: AgentRunResult[Any]
    ) -> AgentRunResult[Any]:
        await asyncio.to_thread(self.workspace.stopped, ctx.conversation_id or "")
        return result

    def _tool(self, tool: context.Tool) -> Tool[Any]:
        def run(ctx: RunContext[Any], **arguments: object) -> object:
            try:
                return tool.run(arguments, ctx.tool_call_id or "")
            except ToolError as error:
                raise ToolFailed(str(error)) from None

        return Tool.from_schema(run, tool.name, tool.description, tool.parameters, takes_ctx=True)


class _PydanticMessages(Messages[ModelMessage]):
    def calls(self, message: ModelMessage) -> Sequence[Call]:
        if not isinstance(message, ModelResponse):
            return ()
        return [Call(part.tool_call_id, part.tool_name, part.args)
                for part in message.parts if isinstance(part, ToolCallPart)]

    def results(self, message: ModelMessage) -> Sequence[Result]:
        if not isinstance(message, ModelRequest):
            return ()
        return [Result(part.tool_call_id, _text_of_result(part)) for part in message.parts
                if isinstance(part, ToolReturnPart)
                or (isinstance(part, RetryPromptPart) and part.tool_name)]

    def user(self, message: ModelMessage) -> ModelMessage | None:
        if not isinstance(message, ModelRequest):
            return None
        own = [part for part in message.parts  # a report may have been merged with a prompt
               if isinstance(part, UserPromptPart) and not is_frame(_said(part))]
        if len(own) == len(message.parts):
            return message
        return ModelRequest(parts=own) if own else None

    def text(self, message: ModelMessage) -> str:
        return "\n".join(_said(part) for part in message.parts if isinstance(part, UserPromptPart))

    def report(self, text: str) -> ModelMessage:
        return ModelRequest(parts=[UserPromptPart(text)])

    def stays(self, message: ModelMessage) -> bool:
        return any(isinstance(part, SystemPromptPart) for part in message.parts)


def _said(part: UserPromptPart) -> str:
    return part.content if isinstance(part.content, str) else _words(part.content)


def _words(content: Sequence[object]) -> str:
    return "\n".join(item for item in content if isinstance(item, str))


def _text_of_result(part: ToolReturnPart | RetryPromptPart) -> str:
    if isinstance(part, ToolReturnPart):
        return str(part.model_response_str())
    return str(part.model_response())
