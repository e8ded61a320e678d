"""Slash commands typed into a Claude Code that runs no code of plugins (agents/slash.py).

The answer is shown in place of the prompt, and the model is not asked. What takes code inside
Claude Code, replacing the running session, becomes words: what to type.
"""

from __future__ import annotations

import json
import subprocess

from coderewind.agents.plugin import cli_command
from coderewind.hooks.payload import Event

_SCOPES: dict[str, list[str]] = {
    "both": [], "files": ["--code-only"], "code": ["--code-only"],
    "conversation": ["--context-only"], "context": ["--context-only"],
}
_MOST_LINES = 200
_PATIENCE = 110


def answer(event: Event) -> str:
    """What to show for a typed command; '' when it is none of ours."""
    given = event.arguments.strip()
    if event.command == "rewind-restore":
        return _restore(event.cwd, given)
    words = {"rewind-list": ["list", "--limit", "20"], "rewind-undo": ["undo"],
             "rewind-redo": ["redo"], "rewind-diff": ["diff", *given.split()],
             "rewind-save": ["save", "--message", given]}.get(event.command)
    if words is None:
        return ""
    _, said = _run(event.cwd, words)
    lines = said.splitlines() or ["done"]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"… {len(lines) - _MOST_LINES} lines more in a shell: "
                               f"rewind {' '.join(words)}"]
    return "\n".join(lines)


def _restore(folder: str, given: str) -> str:
    words = given.split()
    scope = _SCOPES.get(words[-1]) if len(words) > 1 else None
    target = " ".join(words if scope is None else words[:-1])
    if not target:
        return "which checkpoint? /rewind-list shows them"
    good, said = _run(folder, ["restore", "--yes", "--json", *(scope or []), "--", target])
    if not good:
        return said
    resume = json.loads(said)["resume"]
    if resume is None:
        return "files restored; the conversation goes on as it is"
    lines = [f"went back to checkpoint {target}; the conversation goes on when you type",
             f"  /resume {resume['session']}" if resume["session"] else "  /clear"]
    if resume["prompt"]:
        lines += ["and then again, or in other words:", resume["prompt"]]
    return "\n".join(lines)


def _run(folder: str, words: list[str]) -> tuple[bool, str]:
    """Run rewind; whether it went well, and what it said."""
    try:
        ended = subprocess.run([*cli_command(), *words], cwd=folder or None, capture_output=True,
                               text=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return False, "it takes too long for here: type it in a shell"
    good = ended.returncode == 0
    return good, (ended.stdout if good else ended.stderr or ended.stdout).strip("\n")
