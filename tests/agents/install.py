"""The real agents, installed from npm once into a cache folder.

`REWIND_TEST_AGENTS` names the folder. Where an agent cannot be installed its tests are skipped,
with the reason; on CI that is a failure.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGES = {
    "claude": (["@anthropic-ai/claude-code@2.1.327", "@anthropic-ai/claude-code-linux-x64@2.1.327"],
               "node_modules/@anthropic-ai/claude-code-linux-x64/claude"),
    "droid": (["@factory/cli-linux-x64@0.225.2"], "node_modules/@factory/cli-linux-x64/bin/droid"),
}


def program(agent: str) -> str:
    """The path of an agent's program; skips or fails the test when there is none."""
    packages, inside = PACKAGES[agent]
    cache = Path(os.environ.get("REWIND_TEST_AGENTS")
                 or Path.home() / ".cache" / "coderewind-test-agents")
    folder = cache / packages[0].rpartition("/")[2].replace("@", "-")
    path = folder / inside
    if not path.exists():
        problem = _install(folder, packages)
        if problem or not path.exists():
            _give_up(f"{packages[0]} could not be installed: {problem or 'its program is missing'}")
    return str(path)


def tmux() -> str:
    path = shutil.which("tmux")
    if path is None:
        _give_up("tmux is not here")
    assert path is not None
    return path


def _install(folder: Path, packages: list[str]) -> str:
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not here"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / "package.json").write_text('{"private": true}\n')
        ended = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--silent", *packages],
            cwd=folder, capture_output=True, text=True, timeout=600, check=False,
        )
    return "" if ended.returncode == 0 else (ended.stderr or ended.stdout).strip()[-300:]


def _give_up(why: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)
