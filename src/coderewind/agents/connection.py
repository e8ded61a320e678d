"""How an agent is connected to Rewind, whatever that takes: hooks in a settings file, or a folder
of its extensions. One class per agent answers; `known.connection_of` knows which.
"""

from __future__ import annotations

from coderewind.agents.adapter import Adapter
from coderewind.agents.tier import Tier
from coderewind.errors import RewindError

USER = "user"
PROJECT = "project"
SCOPES = (USER, PROJECT)


class Change:
    """What connecting or disconnecting would make of one file or folder."""

    __slots__ = ("had_ours", "path")

    def __init__(self, path: str, *, had_ours: bool = False) -> None:
        self.path = path
        self.had_ours = had_ours  # connected there already

    @property
    def is_change(self) -> bool:
        raise NotImplementedError

    def apply(self) -> None:
        """Do it, entirely or not at all.

        Raises:
            RewindError: it cannot be done, or somebody else changed the place since the plan.
        """
        raise NotImplementedError


class Connection:
    """One agent's connection. Nothing is written before a change is applied."""

    scopes: tuple[str, ...] = (USER,)
    has_tiers = True  # whether a tier says which of the agent's events are heard

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter

    def plan(self, tier: Tier, root: str, scope: str) -> Change:
        """What connecting changes; `root` is the worktree, for scope "project"."""
        raise NotImplementedError

    def plan_removal(self, root: str) -> list[Change]:
        """What has to go from every place that may hold something of ours."""
        raise NotImplementedError

    def rivals(self) -> list[Change]:
        """What takes other checkpoint extensions out, which would do the same work twice."""
        return []

    def places(self, root: str) -> list[str]:
        """The files or folders in which the agent is connected now."""
        raise NotImplementedError

    def problems(self, root: str) -> list[str]:
        """What is wrong with the connection, for `rewind doctor`."""
        raise NotImplementedError

    def add_commands(self, program: str, version: str) -> tuple[bool, str]:
        """Install what is offered inside the agent beside checkpoints: whether it is there, and
        what went wrong."""
        return False, ""

    def remove_commands(self, program: str) -> None:
        """Take that out again."""

    def check_scope(self, scope: str) -> None:
        if scope not in self.scopes:
            raise RewindError(
                f"{self.adapter.title} has no settings for one project that Rewind knows",
                hint="connect it with --scope user", exit_code=2)
