"""`rewind show`: one checkpoint."""

from __future__ import annotations

import time

import click

from coderewind.cli.app import App, age, command, plural
from coderewind.cli.showing import coverage_lines
from coderewind.cli.top import printable
from coderewind.model.paths import to_text


@click.command()
@click.argument("checkpoint", metavar="CP")
@command
def show(app: App, *, checkpoint: str) -> None:
    """Show one checkpoint: what changed, what it does not hold.

    And when it was made, and on which branch and commit.
    """
    engine = app.engine()
    cp = engine.resolve(checkpoint)
    coverage = engine.coverage_of(cp)
    changes = engine.changes_of(cp)
    data = {
        **cp.as_json(),
        "anchor": cp.anchor.as_json(),
        "staged": bool(cp.staged),
        "changes": [{"path": to_text(path), "status": status} for path, status in changes],
        "coverage": [item.as_json() for item in coverage],
    }

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
        click.echo(f"  changed   {plural(cp.files, 'file')}")
        for path, status in changes[:100]:
            click.echo(f"    {status} {printable(to_text(path))}")
        if len(changes) > 100:
            click.echo(f"    … and {len(changes) - 100} more")
        click.echo(f"  not held  {plural(len(coverage), 'path')}")
        coverage_lines(coverage)

    app.out(data, text)
