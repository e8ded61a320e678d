"""Recognise shell commands that throw work away.

A false alarm costs one record; so this looks for the words anywhere, also inside `bash -c "…"`.
"""

from __future__ import annotations

_START = r"(?:^|[\s;&|({`\"'$\\])"
_GIT = _START + r"(?:\S*/)?git(?:\s+(?:-[cC]\s+\S+|--?[\w-]+(?:=\S+)?))*\s+"
_PATTERNS = (
    _GIT + r"reset\b[^;&|\n]*--(?:hard|merge|keep)\b",
    _GIT + r"checkout\b(?:[^;&|\n]*\s)?(?:--(?:\s|$)|-f\b|--force\b|\.(?:\s|$|/)|:/"
    r"|\S*\.[a-zA-Z]\w*(?:\s|$))",  # what looks like a file
    _GIT + r"switch\b[^;&|\n]*(?:-f\b|--force\b|--discard-changes\b|-C\b)",
    _GIT + r"restore\b",
    _GIT + r"clean\b",
    _GIT + r"stash\b(?!\s+(?:list|show|apply|create)\b)",
    _GIT + r"branch\b[^;&|\n]*\s(?:-[dDMf]\b|--delete\b|--force\b)",
    _GIT + r"(?:rebase|filter-branch|filter-repo|update-ref|read-tree|checkout-index|gc)\b",
    _GIT + r"reflog\s+(?:expire|delete)\b",
    _GIT + r"worktree\s+remove\b",
    _GIT + r"commit\b[^;&|\n]*--amend\b",
    _START + r"(?:\S*/)?rm\s+(?:\S+\s+){0,8}-(?:[a-zA-Z]*[rRf][a-zA-Z]*|-recursive|-force)\b",
    _START + r"(?:\S*/)?(?:shred|unlink|truncate)\s",
    _START + r"(?:\S*/)?find\s[^;&|\n]*\s-(?:delete|exec(?:dir)?\s+(?:\S*/)?rm)\b",
    _START + r"(?:\S*/)?rsync\s[^;&|\n]*--delete",
)
_HINTS = ("git", "rm", "shred", "unlink", "truncate", "find", "rsync")


def is_destructive(command: str) -> bool:
    """Whether a shell command may throw files, commits, branches or stashes away."""
    command = command[:20000]
    if not any(hint in command for hint in _HINTS):
        return False
    import re

    return any(re.search(pattern, command, re.MULTILINE) for pattern in _PATTERNS)
