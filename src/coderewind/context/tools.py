"""The two tools as any host can offer them: name, words, JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from coderewind.context import words
from coderewind.context.messages import CHECKPOINT, REWIND
from coderewind.context.persist import Json


class ToolError(Exception):
    """What a tool answers when it refuses: words for the model."""


class Tool:
    """A tool of an agent. `run` gets the arguments and the call's id."""

    __slots__ = ("description", "name", "parameters", "run")

    def __init__(
        self, name: str, description: str, parameters: Json,
        run: Callable[[Mapping[str, object], str], object],
    ) -> None:
        self.name = name
        self.description = description
        self.parameters = parameters
        self.run = run


class Gate:
    """What the user allows. Everything is off unless it is turned on."""

    __slots__ = ("enabled", "may_restore", "subagent", "subagents")

    def __init__(
        self, *, enabled: bool = False, may_restore: bool = False,
        subagent: bool = False, subagents: bool = False,
    ) -> None:
        self.enabled = enabled  # checkpoint.enabled
        self.may_restore = may_restore  # agents.mayRestore
        self.subagent = subagent  # whether this session is one
        self.subagents = subagents  # checkpoint.subagents

    def refusal(self) -> str:
        """Why the tools are not there; "" when they are."""
        if not self.enabled:
            return words.NOT_ENABLED
        return words.NOT_IN_SUBAGENTS if self.subagent and not self.subagents else ""


def checkpoint_parameters(*, nests: bool = True) -> Json:
    properties: Json = {"goal": _text(words.GOAL)}
    if nests:
        properties["name"] = _text(words.NAME)
    return _schema(properties, "goal")


def rewind_parameters(gate: Gate, *, nests: bool = True) -> Json:
    properties: Json = {"report": _text(words.REPORT)}
    if nests:
        properties["to"] = _text(words.TO)
    if gate.may_restore:
        properties["restore_files"] = {"type": "boolean", "description": words.RESTORE_FILES}
    return _schema(properties, "report")


def arguments_error(arguments: Mapping[str, object], parameters: Json) -> str:
    """What is wrong with a model's arguments; "" when nothing is."""
    properties = parameters["properties"]
    required = parameters["required"]
    assert isinstance(properties, dict) and isinstance(required, list)
    for name in required:
        if name not in arguments:
            return f"{name} is missing."
    for name, value in arguments.items():
        kind = properties.get(name, {}).get("type")
        if kind == "string" and not isinstance(value, str):
            return f"{name} must be text."
        if kind == "boolean" and not isinstance(value, bool):
            return f"{name} must be true or false."
    return ""


def _text(says: str) -> Json:
    return {"type": "string", "description": says}


def _schema(properties: Json, *required: str) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


__all__ = ["CHECKPOINT", "REWIND", "Gate", "Tool", "ToolError", "arguments_error",
           "checkpoint_parameters", "rewind_parameters"]
