"""What cannot be read is reported, and neither deleted nor overwritten. As an ordinary user."""

import os
import shutil
import subprocess
import sys

import pytest

from .box import Box, coverage

NOBODY = 65534


@pytest.fixture
def weak(either: Box) -> Box:
    """The box handed over to a user whom permissions stop."""
    if os.getuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("no setpriv")
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", either.root], check=True)
        words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        either.prefix = words
        ready = subprocess.run(
            [*words, sys.executable, "-c", "import coderewind"],
            env=either.env,
            capture_output=True,
            check=False,
        )
        if ready.returncode:
            pytest.skip("an ordinary user cannot reach the source")
        # git, run by the test as root, must accept the folder.
        either.git("config", "--global", "safe.directory", "*")
    return either


def _own(box: Box) -> None:
    if os.getuid() == 0:
        subprocess.run(["chown", "-R", "-h", f"{NOBODY}:{NOBODY}", box.project], check=True)


def test_an_unreadable_file_is_reported_and_kept(weak: Box) -> None:
    weak.write("secret", "s").write("sub/secret", "t")
    _own(weak)
    for name in ("secret", "sub/secret"):
        os.chmod(weak.path(name), 0)
    answer = weak.rewind("save", ok=False)
    assert {b"secret", b"sub/secret"} <= coverage(answer).keys()
    before = weak.picture()
    weak.write("a.txt", "changed").write("new", "x")
    _own(weak)

    weak.restore(str(answer["id"]), ok=False)

    weak.assert_like(before)


def test_an_unreadable_folder_is_reported_and_kept(weak: Box) -> None:
    weak.write("vault/secret", "s")
    _own(weak)
    os.chmod(weak.path("vault"), 0)
    answer = weak.rewind("save", ok=False)
    assert any(path.rstrip(b"/") == b"vault" for path in coverage(answer))
    before = weak.picture()
    weak.write("a.txt", "changed")
    _own(weak)

    weak.restore(str(answer["id"]), ok=False)

    weak.assert_like(before)


@pytest.mark.parametrize("mode", [0o300, 0o600])
def test_a_folder_that_can_be_entered_or_listed_only(weak: Box, mode: int) -> None:
    weak.write("half/secret", "s")
    _own(weak)
    os.chmod(weak.path("half"), mode)
    answer = weak.rewind("save", ok=False)
    assert any(path.split(b"/")[0] == b"half" for path in coverage(answer))
    before = weak.picture()
    weak.write("a.txt", "changed")
    _own(weak)

    weak.restore(str(answer["id"]), ok=False)

    weak.assert_like(before)


def test_an_unreadable_file_that_appeared_later_is_kept(weak: Box) -> None:
    checkpoint = weak.save()
    weak.write("secret", "s").write("a.txt", "changed")
    _own(weak)
    os.chmod(weak.path("secret"), 0)

    weak.restore(checkpoint, ok=False)

    os.chmod(weak.path("secret"), 0o600)
    assert weak.read("secret") == b"s"
    assert weak.read("a.txt") == b"a\n"


def test_a_file_that_became_unreadable_is_not_overwritten_without_rescue(weak: Box) -> None:
    """What could not be read could not be rescued either."""
    checkpoint = weak.save()
    weak.write("a.txt", "new and unreadable").write("sub/b.txt", "changed")
    _own(weak)
    os.chmod(weak.path("a.txt"), 0)

    answer = weak.restore(checkpoint, ok=False)

    os.chmod(weak.path("a.txt"), 0o600)
    if answer.code == 0:
        assert weak.read("a.txt") == b"a\n"
        weak.rewind("undo-restore")
    assert weak.read("a.txt") == b"new and unreadable"


def test_a_file_unreadable_at_the_save_and_gone_since_is_said_to_be_missing(weak: Box) -> None:
    weak.write("secret", "s")
    _own(weak)
    os.chmod(weak.path("secret"), 0)
    answer = weak.rewind("save", ok=False)
    weak.remove("secret").write("a.txt", "changed")
    _own(weak)

    again = weak.restore(str(answer["id"]), ok=False)

    assert weak.read("a.txt") == b"a\n"
    assert "secret" in again.said


def test_a_private_folder_of_ones_own_is_restored(weak: Box) -> None:
    weak.write("mine/file", "1", 0o600).mkdir("mine", 0o700)
    weak.write("locked/file", "1", 0o400).mkdir("locked", 0o500)
    _own(weak)
    before = weak.picture()
    checkpoint = weak.save()
    weak.remove("mine").remove("locked")
    weak.write("locked/extra", "x").mkdir("locked", 0o500)
    _own(weak)

    weak.restore(checkpoint)

    weak.assert_like(before)


def test_a_read_only_project_is_restored_and_stays_read_only(weak: Box) -> None:
    before = weak.picture()
    checkpoint = weak.save()
    weak.write("a.txt", "changed").remove("sub").write("new", "x")
    _own(weak)
    os.chmod(weak.project, 0o555)
    after = weak.picture()

    weak.restore(checkpoint)
    weak.assert_like(before)
    weak.rewind("undo-restore")
    weak.assert_like(after)

    assert os.stat(weak.project).st_mode & 0o777 == 0o555


