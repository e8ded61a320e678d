"""What Rewind costs in Pi: each event, the start, and a prompt in a large tree.

    python benchmarks/bridge.py [--size 20000] [--tries 9] [--write]

All in the real Pi against the model on loopback, with and without the extension, in turns. An
event's round trip is taken inside Pi, between an extension loaded before ours and one loaded
after it. Milliseconds of wall time, medians; the machine's load is said.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[0] = str(REPOSITORY)
sys.path[1:1] = [str(REPOSITORY / "src"), str(REPOSITORY / "tests")]

from agents.fake_model import call, script, text  # noqa: E402 - the path above comes first
from agents.pi import EXTENSION, PiRoom  # noqa: E402

from benchmarks.trees import make_tree  # noqa: E402
from coderewind.wiring import open_engine  # noqa: E402

PAGE = REPOSITORY / "docs" / "agents" / "pi-cost.md"
_EVENTS = ("context", "tool_call", "tool_result", "turn_end", "agent_settled")
_CLOCK = """
import {{ appendFileSync }} from "node:fs";
export default function (pi) {{
  for (const name of {events}) {{
    const row = () => `{side} ${{name}} ${{performance.now()}}\\n`;
    pi.on(name, () => appendFileSync(process.env.CLOCK, row()));
  }}
}}
"""
_CALLS = 40
_THINKS = 0.5  # seconds that a model takes for an answer, at the least


def _shell(room: PiRoom, **more: float) -> str:
    """A prompt with one shell call that changes a file."""
    steps = (room.shell("echo $RANDOM > old.txt"), text("done"))
    return "go " + script(*({**step, **more} for step in steps))


def events(folder: Path) -> dict[str, list[float]]:
    """How long our handler of each event took in Pi."""
    room = PiRoom(folder)
    names = json.dumps(_EVENTS)
    sides = []
    for side in ("before", "after"):
        path = folder / f"{side}.ts"
        path.write_text(_CLOCK.format(events=names, side=side))
        sides.append(str(path))
    clock = folder / "clock"
    with room.open(extensions=(sides[0], EXTENSION, sides[1]), CLOCK=str(clock)) as pi:
        pi.prompt("one")
        clock.unlink()
        steps = [call("bash", command="true") for _ in range(_CALLS)]
        pi.prompt("go " + script(*steps, text("done")))
    room.close()
    taken: dict[str, list[float]] = {}
    began: dict[str, float] = {}
    for line in clock.read_text().splitlines():
        side, name, at = line.split()
        if side == "before":
            began[name] = float(at)
        elif name in began:
            taken.setdefault(name, []).append(float(at) - began.pop(name))
    return taken


def starts(folder: Path, tries: int) -> tuple[float, float]:
    """`pi -p`, without and with the extension."""
    room = PiRoom(folder)

    def once(*extensions: str) -> float:
        start = time.perf_counter()
        subprocess.run(room.command("-p", "hello", extensions=extensions), cwd=room.folder,
                       env=room.env(), stdin=subprocess.DEVNULL, check=True,
                       stdout=subprocess.DEVNULL)
        return (time.perf_counter() - start) * 1000

    found = _in_turns(once, partial(once, EXTENSION), tries)
    room.close()
    return found


def large_tree(folder: Path, size: int, tries: int) -> dict[str, float]:
    """A prompt in a tree of many files, and one capture of that tree."""
    room = PiRoom(folder)
    make_tree(room.folder / "tree", size)
    room.git("add", "-A")
    room.git("commit", "-qm", "tree")
    found: dict[str, float] = {}
    prompts = {"plain": "go", "at once": _shell(room), "working": _shell(room, sleep=_THINKS)}
    with room.open() as ours, room.open(extensions=()) as bare:
        ours.prompt("first")
        time.sleep(3)  # files that are a few seconds old need not be read again

        def timed(pi_prompt: Callable[[str], object], words: str) -> float:
            start = time.perf_counter()
            pi_prompt(words)
            return (time.perf_counter() - start) * 1000

        ours.prompt("second")
        for name, words in prompts.items():
            without, with_ours = _in_turns(partial(timed, bare.prompt, words),
                                           partial(timed, ours.prompt, words), tries)
            found[name], found[name + " more"] = without, with_ours - without
    os.environ["REWIND_HOME"] = str(room.home / ".rewind")
    engine = open_engine(os.fsencode(room.folder))
    engine.current_snapshot()

    def capture() -> float:
        start = time.perf_counter()
        engine.current_snapshot()
        return (time.perf_counter() - start) * 1000

    found["capture"] = statistics.median(capture() for _ in range(tries))
    room.close()
    return found


def _in_turns(
    one: Callable[[], float], other: Callable[[], float], tries: int
) -> tuple[float, float]:
    """The medians of two measurements that are made in turns, on a machine that has other work."""
    one(), other()
    pairs = [(one(), other()) for _ in range(tries)]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--size", type=int, default=20000)
    options.add_argument("--tries", type=int, default=9)
    options.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="rewind-bridge-") as name:
        folder = Path(name)
        taken = events(folder / "events")
        without, with_ours = starts(folder / "starts", chosen.tries)
        large = large_tree(folder / "large", chosen.size, chosen.tries)
    everything = [value for values in taken.values() for value in values]
    rows = [f"| `{name}` | {len(values)} | {statistics.median(values):.2f} | "
            f"{max(values):.1f} |" for name, values in taken.items()]
    most = max(large["plain more"], large["working more"])
    page = (
        "# What Rewind costs in Pi\n\n"
        "Written by `python benchmarks/bridge.py --write`. Milliseconds of wall time, medians; "
        f"load when it was measured: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.\n\n"
        "## An event\n\n"
        f"How long Pi waits for Rewind, in a prompt with {_CALLS} shell calls. Wanted: less than "
        f"2; all events: **{statistics.median(everything):.2f}**.\n\n"
        "| event | how often | median | longest |\n| --- | --- | --- | --- |\n"
        + "\n".join(rows) + "\n\n## The start\n\n"
        f"`pi -p` with one answer takes {without:.0f}, with Rewind {with_ours:.0f}: "
        f"**{with_ours - without:+.0f}**. Wanted: at most 60 more.\n\n"
        f"## A prompt among {chosen.size:,} files\n\n"
        "| prompt | without | Rewind adds | one capture takes | captures' worth |\n"
        "| --- | --- | --- | --- | --- |\n"
        + "".join(f"| {words} | {large[key]:.0f} | {large[key + ' more']:.0f} | "
                  f"{large['capture']:.0f} | {large[key + ' more'] / large['capture']:.1f} |\n"
                  for key, words in (("plain", "a question"), ("working", "one shell call"),
                                     ("at once", "the same, by a model that answers at once")))
        + f"\nA shell call is timed with a model that thinks {_THINKS} s before each answer: "
        "captures run meanwhile. One that answers at once has to wait for all three of them. "
        "Wanted: at most two captures' worth. "
        f"Met: {'yes' if most <= 2 * large['capture'] else '**no**'}.\n"
    )
    print(page)
    if chosen.write:
        PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
