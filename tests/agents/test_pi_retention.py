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
