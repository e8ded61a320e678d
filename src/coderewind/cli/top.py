"""The command group: every command, and what a command line that makes no sense is told."""

from __future__ import annotations

import importlib
import os

import click

from coderewind import __version__
from coderewind.cli.app import in_folder
from coderewind.cli.ending import ending
from coderewind.errors import RewindError

# name -> (module, function); imported only when used, because start-up is part of every command.
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init", "init"),
    "save": ("save", "save"),
    "list": ("list", "list_"),
    "show": ("show", "show"),
    "diff": ("diff", "diff"),
    "restore": ("restore", "restore"),
    "undo": ("undo", "undo"),
    "redo": ("undo", "redo"),
    "undo-restore": ("undo", "undo_restore"),
    "status": ("status", "status"),
    "label": ("label", "label"),
    "pin": ("label", "pin"),
    "unpin": ("label", "unpin"),
    "gc": ("gc", "gc"),
    "config": ("config", "config"),
    "validate": ("config", "validate"),
    "doctor": ("doctor", "doctor"),
    "hook": ("hook", "hook"),
    "bridge": ("hook", "bridge"),
    "mcp": ("mcp", "mcp"),
    "statusline": ("hook", "statusline"),
    "store": ("store", "store"),
    "demo": ("demo", "demo"),
    "completion": ("completion", "completion"),
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches

            near = " or ".join(map(repr, get_close_matches(name, COMMANDS, 2)))
            ctx.fail(f"no such command {name!r}." + (f" Did you mean {near}?" if near else ""))
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, function = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(f"coderewind.cli.{module}"), function)
        assert isinstance(command, click.Command)
        return command


@click.command(cls=_Commands, invoke_without_command=True,
               subcommand_metavar="COMMAND [ARGS]...",
               context_settings={"help_option_names": ["-h", "--help"]})
@in_folder
@click.version_option(__version__, message="rewind %(version)s")
@click.pass_context
def rewind(ctx: click.Context, directories: tuple[str, ...]) -> None:
    """The time machine for coding agents: exact checkpoints of a folder, put back byte for byte.

    Start with `rewind init` in a project; `rewind demo` shows it at work in a scratch folder.

    A checkpoint CP is a number (12), a label, @ for the latest, @-2, an age ("10 minutes ago"),
    or a snapshot id.
    """
    ctx.obj = directories
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)


def run_cli(argv: list[str]) -> int:
    """Run a command line; its exit code."""
    as_json = "--json" in argv
    return ending(lambda: _run(argv, as_json=as_json), as_json=as_json)


def _run(argv: list[str], *, as_json: bool) -> int:
    try:
        code = rewind.main(argv, prog_name="rewind", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.UsageError as error:
        raise _misused(error) from None
    except SystemExit:
        if "_REWIND_COMPLETE" in os.environ:
            raise
        raise BrokenPipeError from None  # for nothing else click ends the program by itself


def _misused(error: click.UsageError) -> RewindError:
    """A command line that is not understood, in our voice."""
    words, _, advice = error.format_message().partition(". ")
    words = words[:1].lower() + words[1:].rstrip(".").replace("'[N]'", "N")
    command = error.ctx.command_path if error.ctx else "rewind"
    hint = f"{advice[:1].lower()}{advice[1:]} " if advice else ""
    return RewindError(words, hint=f"{hint}{command} --help shows how", exit_code=2)
