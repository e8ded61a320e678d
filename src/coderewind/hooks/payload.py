"""What an agent says on a hook's stdin, validated: everything in it is somebody else's word.

A field of the wrong type counts as missing. Ids become parts of file names, so they hold nothing
but letters, digits and a few signs.
"""

from __future__ import annotations

from coderewind.errors import RewindError
from coderewind.hooks.names import CLAUDE, DROID
from coderewind.model import json

_LONGEST_ID = 128
_LONGEST_PATH = 4096


class Call:
    """One call of a tool."""

    __slots__ = ("id", "input", "name")

    def __init__(self, name: str, id_: str, input_: dict[str, object]) -> None:
        self.name = name
        self.id = id_
        self.input = input_


class Event:
    """One event of an agent."""

    __slots__ = (
        "agent",
        "agent_type",
        "arguments",
        "calls",
        "command",
        "cwd",
        "message_id",
        "name",
        "prompt",
        "prompt_id",
        "session",
        "source",
        "subagent",
        "subagent_transcript",
        "transcript",
    )

    def __init__(self, agent: str, name: str, data: dict[str, object]) -> None:
        self.agent = agent
        self.name = name
        self.session = _id(data.get("session_id"))
        self.transcript = _path(data.get("transcript_path"))
        self.cwd = _path(data.get("cwd"))
        self.prompt_id = _id(data.get("prompt_id"))
        self.message_id = _id(data.get("message_id"))
        self.prompt = _text(data.get("prompt"))
        self.source = next((_text(data[key]) for key in ("source", "reason", "trigger")
                            if key in data), "")  # why a session began or ended, or is compacted
        self.subagent = _id(data.get("agent_id"))  # '' for the session's own agent
        self.subagent_transcript = ""  # where that has a session file of its own, as in Droid
        self.agent_type = _text(data.get("agent_type"))[:40]
        self.calls = _calls(data)
        self.command = _text(data.get("command_name"))  # a slash command, and what follows it
        self.arguments = _text(data.get("command_args"))

    @property
    def call(self) -> Call | None:
        return self.calls[0] if self.calls else None

    def becomes_a_subagents(self, caller: str) -> bool:
        """In Droid a subagent is a session of its own. Make this an event of the session that
        called it; whether it means something there."""
        if self.name in ("SessionStart", "UserPromptSubmit", "SessionEnd"):
            return False
        if self.name == "Stop":
            self.name = "SubagentStop"
        self.subagent, self.subagent_transcript = self.session, self.transcript
        self.session = _id(caller)
        self.transcript = f"{self.transcript.rpartition('/')[0]}/{self.session}.jsonl"
        self.prompt_id = self.message_id = ""
        return True


def read_event(agent: str, name: str, raw: bytes) -> Event:
    """The event in `raw`.

    Raises:
        RewindError: it is no JSON object. The text is not quoted: it may hold the user's words.
    """
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise RewindError("the agent sent a hook payload that is not a JSON object")
    if not agent:
        path = _text(data.get("transcript_path"))
        agent = DROID if "/.factory/" in path else CLAUDE
    return Event(agent, name, data)


def _calls(data: dict[str, object]) -> list[Call]:
    rows = data.get("tool_calls")
    if not isinstance(rows, list):
        rows = [data] if "tool_name" in data else []
    calls = []
    for row in rows:
        if isinstance(row, dict) and (name := _text(row.get("tool_name"))):
            given = row.get("tool_input")
            calls.append(Call(name[:_LONGEST_ID], _id(row.get("tool_use_id")),
                              given if isinstance(given, dict) else {}))
    return calls


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _id(value: object) -> str:
    if not isinstance(value, str) or not value or len(value) > _LONGEST_ID or value[0] == ".":
        return ""
    good = all(c.isascii() and (c.isalnum() or c in "-_.:") for c in value)
    return value if good else ""


def _path(value: object) -> str:
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        return ""
    return value if len(value) <= _LONGEST_PATH else ""
