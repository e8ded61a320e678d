"""The agents that call, and the events that they call with."""

from __future__ import annotations

CLAUDE = "claude"
DROID = "droid"
AGENTS = (CLAUDE, DROID)

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Stop",
    "SubagentStop",
    "SessionEnd",
    "PreCompact",
    "CwdChanged",
    "UserPromptExpansion",
)
_BY_WORD = {name.lower(): name for name in EVENTS}


def event_name(word: str) -> str:
    """An event by its name, also as the seed writes it: `pre-tool-use`; '' for an unknown one."""
    return _BY_WORD.get(word.replace("-", "").replace("_", "").lower(), "")
