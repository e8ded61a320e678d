"""The OpenAI Agents SDK with a scripted model and a session in SQLite, in a process of its own.

Its package is called `agents`, as a folder of these tests is. One JSON line begins a conversation,
or asks for a run in it; what comes back are the requests, and calls of `explore` on the way, each
of which wants a line with its result.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from agents.agent import Agent
from agents.items import ModelResponse
from agents.memory import SQLiteSession
from agents.models.interface import Model
from agents.run import RunConfig, Runner
from agents.tool import FunctionTool
from agents.usage import Usage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from coderewind.context import Gate
from coderewind.frameworks.openai_agents import RewindHooks

_SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Scripted(Model):
    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.ids = 0

    async def get_response(self, system_instructions: Any, input: Any, model_settings: Any,
                           tools: list[Any], *rest: Any, **more: Any) -> ModelResponse:
        say({"request": list(input), "tools": [tool.name for tool in tools]})
        step = self.steps.pop(0)
        output: list[Any] = []
        if isinstance(step, str):
            said = ResponseOutputText(type="output_text", text=step, annotations=[])
            output.append(ResponseOutputMessage(id="m", type="message", role="assistant",
                                                status="completed", content=[said]))
        for name, given in step if isinstance(step, list) else ():
            self.ids += 1
            output.append(ResponseFunctionToolCall(
                type="function_call", call_id=f"call_{self.ids}", name=name,
                arguments=json.dumps(given)))
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *rest: Any, **more: Any) -> Any:
        raise NotImplementedError


async def explore(context: Any, arguments: str) -> str:
    say({"explore": json.loads(arguments)["n"]})
    return str(json.loads(sys.stdin.readline()))


def say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def main() -> None:
    agent: Any = None
    for line in sys.stdin:
        asked = json.loads(line)
        if "begin" in asked:
            os.environ.clear()
            os.environ.update(asked["env"])
            gate = None if asked["gate"] is None else Gate(**asked["gate"])
            rewind = RewindHooks(asked["begin"], gate=gate)
            model = Scripted()
            look = FunctionTool("explore", "look", _SCHEMA, explore, strict_json_schema=False)
            agent = Agent("a", model=model, tools=[look, *rewind.tools])
            store = SQLiteSession("s")
            say({"ready": True})
            continue
        model.steps = asked["steps"]
        config = rewind.run_config(RunConfig(tracing_disabled=True))
        asyncio.run(Runner.run(agent, asked["prompt"], session=rewind.session(store),
                               hooks=rewind, run_config=config, max_turns=1000))
        say({"stored": asyncio.run(store.get_items())})


if __name__ == "__main__":
    main()
