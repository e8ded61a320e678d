"""A hook loads only what it uses: each module costs time at every tool call."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from coderewind.agents.settings import hook_command

from .rooms import HookRoom

# What may be loaded beside Python's own start, in an exact tier's hook that finds nothing changed.
ALLOWED = {
    "__future__", "_bisect", "_collections", "_collections_abc", "_json", "_operator", "_sha1",
    "_signal", "_stat", "_struct", "array", "bisect", "coderewind", "collections", "errno",
    "fcntl", "gc", "genericpath", "itertools", "keyword", "math", "mmap", "operator", "os",
    "posixpath", "reprlib", "stat", "struct", "zlib",
    "_blake2", "_hashlib", "hashlib",  # for a file that changed just now, and is read again
}
_TRACE = "; import sys; sys.stderr.write(' '.join(sys.modules)); sys.exit(code)"


def modules(hooks: HookRoom, event: str, **fields: object) -> set[str]:
    """The modules that a hook has loaded when it ends, by their first names."""
    command = hook_command("claude", event)
    command[4] = command[4].replace("; main()", "; from coderewind.__main__ import run; "
                                    "code = run(sys.argv[1:])") + _TRACE
    payload = {"session_id": "s1", "cwd": str(hooks.folder), "prompt_id": "p1", **fields}
    text = json.dumps(payload, separators=(",", ":"))  # as JavaScript writes it
    ended = subprocess.run(command, input=text.encode(), env=hooks.env(),
                           cwd=hooks.folder, capture_output=True, check=True)
    bare = subprocess.run([*command[:3], "-c", "import sys; print(*sys.modules)"],
                          capture_output=True, check=True).stdout.decode().split()
    return {name.partition(".")[0] for name in ended.stderr.decode().split()} - {
        name.partition(".")[0] for name in bare}


def test_a_hook_that_finds_nothing_changed_loads_nothing_else(hooks: HookRoom) -> None:
    hooks.hook("SessionStart", source="startup")
    hooks.hook("UserPromptSubmit", prompt="one")

    loaded = modules(hooks, "PreToolUse", tool_name="Bash", tool_use_id="t",
                     tool_input={"command": "ls"})

    assert "coderewind" in loaded
    assert loaded - ALLOWED == set()


def test_a_batch_of_one_call_that_is_captured_already_loads_next_to_nothing(
    hooks: HookRoom,
) -> None:
    call: dict[str, Any] = {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {}}
    hooks.hook("UserPromptSubmit", prompt="one")
    hooks.hook("PreToolUse", **call)
    hooks.hook("PostToolUse", **call)

    assert modules(hooks, "PostToolBatch", tool_calls=[call]) <= {
        "__future__", "_collections_abc", "_stat", "coderewind", "gc", "genericpath", "os",
        "posixpath", "stat"}


def test_no_hook_loads_a_command_line_or_a_terminal(hooks: HookRoom) -> None:
    for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
        heavy = {"click", "rich", "asyncio", "typing", "dataclasses", "inspect", "argparse",
                 "logging", "uuid", "tempfile", "pathlib"}
        assert modules(hooks, event, source="startup", prompt="x") & heavy == set()
