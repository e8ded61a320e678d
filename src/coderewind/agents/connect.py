"""Find the agents on this machine; connect and disconnect them."""

from __future__ import annotations

import os
import shutil
import subprocess

from coderewind.agents import settings
from coderewind.agents.adapter import Adapter
from coderewind.agents.known import NAMES, adapter_of
from coderewind.agents.settings import Change
from coderewind.agents.tier import Tier
from coderewind.errors import RewindError

SCOPES = ("user", "project")


class Found:
    """An agent that is, or was, used on this machine."""

    __slots__ = ("adapter", "path", "version")

    def __init__(self, adapter: Adapter, path: str, version: str) -> None:
        self.adapter = adapter
        self.path = path  # '' when only its folder is there
        self.version = version

    @property
    def words(self) -> str:
        return f"{self.adapter.title} {self.version}".rstrip()


def find() -> list[Found]:
    """The agents whose program or folder is here."""
    found = []
    for name in NAMES:
        adapter = adapter_of(name)
        path = shutil.which(adapter.program) or ""
        if path or os.path.isdir(adapter.home()):
            found.append(Found(adapter, path, version_of(path)))
    return found


def version_of(path: str) -> str:
    """What a program says its version is; '' when it does not say."""
    if not path:
        return ""
    try:
        ended = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20,
                               stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    words = ended.stdout.split()
    return words[0] if ended.returncode == 0 and words and words[0][0].isdigit() else ""


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


def plan_connect(agent: str, tier: Tier, *, root: str = "", scope: str = "user") -> Change:
    """What connecting an agent changes in its settings."""
    adapter = adapter_of(agent)
    path = settings_file(adapter, root, scope)
    return settings.plan_register(path, agent, tier, nested=_nested(path),
                                  exec_form=agent == "claude" and _takes_args(adapter))


def plan_disconnect(agent: str, *, root: str = "") -> list[Change]:
    """What has to change in all files that may hold our hooks."""
    changes = []
    for path in settings_files(adapter_of(agent), root):
        change = settings.plan_unregister(path, nested=_nested(path))
        if change.is_change:
            changes.append(change)
    return changes


def settings_file(adapter: Adapter, root: str, scope: str) -> str:
    if adapter.name == "claude":
        return settings.claude_file(adapter.home(), root, scope)
    if scope == "project":
        raise RewindError(f"{adapter.title} has no settings for one project that Rewind knows",
                          hint="connect it with --scope user", exit_code=2)
    return settings.droid_file(adapter.home())


def settings_files(adapter: Adapter, root: str) -> list[str]:
    """Every file that may hold our hooks."""
    if adapter.name == "claude":
        files = [settings.claude_file(adapter.home(), root, "user")]
        return [*files, settings.claude_file("", root, "project")] if root else files
    return [os.path.join(adapter.home(), name) for name in ("hooks.json", "settings.json")]


def connected(agent: str, root: str = "") -> list[str]:
    """The settings files in which an agent is connected."""
    return [path for path in settings_files(adapter_of(agent), root)
            if settings.registered_events(path, nested=_nested(path))]


def problems(agent: str, root: str = "") -> list[str]:
    """What is wrong with an agent's connection."""
    found: list[str] = []
    adapter = adapter_of(agent)
    files = connected(agent, root)
    for path in files:
        found += settings.broken_commands(path, nested=_nested(path))[:1]
    if len(files) > 1:
        found.append("connected twice: " + ", ".join(files))
    if agent == "droid" and files and settings.droid_file(adapter.home()) not in files:
        found.append("hooks.json hides the hooks in settings.json")
    return found


def _nested(path: str) -> bool:
    return os.path.basename(path) != "hooks.json"


def _takes_args(adapter: Adapter) -> bool:
    """Whether the installed version runs `command` with `args`, without a shell."""
    version = version_of(shutil.which(adapter.program) or "")
    try:
        parts = tuple(int(part) for part in version.split(".")[:3])
    except ValueError:
        return True
    return not version or parts >= settings.EXEC_FORM_SINCE