def test_a_folder_that_became_read_only_gets_back_what_it_held_and_its_mode(weak: Box) -> None:
    weak.write("sub/deep/file", "x")
    _own(weak)
    before = weak.picture()
    checkpoint = weak.save()
    weak.remove("sub/deep/file").remove("sub/b.txt")
    os.chmod(weak.path("sub/deep"), 0o500)
    os.chmod(weak.path("sub"), 0o555)
    after = weak.picture()

    weak.restore(checkpoint)
    weak.assert_like(before)
    weak.rewind("undo-restore")
    weak.assert_like(after)


def test_a_folder_that_may_not_be_passed_through_gets_back_what_it_held(weak: Box) -> None:
    weak.write("sub/deep/er/file", "x")
    _own(weak)
    before = weak.picture()
    checkpoint = weak.save()
    weak.remove("sub/deep").remove("sub/b.txt")
    os.chmod(weak.path("sub"), 0o600)

    weak.restore(checkpoint)

    weak.assert_like(before)


@pytest.mark.parametrize("mode", [0, 0o100, 0o200, 0o300])
def test_what_is_in_an_unreadable_folder_is_not_overwritten(weak: Box, mode: int) -> None:
    weak.write("sub/deep/er", "1")
    _own(weak)
    checkpoint = weak.save()
    weak.write("sub/deep/er", "2").write("a.txt", "changed")
    _own(weak)
    os.chmod(weak.path("sub"), mode)

    with weak.expect_unchanged():
        answer = weak.restore(checkpoint, ok=False)

    assert answer.code == 1
    assert weak.rewind("status")["interrupted"] is False
    os.chmod(weak.path("sub"), 0o755)
    weak.restore(checkpoint)
    assert weak.read("sub/deep/er") == b"1"


def test_an_unreadable_folder_is_said_whatever_else_changed_beside_it(weak: Box) -> None:
    weak.rewind("config", "filters.maxFileBytes", "1000")
    weak.write("big", bytes(2000)).write("sub/node_modules/x", "x")
    _own(weak)
    weak.save()
    os.chmod(weak.path("sub"), 0o100)
    weak.remove("big").write("a.txt", "changed")
    _own(weak)

    assert coverage(weak.rewind("save"))[b"sub"] == "unreadable"


@pytest.mark.parametrize("umask", ["0777", "0277", "0177", "0477"])
def test_a_umask_that_denies_even_the_owner(weak: Box, umask: str) -> None:
    weak.write(".gitignore", "ignored\n").write("ignored", "precious").mkdir("empty")
    _own(weak)
    weak.prefix = ["sh", "-c", f'umask {umask}; exec "$@"', "sh", *weak.prefix]
    before = weak.picture()
    checkpoint = weak.save()
    weak.remove("sub").remove("empty").write("new/x", "x").write(".gitignore", "")
    _own(weak)

    weak.restore(checkpoint)
    weak.assert_like(before)
    weak.rewind("undo-restore")
    weak.rewind("gc")
    weak.rewind("doctor")


def test_a_restore_that_may_not_write_is_never_exit_0(weak: Box) -> None:
    """A folder of another user stands where files must be written."""
    if os.getuid():
        pytest.skip("needs root to make a folder of another user")
    checkpoint = weak.save()
    weak.write("sub/b.txt", "changed")
    os.chown(weak.path("sub"), 0, 0)
    os.chmod(weak.path("sub"), 0o755)
    weak.write("a.txt", "changed")

    answer = weak.restore(checkpoint, ok=False)

    assert answer.code == 1, str(answer)
    assert weak.read("sub/b.txt") == b"changed"


def test_a_file_that_belongs_to_another_user_now(weak: Box) -> None:
    """Its folder is ours: it can be replaced, though not changed."""
    if os.getuid():
        pytest.skip("needs root to make a file of another user")
    before = weak.picture()
    checkpoint = weak.save()
    os.chown(weak.path("a.txt"), 0, 0)
    os.chmod(weak.path("a.txt"), 0o755)
    weak.write("sub/b.txt", "theirs")
    os.chown(weak.path("sub/b.txt"), 0, 0)

    weak.restore(checkpoint)

    weak.assert_like(before)


def test_a_folder_of_another_user_in_the_way_is_known_before_a_file_is_touched(weak: Box) -> None:
    if os.getuid():
        pytest.skip("needs root to make a folder of another user")
    checkpoint = weak.save()
    weak.write("sub/b.txt", "changed").write("a.txt", "changed")
    _own(weak)
    os.chown(weak.path("sub"), 0, 0)

    with weak.expect_unchanged():
        answer = weak.restore(checkpoint, ok=False)

    assert answer.code == 1
    assert "another user" in answer.said
    assert weak.rewind("status")["interrupted"] is False


def test_a_repository_of_another_owner(weak: Box) -> None:
    """Git refuses such a repository unless told; files of the user must be protected anyway."""
    if os.getuid():
        pytest.skip("needs root to give a repository away")
    if not weak.exists(".git"):
        pytest.skip("about repositories")
    os.chown(weak.path(".git"), 1, 1)
    os.chmod(weak.path(".git"), 0o755)
    os.remove(f"{weak.home}/.gitconfig")

    weak.round_trip(lambda: weak.write("a.txt", "changed"), undo=False)
