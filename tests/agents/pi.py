"""Rooms with Pi, and Pi driven over RPC."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coderewind.agents.settings import bridge_command

from .fake_model import Json
from .install import pi
from .rooms import Room
from .terminal import Terminal

EXTENSION = str(Path(__file__).parents[2] / "extensions" / "pi" / "index.ts")
NAV = (EXTENSION, str(Path(__file__).with_name("nav.ts")))
# What the user does at a dialog: an option, words, True; None to leave it.
Answer = Callable[[Json], "str | bool | None"]
_ASKS = ("select", "confirm", "input", "editor")


class PiRoom(Room):
    agent = "pi"
    write_tool = "write"
    shell_tool = "bash"
    edit_tool = "edit"

    def __init__(self, base: Path, **settings: Any) -> None:
        self.program = self.find()
        self.agent_dir = base / "home" / f".{self.agent}" / "agent"
        super().__init__(base)
        self.agent_dir.mkdir(parents=True)
        self.settings(settings)

    def find(self) -> list[str]:
        return pi()

    def settings(self, more: Json) -> None:
        model = {"id": "fake-1", "contextWindow": 128000, "maxTokens": 4096}
        provider = {"baseUrl": self.model.url, "api": "anthropic-messages", "apiKey": "dummy",
                    "models": [model]}
        (self.agent_dir / "models.json").write_text(json.dumps({"providers": {"fake": provider}}))
        usual = {"defaultProvider": "fake", "defaultModel": "fake-1",
                 "defaultThinkingLevel": "off", "defaultProjectTrust": "always",
                 "enableInstallTelemetry": False, "quietStartup": True, "cacheWarming": "off"}
        (self.agent_dir / "settings.json").write_text(json.dumps({**usual, **more}))

    def env(self) -> dict[str, str]:
        return {**super().env(), "PI_CODING_AGENT_DIR": str(self.agent_dir), "PI_OFFLINE": "1",
                "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1",
                "REWIND_BRIDGE": json.dumps(bridge_command())}

    def command(self, *args: str, extensions: tuple[str, ...] = (EXTENSION,)) -> list[str]:
        return [*self.program, "-ne", *(word for e in extensions for word in ("-e", e)), *args]

    def write(self, name: str, content: str) -> Json:
        return {"tool": "write", "input": {"path": self.path(name), "content": content}}

    def shell(self, command: str) -> Json:
        return {"tool": "bash", "input": {"command": command}}

    def edit(self, name: str, old: str, new: str) -> Json:
        return {"tool": "edit", "input": {"path": self.path(name),
                                          "edits": [{"oldText": old, "newText": new}]}}

    def open(self, *args: str, answer: Answer | None = None, cwd: Path | None = None,
             extensions: tuple[str, ...] = (EXTENSION,), **env: str) -> Pi:
        """One Pi over RPC."""
        return Pi(self.command("--mode", "rpc", *args, extensions=extensions),
                  cwd or self.folder, {**self.env(), **env}, answer)

    resume_option = "--session"

    def run(self, prompt: str, *args: str, go_on: str = "", **env: str) -> str:
        known = set(self.session_files())
        resume = [self.resume_option, str(self.session_file(go_on))] if go_on else []
        ended = subprocess.run(
            self.command(*resume, *args, "-p", prompt), cwd=self.folder,
            env={**self.env(), **env}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=120, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        new = set(self.session_files()) - known
        return new.pop().stem.rpartition("_")[2] if new else go_on

    def terminal(self, *args: str) -> Terminal:
        return Terminal(self.command(*args), str(self.folder), self.env())

    def session_files(self) -> list[Path]:
        return list((self.agent_dir / "sessions").glob("*/*.jsonl"))

    def session_file(self, session: str) -> Path:
        found = [path for path in self.session_files() if path.stem.endswith(session)]
        assert len(found) == 1, found
        return found[0]

    def rows(self, session: str, role: str = "") -> list[Json]:
        """The rows of a session's file; with a role only such messages."""
        rows = [json.loads(line) for line in self.session_file(session).read_bytes().splitlines()]
        return [row for row in rows
                if not role or (row["type"] == "message" and row["message"]["role"] == role)]


class Connected(PiRoom):
    """Pi as a user has it: the extension where `rewind init` put it."""

    def connect(self, *args: str) -> None:
        self.rewind("init", "--agents", self.agent, "--yes", *args)

    def env(self) -> dict[str, str]:
        return {name: value for name, value in super().env().items() if name != "REWIND_BRIDGE"}

    def command(self, *args: str, extensions: tuple[str, ...] = ()) -> list[str]:
        return [*self.program, *args]


