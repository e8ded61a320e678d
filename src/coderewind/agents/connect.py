"""Find the agents on this machine, and what `rewind doctor` says of each."""

from __future__ import annotations

import shutil

from coderewind.agents import seen
from coderewind.agents.adapter import Adapter
from coderewind.agents.known import NAMES, adapter_of, connection_of
from coderewind.agents.version import Version, version_of
from coderewind.errors import RewindError


class Found:
    """An agent that is, or was, used on this machine."""

    __slots__ = ("adapter", "path", "version")

    def __init__(self, adapter: Adapter, path: str, version: Version) -> None:
        self.adapter = adapter
        self.path = path  # '' when only its folder is there
        self.version = version

    @property
    def words(self) -> str:
        return f"{self.adapter.title} {self.version}".rstrip()


class Health:
    """One agent as `rewind doctor` sees it."""

    __slots__ = ("event", "found", "places", "problems", "time")

    def __init__(self, found: Found, root: str) -> None:
        self.found = found
        connection = connection_of(found.adapter.name)
        self.event, self.time = seen.last(found.adapter.name)
        self.places: list[str] = []
        try:
            self.places = connection.places(root)
            self.problems = connection.problems(root)
        except RewindError as error:
            self.problems = [error.message]
        if self.places and not found.path:
            self.problems.append(f"{found.adapter.program} is not in PATH")

    def as_json(self) -> dict[str, object]:
        return {
            "agent": self.found.adapter.name,
            "program": self.found.path,
            "version": str(self.found.version),
            "connected": self.places,
            "lastEvent": self.event,
            "lastEventTime": self.time,
            "problems": self.problems,
        }


def find() -> list[Found]:
    """The agents whose program or folder is here."""
    found = []
    for name in NAMES:
        adapter = adapter_of(name)
        path = shutil.which(adapter.program) or ""
        if path or adapter.is_here():
            found.append(Found(adapter, path, version_of(path)))
    return found


def found(agent: str) -> Found:
    """One agent, whether it is here or not."""
    adapter = adapter_of(agent)
    path = shutil.which(adapter.program) or ""
    return Found(adapter, path, version_of(path))


def chosen(words: str) -> list[str]:
    """The agents that `--agents` names: "claude,droid", "all" or "none"."""
    if words == "none":
        return []
    if words == "all":
        return [found.adapter.name for found in find()]
    names = [word.strip() for word in words.split(",") if word.strip()]
    for name in names:
        if name not in NAMES:
            raise RewindError(f"there is no agent {name!r}",
                              hint="agents: " + ", ".join(NAMES) + ", all, none", exit_code=2)
    return list(dict.fromkeys(names))


def connected(agent: str, root: str = "") -> list[str]:
    """The files or folders in which an agent is connected."""
    return connection_of(agent).places(root)


def health(root: str) -> list[Health]:
    """How each agent that is here is connected."""
    return [Health(agent, root) for agent in find()]
