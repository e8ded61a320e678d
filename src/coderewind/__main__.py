"""The `rewind` command: `python -m coderewind` is the same program.

Everything that can go wrong ends here: a RewindError in one line, ^C as 130, anything else as a
bug with a report file.
"""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> None:
    """Run the command line and exit."""
    _open_standard_streams()
    os.umask(os.umask(0o077) & 0o077)  # what we make for ourselves we must be able to open
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while the command was still being loaded
        sys.stderr.write("interrupted\n")
        code = 130
    _leave(code)


def run(argv: list[str]) -> int:
    """Run one command line; its exit code."""
    if argv[:1] == ["hook"]:
        from coderewind.hooks.entry import run_hook

        return run_hook(argv[1:])
    if argv == ["bridge"]:
        from coderewind.bridge.entry import run_bridge

        return run_bridge()
    from coderewind.cli.quick import run_quickly

    code = run_quickly(argv)
    if code is not None:
        return code
    from coderewind.cli.top import run_cli

    return run_cli(argv)


def _open_standard_streams() -> None:
    """With a standard stream closed, the next file opened would take its place."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a sign is no error
            stream.reconfigure(errors="backslashreplace")


def _leave(code: int) -> NoReturn:
    """End at once: all is on the disk and said, and taking Python apart would cost 5 ms more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            code = code or 1
    os._exit(code)


if __name__ == "__main__":
    main()
