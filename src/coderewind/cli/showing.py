"""How checkpoints, plans and coverage look on a terminal."""

from __future__ import annotations

import click

from coderewind.cli.app import age, plural
from coderewind.cli.top import printable
from coderewind.model.coverage import LeftOut
from coderewind.model.paths import to_text
from coderewind.model.plan import Plan
from coderewind.model.records import Checkpoint

_MARKS = {"prompt": "▸", "after": "◆", "batch": "◆", "tool": "·", "before": "·", "save": "●",
          "restore": "↩", "settle": "~", "start": "○", "end": "○", "stop": "◆", "compact": "≈"}
_COLOURS = {"create": "green", "change": "yellow", "delete": "red", "delete folder": "red",
            "create folder": "green", "create pipe": "green", "change mode": "yellow"}
_LIMIT = 40
_LABEL = 60


def checkpoint_line(cp: Checkpoint) -> None:
    """One line of `rewind list`."""
    here = click.style("→", fg="green", bold=True) if cp.current else " "
    warning = click.style("⚠ ", fg="red") if "destructive" in cp.flags else ""
    pin = "★ " if cp.pinned else ""
    number = click.style(f"#{cp.number}".rjust(5), fg="cyan")
    files = plural(cp.files, "file") if cp.files else ""
    place = "" if cp.worktree == "main" else f"  [{cp.worktree}]"
    mark = _MARKS.get(cp.kind, "●")
    click.echo(
        f"{here}{number}  {age(cp.time).rjust(7)}  {mark} {cp.kind.ljust(7)}  "
        f"{warning}{pin}{describe(cp).ljust(_LABEL)}  {files.rjust(9)}  {cp.anchor.agent}{place}"
        .rstrip()
    )


def describe(cp: Checkpoint, limit: int = _LABEL) -> str:
    """A checkpoint in one line of words: its label, or the prompt it belongs to."""
    text = cp.label or (f'"{cp.anchor.prompt}"' if cp.anchor.prompt else "")
    text = printable(" ".join(text.split()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def coverage_lines(left_out: list[LeftOut], *, limit: int = _LIMIT) -> None:
    for item in left_out[:limit]:
        click.echo(f"    {printable(to_text(item.path))}  ({item.reason})")
    if len(left_out) > limit:
        click.echo(f"    … and {len(left_out) - limit} more (--json lists all)")


def plan_lines(plan: Plan, *, limit: int = _LIMIT) -> None:
    """What a restore would do."""
    for warning in plan.warnings:
        click.echo(click.style("  ! ", fg="yellow") + printable(warning))
    for step in plan.steps[:limit]:
        word = click.style(step.word.rjust(13), fg=_COLOURS.get(step.word))
        click.echo(f"{word}  {printable(to_text(step.path))}")
    if len(plan.steps) > limit:
        click.echo(f"{'':13}  … and {len(plan.steps) - limit} more")
    for kept in plan.kept[:limit]:
        click.echo(f"{'keep'.rjust(13)}  {printable(to_text(kept.path))}: {kept.why}")
    if len(plan.kept) > limit:
        click.echo(f"{'keep'.rjust(13)}  … and {len(plan.kept) - limit} more")
    for kept in plan.blocked[:limit]:
        word = click.style("blocked".rjust(13), fg="red", bold=True)
        click.echo(f"{word}  {printable(to_text(kept.path))}: {kept.why}")
    if plan.is_empty and not plan.blocked:
        click.echo("  nothing to change: the files are already like that")
