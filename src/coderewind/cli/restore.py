"""`rewind restore`: put a checkpoint back."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command, plural
from coderewind.cli.offers import checkpoints, files
from coderewind.cli.showing import plan_lines
from coderewind.engine import conversation, legacy, moving
from coderewind.engine.conversation import Resume, Talk
from coderewind.engine.engine import Engine
from coderewind.engine.moving import Outcome
from coderewind.errors import RewindError
from coderewind.model.plan import Plan
from coderewind.model.records import Checkpoint

BACK = "undo-restore"


@click.command()
@click.argument("checkpoint", metavar="CP", shell_complete=checkpoints, required=False)
@click.option("--dry-run", is_flag=True, help="Show what would change and stop.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--path", "paths", multiple=True, metavar="P", shell_complete=files,
              help="Only this file or folder; may be given more than once.")
@click.option("--index", is_flag=True, help="Put back what was staged in git, too.")
@click.option("--code-only", is_flag=True, help="Files only, leave the conversation.")
@click.option("--context-only", is_flag=True, help="The conversation only, leave the files.")
@click.option("--same-session", is_flag=True,
              help="Pi and omp, closed: go on in the session itself, not in a new one.")
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
    same_session: bool,
    go_on: bool,
    abort: bool,
) -> None:
    """Put files and conversation back exactly as they were at CP.

    Shows first what changes, what is deleted and what is kept, and why; then asks. The state
    before is kept as a checkpoint of its own, so that `rewind undo-restore` takes it all back.
    The conversation goes on in a new session of the agent; the old one stays as it is. Sessions
    of Pi and omp are trees: --same-session goes on in the session itself, once it is closed.
    """
    if code_only and context_only:
        raise click.UsageError("give --code-only or --context-only, not both")
    if context_only and (paths or index):
        raise click.UsageError("--context-only leaves the files: --path and --index do not fit")
    if same_session and (code_only or paths):
        raise click.UsageError("--same-session is about the conversation: without --code-only "
                               "and --path")
    if checkpoint is None and not go_on and not abort:
        raise click.UsageError("which checkpoint? `rewind list` shows them; @ is the latest")
    if sum((go_on, abort, checkpoint is not None)) != 1:
        raise click.UsageError("give one of CP, --continue and --abort")
    if (go_on or abort) and (dry_run or paths or index or code_only or context_only
                             or same_session):
        raise click.UsageError("--continue and --abort end what was begun, as it was begun: no "
                               "other option fits")
    engine = app.engine()
    if go_on or abort:
        outcome = moving.resume(engine) if go_on else moving.abort(engine)
        app.out(outcome.as_json(), lambda: show_outcome(outcome, back=None if abort else BACK))
        return
    assert checkpoint is not None
    target = legacy.checkpoint_of(engine, checkpoint)
    if context_only:
        _conversation_only(app, engine, target, dry_run=dry_run, yes=yes,
                           same_session=same_session)
        return
    scope = tuple(app.root_path(engine, path) for path in paths)
    talk = None if code_only or scope else _talk(app, engine, target)
    if same_session:
        conversation.check_same_session(talk or conversation.prepare(engine, target))
    plan = None
    if dry_run or not yes:
        plan = engine.plan(target, paths=scope)
        if dry_run:
            data = {"plan": plan.as_json(), "done": False, "rescue": None,
                    "rescueNumber": None, "target": target.as_json(),
                    "conversation": talk.words() if talk else None}
            app.out(data, lambda: _preview(target, plan, talk, index=index))
            return
        app.end_progress()
        if not app.as_json:
            _preview(target, plan, talk, index=index)
        if not plan.is_empty or index or talk:
            app.confirm("Restore?", yes=yes)
    outcome = engine.restore(target, paths=scope, index=index)
    resume = None
    if talk is not None:
        move = outcome.rescue.id if outcome.rescue else ""
        resume = conversation.restore(engine, talk, move=move, same_session=same_session)
    data = {**outcome.as_json(), "resume": resume.as_json() if resume else None}
    app.out(data, lambda: show_outcome(outcome, shown=plan, resume=resume, index=index,
                                       files_only=not (code_only or scope)))


def _talk(app: App, engine: Engine, target: Checkpoint) -> Talk | None:
    """The checkpoint's conversation; files can be restored without it, so its lack is only said."""
    if not target.anchor.session or not target.at:
        return None
    try:
        return conversation.prepare(engine, target)
    except RewindError as error:
        app.warn(f"files only: {error.message}")
        return None


def _conversation_only(
    app: App, engine: Engine, target: Checkpoint, *, dry_run: bool, yes: bool, same_session: bool
) -> None:
    talk = conversation.prepare(engine, target)
    if same_session:
        conversation.check_same_session(talk)
    if dry_run:
        data: dict[str, object] = {"done": False, "target": target.as_json(),
                                   "conversation": talk.words()}
        app.out(data, lambda: click.echo(f"conversation: {talk.words()}"))
        return
    if not yes and not app.as_json:
        click.echo(f"conversation: {talk.words()}")
    app.confirm("Restore the conversation?", yes=yes)
    resume = conversation.restore(engine, talk, same_session=same_session)
    data = {"done": True, "target": target.as_json(), "resume": resume.as_json()}
    app.out(data, lambda: show_resume(resume))


def _preview(target: Checkpoint, plan: Plan, talk: Talk | None, *, index: bool) -> None:
    click.echo(f"restoring checkpoint #{target.number} would:")
    plan_lines(plan)
    if index:
        click.echo("  index: what was staged then is staged again")
    if talk is not None:
        click.echo(f"  conversation: {talk.words()}")


def show_outcome(
    outcome: Outcome,
    *,
    resume: Resume | None = None,
    files_only: bool = False,
    index: bool = False,
    shown: Plan | None = None,
    back: str | None = BACK,
) -> None:
    """What was done, and the command that takes it back (None: restoring the state before).

    A plan that was `shown` before is not shown again.
    """
    if shown is None or shown.as_json() != outcome.plan.as_json():
        plan_lines(outcome.plan)
    assert outcome.target is not None
    if outcome.plan.is_empty and outcome.rescue is None:
        if resume is not None:
            show_resume(resume)
        return
    changes = plural(len(outcome.plan.steps), "change")
    click.echo(f"restored #{outcome.target.number}: {changes}, verified")
    if index:
        click.echo("  what was staged then is staged again")
    if files_only and not outcome.target.anchor.session:
        click.echo("  files only: no agent's session is connected to this checkpoint")
    if outcome.rescue:
        number = outcome.rescue.number
        click.echo(f"  the state before is #{number}; "
                   f"rewind {back or f'restore {number}'} goes back to it")
    if resume is not None:
        show_resume(resume)


def show_resume(resume: Resume) -> None:
    """The one command that continues."""
    import shlex

    from coderewind.cli.ending import printable

    if resume.session:
        click.echo("go on with:")
    else:
        click.echo("this was the first prompt: start fresh with")
    click.echo("  " + printable(shlex.join(resume.command)))
    if resume.prompt and resume.prompt not in resume.command:
        click.echo("and this prompt:\n  " + "\n  ".join(
            printable(line) for line in resume.prompt.splitlines()))
