"""Google ADK: a plugin of an app, for all its agents and sessions.

    app = App(name="coder", root_agent=agent, plugins=[RewindPlugin("path/to/workspace")])
"""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.genai import types

from coderewind.context import Call, Gate, Messages, Result, Tool, ToolError
from coderewind.context.words import is_frame
from coderewind.frameworks.replay import Closed, Replay
from coderewind.frameworks.workspace import Folder, Workspace

_CLOSED = "rewind:closed"  # in the session's state: the windows that were rewound
_SESSION = "rewind:session"  # whose state it is; an agent that runs as a tool inherits a copy
_CALL = "call"  # in our tools' answers: the call's id, which ADK takes out of requests
_SESSIONS = 1000  # conversations at once; of one more the session's state is read again


class RewindPlugin(BasePlugin):
    """The tools checkpoint and rewind, and checkpoints of a folder where a run begins and ends.

    The root agent gets the tools; agents below it do not. ADK's sessions stay whole: the windows
    are left out of each request, and which they are is in the session's state.
    """

    def __init__(
        self, workspace: Folder | None = None, *, gate: Gate | None = None, name: str = "rewind"
    ) -> None:
        """`gate` is what the user allows; by default what their configuration says."""
        super().__init__(name=name)
        self.workspace = Workspace(workspace, "google-adk", gate)
        self._talks: OrderedDict[str, _Talk] = OrderedDict()

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        words = _text(invocation_context.user_content)
        await asyncio.to_thread(self.workspace.prompted, words, invocation_context.session.id)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        session = callback_context.session
        state = callback_context.state
        talk = self._of(session.id, state)
        contents = _numbered(llm_request.contents)
        if talk.run != callback_context.invocation_id:
            talk.begin(callback_context.invocation_id, contents)
        before = len(talk.replay.closed)
        seen = await asyncio.to_thread(talk.replay.request, contents)
        llm_request.contents = [numbered.content for numbered in seen]
        if len(talk.replay.closed) != before:
            state[_CLOSED] = [list(closed) for closed in talk.replay.closed]
        owner = state.get(_SESSION)
        if owner is None:
            state[_SESSION] = session.id
        if self._is_root(callback_context) and owner in (None, session.id):
            llm_request.append_tools([_AdkTool(tool) for tool in talk.replay.rewinder.tools()])

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        await asyncio.to_thread(self.workspace.stopped, invocation_context.session.id)

    def _of(self, session: str, state: Mapping[str, Any]) -> _Talk:
        if session not in self._talks:
            kept = state.get(_CLOSED) or ()
            closed = [Closed(*map(str, row)) for row in kept if len(row) == len(Closed._fields)]
            self._talks[session] = _Talk(Replay(self.workspace.rewinder(_Contents()), closed))
            while len(self._talks) > _SESSIONS:
                self._talks.popitem(last=False)
        self._talks.move_to_end(session)
        return self._talks[session]

    @staticmethod
    def _is_root(callback_context: Any) -> bool:
        agent = callback_context.get_invocation_context().agent
        return bool(agent.parent_agent is None)


class _Talk:
    """One session."""

    def __init__(self, replay: Replay[_Numbered]) -> None:
        self.replay = replay
        self.run = ""

    def begin(self, run: str, contents: Sequence[_Numbered]) -> None:
        """The user has spoken."""
        self.run = run
        rewinder = self.replay.rewinder
        if not rewinder.windows:
            rewinder.resume(self.replay.seen(contents[:-1]))
        rewinder.new_prompt()


class _AdkTool(BaseTool):
    def __init__(self, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._tool = tool

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(name=self.name, description=self.description,
                                         parameters_json_schema=self._tool.parameters)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> dict[str, Any]:
        call = tool_context.function_call_id or ""
        try:
            text = str(await asyncio.to_thread(self._tool.run, args, call))
        except ToolError as error:
            return {"error": str(error), _CALL: call}
        return {"result": text, _CALL: call}


class _Numbered:
    """A content, and the ids of its calls and answers: requests have none."""

    __slots__ = ("calls", "content", "results")

    def __init__(self, content: types.Content) -> None:
        self.content = content
        self.calls: list[Call] = []
        self.results: list[Result] = []


def _numbered(contents: Iterable[types.Content]) -> list[_Numbered]:
    """Pair calls and answers: by their ids, else in the order of each tool's name.

    The answers of our own tools say which call they are for, so those ids are the real ones.
    """
    ids = itertools.count()
    waiting: dict[str, deque[tuple[_Numbered, int]]] = defaultdict(deque)
    numbered = []
    for content in contents:
        one = _Numbered(content)
        numbered.append(one)
        for part in content.parts or ():
            call, answer = part.function_call, part.function_response
            if call:
                one.calls.append(Call(call.id or f"#{next(ids)}", call.name or "", call.args))
                waiting[call.name or ""].append((one, len(one.calls) - 1))
            if answer:
                said = answer.response or {}
                asked = waiting[answer.name or ""]
                at = asked.popleft() if asked else None
                id = str(said.get(_CALL) or answer.id or (at and at[0].calls[at[1]].id) or "")
                if at:
                    at[0].calls[at[1]] = at[0].calls[at[1]]._replace(id=id)
                one.results.append(Result(id, str(said.get("result", said.get("error", said)))))
    return numbered


class _Contents(Messages[_Numbered]):
    def calls(self, message: _Numbered) -> Sequence[Call]:
        return message.calls

    def results(self, message: _Numbered) -> Sequence[Result]:
        return message.results

    def user(self, message: _Numbered) -> _Numbered | None:
        content = message.content
        if content.role != "user":
            return None
        own = [part for part in content.parts or ()
               if not part.function_response and not is_frame(part.text or "")]
        if len(own) == len(content.parts or ()):
            return message
        return _Numbered(types.Content(role="user", parts=own)) if own else None

    def text(self, message: _Numbered) -> str:
        return _text(message.content)

    def report(self, text: str) -> _Numbered:
        return _Numbered(types.Content(role="user", parts=[types.Part(text=text)]))


def _text(content: types.Content | None) -> str:
    parts = content.parts if content else None
    return "\n".join(part.text for part in parts or () if part.text)
