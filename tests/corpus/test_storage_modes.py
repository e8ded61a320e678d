"""The three places a store can be."""

import os
import shutil

import pytest

from .box import Box


@pytest.mark.parametrize("mode", ["global", "project", "repo"])
def test_a_round_trip_in_every_mode(box: Box, mode: str) -> None:
    box.git_may_change = mode == "repo"
    box.skip = {b".agent"} if mode == "project" else set()
    box.rewind("init", "--mode", mode, "--yes")
    box.write("untracked", "u\n", 0o600).mkdir("empty")

    box.round_trip(lambda: box.write("a.txt", "x").remove("untracked").remove("empty"))
    assert len(box.checkpoints("--all")) >= 2


@pytest.mark.parametrize("mode", ["global", "project"])
def test_a_round_trip_in_every_mode_of_a_plain_folder(plain: Box, mode: str) -> None:
    plain.skip = {b".agent"} if mode == "project" else set()
    plain.rewind("init", "--mode", mode, "--yes")

    plain.round_trip(lambda: plain.write("a.txt", "x").remove("sub"))


def test_repo_mode_in_a_plain_folder_is_refused(plain: Box) -> None:
    with plain.expect_unchanged():
        assert plain.rewind("init", "--mode", "repo", "--yes", ok=False).code in (1, 2)


def test_an_unknown_mode_is_a_usage_error(box: Box) -> None:
    assert box.rewind("init", "--mode", "cloud", "--yes", ok=False).code == 2


@pytest.mark.parametrize(
    ("mode", "where"), [("global", "home"), ("project", ".agent"), ("repo", ".git")]
)
def test_where_the_store_is(box: Box, mode: str, where: str) -> None:
    box.git_may_change = True
    box.rewind("init", "--mode", mode, "--yes")
    expected = {
        "home": box.store_home,
        ".agent": box.path(".agent/rewind"),
        ".git": box.path(".git"),
    }[where]

    assert os.path.realpath(box.store()).startswith(os.path.realpath(expected))


def test_a_project_store_ignores_itself(box: Box) -> None:
    box.rewind("init", "--mode", "project", "--yes")
    box.save()

    assert box.git("--no-optional-locks", "status", "--porcelain") == b""
    box.git("add", "-A")
    assert box.git("diff", "--cached", "--name-only") == b""


def test_a_project_store_survives_git_clean(box: Box) -> None:
    box.skip = {b".agent"}
    box.rewind("init", "--mode", "project", "--yes")
    checkpoint = box.save()
    box.write("a.txt", "x").write("junk", "x")
    box.git("clean", "-fdq")

    box.restore(checkpoint)

    assert box.read("a.txt") == b"a\n"


def test_a_project_store_is_not_captured_nor_deleted(either: Box) -> None:
    either.skip = {b".agent"}
    either.rewind("init", "--mode", "project", "--yes")
    ids = []
    for number in range(3):
        either.write("a.txt", f"{number}\n")
        ids.append(either.save())
    for number in (0, 2, 1):
        either.restore(ids[number])
        assert either.read("a.txt") == b"%d\n" % number
    either.rewind("doctor")


def test_other_files_of_an_agent_folder_are_captured(either: Box) -> None:
    either.write(".agent/notes.md", "notes\n").write(".agent/skills/x", "x\n")
    either.skip = {b".agent/rewind", b".agent/.gitignore"}
    either.rewind("init", "--mode", "project", "--yes")

    either.round_trip(lambda: either.write(".agent/notes.md", "y").remove(".agent/skills"))


def test_a_project_store_restored_when_the_agent_folder_was_new(either: Box) -> None:
    """`.agent` did not exist at the first checkpoint; the restore must not take it away."""
    either.skip = {b".agent"}
    either.rewind("init", "--mode", "project", "--yes")
    checkpoint = either.save()
    either.write("a.txt", "x")
    either.restore(checkpoint)

    assert os.path.isdir(either.path(".agent/rewind"))
    assert len(either.checkpoints()) >= 1


def test_a_global_store_survives_the_removal_of_the_project(either: Box) -> None:
    either.save()
    store = either.store()
    shutil.rmtree(either.project)

    assert os.path.isdir(store)


def test_repo_mode_survives_gc(box: Box) -> None:
    box.git_may_change = True
    box.rewind("init", "--mode", "repo", "--yes")
    box.write("a.txt", "unsaved\n").write("untracked", "u\n")
    before = box.picture()
    checkpoint = box.save()
    box.git("reflog", "expire", "--expire=now", "--all")
    box.git("gc", "-q", "--prune=now", "--aggressive")
    box.empty()

    box.restore(checkpoint)

    box.assert_like(before)
    box.git("fsck", "--full", "--strict")


def test_repo_mode_leaves_index_head_branches_stash_and_configuration(box: Box) -> None:
    box.git_may_change = True
    names = (".git/index", ".git/HEAD", ".git/config", ".git/refs/heads/main", ".git/logs/HEAD")
    before = {name: box.read(name) for name in names}
    box.rewind("init", "--mode", "repo", "--yes")

    box.round_trip(lambda: box.write("a.txt", "x").remove("sub"))

    assert {name: box.read(name) for name in names} == before
    extra = [
        line
        for line in box.git("for-each-ref", "--format=%(refname)").decode().split()
        if not line.startswith("refs/rewind/")
    ]
    assert extra == ["refs/heads/main"]


def test_init_is_idempotent(either: Box) -> None:
    either.rewind("init", "--yes")
    first = either.checkpoints()
    either.rewind("init", "--yes")

    assert either.checkpoints() == first
    assert len(first) == 1


def test_init_changes_nothing_in_the_project(either: Box) -> None:
    with either.expect_unchanged():
        either.rewind("init", "--yes")


def test_linked_worktrees_share_a_project_store_or_have_their_own(box: Box) -> None:
    box.rewind("init", "--mode", "repo", "--yes", check_git=False)
    box.git_may_change = True
    linked = f"{box.root}/linked"
    box.git("worktree", "add", "-q", linked)
    box.write(f"{linked}/a.txt", "linked\n")
    checkpoint = box.save(at=linked)
    box.write(f"{linked}/a.txt", "x").write("a.txt", "main\n")
    box.restore(checkpoint, at=linked)

    assert box.read(f"{linked}/a.txt") == b"linked\n"
    assert box.read("a.txt") == b"main\n"
