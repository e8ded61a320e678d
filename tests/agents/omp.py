"""Rooms with oh-my-pi, and omp driven over RPC."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .fake_model import Json
from .install import omp
from .pi import EXTENSION, Answer, Pi, PiRoom

_MODELS = """providers:
  fake:
    baseUrl: {url}
    apiKey: dummy
    api: anthropic-messages
    models:
      - id: fake-1
        name: Fake
        reasoning: false
        input: [text]
        cost: {{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }}
        contextWindow: 400000
        maxTokens: 16384
"""
_CONFIG = """modelRoles:
  default: fake/fake-1
  smol: fake/fake-1
"""


class OmpRoom(PiRoom):
    """`connect` puts the extension where `rewind init` does; without it omp runs alone."""

    agent = "omp"
    write_tool = "_write"  # as the model hears of them
    shell_tool = "_bash"
    edit_tool = "_bash"
    resume_option = "--resume"

    def find(self) -> list[str]:
        return omp()

    def settings(self, more: Json) -> None:
        (self.agent_dir / "models.yml").write_text(_MODELS.format(url=self.model.url))
        more_lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in more.items())
        (self.agent_dir / "config.yml").write_text(_CONFIG + more_lines)

    def env(self) -> dict[str, str]:
        env = {**super().env(), "OMP_NO_UPDATE_CHECK": "1", "OMP_SKIP_SETUP": "1"}
        return {**env, "PATH": f"{os.path.dirname(self.program[0])}:{env['PATH']}"}

    def command(self, *args: str, extensions: tuple[str, ...] = (EXTENSION,)) -> list[str]:
        return [*self.program, "--model", "fake/fake-1", "--auto-approve", "--no-title",
                "--tools", "read,bash,write", "--no-extensions",
                *(word for path in extensions for word in ("-e", path)), *args]

    def write(self, name: str, content: str) -> Json:
        return {"tool": self.write_tool, "input": {"path": self.path(name), "content": content}}

    def shell(self, command: str) -> Json:
        return {"tool": self.shell_tool, "input": {"command": command}}

    def open(self, *args: str, answer: Answer | None = None, cwd: Path | None = None,
             extensions: tuple[str, ...] = (EXTENSION,), **env: str) -> Omp:
        """One omp over RPC."""
        return Omp(self.command("--mode", "rpc", *args, extensions=extensions),
                   cwd or self.folder, {**self.env(), **env}, answer)

    def edit(self, name: str, old: str, new: str) -> Json:
        return self.shell(f"sed -i s/{old}/{new}/ {name}")


class Connected(OmpRoom):
    """omp as a user has it: the extension where `rewind init` put it."""

    def connect(self, *args: str) -> None:
        self.rewind("init", "--agents", self.agent, "--yes", *args)

    def env(self) -> dict[str, str]:
        return {name: value for name, value in super().env().items() if name != "REWIND_BRIDGE"}

    def command(self, *args: str, extensions: tuple[str, ...] = ()) -> list[str]:
        return [word for word in super().command(*args, extensions=())
                if word != "--no-extensions"]


class Omp(Pi):
    """One `omp --mode rpc`: its entries are read from the session's file."""

    def prompt(self, words: str, *, wait: bool = True, **fields: Any) -> Json:
        with self._news:
            before = len(self.events)
        answer = self.call("prompt", message=words, **fields)
        if wait and not words.startswith("/"):
            self.settle(before)
        return answer

    def settle(self, since: int = 0) -> None:
        self.wait_for("agent_end", since)

    def entries(self, role: str = "", kind: str = "") -> list[Json]:
        lines = Path(self.state()["sessionFile"]).read_bytes().splitlines()
        found: list[Json] = [row for row in map(json.loads, lines) if "parentId" in row]
        if role:
            return [e for e in found
                    if e["type"] == "message" and e["message"]["role"] == role]
        return [e for e in found if not kind or kind in (e["type"], e.get("customType"))]

    def leaf(self) -> str:
        return str(self.entries()[-1]["id"])
