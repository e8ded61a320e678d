"""Points in the real Pi: at which entries, and with which files."""

from __future__ import annotations

import pytest

from .fake_model import script, text
from .pi import PiRoom

pytestmark = pytest.mark.agent


def test_prompts_and_turn_ends_are_points(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open() as pi:
        pi.prompt("one " + script(room.write("a.txt", "1\n"), text("done")))
        users, answers = pi.entries("user"), pi.entries("assistant")
        footer = pi.footer()

    rows = {cp["entry"]: cp for cp in room.checkpoints() if cp["entry"]}
    assert set(rows) == {entry["id"] for entry in [*users, *answers]}
    assert footer == "◆ 3 points / 2 snapshots"
