"""`rewind completion`: shell completion."""

from __future__ import annotations

import os

import click

from coderewind.cli.app import App, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_MOST = 50  # of the newest checkpoints
_SECOND_NAME = {
    "bash": "complete -o nosort -F _rewind_completion coderewind\n",
    "zsh": "compdef _rewind_completion coderewind\n",
    "fish": "complete --no-files --command coderewind --wraps rewind\n",
}


def checkpoints(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What can stand for a CP: numbers and labels, the newest first."""
    from click.shell_completion import CompletionItem

    from coderewind.cli.showing import describe
    from coderewind.errors import RewindError
    from coderewind.wiring import open_engine

    above = ctx.parent.params.get("directory") if ctx.parent else None
    folder = os.path.join(above or ".", ctx.params.get("directory") or ".")
    try:
        found = open_engine(folder).timeline().checkpoints
    except (RewindError, OSError):
        return []
    items = [CompletionItem(str(cp.number), help=describe(cp) or cp.kind) for cp in found[:_MOST]]
    items += [CompletionItem(cp.label, help=f"#{cp.number}")
              for cp in found if cp.label and cp.label.isprintable() and incomplete]
    return [item for item in items if item.value.startswith(incomplete)]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@command
def completion(app: App, *, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash: in ~/.bashrc  eval "$(rewind completion bash)"
    zsh:  in ~/.zshrc   eval "$(rewind completion zsh)"
    fish: rewind completion fish > ~/.config/fish/completions/rewind.fish
    """
    from click.shell_completion import get_completion_class

    from coderewind.cli.top import rewind

    found = get_completion_class(shell)
    assert found is not None
    script = found(rewind, {}, "rewind", "_REWIND_COMPLETE").source() + _SECOND_NAME[shell]
    app.out({"shell": shell, "script": script}, lambda: click.echo(script))
