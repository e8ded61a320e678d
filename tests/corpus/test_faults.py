"""Killed, out of space, short of rights, damaged, and all at once."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from .box import Box, rescue_of
from .tree import Picture, differences

needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
RENAME = "?rename,?renameat,?renameat2"
UNLINK = "?unlink,?unlinkat,?rmdir"
WRITE = "?write,?pwrite64,?writev,?sendfile,?copy_file_range"
FSYNC = "?fsync,?fdatasync,?sync_file_range"
MKDIR = "?mkdir,?mkdirat"
CHMOD = "?chmod,?fchmod,?fchmodat,?fchmodat2"
LINK = "?link,?linkat,?symlink,?symlinkat"


def _tree(box: Box, version: str) -> None:
    """Files to write, to delete and to create, whichever way one goes."""
    box.empty()
    for number in range(8):
        box.write(f"common/{number}", f"{version} {number}\n" * 50)
    for number in range(5):
        box.write(f"{version}/deep/{number}", f"only {version} {number}\n")
    box.write(f"mode-{version}", "x", 0o600 if version == "old" else 0o755)
    box.symlink("link", version).mkdir(f"empty-{version}").write("same", "same\n")


def _inject(box: Box, calls: str, fault: str, when: int) -> None:
    box.prefix = [
        "strace",
        "-f",
        "-qq",
        "-o",
        f"{box.root}/trace",
        "-e",
        f"trace={calls}",
        "-e",
        f"inject={calls}:{fault}:when={when}",
    ]


def _run(box: Box, *words: str) -> int:
    """Run with the fault; the exit code (negative when killed)."""
    process = box.start("-C", box.project, *words)
    out, err = process.communicate(timeout=60)
    box.prefix = []
    assert b"Traceback" not in err, err.decode()
    assert process.returncode != 3, err.decode() + out.decode()
    return process.returncode


def _assert_each_whole(box: Box, old: Picture, new: Picture) -> None:
    for path, node in box.picture().items():
        if node.type != "directory":
            if b".rewind" in path or path not in old.keys() | new.keys():
                continue  # staged beside its place; must be gone once the restore is ended
            assert node.data in {p[path].data for p in (old, new) if path in p}, path


KILLS = [(RENAME, when) for when in (1, 2, 4, 8, 12)]
KILLS += [(UNLINK, when) for when in (1, 2, 5)]
KILLS += [(WRITE, when) for when in (1, 3, 10, 25)]
KILLS += [(MKDIR, 1), (CHMOD, 1), (CHMOD, 4), (LINK, 1), (FSYNC, 1), (FSYNC, 4), (FSYNC, 9)]
NAMED = {
    RENAME: "rename",
    UNLINK: "unlink",
    WRITE: "write",
    FSYNC: "fsync",
    MKDIR: "mkdir",
    CHMOD: "chmod",
    LINK: "link",
}


def _name(value: object) -> str:
    return NAMED.get(str(value), str(value))


@needs_strace
@pytest.mark.parametrize("finish", ["--continue", "--abort", "restore", "undo-restore"])
@pytest.mark.parametrize(("calls", "when"), [*KILLS[::2], (FSYNC, 4)], ids=_name)
def test_a_restore_killed_at(either: Box, calls: str, when: int, finish: str) -> None:
    _tree(either, "old")
    old = either.picture()
    checkpoint = either.save()
    _tree(either, "new")
    new = either.picture()
    _inject(either, calls, "signal=KILL", when)

    code = _run(either, "restore", checkpoint, "--yes", "--json")

    _assert_each_whole(either, old, new)
    if code == 0:
        either.assert_like(old)
        return
    touched = differences(new, either.picture())
    assert checkpoint in {item["id"] for item in either.checkpoints()}
    if finish == "restore":
        either.restore(checkpoint)
        either.assert_like(old)
        return
    if not touched:
        either.rewind("restore", finish, ok=False) if finish.startswith("--") else None
        either.restore(checkpoint)
        either.assert_like(old)
        return
    if finish == "undo-restore":
        either.rewind("undo-restore")
        either.assert_like(new)
        return
    either.rewind("restore", finish, *([] if finish == "--abort" else ["--yes"]))
    either.assert_like(old if finish == "--continue" else new)
    if finish == "--continue":
        either.rewind("undo-restore")
        either.assert_like(new, "undone, a continued restore is as if it had never begun: it")
    either.restore(checkpoint)
    either.assert_like(old)


@needs_strace
@pytest.mark.parametrize("verb", ["undo", "redo", "undo-restore"])
@pytest.mark.parametrize("finish", ["--continue", "--abort"])
def test_an_interrupted_step_keeps_its_place(either: Box, verb: str, finish: str) -> None:
    """Finished or taken back, an interrupted step leaves undo and redo where they belong."""
    pictures = []
    for version in ("first", "second", "third"):
        _tree(either, version)
        either.save()
        pictures.append(either.picture())
    if verb == "redo":
        either.rewind("undo")
    if verb == "undo-restore":
        either.restore("1")
    before = either.picture()
    for when in range(6, 40, 3):  # the first renames are the store's own
        _inject(either, RENAME, "signal=KILL", when)
        assert _run(either, verb, "--json") != 0, "it ended before it was half-way"
        if differences(before, either.picture()):
            break
        _run(either, "restore", "--abort", "--yes")

    either.rewind("restore", finish)

    at = {"undo": 1, "redo": 2, "undo-restore": 2}[verb]
    if finish == "--abort":
        either.assert_like(before)
        at = {"undo": 2, "redo": 1, "undo-restore": 0}[verb]
    either.assert_like(pictures[at])
    if at:
        either.rewind("undo")
        assert either.picture() == pictures[at - 1], "one step back from there"


@needs_strace
def test_an_interrupted_restore_is_said_by_status(either: Box) -> None:
    _tree(either, "old")
    checkpoint = either.save()
    _tree(either, "new")
    new = either.picture()
    _inject(either, RENAME, "signal=KILL", 9)
    _run(either, "restore", checkpoint, "--yes", "--json")
    if not differences(new, either.picture()):
        pytest.skip("the kill came too early to leave a trace")

    said = either.rewind("status").said

    assert "interrupted" in said or "--continue" in said


@needs_strace
@pytest.mark.parametrize(("calls", "when"), KILLS, ids=_name)
def test_a_save_killed_at(either: Box, calls: str, when: int) -> None:
    _tree(either, "old")
    old = either.picture()
    first = either.save()
    _tree(either, "new")
    new = either.picture()
    _inject(either, calls, "signal=KILL", when)

    _run(either, "save", "--json")

    either.assert_like(new, "the project after a killed save")
    assert first in {item["id"] for item in either.checkpoints()}
    second = either.save()
    either.restore(first)
    either.assert_like(old)
    either.restore(second)
    either.assert_like(new)
    either.rewind("doctor")


@needs_strace
@pytest.mark.parametrize("when", [1, 3, 6])
@pytest.mark.parametrize("calls", [RENAME, WRITE, FSYNC, MKDIR], ids=_name)
def test_the_first_save_killed_at(either: Box, calls: str, when: int) -> None:
    """A half-made store must not be in the way of the next attempt."""
    before = either.picture()
    _inject(either, calls, "signal=KILL", when)
    _run(either, "save", "--json")

    either.assert_like(before)
    checkpoint = either.save()
    either.write("a.txt", "changed")
    either.restore(checkpoint)
    either.assert_like(before)


@needs_strace
@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EACCES", "EDQUOT"])
@pytest.mark.parametrize(
    ("calls", "when"),
    [(RENAME, 3), (UNLINK, 2), (WRITE, 8), (FSYNC, 3), (MKDIR, 1), (CHMOD, 2)],
    ids=_name,
)
def test_a_restore_that_fails_with(either: Box, calls: str, when: int, error: str) -> None:
    _tree(either, "old")
    old = either.picture()
    checkpoint = either.save()
    _tree(either, "new")
    new = either.picture()
    _inject(either, calls, f"error={error}", when)

    code = _run(either, "restore", checkpoint, "--yes", "--json")

    if code == 0:
        either.assert_like(old, "exit 0, so the project")
        return
    assert code == 1
    _assert_each_whole(either, old, new)
    if differences(new, either.picture()):
        either.rewind("restore", "--abort", ok=False)
        if differences(new, either.picture()):
            either.rewind("undo-restore")
        either.assert_like(new)
    either.restore(checkpoint)
    either.assert_like(old)


@needs_strace
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize(
    ("calls", "when"),
    [(RENAME, 1), (RENAME, 2), (WRITE, 2), (WRITE, 6), (FSYNC, 1), (FSYNC, 2), (MKDIR, 1)],
    ids=_name,
)
def test_a_save_that_fails_with(either: Box, calls: str, when: int, error: str) -> None:
    _tree(either, "old")
    old = either.picture()
    first = either.save()
    _tree(either, "new")
    new = either.picture()
    before = {item["id"] for item in either.checkpoints()}
    _inject(either, calls, f"error={error}", when)

    code = _run(either, "save", "--json")

    either.assert_like(new)
    after = {item["id"] for item in either.checkpoints()}
    assert (after > before) if code == 0 else (after == before), "listed if and only if exit 0"
    second = either.save()
    either.restore(first)
    either.assert_like(old)
    either.restore(second)
    either.assert_like(new)


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_during_a_restore(either: Box, signal_: signal.Signals) -> None:
    """Sent at the first observed change."""
    for number in range(150):
        either.write(f"many/{number}", "old\n")
    old = either.picture()
    checkpoint = either.save()
    for number in range(150):
        either.write(f"many/{number}", "new\n")
    new = either.picture()
    stamp = os.stat(either.path("many")).st_mtime_ns
    process = either.start("-C", either.project, "restore", checkpoint, "--yes", "--json")
    while process.poll() is None and os.stat(either.path("many")).st_mtime_ns == stamp:
        time.sleep(0.001)
    process.send_signal(signal_)
    _, err = process.communicate(timeout=60)

    assert b"Traceback" not in err, err.decode()
    if process.returncode == 0:
        either.assert_like(old)
        return
    if signal_ is signal.SIGINT:
        assert process.returncode == 130
    _assert_each_whole(either, old, new)
    either.restore(checkpoint)
    either.assert_like(old)


def test_interrupted_while_the_program_is_still_loading(plain: Box) -> None:
    plain.write(f"{plain.root}/early/click.py", "raise KeyboardInterrupt")
    environment = plain.env | {"PYTHONPATH": f"{plain.root}/early:{plain.env['PYTHONPATH']}"}

    process = plain.start("-C", plain.project, "status", env=environment)
    _, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (130, b"interrupted\n")


def test_a_file_size_limit(either: Box) -> None:
    """EFBIG, by ulimit."""
    first = either.save()
    either.write("big", os.urandom(300_000))
    either.prefix = ["sh", "-c", 'ulimit -f 100; exec "$@"', "sh"]
    with either.expect_unchanged():
        answer = either.rewind("save", ok=False)
    either.prefix = []

    assert answer.code == 1
    assert [item["id"] for item in either.checkpoints()] == [first]
    either.round_trip(lambda: either.write("big", "x"))


def test_a_file_size_limit_during_a_restore(either: Box) -> None:
    either.write("big", os.urandom(300_000))
    checkpoint = either.save()
    old = either.picture()
    either.write("big", "small").write("a.txt", "new")
    new = either.picture()
    either.prefix = ["sh", "-c", 'ulimit -f 100; exec "$@"', "sh"]
    answer = either.restore(checkpoint, ok=False)
    either.prefix = []

    assert answer.code == 1
    if differences(new, either.picture()):
        either.rewind("undo-restore")
        either.assert_like(new)
    either.restore(checkpoint)
    either.assert_like(old)


@pytest.fixture
def small_disk(either: Box) -> Iterator[str]:
    """A folder on a file system of 3 MiB."""
    folder = f"{either.root}/small"
    os.makedirs(folder)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("cannot mount")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_under_the_store(either: Box, small_disk: str) -> None:
    either.env["REWIND_HOME"] = f"{small_disk}/rewind"
    first = either.save()
    old = either.picture()
    either.write("big", os.urandom(5_000_000))
    with either.expect_unchanged():
        assert either.rewind("save", ok=False).code == 1

    assert [item["id"] for item in either.checkpoints()] == [first]
    either.remove("big").write("a.txt", "new")
    either.restore(first)
    either.assert_like(old)


def test_a_full_disk_under_the_store_before_a_restore(either: Box, small_disk: str) -> None:
    """No rescue, no restore: the unsaved big file is not touched."""
    either.env["REWIND_HOME"] = f"{small_disk}/rewind"
    either.write("big", "small\n")
    first = either.save()
    either.write("big", os.urandom(5_000_000))

    with either.expect_unchanged():
        assert either.restore(first, ok=False).code == 1


def _largest(box: Box) -> str:
    names = [
        os.path.join(folder, name)
        for folder, _, files in os.walk(f"{box.store()}/objects")
        for name in files
    ]
    return max(names, key=os.path.getsize)


def _harm(path: str, how: str) -> None:
    with open(path, "rb") as file:
        data = bytearray(file.read())
    middle = len(data) // 2
    if how == "flip":
        data[middle] ^= 0x40
    elif how == "zero":
        data[middle : middle + 4096] = bytes(4096)
    elif how == "truncate":
        del data[middle:]
    elif how == "empty":
        data.clear()
    os.remove(path)
    if how != "missing":
        with open(path, "wb") as file:
            file.write(data)


@pytest.mark.parametrize("how", ["flip", "zero", "truncate", "empty", "missing"])
def test_a_damaged_object_is_found_before_a_file_is_touched(either: Box, how: str) -> None:
    either.write("big", os.urandom(100_000))
    checkpoint = either.save()
    either.write("big", "small").write("a.txt", "changed").write("new", "x")
    _harm(_largest(either), how)

    with either.expect_unchanged():
        answer = either.restore(checkpoint, ok=False)

    assert answer.code == 1
    assert either.rewind("doctor", ok=False).code == 1


def test_a_damaged_staged_content_is_found_before_a_file_is_touched(box: Box) -> None:
    box.write("a.txt", os.urandom(100_000)).git("add", "a.txt")
    box.write("a.txt", "small")
    checkpoint = box.save()
    box.write("a.txt", "changed")
    _harm(_largest(box), "flip")

    with box.expect_unchanged():
        answer = box.restore(checkpoint, "--index", ok=False)

    assert answer.code == 1
    assert box.rewind("status", ok=False)["interrupted"] is False


@pytest.mark.parametrize("how", ["flip", "zero"])
def test_the_same_content_is_stored_anew_after_damage(either: Box, how: str) -> None:
    data = os.urandom(100_000)
    either.write("big", data)
    either.save()
    _harm(_largest(either), how)
    either.rewind("doctor", "--repair", ok=False)
    second = either.save()
    either.write("big", "small")

    either.restore(second)

    assert either.read("big") == data


def test_other_checkpoints_survive_the_damage_of_one(either: Box) -> None:
    first = either.save()
    old = either.picture()
    either.write("big", os.urandom(100_000))
    either.save()
    _harm(_largest(either), "flip")
    either.remove("big").write("a.txt", "changed")

    either.restore(first)

    either.assert_like(old)


@pytest.mark.parametrize("state", ["private-state", "all-but-objects-and-refs"])
def test_the_loss_of_caches_costs_time_not_data(either: Box, state: str) -> None:
    """Index, stat cache and the like may vanish or be garbage."""
    checkpoint = either.save()
    old = either.picture()
    store = either.store()
    for folder, _, files in os.walk(store):
        for name in files:
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, store).split(os.sep)[0]
            if "index" in name or "cache" in name or "state" in name or "stat" in name:
                if inside in ("objects", "refs", "packed-refs"):
                    continue
                if state == "private-state":
                    os.remove(path)
                else:
                    with open(path, "wb") as file:
                        file.write(b"garbage" * 10)
    either.write("a.txt", "changed").write("new", "x")

    either.restore(checkpoint)

    either.assert_like(old)


def test_stale_locks_are_recovered_from(either: Box) -> None:
    first = either.save()
    store = either.store()
    for name in (
        "index.lock",
        "HEAD.lock",
        "packed-refs.lock",
        "config.lock",
        "gc.pid",
        "lock",
        "shallow.lock",
    ):
        if not os.path.lexists(f"{store}/{name}"):
            either.write(f"{store}/{name}", "")
    for folder, _, files in os.walk(f"{store}/refs"):
        for name in files:
            if not name.endswith(".lock"):
                either.write(f"{folder}/{name}.lock", "")
    old_stamp = time.time() - 86400
    for folder, _, files in os.walk(store):
        for name in files:
            if name.endswith((".lock", "gc.pid")):
                os.utime(f"{folder}/{name}", (old_stamp, old_stamp))
    either.write("a.txt", "changed")
    second = either.save()

    either.restore(first)
    assert either.read("a.txt") == b"a\n"
    either.restore(second)
    assert either.read("a.txt") == b"changed"


# At once.


def _gather(processes: list["subprocess.Popen[bytes]"]) -> None:
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err.decode()


def test_eight_savers_and_a_restorer(either: Box) -> None:
    first = either.save()
    for number in range(8):
        either.write(f"file{number}", str(number))
    before = either.picture()
    either.save()
    running = [either.start("-C", either.project, "save", "--json") for _ in range(8)]
    running.append(either.start("-C", either.project, "restore", first, "--yes", "--json"))
    _gather(running)

    items = either.checkpoints()
    assert len([item for item in items if item["kind"] == "save"]) == 10
    assert len({item["id"] for item in items}) == len(items)
    assert len({item["number"] for item in items}) == len(items)
    either.rewind("undo-restore")
    either.assert_like(before)
    either.rewind("doctor")


def test_first_saves_at_once(either: Box) -> None:
    _gather([either.start("-C", either.project, "save", "--json") for _ in range(4)])

    assert len(either.checkpoints()) == 4


def test_the_user_commits_meanwhile(box: Box) -> None:
    """No user command may fail because of us."""
    running = []
    for number in range(6):
        running.append(box.start("-C", box.project, "save", "--json"))
        box.write("a.txt", f"{number}\n")
        box.commit(str(number))
    _gather(running)

    assert len(box.git("log", "--oneline").splitlines()) == 7
    assert len(box.checkpoints()) == 6


def test_the_users_gc_runs_meanwhile(box: Box) -> None:
    for number in range(4):
        box.write("a.txt", f"{number}\n").commit(str(number))
    ids = []
    for number in range(3):
        box.write("b.txt", f"{number}\n")
        saver = box.start("-C", box.project, "save", "--json")
        box.git("reflog", "expire", "--expire=now", "--all")
        box.git("gc", "-q", "--prune=now")
        _gather([saver])
        ids.append(box.checkpoints()[0]["id"])
    for number, checkpoint in enumerate(ids):
        box.restore(checkpoint)
        assert box.read("b.txt") == b"%d\n" % number


def test_files_come_and_go_during_a_save(either: Box) -> None:
    for number in range(100):
        either.write(f"stable/{number}", f"{number}\n")
    stop = threading.Event()

    def churn() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            either.write(f"churn/{number % 20}", "x" * (number % 5000))
            either.remove(f"churn/{(number * 7) % 20}")
            either.write(f"folder{number % 5}/x", "x").remove(f"folder{(number + 2) % 5}")

    worker = threading.Thread(target=churn)
    worker.start()
    try:
        checkpoints = [either.save(check_git=False) for _ in range(3)]
    finally:
        stop.set()
        worker.join()
    for number in range(100):
        either.write(f"stable/{number}", "changed\n")
    for checkpoint in checkpoints:
        either.restore(checkpoint)
        for number in range(100):
            assert either.read(f"stable/{number}") == b"%d\n" % number


def test_gc_while_saving(either: Box) -> None:
    ids = []
    for number in range(3):
        either.write("a.txt", str(number))
        ids.append(either.save())
    running = [either.start("-C", either.project, "save", "--json") for _ in range(3)]
    running += [either.start("-C", either.project, "gc", "--json")]
    _gather(running)
    for number, checkpoint in enumerate(ids):
        either.restore(checkpoint)
        assert either.read("a.txt") == str(number).encode()
    either.rewind("doctor")


def test_the_rescue_of_a_restore_holds_what_was_written_a_moment_before(either: Box) -> None:
    checkpoint = either.save()
    for number in range(3):
        either.write("a.txt", f"edit {number}")
        answer = either.restore(checkpoint)
        either.restore(rescue_of(answer))
        assert either.read("a.txt") == f"edit {number}".encode()
