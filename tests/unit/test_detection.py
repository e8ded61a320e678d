"""Change detection: stat columns, signatures, and when a file's times say nothing."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coderewind.store.filters import Filters
from coderewind.store.scan import COARSE_TICK_NS, TICK_NS, is_racy
from coderewind.store.state import State, eight_bytes, names_of, oids_of, parents, stat_columns

SECOND = 1_000_000_000
NOW = 1_700_000_000 * SECOND + 123_456_789


class Stat:
    """Only the four numbers that detection looks at."""

    def __init__(self, *, ctime: int = 0, mtime: int = 0, ino: int = 1, size: int = 0) -> None:
        self.st_ctime_ns = ctime
        self.st_mtime_ns = mtime
        self.st_ino = ino
        self.st_size = size


def _racy(**facts: int) -> bool:
    return is_racy(Stat(**facts), NOW)  # type: ignore[arg-type]


# ---- what may have changed after it was read


@pytest.mark.parametrize("ago", [0, 1, TICK_NS - 1, TICK_NS])
def test_a_change_within_a_tick_before_reading_is_racy(ago: int) -> None:
    assert _racy(ctime=NOW - ago, mtime=NOW - ago)
    assert _racy(ctime=NOW - ago, mtime=NOW - 5 * SECOND)


def test_a_change_long_before_reading_is_not_racy() -> None:
    assert not _racy(ctime=NOW - TICK_NS - 1, mtime=NOW - TICK_NS - 1)


def test_a_change_after_reading_is_racy() -> None:
    assert _racy(ctime=NOW + SECOND, mtime=NOW + SECOND)


def test_an_old_modification_time_does_not_hide_a_new_change_time() -> None:
    """`touch -d`, `tar x`, `cp -p`."""
    assert _racy(ctime=NOW - 1, mtime=NOW - 10**6 * SECOND)


def test_a_modification_time_in_the_future_does_not_make_a_file_racy_for_ever() -> None:
    assert not _racy(ctime=NOW - 10 * SECOND + 5, mtime=NOW + 10**6 * SECOND)


def test_whole_seconds_mean_a_coarse_clock() -> None:
    second = NOW - NOW % SECOND

    assert _racy(ctime=second, mtime=second)
    assert _racy(ctime=second - SECOND, mtime=second - SECOND)
    assert not _racy(ctime=second - 3 * SECOND, mtime=second - 3 * SECOND)
    assert COARSE_TICK_NS > 2 * SECOND


# ---- the columns of a folder

_NUMBERS = st.integers(-(2**63), 2**64 - 1)


@given(st.lists(st.tuples(_NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS), max_size=5), st.data())
def test_a_different_number_makes_different_columns(
    rows: list[tuple[int, int, int, int]], data: st.DataObject
) -> None:
    def columns(rows: list[tuple[int, int, int, int]]) -> bytes:
        return stat_columns([
            Stat(ctime=c, mtime=m, ino=i, size=s)  # type: ignore[misc]
            for c, m, i, s in rows
        ])

    before = columns(rows)
    assert len(before) == 32 * len(rows)
    assert columns(list(rows)) == before
    if rows:
        at = data.draw(st.integers(0, len(rows) - 1))
        column = data.draw(st.integers(0, 3))
        other = list(rows[at])
        other[column] = data.draw(_NUMBERS.filter(lambda n: n % 2**64 != other[column] % 2**64))
        rows[at] = (other[0], other[1], other[2], other[3])
        assert columns(rows) != before


def test_inode_numbers_above_two_to_the_63() -> None:
    assert eight_bytes([2**63 + 5]) == (2**63 + 5).to_bytes(8, "little")
    assert eight_bytes([-1]) == b"\xff" * 8


# ---- the state file


def test_a_state_is_read_back(tmp_path: Path) -> None:
    state = State()
    state.folders[b""] = (b"sig", 0o755, b"a\0b", b"x" * 64, b"m" * 4, b"o" * 40, (b"sub",),
                          ((b"fifo", 0o10644, "fifo"),), b"t" * 20, ((b"a", 0o600),))
    state.young = {b"a": 5}
    state.snapshot = b"s" * 20
    path = os.fsencode(tmp_path / "state")

    state.save(path)
    read = State.load(path)

    assert all(getattr(read, name) == getattr(state, name) for name in State.__slots__)
    assert names_of(read.folders[b""]) == [b"a", b"b"]
    assert oids_of(read.folders[b""], 20) == [b"o" * 20, b"o" * 20]
    assert os.stat(path).st_mode & 0o777 == 0o600


@given(st.data())
def test_a_damaged_state_is_an_empty_one(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A cache: garbage costs time, and never a wrong answer."""
    path = tmp_path_factory.mktemp("state") / "state"
    state = State()
    state.snapshot = b"s" * 20
    state.save(os.fsencode(path))
    good = path.read_bytes()
    how = data.draw(st.sampled_from(["cut", "flip", "zero", "garbage"]))
    at = data.draw(st.integers(0, len(good) - 1))
    bad = {
        "cut": good[:at],
        "flip": good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :],
        "zero": good[:at] + bytes(len(good) - at),
        "garbage": data.draw(st.binary(max_size=200)),
    }[how]
    path.write_bytes(bad)

    read = State.load(os.fsencode(path))

    assert read.snapshot == (b"s" * 20 if bad == good else b"")


def test_the_folders_above_a_path() -> None:
    assert list(parents(b"a/b/c")) == [b"a/b", b"a", b""]
    assert list(parents(b"a")) == [b""]
    assert list(parents(b"")) == []


# ---- filters


@pytest.mark.parametrize(
    ("name", "repository", "plain"),
    [(b"node_modules", True, True), (b".env", False, True), (b"build", False, True),
     (b"src", False, False), (b"NODE_MODULES", False, False), (b"node_modules2", False, False)],
)
def test_folders_left_out(name: bytes, *, repository: bool, plain: bool) -> None:
    filters = Filters()

    assert filters.folder(name, in_repository=True) is repository
    assert filters.folder(name, in_repository=False) is plain


def test_every_difference_of_two_filters_is_in_their_signatures() -> None:
    """Else a change of the configuration would go unnoticed."""
    several = [Filters(), Filters(5), Filters(max_dir_files=5), Filters(directories=()),
               Filters(directories=("a", "b")), Filters(directories=("a,b",)), Filters.smart(),
               Filters.smart(("a",))]
    signatures = [filters.signature() for filters in several]

    assert len(set(signatures)) == len(signatures)
    assert Filters(directories=("b", "a")).signature() == signatures[4]
