"""Retention from the `rewind` key of Pi's own settings, with the real Pi."""

from __future__ import annotations

import time

import pytest

from .fake_model import script, text
from .pi import PiRoom, alive

pytestmark = pytest.mark.agent


def prompts(room: PiRoom, count: int) -> None:
    with room.open() as pi:
        for number in range(count):
            pi.prompt(f"prompt {number} " + script(room.write("a.txt", f"{number}\n"),
                                                   text("done")))
        bridge = pi.bridges()[0]
    ended(bridge)


def ended(bridge: int) -> None:
    """Wait for the end of a bridge, which sweeps when Pi has gone."""
    end = time.monotonic() + 30
    while alive(bridge):
        assert time.monotonic() < end, "the bridge goes on"
        time.sleep(0.05)


def states(room: PiRoom) -> int:
    return len({cp["snapshot"] for cp in room.checkpoints()})


def test_a_sweep_at_the_end_keeps_what_the_settings_say(pi_room: PiRoom) -> None:
    pi_room.settings({"rewind": {"retention": {"maxSnapshots": 3}}})
    prompts(pi_room, 6)
    assert states(pi_room) == 3
    newest = pi_room.checkpoints()[-1]
    assert newest["current"] is True


def test_a_long_session_is_swept_while_it_goes_on(pi_room: PiRoom) -> None:
    pi_room.settings({"rewind": {"retention": {"maxSnapshots": 5}}})
    with pi_room.open() as pi:
        steps = [pi_room.write("a.txt", f"{number}\n") for number in range(55)]
        pi.prompt("many " + script(*steps, text("done")))
        answers = pi.entries("assistant")
        end = time.monotonic() + 30
        while states(pi_room) > 6:
            assert time.monotonic() < end, "no sweep"
            time.sleep(0.2)
        pruned, kept = (answers[number]["id"] for number in (20, -2))
        left = {cp["entry"] for cp in pi_room.checkpoints()}
        assert pruned not in left and kept in left


def test_a_pruned_point_is_not_offered(pi_room: PiRoom) -> None:
    pi_room.settings({"rewind": {"retention": {"maxSnapshots": 2}}})
    with pi_room.open() as pi:
        for number in range(5):
            pi.prompt(f"prompt {number} " + script(pi_room.write("a.txt", f"{number}\n"),
                                                   text("done")))
        file, users, bridge = pi.state()["sessionFile"], pi.entries("user"), pi.bridges()[0]
    ended(bridge)
    with pi_room.open("--session", file) as pi:
        cancelled = []
        for user in (users[-1], users[0]):
            cancelled.append(pi.call("fork", entryId=user["id"])["data"]["cancelled"])
        asked = [dialog["options"] for dialog in pi.dialogs if dialog["method"] == "select"]

    assert cancelled == [True, False]
    assert len(asked) == 1 and "Restore all (files + conversation)" in asked[0]


def test_without_limits_everything_is_kept(pi_room: PiRoom) -> None:
    pi_room.settings({"rewind": {"retention": {"pinLabeledEntries": True}}})
    prompts(pi_room, 4)
    assert states(pi_room) == 5


def test_a_wrong_value_is_said_and_the_session_goes_on(pi_room: PiRoom) -> None:
    pi_room.settings({"rewind": {"retention": {"maxSnapshots": "few"}}})
    with pi_room.open() as pi:
        pi.prompt("one " + script(pi_room.write("a.txt", "1\n"), text("done")))
        said = pi.shown("notify")
    assert len([words for words in said if "retention.maxSnapshots" in words]) == 1
    assert [cp["kind"] for cp in pi_room.checkpoints()][-1] == "after"


def test_silent_checkpoints_hide_the_footer(pi_room: PiRoom) -> None:
    pi_room.settings({"rewind": {"silentCheckpoints": True}})
    with pi_room.open() as pi:
        pi.prompt("one " + script(text("done")))
        assert pi.footer() == ""
