"""Damage: found before it does harm, mended as far as anything is left, and never made worse."""

import os
import random
import zlib
from collections.abc import Callable

import pytest
from corpus.box import Box
from sealed import opened

from coderewind import Rewind, RewindError
from coderewind.engine.health import Diagnosis, diagnose, repair

from .look import assert_sound, git, store_dir

COUNT = 4


def _pack_of(rewind: Rewind, number: int) -> str:
    """The path, without its ending, of the pack that a checkpoint's capture made."""
    snapshot = next(cp.snapshot for cp in rewind.timeline().checkpoints if cp.number == number)
    pack_dir = os.fsdecode(rewind.engine.store.objects.pack_dir)
    for name in os.listdir(pack_dir):
        if name.endswith(".idx") and snapshot in git(rewind, "verify-pack", "-v",
                                                     f"{pack_dir}/{name}"):
            return f"{pack_dir}/{name[:-4]}"
    raise AssertionError("no pack holds it")


def _damage(path: str, how: Callable[[bytearray], object]) -> None:
    with open(path, "rb") as file:
        data = bytearray(file.read())
    how(data)
    os.unlink(path)
    with open(path, "wb") as file:
        file.write(data)


def _mended(box: Box) -> Diagnosis:
    """What doctor finds, after it mended what it could."""
    rewind = opened(box)
    found = diagnose(rewind.engine)
    assert found.problems
    repair(rewind.engine, found)
    return diagnose(opened(box).engine)


@pytest.fixture
def rewind(box: Box) -> Rewind:
    """Four checkpoints, each with a file of its own, in a pack of its own.

    A pack takes in those that are smaller; here each is half as large as the one before it.
    """
    rewind = opened(box)
    for number in range(1, COUNT + 1):
        own = os.urandom(80_000 << (COUNT - number))
        box.write("a.txt", f"{number}\n").write(f"own{number}", own)
        rewind.checkpoint(f"state {number}")
    return rewind


def _restorable(box: Box) -> list[int]:
    """The checkpoints that can be restored now, each tried."""
    rewind = opened(box)
    good = []
    for cp in reversed(rewind.timeline().checkpoints):
        if cp.number > COUNT:
            continue
        try:
            rewind.restore(cp)
        except RewindError:
            continue
        assert box.read("a.txt") == f"{cp.number}\n".encode()
        assert all(box.exists(f"own{n}") == (n <= cp.number) for n in range(1, COUNT + 1))
        good.append(cp.number)
    return good


@pytest.mark.parametrize("how", ["lost", "emptied", "cut", "garbage"])
@pytest.mark.parametrize("number", [1, 2, COUNT])
def test_the_loss_of_one_pack_costs_no_other_checkpoint(
    box: Box, rewind: Rewind, number: int, how: str
) -> None:
    path = _pack_of(rewind, number)
    if how == "lost":
        os.unlink(path + ".pack")
        os.unlink(path + ".idx")
    else:
        _damage(path + ".pack", {
            "emptied": lambda data: data.clear(),
            "cut": lambda data: data.__delitem__(slice(60, None)),
            "garbage": lambda data: data.__setitem__(slice(0, None), os.urandom(len(data))),
        }[how])

    _mended(box)

    assert set(_restorable(box)) >= set(range(1, number)), "those before it are whole"
    again = opened(box)
    for cp in again.timeline().checkpoints:
        if cp.number <= COUNT:
            assert cp.label == f"state {cp.number}"
    box.write("a.txt", "after\n")
    after = again.checkpoint()
    box.write("a.txt", "x")
    again.restore(after)
    assert box.read("a.txt") == b"after\n"


@pytest.mark.parametrize("number", [1, 2, COUNT])
def test_after_repair_gc_and_doctor_work_again(box: Box, rewind: Rewind, number: int) -> None:
    path = _pack_of(rewind, number)
    os.unlink(path + ".pack")
    os.unlink(path + ".idx")
    lost = {cp.number for cp in rewind.timeline().checkpoints if cp.number >= number}

    found = _mended(box)

    assert set(found.damaged) <= lost
    good = _restorable(box)
    opened(box).prune()
    os.unlink(os.fsdecode(rewind.engine._private) + "/ledger.jsonl")
    assert _restorable(box) == good


