"""The `rewind` command: `python -m coderewind` is the same program.

Everything that can go wrong ends here: a RewindError in one line, ^C as 130, anything else as a
bug with a report file.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and exit."""
    _open_standard_streams()
    sys.exit(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    """Run one command line; its exit code."""
    if argv[:1] == ["hook"]:
        from coderewind.hooks.entry import run_hook

        return run_hook(argv[1:])
    if argv == ["bridge"]:
        from coderewind.bridge.entry import run_bridge

        return run_bridge()
    from coderewind.cli.top import run_cli

    return run_cli(argv)


def _open_standard_streams() -> None:
    """With a standard stream closed, the next file opened would take its place."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


if __name__ == "__main__":
    main()
