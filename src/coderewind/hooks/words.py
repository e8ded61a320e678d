"""Words for what an agent did: labels of checkpoints."""

from __future__ import annotations

from coderewind.hooks.payload import Call

_SHORT = 60
_PROMPT = 32  # so that what was done is seen, too
_LONGEST_LABEL = 300
_SHELLS = ("Bash", "Execute", "PowerShell", "bash", "powershell")
_PATHS = ("file_path", "notebook_path", "path")


def call_words(call: Call) -> str:
    """A call in a few words: "Edit auth.py", "Bash pytest -q", "notes keep todo.md"."""
    given = call.input
    name = call.name
    if name.startswith("mcp__"):
        name = " ".join(part for part in name[5:].split("__", 1) if part)
    if name in _SHELLS:
        command = given.get("command")
        return f"{name} {_clip(command)}" if isinstance(command, str) else name
    for key in _PATHS:
        path = given.get(key)
        if isinstance(path, str) and path:
            return f"{name} {_clip(path.rstrip('/').rpartition('/')[2] or path)}"
    if name == "ApplyPatch":
        return f"ApplyPatch {_clip(', '.join(_patched(given)))}".rstrip()
    return name


def turn_words(prompt: str, tools: list[str]) -> str:
    """A turn: its prompt's first words, and what was done."""
    said = f'"{_clip(prompt, _PROMPT)}"' if prompt.strip() else ""
    done = ", ".join(_merged(tools))
    label = f"{said} → {done}" if said and done else said or done
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"


def _merged(tools: list[str]) -> list[str]:
    """The same thing done several times is said once, with its count."""
    counts: dict[str, int] = {}
    for words in tools:
        counts[words] = counts.get(words, 0) + 1
    return [words if n == 1 else f"{words} ×{n}" for words, n in counts.items()]


def _patched(given: dict[str, object]) -> list[str]:
    """The files that a patch names."""
    names = []
    for value in given.values():
        if isinstance(value, str):
            for line in value.split("\n"):
                for mark in ("*** Update File: ", "*** Add File: ", "*** Delete File: "):
                    if line.startswith(mark):
                        names.append(line[len(mark) :].strip().rpartition("/")[2])
    return names


def _clip(text: str, most: int = _SHORT) -> str:
    words = " ".join(text[:1000].split())
    return words if len(words) <= most else words[: most - 1] + "…"
