"""Submodules and embedded repositories: files captured and restored, git state left alone."""

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from .box import Box, coverage
from .tree import git_picture

FILE = ["-c", "protocol.file.allow=always"]


def _library(box: Box, name: str = "library") -> str:
    folder = f"{box.root}/{name}"
    os.makedirs(folder)
    box.init(where=folder)
    box.write(f"{folder}/lib.txt", "library\n").write(f"{folder}/src/code", "code\n")
    box.commit(cwd=folder)
    return folder


def _submodule(box: Box, path: str = "module") -> None:
    box.git(*FILE, "submodule", "add", "-q", _library(box), path)
    box.commit("submodule")


def _embedded(box: Box, path: str = "embedded", *, commit: bool = True) -> None:
    box.mkdir(path).init(where=box.path(path))
    box.write(f"{path}/file", "embedded\n").write(f"{path}/deep/er", "deeper\n")
    if commit:
        box.commit(cwd=box.path(path))


def _all_of(path: str) -> Callable[[Box], None]:
    def work(box: Box) -> None:
        box.write(f"{path}/file", "changed\n").write(f"{path}/lib.txt", "changed\n")
        box.remove(f"{path}/deep").remove(f"{path}/src").write(f"{path}/new/file", "new\n")

    return work


def test_a_clean_submodule(box: Box) -> None:
    _submodule(box)

    box.round_trip(lambda: _all_of("module")(box))


def test_a_dirty_submodule(box: Box) -> None:
    _submodule(box)
    box.write("module/lib.txt", "dirty\n").write("module/untracked", "u\n").remove("module/src")

    box.round_trip(lambda: _all_of("module")(box))


def test_a_submodule_with_another_commit_checked_out(box: Box) -> None:
    _submodule(box)
    before = box.picture()
    checkpoint = box.save()
    box.write("module/lib.txt", "two\n").commit("two", cwd=box.path("module"))
    head = box.git("rev-parse", "HEAD", cwd=box.path("module"))

    box.restore(checkpoint)

    box.assert_like(before)
    assert box.git("rev-parse", "HEAD", cwd=box.path("module")) == head


@pytest.mark.parametrize("setting", ["all", "dirty", "untracked"])
def test_a_submodule_whose_changes_the_user_ignores(box: Box, setting: str) -> None:
    _submodule(box)
    box.git("config", "submodule.module.ignore", setting)
    box.git("config", "diff.ignoreSubmodules", setting)

    box.round_trip(lambda: _all_of("module")(box))


def test_a_submodule_that_is_not_initialised(box: Box) -> None:
    _submodule(box)
    box.git("submodule", "deinit", "-q", "-f", "module")

    box.round_trip(lambda: box.write("a.txt", "changed"))
    assert box.exists("module")


def test_a_submodule_whose_folder_was_deleted(box: Box) -> None:
    _submodule(box)

    box.round_trip(lambda: shutil.rmtree(box.path("module")))


def test_nested_submodules(box: Box) -> None:
    inner, outer = _library(box, "inner"), _library(box, "outer")
    box.git(*FILE, "submodule", "add", "-q", inner, "inner", cwd=outer)
    box.commit(cwd=outer)
    box.git(*FILE, "submodule", "add", "-q", outer, "outer")
    box.git(*FILE, "submodule", "update", "-q", "--init", "--recursive")
    box.commit()

    def work() -> None:
        _all_of("outer")(box)
        _all_of("outer/inner")(box)

    box.round_trip(work)


def test_a_submodule_added_later_stays_whole(box: Box) -> None:
    checkpoint = box.save()
    _submodule(box)
    box.write("a.txt", "changed")
    module, state = box.picture()[b"module/lib.txt"], git_picture(box.project)

    box.restore(checkpoint, ok=False)

    assert box.read("a.txt") == b"a\n"
    assert box.picture()[b"module/lib.txt"] == module
    assert git_picture(box.project) == state


def test_a_submodule_with_its_git_dir_inside(box: Box) -> None:
    """As old git made them, before they were absorbed into .git/modules."""
    _embedded(box, "module")
    box.write(".gitmodules", '[submodule "module"]\n\tpath = module\n\turl = ./module\n')
    box.commit("an old submodule")

    box.round_trip(lambda: _all_of("module")(box))


def test_ignore_rules_inside_a_submodule_are_its_own(box: Box) -> None:
    _submodule(box)
    box.write("module/.gitignore", "*.o\n").write("module/x.o", "object").write("x.o", "ours")
    before = box.picture()
    checkpoint = box.save()
    box.write("module/x.o", "built again").write("x.o", "changed")

    box.restore(checkpoint)

    assert box.read("module/x.o") == b"built again"
    assert box.read("x.o") == before[b"x.o"].data


@pytest.mark.parametrize("commit", [True, False], ids=["born", "unborn"])
def test_an_embedded_repository(either: Box, commit: bool) -> None:
    _embedded(either, commit=commit)

    either.round_trip(lambda: _all_of("embedded")(either))


