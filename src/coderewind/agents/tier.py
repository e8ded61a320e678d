"""Tiers: how often checkpoints are made. Each is one file that says which events of an agent are
registered and what holds at run time; a setting of the user's outranks it.
"""

from __future__ import annotations

import os

from coderewind.errors import RewindError
from coderewind.model import json

NAMES = ("minimal", "balanced", "aggressive", "exact")
EXACT = "exact"


class Hook:
    """One event that a tier registers, and the tools that it is about."""

    __slots__ = ("event", "matcher", "timeout", "tools", "unwanted")

    def __init__(self, row: dict[str, object], read_only: list[str]) -> None:
        self.event = str(row["event"])
        timeout, tools = row["timeout"], row.get("tools")
        self.timeout = timeout if isinstance(timeout, int) else 30
        self.tools = frozenset(tools) if isinstance(tools, list) else frozenset()
        self.unwanted = frozenset(read_only) if isinstance(tools, str) else frozenset()
        # As the agents read it: a regular expression of JavaScript.
        self.matcher = "|".join(tools) if isinstance(tools, list) else ""
        if self.unwanted:
            self.matcher = f"^(?!(?:{'|'.join(read_only)})$).+$"

    def wants(self, tool: str) -> bool:
        """Whether a tool is one of them."""
        return tool in self.tools if self.tools else tool not in self.unwanted


class Tier:
    """One tier's file."""

    __slots__ = ("description", "hooks", "name", "runtime")

    def __init__(
        self,
        name: str,
        description: str,
        runtime: dict[str, dict[str, object]],
        hooks: dict[str, list[dict[str, object]]],
        read_only: list[str],
    ) -> None:
        self.name = name
        self.description = description
        self.hooks = {agent: [Hook(row, read_only) for row in rows]
                      for agent, rows in hooks.items()}
        self.runtime = {f"{section}.{key}": value
                        for section, values in runtime.items() for key, value in values.items()}

    def hook(self, agent: str, event: str) -> Hook | None:
        return next((h for h in self.hooks.get(agent, []) if h.event == event), None)


def load(name: str) -> Tier:
    if name not in NAMES:
        raise RewindError(f"there is no tier {name!r}", hint="tiers: " + ", ".join(NAMES),
                          exit_code=2)
    folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "tiers")
    try:
        with open(os.path.join(folder, name + ".json"), "rb") as file:
            data = json.loads(file.read())
        return Tier(name, data["description"], data["runtime"], data["hooks"],
                    data.get("readOnly", []))
    except (OSError, ValueError, KeyError) as error:
        raise RewindError(f"tier {name} cannot be read", hint="install Rewind again") from error
