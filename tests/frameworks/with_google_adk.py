"""Google ADK with a scripted model and a session in memory."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own experimental and deprecated parts, at import
    from google.adk.agents import LlmAgent
    from google.adk.apps import App
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

from coderewind.context import Gate
from coderewind.frameworks.google_adk import RewindPlugin

from .driver import Driver, Request, Row


class GoogleADK(Driver):
    name = "google-adk"

    def make(self, workspace: Any, gate: Gate | None) -> None:
        def explore(n: int) -> str:
            """Look."""
            return self.explore(n)

        self.model = _Scripted(model="scripted", driver=self)
        agent = LlmAgent(name="a", model=self.model, tools=[explore])
        app = App(name="demo", root_agent=agent, plugins=[RewindPlugin(workspace, gate=gate)])
        self.runner = InMemoryRunner(app=app)
        self.session = asyncio.run(self.runner.session_service.create_session(
            app_name="demo", user_id="u")).id

    def send(self, prompt: str) -> None:
        async def talk() -> None:
            said = types.Content(role="user", parts=[types.Part(text=prompt)])
            async for _ in self.runner.run_async(user_id="u", session_id=self.session,
                                                 new_message=said):
                pass

        asyncio.run(talk())

    def heard(self, request: LlmRequest) -> types.Content:
        rows = [_row(content, part) for content in request.contents for part in content.parts or ()]
        raw = [content.model_dump(mode="json", exclude_none=True) for content in request.contents]
        declared = [declaration.name for tool in request.config.tools or ()
                    for declaration in getattr(tool, "function_declarations", None) or ()]
        self.requests.append(Request(rows, raw, [name or "" for name in declared]))
        step = self.steps.pop(0)
        parts = [types.Part(text=step)] if isinstance(step, str) else [
            types.Part(function_call=types.FunctionCall(name=name, args=given))
            for name, given in step]
        return types.Content(role="model", parts=parts)


class _Scripted(BaseLlm):
    driver: Any

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=self.driver.heard(llm_request))


def _row(content: types.Content, part: types.Part) -> Row:
    if part.function_call:
        return Row("call", part.function_call.name or "")
    if part.function_response:
        answer = part.function_response.response or {}
        return Row("result", str(answer.get("result", answer.get("error"))))
    return Row("user" if content.role == "user" else "said", part.text or "")
