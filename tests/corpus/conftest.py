"""Boxes for the corpus: `box` is a git repository, `plain` a folder without git."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

import pytest

from .box import Box


@pytest.fixture
def room() -> Iterator[str]:
    """An empty folder with a short path that any user may enter."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="corpus-"))
    os.chmod(folder, 0o755)
    yield folder
    # rm copes with unreadable and very deep folders, where shutil does not.
    subprocess.run(["chmod", "-R", "u+rwx", folder], stderr=subprocess.DEVNULL, check=False)
    subprocess.run(["rm", "-rf", folder], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def _leave(box: Box) -> None:
    assert not os.path.exists(box.canary), "a command of the user's configuration was run"
    if os.path.isdir(box.tmp):
        assert os.listdir(box.tmp) == [], "litter in TMPDIR"


@pytest.fixture
def plain(room: str) -> Iterator[Box]:
    """A plain folder with two files."""
    box = Box(room)
    box.write("a.txt", "a\n").write("sub/b.txt", "b\n")
    yield box
    _leave(box)


@pytest.fixture
def box(room: str) -> Iterator[Box]:
    """A repository with one commit of two files."""
    box = Box(room)
    box.init().write("a.txt", "a\n").write("sub/b.txt", "b\n").commit()
    yield box
    _leave(box)


@pytest.fixture(params=["git", pytest.param("plain", marks=pytest.mark.slow)])
def either(request: pytest.FixtureRequest, room: str) -> Iterator[Box]:
    """The same two files, once in a repository, once (when slow tests run) in a plain folder."""
    box = Box(room)
    if request.param == "git":
        box.init()
    box.write("a.txt", "a\n").write("sub/b.txt", "b\n")
    if request.param == "git":
        box.commit()
    yield box
    _leave(box)


@pytest.fixture
def bare_box(room: str) -> Iterator[Box]:
    """A project folder with nothing in it, not even a repository."""
    box = Box(room)
    yield box
    _leave(box)
