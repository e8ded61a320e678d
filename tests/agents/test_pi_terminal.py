"""Rewind in Pi as a person sees it, in a terminal."""

from __future__ import annotations

import json

import pytest

from .fake_model import script, text
from .pi import PiRoom

pytestmark = pytest.mark.agent


def test_rewind_by_keyboard(pi_room: PiRoom) -> None:
    room = pi_room
    with room.terminal() as screen:
        screen.wait(r"◆ 0 points / 0 snapshots")
        first = script(room.write("a.txt", "1\n"), text("first done"))
        screen.say("one " + first, "first done")
        screen.say("two " + script(room.write("a.txt", "2\n"), text("second done")), "second done")
        screen.wait(r"◆ 6 points / 3 snapshots")

        screen.say("/rewind", "Rewind to")
        screen.wait(r'#5 .*before "two')
        for _ in range(2):
            screen.keys("Down")
        screen.wait(r'→ +#5 .*before "two')
        screen.keys("Enter")
        preview = screen.wait("Files \\+ conversation")
        screen.keys("Enter")

        after = screen.wait(r"back at #5 \(1 change\)")
        assert "change a.txt" in preview
        assert "two SCRIPT:" in after.rpartition("back at #5")[2], "not in the editor"
        assert (room.folder / "a.txt").read_text() == "1\n"
        screen.wait(r"◆ \d points")


def test_escape_twice_opens_rewind_once_the_user_has_said_so(pi_room: PiRoom) -> None:
    room = pi_room
    with room.terminal() as screen:
        screen.wait("◆ 0 points")
        screen.say("one", "ok: one")
        screen.say("/rewind", "Open this with Esc Esc")
        screen.keys(*["Down"] * 9)
        screen.wait("→ ⚙ Open this")
        screen.keys("Enter")
        screen.wait('This sets "doubleEscapeAction": "none"')
        screen.keys("Enter")
        screen.wait("after /reload")
        settings = json.loads((room.agent_dir / "settings.json").read_text())
        assert settings["doubleEscapeAction"] == "none"
        assert settings["defaultModel"] == "fake-1"

        screen.say("/reload")
        screen.wait("Reloaded|reloaded")
        screen.wait("◆ 2 points")
        screen.keys("Escape", "Escape")
        screen.wait("Rewind to")
        screen.keys("Escape")
        screen.wait(r"(?s)\A(?!.*Rewind to)")
        screen.say("still here", "ok: still here")
