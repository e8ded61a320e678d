"""How checkpoints, plans and coverage look on a terminal."""

from __future__ import annotations

from coderewind.cli.app import age, on_terminal, painted, plural
from coderewind.cli.ending import printable
from coderewind.model.coverage import LeftOut
from coderewind.model.paths import to_text
from coderewind.model.plan import Plan
from coderewind.model.records import Checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.agents.rewind_hook import Point

_MARKS = {"prompt": "▸", "after": "◆", "batch": "◆", "tool": "·", "before": "·", "save": "●",
          "restore": "↩", "settle": "~", "start": "○", "end": "○", "stop": "◆", "compact": "≈"}
_COLOURS = {"create": "green", "change": "yellow", "delete": "red", "delete folder": "red",
            "create folder": "green", "create pipe": "green", "change mode": "yellow"}
_LIMIT = 40
_LABEL = 100
_POINT = 60
_SHORTEST = 16
_HEADS = ("here", "number", "age", "mark", "kind", "label", "files", "agent", "place")
_GAPS = (" ", "  ", "  ", " ", "  ", "  ", "  ", "  ", "")  # after each column that is there
_RIGHT = ("number", "age", "files")
_AT_LABEL = _HEADS.index("label")


def checkpoint_lines(checkpoints: list[Checkpoint]) -> None:
    """The lines of `rewind list`: number, age, mark, kind, label, files, agent.

    The label has what room the terminal leaves it.
    """
    rows = [_cells(cp) for cp in checkpoints]
    widths = [max((width(row[i]) for row in rows), default=0) for i in range(len(_HEADS))]
    gaps = [gap if size and any(widths[i + 1 :]) else ""
            for i, (gap, size) in enumerate(zip(_GAPS, widths, strict=True))]
    if on_terminal():
        import shutil

        others = sum(widths) - widths[_AT_LABEL] + len("".join(gaps))
        room = shutil.get_terminal_size().columns - others
        widths[_AT_LABEL] = max(_SHORTEST, min(widths[_AT_LABEL], room))
    for cp, row in zip(checkpoints, rows, strict=True):
        cells = [pad(text, size, right=head in _RIGHT)
                 for head, text, size in zip(_HEADS, row, widths, strict=True)]
        cells[0] = painted(cells[0], "green", bold=True)
        cells[1] = painted(cells[1], "cyan")
        if "destructive" in cp.flags:
            cells[_AT_LABEL] = cells[_AT_LABEL].replace("⚠", painted("⚠", "red"), 1)
        line = "".join(cell + gap for cell, gap in zip(cells, gaps, strict=True))
        print(line.rstrip())


def _cells(cp: Checkpoint) -> tuple[str, ...]:
    warning = "⚠ " if "destructive" in cp.flags else ""
    pin = "★ " if cp.pinned else ""
    place = "" if cp.worktree == "main" else f"[{cp.worktree}]"
    return (
        "→" if cp.current else " ", f"#{cp.number}", age(cp.time), _MARKS.get(cp.kind, "●"),
        cp.kind, warning + pin + describe(cp), plural(cp.files, "file") if cp.files else "",
        cp.anchor.agent, place,
    )


def point_lines(points: list[Point]) -> None:
    """The lines of `rewind list` for points of pi-rewind-hook: commit, time, words, entry."""
    for point in points:
        words = "before " if point.is_prompt else f"{point.label} to "
        words += '"' + printable(" ".join(point.prompt.split())) + '"'
        when = printable(point.time[:16].replace("T", " "))
        commit = painted(point.commit[:8], "cyan")
        print(f"  {commit}  {when}  ◇ {pad(words, _POINT)}  {printable(point.entry)}")


def describe(cp: Checkpoint) -> str:
    """A checkpoint in one line of words: its label, or the prompt it belongs to."""
    text = cp.label or (f'"{cp.anchor.prompt}"' if cp.anchor.prompt else "")
    return pad(printable(" ".join(text.split())), _LABEL).rstrip()


def width(text: str) -> int:
    """The columns that a terminal gives to a text."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def pad(text: str, size: int, *, right: bool = False) -> str:
    """A text with just so many columns: filled with spaces, or cut."""
    short = size - width(text)
    if short >= 0:
        return " " * short + text if right else text + " " * short
    while text and width(text) > size - 1:
        text = text[:-1]
    return pad(text + "…", size)


def coverage_lines(left_out: list[LeftOut], *, limit: int = _LIMIT) -> None:
    for item in left_out[:limit]:
        print(f"    {printable(to_text(item.path))}  ({item.reason})")
    if len(left_out) > limit:
        print(f"    … and {len(left_out) - limit} more (--json lists all)")


def plan_lines(plan: Plan, *, limit: int = _LIMIT) -> None:
    """What a restore would do."""
    for warning in plan.warnings:
        print(painted("  ! ", "yellow") + printable(warning))
    for step in plan.steps[:limit]:
        word = painted(step.word.rjust(13), _COLOURS.get(step.word))
        print(f"{word}  {printable(to_text(step.path))}")
    if len(plan.steps) > limit:
        print(f"{'':13}  … and {len(plan.steps) - limit} more")
    for kept in plan.kept[:limit]:
        print(f"{'keep'.rjust(13)}  {printable(to_text(kept.path))}: {kept.why}")
    if len(plan.kept) > limit:
        print(f"{'keep'.rjust(13)}  … and {len(plan.kept) - limit} more")
    for kept in plan.blocked[:limit]:
        word = painted("blocked".rjust(13), "red", bold=True)
        print(f"{word}  {printable(to_text(kept.path))}: {kept.why}")
    if plan.is_empty and not plan.blocked:
        print("  nothing to change: the files are already like that")
