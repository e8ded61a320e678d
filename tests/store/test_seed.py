"""A new store shares the repository's packs by hard links, and depends on nothing of it."""

import os
import shutil
import subprocess

import pytest
from corpus.box import Box
from sealed import opened

from coderewind import Rewind
from coderewind.engine.health import disk_usage

from .look import assert_sound


def _packs(folder: str) -> dict[int, str]:
    return {entry.inode(): entry.name for entry in os.scandir(folder)
            if entry.name.endswith(".pack")}


def _shared(box: Box, rewind: Rewind) -> int:
    mine = _packs(os.fsdecode(rewind.engine.store.objects.pack_dir))
    return len(mine.keys() & _packs(box.path(".git/objects/pack")).keys())


@pytest.fixture
def packed(box: Box) -> Box:
    """A repository whose objects are in one pack, with a big file in its history."""
    box.write("big", os.urandom(2 << 20)).commit()
    box.git("gc", "-q")
    return box


def test_nothing_is_stored_twice(packed: Box) -> None:
    rewind = opened(packed)
    checkpoint = rewind.checkpoint()

    assert _shared(packed, rewind) == 1
    mine = [entry.stat().st_size for entry in os.scandir(rewind.engine.store.objects.pack_dir)
            if entry.stat().st_nlink == 1]
    assert sum(mine) < 10_000
    assert_sound(rewind)
    packed.remove("big")
    rewind.restore(checkpoint)


def test_the_users_gc_takes_nothing_away(packed: Box) -> None:
    rewind = opened(packed)
    checkpoint = rewind.checkpoint()
    wanted = packed.picture()
    packed.remove("big").commit()
    packed.git("commit", "-q", "--amend", "-m", "x")
    packed.git("reflog", "expire", "--expire=now", "--all")
    packed.git("checkout", "-q", "--orphan", "new")
    packed.git("commit", "-q", "-m", "all history is gone")
    packed.git("branch", "-D", "main")
    packed.git("gc", "-q", "--prune=now")

    opened(packed).restore(checkpoint)

    packed.assert_like(wanted)
    assert_sound(rewind)


def test_the_whole_repository_may_go(packed: Box) -> None:
    checkpoint = opened(packed).checkpoint()
    wanted = packed.picture()
    shutil.rmtree(packed.path(".git"))
    packed.empty()

    opened(packed).restore(checkpoint)

    packed.assert_like(wanted)


def test_our_gc_leaves_the_users_pack_as_it_is(packed: Box) -> None:
    rewind = opened(packed)
    rewind.checkpoint()
    before = packed.git_state()

    rewind.prune()

    assert packed.git_state() == before
    assert _shared(packed, rewind) == 1
    assert not [n for n in os.listdir(rewind.engine.store.objects.pack_dir) if n.endswith(b".keep")]
    assert_sound(rewind)


def test_a_pack_that_the_user_dropped_is_ours_to_compact(packed: Box) -> None:
    rewind = opened(packed)
    rewind.checkpoint()
    packed.remove("big").commit()
    for number in range(3):
        packed.write("a.txt", str(number))
        rewind.checkpoint()
    packed.git("checkout", "-q", "--orphan", "new")
    packed.git("commit", "-q", "-m", "x")
    packed.git("branch", "-D", "main")
    packed.git("reflog", "expire", "--expire=now", "--all")
    packed.git("gc", "-q", "--prune=now")
    assert disk_usage(rewind.engine.store.git_dir) > 2_000_000

    rewind.prune(keep=0)

    assert disk_usage(rewind.engine.store.git_dir) < 1_000_000
    assert_sound(rewind)


def test_damage_in_the_users_pack_is_noticed_at_the_first_capture(packed: Box) -> None:
    """A seeded store must not trust what it did not write: the file is stored anew."""
    pack_dir = packed.path(".git/objects/pack")
    name = next(n for n in os.listdir(pack_dir) if n.endswith(".pack"))
    path = f"{pack_dir}/{name}"
    os.chmod(path, 0o644)
    with open(path, "r+b") as file:
        file.seek(1 << 20)
        file.write(b"damage")
    wanted = packed.picture()

    rewind = opened(packed)
    checkpoint = rewind.checkpoint()
    packed.empty()
    rewind.restore(checkpoint)

    packed.assert_like(wanted)


def test_damage_in_the_users_pack_after_the_seeding_is_noticed(packed: Box) -> None:
    rewind = opened(packed)
    rewind.checkpoint()
    pack_dir = packed.path(".git/objects/pack")
    path = f"{pack_dir}/{next(n for n in os.listdir(pack_dir) if n.endswith('.pack'))}"
    os.chmod(path, 0o644)
    with open(path, "r+b") as file:
        file.seek(1 << 20)
        file.write(b"damage")
    wanted = packed.picture()

    checkpoint = opened(packed).checkpoint()
    packed.empty()
    opened(packed).restore(checkpoint)

    packed.assert_like(wanted)


def test_a_partial_clones_packs_are_not_taken(box: Box) -> None:
    box.write("big", os.urandom(100_000)).commit()
    box.git("config", "uploadpack.allowFilter", "true")
    subprocess.run(["git", "clone", "-q", "--filter=blob:none", f"file://{box.project}",
                    f"{box.root}/partial"], check=True)
    box.project = f"{box.root}/partial"

    rewind = opened(box)
    checkpoint = rewind.checkpoint()

    assert _shared(box, rewind) == 0
    assert_sound(rewind)
    wanted = box.picture()
    box.empty()
    rewind.restore(checkpoint)
    box.assert_like(wanted)


def test_a_pack_of_another_owner_is_not_shared(packed: Box) -> None:
    if os.geteuid():
        pytest.skip("needs root")
    for entry in os.scandir(packed.path(".git/objects/pack")):
        os.chown(entry.path, 12345, 12345)

    rewind = opened(packed)
    rewind.checkpoint()

    assert _shared(packed, rewind) == 0
    assert_sound(rewind)


def test_a_link_instead_of_a_pack_is_not_shared(packed: Box) -> None:
    pack_dir = packed.path(".git/objects/pack")
    for name in os.listdir(pack_dir):
        os.rename(f"{pack_dir}/{name}", f"{packed.root}/{name}")
        os.symlink(f"{packed.root}/{name}", f"{pack_dir}/{name}")

    rewind = opened(packed)
    rewind.checkpoint()

    assert not any(entry.is_symlink() for entry in os.scandir(rewind.engine.store.objects.pack_dir))
    assert_sound(rewind)
