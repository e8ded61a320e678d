"""What every agent's adapter must do, shown with the real program.

One story for each agent, told once; each test then goes somewhere in it and looks. A new agent
joins by a room in rooms.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOMS
from .fake_model import script, text
from .rooms import Room

pytestmark = pytest.mark.agent

Tree = dict[str, bytes]
AGENTS = ("claude", "droid", "pi", "omp")
INSIDE = ("tool", "batch")  # kinds of points inside a turn


class Story:
    """A write; a deletion and a change by shell; an edit and then a shell; only words."""

    def __init__(self, room: Room) -> None:
        self.room = room
        turns = [
            [room.write("f.txt", "v1\n"), text("A1")],
            [room.shell("rm old.txt; echo b > g.txt"), text("A2")],
            [room.edit("f.txt", "v1", "v3"), room.shell("mkdir d && mv g.txt d/h.txt"), text("A3")],
            [text("A4")],
        ]
        self.tools = [[room.write_tool], [room.shell_tool], [room.edit_tool, room.shell_tool], []]
        self.trees: list[Tree] = [room.tree()]
        # Every checkpoint, with the turn it belongs to; oldest first.
        self.points: list[tuple[dict[str, Any], int]] = []
        self.session = ""
        for number, steps in enumerate(turns, 1):
            self.session = room.run(f"P{number} {script(*steps)}", go_on=self.session)
            self.trees.append(room.tree())
            known = len(self.points)
            self.points += [(cp, number) for cp in room.checkpoints()[known:]]
        assert sorted(self.trees[-1]) == ["d/h.txt", "f.txt"]

    @property
    def ends(self) -> list[dict[str, Any]]:
        """The ends of the turns."""
        return [cp for cp, _ in self.points if cp["kind"] == "after"]

    @property
    def inside(self) -> list[dict[str, Any]]:
        """The points between the two tools of the third turn."""
        return [cp for cp, turn in self.points
                if turn == 3 and cp["kind"] in INSIDE and "d/h.txt" not in cp["label"]]

    def tree_at(self, cp: dict[str, Any], turn: int) -> Tree:
        if cp["kind"] == "after":
            return self.trees[turn]
        if turn == 3 and cp in self.inside:
            return {**self.trees[2], "f.txt": b"v3\n"}
        return self.trees[turn if cp["kind"] in INSIDE else turn - 1]

    def said(self, turns: int) -> list[str]:
        """What the model is sent of the first turns."""
        said = []
        for number in range(1, turns + 1):
            said.append(f"U:P{number}")
            for tool in self.tools[number - 1]:
                said += [f"A:<{tool}>", "U:<result>"]
            said.append(f"A:A{number}")
        return said

    def go_to(self, cp: dict[str, Any], *more: str) -> Any:
        return self.room.json("restore", str(cp["number"]), "--yes", *more)


@pytest.fixture(scope="module", params=AGENTS)
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
          ) -> Iterator[Story]:
    room = ROOMS[request.param](tmp_path_factory.mktemp(request.param))
    room.connect()
    yield Story(room)
    room.close()
    assert room.log() == "", "a hook failed"


def test_every_point_is_put_back_byte_for_byte(story: Story) -> None:
    kinds = [cp["kind"] for cp, _ in story.points]
    assert kinds.count("after") == 4
    assert len(story.inside) == 1

    for cp, turn in [*story.points, *reversed(story.points)]:
        story.go_to(cp, "--code-only")
        assert story.room.tree() == story.tree_at(cp, turn), cp


def test_the_conversation_goes_on_from_the_end_of_a_turn(story: Story) -> None:
    for number in (1, 3):
        resume = story.go_to(story.ends[number - 1])["resume"]
        assert story.room.tree() == story.trees[number]
        assert resume["agent"] == story.room.agent
        assert resume["session"] in " ".join(resume["command"])
        assert story.room.resume_and_ask(resume["session"]) == [*story.said(number), "U:PROBE"]


def test_a_point_inside_a_turn_goes_back_to_the_turns_prompt_and_says_so(story: Story) -> None:
    if story.room.agent in ("pi", "omp"):
        pytest.skip("its conversations can be cut inside a turn")
    inside = story.inside[0]
    shown = story.room.rewind("restore", str(inside["number"]), "--dry-run").stdout
    assert "inside a turn: back to just before the turn's prompt" in shown

    resume = story.go_to(inside)["resume"]

    assert story.room.tree() == {**story.trees[2], "f.txt": b"v3\n"}
    assert resume["prompt"].startswith("P3 ")
    assert story.room.resume_and_ask(resume["session"]) == [*story.said(2), "U:PROBE"]


def test_the_old_session_stays_as_it_is(story: Story) -> None:
    path = story.room.session_file(story.session)
    before = path.read_bytes()

    story.go_to(story.ends[1])

    assert path.read_bytes() == before


def test_undo_restore_goes_back_to_files_and_session(story: Story) -> None:
    before = story.room.tree()
    end = next(cp for cp in story.ends if story.trees[story.ends.index(cp) + 1] != before)
    story.go_to(end)
    assert story.room.tree() != before

    back = story.room.json("undo-restore")

    assert story.room.tree() == before
    assert back["resume"]["session"] == end["session"]


def test_conversation_only_leaves_the_files(story: Story) -> None:
    before = story.room.tree()
    end = story.ends[0]

    done = story.go_to(end, "--context-only")

    assert story.room.tree() == before
    assert done["resume"]["session"] not in ("", end["session"])
    assert story.room.json("undo-restore")["resume"]["session"] == end["session"]
    assert story.room.tree() == before


def test_files_only_leaves_the_conversation(story: Story) -> None:
    assert story.go_to(story.ends[0], "--code-only")["resume"] is None
    assert story.room.tree() == story.trees[1]


def test_the_archive_serves_when_the_agent_has_deleted_its_file(
    story: Story, tmp_path: Path
) -> None:
    end = story.ends[1]
    folder = story.room.session_file(end["session"]).parent
    folder.rename(tmp_path / "kept")

    resume = story.go_to(end)["resume"]

    assert story.room.tree() == story.trees[2]
    assert story.room.resume_and_ask(resume["session"]) == [*story.said(2), "U:PROBE"]


def test_the_agent_is_let_go_without_a_trace(story: Story) -> None:
    known = len(story.room.checkpoints())
    story.room.rewind("config", "--unregister-hooks", "--agents", story.room.agent)
    story.room.run("P9 " + script(story.room.write("late.txt", "x\n"), text("A9")))

    assert len(story.room.checkpoints()) == known