def test_damage_to_any_byte_is_found_and_mended(box: Box, rewind: Rewind) -> None:
    """One flipped byte anywhere in any pack or index: doctor says so, and afterwards all is well
    but for what the byte itself destroyed."""
    chance = random.Random(5)
    pack_dir = os.fsdecode(rewind.engine.store.objects.pack_dir)
    names = sorted(name for name in os.listdir(pack_dir) if name.endswith((".pack", ".idx")))
    for name in names:
        with open(f"{pack_dir}/{name}", "rb") as file:
            good = file.read()
        at = chance.randrange(len(good))
        with open(f"{pack_dir}/{name}", "wb") as file:
            file.write(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        assert diagnose(opened(box).engine).problems, f"{name} at {at} of {len(good)}"
        with open(f"{pack_dir}/{name}", "wb") as file:
            file.write(good)
    assert diagnose(opened(box).engine).problems == []


def test_a_lost_index_is_made_again(box: Box, rewind: Rewind) -> None:
    os.unlink(_pack_of(rewind, 2) + ".idx")

    found = _mended(box)

    assert found.problems == []
    assert _restorable(box) == [1, 2, 3, 4]
    assert_sound(opened(box))


def test_what_is_still_in_the_folder_is_stored_anew(box: Box, rewind: Rewind) -> None:
    """The content of a lost pack is what the worktree still holds: then nothing is lost."""
    path = _pack_of(rewind, COUNT)
    os.unlink(path + ".pack")
    os.unlink(path + ".idx")

    checkpoint = opened(box).checkpoint()

    wanted = box.picture()
    box.empty()
    opened(box).restore(checkpoint)
    box.assert_like(wanted)


def test_the_damaged_files_are_set_aside_not_deleted(box: Box, rewind: Rewind) -> None:
    path = _pack_of(rewind, 2)
    _damage(path + ".pack", lambda data: data.__setitem__(200, data[200] ^ 1))
    with open(path + ".pack", "rb") as file:
        damaged = file.read()

    _mended(box)

    with open(f"{store_dir(rewind)}/quarantine/{os.path.basename(path)}.pack", "rb") as file:
        assert file.read() == damaged


def test_an_object_that_is_another_one_is_found_before_anything_is_touched(
    box: Box, rewind: Rewind
) -> None:
    """A loose object with good zlib and a wrong name: only the hash tells."""
    target = rewind.timeline().checkpoints[-1]
    oid = git(rewind, "rev-parse", f"{target.snapshot}:files/own1").strip()
    pack = _pack_of(rewind, 1)
    os.unlink(pack + ".pack")
    os.unlink(pack + ".idx")
    folder = f"{store_dir(rewind)}/objects/{oid[:2]}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/{oid[2:]}", "wb") as file:
        file.write(zlib.compress(b"blob 5\0wrong"))
    wanted = box.picture()

    with pytest.raises(RewindError):
        opened(box).restore(target)

    box.assert_like(wanted)


def test_a_corrupted_object_is_never_reused_for_the_same_content_after_repair(
    box: Box, rewind: Rewind
) -> None:
    path = _pack_of(rewind, 2)
    middle = os.path.getsize(path + ".pack") // 2
    _damage(path + ".pack", lambda data: data.__setitem__(middle, data[middle] ^ 1))

    _mended(box)

    wanted = box.picture()
    checkpoint = opened(box).checkpoint()
    box.empty()
    opened(box).restore(checkpoint)
    box.assert_like(wanted)


def test_a_damaged_index_does_not_spread_when_packs_are_joined(box: Box, rewind: Rewind) -> None:
    """A new pack takes in the small ones before it, and removes them."""
    chance = random.Random(3)
    pack_dir = os.fsdecode(rewind.engine.store.objects.pack_dir)
    for name in [name for name in os.listdir(pack_dir) if name.endswith(".idx")]:
        at = chance.randrange(1100, os.path.getsize(f"{pack_dir}/{name}") - 40)
        _damage(f"{pack_dir}/{name}", lambda data: data.__setitem__(at, data[at] ^ 0x10))  # noqa: B023
    for number in range(5):
        box.write("new", str(number))
        try:
            opened(box).checkpoint()
        except RewindError:
            pass  # it may be too damaged to go on; nothing may be lost for that

    _mended(box)

    assert _restorable(box) == [1, 2, 3, 4]
