"""The agents that Rewind knows."""

from __future__ import annotations

from coderewind.agents.adapter import Adapter
from coderewind.errors import RewindError

NAMES = ("claude", "droid")


def adapter_of(agent: str) -> Adapter:
    """The adapter of an agent; only that one is imported."""
    if agent == "claude":
        from coderewind.agents.claude import Claude

        return Claude()
    if agent == "droid":
        from coderewind.agents.droid import Droid

        return Droid()
    raise RewindError(f"conversations of {agent!r} cannot be restored by this Rewind")
