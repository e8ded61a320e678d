"""The timeline: what a ledger's records add up to."""

import pytest

from coderewind.model import records as ops
from coderewind.timeline.build import Timeline

from .ledger_text import Story, moves, oid, undo_target


def _three() -> Story:
    return Story().save("a").save("b").save("c")


def test_an_empty_ledger() -> None:
    timeline = Story().timeline()

    assert timeline.checkpoints == []
    assert timeline.current is None
    assert undo_target(timeline, "x") == ""


def test_checkpoints_are_listed_newest_first_and_the_last_is_current() -> None:
    timeline = _three().timeline()

    assert [cp.id for cp in timeline.checkpoints] == ["c", "b", "a"]
    assert [cp.number for cp in timeline.checkpoints] == [3, 2, 1]
    assert [cp.current for cp in timeline.checkpoints] == [True, False, False]


def test_the_same_files_twice_are_two_checkpoints() -> None:
    timeline = Story().save("a", "tree").save("b", "tree").timeline()

    assert [cp.id for cp in timeline.checkpoints] == ["b", "a"]


# ---- undo and redo


def test_undo_goes_to_the_newest_earlier_state_that_differs() -> None:
    story = Story().save("a").save("b", "tree").save("c", "tree")

    assert undo_target(story.timeline(), "tree") == "a"
    assert undo_target(story.timeline(), "unsaved") == "c"


def test_undo_steps_back_again_and_again_and_redo_forward() -> None:
    story = _three().undo("u1", now="c").undo("u2", now="b")
    assert story.timeline().position.standing == "a"
    assert undo_target(story.timeline(), "a") == ""

    story.redo("r1", now="a")
    assert story.timeline().position.standing == "u2"
    assert story.timeline().position.redo == ("u1",)
    story.redo("r2", now="b")
    assert story.timeline().current is not None
    assert story.timeline().by_id["u1"].snapshot == oid("c")
    assert story.timeline().position.redo == ()


def test_undo_of_unsaved_work_can_be_redone() -> None:
    story = _three().undo("u", now="unsaved")

    timeline = story.timeline()
    assert timeline.position.standing == "c"
    assert timeline.by_id[timeline.position.redo[-1]].snapshot == oid("unsaved")


def test_redo_survives_new_work() -> None:
    story = _three().undo("u", now="c").save("d")

    assert story.timeline().position.redo == ("u",)


def test_a_restore_clears_redo_and_every_state_stays_listed() -> None:
    story = _three().undo("u", now="c").restore("r", "a", now="b", to="a")

    timeline = story.timeline()
    assert timeline.position.redo == ()
    assert {cp.id for cp in timeline.checkpoints} == {"a", "b", "c", "u", "r"}


def test_undo_after_a_restore_goes_back_to_before_it() -> None:
    story = _three().restore("r", "a", now="c", to="a")

    assert undo_target(story.timeline(), "a") == "r"


def test_undo_after_work_on_top_of_a_restore_goes_to_what_was_restored() -> None:
    story = _three().restore("r", "a", now="c", to="a").save("d")

    assert undo_target(story.timeline(), "d") == "a"


def test_history_ends_although_a_hostile_ledger_names_itself_its_parent() -> None:
    story = Story().save("a", parent="b").save("b", parent="a").save("c", parent="c")

    timeline = story.timeline()
    assert len(list(timeline.history("c"))) <= 6


# ---- undo-restore


def test_undo_restore_takes_back_the_last_move_first() -> None:
    story = _three().restore("r1", "a", now="c", to="a").restore("r2", "b", now="a", to="b")
    assert moves(story.timeline()) == ["r1", "r2"]

    story.undo_restore("x1", now="b")
    assert moves(story.timeline()) == ["r1"]
    assert story.timeline().position.standing == "a"
    story.undo_restore("x2", now="a")
    assert moves(story.timeline()) == []
    assert story.timeline().position.standing == "c"


def test_undo_restore_stands_where_the_restore_was_started() -> None:
    story = _three().restore("r", "a", now="c", to="a").undo_restore("x", now="a")

    timeline = story.timeline()
    assert timeline.position.cursor == "c"
    assert undo_target(timeline, "c") == "b"


def test_undo_restore_of_a_restore_over_unsaved_work_stands_at_the_rescue() -> None:
    story = _three().restore("r", "a", now="unsaved", to="a").undo_restore("x", now="a")

    assert story.timeline().position.standing == "r"


