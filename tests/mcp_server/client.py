"""The SDK's client, talking to the real `rewind mcp` over its stdin and stdout."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from corpus.box import Box
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import ElicitResult


class Agent:
    """What an agent can do: call tools and read resources, synchronously."""

    def __init__(self, box: Box, mode: str = "auto", user: str | None = None) -> None:
        """`user` answers what the agent's user is asked: accept, refuse, decline, cancel; with
        None the client cannot ask."""
        self.box = box
        self.mode = mode
        self.user = user
        self.asked: list[str] = []

    def do(self, what: Callable[[Client], Awaitable[Any]]) -> Any:
        async def talk() -> Any:
            server = StdioServerParameters(
                command=sys.executable, args=["-m", "coderewind", "mcp"], cwd=self.box.project,
                env=self.box.env)
            answer: Any = self._answer if self.user else None
            async with Client(server, mode=self.mode, elicitation_callback=answer) as client:
                return await what(client)

        return asyncio.run(talk())

    async def _answer(self, _context: Any, params: Any) -> ElicitResult:
        self.asked.append(str(params.message))
        if self.user in ("decline", "cancel"):
            return ElicitResult(action="decline" if self.user == "decline" else "cancel")
        return ElicitResult(action="accept", content={"go_on": self.user == "accept"})

    def tools(self) -> dict[str, Any]:
        async def what(client: Client) -> Any:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

        return dict(self.do(what))

    def call(self, name: str, **given: Any) -> Any:
        """A tool's answer; it must succeed."""
        return self.calls((name, given))[0]

    def refused(self, name: str, **given: Any) -> str:
        """What a call is refused with."""
        return self.refusals((name, given))[0]

    def refusals(self, *steps: tuple[str, dict[str, Any]]) -> list[str]:
        """What each call of one session is refused with: one line, and no traceback."""

        async def what(client: Client) -> Any:
            results = [await client.call_tool(name, given) for name, given in steps]
            assert all(result.is_error for result in results), results
            return [said(result) for result in results]

        refusals = list(self.do(what))
        for words in refusals:
            assert words
            assert "\n" not in words
            assert "Traceback" not in words
        return refusals

    def calls(self, *steps: tuple[str, dict[str, Any]]) -> list[Any]:
        """Calls of one session; `plan=TOKEN` stands for the token of the step before."""

        async def what(client: Client) -> Any:
            answers: list[Any] = []
            for name, given in steps:
                if given.get("plan") == "TOKEN":
                    given = {**given, "plan": answers[-1]["token"]}
                result = await client.call_tool(name, given)
                text = said(result)
                if result.is_error:
                    answers.append(text)
                else:
                    answers.append(result.structured_content or text)
            return answers

        return list(self.do(what))

    def read(self, uri: str) -> str:
        async def what(client: Client) -> Any:
            try:
                contents: Any = (await client.read_resource(uri)).contents[0]
                return contents.text
            except MCPError as error:
                return f"refused: {error.error.message}"

        return str(self.do(what))


def said(result: Any) -> str:
    """The words of a tool's answer."""
    return str(result.content[0].text)
