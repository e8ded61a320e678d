"""How a command ends: the one place where errors become words and exit codes.

It needs no click, so that the commands which do not wait for it (quick.py) end in the same way.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from coderewind import __version__
from coderewind.errors import RewindError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Unwell(RewindError):
    """A command has shown its result, and the result is bad news: words for stderr, and exit 1."""


def ending(work: Callable[[], int], *, as_json: bool) -> int:
    """Run a command to its exit code. No traceback reaches the user."""
    try:
        try:
            signal.signal(signal.SIGTERM, _terminated)
            code = work()
            _flush()
            return code
        except KeyboardInterrupt:
            return _failed(RewindError("interrupted", exit_code=130), as_json=as_json)
        except RewindError as error:
            return _failed(error, as_json=as_json)
        except BrokenPipeError:
            _drop_output()
            return 0
        except OSError as error:
            return _failed(system_error(error), as_json=as_json)
        except Exception as error:  # noqa: BLE001 - the top of the surface: nothing may escape
            return _failed(RewindError(report_bug(error), exit_code=3), as_json=as_json)
    except OSError:  # not even the error could be written
        _drop_output()
        return 1


def _failed(error: RewindError, *, as_json: bool) -> int:
    """Say what is wrong and what to do: to people on stderr, to programs as the one document."""
    say(f"rewind: {printable(error.message)}")
    if error.hint:
        say(f"  {printable(error.hint)}")
    if as_json and not isinstance(error, Unwell):
        print(json.dumps({"error": {"message": error.message, "hint": error.hint}}), flush=True)
    return error.exit_code


def say(words: str) -> None:
    """One line on stderr."""
    print(words, file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """Text for a terminal: control characters, which could rewrite the screen, made visible."""
    return "".join(c if c.isprintable() or c == " " else repr(c)[1:-1] for c in text)


def _terminated(_signum: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _drop_output() -> None:
    """Nobody reads it, or it can't be written: Python must not try again at its end."""
    for fd in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), fd)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


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

    from coderewind.store.folders import make_private, rewind_home

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
