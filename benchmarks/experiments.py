"""The measurements, each in a fresh folder."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks.contest import Contestant, Lab, Usage, contest
from benchmarks.rows import Row
from benchmarks.trees import Tree, copy_tree, make_tree

SETTLED = 36  # seconds after which no file counts as written a moment ago
MS = 0.001


def captures(lab: Lab, tree: Tree, repeat: int) -> list[Row]:
    """Unchanged and one-file captures, beside `git status`, a fresh index and tar."""
    root, size = tree.root, len(tree.files)
    index = lab.folder / "fresh-index"
    archive = lab.folder / "archive.tar.gz"

    def fresh_index() -> Usage:
        index.unlink(missing_ok=True)
        env = {"GIT_INDEX_FILE": os.fspath(index)}
        add = lab.git("add", "-A", at=root, env=env)
        tree = lab.git("write-tree", at=root, env=env)
        return Usage(add.seconds + tree.seconds, add.cpu + tree.cpu, 0)

    def tar() -> Usage:
        return lab.run("tar", "-czf", archive, "--exclude=node_modules", "--exclude=.git", ".",
                       at=root)

    rows = []
    with lab.worker(root) as work:
        edited = tree.sample(1)[0]
        for name, prepare in (("unchanged", None), ("one file", _editing(tree, [edited]))):
            slow = max(1, repeat // 3)
            ways = contest({
                "status": Contestant(lambda: lab.git("status", at=root)),
                "capture": Contestant(lambda: work("save")),
                "process": Contestant(lambda: lab.rewind("save", at=root)),
                "rewind status": Contestant(lambda: lab.rewind("status", at=root)),
                "fresh": Contestant(fresh_index, rarely=slow),
                "tar": Contestant(tar, rarely=slow),
            }, repeat, prepare)
            status = ways["status"]
            capture, process = ways["capture"], ways["process"]
            big = size >= 20_000
            rows += [
                timed(f"capture, {name}", size, capture, status, "git status",
                      limit=1.5 * status.seconds, wanted="at most 1.5 x"),
                timed(f"capture, {name}", size, capture, ways["fresh"], "fresh index",
                      at_least=3 if big else None, wanted="at least 3 x faster" if big else ""),
                timed(f"capture, {name}", size, capture, ways["tar"], "tar"),
                timed(f"process, {name}", size, process, status, "git status",
                      limit=1.5 * status.seconds + 60 * MS, wanted="at most 1.5 x + 60 ms"),
                timed(f"rewind status, {name}", size, ways["rewind status"], status, "git status"),
            ]
    index.unlink(missing_ok=True)
    archive.unlink(missing_ok=True)
    return rows


def first_capture(lab: Lab, tree: Tree) -> list[Row]:
    """`rewind init` on a committed tree and on a plain folder, beside `git add` into nothing."""
    root, size = tree.root, len(tree.files)
    seconds = lab.rewind("init", at=root).seconds
    plain = copy_tree(tree, lab.folder / "plain").root
    shutil.rmtree(plain / ".git")
    cold = lab.rewind("init", at=plain).seconds
    lab.git("init", "-q", at=plain)
    add = lab.git("add", "-A", at=plain).seconds
    shutil.rmtree(plain)
    return [
        Row("first capture, repository", size, seconds, "s", theirs=add, other="git init, add -A"),
        Row("first capture, plain folder", size, cold, "s", theirs=add, other="git init, add -A"),
    ]


def restores(lab: Lab, tree: Tree, repeat: int, capture: float) -> list[Row]:
    """100 changed files put back, beside `git checkout` of the same change in a copy."""
    count = min(100, len(tree.files) // 2)
    theirs = copy_tree(tree, lab.folder / "theirs")
    names = tree.sample(count, seed=2)
    lab.rewind("save", at=tree.root)
    for mark, name in enumerate(names):
        tree.edit(name, mark)
        theirs.edit(name, mark)
    lab.rewind("save", at=tree.root)
    newest = _newest(lab, tree)
    lab.git("branch", "before", at=theirs.root)
    lab.git("commit", "-q", "-a", "-m", "100 files", at=theirs.root)
    lab.git("branch", "after", at=theirs.root)
    turns = {"git": 0, "engine": 0, "process": 0}

    def turn(who: str) -> int:
        turns[who] += 1
        return turns[who] % 2

    with lab.worker(tree.root) as work:
        ways = contest({
            "git": Contestant(lambda: lab.git(
                "checkout", "-q", "before" if turn("git") else "after", at=theirs.root)),
            "engine": Contestant(lambda: work("restore", str(newest - turn("engine")))),
        }, 2 * repeat)
        # A process is measured apart, so that each way starts from the state the other left.
        process = contest({"process": Contestant(lambda: lab.rewind(
            "restore", str(newest - turn("process")), "--yes", at=tree.root))}, repeat)["process"]
    undo = contest({"undo": Contestant(lambda: lab.rewind("undo", at=tree.root))}, repeat,
                   _saving_an_edit(lab, tree, names[0]))["undo"]
    checkout, size = ways["git"], len(tree.files)
    shutil.rmtree(theirs.root)
    return [
        timed(f"restore of {count} files", size, ways["engine"], checkout, "git checkout",
              limit=2 * checkout.seconds + capture, wanted="at most 2 x + one capture"),
        timed(f"process, restore of {count} files", size, process, checkout, "git checkout"),
        timed("process, undo of one file", size, undo, checkout, "git checkout of 100"),
    ]


def listing(lab: Lab, count: int, repeat: int) -> list[Row]:
    """`rewind list` with very many checkpoints, every one with a changed file."""
    tree = make_tree(lab.folder / "listed", 20)
    lab.rewind("init", at=tree.root)
    with lab.worker(tree.root) as work:
        seconds = work("edit-and-save", tree.files[1], str(count)).seconds
    ways = contest({
        "list": Contestant(lambda: lab.rewind("list", at=tree.root)),
        "json": Contestant(lambda: lab.rewind("list", "--json", at=tree.root)),
        "save": Contestant(lambda: lab.rewind("save", at=tree.root)),
    }, repeat)
    what = f"{count:,} checkpoints"
    many = count >= 10_000
    return [
        timed(f"process, list with {what}", len(tree.files), ways["list"],
              limit=150 * MS if many else None, wanted="under 150 ms" if many else ""),
        timed(f"process, list --json with {what}", len(tree.files), ways["json"]),
        timed(f"process, save with {what}", len(tree.files), ways["save"]),
        Row(f"capture, mean of {what} in a row", len(tree.files), seconds / count, "s"),
    ]


def memory(lab: Lab, sizes: tuple[int, int]) -> list[Row]:
    """The most memory that saving and restoring one big file takes, for two sizes of it."""
    peaks: dict[str, list[int]] = {"save": [], "restore": []}
    for size in sizes:
        root = lab.folder / f"big{size}"
        root.mkdir()
        with open(root / "big.bin", "wb") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
        peaks["save"].append(lab.rewind("save", at=root).peak)
        (root / "big.bin").write_bytes(b"small")
        peaks["restore"].append(lab.rewind("restore", "1", "--yes", at=root).peak)
        shutil.rmtree(root)
    small, large = (size >> 20 for size in sizes)
    return [
        Row(f"peak memory, {verb} of a {large} MiB file", 1, of_large, "bytes", theirs=of_small,
            other=f"of a {small} MiB file", limit=of_small + (8 << 20), wanted="the same + 8 MiB")
        for verb, (of_small, of_large) in peaks.items()
    ]


def disk(lab: Lab, size: int, count: int) -> list[Row]:
    """Many one-file checkpoints of a tree without git, beside git's own pack of the same states."""
    tree = make_tree(lab.folder / "grown", size)
    git_dir = lab.folder / "grown.git"
    env = {"GIT_DIR": os.fspath(git_dir), "GIT_WORK_TREE": os.fspath(tree.root)}
    lab.git("init", "-q", at=tree.root, env=env)
    lab.rewind("save", at=tree.root)
    lab.git("add", "-A", at=tree.root, env=env)
    lab.git("commit", "-q", "-m", "first", at=tree.root, env=env)
    store = Path(lab.read(os.fspath(lab.command), "store", "--path", at=tree.root)).parent
    at_first = _disk_usage(store)
    lab.git("gc", "-q", at=tree.root, env=env)
    git_at_first = _disk_usage(git_dir / "objects")
    names = tree.sample(count, seed=3)
    slowest = total = 0.0
    with lab.worker(tree.root) as work:
        for mark, name in enumerate(names):
            tree.edit(name, mark)
            seconds = work("save").seconds
            total += seconds
            slowest = max(slowest, seconds)
            lab.git("add", name, at=tree.root, env=env)
            lab.git("commit", "-q", "-m", f"state {mark}", at=tree.root, env=env)
    grown = _disk_usage(store)
    lab.git("gc", "-q", at=tree.root, env=env)
    git_grown = _disk_usage(git_dir / "objects")
    lab.rewind("gc", at=tree.root)
    compacted = _disk_usage(store)
    shutil.rmtree(tree.root)
    shutil.rmtree(git_dir)
    what = f"{count:,} one-file checkpoints"
    return [
        Row(f"disk, {what}", size, grown, "bytes", theirs=git_grown, other="git gc",
            limit=2 * git_grown, wanted="at most 2 x"),
        Row(f"disk, {what}: growth alone", size, grown - at_first, "bytes",
            theirs=git_grown - git_at_first, other="git gc"),
        Row(f"disk, {what}, after rewind gc: growth", size, compacted - at_first, "bytes",
            theirs=git_grown - git_at_first, other="git gc"),
        Row(f"capture, mean of {what}", size, total / count, "s"),
        Row(f"capture, slowest of {what}", size, slowest, "s"),
    ]


