"""Real Claude Code with `rewind mcp` in its --mcp-config."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .fake_model import call, script, text
from .rooms import SRC, ClaudeRoom

pytestmark = pytest.mark.agent


class McpRoom(ClaudeRoom):
    """Claude Code without hooks: it knows Rewind by its MCP server alone."""

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        config = self.home / "mcp.json"
        server = {"command": sys.executable, "args": ["-m", "coderewind", "mcp"],
                  "env": {"PYTHONPATH": SRC}}
        config.write_text(json.dumps({"mcpServers": {"rewind": server}}))
        self.options = ("--mcp-config", str(config), "--allowedTools", "mcp__rewind")

    def ask(self, *steps: dict[str, Any]) -> None:
        done = subprocess.run([self.program, "-p", *self.options, "--", "go " + script(*steps)],
                              cwd=self.folder, env=self.env(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def results(self) -> list[Any]:
        """What the tools answered, as the model received it in its newest request."""
        messages = [body for body in self.model.requests if body.get("tools")][-1]["messages"]
        return [block["content"] for message in messages if isinstance(message["content"], list)
                for block in message["content"] if block["type"] == "tool_result"]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[McpRoom]:
    made = McpRoom(tmp_path)
    yield made
    made.close()


def test_claude_saves_and_lists_checkpoints(room: McpRoom) -> None:
    room.ask(call("mcp__rewind__save_checkpoint", description="before the work"),
             call("mcp__rewind__list_checkpoints"), text("fine"))

    (row,) = room.checkpoints()
    assert (row["label"], row["agent"]) == ("before the work", "claude-code")
    assert json.loads(room.results()[1])["checkpoints"][0]["what"] == "before the work"


def test_claude_cannot_restore_unless_the_user_allowed_it(room: McpRoom) -> None:
    room.rewind("save")
    (room.folder / "old.txt").write_text("v1\n")

    room.ask(call("mcp__rewind__restore_checkpoint", checkpoint=1), text("fine"))

    assert "No such tool" in str(room.results()[0])
    assert (room.folder / "old.txt").read_text() == "v1\n"


def test_claude_asks_its_user_before_a_restore(room: McpRoom) -> None:
    room.rewind("save")
    room.rewind("config", "agents.mayRestore", "true")
    (room.folder / "old.txt").write_text("v1\n")

    with room.terminal(*room.options) as terminal:
        plan = call("mcp__rewind__restore_checkpoint", checkpoint=1)
        terminal.say("P1 " + script(plan, text("planned it")), "planned it")
        found = re.search(r'"token" ?: ?"([\w-]+)"', str(room.results()[-1]).replace("\\", ""))
        assert found
        go_on = call("mcp__rewind__restore_checkpoint", checkpoint=1, plan=found[1])
        terminal.say("P2 " + script(go_on, text("did it")), "back to checkpoint #1: 1 change")
        assert (room.folder / "old.txt").read_text() == "v1\n"
        terminal.keys("Space")
        terminal.wait("[☒☑✔✓]")
        terminal.keys("Down")
        terminal.wait("❯ Accept")
        while "requests your input" in terminal.screen():  # the first key may come too early
            terminal.keys("Enter")
            time.sleep(1)
        terminal.wait("● did it")

    assert (room.folder / "old.txt").read_text() == "v0\n"
