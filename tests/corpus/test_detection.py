"""A change is never missed, however the file times or the user's git settings lie."""

import mmap
import os

import pytest

from .box import Box

DAY = 86_400_000_000_000


def _stamp(box: Box, name: str) -> tuple[int, int]:
    seen = os.lstat(box.path(name))
    return seen.st_atime_ns, seen.st_mtime_ns


def _edit_keeping_size_and_mtime(box: Box, name: str, data: bytes) -> None:
    stamp = _stamp(box, name)
    assert os.path.getsize(box.path(name)) == len(data)
    with open(box.path(name), "r+b") as file:
        file.write(data)
    os.utime(box.path(name), ns=stamp)


def _saved_states_come_back(box: Box, name: str, states: list[bytes], edit: object = None) -> None:
    ids = []
    for data in states:
        if edit:
            edit(box, name, data)  # type: ignore[operator]
        else:
            box.write(name, data)
        ids.append(box.save())
    for checkpoint, data in zip(ids, states, strict=True):
        box.restore(checkpoint)
        assert box.read(name) == data


def test_same_size_and_same_mtime(either: Box) -> None:
    either.write("f", b"0000")
    either.save()

    _saved_states_come_back(either, "f", [b"1111", b"2222", b"3333"], _edit_keeping_size_and_mtime)


def test_same_size_and_same_mtime_in_a_tracked_file(box: Box) -> None:
    box.write("f", b"0000").commit()
    box.git("status")
    box.save()

    _saved_states_come_back(box, "f", [b"1111", b"2222"], _edit_keeping_size_and_mtime)


def test_replaced_by_a_file_of_the_same_size_and_mtime(either: Box) -> None:
    either.write("f", b"1111").write("g", b"2222")
    checkpoint = either.save()
    stamp = _stamp(either, "f")
    os.rename(either.path("g"), either.path("f"))
    os.utime(either.path("f"), ns=stamp)

    either.restore(checkpoint)

    assert either.read("f") == b"1111"
    assert either.read("g") == b"2222"


def test_edits_right_after_a_save(either: Box) -> None:
    either.write("f", b"0")

    _saved_states_come_back(either, "f", [b"%d" % number for number in range(5)])


def test_an_edit_right_before_a_restore(either: Box) -> None:
    either.write("f", b"1111")
    checkpoint = either.save()
    either.write("f", b"2222")
    either.restore(checkpoint)
    either.write("f", b"3333")
    either.restore(checkpoint)

    assert either.read("f") == b"1111"


@pytest.mark.parametrize("shift", [-20000 * DAY, -DAY, DAY, 365 * DAY, 20000 * DAY])
def test_times_in_the_past_and_the_future(either: Box, shift: int) -> None:
    def edit(box: Box, name: str, data: bytes) -> None:
        box.write(name, data)
        stamp = 1_700_000_000_000_000_000 + shift
        os.utime(box.path(name), ns=(stamp, stamp))

    _saved_states_come_back(either, "f", [b"1111", b"2222", b"3333"], edit)


def test_mtime_zero_and_before_the_epoch(either: Box) -> None:
    def edit(box: Box, name: str, data: bytes) -> None:
        box.write(name, data)
        os.utime(box.path(name), ns=(0, 0) if data[:1] in b"13" else (-DAY, -DAY))

    _saved_states_come_back(either, "f", [b"1111", b"2222", b"3333"], edit)


def test_writes_through_a_map_that_stays_open(either: Box) -> None:
    """A dirty page may not touch the file times until much later."""
    either.write("f", b"0" * 4096)
    with open(either.path("f"), "r+b") as file, mmap.mmap(file.fileno(), 0) as window:
        window[0:4] = b"1111"
        one = either.save()
        window[0:4] = b"2222"
        two = either.save()
        window[0:4] = b"3333"
        three = either.save()
    for checkpoint, data in ((one, b"1111"), (two, b"2222"), (three, b"3333")):
        either.restore(checkpoint)
        assert either.read("f")[:4] == data


def test_a_file_that_a_process_keeps_appending_to(either: Box) -> None:
    with open(either.path("log"), "ab", buffering=0) as log:
        log.write(b"1")
        one = either.save()
        log.write(b"2")
        two = either.save()
    either.restore(one)
    assert either.read("log") == b"1"
    either.restore(two)
    assert either.read("log") == b"12"


@pytest.mark.parametrize(
    "settings",
    [
        {"core.trustctime": "false"},
        {"core.checkStat": "minimal"},
        {"core.trustctime": "false", "core.checkStat": "minimal"},
        {"core.ignoreStat": "true"},
        {"core.untrackedCache": "true"},
        {"core.preloadIndex": "false"},
        {"index.threads": "1", "index.version": "4"},
        {"feature.manyFiles": "true"},
    ],
    ids=lambda settings: "+".join(settings),
)
def test_weakened_stat_settings_of_the_user(box: Box, settings: dict[str, str]) -> None:
    for key, value in settings.items():
        box.git("config", key, value)
        box.git("config", "--global", key, value)
    box.write("f", b"0000").commit()
    box.git("status")
    box.save()

    _saved_states_come_back(box, "f", [b"1111", b"2222"], _edit_keeping_size_and_mtime)


