"""LangChain: a middleware of its agents.

    agent = create_agent(model, tools, middleware=[RewindMiddleware("path/to/workspace")])
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any

from langchain.agents import AgentState
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from coderewind.context import Call, ContextRewind, Gate, Messages, Result, Tool, ToolError
from coderewind.frameworks.workspace import Folder, Workspace

_RUNS = 1000  # runs that can be under way at once; of one more the graph's state is read again


def _newest(_: object, new: dict[str, Any]) -> dict[str, Any]:
    return new


class RewindState(AgentState[Any]):
    """The agent's state, and what the tools know, so that a run can go on in another process."""

    rewind: Annotated[dict[str, Any], _newest, PrivateStateAttr]


class RewindMiddleware(AgentMiddleware[RewindState, Any, Any]):
    """The tools checkpoint and rewind, and checkpoints of a folder where a run begins and ends.

    Serves any number of threads. With a checkpointer the pruned messages are what it keeps.
    """

    state_schema = RewindState

    def __init__(self, workspace: Folder | None = None, *, gate: Gate | None = None) -> None:
        """`gate` is what the user allows; by default what their configuration says."""
        super().__init__()
        self.workspace = Workspace(workspace, "langchain", gate)
        self._offered = {tool.name: tool
                         for tool in self.workspace.rewinder(_LangChainMessages()).tools()}
        self.tools: Sequence[BaseTool] = [_declared(tool) for tool in self._offered.values()]
        self._runs: OrderedDict[str, ContextRewind[AnyMessage]] = OrderedDict()

    def before_agent(self, state: RewindState, runtime: object) -> dict[str, Any]:
        messages = state["messages"]
        self.workspace.prompted(str(messages[-1].text) if messages else "")
        rewinder = self._of(state)
        if not rewinder.windows:
            rewinder.resume(messages[:-1])
        rewinder.new_prompt()
        run = uuid.uuid4().hex
        self._keep(run, rewinder)
        return {"rewind": {"run": run, **rewinder.state()}}

    def before_model(self, state: RewindState, runtime: object) -> dict[str, Any]:
        messages = state["messages"]
        rewinder = self._of(state)
        pruned = rewinder.turn_end(messages)
        update: dict[str, Any] = {"rewind": {"run": _run(state), **rewinder.state()}}
        if len(pruned) != len(messages):
            update["messages"] = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *pruned]
        return update

    def after_agent(self, state: RewindState, runtime: object) -> dict[str, Any] | None:
        self._runs.pop(_run(state), None)
        self.workspace.stopped()
        return None

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return self._called(request) if self._is_ours(request) else handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        if self._is_ours(request):
            return await asyncio.to_thread(self._called, request)
        return await handler(request)

    def _is_ours(self, request: Any) -> bool:
        return request.tool_call["name"] in self._offered

    def _called(self, request: Any) -> ToolMessage:
        call = request.tool_call
        rewinder = self._of(request.state)
        tool = next(tool for tool in rewinder.tools() if tool.name == call["name"])
        try:
            text, failed = str(tool.run(call["args"], call["id"])), False
        except ToolError as error:
            text, failed = str(error), True
        return ToolMessage(text, tool_call_id=call["id"], name=call["name"],
                           status="error" if failed else "success")

    def _of(self, state: Mapping[str, Any]) -> ContextRewind[AnyMessage]:
        """The conversation that a state belongs to; from the state when it began elsewhere."""
        run = _run(state)
        found = self._runs.get(run)
        if found is None:
            found = self.workspace.rewinder(_LangChainMessages())
            found.load(state.get("rewind") or {})
            self._keep(run, found)
        return found

    def _keep(self, run: str, rewinder: ContextRewind[AnyMessage]) -> None:
        if run:
            self._runs[run] = rewinder
            while len(self._runs) > _RUNS:
                self._runs.popitem(last=False)


class _LangChainMessages(Messages[AnyMessage]):
    def calls(self, message: AnyMessage) -> Sequence[Call]:
        if not isinstance(message, AIMessage):
            return ()
        made = [*message.tool_calls, *message.invalid_tool_calls]
        return [Call(call["id"] or "", call["name"] or "", call["args"]) for call in made]

    def results(self, message: AnyMessage) -> Sequence[Result]:
        if not isinstance(message, ToolMessage):
            return ()
        return [Result(message.tool_call_id, str(message.text))]

    def user(self, message: AnyMessage) -> AnyMessage | None:
        return message if isinstance(message, HumanMessage) else None

    def text(self, message: AnyMessage) -> str:
        return str(message.text)

    def report(self, text: str) -> AnyMessage:
        return HumanMessage(text)

    def stays(self, message: AnyMessage) -> bool:
        return isinstance(message, SystemMessage)


def _declared(tool: Tool) -> BaseTool:
    """What the model is told of a tool; its calls are answered by the middleware."""

    def run(**_: object) -> str:
        raise ToolError("this tool works only inside an agent that has RewindMiddleware")

    return StructuredTool(name=tool.name, description=tool.description, func=run,
                          args_schema=tool.parameters)


def _run(state: Mapping[str, Any]) -> str:
    return str((state.get("rewind") or {}).get("run", ""))
