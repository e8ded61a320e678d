"""Find the checkpoint that a user means: "12", "@", "@-2", a label, an age, a snapshot id."""

from __future__ import annotations

import re
import time

from coderewind.errors import RewindError
from coderewind.model.records import Checkpoint
from coderewind.timeline.build import Timeline

_UNITS = {"second": 1, "sec": 1, "s": 1, "minute": 60, "min": 60, "m": 60, "hour": 3600, "h": 3600,
          "day": 86400, "d": 86400, "week": 604800, "w": 604800}
_AGE = re.compile(r"(?:(\d{1,9}|an?)\s*([a-z]+?)s?\s+ago|yesterday|now)", re.IGNORECASE)


def select(timeline: Timeline, words: str) -> Checkpoint:
    """The one checkpoint that `words` name.

    Raises:
        RewindError: nothing matches, or more than one does (the message lists them).
    """
    found = _candidates(timeline, words.strip() if words.strip() else words)
    if len(found) == 1:
        return found[0]
    if not timeline.checkpoints:
        raise RewindError("there are no checkpoints yet", hint="rewind save makes the first one")
    if not found and _AGE.fullmatch(words.strip()):
        oldest = timeline.checkpoints[-1]
        raise RewindError(f"no checkpoint is that old; the oldest is #{oldest.number}",
                          hint=f"rewind show {oldest.number} says when it was made")
    if not found:
        raise RewindError(f"no checkpoint matches {_cut(words)!r}",
                          hint="rewind list shows what can be restored")
    names = ", ".join(f"#{cp.number} ({_short(cp)})" for cp in found[:8])
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    raise RewindError(f"{_cut(words)!r} matches {len(found)} checkpoints: {names}{more}",
                      hint="name one by its number")


def _candidates(timeline: Timeline, words: str) -> list[Checkpoint]:
    cps = timeline.checkpoints
    if words in timeline.by_id:
        return [timeline.by_id[words]]
    labelled = [cp for cp in cps if cp.label and cp.label == words]
    if re.fullmatch(r"#?\d{1,15}", words):
        number = int(words.lstrip("#"))
        numbered = [cp for cp in cps if cp.number == number]
        if numbered or labelled:
            return numbered + [cp for cp in labelled if cp not in numbered]
    if labelled:
        return labelled
    if match := re.fullmatch(r"@(?:-(\d{1,9})|~(\d{1,9}))?", words):
        back = int(match[1] or match[2] or 0)
        seen = timeline.seen
        return [seen[back]] if back < len(seen) else []
    if match := _AGE.fullmatch(words):
        return _at(timeline.seen, time.time() - _seconds(match, words))
    if re.fullmatch(r"[0-9a-f]{4,64}", words):
        found = [cp for cp in cps if cp.snapshot.startswith(words)]
        if len({cp.snapshot for cp in found}) == 1:
            return found[:1]  # one tree, saved more than once: any of them will do
        return found
    lowered = words.lower()
    if not lowered.strip():
        return []
    return [cp for cp in cps if cp.label and lowered in cp.label.lower()]


def _seconds(match: re.Match[str], words: str) -> float:
    if words.lower() == "now":
        return 0
    if words.lower() == "yesterday":
        return 86400
    unit = _UNITS.get(match[2].lower())
    if unit is None:
        raise RewindError(f"{match[2]!r} is not a unit of time",
                          hint='say for example "10 minutes ago"', exit_code=2)
    return (1 if match[1].lower() in ("a", "an") else int(match[1])) * unit


def _at(cps: list[Checkpoint], moment: float) -> list[Checkpoint]:
    """The state that was in force at a moment: the newest checkpoint not later than it."""
    return [cp for cp in cps if cp.time / 1000 <= moment][:1]


def _short(cp: Checkpoint) -> str:
    text = cp.label or cp.anchor.prompt or cp.kind
    return _cut(" ".join(text.split()))


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
