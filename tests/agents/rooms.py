"""A room: a throwaway HOME, a project, a fake model, and an agent connected to Rewind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from coderewind.agents.settings import hook_command

from .fake_model import FakeModel
from .install import program
from .terminal import Terminal

SRC = str(Path(__file__).parents[2] / "src")
_KEY = "dummy-key-for-loopback"
_GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]


class Room:
    """What every agent's room has. `folder` is the project, a git repository with one file."""

    agent = ""
    write_tool = ""
    shell_tool = ""
    edit_tool = "Edit"
    bin = ""  # a folder that comes first in PATH

    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.folder = base / "project"
        self.home.mkdir(parents=True)
        self.folder.mkdir()
        (self.folder / "old.txt").write_text("v0\n")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-qm", "first")
        self.model = FakeModel()

    def close(self) -> None:
        self.model.close()

    # ---- the project

    def git(self, *args: str) -> str:
        return subprocess.run([*_GIT, *args], cwd=self.folder, env=self.env(), check=True,
                              capture_output=True, text=True).stdout

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def tree(self) -> dict[str, bytes]:
        """Every file of the project, byte for byte."""
        found = {}
        for top, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if name != ".git"]
            for name in names:
                path = Path(top) / name
                found[str(path.relative_to(self.folder))] = path.read_bytes()
        return found

    # ---- Rewind

    def rewind(self, *args: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(
            [sys.executable, "-m", "coderewind", *args], cwd=self.folder,
            env={**self.env(), "PYTHONPATH": SRC}, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, check=False, timeout=120,
        )
        assert not ok or ended.returncode == 0, ended.stdout + ended.stderr
        return ended

    def json(self, *args: str) -> Any:
        return json.loads(self.rewind(*args, "--json").stdout)

    def connect(self, *args: str) -> None:
        self.rewind("config", "--register-hooks", "--agents", self.agent, *args)

    def checkpoints(self) -> list[dict[str, Any]]:
        """Oldest first."""
        rows: list[dict[str, Any]] = self.json("list")["checkpoints"]
        return rows[::-1]

    def kinds(self) -> list[str]:
        return [cp["kind"] for cp in self.checkpoints()]

    def only(self, kind: str, words: str = "") -> dict[str, Any]:
        """The one checkpoint of a kind whose label or prompt holds some words."""
        found = [cp for cp in self.checkpoints()
                 if cp["kind"] == kind and words in f"{cp['label']}\n{cp['prompt']}"]
        assert len(found) == 1, (kind, words, self.checkpoints())
        return found[0]

    def log(self) -> str:
        """What hooks complained of."""
        path = self.home / ".rewind" / "hook.log"
        return path.read_text() if path.exists() else ""

    # ---- the agent

    def env(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [self.bin, os.environ["PATH"]]))
        return {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8",
                "TERM": "xterm-256color", "NO_PROXY": "127.0.0.1,localhost"}

    def write(self, name: str, content: str) -> dict[str, Any]:
        return {"tool": self.write_tool,
                "input": {"file_path": self.path(name), "content": content}}

    def shell(self, command: str) -> dict[str, Any]:
        raise NotImplementedError

    def edit(self, name: str, old: str, new: str) -> dict[str, Any]:
        raise NotImplementedError

    def run(self, prompt: str, *, go_on: str = "") -> str:
        """One prompt without a terminal, in a fresh session or going on in one; its session id."""
        raise NotImplementedError

    def resume_and_ask(self, session: str, words: str = "PROBE") -> list[str]:
        """Go on in a session; what the model was sent."""
        before = self.model.turns()
        self.run(words, go_on=session)
        assert self.model.turns() > before, "the model was not asked"
        return self.model.heard()

    def session_file(self, session: str) -> Path:
        raise NotImplementedError


class HookRoom(Room):
    """No agent: hooks are called by hand, by the very command that is registered."""

    agent = "claude"

    def hook(
        self, event: str, *, agent: str = "claude", ok: bool = True, **fields: Any
    ) -> subprocess.CompletedProcess[str]:
        """One event of session "s1"; the hook must end with 0 and say nothing, unless not `ok`."""
        payload = {"session_id": "s1", "cwd": str(self.folder), "hook_event_name": event,
                   "transcript_path": str(self.transcript()), "prompt_id": "p1", **fields}
        ended = self.raw(event, json.dumps(payload).encode(), agent=agent)
        if ok:
            assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
        return ended

    def raw(
        self, event: str, payload: bytes, *, agent: str = "claude", **env: str
    ) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(hook_command(agent, event), input=payload, cwd=self.folder,
                               env={**self.env(), **env}, capture_output=True, check=False,
                               timeout=120)
        return subprocess.CompletedProcess(ended.args, ended.returncode, ended.stdout.decode(),
                                           ended.stderr.decode())

    def tool(self, event: str, name: str, call_id: str, **given: Any) -> None:
        self.hook(event, tool_name=name, tool_use_id=call_id, tool_input=given)

    def transcript(self) -> Path:
        folder = self.home / ".claude/projects/-project"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / "s1.jsonl"


