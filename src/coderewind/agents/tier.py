"""Tiers: how often checkpoints are made. Each is one file that says which events of an agent are
registered and what holds at run time; a setting of the user's outranks it.
"""

from __future__ import annotations

import json
import os

from coderewind.errors import RewindError

NAMES = ("minimal", "balanced", "aggressive", "exact")
EXACT = "exact"


class Hook:
    """One event that a tier registers."""

    __slots__ = ("event", "matcher", "timeout")

    def __init__(self, row: dict[str, object]) -> None:
        self.event = str(row["event"])
        self.matcher = str(row.get("matcher", ""))
        timeout = row["timeout"]
        self.timeout = timeout if isinstance(timeout, int) else 30

    def wants(self, tool: str) -> bool:
        """Whether a tool is meant by the matcher, as the agents read it."""
        if not self.matcher:
            return True
        import re

        return re.fullmatch(self.matcher, tool) is not None


class Tier:
    """One tier's file."""

    __slots__ = ("description", "hooks", "name", "runtime")

    def __init__(self, name: str, data: dict[str, dict[str, list[dict[str, object]]]]) -> None:
        self.name = name
        self.description = str(data["description"])
        self.hooks = {agent: [Hook(row) for row in rows] for agent, rows in data["hooks"].items()}
        self.runtime: dict[str, object] = {
            f"{section}.{key}": value
            for section, values in data["runtime"].items() for key, value in values.items()  # type: ignore[attr-defined]
        }

    def hook(self, agent: str, event: str) -> Hook | None:
        return next((h for h in self.hooks.get(agent, []) if h.event == event), None)


def load(name: str) -> Tier:
    if name not in NAMES:
        raise RewindError(f"there is no tier {name!r}", hint="tiers: " + ", ".join(NAMES),
                          exit_code=2)
    folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "tiers")
    try:
        with open(os.path.join(folder, name + ".json"), "rb") as file:
            return Tier(name, json.loads(file.read()))
    except (OSError, ValueError, KeyError) as error:
        raise RewindError(f"tier {name} cannot be read", hint="install Rewind again") from error
