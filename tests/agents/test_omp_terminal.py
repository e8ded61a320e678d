"""Rewind in oh-my-pi as a person sees it, in a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from .fake_model import script, text
from .omp import OmpRoom
from .terminal import Terminal

pytestmark = pytest.mark.agent


@pytest.fixture
def room(tmp_path: Path) -> Iterator[OmpRoom]:
    made = OmpRoom(tmp_path)
    yield made
    made.close()
    assert made.log() == "", "the bridge failed"


@pytest.fixture
def screen(room: OmpRoom) -> Iterator[Terminal]:
    """omp after two prompts, each with a change."""
    with room.terminal() as screen:
        screen.wait("◆ 0 points / 0 snapshots")
        for number, word in ((1, "first"), (2, "second")):
            steps = script(room.write("a.txt", f"{number}\n"), text(f"{word} done"))
            screen.say(f"{word} {steps}", f"{word} done")
        screen.wait("◆ 6 points / 3 snapshots")
        yield screen


def test_checkpoints_by_keyboard(room: OmpRoom, screen: Terminal) -> None:
    screen.say("/checkpoints", "Rewind to")
    screen.wait(r'#5 .*before "second')
    screen.keys("Down", "Down")
    screen.wait(r'❯ +#5 .*before "second')
    screen.keys("Enter")
    preview = screen.wait("Files \\+ conversation")
    screen.keys("Enter")

    after = screen.wait(r"back at #5 \(1 change\)")
    assert "change a.txt" in preview
    assert "second SCRIPT:" in after.rpartition("back at #5")[2], "not in the editor"
    assert (room.folder / "a.txt").read_text() == "1\n"


@pytest.mark.parametrize("command", ["/rewind", "/tree"])
def test_where_omp_goes_back_itself_it_asks_for_the_files(
    room: OmpRoom, screen: Terminal, command: str
) -> None:
    screen.say(command, "enter rewind|Session Tree")
    if command == "/tree":
        screen.keys("Up", "Up")
        screen.wait("› .*user: second")
    else:
        screen.keys("Left")
        screen.wait("4/6")
    screen.keys("Enter")
    screen.wait("Restore Options")
    screen.keys("Down")
    screen.wait("❯ Restore files to that point")
    screen.keys("Enter")

    screen.wait("(Rewound|Navigated) to selected point")
    assert (room.folder / "a.txt").read_text() == "1\n"
    screen.wait("╰─ second SCRIPT:")


def test_escape_twice_opens_checkpoints_once_the_user_has_said_so(
    room: OmpRoom, screen: Terminal
) -> None:
    screen.say("/checkpoints", "Open this with Esc Esc")
    screen.keys(*["Down"] * 9)
    screen.wait("❯ ⚙ Open this")
    screen.keys("Enter")
    screen.wait('This sets "doubleEscapeAction": "none"')
    screen.keys("Enter")
    screen.wait("Esc Esc on an empty line opens /checkpoints")

    screen.keys("Escape", "Escape")
    assert "Open this" not in screen.wait("Rewind to")
    screen.keys("Escape")
    screen.wait(r"(?s)\A(?!.*Rewind to)")
    screen.say("still here", "ok: still here")
    assert "doubleEscapeAction: none" in (room.agent_dir / "config.yml").read_text()


def test_a_session_that_moves_to_another_folder_has_its_points_there(
    room: OmpRoom, screen: Terminal, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    before = len(room.checkpoints())
    screen.say(f"/move {other}", "other")
    screen.keys("Enter")
    screen.wait("> 🗑 .*other")
    screen.say("third " + script(room.shell("pwd > here.txt"), text("third done")), "third done")
    screen.wait("◆ 4 points")

    assert (other / "here.txt").read_text() == f"{other}\n"
    assert len(room.checkpoints()) == before
    there = json.loads(room.rewind("-C", str(other), "list", "--json").stdout)["checkpoints"]
    assert [cp["kind"] for cp in there] == ["after", "batch", "prompt", "start"]
