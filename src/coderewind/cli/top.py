"""The command group, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys

import click

from coderewind import __version__
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
    "mcp": ("mcp", "mcp"),
    "statusline": ("hook", "statusline"),
    "store": ("store", "store"),
    "demo": ("demo", "demo"),
    "completion": ("completion", "completion"),
}


class Unwell(RewindError):
    """A command has shown its result, and the result is bad news: words for stderr, and exit 1."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, function = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(f"coderewind.cli.{module}"), function)
        assert isinstance(command, click.Command)
        return command


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-C", "directory", metavar="DIR", help="Work in DIR instead of here.")
@click.version_option(__version__, message="rewind %(version)s")
@click.pass_context
def rewind(ctx: click.Context, directory: str | None) -> None:
    """The time machine for coding agents: exact checkpoints of a folder, put back byte for byte.

    Start with `rewind init` in a project; `rewind demo` shows it at work in a scratch folder.

    A checkpoint CP is a number (12), a label, @ for the latest, @-2, an age ("10 minutes ago"),
    or a snapshot id.
    """
    ctx.obj = {"directory": directory}


def run_cli(argv: list[str]) -> int:
    """Run a command line; its exit code. No traceback reaches the user."""
    try:
        return _run(argv)
    except OSError:  # not even the error could be written
        _drop_output()
        return 1


def _run(argv: list[str]) -> int:
    as_json = "--json" in argv
    try:
        signal.signal(signal.SIGTERM, _terminated)
        rewind.main(argv, prog_name="rewind", standalone_mode=False)
        _flush()
        return 0
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.UsageError as error:
        error.show()
        return 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return 130
    except RewindError as error:
        _show(error, as_json=as_json)
        return error.exit_code
    except BrokenPipeError:
        _drop_output()
        return 0
    except OSError as error:
        _show(system_error(error), as_json=as_json)
        return 1
    except Exception as error:  # noqa: BLE001 - the top of the surface: nothing may escape
        click.echo(f"rewind: {report_bug(error)}", err=True)
        return 3


def _terminated(_signum: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _drop_output() -> None:
    """Nobody reads it, or it can't be written: Python must not try again at its end."""
    for fd in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), fd)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _show(error: RewindError, *, as_json: bool) -> None:
    click.echo(f"rewind: {printable(error.message)}", err=True)
    if error.hint:
        click.echo(f"  {printable(error.hint)}", err=True)
    if as_json and not isinstance(error, Unwell):
        click.echo(json.dumps({"error": {"message": error.message, "hint": error.hint}}))


def system_error(error: OSError) -> RewindError:
    """The system refused something that no layer below had better words for."""
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
    return RewindError(f"{where}{error.strerror or error}",
                       hint="nothing that is listed was lost; rewind status says how things stand")


def report_bug(error: BaseException) -> str:
    """Write a report without prompts, contents or environment; one line that says where it is."""
    import platform
    import tempfile
    import traceback

    from coderewind.store.home import make_private, rewind_home

    frames = traceback.format_list(traceback.extract_tb(error.__traceback__))
    text = "".join(
        [
            f"coderewind {__version__}, Python {platform.python_version()}, ",
            f"{platform.platform()}\n",
            *frames,
            f"{type(error).__name__}\n",
        ]
    )
    try:
        make_private(rewind_home())
        folder = rewind_home() + b"/reports"
        make_private(folder)
        fd, path = tempfile.mkstemp(b".txt", b"bug-", folder)
        os.write(fd, text.encode("utf-8", "replace"))
        os.close(fd)
        where = f"a report is in {os.fsdecode(path)}"
    except (OSError, RewindError):
        where = "no report could be written"
    return f"this is a bug in Rewind ({type(error).__name__}); {where}"


def printable(text: str) -> str:
    """Text for a terminal: control characters, which could rewrite the screen, made visible."""
    return "".join(c if c.isprintable() or c == " " else repr(c)[1:-1] for c in text)
