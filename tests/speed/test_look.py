"""Several processes looking at one tree see what one process sees."""

import glob
import os
import signal
from collections.abc import Callable

import pytest
from corpus.box import Box

from coderewind.store import look
from coderewind.store.state import Folder, State, signature

from .conftest import Watched

CHANGES: dict[str, Callable[[Box], object]] = {
    "nothing": lambda box: None,
    "a file of every folder": lambda box: [
        box.write(f"folder{number}/file{number}", "other") for number in range(6)
    ],
    "the last folder": lambda box: box.write("folder5/file5", "other"),
    "a new name": lambda box: box.write("folder3/new", "1"),
    "a name gone": lambda box: box.remove("folder2/file2"),
    "a folder gone": lambda box: box.remove("folder4"),
    "a folder now a link": lambda box: box.remove("folder4").symlink("folder4", "folder5"),
    "a folder now a file": lambda box: box.remove("folder4").write("folder4", "1"),
}


@pytest.fixture
def known(watched: Watched) -> dict[bytes, Folder]:
    """What the state knows of the folders, times and all, trusted or not."""
    [path] = glob.glob(f"{watched.store_home}/storage/*/worktrees/main/state")
    folders = State.load(os.fsencode(path)).folders
    root = os.fsencode(watched.project)
    for name, folder in folders.items():  # they are too young to be trusted with their times
        trusted = signature(os.lstat(os.path.join(root, name)))
        folders[name] = (trusted, *folder[1:])
    return folders


@pytest.mark.parametrize("name", CHANGES)
def test_many_processes_find_what_one_finds(
    watched: Watched, known: dict[bytes, Folder], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    CHANGES[name](watched)
    root = os.fsencode(watched.project)
    descriptors = os.listdir("/proc/self/fd")

    alone = look.different(root, known)
    monkeypatch.setattr(look, "_WORTH_A_PROCESS", 10)
    monkeypatch.setattr(look, "_processes", lambda: 4)
    together = look.different(root, known)

    assert together == alone
    assert (together == []) == (name == "nothing")
    assert os.listdir("/proc/self/fd") == descriptors


@pytest.mark.parametrize("trouble", ["killed", "not forked", "no pipe"])
def test_the_share_of_a_lost_process_is_looked_at_by_the_others(
    watched: Watched, known: dict[bytes, Folder], trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.write("folder0/file0", "other").write("folder5/file5", "other")
    monkeypatch.setattr(look, "_WORTH_A_PROCESS", 10)
    monkeypatch.setattr(look, "_processes", lambda: 4)
    parent = os.getpid()
    inside = look._look

    def dying(root: bytes, items: list[look.Item]) -> list[int]:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return inside(root, items)

    def refusing() -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    if trouble == "killed":
        monkeypatch.setattr(look, "_look", dying)
    else:
        monkeypatch.setattr(os, "fork" if trouble == "not forked" else "pipe", refusing)

    assert look.different(os.fsencode(watched.project), known) == [b"folder0", b"folder5"]
