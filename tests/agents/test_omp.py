"""Points, branches and /rewind in the real omp, over RPC."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .fake_model import script, text
from .omp import OmpRoom
from .pi import Pi, alive
from .test_pi_flows import Tree, choose

pytestmark = pytest.mark.agent


@pytest.fixture
def room(tmp_path: Path) -> Iterator[OmpRoom]:
    made = OmpRoom(tmp_path)
    made.rewind("init", "--yes")
    yield made
    made.close()
    assert made.log() == "", "the bridge failed"


def three_prompts(room: OmpRoom, omp: Pi) -> list[Tree]:
    """Three prompts, each with a change by two calls; the files at each, and at last."""
    trees = []
    for number in (1, 2, 3):
        trees.append(room.tree())
        steps = [room.write("a.txt", f"{number}\n"), room.shell(f"echo x > by-shell-{number}")]
        omp.prompt(f"prompt {number} " + script(steps, text("done")))
    return [*trees, room.tree()]


def points(room: OmpRoom, omp: Pi) -> list[tuple[str, str]]:
    """Each checkpoint's kind, and the role of the entry that it is bound to; oldest first."""
    roles = {e["id"]: e["message"]["role"] for e in omp.entries() if e["type"] == "message"}
    return [(cp["kind"], roles.get(cp["entry"], "")) for cp in room.checkpoints()]


def test_each_prompt_and_answer_has_its_point(room: OmpRoom) -> None:
    with room.open() as omp:
        three_prompts(room, omp)
        turn = [("prompt", "user"), ("batch", "assistant"), ("after", "assistant")]
        assert points(room, omp) == [("start", ""), ("start", ""), *turn, *turn, *turn]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_branch_restores_exactly_the_files_of_a_prompt(room: OmpRoom, number: int) -> None:
    with room.open() as omp:
        trees = three_prompts(room, omp)
        choose(omp, "Restore all")

        omp.call("branch", entryId=omp.entries("user")[number]["id"])

        assert room.tree() == trees[number]
        omp.prompt("next " + script(text("yes")))
        said = [e["message"]["content"][0]["text"].split(" SCRIPT")[0]
                for e in omp.entries("user")]
        assert said == [*[f"prompt {n + 1}" for n in range(number)], "next"]


def test_a_branch_with_conversation_only_leaves_the_files(room: OmpRoom) -> None:
    with room.open() as omp:
        trees = three_prompts(room, omp)
        file = omp.state()["sessionFile"]
        choose(omp, "Conversation only")
        omp.call("branch", entryId=omp.entries("user")[1]["id"])
        assert room.tree() == trees[3]
        assert omp.state()["sessionFile"] != file


def test_a_branch_with_code_only_keeps_all_messages(room: OmpRoom) -> None:
    with room.open() as omp:
        trees = three_prompts(room, omp)
        file, entries = omp.state()["sessionFile"], omp.entries()
        choose(omp, "Code only")

        answer = omp.call("branch", entryId=omp.entries("user")[0]["id"])

        assert answer["data"]["cancelled"] is True
        assert room.tree() == trees[0]
        assert omp.state()["sessionFile"] == file
        assert omp.entries()[: len(entries)] == entries


def test_the_undo_of_a_branch_lives_in_the_child_and_points_are_found_there(room: OmpRoom) -> None:
    with room.open() as omp:
        trees = three_prompts(room, omp)
        choose(omp, "Restore all")
        omp.call("branch", entryId=omp.entries("user")[2]["id"])
        assert room.tree() == trees[2]

        choose(omp, "Undo last file rewind")
        omp.call("branch", entryId=omp.entries("user")[0]["id"])
        assert room.tree() == trees[3]

        choose(omp, "Restore all")
        omp.call("branch", entryId=omp.entries("user")[0]["id"])
        assert room.tree() == trees[0]


def test_an_aborted_turn_leaves_a_point_at_its_end(room: OmpRoom) -> None:
    with room.open() as omp:
        words = script(room.shell("echo 1 > f; sleep 30"), text("never"))
        omp.prompt(f"long {words}", wait=False)
        while not (room.folder / "f").exists():
            time.sleep(0.05)
        before = len(omp.events)
        omp.call("abort")
        omp.settle(before)
        omp.prompt("again " + script(text("yes")))
        at_prompt = [cp for cp in room.checkpoints() if cp["kind"] == "prompt"]
    assert [cp["prompt"].split(" ")[0] for cp in at_prompt] == ["long", "again"]
    room.json("restore", str(at_prompt[1]["number"]), "--code-only", "--yes")
    assert sorted(room.tree()) == ["f", "old.txt"]
    room.json("restore", str(at_prompt[0]["number"]), "--code-only", "--yes")
    assert sorted(room.tree()) == ["old.txt"]


def ended_within(seconds: int, pid: int) -> None:
    end = time.monotonic() + seconds
    while alive(pid):
        assert time.monotonic() < end, f"process {pid} goes on"
        time.sleep(0.05)


def test_rewind_restores_files_and_conversation(room: OmpRoom) -> None:
    with room.open() as omp:
        trees = three_prompts(room, omp)
        choose(omp, 'before "prompt 2', "Files + conversation")
        omp.prompt("/checkpoints")
        omp.wait_until(lambda: any("back at" in words for words in omp.shown("notify")), "end")
        assert room.tree() == trees[1]
        omp.prompt("instead " + script(text("yes")))
        assert [words.split(" SCRIPT")[0] for words in room.model.heard() if "U:" in words
                and "<result>" not in words] == ["U:prompt 1", "U:instead"]


def test_a_new_session_gets_points_of_its_own(room: OmpRoom) -> None:
    with room.open() as omp:
        omp.prompt("one " + script(room.write("a", "1\n"), text("done")))
        omp.call("new_session")
        omp.prompt("two " + script(room.write("a", "2\n"), text("done")))
        session = omp.state()["sessionId"]
    rows = {cp["prompt"].split(" ")[0]: cp for cp in room.checkpoints() if cp["kind"] == "prompt"}
    assert rows["two"]["session"] == session != rows["one"]["session"]


def test_settings_are_read_where_omp_has_them(room: OmpRoom) -> None:
    room.settings({"rewind": {"silentCheckpoints": True, "retention": {"maxSnapshots": "few"}}})
    with room.open() as omp:
        omp.prompt("one " + script(room.write("a", "1\n"), text("done")))
        assert omp.footer() == ""
        assert [words for words in omp.shown("notify") if "retention.maxSnapshots" in words]


def test_the_bridge_ends_with_omp_and_a_dead_one_is_replaced(room: OmpRoom) -> None:
    with room.open() as omp:
        omp.prompt("one " + script(text("done")))
        first = omp.bridges()
        assert len(first) == 1
        os.kill(first[0], 9)
        omp.prompt("two " + script(room.write("a", "2\n"), text("done")))
        second = omp.bridges()
        assert len(second) == 1 and second != first
    ended_within(20, second[0])
    assert [cp["prompt"].split(" ")[0] for cp in room.checkpoints()
            if cp["kind"] == "prompt"] == ["one", "two"]


def test_python_missing_leaves_omp_at_work(room: OmpRoom) -> None:
    with room.open(REWIND_BRIDGE=json.dumps(["/no/such/python"])) as omp:
        omp.prompt("one " + script(room.write("a", "1\n"), text("done")))
    assert room.tree()["a"] == b"1\n"
