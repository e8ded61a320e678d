"""Claude Code's plugin: written out with this installation's command in it, and installed.

It holds the commands inside a session and the footer. Checkpoints do not depend on it: their
hooks are in the settings file, so that they are registered once, with or without a plugin.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

from coderewind.agents import bundled
from coderewind.agents.version import Version
from coderewind.errors import RewindError
from coderewind.store.folders import make_private, rewind_home

NAME = "rewind"
MARKET = "coderewind"
# The oldest Claude Code that runs a plugin's own code in the session.
MODS_SINCE = (2, 1, 287)
_COMMAND = "['rewind'] /* the command */"
_PATIENCE = 120


def cli_command() -> list[str]:
    """This installation's rewind command, as an argument list that nothing in PATH changes."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = (f"import sys; p = {package!r}; p in sys.path or sys.path.insert(0, p); "
            "from coderewind.__main__ import main; main()")
    return [sys.executable, "-I", "-c", code]


def write_out() -> str:
    """The plugin's marketplace in $REWIND_HOME, written anew; its folder."""
    make_private(rewind_home())
    folder = os.path.join(os.fsdecode(rewind_home()), "plugins")
    make_private(os.fsencode(folder))
    target = os.path.join(folder, "claude")
    fresh = f"{target}.{os.getpid()}"
    shutil.copytree(bundled.folder("claude"), fresh)
    script = os.path.join(fresh, NAME, "hooks", "register.ts")
    with open(script, encoding="utf-8") as file:
        text = file.read()
    if _COMMAND not in text:
        raise RewindError("the plugin of this installation is damaged", hint="install Rewind again")
    with open(script, "w", encoding="utf-8") as file:
        file.write(text.replace(_COMMAND, json.dumps(cli_command())))
    shutil.rmtree(target, ignore_errors=True)
    os.rename(fresh, target)
    return target


def install(program: str) -> str:
    """Install the plugin with Claude Code's own command, offline; '' or what went wrong."""
    folder = write_out()
    _run(program, "uninstall", f"{NAME}@{MARKET}")  # an older one: installing would keep it
    _run(program, "marketplace", "remove", MARKET)
    return (_run(program, "marketplace", "add", folder)
            or _run(program, "install", f"{NAME}@{MARKET}", "-y"))


def uninstall(program: str) -> str:
    """Take the plugin out; '' or what went wrong."""
    said = _run(program, "uninstall", f"{NAME}@{MARKET}")
    _run(program, "marketplace", "remove", MARKET)
    shutil.rmtree(os.path.join(os.fsdecode(rewind_home()), "plugins"), ignore_errors=True)
    return said


def is_installed(config: str) -> bool:
    """Whether Claude Code's settings name our plugin as enabled."""
    try:
        with open(os.path.join(config, "settings.json"), "rb") as file:
            enabled = json.loads(file.read()).get("enabledPlugins")
    except (OSError, ValueError, AttributeError):
        return False
    return isinstance(enabled, dict) and enabled.get(f"{NAME}@{MARKET}") is True


def runs_mods(version: str) -> bool:
    return Version(version).is_at_least(MODS_SINCE)


def _run(program: str, *args: str) -> str:
    try:
        ended = subprocess.run([program, "plugin", *args], capture_output=True, text=True,
                               timeout=_PATIENCE, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    lines = (ended.stderr or ended.stdout).strip().splitlines()
    return "" if ended.returncode == 0 else lines[-1] if lines else f"exit {ended.returncode}"
