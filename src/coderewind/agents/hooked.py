"""Claude Code and Droid: connected by hooks in a settings file of theirs."""

from __future__ import annotations

import os
import shutil

from coderewind.agents import plugin, settings, slash
from coderewind.agents.connection import PROJECT, USER, Change, Connection
from coderewind.agents.tier import Hook, Tier
from coderewind.agents.version import Version, version_of

# The oldest Claude Code that was seen to take `args`; an older one gets a line for its shell.
_EXEC_FORM_SINCE = (2, 1, 280)
# The oldest whose hooks name the prompt; before, there is no telling where a conversation stood.
_PROMPTS_SINCE = (2, 1, 196)
# The oldest that knows an event. An older one skips a settings file that names it, the whole file.
_KNOWN_SINCE = {
    "PostToolUseFailure": (2, 0, 56),
    "CwdChanged": (2, 1, 83),
    "UserPromptExpansion": (2, 1, 116),
    "PostToolBatch": (2, 1, 118),
}


class Hooked(Connection):
    """What both have in common. Subclasses say which files there are."""

    def file(self, root: str, scope: str) -> str:
        """The file that hooks are registered in."""
        raise NotImplementedError

    def files(self, root: str) -> list[str]:
        """Every file that may hold our hooks."""
        raise NotImplementedError

    def takes_args(self, version: Version) -> bool:
        """Whether a command may be given as an argument list, without a shell."""
        return False

    def knows(self, event: str, version: Version) -> bool:
        """Whether the agent has an event. A version that cannot be asked for counts as new."""
        return True

    def hooks(self, tier: Tier) -> list[Hook]:
        """What a tier registers."""
        return tier.hooks[self.adapter.name]

    def version(self) -> Version:
        return version_of(shutil.which(self.adapter.program) or "")

    def plan(self, tier: Tier, root: str, scope: str) -> Change:
        self.check_scope(scope)
        path = self.file(root, scope)
        version = self.version()
        hooks = [hook for hook in self.hooks(tier) if self.knows(hook.event, version)]
        return settings.plan_register(path, self.adapter.name, hooks, nested=_nested(path),
                                      exec_form=self.takes_args(version))

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
        if files:
            found += [f"hooks are switched off in {path}" for path in self.switches(root)
                      if settings.is_switched_off(path, nested=_nested(path))]
        return found

    def switches(self, root: str) -> list[str]:
        """Every file that may switch hooks off."""
        return self.files(root)


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

    def switches(self, root: str) -> list[str]:
        committed = [os.path.join(root, ".claude", "settings.json")] if root else []
        return [*self.files(root), *committed]

    def takes_args(self, version: Version) -> bool:
        return not version or version.is_at_least(_EXEC_FORM_SINCE)

    def knows(self, event: str, version: Version) -> bool:
        return not version or version.is_at_least(_KNOWN_SINCE.get(event, ()))

    def hooks(self, tier: Tier) -> list[Hook]:
        """And in every tier the answers to slash commands."""
        typed = {"event": "UserPromptExpansion", "tools": list(slash.NAMES), "timeout": 120}
        return [*super().hooks(tier), Hook(typed, [])]

    def problems(self, root: str) -> list[str]:
        found = super().problems(root)
        version = self.version()
        files = self.places(root)
        if files and version and not version.is_at_least(_PROMPTS_SINCE):
            found.append(f"Claude Code {version} does not tell hooks which prompt is answered: "
                         "files can be restored, conversations cannot; 2.1.196 does")
        for path in files:
            unknown = [event for event in settings.registered_events(path, nested=_nested(path))
                       if not self.knows(event, version)]
            if unknown:
                found.append(f"Claude Code {version} does not know {', '.join(unknown)} and so "
                             f"skips all of {path}")
        return found

    def add_commands(self, program: str, version: str) -> tuple[bool, str]:
        """Slash commands, and the plugin, with which they can replace the running session."""
        theirs = slash.write(self.adapter.home())
        if plugin.is_installed(self.adapter.home()):
            plugin.write_out()
        elif program and plugin.runs_mods(version) and (problem := plugin.install(program)):
            return True, f"Claude Code's plugin could not be installed: {problem}"
        return True, f"{', '.join(theirs)} is a command of yours already" if theirs else ""

    def remove_commands(self, program: str) -> None:
        slash.remove(self.adapter.home())
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