def test_an_embedded_repository_recorded_as_a_gitlink(box: Box) -> None:
    _embedded(box)
    box.commit("a gitlink without .gitmodules")

    box.round_trip(lambda: _all_of("embedded")(box))


def test_embedded_repositories_within_each_other(either: Box) -> None:
    _embedded(either, "one")
    _embedded(either, "one/two", commit=False)
    _embedded(either, "one/two/three")

    def work() -> None:
        for path in ("one", "one/two", "one/two/three"):
            _all_of(path)(either)

    either.round_trip(work)


@pytest.mark.parametrize("commit", [True, False], ids=["born", "unborn"])
def test_an_embedded_repository_that_appears_later_stays_whole(either: Box, commit: bool) -> None:
    checkpoint = either.save()
    _embedded(either, commit=commit)
    either.write("embedded/untracked", "u").write("a.txt", "changed")
    state = git_picture(either.project)

    either.restore(checkpoint, ok=False)

    assert either.read("a.txt") == b"a\n"
    assert git_picture(either.project) == state
    assert either.read("embedded/file") == b"embedded\n"
    assert either.read("embedded/untracked") == b"u"


def test_an_embedded_repository_deleted_later_gives_back_its_files(either: Box) -> None:
    _embedded(either)
    either.write("embedded/dirty", "not committed anywhere")
    before = either.picture()
    checkpoint = either.save()
    either.remove("embedded")

    either.restore(checkpoint)

    either.assert_like(before)


def test_only_the_git_dir_of_an_embedded_repository_was_deleted(either: Box) -> None:
    _embedded(either)

    either.round_trip(lambda: either.remove("embedded/.git").write("embedded/file", "changed"))


def test_a_folder_that_becomes_an_embedded_repository(either: Box) -> None:
    """`git init` and a commit in a folder that was captured: its files still go back."""
    either.write("folder/file", "1").write("folder/other", "2")
    checkpoint = either.save()
    either.init(where=either.path("folder"))
    either.write("folder/file", "changed").commit(cwd=either.path("folder"))
    state = git_picture(either.path("folder"))

    either.restore(checkpoint, ok=False)

    assert either.read("folder/file") == b"1"
    assert git_picture(either.path("folder")) == state


def test_ignore_rules_inside_an_embedded_repository_are_its_own(either: Box) -> None:
    _embedded(either)
    either.write("embedded/.gitignore", "build/\n").write("embedded/build/out", "1")
    either.write("build/out", "ours")
    checkpoint = either.save()
    either.write("embedded/build/out", "2").remove("build")

    either.restore(checkpoint)

    assert either.read("embedded/build/out") == b"2"
    assert either.read("build/out") == b"ours" if either.exists("build") else True


def test_an_embedded_repository_inside_an_ignored_folder_is_ignored(box: Box) -> None:
    box.write(".gitignore", "vendor/\n").commit()
    _embedded(box, "vendor/embedded")
    checkpoint = box.save()
    box.write("vendor/embedded/file", "changed").write("a.txt", "changed")

    box.restore(checkpoint)

    assert box.read("vendor/embedded/file") == b"changed"
    assert box.read("a.txt") == b"a\n"


def test_an_embedded_repository_in_mid_merge_with_a_locked_index(either: Box) -> None:
    _embedded(either)
    either.write("embedded/.git/MERGE_HEAD", "0" * 40 + "\n").write("embedded/.git/index.lock", "")

    either.round_trip(lambda: _all_of("embedded")(either))


def test_an_embedded_repository_with_a_hostile_configuration(either: Box) -> None:
    _embedded(either)
    command = f"touch {either.canary}"
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge", "filter.x.process"):
        either.git("config", key, command, cwd=either.path("embedded"))
    either.write("embedded/.gitattributes", "* filter=x\n")

    either.round_trip(lambda: _all_of("embedded")(either))


def test_a_plain_folder_holding_several_repositories(plain: Box) -> None:
    for name in ("one", "two", "group/three"):
        _embedded(plain, name)
    plain.mkdir("four/.git")

    def work() -> None:
        for name in ("one", "two", "group/three"):
            _all_of(name)(plain)

    plain.round_trip(work)


def test_an_embedded_linked_worktree_keeps_its_git_file(either: Box) -> None:
    library = _library(either)
    either.watched.append(library)
    either.git("worktree", "add", "-q", either.path("linked"), "-b", "linked", cwd=library)
    before = either.read("linked/.git")

    either.round_trip(lambda: _all_of("linked")(either))

    assert either.read("linked/.git") == before


def test_a_bare_repository_inside_the_project(either: Box) -> None:
    """A folder that only looks like a git directory: plain files, or left out and said so."""
    either.git("init", "-q", "--bare", "--template=", either.path("fixture.git"))
    answer = either.rewind("save")
    before = either.picture()
    either.write("a.txt", "changed")

    either.restore(str(answer["id"]))

    either.assert_like(before)


