"""`rewind save` without click: agents and scripts call it at every step, and loading click takes as
long as all the rest of it (benchmarks/speed.py).

Only the plain forms are known here. What is not plainly a save, or wrong, goes the usual way.
"""

from __future__ import annotations

import os

from coderewind.cli.app import App
from coderewind.cli.ending import ending
from coderewind.cli.saving import save_now


def save_quickly(argv: list[str]) -> int | None:
    """Run `rewind save`; the exit code, or None where the parser must have a look."""
    words = Words.of(argv)
    if words is None or "_REWIND_COMPLETE" in os.environ:
        return None

    def work() -> int:
        app = App(words.directory, as_json=words.as_json)
        try:
            save_now(app, words.label)
        finally:
            app.end_progress()
        return 0

    return ending(work, as_json=words.as_json)


class Words:
    """`[-C DIR] save [DESCRIPTION | --message TEXT] [--json]`, taken apart."""

    __slots__ = ("as_json", "directory", "label")

    def __init__(self) -> None:
        self.as_json = False
        self.directory: str | None = None
        self.label = ""

    @classmethod
    def of(cls, argv: list[str]) -> Words | None:
        """None when something else was meant, or nothing that makes sense."""
        found = cls()
        rest = list(argv)
        if rest[:1] == ["-C"] and len(rest) > 2:
            found.directory = rest[1]
            rest = rest[2:]
        if rest[:1] != ["save"]:
            return None
        named = False
        position = 1
        while position < len(rest):
            word = rest[position]
            if word == "--json":
                found.as_json = True
            elif named:
                return None
            elif word in ("-m", "--message") and position + 1 < len(rest):
                position += 1
                found.label, named = rest[position], True
            elif word.startswith("--message="):
                found.label, named = word.removeprefix("--message="), True
            elif word.startswith("-"):
                return None
            else:
                found.label, named = word, True
            position += 1
        return found
