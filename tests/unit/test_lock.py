"""The lock: one holder, many sharers, nothing stale."""

import os
import threading
from pathlib import Path

import pytest

from coderewind.errors import RewindError
from coderewind.store.lock import Lock


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path / "lock")


def test_a_second_holder_waits_and_then_gives_up(path: bytes) -> None:
    with (
        Lock(path),
        pytest.raises(RewindError, match="another rewind process"),
        Lock(path, patience=0.01),
    ):
        pass


def test_the_lock_is_free_again_when_its_holder_is_gone(path: bytes) -> None:
    with pytest.raises(RuntimeError), Lock(path):
        raise RuntimeError
    with Lock(path, patience=0):
        pass


def test_sharers_share_and_keep_a_holder_away(path: bytes) -> None:
    with (
        Lock(path, shared=True),
        Lock(path, shared=True, patience=0),
        pytest.raises(RewindError),
        Lock(path, patience=0),
    ):
        pass


def test_a_waiting_holder_gets_it_in_the_end(path: bytes) -> None:
    order = []
    entered = threading.Event()

    def hold() -> None:
        with Lock(path):
            entered.set()
            threading.Event().wait(0.05)
            order.append("first")

    worker = threading.Thread(target=hold)
    worker.start()
    entered.wait()
    with Lock(path):
        order.append("second")
    worker.join()

    assert order == ["first", "second"]


def test_a_link_in_the_place_of_the_lock_is_not_followed(path: bytes, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("x")
    os.symlink(tmp_path / "target", path)

    with pytest.raises(RewindError, match="cannot be locked"), Lock(path):
        pass


def test_a_lock_tells_the_clock_that_stamps_files(path: bytes, tmp_path: Path) -> None:
    with Lock(path) as lock:
        (tmp_path / "after").write_text("x")
        assert lock.now_ns <= os.stat(tmp_path / "after").st_mtime_ns
        assert lock.now_ns == os.stat(path).st_ctime_ns