def test_what_undo_restore_left_can_be_redone() -> None:
    story = _three().restore("r", "a", now="c", to="a").undo_restore("x", now="a")

    timeline = story.timeline()
    assert timeline.by_id[timeline.position.redo[-1]].snapshot == oid("a")


def test_restores_that_were_taken_back_one_after_the_other_are_redone_in_turn() -> None:
    story = _three().restore("r1", "b", now="c", to="b").restore("r2", "a", now="b", to="a")
    story.undo_restore("x1", now="a").undo_restore("x2", now="b")

    assert story.timeline().position.redo == ("x1", "x2")
    story.redo("y", now="c")
    assert story.timeline().position.redo == ("x1",)


def test_undo_restore_reverses_an_undo_and_a_redo() -> None:
    story = _three().undo("u", now="c").redo("e", now="b").undo_restore("x", now="c")
    assert story.timeline().position.standing == "b"

    story.undo_restore("y", now="b")
    assert story.timeline().position.standing == "c"
    assert moves(story.timeline()) == []


def test_work_saved_between_moves_does_not_hide_them_from_undo_restore() -> None:
    story = _three().restore("r", "a", now="c", to="a").save("d")

    assert moves(story.timeline()) == ["r"]


# ---- aborts


def test_an_aborted_move_leaves_the_position_and_lists_its_rescue() -> None:
    story = _three().restore("r", "a", now="c", to="a").note(ops.ABORT, "r")

    timeline = story.timeline()
    assert timeline.position.standing == "c"
    assert moves(timeline) == []
    assert "r" in timeline.by_id


def test_an_abort_of_something_unknown_changes_nothing() -> None:
    story = _three().note(ops.ABORT, "nothing").note(ops.ABORT, "a")

    assert story.timeline().position.standing == "c"


# ---- partial restores


def test_after_a_partial_restore_the_worktree_stands_nowhere() -> None:
    story = _three().restore("r", "a", now="c", to="a", paths=["x"])

    timeline = story.timeline()
    assert timeline.current is None
    assert moves(timeline) == ["r"]
    assert undo_target(timeline, "half") != ""


# ---- names and protection


def test_labels_and_pins_of_later_records_count() -> None:
    story = _three().note(ops.LABEL, "a", label="first").note(ops.LABEL, "a", label="one")
    story.note(ops.PIN, "a").note(ops.PIN, "b").note(ops.UNPIN, "b")

    timeline = story.timeline()
    assert timeline.by_id["a"].label == "one"
    assert [cp.pinned for cp in timeline.checkpoints] == [False, False, True]


@pytest.mark.parametrize("op", [ops.LABEL, ops.PIN, ops.UNPIN, ops.BIND])
def test_a_note_on_an_unknown_checkpoint_is_passed_over(op: str) -> None:
    timeline = _three().note(op, "nothing", label="x").timeline()

    assert [cp.label for cp in timeline.checkpoints] == ["", "", ""]


def test_an_anchor_is_completed_by_what_became_known_later() -> None:
    story = Story().save("a", anchor={"agent": "claude", "session": "s"})
    story.note(ops.BIND, "a", anchor={"entry": "e", "agent": ""})

    anchor = story.timeline().by_id["a"].anchor
    assert (anchor.agent, anchor.session, anchor.entry) == ("claude", "s", "e")


def test_an_unknown_operation_of_a_newer_version_is_passed_over() -> None:
    timeline = _three().note("teleport", "a").timeline()

    assert timeline.position.standing == "c"


# ---- what prune leaves


def test_history_goes_on_where_a_link_of_it_was_pruned() -> None:
    story = _three().save("d")
    kept = [record for record in story.records if record.id not in ("b", "c")]

    assert undo_target(Timeline(kept), "d") == "a"


def test_ten_thousand_moves_fit_into_memory() -> None:
    """Each position shares what it has with the one before."""
    import tracemalloc

    story = Story().save("a").save("b")
    for number in range(10_000):
        here, there = ("a", "b") if number % 2 else ("b", "a")
        story.restore(f"r{number}", there, now=here, to=there)
    tracemalloc.start()
    try:
        timeline = story.timeline()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(moves(timeline)) == 10_000
    assert peak < 60_000_000
