"""What a hook costs, beside git and beside nothing.

    python benchmarks/hook.py [--sizes 2000,20000] [--calls 20] [--write]

First the hook by itself: its share of Python's start, of git's own look at the tree, and the rest.
Then the real Claude Code on loopback: one session of shell calls without hooks, with a hook that
does nothing, and with ours; the difference is what one tool call costs more (three of our hooks
run at each). Milliseconds of wall time and, as the machine may be busy, of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[0] = str(REPOSITORY)
sys.path[1:1] = [str(REPOSITORY / "src"), str(REPOSITORY / "tests")]

from agents.fake_model import call, script, text  # noqa: E402 - the path above comes first
from agents.rooms import ClaudeRoom, HookRoom  # noqa: E402

from benchmarks.trees import make_tree  # noqa: E402

PAGE = REPOSITORY / "docs" / "agents" / "cost.md"
_TRIES = 15
_TRANSCRIPT = 50 << 20


class Cost:
    """Wall and processor time of something, in milliseconds: the median of some tries."""

    def __init__(self, work: Callable[[], object], tries: int = _TRIES) -> None:
        before = _cpu()
        walls = []
        for _ in range(tries):
            start = time.perf_counter()
            work()
            walls.append((time.perf_counter() - start) * 1000)
        self.wall = sorted(walls)[len(walls) // 2]
        self.cpu = (_cpu() - before) * 1000 / tries

    def __str__(self) -> str:
        return f"{self.wall:.0f} ({self.cpu:.0f})"


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def alone(size: int, folder: Path) -> list[str]:
    """One row of the first table."""
    room = HookRoom(folder)
    _fill(room, size)
    room.hook("SessionStart", source="startup")
    room.hook("UserPromptSubmit", prompt="x")
    time.sleep(3)  # files that are a few seconds old need not be read again
    room.hook("UserPromptSubmit", prompt="x")
    python = Cost(lambda: subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True))
    git = Cost(lambda: subprocess.run(["git", "status", "--porcelain"], cwd=room.folder,
                                      env=room.env(), check=True, stdout=subprocess.DEVNULL))
    same = Cost(lambda: room.tool("PreToolUse", "Bash", "t", command="ls"))
    numbers = iter(range(1000))

    def change() -> None:
        (room.folder / "old.txt").write_text(f"{next(numbers)}\n")
        room.tool("PostToolUse", "Bash", "t", command="ls")

    changed = Cost(change)
    prompt = Cost(lambda: room.hook("UserPromptSubmit", prompt="x"))
    row = json.dumps({"type": "user", "uuid": "u", "message": {"content": "x" * 5000}}) + "\n"
    room.transcript().write_text(row * (_TRANSCRIPT // len(row)))
    for _ in range(12):  # what is there already is archived a part at a time
        room.hook("UserPromptSubmit", prompt="x")
    large = Cost(lambda: room.hook("UserPromptSubmit", prompt="x"))
    room.close()
    limit = 60.0 if size <= 2000 else git.wall * 1.5 + 40
    met = "yes" if same.wall <= limit else "**no**"
    rest = same.wall - python.wall - git.wall
    return [f"{size:,}", str(same), str(python), str(git), f"{rest:.0f}", str(changed),
            str(prompt), str(large), f"≤ {limit:.0f}", met]


def in_claude(size: int, calls: int, folder: Path) -> list[str]:
    """One row of the second table."""
    room = ClaudeRoom(folder)
    _fill(room, size)
    settings = room.home / ".claude" / "settings.json"
    steps = [call("Bash", command="true", description="x") for _ in range(calls)]
    prompt = "go " + script(*steps, text("done"))

    def session() -> float:
        start = time.perf_counter()
        room.run(prompt)
        return (time.perf_counter() - start) * 1000

    session()
    without = min(session() for _ in range(3))
    handler = {"type": "command", "command": "true", "timeout": 30}
    events = ("PreToolUse", "PostToolUse", "PostToolBatch")
    settings.write_text(json.dumps({"hooks": {e: [{"hooks": [handler]}] for e in events}}))
    nothing = min(session() for _ in range(3))
    settings.write_text("{}")
    room.connect()
    session()
    time.sleep(3)
    ours = min(session() for _ in range(3))
    room.close()
    return [f"{size:,}", f"{without / calls:.0f}", f"{(nothing - without) / calls:+.0f}",
            f"{(ours - without) / calls:+.0f}"]


def _fill(room: HookRoom | ClaudeRoom, size: int) -> None:
    make_tree(room.folder / "tree", size)
    room.git("add", "-A")
    room.git("commit", "-qm", "tree")


def _table(headings: list[str], rows: list[list[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", default="2000,20000")
    options.add_argument("--calls", type=int, default=20)
    options.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    chosen = options.parse_args()
    sizes = [int(size) for size in chosen.sizes.split(",")]
    with tempfile.TemporaryDirectory(prefix="rewind-hook-") as folder:
        first = [alone(size, Path(folder) / f"alone-{size}") for size in sizes]
        second = [in_claude(size, chosen.calls, Path(folder) / f"claude-{size}") for size in sizes]
    text_ = (
        "# What a hook costs\n\n"
        "Written by `python benchmarks/hook.py --write`. Milliseconds of wall time, the median; in "
        f"brackets of processor time. Load when it was measured: {os.getloadavg()[0]:.1f} on "
        f"{os.cpu_count()} processors.\n\n## One hook by itself\n\n"
        + _table(["files", "nothing changed", "of it Python's start", "`git status` takes",
                  "the rest", "one file changed", "prompt", "prompt, 50 MB transcript",
                  "wanted", "met"], first)
        + f"\n## One shell call in Claude Code ({chosen.calls} calls, the best of 3 sessions)\n\n"
        + _table(["files", "without hooks", "three hooks that do nothing", "Rewind"], second)
    )
    print(text_)
    if chosen.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text_)
    return 0


if __name__ == "__main__":
    sys.exit(main())
