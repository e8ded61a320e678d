"""Where the command is started, and where the project lies."""

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from .box import Box
from .conftest import _leave
from .tree import differences

FOLDERS: dict[str, bytes] = {
    "spaces": b"my  project ",
    "single-quote": b"it's",
    "double-quote": b'the "project"',
    "newline": b"two\nlines",
    "trailing-newline": b"ends\n",
    "non-utf8": b"proj\xff\xfeect",
    "backslash": b"back\\slash",
    "colon": b"a:b",
    "dash": b"-project",
    "glob": b"[a]*?",
    "dollar": b"$HOME",
    "equals": b"a=b",
    "percent": b"100%",
    "at": b"@{u}",
    "emoji": "📦".encode(),
    "tab": b"a\tb",
    "dot-git-suffix": b"project.git",
    "long": b"l" * 255,
    "deep": b"/".join([b"d" * 200] * 5),
    "semicolon": b"a;touch x",
    "tilde": b"~",
    "hash": b"#x",
}


@pytest.fixture(params=FOLDERS)
def odd(request: pytest.FixtureRequest, room: str) -> Iterator[Box]:
    box = Box(room, FOLDERS[request.param])
    yield box
    _leave(box)


@pytest.mark.parametrize("git", [True, False], ids=["git", "plain"])
def test_a_project_in_a_folder_named_with(odd: Box, git: bool) -> None:
    if git:
        odd.init()
    odd.write("a.txt", "a\n").write("sub/b.txt", "b\n").mkdir("sub/empty")
    if git:
        odd.commit()

    odd.round_trip(lambda: odd.write("a.txt", "changed").remove("sub").write("new/x", "x"))


def test_a_store_in_a_folder_with_an_odd_name(either: Box) -> None:
    either.store_home = os.fsdecode(os.fsencode(either.root) + b"/re wind'\"\n\xff=:;")
    either.env["REWIND_HOME"] = either.store_home

    either.round_trip(lambda: either.write("a.txt", "changed").remove("sub"))


def test_started_in_a_subdirectory(box: Box) -> None:
    """All of the work tree is meant, as git does."""
    before = box.picture()
    checkpoint = box.save(at=box.path("sub"))
    box.write("a.txt", "changed").write("sub/b.txt", "changed")

    box.restore(checkpoint, at=box.path("sub"))

    box.assert_like(before)


def test_started_in_a_subdirectory_of_a_protected_plain_folder(plain: Box) -> None:
    """The folder that was protected is found from below, or the subfolder is its own worktree."""
    plain.rewind("init", "--yes")
    before = plain.picture()
    checkpoint = plain.save(at=plain.path("sub"))
    plain.write("sub/b.txt", "changed")

    plain.restore(checkpoint, at=plain.path("sub"))

    plain.assert_like(before)


def test_started_in_a_subdirectory_that_the_restore_deletes(either: Box) -> None:
    checkpoint = either.save()
    either.write("later/deep/file", "x")

    either.restore(
        checkpoint,
        at=either.path("later/deep") if either.exists(".git") else None,
        cwd=either.path("later/deep"),
    )

    assert not either.exists("later/deep/file")


def test_started_in_the_folder_itself_without_c(either: Box) -> None:
    process = either.start("save", "--json", cwd=either.project)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert b'"id"' in out

    assert len(either.checkpoints()) == 1


def test_started_through_a_symlink(either: Box) -> None:
    link = f"{either.root}/link"
    os.symlink(either.project, link)
    before = either.picture()
    checkpoint = either.save(at=link)
    either.write("a.txt", "changed").remove("sub")

    assert checkpoint in {item["id"] for item in either.checkpoints()}
    either.restore(checkpoint)
    either.assert_like(before)
    either.write("a.txt", "changed")
    either.restore(checkpoint, at=link)
    either.assert_like(before)


def test_started_through_a_symlink_in_the_middle_and_dots(either: Box) -> None:
    os.symlink(either.root, f"{either.root}/around")
    place = f"{either.root}/around/project/sub/.."
    checkpoint = either.save(at=place)

    assert checkpoint in {item["id"] for item in either.checkpoints()}


