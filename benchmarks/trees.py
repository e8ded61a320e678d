"""Make a source tree as projects have it: nested folders, many small files, ignored build output.

The same size gives the same tree every time.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

FILES_PER_FOLDER = 12
MAX_DEPTH = 7
_SIZES = (7.8, 1.1)  # of a log-normal distribution: a median of 2.4 KB, a mean of 4.5 KB
_LARGEST = 200_000
_SUFFIXES = (".py", ".ts", ".tsx", ".go", ".md", ".json", ".css", ".rs", ".txt", ".yaml")
_IGNORED = b"node_modules/\ndist/\n*.log\n.env\n__pycache__/\n"


class Tree:
    """A tree on disk, and where its files are."""

    def __init__(self, root: Path, files: list[str]) -> None:
        self.root = root
        self.files = files

    def edit(self, name: str, mark: int) -> None:
        """Change one file as an editor does: the same file, other content."""
        path = self.root / name
        text = path.read_bytes().splitlines(keepends=True)
        line = b"# edited %d\n" % mark
        if text and text[0].startswith(b"# edited "):
            text[0] = line
        else:
            text.insert(0, line)
        path.write_bytes(b"".join(text))

    def sample(self, count: int, seed: int = 1) -> list[str]:
        """Some files, spread over the tree."""
        return random.Random(seed).sample(self.files, count)


def make_tree(root: Path, count: int) -> Tree:
    """A tree of `count` files that git does not ignore, and a quarter as many that it does."""
    rng = random.Random(count)
    writer = _Text(rng)
    root.mkdir(parents=True)
    folders = [""]
    depths = {"": 0}
    for number in range(max(1, count // FILES_PER_FOLDER)):
        parent = rng.choice(folders)
        while depths[parent] >= MAX_DEPTH:
            parent = rng.choice(folders)
        folder = f"{parent}{rng.choice(writer.words)}{number}/"
        folders.append(folder)
        depths[folder] = depths[parent] + 1
        (root / folder).mkdir()
    (root / ".gitignore").write_bytes(_IGNORED)
    files = [".gitignore"]
    for number in range(count - 1):
        folder = rng.choice(folders)
        name = f"{folder}{rng.choice(writer.words)}_{number}{rng.choice(_SUFFIXES)}"
        (root / name).write_bytes(writer.text(rng.lognormvariate(*_SIZES)))
        files.append(name)
    _add_ignored(root, folders, count // 4, writer)
    return Tree(root, files)


def _add_ignored(root: Path, folders: list[str], count: int, writer: _Text) -> None:
    """node_modules at the top, build output and logs here and there."""
    for number in range(count):
        package = root / "node_modules" / f"package{number // 20}" / "lib"
        if number % 20 == 0:
            package.mkdir(parents=True)
        (package / f"module{number}.js").write_bytes(writer.text(800))
    for folder in folders[1 : len(folders) : 40]:
        dist = root / folder / "dist"
        dist.mkdir()
        (dist / "bundle.js").write_bytes(writer.text(5000))
        (root / folder / "debug.log").write_bytes(writer.text(500))


class _Text:
    """Text that looks like source to a compressor: lines of words, some of them often."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        letters = "abcdefghijklmnopqrstuvwxyz"
        self.words = ["".join(rng.choices(letters, k=rng.randint(3, 10))) for _ in range(3000)]
        self._lines = [self._line() for _ in range(20_000)]

    def _line(self) -> bytes:
        rng = self._rng
        words = rng.choices(self.words, k=rng.randint(1, 9))
        return ("    " * rng.randint(0, 4) + rng.choice(" .(=").join(words) + "\n").encode()

    def text(self, size: float) -> bytes:
        count = max(1, int(min(size, _LARGEST) / 45))
        return b"".join(self._rng.choices(self._lines, k=count))


def copy_tree(tree: Tree, root: Path) -> Tree:
    """The same tree again elsewhere, git directory and all."""
    from subprocess import run

    run(["cp", "-a", os.fspath(tree.root), os.fspath(root)], check=True)
    return Tree(root, tree.files)
