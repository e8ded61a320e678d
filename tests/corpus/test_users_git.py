"""Nothing of ours shows in the user's git, and nothing the user does in git loses a checkpoint.

That no byte under `.git` changes is checked around every call of every test; here stand the
views a user would notice first, and the user's own housekeeping.
"""

import os
import shutil

import pytest

from .box import Box


def _use(box: Box) -> str:
    checkpoint = box.save()
    box.write("a.txt", "changed\n").write("new", "x\n")
    box.save("with words")
    box.restore(checkpoint)
    box.rewind("undo-restore")
    return checkpoint


VIEWS: dict[str, tuple[str, ...]] = {
    "log": ("log", "--all", "--oneline", "--graph"),
    "refs": ("for-each-ref",),
    "show-ref": ("show-ref", "--head"),
    "reflog": ("reflog", "--all"),
    "stash": ("stash", "list"),
    "worktrees": ("worktree", "list"),
    "branches": ("branch", "-a", "-vv"),
    "config": ("config", "--list", "--local"),
    "objects": ("count-objects", "-v"),
    "all-objects": ("cat-file", "--batch-all-objects", "--batch-check"),
    "fsck": ("fsck", "--full", "--no-dangling", "--unreachable"),
    "index": ("ls-files", "--stage", "--debug"),
    "notes": ("notes", "list"),
    "remotes": ("ls-remote", "."),
    "modules": ("submodule", "status"),
}


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_of_ours_shows_in(box: Box, view: str) -> None:
    before = box.git("--no-optional-locks", *VIEWS[view])

    _use(box)

    assert box.git("--no-optional-locks", *VIEWS[view]) == before


def test_status_shows_only_the_users_own_changes(box: Box) -> None:
    box.write("a.txt", "changed\n").write("untracked", "u\n")
    words = ("--no-optional-locks", "status", "--porcelain=v2", "--branch", "--ignored")
    before = box.git(*words)

    box.round_trip(lambda: box.write("a.txt", "again\n").remove("untracked"), undo=False)

    assert box.git(*words) == before


def test_a_mirror_push_sends_nothing_of_ours(box: Box) -> None:
    target = f"{box.root}/mirror.git"
    box.git("init", "-q", "--bare", target)
    _use(box)

    box.git("push", "-q", "--mirror", target)

    assert box.git("for-each-ref", "--format=%(refname)", cwd=target) == b"refs/heads/main\n"
    found = box.git("cat-file", "--batch-all-objects", "--batch-check", cwd=target)
    assert len(found.splitlines()) == 5  # a commit, two trees, two files


def test_a_clone_brings_nothing_of_ours(box: Box) -> None:
    _use(box)
    box.git("clone", "-q", "--mirror", box.project, f"{box.root}/clone.git", cwd=box.root)

    found = box.git("for-each-ref", "--format=%(refname)", cwd=f"{box.root}/clone.git")

    assert found == b"refs/heads/main\n"


def test_no_file_of_ours_is_left_in_the_project(either: Box) -> None:
    before = either.picture()

    checkpoint = either.save()
    either.write("a.txt", "changed")
    either.restore(checkpoint)
    either.rewind("list")
    either.rewind("status")
    either.rewind("gc")

    either.assert_like(before)


def test_no_file_of_ours_is_left_in_home(box: Box) -> None:
    before = sorted(os.listdir(box.home))

    _use(box)

    assert sorted(os.listdir(box.home)) == before


def test_the_times_of_the_users_index_and_head_stay(box: Box) -> None:
    names = (".git/index", ".git/HEAD", ".git/config", ".git/logs/HEAD")
    before = {name: os.lstat(box.path(name)).st_mtime_ns for name in names}

    _use(box)

    assert {name: os.lstat(box.path(name)).st_mtime_ns for name in names} == before


EXPIRE = ("reflog", "expire", "--expire=now", "--all")
FORGET_A = ("filter-branch", "-f", "--index-filter", "git rm -q --cached a.txt", "HEAD")
HOUSEKEEPING: dict[str, list[tuple[str, ...]]] = {
    "gc": [("gc", "-q", "--prune=now")],
    "gc-aggressive": [EXPIRE, ("gc", "-q", "--aggressive", "--prune=now")],
    "repack": [("repack", "-q", "-a", "-d", "-f")],
    "prune": [("prune", "--expire=now"), ("prune-packed",)],
    "repack-then-prune": [("repack", "-q", "-A", "-d", "-l"), ("prune", "--expire=now")],
    "amend": [("commit", "-q", "--amend", "-m", "amended"), ("gc", "-q", "--prune=now")],
    "reset": [("reset", "-q", "--hard", "HEAD~1"), EXPIRE, ("gc", "-q", "--prune=now")],
    "filter-branch": [
        FORGET_A,
        ("update-ref", "-d", "refs/original/refs/heads/main"),
        EXPIRE,
        ("gc", "-q", "--prune=now"),
    ],
    "pack-refs": [("pack-refs", "--all", "--prune")],
    "branch-gone": [
        ("checkout", "-q", "--orphan", "fresh"),
        ("branch", "-D", "main"),
        EXPIRE,
        ("gc", "-q", "--prune=now"),
    ],
}


