"""A process costs as much as looking at a thousand files: git is asked only when it must be."""

import os

from .conftest import Watched


def save(box: Watched) -> None:
    box.rewind("save", check_git=False)


def test_an_unchanged_folder_is_saved_without_git(watched: Watched) -> None:
    save(watched)

    assert watched.calls() == []


def test_a_changed_file_is_saved_without_git(watched: Watched) -> None:
    watched.write("folder1/file1", "changed\n")

    save(watched)

    assert watched.calls() == []


def test_new_files_cost_one_question_about_ignored_names(watched: Watched) -> None:
    watched.write("folder1/new", "1").write("new/deep/er", "2").write("folder2/new", "3")

    save(watched)

    assert len(watched.calls()) == 1


def test_packs_that_git_only_touched_are_not_read_object_by_object(watched: Watched) -> None:
    """git touches a pack when it is about to write what is in there; our store shares packs."""
    packs = f"{watched.project}/.git/objects/pack"
    before = {name: os.stat(f"{packs}/{name}").st_mtime_ns for name in os.listdir(packs)}
    watched.env["GIT_INDEX_FILE"] = f"{watched.root}/index"
    watched.git("add", "-A")
    del watched.env["GIT_INDEX_FILE"]
    after = {name: os.stat(f"{packs}/{name}").st_mtime_ns for name in os.listdir(packs)}
    assert before != after, "git did not touch the pack: this test has lost its ground"
    watched.calls()

    save(watched)

    assert watched.calls() == []
