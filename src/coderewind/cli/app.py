"""What commands share: the engine, --json, colours, progress, questions.

click, which takes longer to load than the engine, is loaded only where it is used (quick.py).
"""

from __future__ import annotations

import json
import os
import sys
import time

from coderewind.cli.ending import printable, say
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.model.paths import to_text
from coderewind.wiring import open_engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    import click

    F = TypeVar("F", bound=Callable[..., object])


_UNITS = {"looked at": "folders", "checked": "objects", "read": "bytes", "stored": "bytes"}
_AT_ONCE = 0.3  # seconds; what takes no longer needs no progress


class App:
    """One command's surroundings."""

    def __init__(self, directory: str | None, *, as_json: bool) -> None:
        self.directory = directory or "."
        self.as_json = as_json
        self._progress_shown = False
        self._progress_at = 0.0
        self._began = time.monotonic()

    def engine(self, *, create: bool = False) -> Engine:
        """The engine of the chosen folder; says so when a restore was interrupted."""
        engine = open_engine(self.directory, create=create, progress=self.progress)
        try:
            interrupted = engine.interrupted()
        except RewindError as error:
            self.warn(f"{error.message}: {error.hint}")
            return engine
        if interrupted is not None:
            self.warn(
                "a restore was interrupted here: `rewind restore --continue` finishes it, "
                "`rewind restore --abort` goes back"
            )
        return engine

    def progress(self, verb: str, count: int) -> None:
        """Show on a terminal that long work goes on; without a count, which work."""
        now = time.monotonic()
        if now - self._progress_at < 0.1 or (count and now - self._began < _AT_ONCE):
            return
        self._progress_at = now
        if not _can_draw(sys.stderr):
            return
        self._progress_shown = True
        unit = _UNITS.get(verb, "files")
        one = unit.removesuffix("s") if count == 1 else unit
        much = size_words(count) if unit == "bytes" else f"{count:,} {one}"
        sys.stderr.write(f"\r\x1b[K{verb} {much} …" if count else f"\r\x1b[K{verb} …")
        sys.stderr.flush()

    def end_progress(self) -> None:
        if self._progress_shown:
            sys.stderr.write("\r\x1b[K")
            self._progress_shown = False

    def out(self, data: object, text: Callable[[], None]) -> None:
        """Show a result: as one JSON document, or by a function that prints it."""
        self.end_progress()
        try:
            if self.as_json:
                print(json.dumps(data))
            else:
                text()
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise RewindError(f"the result could not be printed: {error.strerror or error}",
                              hint="all else was done") from error

    def warn(self, words: str) -> None:
        self.end_progress()
        say(f"rewind: {printable(words)}")

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask, unless --yes was given; without a terminal there is nobody to ask."""
        self.end_progress()
        if yes:
            return
        if self.as_json or not _is_terminal(sys.stdin):
            raise RewindError("not confirmed", hint="there is no terminal to ask on: add --yes",
                              exit_code=2)
        import click

        if not click.confirm(question, default=False, err=True):
            raise RewindError("nothing was changed", exit_code=1)

    def can_ask(self) -> bool:
        return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)

    def root_path(self, engine: Engine, path: str) -> bytes:
        """A path typed by the user, relative to the worktree's root.

        Below the root it is taken by its words: what is a link now may have been a folder then.
        """
        full = os.path.normpath(os.path.join(os.path.realpath(os.fsencode(self.directory)),
                                             os.fsencode(path)))
        parts = full.split(b"/")
        for depth in range(1, len(parts) + 1):
            if os.path.realpath(b"/".join(parts[:depth]) or b"/") == engine.workspace.root:
                return b"/".join(parts[depth:])
        raise RewindError(f"{path} is outside {to_text(engine.workspace.root)}",
                          hint="name a path inside it", exit_code=2)


def command(function: F) -> F:
    """Give a command --json and -C, and an App as its first argument."""
    import functools

    import click

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @in_folder
    @click.pass_context
    @functools.wraps(function)
    def wrapped(
        ctx: click.Context, /, *args: object, as_json: bool, directories: tuple[str, ...],
        **kw: object
    ) -> object:
        app = App(folder_of(ctx, directories), as_json=as_json)
        try:
            return function(app, *args, **kw)
        finally:
            app.end_progress()

    return wrapped  # type: ignore[return-value]


def in_folder(function: F) -> F:
    """Give a command -C: each one is seen from the one before it, as in git."""
    import click

    from coderewind.cli.offers import folders

    return click.option("-C", "directories", metavar="DIR", multiple=True, shell_complete=folders,
                        help="Work in DIR instead of here.")(function)


def folder_of(ctx: click.Context, directories: tuple[str, ...]) -> str:
    """The folder that the -C before and after a command's name lead to."""
    return os.path.join("", *(ctx.obj or ()), *directories)


def _is_terminal(stream: object) -> bool:
    try:
        return bool(stream and stream.isatty())  # type: ignore[attr-defined]
    except ValueError:
        return False


def _can_draw(stream: object) -> bool:
    """Whether it is a terminal that knows colours and how to clear a line."""
    return os.environ.get("TERM", "dumb") not in ("dumb", "") and _is_terminal(stream)


_COLOURS = {"red": 31, "green": 32, "yellow": 33, "cyan": 36}


def on_terminal() -> bool:
    """Whether results go to a person's screen."""
    return _is_terminal(sys.stdout)


def in_colour() -> bool:
    return _can_draw(sys.stdout) and not os.environ.get("NO_COLOR")


def painted(text: str, colour: str | None, *, bold: bool = False) -> str:
    """A text in colour, where colours are wanted."""
    codes = ["1"] if bold else []
    if colour is not None:
        codes.append(str(_COLOURS[colour]))
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes and in_colour() else text


def age(milliseconds: int) -> str:
    """How long ago, in a few characters."""
    seconds = max(0, int(time.time() - milliseconds / 1000))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"


def size_words(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