def test_a_file_named_git_that_is_no_repository(either: Box) -> None:
    either.write("data/.git", "just a file\n").write("data/file", "1")

    either.round_trip(lambda: either.write("data/file", "2"))

    assert either.read("data/.git") == b"just a file\n"


def _elsewhere(box: Box, path: str, git_dir: str) -> None:
    """A repository at `path` whose git directory lies among the project's files."""
    box.mkdir(path)
    box.git("init", "-q", "-b", "main", "--template=", "--separate-git-dir", box.path(git_dir),
            box.path(path), cwd=box.root)
    box.write(f"{path}/file", "one\n").commit(cwd=box.path(path))


def _linked(box: Box, path: str, git_dir: str) -> None:
    """As many lay out their linked worktrees: a bare repository, and worktrees beside it."""
    _elsewhere(box, ".", git_dir)
    box.git("worktree", "add", "-q", path)
    box.write(f"{path}/file", "one\n").commit(cwd=box.path(path))


def _by_link(box: Box, path: str, git_dir: str) -> None:
    _embedded(box, path)
    box.write(f"{path}/file", "one\n").commit(cwd=box.path(path))
    os.rename(box.path(f"{path}/.git"), box.path(git_dir))
    box.symlink(f"{path}/.git", box.path(git_dir))


@pytest.mark.parametrize("make", [_elsewhere, _linked, _by_link])
@pytest.mark.parametrize(("path", "git_dir"), [
    (".", "data"), (".", "deep/data"), ("sub", "data"), ("sub", "sub/data"), ("sub", "zzz"),
])
def test_a_git_directory_of_another_name_is_not_rewound(
    bare_box: Box, make: Callable[[Box, str, str], None], path: str, git_dir: str
) -> None:
    box = bare_box
    if make is _linked:
        path = {"sub": "other"}.get(path, "linked")
    os.makedirs(os.path.dirname(box.path(git_dir)), exist_ok=True)
    make(box, path, git_dir)
    here = box.path(path)
    box.watched.append(box.path(git_dir))
    box.skip.add(os.fsencode(git_dir))
    checkpoint = box.save()
    before = box.picture()
    box.write(f"{path}/file", "two\n").commit(cwd=here)
    box.write("new", "x")
    commit = box.git("rev-parse", "HEAD", cwd=here)

    answer = box.restore(checkpoint)

    assert git_dir in {kept["path"] for kept in answer["plan"]["kept"]}
    assert box.git("rev-parse", "HEAD", cwd=here) == commit
    box.assert_like(before)


def test_a_folder_that_became_a_git_directory_is_not_restored_any_more(box: Box) -> None:
    """A repository of its own, captured as the plain files that it was, is in use now."""
    box.git("init", "-q", "--bare", "--template=", box.path("data"))
    checkpoint = box.save()
    box.mkdir("work").git("init", "-q", "--separate-git-dir", box.path("data"), box.path("work"))
    box.write("work/file", "x").commit(cwd=box.path("work")).write("a.txt", "changed")
    box.watched.append(box.path("data"))

    box.restore(checkpoint)

    assert box.read("a.txt") == b"a\n"
    assert box.git("fsck", cwd=box.path("work")) == b""
    box.rewind("undo-restore")
    assert box.read("a.txt") == b"changed"


def _bind(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)


ODD: dict[str, Callable[[str], object]] = {
    "file": lambda path: Path(path).write_text("just a file\n"),
    "leads-nowhere": lambda path: Path(path).write_text("gitdir: /nowhere\n"),
    "empty-folder": os.mkdir,
    "folder": lambda path: os.makedirs(f"{path}/refs"),
    "pipe": os.mkfifo,
    "socket": _bind,
    "link": lambda path: os.symlink("../a.txt", path),
    "dangling": lambda path: os.symlink("nowhere", path),
}


@pytest.mark.parametrize("kind", ODD)
def test_what_is_named_git_and_is_no_repository_stays(either: Box, kind: str) -> None:
    checkpoint = either.save()
    either.write("new/file", "x").write("new/deep/er", "y").write("a.txt", "changed")
    ODD[kind](either.path("new/.git"))
    after = either.picture()

    answer = either.restore(checkpoint)

    assert "new/.git" in {kept["path"] for kept in answer["plan"]["kept"]}
    assert either.exists("new/.git")
    assert not either.exists("new/file")
    either.rewind("undo-restore")
    either.assert_like(after)
    assert coverage(either.rewind("save"))[b"new/.git"] == "git-directory"


def test_a_repository_that_was_in_the_making_at_a_save(either: Box) -> None:
    """As a save meets it while `git clone` is at work: the folder does not change any more."""
    checkpoint = either.save()
    either.mkdir("new/.git/objects").mkdir("new/.git/refs").write("new/file", "x")
    either.save()
    either.write("new/.git/HEAD", "ref: refs/heads/main\n")
    after = either.picture()

    answer = either.rewind("save")
    either.restore(checkpoint)

    assert coverage(answer) == {}
    either.assert_like(after, "a repository that appeared later")