def test_a_symlink_inside_the_project_to_its_own_subfolder(box: Box) -> None:
    box.symlink("short", "sub")
    before = box.picture()
    checkpoint = box.save(at=box.path("short"))
    box.write("a.txt", "changed")

    box.restore(checkpoint)

    box.assert_like(before)


def test_started_inside_the_git_dir(box: Box) -> None:
    """A word or the right work tree; never .git captured as a folder."""
    answer = box.rewind("save", ok=False, at=box.path(".git"))
    if answer.code == 0:
        assert len(box.checkpoints()) == 1


def test_a_folder_that_does_not_exist(plain: Box) -> None:
    assert plain.rewind("save", ok=False, at=f"{plain.root}/nowhere").code in (1, 2)


def test_a_file_instead_of_a_folder(plain: Box) -> None:
    assert plain.rewind("save", ok=False, at=plain.path("a.txt")).code in (1, 2)


def test_plain_folders_side_by_side(plain: Box) -> None:
    other = f"{plain.root}/project2"
    plain.write(f"{other}/a.txt", "2\n")
    one, two = plain.save(), plain.save(at=other)
    plain.write("a.txt", "x").write(f"{other}/a.txt", "x")

    plain.restore(one)
    assert plain.read(f"{other}/a.txt") == b"x"
    plain.restore(two, at=other)

    assert plain.read("a.txt") == b"a\n"
    assert plain.read(f"{other}/a.txt") == b"2\n"
    assert [item["id"] for item in plain.checkpoints()].count(two) == 0


def test_plain_folders_inside_each_other(plain: Box) -> None:
    """The inner protected on its own first, then the outer with the inner in it."""
    inner = plain.save(at=plain.path("sub"))
    before = plain.picture()
    outer = plain.save()
    plain.write("a.txt", "x").write("sub/b.txt", "x")

    plain.restore(outer)
    plain.assert_like(before)
    plain.write("sub/b.txt", "y")
    plain.restore(inner, at=plain.path("sub"))
    plain.assert_like(before)


def test_a_folder_that_becomes_a_repository_later(plain: Box) -> None:
    before = plain.picture()
    checkpoint = plain.save()
    plain.init()
    plain.write("a.txt", "changed").commit()
    later = plain.save()

    plain.restore(checkpoint)
    plain.assert_like(before)
    plain.restore(later)
    assert plain.read("a.txt") == b"changed"
    assert checkpoint in {item["id"] for item in plain.checkpoints()}


def test_a_subfolder_that_was_protected_before_its_parent_became_a_repository(plain: Box) -> None:
    checkpoint = plain.save(at=plain.path("sub"))
    plain.init().commit()
    plain.write("sub/b.txt", "changed")

    answer = plain.restore(checkpoint, ok=False, at=plain.path("sub"))

    if answer.code == 0:
        assert plain.read("sub/b.txt") == b"b\n"
        assert plain.read("a.txt") == b"a\n"


def test_a_moved_plain_folder_in_project_mode_keeps_its_checkpoints(plain: Box) -> None:
    plain.skip = {b".agent"}
    plain.rewind("init", "--mode", "project", "--yes")
    checkpoint = plain.save()
    moved = f"{plain.root}/moved"
    os.rename(plain.project, moved)
    plain.project = moved
    plain.write("a.txt", "changed")

    plain.restore(checkpoint)

    assert plain.read("a.txt") == b"a\n"


def test_home_is_refused(plain: Box) -> None:
    for command in ("init", "save"):
        answer = plain.rewind(command, ok=False, at=plain.home)
        assert answer.code == 1, command
        assert "--force" in answer.said or "force" in answer.said, command
    assert os.listdir(plain.home) == []


def test_home_as_a_repository_is_refused_too(plain: Box) -> None:
    plain.init(where=plain.home)

    assert plain.rewind("init", ok=False, at=plain.home).code == 1


def test_the_root_of_the_file_system_is_refused(plain: Box) -> None:
    assert plain.rewind("init", ok=False, at="/", check_git=False).code == 1


def test_a_folder_above_home_is_refused_or_only_by_force(plain: Box) -> None:
    """/home holds $HOME: at least our own store must never be captured; here it lies within."""
    answer = plain.rewind("init", "--yes", ok=False, at=plain.root)
    assert answer.code in (0, 1)


