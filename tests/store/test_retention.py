"""Retention: what goes, what stays, and that nothing else is noticed by anybody."""

import os

import pytest
from corpus.box import Box
from sealed import opened

from coderewind import Rewind
from coderewind.engine import settings

from .look import assert_sound, git, store_dir


def _saved(box: Box, count: int, rewind: Rewind | None = None) -> Rewind:
    rewind = rewind or opened(box)
    for number in range(1, count + 1):
        box.write("a.txt", f"{number}\n").write("big", os.urandom(2000))
        rewind.checkpoint(f"state {number}")
    return rewind


def _numbers(rewind: Rewind) -> list[int]:
    return [cp.number for cp in rewind.timeline().checkpoints]


def _configure(rewind: Rewind, key: str, value: object) -> None:
    settings.write(settings.files(rewind.engine.store)["project"], key, value)


def _standing(rewind: Rewind) -> tuple[object, ...]:
    """All that undo, redo and undo-restore go by."""
    timeline = rewind.timeline()
    position = timeline.position
    return (
        position.standing,
        [id for id in position.redo if id in timeline.by_id],
        [move.record.id for move in position.moves if move.record.id in timeline.by_id][-1:],
    )


# ---- what stays


@pytest.mark.parametrize(("keep", "left"), [(0, [10, 9]), (1, [10, 9]), (2, [10, 9]),
                                            (5, [10, 9, 8, 7, 6]), (99, list(range(10, 0, -1)))])
def test_the_newest_stay_and_the_state_that_undo_needs(
    box: Box, keep: int, left: list[int]
) -> None:
    rewind = _saved(box, 10)

    pruned = rewind.prune(keep=keep)

    assert _numbers(rewind) == left
    assert pruned.dropped == [n for n in range(1, 11) if n not in left]
    assert pruned.kept == len(left)
    assert_sound(rewind)
    rewind.undo()
    assert box.read("a.txt") == b"9\n"


def test_pins_stay(box: Box) -> None:
    rewind = _saved(box, 6)
    rewind.engine.pin(rewind.engine.resolve("2"))

    rewind.prune(keep=0)

    assert _numbers(rewind) == [6, 5, 2]
    rewind.restore("2")
    assert box.read("a.txt") == b"2\n"


def test_numbers_and_ids_stay_and_go_on(box: Box) -> None:
    rewind = _saved(box, 5)
    before = {cp.number: cp.id for cp in rewind.timeline().checkpoints}

    rewind.prune(keep=2)

    assert {cp.number: cp.id for cp in rewind.timeline().checkpoints} == {
        5: before[5], 4: before[4]}
    assert rewind.checkpoint().number == 6


@pytest.mark.parametrize("labels", [True, False])
def test_labelled_ones_stay_if_one_wants(box: Box, *, labels: bool) -> None:
    rewind = opened(box)
    for number in range(6):
        box.write("a.txt", str(number))
        rewind.checkpoint("named" if number == 1 else "")
    _configure(rewind, "retention.pinLabeledEntries", labels)

    rewind.prune(keep=0)

    assert (2 in _numbers(rewind)) is labels


def test_the_configured_age(box: Box) -> None:
    rewind = _saved(box, 5)
    _configure(rewind, "retention.maxAgeDays", 1)
    assert rewind.prune().dropped == []


def test_the_configured_number(box: Box) -> None:
    rewind = _saved(box, 6)
    _configure(rewind, "retention.maxSnapshots", 3)

    rewind.prune()

    assert _numbers(rewind) == [6, 5, 4]


def test_the_configured_size_drops_the_oldest_and_says_all_of_them(box: Box) -> None:
    rewind = opened(box)
    for number in range(1, 13):
        box.write("big", os.urandom(100_000)).write("a.txt", str(number))
        rewind.checkpoint()
    _configure(rewind, "retention.maxBytes", 500_000)
    _configure(rewind, "retention.maxSnapshots", 11)

    pruned = rewind.prune()

    left = _numbers(rewind)
    assert left == list(range(12, 12 - len(left), -1))
    assert 2 <= len(left) <= 5
    assert pruned.dropped == [n for n in range(1, 13) if n not in left]
    assert pruned.after <= 500_000


def test_space_is_freed(box: Box) -> None:
    rewind = opened(box)
    for _ in range(5):
        box.write("big", os.urandom(200_000))
        rewind.checkpoint()

    pruned = rewind.prune(keep=0)

    assert pruned.before - pruned.after > 500_000
    assert not os.path.exists(f"{store_dir(rewind)}/objects/info/alternates")


# ---- what nobody notices


def _undone(rewind: Rewind) -> None:
    rewind.undo()


def _undone_and_redone(rewind: Rewind) -> None:
    rewind.undo(3)
    rewind.redo()


def _restored(rewind: Rewind) -> None:
    rewind.restore("2")


def _restored_and_taken_back(rewind: Rewind) -> None:
    rewind.restore("2")
    rewind.undo_restore()


def _restored_taken_back_and_saved(rewind: Rewind) -> None:
    rewind.undo(2)
    rewind.restore("1")
    rewind.undo_restore()
    rewind.undo_restore()
    rewind.undo()


