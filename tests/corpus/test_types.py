"""Whatever stood at a path comes back, whatever stands there now."""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .box import Box, coverage
from .tree import Node, Picture, differences, git_picture


def _nested(box: Box, path: str, version: str) -> None:
    box.mkdir(path).init(where=box.path(path))
    box.write(f"{path}/file", f"{version} in a repository\n").commit(version, cwd=box.path(path))
    box.write(f"{path}/dirty", f"{version} and dirty\n")


KINDS: dict[str, Callable[[Box, str, str], object]] = {
    "absent": lambda box, path, version: None,
    "file": lambda box, path, version: box.write(path, f"{version}\n"),
    "executable": lambda box, path, version: box.write(path, f"#!{version}\n", 0o755),
    "private": lambda box, path, version: box.write(path, f"{version}\n", 0o600),
    "emptydir": lambda box, path, version: box.mkdir(path, 0o755 if version == "old" else 0o700),
    "dir": lambda box, path, version: box.write(f"{path}/{version}/file", version),
    "link-to-file": lambda box, path, version: box.symlink(path, f"targets/{version}"),
    "link-to-dir": lambda box, path, version: box.symlink(path, f"targets/{version}-dir"),
    "dangling": lambda box, path, version: box.symlink(path, f"nowhere/{version}"),
    "fifo": lambda box, path, version: os.mkfifo(box.path(path)),
    "repository": _nested,
}
PAIRS = [(old, new) for old in KINDS for new in KINDS if (old, new) != ("absent", "absent")]


def _targets(box: Box) -> None:
    for version in ("old", "new"):
        box.write(f"targets/{version}", f"the target {version}\n")
        box.write(f"targets/{version}-dir/file", f"in the target {version}\n")


def _replace(box: Box, path: str, kind: str) -> None:
    box.remove(path)
    KINDS[kind](box, path, "new")


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_transition(box: Box, old: str, new: str) -> None:
    """A path that was `old` and is `new` now is `old` again, and the rescue has the `new`."""
    _targets(box)
    KINDS[old](box, "it", "old")
    before = box.picture()
    checkpoint = box.save()
    box.assert_like(before, "the project after a save")
    _replace(box, "it", new)
    box.write("a.txt", "changed beside it\n")
    after, git_after = box.picture(), git_picture(box.project)

    answer = box.restore(checkpoint, ok=False)

    found = box.picture()
    if new == "repository" and answer.code == 1 and not differences(after, found):
        assert git_picture(box.project) == git_after
        return  # a repository in the way: refused, and nothing touched
    beside = [line for line in differences(before, found) if "b'it" not in line]
    assert beside == [], "what stands beside it must be restored in any case"
    assert git_picture(box.project) == git_after, "no repository is ever deleted or changed"
    if old == "fifo" or new == "fifo":
        _assert_fifo(before, after, found, answer.code)
    elif new == "repository":
        _assert_repository_stays(box, before, found, old, answer.code)
    else:
        assert answer.code == 0, str(answer)
        box.assert_like(before, "the project after the restore")

    box.rewind("undo-restore", ok=False)
    left = differences(after, box.picture())
    if new == "fifo":  # nothing can bring back a FIFO
        left = [line for line in left if "b'it" not in line]
    assert left == [], "undo-restore must give back what the restore replaced"


def _assert_fifo(before: Picture, after: Picture, found: Picture, code: int) -> None:
    """A FIFO cannot be captured and is left alone; exit 0 still means exact."""
    if after.get(b"it") == before.get(b"it"):
        assert found[b"it"].type == "fifo"
    elif b"it" in after and after[b"it"].type == "fifo":
        if code == 0 and b"it" in before:
            assert differences(before, found) == []
        else:
            assert found[b"it"].type == "fifo", "a FIFO in the way is kept, or replaced with exit 0"


