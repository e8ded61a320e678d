"""Permission bits of files and folders come back, and private stays private."""

import os
import subprocess

import pytest

from .box import Box


@pytest.mark.parametrize(
    "mode", [0o600, 0o400, 0o444, 0o640, 0o664, 0o666, 0o700, 0o711, 0o751, 0o755, 0o777, 0o000]
)
def test_the_mode_of_a_file(either: Box, mode: int) -> None:
    if os.getuid() and not mode & 0o400:
        pytest.skip("only root reads such a file")
    either.write("changed", "1", mode).write("deleted", "2", mode).write("chmodded", "3", mode)
    other = 0o644 if mode != 0o644 else 0o600

    def change() -> None:
        os.chmod(either.path("changed"), 0o600)
        either.write("changed", "other", other)
        either.remove("deleted")
        os.chmod(either.path("chmodded"), other)

    either.round_trip(change)


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o775, 0o777, 0o555, 0o500, 0o1777, 0o2755])
def test_the_mode_of_a_folder(either: Box, mode: int) -> None:
    either.write("gone/file", "1").mkdir("gone", mode)
    either.write("chmodded/file", "1").mkdir("chmodded", mode)
    either.mkdir("empty", mode)
    either.write("outer/inner/file", "1").mkdir("outer/inner", mode)

    def change() -> None:
        either.remove("gone").remove("empty").remove("outer")
        either.mkdir("chmodded", 0o755)

    either.round_trip(change)


def test_a_mode_change_alone_is_seen(either: Box) -> None:
    either.round_trip(lambda: os.chmod(either.path("a.txt"), 0o600))


@pytest.mark.parametrize("file_mode", ["false", "true"])
def test_executable_bit_whatever_core_filemode_says(box: Box, file_mode: str) -> None:
    box.write("run", "#!/bin/sh\n", 0o755).write("data", "x\n").commit()
    box.write("new-run", "#!/bin/sh\n", 0o755)
    box.git("config", "core.fileMode", file_mode)

    def change() -> None:
        os.chmod(box.path("run"), 0o644)
        os.chmod(box.path("data"), 0o755)
        box.remove("new-run")

    box.round_trip(change)


def test_executable_bit_with_core_filemode_false_in_the_global_configuration(box: Box) -> None:
    box.git("config", "--unset", "core.fileMode", ok=False)
    box.git("config", "--global", "core.fileMode", "false")
    box.write("run", "#!/bin/sh\n", 0o755)

    box.round_trip(lambda: os.chmod(box.path("run"), 0o644))


@pytest.mark.parametrize("umask", ["000", "027", "077", "777"])
def test_modes_do_not_depend_on_the_umask(either: Box, umask: str) -> None:
    for mode in (0o600, 0o644, 0o664, 0o755, 0o666):
        either.write(f"modes/{mode:o}", "x", mode)
    either.mkdir("modes/open", 0o777).mkdir("modes/closed", 0o700)
    either.prefix = ["sh", "-c", f'umask {umask}; exec "$@"', "sh"]

    either.round_trip(lambda: either.remove("modes").remove("sub"))


def test_a_private_file_is_private_at_every_moment_of_a_restore(plain: Box) -> None:
    """The system calls that create files give no one else a right, not even for a moment."""
    if subprocess.run(["which", "strace"], capture_output=True, check=False).returncode:
        pytest.skip("no strace")
    plain.write("secret", "s" * 100, 0o600)
    checkpoint = plain.save()
    plain.remove("secret")
    trace = f"{plain.root}/trace"
    calls = "trace=open,openat,creat,chmod,fchmod,fchmodat,rename,renameat,renameat2,link,linkat"
    plain.prefix = ["strace", "-f", "-y", "-qq", "-s", "200", "-o", trace, "-e", calls]
    plain.prefix = ["sh", "-c", 'umask 000; exec "$@"', "sh", *plain.prefix]

    plain.restore(checkpoint)

    assert plain.mode("secret") == 0o600
    with open(trace, errors="replace") as file:
        for line in file:
            if "O_CREAT" in line and f"<{plain.project}" in line.split("O_CREAT")[0]:
                mode = line.split("O_CREAT")[1].split(")")[0].rsplit(",", 1)[-1].strip()
                assert int(mode, 8) & 0o077 == 0, f"created open to others: {line}"


def test_a_private_file_that_is_overwritten_leaves_no_open_copy(either: Box) -> None:
    either.write("secret", "old", 0o600)
    checkpoint = either.save()
    either.write("secret", "new").mkdir("sub", 0o755)
    os.chmod(either.path("secret"), 0o644)

    either.restore(checkpoint)

    assert either.mode("secret") == 0o600
    assert either.read("secret") == b"old"


def test_the_store_is_private(either: Box) -> None:
    either.prefix = ["sh", "-c", 'umask 000; exec "$@"', "sh"]
    either.write("secret", "s", 0o600)
    either.save()
    store = either.store()

    assert os.stat(store).st_mode & 0o077 == 0
    assert os.stat(either.store_home).st_mode & 0o077 == 0
    for folder, _, names in os.walk(store):
        for name in names:
            seen = os.lstat(os.path.join(folder, name))
            if seen.st_nlink == 1:  # hard links are the user's own objects
                assert seen.st_mode & 0o077 == 0, os.path.join(folder, name)


def test_a_file_in_a_read_only_folder_is_changed_back(either: Box) -> None:
    either.write("locked/file", "old").write("locked/other", "1").mkdir("locked", 0o555)

    def change() -> None:
        either.mkdir("locked", 0o755)
        either.write("locked/file", "new").remove("locked/other").write("locked/extra", "x")
        either.mkdir("locked", 0o555)

    either.round_trip(change)


def test_a_read_only_folder_that_appeared_later_goes_away(either: Box) -> None:
    either.round_trip(lambda: either.write("later/deep/file", "x").mkdir("later/deep", 0o555))


def test_the_mode_of_the_root_itself_is_left_alone(either: Box) -> None:
    os.chmod(either.project, 0o750)
    checkpoint = either.save()
    either.write("a.txt", "new")
    either.restore(checkpoint)

    assert os.stat(either.project).st_mode & 0o7777 == 0o750


def test_setgid_folder_of_a_shared_project(either: Box) -> None:
    either.mkdir("shared", 0o2775).write("shared/file", "x", 0o664)

    either.round_trip(lambda: either.remove("shared/file").write("shared/new", "y"))
