"""The OpenAI Agents SDK, in a process of its own (openai_child.py)."""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from coderewind.context import Gate

from .driver import Driver, Request, Row

_CHILD = Path(__file__).with_name("openai_child.py")
_SRC = Path(__file__).parents[2] / "src"


@functools.cache
def _child() -> subprocess.Popen[str]:
    """One process for all tests: what it imports takes seconds."""
    child = subprocess.Popen([sys.executable, "-W", "error", str(_CHILD)], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env={**os.environ, "PYTHONPATH": str(_SRC)})
    atexit.register(_end, child)
    return child


def _end(child: subprocess.Popen[str]) -> None:
    child.communicate(timeout=30)


class OpenAIAgents(Driver):
    name = "openai-agents"

    def make(self, workspace: Any, gate: Gate | None) -> None:
        self.stored: list[Any] = []
        self.child = _child()
        allowed = None if gate is None else {name: getattr(gate, name) for name in Gate.__slots__}
        self._say({"begin": workspace and workspace.root, "gate": allowed,
                   "env": dict(os.environ)})
        assert self.child.stdout
        assert json.loads(self.child.stdout.readline()) == {"ready": True}

    def send(self, prompt: str) -> None:
        self._say({"prompt": prompt, "steps": self.steps})
        self.steps = []
        assert self.child.stdout
        for line in self.child.stdout:
            said = json.loads(line)
            if "explore" in said:
                self._say(self.explore(said["explore"]))
            elif "request" in said:
                items = said["request"]
                rows = [_row(item) for item in items]
                self.requests.append(Request(rows, items, said["tools"]))
            else:
                self.stored = said["stored"]
                return
        raise AssertionError("the process ended early")

    def _say(self, what: Any) -> None:
        assert self.child.stdin
        self.child.stdin.write(json.dumps(what) + "\n")
        self.child.stdin.flush()


def _row(item: Any) -> Row:
    if item.get("type") == "function_call":
        return Row("call", item["name"])
    if item.get("type") == "function_call_output":
        return Row("result", item["output"])
    if item["role"] == "user":
        return Row("user", item["content"])
    return Row("said", item["content"][0]["text"])