def _assert_repository_stays(
    box: Box, before: Picture, found: Picture, old: str, code: int
) -> None:
    """A repository that appeared later stays whole: its `.git` was compared already."""
    if old == "absent":
        assert found[b"it/file"].data == b"new in a repository\n"
        assert found[b"it/dirty"].data == b"new and dirty\n"
    elif old in ("dir", "emptydir", "repository"):
        for path, node in before.items():
            if node.type == "file":
                assert found.get(path) == node, path
    else:
        assert code != 0, "exit 0 though a repository stands where a file should be"
        assert found[b"it"].type == "directory"


@pytest.mark.parametrize("tracked", [True, False])
def test_all_transitions_at_once(either: Box, tracked: bool) -> None:
    kinds = [kind for kind in KINDS if kind not in ("fifo", "repository")]
    pairs = [(old, new) for old in kinds for new in kinds]
    _targets(either)
    for old, new in pairs:
        KINDS[old](either, f"{old}/{new}", "old")
    if tracked and either.exists(".git"):
        either.commit()

    def change() -> None:
        for old, new in pairs:
            _replace(either, f"{old}/{new}", new)

    either.round_trip(change)


@pytest.mark.parametrize(
    "target",
    [
        "a.txt",
        "sub",
        "sub/",
        "nowhere",
        "/etc/passwd",
        "/",
        ".",
        "..",
        "../..",
        "self",
        "./sub/../a.txt",
        "a//b",
        "-rf",
        "with\nnewline",
        "x" * 1000,
        os.fsdecode(b"\xff\xfe"),
        ".git",
        ".git/config",
    ],
)
def test_a_symlink_to(either: Box, target: str) -> None:
    """Changed, deleted, or created later: only ever the link itself."""
    either.symlink("self", target).symlink("sub/deleted", target)

    def change() -> None:
        either.remove("self").symlink("self", "somewhere else")
        either.remove("sub/deleted")
        either.symlink("later", target)

    either.round_trip(change)


def test_a_symlink_replaced_by_a_file_with_its_target_as_content(either: Box) -> None:
    either.symlink("link", "a.txt")

    either.round_trip(lambda: either.remove("link").write("link", "a.txt"))


def test_core_symlinks_false_of_the_user_is_not_followed(box: Box) -> None:
    box.git("config", "core.symlinks", "false")
    box.symlink("link", "a.txt")

    box.round_trip(lambda: box.remove("link").write("link", "a.txt"))


def test_a_folder_replaced_by_a_symlink_to_its_moved_self(either: Box) -> None:
    """The restore must not write through the link."""

    def change() -> None:
        os.rename(either.path("sub"), either.path("moved"))
        either.symlink("sub", "moved")

    either.round_trip(change)


def test_a_folder_replaced_by_a_symlink_to_outside(either: Box) -> None:
    outside = f"{either.root}/outside"
    os.makedirs(outside)
    either.write(f"{outside}/b.txt", "not yours\n").write(f"{outside}/other", "mine\n")

    either.round_trip(lambda: either.remove("sub").symlink("sub", outside))

    with open(f"{outside}/b.txt") as file:
        assert file.read() == "not yours\n"
    assert sorted(os.listdir(outside)) == ["b.txt", "other"]


def test_files_behind_a_symlinked_folder_are_not_captured_as_ours(either: Box) -> None:
    outside = f"{either.root}/outside"
    os.makedirs(outside)
    either.write(f"{outside}/file", "1").symlink("away", outside)
    checkpoint = either.save()
    either.write(f"{outside}/file", "2")
    either.write("a.txt", "changed")

    either.restore(checkpoint)

    with open(f"{outside}/file") as file:
        assert file.read() == "2"


def test_empty_folders_come_back(either: Box) -> None:
    either.mkdir("empty").mkdir("deep/er/empty").mkdir("sub/empty")

    either.round_trip(lambda: either.remove("empty").remove("deep").remove("sub/empty"))