def _restored_twice_and_taken_back(rewind: Rewind) -> None:
    rewind.restore("2")
    rewind.restore("5")
    rewind.undo_restore()


@pytest.mark.parametrize("story", [_undone, _undone_and_redone, _restored,
                                   _restored_and_taken_back, _restored_taken_back_and_saved,
                                   _restored_twice_and_taken_back])
@pytest.mark.parametrize("keep", [0, 3])
def test_undo_redo_and_undo_restore_do_as_they_would_have(
    box: Box, story: object, keep: int
) -> None:
    rewind = _saved(box, 6)
    assert callable(story)
    story(rewind)
    before, files = _standing(rewind), box.picture()

    rewind.prune(keep=keep)

    box.assert_like(files)
    assert _standing(opened(box)) == before
    assert_sound(rewind)


def test_redo_after_a_prune(box: Box) -> None:
    rewind = _saved(box, 6)
    rewind.undo(3)
    assert box.read("a.txt") == b"3\n"

    rewind.prune(keep=0)

    for wanted in (b"4\n", b"5\n", b"6\n"):
        rewind.redo()
        assert box.read("a.txt") == wanted


def test_what_undo_restore_left_can_be_redone_after_a_prune(box: Box) -> None:
    rewind = _saved(box, 6)
    rewind.restore("2")
    box.write("a.txt", "work\n")
    rewind.undo_restore()
    assert box.read("a.txt") == b"6\n"

    rewind.prune(keep=0)
    rewind.redo()

    assert box.read("a.txt") == b"work\n"


def test_a_rescue_outlives_the_state_that_its_restore_went_to(box: Box) -> None:
    rewind = _saved(box, 4)
    rescue = rewind.restore("1").rescue
    assert rescue is not None
    _saved(box, 4, rewind)
    rewind.engine.pin(rescue)

    rewind.prune(keep=1)

    assert 1 not in _numbers(rewind)
    rewind.restore(rewind.timeline().by_id[rescue.id])
    assert box.read("a.txt") == b"4\n"


def test_a_save_after_a_partial_restore_counts_what_changed_since(box: Box) -> None:
    rewind = _saved(box, 4)
    rewind.restore("1", paths=("a.txt",))
    rewind.prune(keep=0)
    box.write("new", "x")

    saved = rewind.checkpoint()

    assert saved.files == 1
    assert [path for path, _ in rewind.engine.changes_of(saved)] == [b"new"]


def test_everything_listed_can_be_shown_after_a_prune(box: Box) -> None:
    rewind = _saved(box, 4)
    rewind.engine.pin(rewind.engine.resolve("1"))
    rewind.engine.label(rewind.engine.resolve("1"), "x")
    _saved(box, 3, rewind)
    rewind.engine.label(rewind.engine.resolve("1"), "y")
    _saved(box, 1, rewind)

    rewind.prune(keep=0)

    for cp in rewind.timeline().checkpoints:
        assert rewind.engine.changes_of(cp)
        rewind.engine.coverage_of(cp)


def test_the_worktree_is_captured_right_after_a_prune(box: Box) -> None:
    """The capture's state must not rely on what was dropped."""
    rewind = _saved(box, 5)
    wanted = box.picture()
    rewind.prune(keep=0)

    checkpoint = rewind.checkpoint()

    assert_sound(rewind)
    box.empty()
    opened(box).restore(checkpoint)
    box.assert_like(wanted)


def test_linked_worktrees_keep_theirs(box: Box) -> None:
    box.git("worktree", "add", "-q", f"{box.root}/side", "-b", "side")
    main = _saved(box, 4)
    side = Rewind.open(f"{box.root}/side")
    for number in range(4):
        box.write(f"{box.root}/side/a.txt", f"side {number}\n")
        side.checkpoint()

    main.prune(keep=0)

    assert _numbers(side) == [4, 3, 2, 1]
    assert_sound(main)
    side.restore("1")
    assert box.read(f"{box.root}/side/a.txt") == b"side 0\n"
    side.prune(keep=0)
    assert_sound(main)
    main.undo()
    side.close()


def test_prune_after_prune_changes_nothing(box: Box) -> None:
    rewind = _saved(box, 5)
    rewind.restore("2")
    rewind.prune(keep=2)
    before, listed = _standing(rewind), _numbers(rewind)
    count = len(git(rewind, "log", "--first-parent", "--format=%H", "main").splitlines())

    for _ in range(3):
        assert rewind.prune(keep=2).dropped == []

    assert (_standing(rewind), _numbers(rewind)) == (before, listed)
    assert len(git(rewind, "log", "--first-parent", "--format=%H", "main").splitlines()) == count


def test_packs_stay_few_without_any_gc(box: Box) -> None:
    rewind = _saved(box, 60)

    packs = [name for name in os.listdir(rewind.engine.store.objects.pack_dir)
             if name.endswith(b".pack")]

    assert len(packs) < 12
    assert_sound(rewind)
    rewind.restore("1")
    assert box.read("a.txt") == b"1\n"
