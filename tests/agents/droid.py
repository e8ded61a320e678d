"""Droid over JSON-RPC: one process for a whole session, as an editor drives it."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from .rooms import DroidRoom

_STREAM = ["--input-format", "stream-jsonrpc", "--output-format", "stream-jsonrpc"]


class DroidSession:
    """A new session, or an old one that is loaded again."""

    def __init__(self, room: DroidRoom, load: str = "") -> None:
        self._process = subprocess.Popen(
            [room.program, "exec", *_STREAM], cwd=room.folder, env=room.env(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._heard: queue.Queue[dict[str, Any]] = queue.Queue()
        self._count = 0
        threading.Thread(target=self._listen, daemon=True).start()
        if load:
            self._call("load_session", sessionId=load)
            self.id = load
        else:
            self.id = str(self._call(
                "initialize_session", machineId="m", cwd=str(room.folder), modelId=room.MODEL,
                autonomyLevel="auto-high", interactionMode="auto")["sessionId"])

    def say(self, words: str) -> None:
        """One prompt, until its turn is over."""
        self._call("add_user_message", text=words)
        self._wait(_is_over)

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> DroidSession:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _listen(self) -> None:
        assert self._process.stdout
        try:
            for line in self._process.stdout:
                if line.startswith("{"):
                    self._heard.put(json.loads(line))
        except ValueError:
            pass  # closed

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        number = str(self._count)
        self._send(type="request", id=number, method="droid." + method, params=params)
        answer = self._wait(lambda row: row.get("type") == "response"
                            and row.get("id") in (number, None))
        assert "error" not in answer, answer
        return dict(answer["result"])

    def _send(self, **row: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(
            {"jsonrpc": "2.0", "factoryApiVersion": "1.0.0", **row}) + "\n")
        self._process.stdin.flush()

    def _wait(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                row = self._heard.get(timeout=0.5)
            except queue.Empty:
                continue
            if row.get("type") == "request":  # may it?
                self._send(type="response", id=row["id"],
                           result={"selectedOption": "proceed_once"})
            if wanted(row):
                return row
        raise AssertionError("Droid said nothing more")


def _is_over(row: dict[str, Any]) -> bool:
    news = (row.get("params") or {}).get("notification", {})
    return bool(news.get("type") == "agent_turn_completed" or (
        news.get("type") == "droid_working_state_changed" and news.get("newState") == "idle"))
