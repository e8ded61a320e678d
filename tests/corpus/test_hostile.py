"""A project, a configuration or a store made by someone who means harm."""

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator

import pytest

from .box import Box
from .tree import picture

COMMANDS = [
    "core.fsmonitor",
    "core.sshCommand",
    "core.alternateRefsCommand",
    "core.gitProxy",
    "core.pager",
    "core.editor",
    "core.askPass",
    "credential.helper",
    "diff.external",
    "diff.x.textconv",
    "diff.x.command",
    "filter.x.clean",
    "filter.x.smudge",
    "filter.x.process",
    "merge.x.driver",
    "gpg.program",
    "gpg.ssh.program",
    "pager.log",
    "pager.diff",
    "interactive.diffFilter",
    "uploadpack.packObjectsHook",
    "trailer.x.command",
    "gc.recentObjectsHook",
    "man.x.cmd",
]


def _poison(box: Box, git_dir: str) -> None:
    """Every setting and hook that would run a command."""
    command = f"touch {box.canary}"
    config = f"--file={git_dir}/config"
    for key in COMMANDS:
        box.git("config", config, key, command, cwd=box.root)
    box.git("config", config, "filter.x.required", "true", cwd=box.root)
    box.git("config", config, "core.hooksPath", f"{git_dir}/hooks", cwd=box.root)
    for name in (
        "pre-commit",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "pre-auto-gc",
        "post-merge",
        "update",
        "fsmonitor-watchman",
        "post-rewrite",
        "pre-receive",
        "pre-push",
    ):
        box.write(f"{git_dir}/hooks/{name}", f"#!/bin/sh\n{command}\n", 0o755)
    box.write(f"{git_dir}/info/attributes", "* filter=x diff=x merge=x\n")


def _everything(box: Box) -> None:
    """A user's day."""
    before = box.picture()
    checkpoint = box.save()
    box.write("a.txt", "changed\n").remove("sub").write("new", "x")
    box.rewind("diff", checkpoint)
    process = box.start("-C", box.project, "diff", checkpoint, "--patch")
    process.communicate(timeout=60)
    box.restore(checkpoint)
    box.assert_like(before)
    box.rewind("undo-restore")
    box.rewind("undo", ok=False)
    box.rewind("redo", ok=False)
    for command in ("list", "status", "doctor", "gc"):
        box.rewind(command)


def test_a_repository_whose_every_setting_runs_a_command(box: Box) -> None:
    _poison(box, box.path(".git"))
    box.write(".gitattributes", "* filter=x diff=x merge=x\n")

    _everything(box)


def test_a_repository_with_settings_included_from_the_worktree(box: Box) -> None:
    box.write("evil.config", f"[core]\n\tfsmonitor = touch {box.canary}\n")
    box.git("config", "include.path", "../evil.config")

    _everything(box)


def test_a_plain_folder_that_looks_like_a_bare_repository(plain: Box) -> None:
    """Git would discover it and obey its configuration."""
    plain.git("init", "-q", "--bare", "--template=", f"{plain.root}/bare")
    for name in ("HEAD", "config", "objects", "refs"):
        os.rename(f"{plain.root}/bare/{name}", plain.path(name))
    _poison(plain, plain.project)
    plain.git("config", f"--file={plain.path('config')}", "core.worktree", ".", cwd=plain.root)

    answer = plain.rewind("save", ok=False)
    if answer.code == 0:
        plain.write("a.txt", "changed")
        plain.restore(str(answer["id"]))
        assert plain.read("a.txt") == b"a\n"


def test_a_bare_repository_in_a_subfolder_one_starts_in(box: Box) -> None:
    box.git("init", "-q", "--bare", "--template=", box.path("fixture"))
    _poison(box, box.path("fixture"))
    box.git("config", f"--file={box.path('fixture/config')}", "core.worktree", "..", cwd=box.root)

    box.rewind("save", ok=False, at=box.path("fixture"))
    box.rewind("status", ok=False, at=box.path("fixture"))


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", ".gitmodules", "sub/.gitignore"])
def test_a_fifo_in_place_of_a_file_that_git_reads(box: Box, name: str) -> None:
    """Opening it would wait for ever."""
    os.mkfifo(box.path(name))
    checkpoint = box.save(timeout=15)
    box.write("a.txt", "changed")
    box.restore(checkpoint, timeout=15)

    assert box.read("a.txt") == b"a\n"


@pytest.mark.parametrize("name", [
    "HEAD", "index", "config", "packed-refs", "shallow", "commondir", "info/exclude",
    "info/attributes", "refs/heads/main", "objects/info/alternates",
])
@pytest.mark.parametrize("link", ["", "/dev/zero"], ids=["pipe", "endless"])
def test_a_pipe_or_device_in_place_of_a_file_of_the_git_directory(
    box: Box, name: str, link: str
) -> None:
    path = f".git/{name}"
    box.remove(path)
    os.makedirs(os.path.dirname(box.path(path)), exist_ok=True)
    if link:
        box.symlink(path, link)
    else:
        os.mkfifo(box.path(path))

    answer = box.rewind("save", ok=False, check_git=False, timeout=20)

    if answer.code == 0:
        box.write("a.txt", "changed")
        box.restore(str(answer["id"]), check_git=False, timeout=20)
        assert box.read("a.txt") == b"a\n"


@pytest.mark.parametrize("scope", ["--global", "--local"])
def test_a_pipe_as_the_file_of_ignored_names(box: Box, scope: str) -> None:
    os.mkfifo(f"{box.root}/pipe")
    box.git("config", scope, "core.excludesFile", f"{box.root}/pipe")
    checkpoint = box.save(timeout=20)
    box.write("a.txt", "changed").write("new", "x")

    box.restore(checkpoint, timeout=20)

    assert box.read("a.txt") == b"a\n"
    assert not box.exists("new")


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", ".gitmodules"])
def test_a_symlink_to_an_endless_device_in_place_of_a_file_that_git_reads(
    box: Box, name: str
) -> None:
    box.symlink(name, "/dev/zero")

    box.round_trip(lambda: box.write("a.txt", "changed").remove(name))


