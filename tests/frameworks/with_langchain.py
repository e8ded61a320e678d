"""LangChain with a scripted chat model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver

from coderewind.context import Gate
from coderewind.frameworks.langchain import RewindMiddleware

from .driver import Driver, Request, Row

_VARYING = ("id", "additional_kwargs", "response_metadata", "usage_metadata")


class LangChain(Driver):
    name = "langchain"

    def make(self, workspace: Any, gate: Gate | None) -> None:
        explore = StructuredTool.from_function(self.explore, name="explore", description="look")
        self.model = _Scripted(driver=self)
        self.agent: Any = create_agent(self.model, tools=[explore],
                                       middleware=[RewindMiddleware(workspace, gate=gate)],
                                       checkpointer=InMemorySaver())

    def send(self, prompt: str) -> None:
        self.agent.invoke({"messages": [HumanMessage(prompt)]},
                          {"configurable": {"thread_id": "t"}, "recursion_limit": 10_000})

    def heard(self, messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        raw = [{key: value for key, value in message.model_dump().items() if key not in _VARYING}
               for message in messages]
        rows = [row for message in messages for row in _rows(message)]
        self.requests.append(Request(rows, raw, tools))
        step = self.steps.pop(0)
        if isinstance(step, str):
            return AIMessage(step)
        return AIMessage("", tool_calls=[{"name": name, "args": given, "id": self.next_id()}
                                         for name, given in step])


class _Scripted(BaseChatModel):
    driver: Any
    tools: Any = ()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Any:
        return self.model_copy(update={"tools": [tool.name for tool in tools]})

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None,
                  **more: Any) -> ChatResult:
        answer = self.driver.heard(messages, list(self.tools))
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _rows(message: BaseMessage) -> list[Row]:
    if isinstance(message, AIMessage):
        said = [Row("said", str(message.text))] if message.text else []
        return said + [Row("call", call["name"]) for call in message.tool_calls]
    kind = {"human": "user", "tool": "result"}[message.type]
    return [Row(kind, str(message.text))]
