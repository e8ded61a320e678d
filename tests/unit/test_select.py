"""Finding the checkpoint that a user means."""

import time

import pytest

from coderewind.errors import RewindError
from coderewind.model import records as ops
from coderewind.timeline.build import Timeline
from coderewind.timeline.select import select

from .ledger_text import TIME, Story, oid


def _timeline() -> Timeline:
    """Four checkpoints, a second apart."""
    story = Story().save("first", label="start").save("second", label="the middle")
    story.save("third", label="42").save("fourth", "second", label="the end")
    return story.timeline()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("1", "first"),
        ("#2", "second"),
        ("4", "fourth"),
        ("@", "fourth"),
        ("@-0", "fourth"),
        ("@-1", "third"),
        ("@~2", "second"),
        ("@-3", "first"),
        ("start", "first"),
        (" start ", "first"),
        ("the middle", "second"),
        ("MIDDLE", "second"),
        ("sta", "first"),
        ("42", "third"),
        ("third", "third"),
        (oid("third"), "third"),
        (oid("third")[:8], "third"),
    ],
)
def test_words_that_name_one(words: str, found: str) -> None:
    assert select(_timeline(), words).id == found


@pytest.mark.parametrize("words", ["5", "@-4", "@-99", "nobody", "", "  ", "@x", "@-", "deadbeef",
                                   "#", "-1", "99999999999999", "0"])
def test_words_that_name_nothing(words: str) -> None:
    with pytest.raises(RewindError, match="no checkpoint matches") as raised:
        select(_timeline(), words)
    assert raised.value.exit_code == 1


def test_nothing_to_select_from() -> None:
    with pytest.raises(RewindError, match="no checkpoints yet"):
        select(Story().timeline(), "1")


def test_an_ambiguous_label_lists_the_candidates() -> None:
    with pytest.raises(RewindError, match=r"matches 2 checkpoints: #4 \(the end\), #2 \(the mid"):
        select(_timeline(), "the")


def test_a_number_that_is_also_another_ones_label_is_ambiguous() -> None:
    story = Story().save("a", label="2").save("b")

    with pytest.raises(RewindError, match="matches 2"):
        select(story.timeline(), "2")


def test_an_exact_label_wins_over_a_part_of_others() -> None:
    story = Story().save("a", label="fix").save("b", label="fix the tests")

    assert select(story.timeline(), "fix").id == "a"


def test_a_snapshot_saved_twice_is_the_newest_of_them() -> None:
    assert select(_timeline(), oid("second")[:10]).id == "fourth"


def test_a_snapshot_prefix_of_several_is_ambiguous() -> None:
    story = Story().save("aa1").save("aa2")

    with pytest.raises(RewindError, match="matches 2"):
        select(story.timeline(), oid("aa")[:4])


def test_many_candidates_are_not_all_listed() -> None:
    story = Story()
    for number in range(30):
        story.save(f"s{number}", label=f"work {number}")

    with pytest.raises(RewindError, match="and 22 more"):
        select(story.timeline(), "work")


def test_a_blank_names_only_a_label_that_is_just_that() -> None:
    story = Story().save("a", label="two words").save("b", label=" ").save("c", label="x y")

    assert select(story.timeline(), " ").id == "b"
    for words in ("", "  ", "\n"):
        with pytest.raises(RewindError, match="no checkpoint matches"):
            select(story.timeline(), words)


def test_words_of_any_length_are_answered_in_a_line() -> None:
    with pytest.raises(RewindError) as raised:
        select(_timeline(), "x" * 9000)
    assert len(raised.value.message) < 120


def test_a_label_of_many_lines_is_listed_in_one() -> None:
    story = Story().save("a", label="x\ny\n" * 50).save("b", label="x\ny\n" * 50)

    with pytest.raises(RewindError) as raised:
        select(story.timeline(), "x")
    assert "\n" not in raised.value.message


# ---- ages


@pytest.fixture
def aged(monkeypatch: pytest.MonkeyPatch) -> Timeline:
    """Checkpoints of 1 and 3 hours, and of 2 and 30 days ago."""
    hour = 3_600_000
    story = Story()
    for name, ago in (("month", 720), ("days", 48), ("hours", 3), ("hour", 1)):
        story.save(name, time=TIME - ago * hour)
    monkeypatch.setattr(time, "time", lambda: TIME / 1000)
    return story.timeline()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("now", "hour"),
        ("0 seconds ago", "hour"),
        ("an hour ago", "hour"),
        ("59 minutes ago", "hour"),
        ("61 minutes ago", "hours"),
        ("2h ago", "hours"),
        ("3 Hours Ago", "hours"),
        ("a day ago", "days"),
        ("yesterday", "days"),
        ("1 week ago", "month"),
        ("3 w ago", "month"),
        ("29 days ago", "month"),
    ],
)
def test_an_age_names_the_state_in_force_then(aged: Timeline, words: str, found: str) -> None:
    assert select(aged, words).id == found


@pytest.mark.parametrize("words", ["31 days ago", "999999999 weeks ago"])
def test_an_age_before_the_first_checkpoint(aged: Timeline, words: str) -> None:
    with pytest.raises(RewindError, match="no checkpoint is that old; the oldest is #1"):
        select(aged, words)


def test_an_unknown_unit_is_a_usage_error(aged: Timeline) -> None:
    with pytest.raises(RewindError, match="'fortnight' is not a unit of time") as raised:
        select(aged, "2 fortnights ago")
    assert raised.value.exit_code == 2


def test_a_label_that_reads_like_an_age_or_a_position_wins(aged: Timeline) -> None:
    story = Story().save("a", label="now").save("b", label="@-1").save("c").save("d")

    assert select(story.timeline(), "now").id == "a"
    assert select(story.timeline(), "@-1").id == "b"


def test_a_label_given_later_counts() -> None:
    story = Story().save("a").save("b").note(ops.LABEL, "a", label="good")

    assert select(story.timeline(), "good").id == "a"