def test_empty_folders_that_appeared_go_away(either: Box) -> None:
    either.round_trip(lambda: either.mkdir("empty").mkdir("deep/er/empty").mkdir("sub/empty"))


def test_a_folder_that_became_empty_and_one_that_was(either: Box) -> None:
    either.mkdir("was")

    either.round_trip(lambda: either.remove("sub/b.txt").write("was/file", "x"))


def test_an_empty_project(plain: Box) -> None:
    plain.empty()

    plain.round_trip(lambda: plain.write("file", "x").mkdir("folder"))


def test_a_project_emptied_entirely(either: Box) -> None:
    either.write("x/y/z", "1").symlink("link", "x").mkdir("empty")

    either.round_trip(lambda: either.empty())


def test_a_hard_link_to_outside_is_not_written_through(either: Box) -> None:
    checkpoint = either.save()
    outside = f"{either.root}/outside"
    either.write(outside, "outside\n").remove("a.txt")
    os.link(outside, either.path("a.txt"))

    either.restore(checkpoint)

    assert either.read("a.txt") == b"a\n"
    assert either.read(outside) == b"outside\n"


def test_hard_linked_files_are_restored_one_by_one(either: Box) -> None:
    either.write("one", "shared\n")
    os.link(either.path("one"), either.path("two"))

    def change() -> None:
        with open(either.path("one"), "w") as file:
            file.write("both changed\n")

    either.round_trip(change)


def test_files_that_became_hard_links_of_each_other(either: Box) -> None:
    either.write("one", "1\n").write("two", "2\n")

    def change() -> None:
        either.remove("two")
        os.link(either.path("one"), either.path("two"))

    either.round_trip(change)


def test_a_chmod_does_not_reach_through_a_hard_link(either: Box) -> None:
    checkpoint = either.save()
    outside = f"{either.root}/outside"
    os.link(either.path("a.txt"), outside)
    os.chmod(outside, 0o600)

    either.restore(checkpoint)

    assert either.mode("a.txt") == 0o644
    assert os.stat(outside).st_mode & 0o777 == 0o600


def test_a_fifo_does_not_hang_a_save_and_is_left_alone(either: Box) -> None:
    os.mkfifo(either.path("pipe"))
    os.mkfifo(either.path("sub/pipe"), 0o600)
    answer = either.rewind("save")
    assert {b"pipe", b"sub/pipe"} <= coverage(answer).keys()
    before = either.picture()
    either.write("a.txt", "changed").write("new", "x")

    either.restore(str(answer["id"]))

    either.assert_like(before)


def test_a_fifo_that_appeared_later_is_left_alone(either: Box) -> None:
    checkpoint = either.save()
    os.mkfifo(either.path("pipe"))
    either.write("a.txt", "changed")

    either.restore(checkpoint, ok=False)

    assert either.picture()[b"pipe"].type == "fifo"
    assert either.read("a.txt") == b"a\n"


def test_a_folder_that_appeared_later_with_a_fifo_in_it(either: Box) -> None:
    checkpoint = either.save()
    either.write("later/file", "x")
    os.mkfifo(either.path("later/pipe"))

    either.restore(checkpoint, ok=False)

    assert not either.exists("later/file")
    assert either.picture()[b"later/pipe"].type == "fifo"


def test_a_pipe_that_a_restore_made_goes_with_its_folders(either: Box) -> None:
    either.mkdir("later/deep")
    os.mkfifo(either.path("later/deep/pipe"))
    checkpoint = either.save()
    either.remove("later").save()
    before = either.picture()
    either.restore(checkpoint)
    assert either.picture()[b"later/deep/pipe"].type == "fifo"

    either.rewind("undo-restore")

    either.assert_like(before)


def test_a_socket_is_left_alone(either: Box) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(either.path("sub/socket"))
        answer = either.rewind("save")
        assert b"sub/socket" in coverage(answer)
        before = either.picture()
        either.write("a.txt", "changed")

        either.restore(str(answer["id"]))

        either.assert_like(before)


