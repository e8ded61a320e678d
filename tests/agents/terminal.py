"""One terminal program in a tmux server of its own."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
import uuid

from .install import tmux


class Terminal:
    """A screen to look at and keys to press. Waiting is for words, never for a time."""

    def __init__(self, argv: list[str], cwd: str, env: dict[str, str]) -> None:
        self._tmux = [tmux(), "-L", "rewind-" + uuid.uuid4().hex[:12], "-f", "/dev/null"]
        words = " ".join(shlex.quote(f"{key}={value}") for key, value in env.items())
        command = f"env -i {words} {shlex.join(argv)}; echo EXIT $?; sleep 600"
        self._run("new-session", "-d", "-s", "t", "-x", "150", "-y", "50", "-c", cwd, command)

    def screen(self) -> str:
        out = self._run("capture-pane", "-p", "-t", "t")
        return "\n".join(line.rstrip() for line in out.splitlines())

    def keys(self, *keys: str) -> None:
        self._run("send-keys", "-t", "t", *keys)

    def wait(self, pattern: str, timeout: float = 60) -> str:
        """The screen, once it shows `pattern`."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            screen = self.screen()
            if re.search(pattern, screen):
                return screen
            time.sleep(0.1)
        raise AssertionError(f"no {pattern!r} on the screen:\n{self.screen()}")

    def say(self, words: str, until: str = "", timeout: float = 60) -> str:
        """Enter one line; wait for what follows. A pause lets the input box take it in."""
        if len(words) > 40:
            self._run("set-buffer", "-b", "b", "--", words)
            self._run("paste-buffer", "-p", "-b", "b", "-t", "t")
        else:
            self._run("send-keys", "-t", "t", "-l", words)
        time.sleep(1.2)
        self.keys("Enter")
        return self.wait(until, timeout) if until else ""

    def close(self) -> None:
        self._run("kill-server")

    def _run(self, *args: str) -> str:
        return subprocess.run([*self._tmux, *args], capture_output=True, text=True,
                              check=False).stdout

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
