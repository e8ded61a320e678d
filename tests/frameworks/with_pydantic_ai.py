"""pydantic-ai with its FunctionModel."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from coderewind.context import Gate
from coderewind.frameworks.pydantic_ai import RewindCapability

from .driver import Driver, Request, Row

_KINDS = {"user-prompt": "user", "tool-call": "call", "tool-return": "result", "text": "said",
          "retry-prompt": "result"}
_VARYING = ("timestamp", "run_id", "usage", "conversation_id")


class PydanticAI(Driver):
    name = "pydantic-ai"

    def make(self, workspace: Any, gate: Gate | None) -> None:
        self.model = FunctionModel(self._model)
        self.agent = Agent(self.model,
                           capabilities=[RewindCapability(workspace, gate=gate)])
        self.agent.tool_plain(self.explore)
        self.history: list[ModelMessage] = []

    def send(self, prompt: str) -> None:
        # its run_sync leaves an event loop behind that nobody closes
        result = asyncio.run(self.agent.run(prompt, message_history=self.history,
                                            usage_limits=UsageLimits(request_limit=None)))
        self.history = result.all_messages()

    def _model(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        rows = [Row(_KINDS[part.part_kind], _text(part))
                for message in messages for part in message.parts]
        raw = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
        tools = [tool.name for tool in info.function_tools]
        parts = [_fixed(part) for message in raw for part in message["parts"]]
        self.requests.append(Request(rows, parts, tools))
        step = self.steps.pop(0)
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        return ModelResponse(parts=[ToolCallPart(name, given, self.next_id())
                                    for name, given in step])


def _text(part: Any) -> str:
    if part.part_kind == "tool-call":
        return str(part.tool_name)
    return str(part.content)


def _fixed(value: Any) -> Any:
    """Without what is not sent to a model."""
    if isinstance(value, dict):
        return {key: _fixed(item) for key, item in value.items() if key not in _VARYING}
    return [_fixed(item) for item in value] if isinstance(value, list) else value
