"""What a capture writes is what git would have written."""

import os
from collections.abc import Callable, Iterator

import pytest
from corpus.box import Box
from sealed import opened, sealed_box

from coderewind.store import pack as packs

from .look import assert_sound, git, tree


@pytest.fixture(params=["sha1", "sha256"])
def either(request: pytest.FixtureRequest) -> Iterator[Box]:
    """An empty repository of either object format."""
    with sealed_box() as box:
        box.init(f"--object-format={request.param}")
        yield box


def _users_tree(box: Box) -> str:
    """The tree that the user's own git makes of the files."""
    box.git("add", "-A")
    return box.git("write-tree").decode().strip()


def _everything(box: Box) -> None:
    """Files of every kind that git itself can hold."""
    box.write("plain", "text\n").write("empty", "").write("binary", bytes(range(256)))
    box.write("program", "#!/bin/sh\n", 0o755).symlink("link", "plain").symlink("loop", "loop")
    box.write("x/a", "1").write("x.b", "2").write("x-", "3").write("x0", "4").write("x/y/z", "5")
    box.write(b"\xff\xfe", "not text").write("caf\u00e9", "nfc").write("cafe\u0301", "nfd")
    box.write("new\nline", "x").write('quo"te', "x").write("-rf", "x").write(":(top)x", "x")
    box.write("n" * 255, "long").write("d/" * 50 + "deep", "deep").write("crlf", "a\r\nb\r\n")
    box.write("big", os.urandom(5 << 20)).write("zeros", bytes(1 << 20))
    for number in range(300):
        box.write(f"many/{number:03}/file", f"{number % 7}\n")


def test_a_tree_has_the_id_that_git_gives_it(either: Box) -> None:
    _everything(either)
    rewind = opened(either)

    checkpoint = rewind.checkpoint()

    assert tree(rewind, checkpoint.snapshot) == _users_tree(either)
    assert_sound(rewind)


def test_and_so_has_every_later_one(either: Box) -> None:
    rewind = opened(either)
    steps: list[Callable[[], object]] = [
        lambda: either.write("a", "1"),
        lambda: either.write("a", "2").write("sub/b", "3"),
        lambda: either.remove("a").write("a/b/c", "x"),
        lambda: either.remove("a").write("a", "file again"),
        lambda: either.write("a", "file again", 0o755),
        lambda: either.remove("sub"),
        lambda: either.symlink("sub", "a"),
        lambda: either.remove("sub").write("sub/b", "3").write("sub.x", "y"),
        lambda: either.remove("a").remove("sub").remove("sub.x"),
    ]
    for step in steps:
        step()
        checkpoint = rewind.checkpoint()
        assert tree(rewind, checkpoint.snapshot) == _users_tree(either)
    assert_sound(rewind)


@pytest.mark.parametrize("size", [0, 1, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, (16 << 20) + 1])
def test_a_file_of_any_size_has_the_id_that_git_gives_it(box: Box, size: int) -> None:
    """Around the size from which files are streamed."""
    data = (os.urandom(1 << 16) * ((size >> 16) + 1))[:size]
    box.write("big", data)
    rewind = opened(box)

    checkpoint = rewind.checkpoint()

    wanted = box.git("hash-object", "--no-filters", "big").decode().strip()
    assert git(rewind, "rev-parse", f"{checkpoint.snapshot}:files/big").strip() == wanted
    assert_sound(rewind)


def test_a_pack_that_spills_to_disk_is_sound(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "_SPILL", 1000)
    _everything(box)
    box.write("copy", box.read("big"))
    rewind = opened(box)

    checkpoint = rewind.checkpoint()

    assert_sound(rewind)
    wanted = box.picture()
    box.empty()
    rewind.restore(checkpoint)
    box.assert_like(wanted)


def test_one_capture_is_one_pack(box: Box) -> None:
    rewind = opened(box)
    pack_dir = os.fsdecode(rewind.engine.store.objects.pack_dir)
    rewind.checkpoint()
    before = set(os.listdir(pack_dir))
    box.write("a.txt", "changed").write("new/file", "x")

    rewind.checkpoint()

    new = set(os.listdir(pack_dir)) - before
    assert sorted(name.rpartition(".")[2] for name in new) == ["idx", "pack"]
    assert sorted(os.listdir(os.path.dirname(pack_dir))) == ["info", "pack"]


def test_only_what_changed_is_stored(box: Box) -> None:
    for number in range(50):
        box.write(f"sub/{number}/file", f"{number}\n")
    rewind = opened(box)
    rewind.checkpoint()
    box.write("sub/7/file", "changed")
    listing = ("cat-file", "--batch-check", "--batch-all-objects")
    before = git(rewind, *listing).splitlines()

    checkpoint = rewind.checkpoint()

    names = git(rewind, "rev-list", "--objects", checkpoint.snapshot).splitlines()
    assert len(names) > 100
    added = set(git(rewind, *listing).splitlines()) - set(before)
    kinds = [line.split()[1] for line in added]
    # The file; its three folders, the snapshot and the record; the snapshot and the record.
    assert sorted(kinds) == ["blob", "commit", "commit", *["tree"] * 5]


def test_files_and_folders_of_the_store_are_private(box: Box) -> None:
    os.umask(0)
    rewind = opened(box)
    rewind.checkpoint()
    box.write("a.txt", "changed")
    rewind.restore("1")
    rewind.prune(keep=1)

    for top, folders, files in os.walk(box.store_home):
        for name in folders:
            assert os.lstat(os.path.join(top, name)).st_mode & 0o777 == 0o700, name
        for name in files:
            st = os.lstat(os.path.join(top, name))
            assert st.st_mode & 0o077 == 0 or st.st_nlink > 1, os.path.join(top, name)


def test_names_that_git_refuses_are_in_the_tree_all_the_same(box: Box) -> None:
    rewind = opened(box)
    for name in (".GIT/config", "git~1", ".git ", "sub/.Git/x", "GIT~1/x"):
        box.write(name, "x")
    box.symlink(".gitmodules", "a.txt")
    before = box.picture()
    checkpoint = rewind.checkpoint()
    box.empty()

    rewind.restore(checkpoint)

    box.assert_like(before)
