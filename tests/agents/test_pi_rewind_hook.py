"""A session that pi-rewind-hook wrote, gone on with in the real Pi."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .fake_model import script, text
from .pi import NAV, Pi, PiRoom
from .test_pi_flows import Tree, choose, go

pytestmark = pytest.mark.agent


class Hooked:
    """Two prompts in Pi without Rewind, with the commits and entries that pi-rewind-hook 2 makes:
    a snapshot before each prompt and one after, kept alive by a chain under one ref."""

    def __init__(self, room: PiRoom) -> None:
        self.room = room
        self.file, self.keep = "", ""
        self.trees: list[Tree] = []
        self.users: list[str] = []
        for number in (1, 2):
            self.turn(number)
        self.trees.append(room.tree())

    def turn(self, number: int) -> None:
        room, resume = self.room, ["--session", self.file] if self.users else []
        self.trees.append(room.tree())
        before = self.snapshot()
        with room.open(*resume, extensions=()) as pi:
            steps = [room.write("a.txt", f"{number}\n"), room.shell(f"echo x > n{number}")]
            pi.prompt(f"old {number} " + script(steps, text("done")))
            self.file = str(pi.state()["sessionFile"])
            user, answer = pi.entries("user")[-1]["id"], pi.entries("assistant")[-1]["id"]
            leaf = pi.leaf()
        data = {"v": 2, "snapshots": [before, self.snapshot()],
                "bindings": [[user, 0], [answer, 1]]}
        self.users.append(user)
        row = {"type": "custom", "id": f"aaaa000{number}", "parentId": leaf, "data": data,
               "timestamp": "2026-04-01T00:00:00.000Z", "customType": "rewind-turn"}
        with open(self.file, "a") as file:
            file.write(json.dumps(row) + "\n")

    def snapshot(self) -> str:
        git = self.room.git
        git("add", "-A")
        commit = git("commit-tree", git("write-tree").strip(), "-m", "pi rewind snapshot").strip()
        git("reset", "-q")
        empty = git("hash-object", "-t", "tree", "-w", "/dev/null").strip()
        parents = ["-p", self.keep] if self.keep else []
        self.keep = git("commit-tree", empty, *parents, "-p", commit,
                        "-m", "pi rewind store").strip()
        git("update-ref", "refs/pi-rewind/store", self.keep)
        return commit


@pytest.fixture
def hooked(pi_room: PiRoom) -> Hooked:
    return Hooked(pi_room)


def resumed(hooked: Hooked) -> Pi:
    return hooked.room.open("--session", hooked.file, extensions=NAV)


@pytest.mark.parametrize("number", [0, 1])
def test_fork_restores_the_files_of_its_points(hooked: Hooked, number: int) -> None:
    with resumed(hooked) as pi:
        choose(pi, "Restore all")
        pi.call("fork", entryId=hooked.users[number])

        assert hooked.room.tree() == hooked.trees[number]
        choose(pi, "Undo last file rewind")
        pi.prompt("go on")
        pi.call("fork", entryId=pi.entries("user")[-1]["id"])
        assert hooked.room.tree() == hooked.trees[2]


def test_tree_restores_the_files_of_its_points(hooked: Hooked) -> None:
    with resumed(hooked) as pi:
        choose(pi, "Restore files to that point")
        assert go(pi, hooked.users[1]) == "nav done"
    assert hooked.room.tree() == hooked.trees[1]


def test_rewind_lists_its_points_among_ours(hooked: Hooked) -> None:
    room = hooked.room
    with resumed(hooked) as pi:
        pi.prompt("new " + script(room.write("a.txt", "3\n"), text("done")))
        dialogs = choose(pi, "prompt “old 2", "Files + conversation")
        pi.prompt("/rewind")

        assert room.tree() == hooked.trees[1]
        assert pi.shown("set_editor_text")[-1].startswith("old 2 ")
        rows = [option for option in dialogs[0]["options"] if "(pi-rewind-hook)" in option]
        assert len(rows) == 4
        pi.prompt("and now")
        assert room.model.heard()[-1] == "U:and now"
        choose(pi, 'before "new', "Files only")
        pi.prompt("/rewind")
        assert room.tree() == hooked.trees[2]


def test_its_points_are_offered_without_pi(hooked: Hooked) -> None:
    room = hooked.room
    room.rewind("init", "--yes")
    point = next(row for row in room.json("list")["legacy"] if row["entry"] == hooked.users[1])
    resume = room.json("restore", point["commit"][:10], "--yes")["resume"]

    assert room.tree() == hooked.trees[1]
    assert resume["prompt"].startswith("old 2 ")
    assert Path(resume["command"][2]).exists()
    assert room.resume_and_ask(resume["session"])[-2:] == ["A:done", "U:PROBE"]