class ClaudeRoom(Room):
    agent = "claude"
    write_tool = "Write"
    shell_tool = "Bash"
    allow: tuple[str, ...] = ("--permission-mode", "acceptEdits",
                              "--allowedTools", "Bash Read Edit Write Agent")

    def __init__(self, base: Path) -> None:
        self.program = program("claude")
        self.bin = os.path.dirname(self.program)
        super().__init__(base)
        (self.home / ".claude").mkdir()
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True,
                   "projectOnboardingSeenCount": 1, "allowedTools": []}
        (self.home / ".claude.json").write_text(json.dumps({
            "hasCompletedOnboarding": True, "lastOnboardingVersion": "2.1.327", "theme": "dark",
            "numStartups": 5, "autoUpdates": False,
            "customApiKeyResponses": {"approved": [_KEY[-20:]], "rejected": []},
            "projects": {os.path.realpath(self.folder): trusted},
        }))

    def env(self) -> dict[str, str]:
        env = {**super().env(), "ANTHROPIC_API_KEY": _KEY, "DISABLE_AUTOUPDATER": "1",
               "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
               "DISABLE_ERROR_REPORTING": "1"}
        if hasattr(self, "model"):
            env["ANTHROPIC_BASE_URL"] = self.model.url
        return env

    def shell(self, command: str) -> dict[str, Any]:
        return {"tool": "Bash", "input": {"command": command, "description": "run"}}

    def edit(self, name: str, old: str, new: str) -> dict[str, Any]:
        return {"tool": "Edit", "input": {"file_path": self.path(name), "old_string": old,
                                          "new_string": new}}

    def run(self, prompt: str, *, go_on: str = "") -> str:
        resume = ["--resume", go_on] if go_on else []
        ended = subprocess.run(
            [self.program, "-p", *self.allow, "--output-format", "json", *resume, "--", prompt],
            cwd=self.folder, env=self.env(), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=180, check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return str(json.loads(ended.stdout)["session_id"])

    def terminal(self, *args: str) -> Terminal:
        terminal = Terminal([self.program, *args], str(self.folder), self.env())
        terminal.wait("❯")
        return terminal

    def session_file(self, session: str) -> Path:
        found = list((self.home / ".claude/projects").glob(f"*/{session}.jsonl"))
        assert len(found) == 1, found
        return found[0]


class DroidRoom(Room):
    MODEL = "custom:Fake-0"
    agent = "droid"
    write_tool = "Create"
    shell_tool = "Execute"
    auto = "medium"

    def __init__(self, base: Path) -> None:
        self.program = program("droid")
        self.bin = os.path.dirname(self.program)
        super().__init__(base)
        (self.home / ".factory").mkdir()
        self.settings({"logoAnimation": "off"})

    def settings(self, more: dict[str, Any]) -> None:
        model = {"model": "fake-model", "id": self.MODEL, "index": 0,
                 "baseUrl": self.model.url, "apiKey": "dummy", "displayName": "Fake",
                 "maxOutputTokens": 8192, "noImageSupport": False, "provider": "anthropic"}
        (self.home / ".factory" / "settings.json").write_text(
            json.dumps({"customModels": [model], **more}))

    def env(self) -> dict[str, str]:
        return {**super().env(), "FACTORY_AIRGAP_ENABLED": "true"}  # it waits for servers otherwise

    def shell(self, command: str) -> dict[str, Any]:
        return {"tool": "Execute", "input": {"command": command, "riskLevel": "low",
                                             "riskLevelReason": "test", "summary": "run"}}

    def edit(self, name: str, old: str, new: str) -> dict[str, Any]:
        return {"tool": "Edit", "input": {"file_path": self.path(name), "old_str": old,
                                          "new_str": new, "change_all": False}}

    def run(self, prompt: str, *, go_on: str = "") -> str:
        fork = ["--fork", go_on] if go_on else []
        known = set(self._sessions())
        ended = subprocess.run(
            [self.program, "exec", "-m", self.MODEL, "--auto", self.auto, *fork, prompt],
            cwd=self.folder, env=self.env(), input="", capture_output=True, text=True,
            timeout=180, check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        new = set(self._sessions()) - known
        assert len(new) == 1, new
        return new.pop()

    def _sessions(self) -> list[str]:
        """All but those of subagents."""
        found = (self.home / ".factory/sessions").glob("*/*.jsonl")
        return [path.stem for path in found if '"callingSessionId"' not in path.read_text()]

    def session_file(self, session: str) -> Path:
        found = list((self.home / ".factory/sessions").glob(f"*/{session}.jsonl"))
        assert len(found) == 1, found
        return found[0]
