"""`rewind save` and `rewind list` without click: agents, scripts and people call them all the time,
and loading click takes as long as all the rest (benchmarks/speed.py).

Only the plain forms are known here. What is more than that, or wrong, goes the usual way.
"""

from __future__ import annotations

import os

from coderewind.cli.app import App
from coderewind.cli.ending import ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def run_quickly(argv: list[str]) -> int | None:
    """Run a plain command; its exit code, or None where the parser must have a look."""
    if "_REWIND_COMPLETE" in os.environ:
        return None
    directory = None
    words = list(argv)
    if words[:1] == ["-C"] and len(words) > 2:
        directory = words[1]
        words = words[2:]
    as_json = "--json" in words
    work = _READERS[words[0]](words[1:]) if words and words[0] in _READERS else None
    if work is None:
        return None

    def run() -> int:
        app = App(directory, as_json=as_json)
        try:
            work(app)
        finally:
            app.end_progress()
        return 0

    return ending(run, as_json=as_json)


def _save(words: list[str]) -> Callable[[App], None] | None:
    label = save_label(words)
    if label is None:
        return None
    from coderewind.cli.saving import save_now

    return lambda app: save_now(app, label)


def _list(words: list[str]) -> Callable[[App], None] | None:
    if not set(words) <= {"--json", "--all"}:
        return None
    from coderewind.cli.listing import list_now

    return lambda app: list_now(app, everything="--all" in words, limit=None)


_READERS = {"save": _save, "list": _list}


def save_label(words: list[str]) -> str | None:
    """The label in `[DESCRIPTION | --message TEXT] [--json]`; None if something else is there."""
    labels = []
    rest = iter(words)
    for word in rest:
        if word in ("-m", "--message"):
            text = next(rest, "--json")
            if text == "--json":
                return None
            labels.append(text)
        elif word.startswith("--message="):
            labels.append(word.removeprefix("--message="))
        elif not word.startswith("-"):
            labels.append(word)
        elif word != "--json":
            return None
    return labels[0] if len(labels) == 1 else None if labels else ""
