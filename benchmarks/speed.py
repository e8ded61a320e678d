"""Measure Rewind against git and the methods of other tools; one script, one table.

    python benchmarks/speed.py [--quick] [--sizes 2000,20000,100000] [--rounds 15] [--write]

Prints the table, and with --write writes docs/benchmarks.md. Takes half an hour, and for the
largest tree about 3 GB of room for temporary files (TMPDIR chooses where).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[0] = str(REPOSITORY)

from benchmarks import experiments, rows  # noqa: E402 - the path above comes first
from benchmarks.contest import Lab  # noqa: E402
from benchmarks.trees import make_tree  # noqa: E402

PAGE = REPOSITORY / "docs" / "benchmarks.md"
PARTS = ("captures", "restores", "list", "memory", "disk", "start")
SIZES = "2000,20000,100000"
ROUNDS, QUICK_ROUNDS = 15, 5
RESTORED = 20_000  # files in the tree that restores are measured in


def main() -> int:
    options = _options()
    sizes = [int(size) for size in options.sizes.split(",")]
    parts = options.only.split(",") if options.only else list(PARTS)
    began = time.monotonic()
    found: list[rows.Row] = []
    load: list[float] = []
    with tempfile.TemporaryDirectory(prefix="rewind-speed-") as folder:
        lab = Lab(Path(folder))
        if "captures" in parts or "restores" in parts:
            for size in sizes:
                _say(f"a tree of {size:,} files")
                found += _on_tree(lab, size, parts, options.rounds)
                load.append(os.getloadavg()[0])
        if "list" in parts:
            count = 500 if options.quick else 10_000
            _say(f"{count:,} checkpoints")
            found += experiments.listing(lab, count, 7)
        if "memory" in parts:
            _say("big files")
            large = 96 if options.quick else 1024
            found += experiments.memory(lab, (32 << 20, large << 20))
        if "disk" in parts:
            size, count = (2000, 100) if options.quick else (20_000, 1000)
            _say(f"disk: {count:,} checkpoints of {size:,} files")
            found += experiments.disk(lab, size, count)
        load.append(os.getloadavg()[0])
        _say("start-up")
        found += experiments.start_up(lab, 15)
        imports = experiments.import_costs(lab)
        git = lab.read("git", "--version", at=lab.home)
    print(rows.text(found))
    print(imports)
    if options.write:
        minutes = (time.monotonic() - began) / 60
        command = "python benchmarks/speed.py --write"
        if options.sizes != SIZES:
            command += f" --sizes {options.sizes}"
        if options.rounds != ROUNDS:
            command += f" --rounds {options.rounds}"
        PAGE.write_text(rows.page(found, command, git, minutes, imports, load))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true",
                        help="small numbers, in two minutes")
    parser.add_argument("--sizes", default=SIZES, help="files in the trees")
    parser.add_argument("--rounds", type=int, default=ROUNDS,
                        help="how often everybody runs in a tree; the best counts")
    parser.add_argument("--only", help="some parts: " + ",".join(PARTS))
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    if options.quick:
        options.rounds = min(options.rounds, QUICK_ROUNDS)
    if options.write and (options.quick or options.only):
        parser.error("the page is written by a whole run: --write fits neither --quick nor --only")
    return options


def _on_tree(lab: Lab, size: int, parts: list[str], repeat: int) -> list[rows.Row]:
    tree = make_tree(lab.folder / f"tree{size}", size)
    lab.git("init", "-q", at=tree.root)
    lab.git("add", "-A", at=tree.root)
    lab.git("commit", "-q", "-m", "all of it", at=tree.root)
    lab.git("gc", "-q", at=tree.root)
    found = experiments.first_capture(lab, tree)
    time.sleep(experiments.SETTLED)
    captured = experiments.captures(lab, tree, repeat)
    found += captured
    if "restores" in parts and size == RESTORED:
        found += experiments.restores(lab, tree, repeat, captured[0].ours)
    lab.run("rm", "-rf", tree.root, at=lab.folder)
    lab.run("rm", "-rf", lab.rewind_home, at=lab.folder)
    return found


def _say(words: str) -> None:
    print(words, "...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
