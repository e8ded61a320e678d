"""What every agent's adapter must do, shown with the real program."""

from __future__ import annotations

import shutil

import pytest

from .fake_model import script, text
from .rooms import Room

pytestmark = pytest.mark.agent


def four_turns(room: Room) -> tuple[str, list[dict[str, bytes]]]:
    """A write, a deletion and a change by shell, an edit, only words; the last session, and the
    tree after each turn (the first: before all)."""
    turns = [
        ("P1", [room.write("f.txt", "v1\n"), text("A1")]),
        ("P2", [room.shell("rm old.txt; echo b > g.txt"), text("A2")]),
        ("P3", [room.edit("f.txt", "v1", "v3"), text("A3")]),
        ("P4", [text("A4")]),
    ]
    session, trees = "", [room.tree()]
    for words, steps in turns:
        session = room.run(f"{words} {script(*steps)}", go_on=session)
        trees.append(room.tree())
    assert sorted(trees[-1]) == ["f.txt", "g.txt"]
    return session, trees


def prefix(room: Room, turns: int) -> list[str]:
    """What the model is sent of the first turns."""
    tools = [room.write_tool, room.shell_tool, room.edit_tool]
    said = []
    for number in range(1, turns + 1):
        said.append(f"U:P{number}")
        if number <= 3:
            said += [f"A:<{tools[number - 1]}>", "U:<result>"]
        said.append(f"A:A{number}")
    return said


def test_every_end_of_a_turn_is_put_back_byte_for_byte_with_its_conversation(room: Room) -> None:
    _, trees = four_turns(room)
    ends = [cp for cp in room.checkpoints() if cp["kind"] == "after"]
    assert len(ends) == 4

    for number in (1, 2, 3, 2, 4, 1):
        cp = ends[number - 1]
        resume = room.json("restore", str(cp["number"]), "--yes")["resume"]
        assert room.tree() == trees[number], f"after turn {number}"
        assert resume["agent"] == room.agent
        assert any(resume["session"] in word for word in resume["command"])
        assert room.resume_and_ask(resume["session"]) == [*prefix(room, number), "U:PROBE"]


def test_the_old_session_stays_as_it_is(room: Room) -> None:
    session, _ = four_turns(room)
    before = room.session_file(session).read_bytes()
    end = [cp for cp in room.checkpoints() if cp["kind"] == "after"][1]

    room.json("restore", str(end["number"]), "--yes")

    assert room.session_file(session).read_bytes() == before
    assert room.resume_and_ask(session) == [*prefix(room, 4), "U:PROBE"]


def test_undo_restore_goes_back_to_files_and_session(room: Room) -> None:
    _, trees = four_turns(room)
    end = next(cp for cp in room.checkpoints() if cp["kind"] == "after")
    room.json("restore", str(end["number"]), "--yes")
    assert room.tree() == trees[1]

    back = room.json("undo-restore")

    assert room.tree() == trees[4]
    assert back["resume"]["session"] == end["session"]


def test_the_archive_serves_when_the_agent_has_deleted_its_file(room: Room) -> None:
    _, trees = four_turns(room)
    end = [cp for cp in room.checkpoints() if cp["kind"] == "after"][1]
    folder = room.session_file(end["session"]).parent
    shutil.rmtree(folder)

    resume = room.json("restore", str(end["number"]), "--yes")["resume"]

    assert room.tree() == trees[2]
    assert room.resume_and_ask(resume["session"]) == [*prefix(room, 2), "U:PROBE"]


def test_conversation_only_leaves_the_files(room: Room) -> None:
    _, trees = four_turns(room)
    end = next(cp for cp in room.checkpoints() if cp["kind"] == "after")

    done = room.json("restore", str(end["number"]), "--context-only", "--yes")

    assert room.tree() == trees[4]
    assert room.resume_and_ask(done["resume"]["session"]) == [*prefix(room, 1), "U:PROBE"]
    assert room.json("undo-restore")["resume"]["session"] == end["session"]
    assert room.tree() == trees[4]


def test_files_only_leaves_the_conversation(room: Room) -> None:
    _, trees = four_turns(room)
    end = next(cp for cp in room.checkpoints() if cp["kind"] == "after")

    done = room.json("restore", str(end["number"]), "--code-only", "--yes")

    assert room.tree() == trees[1]
    assert done["resume"] is None
