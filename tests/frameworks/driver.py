"""A framework with a scripted model: what the model is really sent, request by request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from coderewind.context import Gate

Call = tuple[str, dict[str, Any]]
Step = list[Call] | str  # calls made in one reply, or the last words


class Row(NamedTuple):
    """One thing in a request: what the user said, a call, a result, what the model said."""

    kind: str
    text: str


class Request:
    """What the model was sent."""

    def __init__(self, rows: list[Row], raw: list[Any], tools: list[str]) -> None:
        self.rows = rows
        self.raw = [json.dumps(item, sort_keys=True, default=str) for item in raw]
        self.tools = tools

    @property
    def kinds(self) -> list[str]:
        return [row.kind for row in self.rows]

    @property
    def text(self) -> str:
        return "\n".join(row.text for row in self.rows)

    def of(self, kind: str) -> list[str]:
        return [row.text for row in self.rows if row.kind == kind]

    @property
    def size(self) -> int:
        return sum(len(item.encode()) for item in self.raw)


class Driver:
    """One conversation of one framework, with our adapter and a tool `explore`."""

    name: ClassVar[str]

    def __init__(self, workspace: Any = None, gate: Gate | None = None) -> None:
        self.contents: Callable[[int], str] = lambda n: "x" * 500  # what exploring finds
        self.requests: list[Request] = []
        self.steps: list[Step] = []
        self.explored: list[Any] = []
        self.ids = 0
        self.make(workspace, gate)

    def make(self, workspace: Any, gate: Gate | None) -> None:
        """Build the agent."""
        raise NotImplementedError

    def send(self, prompt: str) -> None:
        """One turn of the user, going on in the conversation."""
        raise NotImplementedError

    def run(self, prompt: str, *steps: Step) -> Request:
        """One turn in which the model answers with `steps`; the last request of it."""
        self.steps = list(steps)
        self.send(prompt)
        assert self.steps == [], "the run ended early"
        return self.requests[-1]

    def explore(self, n: int) -> str:
        """The tool that agents explore with."""
        for action in self.explored:
            action()
        return f"CONTENT{n} {self.contents(n)}"

    def next_id(self) -> str:
        self.ids += 1
        return f"call_{self.ids}"