def test_devices_are_left_alone(either: Box) -> None:
    if os.getuid():
        pytest.skip("only root makes devices")
    os.mknod(either.path("null"), 0o666 | 0o020000, os.makedev(1, 3))
    os.mknod(either.path("zero"), 0o600 | 0o020000, os.makedev(1, 5))
    answer = either.rewind("save")
    assert {b"null", b"zero"} <= coverage(answer).keys()
    before = either.picture()
    either.write("a.txt", "changed")

    either.restore(str(answer["id"]))

    either.assert_like(before)
    assert before[b"null"] == Node("device", 0o666 & ~_umask())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_file_where_a_parent_folder_was(either: Box) -> None:
    either.write("p/q/r/file", "1").write("p/other", "2")

    either.round_trip(lambda: either.remove("p").write("p", "a file now"))


def test_a_folder_where_a_file_was_with_much_in_it(either: Box) -> None:
    either.write("p", "a file")

    def change() -> None:
        either.remove("p")
        for number in range(20):
            either.write(f"p/{number}/file", str(number))
        either.mkdir("p/empty").symlink("p/link", "..")

    either.round_trip(change)


def test_a_running_program_is_replaced(either: Box) -> None:
    """Text file busy: writing beside and renaming over copes with it."""
    sleep = shutil.which("sleep")
    assert sleep
    program = Path(sleep).read_bytes()
    either.write("program", program, 0o755)
    checkpoint = either.save()
    either.write("program", program + b"changed", 0o755)
    running = subprocess.Popen([either.path("program"), "30"])
    try:
        either.restore(checkpoint)
        assert either.read("program") == program
    finally:
        running.kill()
        running.wait()


def test_unchanged_files_keep_inode_and_mtime(either: Box) -> None:
    for number in range(20):
        either.write(f"many/{number}", str(number))
    checkpoint = either.save()
    either.write("a.txt", "changed")
    names = [f"many/{number}" for number in range(20)] + ["sub/b.txt"]
    before = {name: os.lstat(either.path(name)) for name in names}

    either.restore(checkpoint)

    for name in names:
        seen = os.lstat(either.path(name))
        assert seen.st_ino == before[name].st_ino, name
        assert seen.st_mtime_ns == before[name].st_mtime_ns, name


def test_a_touched_but_unchanged_file_is_not_rewritten(either: Box) -> None:
    checkpoint = either.save()
    os.utime(either.path("a.txt"))
    either.write("sub/b.txt", "changed")
    before = os.lstat(either.path("a.txt"))

    either.restore(checkpoint)

    assert os.lstat(either.path("a.txt")).st_ino == before.st_ino
    assert os.lstat(either.path("a.txt")).st_mtime_ns == before.st_mtime_ns


def test_a_save_leaves_access_and_modification_of_folders_alone(either: Box) -> None:
    before = {name: os.lstat(either.path(name)).st_mtime_ns for name in ("", "sub")}
    either.save()
    either.save()

    assert {name: os.lstat(either.path(name)).st_mtime_ns for name in ("", "sub")} == before


def test_a_dry_run_changes_nothing(either: Box) -> None:
    checkpoint = either.save()
    either.write("a.txt", "changed").remove("sub").write("new", "x")

    with either.expect_unchanged():
        answer = either.rewind("restore", checkpoint, "--dry-run")

    for name in ("a.txt", "sub/b.txt", "new"):
        assert name in answer.said


def test_a_restore_to_where_we_are_changes_nothing(either: Box) -> None:
    checkpoint = either.save()
    before = os.lstat(either.path("a.txt"))

    with either.expect_unchanged():
        either.restore(checkpoint)

    assert os.lstat(either.path("a.txt")).st_ctime_ns == before.st_ctime_ns
