"""`rewind statusline`, and what it makes of what Claude Code sends it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from .rooms import SRC, HookRoom

PAYLOAD = Path(__file__).parent / "payloads/claude/StatusLine.json"


def line(hooks: HookRoom, given: str, cwd: Path) -> str:
    ended = subprocess.run([sys.executable, "-m", "coderewind", "statusline"], input=given, cwd=cwd,
                           env={**hooks.env(), "PYTHONPATH": SRC}, capture_output=True, text=True,
                           check=True)
    assert ended.stderr == ""
    return ended.stdout


def payload(folder: Path) -> str:
    data = json.loads(PAYLOAD.read_text())
    data["workspace"]["current_dir"] = str(folder)
    return json.dumps(data)


def test_it_counts_the_checkpoints_of_the_folder_on_stdin(hooks: HookRoom, tmp_path: Path) -> None:
    hooks.hook("UserPromptSubmit", prompt="one")

    assert line(hooks, payload(hooks.folder), tmp_path) == "◆ 2 checkpoints\n"
    assert line(hooks, "", hooks.folder) == "◆ 2 checkpoints\n"
    assert line(hooks, "{broken", hooks.folder) == "◆ 2 checkpoints\n"


def test_it_says_nothing_where_nothing_is_protected_or_nothing_shall_be_said(
    hooks: HookRoom,
) -> None:
    assert line(hooks, payload(hooks.folder), hooks.folder) == ""
    hooks.hook("UserPromptSubmit", prompt="one")
    hooks.rewind("config", "silentCheckpoints", "true")

    assert line(hooks, payload(hooks.folder), hooks.folder) == ""
