"""`rewind completion`: shell completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from coderewind.cli.app import App, command


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
    from coderewind.cli.top import rewind

    found = get_completion_class(shell)
    assert found is not None
    script = found(rewind, {}, "rewind", "_REWIND_COMPLETE").source()
    app.out({"shell": shell, "script": script}, lambda: click.echo(script))