def start_up(lab: Lab, repeat: int) -> list[Row]:
    """Starting the command, beside starting Python."""
    ways = contest({
        "python": Contestant(lambda: lab.run(lab.python, "-c", "pass", at=lab.home)),
        "help": Contestant(lambda: lab.rewind("--help", at=lab.home)),
        "engine": Contestant(lambda: lab.run(
            lab.python, "-c", "import coderewind.wiring", at=lab.home)),
    }, repeat)
    return [
        timed("rewind --help", 0, ways["help"], ways["python"], "python -c pass"),
        timed("importing the engine", 0, ways["engine"], ways["python"], "python -c pass"),
    ]


def import_costs(lab: Lab, most: int = 12) -> str:
    """The costliest imports of `rewind save`, as lines of Markdown."""
    import subprocess

    root = lab.folder / "imports"
    root.mkdir()
    lab.rewind("save", at=root)
    words = [os.fspath(lab.python), "-X", "importtime", os.fspath(lab.command), "save"]
    done = subprocess.run(words, cwd=root, env=lab.env, capture_output=True, check=True)
    costs = []
    for line in done.stderr.decode().splitlines():
        if match := re.match(r"import time:\s*(\d+) \|\s*(\d+) \| \s*(\S+)", line):
            costs.append((int(match[1]), match[3]))
    costs.sort(reverse=True)
    total = sum(cost for cost, _ in costs) / 1000
    lines = [f"- {name}: {cost / 1000:.1f}" for cost, name in costs[:most]]
    return "\n".join([*lines, f"- all {len(costs)} modules together: {total:.1f}"])