@pytest.mark.parametrize("mode", ["global", "repo"])
@pytest.mark.parametrize("housekeeping", HOUSEKEEPING)
def test_checkpoints_survive_the_users(box: Box, housekeeping: str, mode: str) -> None:
    box.git_may_change = mode == "repo"
    box.rewind("init", "--mode", mode, "--yes")
    box.write("a.txt", "second\n").commit("second")
    box.write("a.txt", "unsaved work\n").write("untracked", "only in the checkpoint\n")
    before = box.picture()
    checkpoint = box.save()
    box.empty()
    box.git("checkout", "-q", "-f", "HEAD", "--", ".")
    box.env["FILTER_BRANCH_SQUELCH_WARNING"] = "1"
    box.env["GIT_AUTHOR_NAME"] = box.env["GIT_COMMITTER_NAME"] = "U"
    box.env["GIT_AUTHOR_EMAIL"] = box.env["GIT_COMMITTER_EMAIL"] = "u@example.org"
    for words in HOUSEKEEPING[housekeeping]:
        box.git(*words)
    shutil.rmtree(box.path(".git-rewrite"), ignore_errors=True)

    box.restore(checkpoint)

    box.assert_like(before)
    box.git("fsck", "--full", "--strict")
    box.rewind("doctor")


def test_files_that_are_only_in_the_users_history_survive_its_rewriting(box: Box) -> None:
    """What a store borrowed from the repository must not vanish with it."""
    box.write("big", os.urandom(50_000)).commit("big")
    box.git("gc", "-q")
    before = box.picture()
    checkpoint = box.save()
    box.git("rm", "-q", "big")
    box.git("commit", "-q", "--amend", "--allow-empty", "-m", "without")
    box.git("reflog", "expire", "--expire=now", "--all")
    box.git("gc", "-q", "--prune=now")

    box.restore(checkpoint)

    box.assert_like(before)


def test_checkpoints_survive_the_loss_of_the_git_dir(box: Box) -> None:
    """`rm -rf .git; git init`: another repository, or the same folder; the states are reachable."""
    box.write("a.txt", "precious\n")
    checkpoint = box.save()
    shutil.rmtree(box.path(".git"))
    box.init()
    box.write("a.txt", "changed\n")

    box.restore(checkpoint)

    assert box.read("a.txt") == b"precious\n"


def test_checkpoints_survive_the_loss_of_the_whole_project(either: Box) -> None:
    before = either.picture()
    checkpoint = either.save()
    shutil.rmtree(either.project)
    os.makedirs(either.project)
    if any(b".git" in path for path in before):
        either.init()

    either.restore(checkpoint)

    either.assert_like(before)


def test_the_user_changes_the_object_format_of_a_fresh_repository(box: Box) -> None:
    checkpoint = box.save()
    shutil.rmtree(box.path(".git"))
    box.init("--object-format=sha256").commit()
    box.write("a.txt", "changed\n")
    second = box.save()

    box.restore(second)
    assert box.read("a.txt") == b"changed\n"
    box.restore(checkpoint, ok=False)


def test_the_store_can_be_looked_into_with_plain_git(box: Box) -> None:
    box.save("a name that shows")

    log = box.git(f"--git-dir={box.store()}", "log", "--all", "--format=%B", cwd=box.root)

    assert b"a name that shows" in log
    box.git(f"--git-dir={box.store()}", "fsck", "--full", "--strict", cwd=box.root)


def test_committing_between_saves_is_nothing_special(box: Box) -> None:
    ids = []
    for number in range(4):
        box.write("a.txt", f"{number}\n")
        ids.append(box.save())
        box.commit(str(number))
    for number, checkpoint in enumerate(ids):
        box.restore(checkpoint)
        assert box.read("a.txt") == b"%d\n" % number
    assert len(box.git("log", "--oneline").splitlines()) == 5