class Pi:
    """One `pi --mode rpc`."""

    def __init__(self, command: list[str], cwd: Path, env: dict[str, str],
                 answer: Answer | None) -> None:
        self.answer: Answer = answer or (lambda dialog: None)
        self.events: list[Json] = []
        self.dialogs: list[Json] = []
        self._answers: dict[str, Json] = {}
        self._news = threading.Condition()
        self._ended = False
        self._errors = open(Path(env["HOME"]) / "pi-errors", "ab")  # noqa: SIM115 - until close
        self.process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self._errors)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    # ---- the conversation

    def call(self, kind: str, timeout: float = 60, **fields: Any) -> Json:
        """One RPC command; its response."""
        return self.answer_to(self.send(kind, **fields), timeout)

    def send(self, kind: str, **fields: Any) -> str:
        """One RPC command that nobody waits for; the number of its response."""
        number = uuid.uuid4().hex[:8]
        self._send({"id": number, "type": kind, **fields})
        return number

    def answer_to(self, number: str, timeout: float = 60) -> Json:
        with self._news:
            self._wait("answer", lambda: number in self._answers, timeout)
            return self._answers.get(number, {"success": False, "error": "Pi ended"})

    def prompt(self, words: str, *, wait: bool = True, **fields: Any) -> Json:
        """A prompt or a /command, until the agent has nothing more to do."""
        with self._news:
            before = len(self.events)
        answer = self.call("prompt", message=words, **fields)
        if wait and answer.get("data", {}).get("disposition") == "started":
            self.settle(before)
        return answer

    def settle(self, since: int = 0) -> None:
        self.wait_for("agent_settled", since)

    def wait_for(self, event: str, since: int = 0, timeout: float = 60) -> None:
        with self._news:
            self._wait(event, lambda: any(e["type"] == event for e in self.events[since:]),
                       timeout)

    def wait_until(self, done: Callable[[], bool], what: str, timeout: float = 60) -> None:
        """Until something that Pi shows is there."""
        with self._news:
            self._wait(what, done, timeout)

    def entries(self, role: str = "", kind: str = "") -> list[Json]:
        """The session's entries; with a role only such messages, with a kind only such entries."""
        found: list[Json] = self.call("get_entries")["data"]["entries"]
        if role:
            return [e for e in found
                    if e["type"] == "message" and e["message"]["role"] == role]
        return [e for e in found if not kind or kind in (e["type"], e.get("customType"))]

    def leaf(self) -> str:
        return str(self.call("get_entries")["data"]["leafId"])

    def state(self) -> Json:
        data: Json = self.call("get_state")["data"]
        return data

    # ---- what a user sees

    def shown(self, method: str) -> list[str]:
        """All that extensions showed in one way, oldest first."""
        return [str(d.get("message") or d.get("statusText") or d.get("title") or d.get("text"))
                for d in self.dialogs if d["method"] == method]

    def footer(self) -> str:
        return (self.shown("setStatus") or [""])[-1]

    # ---- the process

    def bridges(self) -> list[int]:
        """The processes of Rewind that this Pi has started."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        found = []
        for child in Path(path).read_text().split():
            try:
                words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"bridge" in words:
                found.append(int(child))
        return found

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        self.process.stdout.close()
        self._errors.close()

    def __enter__(self) -> Pi:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._take(json.loads(line))
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _take(self, row: Json) -> None:
        with self._news:
            if row.get("type") == "response":
                self._answers[str(row.get("id"))] = row
            elif row.get("type") == "extension_ui_request":
                self.dialogs.append(row)
            else:
                self.events.append(row)
            self._news.notify_all()
        if row.get("type") == "extension_ui_request" and row["method"] in _ASKS:
            given = self.answer(row)
            reply: Json = {"type": "extension_ui_response", "id": row["id"]}
            if isinstance(given, bool):
                reply["confirmed"] = given
            elif given is None:
                reply["cancelled"] = True
            else:
                reply["value"] = given
            self._send(reply)

    def _send(self, row: Json) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(row).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            pass  # Pi has ended: whoever waits is told

    def _wait(self, what: str, done: Callable[[], bool], timeout: float) -> None:
        assert self._news.wait_for(lambda: done() or self._ended, timeout), f"no {what}"


def alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")
