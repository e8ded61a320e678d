"""A scripted model, and sessions that it drives."""

from collections.abc import Callable, Iterable, Mapping

from coderewind.context import AgentSession, Call, Files, Gate, Reply, SessionTree, Tool
from coderewind.context.persist import Json
from coderewind.context.projection import text_of

Step = Reply | str | Callable[[], Reply | str]

ON = Gate(enabled=True)


class Script:
    """A model that answers with one step after the other, and keeps what it was sent."""

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.requests: list[list[Json]] = []
        self.offered: list[list[str]] = []

    def __call__(self, messages: list[Json], tools: list[Tool]) -> Reply | str:
        self.requests.append(messages)
        self.offered.append([tool.name for tool in tools])
        step = self.steps.pop(0)
        return step() if callable(step) else step

    @property
    def last(self) -> list[str]:
        """The words of the last request, message by message."""
        return [text_of(message) for message in self.requests[-1]]


_ids = iter(range(10**9))


def call(tool: str, /, **arguments: object) -> Call:
    return Call(f"call_{next(_ids)}", tool, arguments)


def calls(*several: Call) -> Reply:
    return Reply(calls=several)


def checkpoint(goal: str = "the goal", **more: object) -> Reply:
    return calls(call("checkpoint", goal=goal, **more))


def rewind(report: str = "FINDINGS", **more: object) -> Reply:
    return calls(call("rewind", report=report, **more))


def read(n: int = 0) -> Reply:
    return calls(call("read", n=n))


def _read(arguments: Mapping[str, object], id: str) -> str:
    return f"CONTENT {arguments.get('n')}"


READ = Tool("read", "read a file", {"type": "object", "properties": {"n": {"type": "integer"}}},
            _read)


def session(
    *steps: Step, tree: SessionTree | None = None, files: Files | None = None,
    gate: Gate = ON, tools: Iterable[Tool] = (READ,),
) -> tuple[AgentSession, Script]:
    model = Script(*steps)
    return AgentSession(model, list(tools), tree=tree, files=files, gate=gate), model
