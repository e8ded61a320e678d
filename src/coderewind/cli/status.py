"""`rewind status`: where things stand."""

from __future__ import annotations

import click

from coderewind.cli.app import App, age, command, plural, size_words
from coderewind.cli.ending import Unwell, printable
from coderewind.cli.showing import coverage_lines
from coderewind.engine.health import disk_usage, quick_check
from coderewind.model.paths import to_text
from coderewind.store import home
from coderewind.wiring import find_workspace


@click.command()
@command
def status(app: App) -> None:
    """Show what is protected, what is not held, and the health.

    And whether the folder stands at a checkpoint or at a state that is not saved yet.
    """
    workspace = find_workspace(app.directory)
    if home.locate(workspace) is None:
        data: dict[str, object] = {"worktree": to_text(workspace.root), "protected": False}
        app.out(data, lambda: click.echo(
            f"{printable(to_text(workspace.root))} is not protected; rewind init protects it"))
        return
    engine = app.engine()
    timeline = engine.timeline()
    newest = timeline.checkpoints[0] if timeline.checkpoints else None
    now = engine.current_snapshot()
    standing = engine.standing(timeline, now)
    problems = quick_check(engine)
    size = disk_usage(engine.store.git_dir)
    interrupted = engine.is_interrupted()
    data = {
        "worktree": to_text(workspace.root),
        "protected": True,
        "store": to_text(engine.store.git_dir),
        "mode": engine.store.mode,
        "bytes": size,
        "checkpoints": len(timeline.checkpoints),
        "last": newest.as_json() if newest else None,
        "standing": standing.as_json() if standing else None,
        "changed": standing is None,
        "coverage": [item.as_json() for item in now.coverage],
        "interrupted": interrupted,
        "healthy": not problems,
        "problems": problems,
    }

    def show() -> None:
        click.echo(f"worktree     {printable(to_text(workspace.root))}")
        click.echo(f"store        {printable(to_text(engine.store.git_dir))}"
                   f"  (mode {engine.store.mode}, {size_words(size)})")
        if newest is None:
            click.echo("checkpoints  none yet")
        else:
            click.echo(f"checkpoints  {len(timeline.checkpoints)}, the last #{newest.number} "
                       f"{age(newest.time)}")
        if standing is not None:
            click.echo(f"stands at    #{standing.number}")
        else:
            click.echo("stands at    a state that is not saved yet; rewind save keeps it")
        click.echo(f"not held     {plural(len(now.coverage), 'path')}")
        coverage_lines(now.coverage, limit=15)
        if interrupted:
            click.echo("restore      interrupted: --continue or --abort")
        click.echo(f"health       {'good' if not problems else '; '.join(problems)}")

    app.out(data, show)
    if problems:
        raise Unwell("the store needs attention", hint="rewind doctor says what is wrong")
