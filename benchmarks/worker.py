"""Run the engine on command, for contest.py: one command a line, wall and CPU seconds back."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from coderewind.wiring import open_engine


def save() -> None:
    open_engine().save()


def restore(number: str) -> None:
    engine = open_engine()
    engine.restore(engine.resolve(number))


def edit_and_save(name: str, times: str) -> None:
    """Many checkpoints, each with one file changed."""
    path = Path(name)
    for number in range(int(times)):
        path.write_text(f"version {number} at {time.monotonic_ns()}\n")
        save()


COMMANDS: dict[str, Callable[..., None]] = {
    "save": save,
    "restore": restore,
    "edit-and-save": edit_and_save,
}


def main() -> None:
    for line in sys.stdin:
        name, *arguments = line.split()
        gc.collect()
        cpu = _cpu()
        start = time.perf_counter()
        COMMANDS[name](*arguments)
        seconds = time.perf_counter() - start
        print(seconds, _cpu() - cpu, flush=True)


def _cpu() -> float:
    usages = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    main()