@pytest.mark.parametrize("version", ["1", "2"])
def test_an_fsmonitor_hook_that_lies_is_not_asked(box: Box, version: str) -> None:
    box.write("f", "1").commit()
    hook = f"{box.root}/monitor"
    box.write(hook, f"#!/bin/sh\ntouch {box.canary}\nprintf 'token\\0'\n", 0o755)
    box.git("config", "core.fsmonitorHookVersion", version)
    box.git("config", "core.fsmonitor", hook)

    checkpoint = box.save()
    box.write("f", "2").write("g", "new")
    box.restore(checkpoint)

    assert box.read("f") == b"1"
    assert not box.exists("g")


def test_an_index_marked_valid_by_an_fsmonitor_is_not_believed(box: Box) -> None:
    box.write("f", "1").commit()
    hook = f"{box.root}/monitor"
    box.write(hook, "#!/bin/sh\nprintf 'token\\0'\n", 0o755)
    box.git("config", "core.fsmonitor", hook)
    box.git("update-index", "--fsmonitor")
    box.git("status")

    _saved_states_come_back(box, "f", [b"2", b"3"])


def test_fsmonitor_daemon_setting_starts_no_daemon(box: Box) -> None:
    box.git("config", "--global", "core.fsmonitor", "true")

    box.round_trip(lambda: box.write("a.txt", "changed"))

    assert not box.exists(".git/fsmonitor--daemon.ipc")


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_index_flags_that_hide_changes(box: Box, flag: str) -> None:
    box.git("update-index", flag, "a.txt")

    _saved_states_come_back(box, "a.txt", [b"1", b"2"])


def test_index_flags_that_hide_a_deletion(box: Box) -> None:
    box.git("update-index", "--assume-unchanged", "a.txt")
    box.git("update-index", "--skip-worktree", "sub/b.txt")

    box.round_trip(lambda: box.remove("a.txt").remove("sub"))


def test_a_clock_that_ran_backwards(either: Box) -> None:
    """A file written later carries an earlier time."""

    def edit(box: Box, name: str, data: bytes) -> None:
        box.write(name, data)
        stamp = 1_900_000_000_000_000_000 - int(data) * DAY
        os.utime(box.path(name), ns=(stamp, stamp))

    _saved_states_come_back(either, "f", [b"1111", b"2222", b"3333"], edit)


def test_a_folder_whose_mtime_was_put_back(either: Box) -> None:
    checkpoint = either.save()
    stamp = _stamp(either, "sub")
    either.write("sub/new", "x")
    os.utime(either.path("sub"), ns=stamp)
    second = either.save()

    either.restore(checkpoint)
    assert not either.exists("sub/new")
    either.restore(second)
    assert either.exists("sub/new")


def test_a_file_and_a_symlink_of_the_same_size_and_time(either: Box) -> None:
    either.symlink("x", "abcd")
    one = either.save()
    stamp = _stamp(either, "x")
    either.remove("x").write("x", "abcd")
    os.utime(either.path("x"), ns=stamp)
    two = either.save()

    either.restore(one)
    assert os.readlink(either.path("x")) == "abcd"
    either.restore(two)
    assert either.read("x") == b"abcd"


def test_a_symlink_changed_to_a_target_of_the_same_length(either: Box) -> None:
    either.symlink("x", "one")

    either.round_trip(lambda: either.remove("x").symlink("x", "two"))


def test_a_save_after_the_private_index_saw_another_content_restored(either: Box) -> None:
    """Restored files carry new times; the next save must still see an edit of the same size."""
    either.write("f", b"1111")
    one = either.save()
    either.write("f", b"2222")
    either.restore(one)
    _edit_keeping_size_and_mtime(either, "f", b"3333")
    three = either.save()
    either.restore(one)
    either.restore(three)

    assert either.read("f") == b"3333"


def test_two_saves_of_one_tree_have_two_ids_and_one_snapshot(either: Box) -> None:
    one, two = either.rewind("save"), either.rewind("save")

    assert one["id"] != two["id"]
    assert one["snapshot"] == two["snapshot"]


def test_a_folder_moved_over_another(either: Box) -> None:
    either.write("one/f", "1").write("two/f", "2")

    def change() -> None:
        either.remove("one")
        os.rename(either.path("two"), either.path("one"))

    either.round_trip(change)


def test_a_sparse_file(either: Box) -> None:
    with open(either.path("holes"), "wb") as file:
        file.seek(1 << 20)
        file.write(b"end")

    either.round_trip(lambda: either.write("holes", b"\0" * (1 << 20) + b"END"))
