"""Finding the worktree around a path, by looking at files only."""

import os
from pathlib import Path

import pytest

from coderewind.errors import RewindError
from coderewind.store.workspace import Workspace, find, head_of, is_git_dir


def _git_dir(path: Path, head: str = "ref: refs/heads/main\n") -> Path:
    for name in ("objects", "refs/heads"):
        (path / name).mkdir(parents=True)
    (path / "HEAD").write_text(head)
    (path / "config").write_text("[core]\n\tbare = false\n")
    return path


def _find(path: Path, *protected: Path) -> Workspace:
    return find(os.fsencode(path), lambda folder: os.fsdecode(folder) in map(str, protected))


def test_a_plain_folder_is_its_own_worktree(tmp_path: Path) -> None:
    found = _find(tmp_path)

    assert (found.root, found.git_dir, found.name) == (os.fsencode(tmp_path), None, "main")
    assert found.key == os.fsencode(tmp_path)


def test_a_folder_below_a_protected_one(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)

    assert _find(tmp_path / "a/b", tmp_path).root == os.fsencode(tmp_path)


def test_a_folder_below_a_repository(tmp_path: Path) -> None:
    _git_dir(tmp_path / ".git")
    (tmp_path / "a/b").mkdir(parents=True)

    found = _find(tmp_path / "a/b")

    assert found.root == os.fsencode(tmp_path)
    assert found.git_dir == found.common_dir == os.fsencode(tmp_path / ".git")
    assert found.key == os.fsencode(tmp_path)


def test_the_nearest_of_a_repository_and_a_protected_folder(tmp_path: Path) -> None:
    _git_dir(tmp_path / ".git")
    (tmp_path / "a/b").mkdir(parents=True)

    assert _find(tmp_path / "a/b", tmp_path / "a").root == os.fsencode(tmp_path / "a")


def test_a_linked_worktree_has_a_name_of_its_own_and_the_key_of_its_repository(
    tmp_path: Path,
) -> None:
    main = _git_dir(tmp_path / "main/.git")
    linked = main / "worktrees/on-the-side"
    linked.mkdir(parents=True)
    (linked / "HEAD").write_text("ref: refs/heads/side\n")
    (linked / "commondir").write_text("../..\n")
    (tmp_path / "side").mkdir()
    (tmp_path / "side/.git").write_text(f"gitdir: {linked}\n")

    found = _find(tmp_path / "side")

    assert found.root == os.fsencode(tmp_path / "side")
    assert found.name == "linked-on-the-side"
    assert found.key == _find(tmp_path / "main").key == os.fsencode(tmp_path / "main")


@pytest.mark.parametrize("content", ["", "gitdir: ", "gitdir: /nowhere\n", "nonsense", "gitdir:x"])
def test_a_git_file_that_leads_nowhere_makes_no_repository(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content)

    assert _find(tmp_path).git_dir is None


def test_inside_a_git_directory_is_no_worktree(tmp_path: Path) -> None:
    _git_dir(tmp_path / ".git")

    with pytest.raises(RewindError, match="inside a git directory"):
        _find(tmp_path / ".git/objects")


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(RewindError, match="there is no folder"):
        _find(tmp_path / "gone")


def test_a_fifo_in_the_place_of_a_git_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    _git_dir(tmp_path / "sub/.git")
    os.unlink(tmp_path / "sub/.git/HEAD")
    os.mkfifo(tmp_path / "sub/.git/HEAD")

    assert _find(tmp_path).git_dir is None
    assert head_of(_find(tmp_path / "sub")) == ("", "")


@pytest.mark.parametrize("missing", ["HEAD", "objects", "refs"])
def test_what_makes_a_git_directory(tmp_path: Path, missing: str) -> None:
    git_dir = _git_dir(tmp_path / "x")
    assert is_git_dir(os.fsencode(git_dir))

    os.rename(git_dir / missing, tmp_path / "away")

    assert not is_git_dir(os.fsencode(git_dir))


OID = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("head", "files", "wanted"),
    [
        ("ref: refs/heads/main\n", {}, ("", "main")),
        ("ref: refs/heads/a/b\n", {"refs/heads/a/b": OID + "\n"}, (OID, "a/b")),
        ("ref: refs/heads/main\n", {"packed-refs": f"# pack-refs\n{OID} refs/heads/main\n"},
         (OID, "main")),
        ("ref: refs/heads/main\n",
         {"packed-refs": f"{'f' * 40} refs/heads/other\n{OID} refs/heads/main\n^{OID}\n"},
         (OID, "main")),
        ("ref: refs/heads/main\n", {"refs/heads/main": "ref: refs/heads/b\n",
                                    "refs/heads/b": OID + "\n"}, (OID, "main")),
        ("ref: refs/heads/main\n", {"refs/heads/main": "ref: refs/heads/main\n"}, ("", "main")),
        (OID + "\n", {}, (OID, "")),
        ("", {}, ("", "")),
        # What is no commit, or no ref, would be taken for an option of git's, or is not ours.
        ("--output=x\n", {}, ("", "")),
        ("ref: refs/heads/main\n", {"refs/heads/main": "--output=x\n"}, ("", "main")),
        ("ref: refs/heads/main\n", {"packed-refs": "--output=x refs/heads/main\n"}, ("", "main")),
        ("ref: refs/../../secret\n", {"../secret": OID + "\n"}, ("", "")),
        ("ref: config\n", {"config": OID + "\n"}, ("", "")),
    ],
)
def test_where_head_stands(
    tmp_path: Path, head: str, files: dict[str, str], wanted: tuple[str, str]
) -> None:
    git_dir = _git_dir(tmp_path / ".git", head)
    for name, content in files.items():
        (git_dir / name).parent.mkdir(parents=True, exist_ok=True)
        (git_dir / name).write_text(content)

    assert head_of(_find(tmp_path)) == wanted
