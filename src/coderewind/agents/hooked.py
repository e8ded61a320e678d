"""Claude Code and Droid: connected by hooks in a settings file of theirs."""

from __future__ import annotations

import os
import shutil

from coderewind.agents import plugin, settings
from coderewind.agents.connection import PROJECT, USER, Change, Connection
from coderewind.agents.tier import Tier
from coderewind.agents.version import version_of

# The oldest Claude Code that was seen to take `args`; an older one gets a line for its shell.
_EXEC_FORM_SINCE = (2, 1, 327)


class Hooked(Connection):
    """What both have in common. Subclasses say which files there are."""

    def file(self, root: str, scope: str) -> str:
        """The file that hooks are registered in."""
        raise NotImplementedError

    def files(self, root: str) -> list[str]:
        """Every file that may hold our hooks."""
        raise NotImplementedError

    def takes_args(self) -> bool:
        """Whether a command may be given as an argument list, without a shell."""
        return False

    def plan(self, tier: Tier, root: str, scope: str) -> Change:
        self.check_scope(scope)
        path = self.file(root, scope)
        return settings.plan_register(path, self.adapter.name, tier, nested=_nested(path),
                                      exec_form=self.takes_args())

    def plan_removal(self, root: str) -> list[Change]:
        changes = [settings.plan_unregister(path, nested=_nested(path))
                   for path in self.files(root)]
        return [change for change in changes if change.is_change]

    def places(self, root: str) -> list[str]:
        return [path for path in self.files(root)
                if settings.registered_events(path, nested=_nested(path))]

    def problems(self, root: str) -> list[str]:
        found: list[str] = []
        files = self.places(root)
        for path in files:
            found += settings.broken_commands(path, nested=_nested(path))[:1]
        if len(files) > 1:
            found.append("connected twice: " + ", ".join(files))
        return found


class ClaudeConnection(Hooked):
    scopes = (USER, PROJECT)

    def file(self, root: str, scope: str) -> str:
        """In a project: the file that is not committed, because the interpreter's path is this
        machine's."""
        if scope == PROJECT:
            return os.path.join(root, ".claude", "settings.local.json")
        return os.path.join(self.adapter.home(), "settings.json")

    def files(self, root: str) -> list[str]:
        return [self.file(root, scope) for scope in (self.scopes if root else (USER,))]

    def takes_args(self) -> bool:
        version = version_of(shutil.which(self.adapter.program) or "")
        return not version or version.is_at_least(_EXEC_FORM_SINCE)

    def add_commands(self, program: str, version: str) -> tuple[bool, str]:
        """The plugin; without it checkpoints are made, too."""
        if plugin.is_installed(self.adapter.home()):
            plugin.write_out()
            return True, ""
        if not program or not plugin.runs_mods(version):
            return False, ""
        problem = plugin.install(program)
        return not problem, problem and f"Claude Code's plugin could not be installed: {problem}"

    def remove_commands(self, program: str) -> None:
        if program and plugin.is_installed(self.adapter.home()):
            plugin.uninstall(program)


class DroidConnection(Hooked):
    def file(self, root: str, scope: str) -> str:
        """hooks.json; Droid reads settings.json only as long as that is absent, and making one
        would silence the hooks that are in settings.json: then ours join those there."""
        hooks, general = self.files(root)
        if not os.path.exists(hooks) and settings.has_hooks(general):
            return general
        return hooks

    def files(self, root: str) -> list[str]:
        return [os.path.join(self.adapter.home(), name) for name in ("hooks.json", "settings.json")]

    def problems(self, root: str) -> list[str]:
        found = super().problems(root)
        files = self.places(root)
        if files and self.file(root, USER) not in files:
            found.append("hooks.json hides the hooks in settings.json")
        return found


def _nested(path: str) -> bool:
    """Whether events lie below a key `hooks`."""
    return os.path.basename(path) != "hooks.json"