def timed(
    what: str,
    size: int,
    ours: Contestant,
    theirs: Contestant | None = None,
    other: str = "",
    *,
    limit: float | None = None,
    at_least: float | None = None,
    wanted: str = "",
) -> Row:
    """A row of two contestants' times."""
    return Row(what, size, ours.seconds, "s", cpu=ours.cpu, other=other,
               theirs=theirs.seconds if theirs else None,
               their_cpu=theirs.cpu if theirs else None,
               limit=limit, at_least=at_least, wanted=wanted)


def _editing(tree: Tree, names: list[str]) -> Callable[[int], None]:
    def prepare(mark: int) -> None:
        for name in names:
            tree.edit(name, mark)

    return prepare


def _saving_an_edit(lab: Lab, tree: Tree, name: str) -> Callable[[int], None]:
    def prepare(mark: int) -> None:
        tree.edit(name, mark)
        lab.rewind("save", at=tree.root)

    return prepare


def _newest(lab: Lab, tree: Tree) -> int:
    import json

    found = json.loads(lab.read(os.fspath(lab.command), "list", "--json", at=tree.root))
    number = found["checkpoints"][0]["number"]
    assert isinstance(number, int)
    return number


def _disk_usage(folder: Path) -> int:
    return sum(os.lstat(os.path.join(top, name)).st_blocks * 512
               for top, _, names in os.walk(folder) for name in names)
