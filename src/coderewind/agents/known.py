"""The agents that Rewind knows."""

from __future__ import annotations

from coderewind.agents.adapter import Adapter
from coderewind.errors import RewindError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.agents.connection import Connection

NAMES = ("claude", "droid", "pi", "omp")


def adapter_of(agent: str) -> Adapter:
    """The adapter of an agent; only that one is imported."""
    if agent == "claude":
        from coderewind.agents.claude import Claude

        return Claude()
    if agent == "droid":
        from coderewind.agents.droid import Droid

        return Droid()
    if agent == "pi":
        from coderewind.agents.pi import Pi

        return Pi()
    if agent == "omp":
        from coderewind.agents.omp import Omp

        return Omp()
    raise RewindError(f"conversations of {agent!r} cannot be restored by this Rewind")


def connection_of(agent: str) -> Connection:
    """How an agent is connected."""
    if agent in ("pi", "omp"):
        from coderewind.agents.extension import Extension

        return Extension(adapter_of(agent))
    from coderewind.agents.hooked import ClaudeConnection, DroidConnection

    kind = ClaudeConnection if agent == "claude" else DroidConnection
    return kind(adapter_of(agent))
