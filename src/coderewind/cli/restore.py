"""`rewind restore`: put a checkpoint back."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command, plural
from coderewind.cli.showing import plan_lines
from coderewind.engine import moving
from coderewind.engine.moving import Outcome
from coderewind.errors import RewindError
from coderewind.model.plan import Plan
from coderewind.model.records import Checkpoint

BACK = "undo-restore"


@click.command()
@click.argument("checkpoint", metavar="CP", required=False)
@click.option("--dry-run", is_flag=True, help="Show what would change and stop.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--path", "paths", multiple=True, metavar="P",
              help="Only this file or folder; may be given more than once.")
@click.option("--index", is_flag=True, help="Put back what was staged in git, too.")
@click.option("--code-only", is_flag=True, help="Files only, leave the conversation.")
@click.option("--context-only", is_flag=True, help="The conversation only, leave the files.")
@click.option("--continue", "go_on", is_flag=True, help="Finish an interrupted restore.")
@click.option("--abort", is_flag=True, help="Go back to before an interrupted restore.")
@command
def restore(
    app: App,
    *,
    checkpoint: str | None,
    dry_run: bool,
    yes: bool,
    paths: tuple[str, ...],
    index: bool,
    code_only: bool,
    context_only: bool,
    go_on: bool,
    abort: bool,
) -> None:
    """Put the files back exactly as they were at CP.

    Shows first what changes, what is deleted and what is kept, and why; then asks. The state
    before is kept as a checkpoint of its own, so that `rewind undo-restore` takes it all back.
    """
    if code_only and context_only:
        raise click.UsageError("give --code-only or --context-only, not both")
    if checkpoint is None and not go_on and not abort:
        raise click.UsageError("which checkpoint? `rewind list` shows them; @ is the latest")
    if sum((go_on, abort, checkpoint is not None)) != 1:
        raise click.UsageError("give one of CP, --continue and --abort")
    engine = app.engine()
    if go_on or abort:
        outcome = moving.resume(engine) if go_on else moving.abort(engine)
        app.out(outcome.as_json(), lambda: show_outcome(outcome, back=None if abort else BACK))
        return
    assert checkpoint is not None
    target = engine.resolve(checkpoint)
    if context_only:
        raise RewindError(no_conversation(target),
                          hint="restore without --context-only to put the files back")
    scope = tuple(app.root_path(engine, path) for path in paths)
    plan = None
    if dry_run or not yes:
        plan = engine.plan(target, paths=scope)
        if dry_run:
            data = {"plan": plan.as_json(), "done": False, "rescue": None,
                    "rescueNumber": None, "target": target.as_json()}
            app.out(data, lambda: _preview(target, plan))
            return
        if not app.as_json:
            _preview(target, plan)
        if not plan.is_empty or index:
            app.confirm("Restore?", yes=yes)
    outcome = engine.restore(target, paths=scope, index=index)
    app.out(outcome.as_json(),
            lambda: show_outcome(outcome, shown=plan, conversation=not code_only))


def _preview(target: Checkpoint, plan: Plan) -> None:
    click.echo(f"restoring checkpoint #{target.number} would:")
    plan_lines(plan)


def no_conversation(target: Checkpoint) -> str:
    return (f"checkpoint #{target.number} knows of no conversation: "
            "no agent's session is connected to it")


def show_outcome(
    outcome: Outcome,
    *,
    shown: Plan | None = None,
    conversation: bool = False,
    back: str | None = BACK,
) -> None:
    """What was done, and the command that takes it back (None: restoring the state before).

    A plan that was `shown` before is not shown again.
    """
    if shown is None or shown.as_json() != outcome.plan.as_json():
        plan_lines(outcome.plan)
    assert outcome.target is not None
    if outcome.plan.is_empty and outcome.rescue is None:
        return
    changes = plural(len(outcome.plan.steps), "change")
    click.echo(f"restored #{outcome.target.number}: {changes}, verified")
    if conversation and not outcome.target.anchor.session:
        click.echo("  files only: no agent's session is connected to this checkpoint")
    if outcome.rescue:
        number = outcome.rescue.number
        click.echo(f"  the state before is #{number}; "
                   f"rewind {back or f'restore {number}'} goes back to it")