def test_a_cycle_of_symlinks(either: Box) -> None:
    either.symlink("one", "two").symlink("two", "one").symlink("sub/up", "..")

    either.round_trip(lambda: either.remove("one").write("a.txt", "changed"))


def test_patterns_made_to_be_slow(box: Box) -> None:
    box.write(".gitignore", "a*a*a*a*a*a*a*a*a*a*a*a*b\n" * 5 + "**/" * 30 + "x\n")
    box.write("a" * 200, "1")

    box.round_trip(lambda: box.write("a" * 200, "2"))


@pytest.mark.parametrize("what", [".agent", ".agent/rewind"])
def test_a_symlink_where_the_project_store_would_be(either: Box, what: str) -> None:
    """Nothing may be written at its target."""
    outside = f"{either.root}/outside"
    either.write(f"{outside}/file", "x")
    either.symlink(what, outside)
    before = picture(outside)

    answer = either.rewind("init", "--mode", "project", "--yes", ok=False)

    assert picture(outside) == before
    assert answer.code == 1 or not os.path.islink(either.path(what))


def test_a_poisoned_project_store(either: Box) -> None:
    """It came with the project: its configuration and hooks must not run."""
    either.skip = {b".agent"}
    either.rewind("init", "--mode", "project", "--yes")
    _poison(either, either.store())

    _everything(either)


def test_a_project_store_that_is_garbage(either: Box) -> None:
    either.write(".agent/rewind/HEAD", "garbage").write(".agent/rewind/config", "[core\n")
    either.mkdir(".agent/rewind/objects").mkdir(".agent/rewind/refs")
    for command in ("list", "status", "save", "doctor"):
        either.rewind(command, ok=False)


def test_a_project_configuration_cannot_run_or_write_elsewhere(either: Box) -> None:
    outside = f"{either.root}/outside"
    os.makedirs(outside)
    for name in (
        ".agent/rewind/config.json",
        ".agent/config.json",
        ".rewind/config.json",
        ".rewind.json",
    ):
        either.write(name, '{"storage": {"mode": "' + outside + '"}, "home": "' + outside + '"}')
    either.rewind("save", ok=False)

    assert os.listdir(outside) == []


def test_an_alternates_file_in_the_project_store_is_not_followed(either: Box) -> None:
    either.skip = {b".agent"}
    either.rewind("init", "--mode", "project", "--yes")
    either.write(f"{either.store()}/objects/info/alternates", "/nowhere\n../../../..\n")
    either.rewind("save", ok=False)


def test_a_symlink_that_flips_while_we_restore(either: Box) -> None:
    """A folder and a link to outside, swapping places: nothing outside is written or deleted."""
    outside = f"{either.root}/outside"
    for number in range(30):
        either.write(f"flip/{number}", f"{number}\n").write(f"{outside}/{number}", "outside\n")
    checkpoint = either.save()
    wanted = picture(outside)
    for number in range(3):
        either.remove("flip").remove("link").symlink("link", outside)
        for name in range(40):
            either.write(f"flip/{name}", f"changed {number}\n")
        with _flipping(either.path("flip"), either.path("link")):
            either.restore(checkpoint, ok=False, check_git=False)

    assert picture(outside) == wanted


@pytest.mark.parametrize("file", [".git/HEAD", ".git/refs/heads/main", "elsewhere"])
def test_an_option_of_git_in_the_place_of_a_commit(box: Box, file: str) -> None:
    """`git diff-index --output=FILE` would empty any file of the user's."""
    victim = f"{box.root}/victim"
    checkpoint = box.save()
    box.write(victim, "precious").write(file, f"--output={victim}\n")
    if file == "elsewhere":
        box.write(".git/HEAD", "ref: refs/heads/../../../elsewhere\n")

    box.save()
    box.restore(checkpoint, "--path", "a.txt")
    box.rewind("status")

    assert box.read(victim) == b"precious"


@contextlib.contextmanager
def _flipping(one: str, other: str) -> Iterator[None]:
    """Exchange two paths atomically, over and over."""
    exchange, here = 2, -100
    libc = ctypes.CDLL(None)
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            libc.renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange)

    worker = threading.Thread(target=flip)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()


def test_putting_back_what_was_staged_runs_no_filter(box: Box) -> None:
    for verb in ("clean", "smudge", "process"):
        box.git("config", f"filter.evil.{verb}", f"touch {box.canary}")
    box.write("a.txt", "staged\n")
    box.git("add", "a.txt")
    box.write(".gitattributes", "* filter=evil\n")
    checkpoint = box.save()
    box.git("read-tree", "HEAD")
    box.write("a.txt", "worked on\n")
    box.git_may_change = True

    box.restore(checkpoint, "--index")

    assert box.git("diff-index", "--cached", "--name-only", "HEAD") == b"a.txt\n"
    assert not os.path.exists(box.canary)


def test_a_nested_repository_that_claims_another_work_tree(box: Box) -> None:
    elsewhere = f"{box.root}/elsewhere"
    os.mkdir(elsewhere)
    with open(f"{elsewhere}/.gitignore", "w") as file:
        file.write("*\n")
    box.init(where=box.mkdir("nested").path("nested"))
    box.git("config", "core.worktree", elsewhere, cwd=box.path("nested"))
    box.write("nested/file", "mine\n")

    box.round_trip(lambda: box.write("nested/file", "changed\n"))
