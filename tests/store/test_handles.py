"""Several processes, or one that lives long, on one store: nobody trusts what was true before."""

import os

from corpus.box import Box
from sealed import opened

from .look import assert_sound


def test_a_content_that_another_process_pruned_is_stored_anew(box: Box) -> None:
    """The first handle still has the index of a pack that is gone."""
    box.write("big", "precious\n")
    one = opened(box)
    one.checkpoint()
    box.remove("big")
    for number in range(3):
        box.write("a.txt", str(number))
        one.checkpoint()
    other = opened(box)
    assert 1 in other.prune(keep=1).dropped
    other.checkpoint()
    box.write("big", "precious\n")

    checkpoint = one.checkpoint()

    assert_sound(one)
    box.remove("big")
    opened(box).restore(checkpoint)
    assert box.read("big") == b"precious\n"


def test_a_state_that_was_captured_but_not_recorded_may_be_pruned(box: Box) -> None:
    """`status` captures without recording; gc drops what no record reaches."""
    one, other = opened(box), opened(box)
    one.checkpoint()
    box.write("new", "precious\n")
    one.engine.current_snapshot()
    other.prune()

    checkpoint = one.checkpoint()

    assert_sound(other)
    box.remove("new")
    other.restore(checkpoint)
    assert box.read("new") == b"precious\n"


def test_staged_contents_that_were_pruned_are_recorded_anew(box: Box) -> None:
    box.write("staged", "precious\n").git("add", "staged")
    one = opened(box)
    for _ in range(3):
        one.checkpoint()
    other = opened(box)
    other.prune(keep=0)
    box.git("rm", "-q", "--cached", "staged")
    box.remove("staged")
    one.checkpoint()
    other.checkpoint()
    other.prune(keep=0)
    box.write("staged", "precious\n").git("add", "staged")

    checkpoint = one.checkpoint()

    assert_sound(other)
    box.git("reset", "-q")
    box.git("prune", "--expire=now")
    other.engine.restore(checkpoint, index=True)
    assert box.git("show", ":staged") == b"precious\n"


def test_the_index_that_was_staged_at_an_unrecorded_capture(box: Box) -> None:
    one = opened(box)
    one.checkpoint()
    box.write("staged", "precious\n").git("add", "staged")
    one.engine.plan(one.timeline().checkpoints[0])
    opened(box).prune(keep=0)

    one.checkpoint()

    assert_sound(one)


def test_a_reader_survives_the_compaction_of_another(box: Box) -> None:
    """A long-lived reader has packs open that are gone."""
    one, other = opened(box), opened(box)
    wanted = {}
    for number in range(5):
        box.write("a.txt", f"{number}\n" * 1000)
        wanted[one.checkpoint().id] = box.read("a.txt")
    one.plan("1")
    other.prune()

    for checkpoint, content in wanted.items():
        one.restore(checkpoint)
        assert box.read("a.txt") == content


def test_a_long_life_leaks_no_descriptor(box: Box) -> None:
    rewind = opened(box)
    rewind.checkpoint()

    def everything() -> None:
        box.write("a.txt", os.urandom(10))
        rewind.checkpoint()
        rewind.restore("1")
        rewind.undo_restore()
        rewind.undo()
        rewind.redo()
        rewind.timeline()

    everything()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        everything()

    assert len(os.listdir("/proc/self/fd")) <= before
