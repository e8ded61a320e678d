"""`rewind show`: one checkpoint."""

from __future__ import annotations

import shlex
import time
from typing import Any

import click

from coderewind.cli.app import App, age, command, plural
from coderewind.cli.ending import printable
from coderewind.cli.offers import checkpoints
from coderewind.cli.showing import coverage_lines
from coderewind.engine.engine import Engine
from coderewind.engine.legacy import checkpoint_of
from coderewind.model.coverage import LeftOut
from coderewind.model.paths import to_text
from coderewind.model.records import Checkpoint
from coderewind.store.refs import branches, stashes
from coderewind.store.workspace import Workspace, head_of


@click.command()
@click.argument("checkpoint", metavar="CP", shell_complete=checkpoints)
@command
def show(app: App, *, checkpoint: str) -> None:
    """Show one checkpoint: what changed, what it does not hold.

    And when it was made, and on which branch and commit.
    """
    engine = app.engine()
    cp = checkpoint_of(engine, checkpoint)
    coverage = engine.coverage_of(cp)
    changes = engine.changes_of(cp)
    data = document(engine, cp, changes, coverage)

    def text() -> None:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(cp.time / 1000))
        here = "  (the worktree stands here)" if cp.current else ""
        click.echo(f"checkpoint #{cp.number}  {cp.kind}  {when}  {age(cp.time)}{here}")
        click.echo(f"  snapshot  {cp.snapshot}")
        for name, value in (("label", cp.label), ("prompt", cp.anchor.prompt),
                            ("agent", cp.anchor.agent), ("session", cp.anchor.session),
                            ("branch", cp.branch), ("HEAD", cp.head)):
            if value:
                lines = [printable(line) for line in value.splitlines()] or [""]
                click.echo(f"  {name.ljust(8)}  " + "\n            ".join(lines))
        if cp.staged:
            click.echo("  staged    changes were staged; restore --index puts them back")
        if cp.pinned:
            click.echo("  pinned")
        for words in data["thrownAway"]:
            click.echo(f"  git       {printable(words)}")
        click.echo(f"  changed   {plural(cp.files, 'file')}")
        for path, status in changes[:100]:
            click.echo(f"    {status} {printable(to_text(path))}")
        if len(changes) > 100:
            click.echo(f"    … and {len(changes) - 100} more")
        click.echo(f"  not held  {plural(len(coverage), 'path')}")
        coverage_lines(coverage)

    app.out(data, text)


def document(
    engine: Engine, cp: Checkpoint, changes: list[tuple[bytes, str]], coverage: list[LeftOut]
) -> dict[str, Any]:
    """All that is known of a checkpoint, for --json."""
    return {
        **cp.as_json(),
        "anchor": cp.anchor.as_json(),
        "staged": bool(cp.staged),
        "changes": [{"path": to_text(path), "status": status} for path, status in changes],
        "thrownAway": lost_in_git(engine.workspace, cp),
        "coverage": [item.as_json() for item in coverage],
    }


def lost_in_git(workspace: Workspace, cp: Checkpoint) -> list[str]:
    """What stood elsewhere before a command that throws work away, each with the git command that
    brings it back. The commits are git's own: they stay until its next garbage collection."""
    lines = []
    stood, stashed = cp.git.get("branches"), cp.git.get("stashes")
    if isinstance(stood, dict):
        now = branches(workspace)
        if cp.head and not cp.branch:  # detached: no branch holds its commits
            stood, now = {**stood, "HEAD": cp.head}, {**now, "HEAD": head_of(workspace)[0]}
        for name, commit in sorted(stood.items()):
            if isinstance(commit, str) and now.get(name) != commit:
                new = shlex.quote(f"rescued-{name}")
                commit = shlex.quote(commit)
                lines.append(f"{'' if name == 'HEAD' else 'branch '}{name} stood at {commit[:10]}: "
                             f"git branch {new} {commit}")
    known = {commit for commit, _ in stashes(workspace)} if stashed else set()
    for row in reversed(stashed) if isinstance(stashed, list) else ():  # each is put on top
        if isinstance(row, list) and len(row) == 2 and row[0] not in known:
            words, commit = shlex.quote(str(row[1])), shlex.quote(str(row[0]))
            lines.append(f"a stash is gone: git stash store -m {words} {commit}")
    return lines