@pytest.mark.parametrize("how", ["--force", "REWIND_ALLOW_HOME"])
def test_home_itself_by_force(plain: Box, how: str) -> None:
    """Our own store lies inside: never captured, never deleted."""
    plain.project = plain.home
    plain.store_home = f"{plain.home}/.rewind"
    plain.env["REWIND_HOME"] = plain.store_home
    plain.skip = {b".rewind"}
    plain.write("document.txt", "d\n").write(".bashrc", "b\n").write(".config/app/x", "x\n")
    before = plain.picture()
    if how == "--force":
        plain.rewind("init", "--force", "--yes")
    else:
        plain.env["REWIND_ALLOW_HOME"] = "1"
        plain.rewind("init", "--yes")
    checkpoint = plain.save()
    plain.write("document.txt", "changed").remove(".config").write("new", "x")

    plain.restore(checkpoint)

    plain.assert_like(before)
    assert checkpoint in {item["id"] for item in plain.checkpoints()}
    second = plain.save()
    plain.write("document.txt", "changed")
    plain.restore(second)
    plain.assert_like(before)


@pytest.mark.parametrize("link", [False, True], ids=["plain", "through-a-symlink"])
def test_our_store_inside_the_project_is_never_captured(either: Box, link: bool) -> None:
    """$REWIND_HOME below the worktree."""
    inside = either.path("tools/rewind")
    os.makedirs(inside)
    if link:
        os.symlink(inside, f"{either.root}/store-link")
        inside = f"{either.root}/store-link"
    either.env["REWIND_HOME"] = inside
    either.skip = {b"tools/rewind"}

    checkpoint = either.round_trip(lambda: either.write("a.txt", "changed").remove("sub"))
    either.write("a.txt", "again")
    either.restore(checkpoint)

    assert either.read("a.txt") == b"a\n"
    either.rewind("doctor")


def test_the_protected_folder_inside_another_users_repository(plain: Box) -> None:
    """A repository above is the worktree: files beside the folder go back as well."""
    plain.init().commit()
    checkpoint = plain.save(at=plain.path("sub"))
    plain.write("a.txt", "changed")
    plain.restore(checkpoint, at=plain.path("sub"))

    assert plain.read("a.txt") == b"a\n"


def test_the_worktree_is_recreated_by_another_folder_of_the_same_name(plain: Box) -> None:
    before = plain.picture()
    checkpoint = plain.save()
    shutil.rmtree(plain.project)
    os.makedirs(plain.project)
    plain.write("entirely", "different")

    plain.restore(checkpoint)

    plain.assert_like(before)


def test_a_mount_point_inside_is_entered_or_reported(plain: Box) -> None:
    """A folder on another file system."""
    if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == os.stat(plain.root).st_dev:
        pytest.skip("no second file system")
    import tempfile

    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        plain.env["REWIND_HOME"] = f"{elsewhere}/home"
        plain.round_trip(lambda: plain.write("a.txt", "changed").remove("sub"))


def test_what_was_mounted_since_stays_mounted(either: Box) -> None:
    """Its files go and come like all others."""
    before = either.picture()
    checkpoint = either.save()
    either.mkdir("folder").write("single", "")
    made = [subprocess.run(["mount", *words], capture_output=True, check=False).returncode
            for words in (["-t", "tmpfs", "tmpfs", either.path("folder")],
                          ["--bind", either.path("a.txt"), either.path("single")])]
    try:
        if any(made):
            pytest.skip("cannot mount")
        either.write("folder/file", "x").write("sub/b.txt", "changed")
        after = either.picture()

        answer = either.restore(checkpoint)

        assert {kept["path"] for kept in answer["plan"]["kept"]} >= {"folder", "single"}
        assert differences(before, either.picture()) == [
            "should not be there: directory b'folder'", "should not be there: file b'single'"]
        either.rewind("undo-restore")
        either.assert_like(after)
    finally:
        subprocess.run(["umount", either.path("folder"), either.path("single")],
                       stderr=subprocess.DEVNULL, check=False)


def test_a_repository_on_another_file_system_than_the_store(box: Box) -> None:
    if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == os.stat(box.root).st_dev:
        pytest.skip("no second file system")
    import tempfile

    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        box.env["REWIND_HOME"] = f"{elsewhere}/home"
        box.git("gc", "-q")
        box.round_trip(lambda: box.write("a.txt", "changed").remove("sub"))
