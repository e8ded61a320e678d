"""Points, branches and /rewind in the real omp, over RPC."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .fake_model import script, text
from .omp import OmpRoom
from .pi import NAV, Pi, alive
from .test_pi_failures import in_restore, states
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


def command(omp: Pi, words: str, until: str) -> str:
    """A command, until it says something: omp does not say when one is done."""
    before = len(omp.shown("notify"))

    def said() -> list[str]:
        return [line for line in omp.shown("notify")[before:] if re.match(until, line)]

    omp.prompt(words)
    omp.wait_until(lambda: bool(said()), until)
    return said()[0]


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
        browse(omp, 'before "prompt 2', "Files + conversation")
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


# ---- /tree


def go(omp: Pi, entry: str) -> str:
    """Navigate; what omp says of it."""
    return command(omp, f"/nav {entry}", "nav ")


def test_tree_restores_keeps_and_undoes(room: OmpRoom) -> None:
    with room.open(extensions=NAV) as omp:
        trees = three_prompts(room, omp)
        users, answers = omp.entries("user"), omp.entries("assistant")
        dialogs = choose(omp, "Restore files to that point")
        assert go(omp, users[1]["id"]) == "nav done"
        assert room.tree() == trees[1]
        assert omp.entries()[-1]["customType"] == "rewind-op", "the leaf is not in the file"

        dialogs += choose(omp, "Undo last file rewind")
        assert go(omp, answers[-1]["id"]) == "nav done"
        assert room.tree() == trees[3]

        (room.folder / "mine").write_text("unsaved\n")
        choose(omp, "Keep current files")
        go(omp, users[2]["id"])
        op = omp.entries()[-1]
        assert op["parentId"] == users[2]["parentId"]
        baseline = op["data"]["snapshots"][op["data"]["current"]]
        (room.folder / "mine").unlink()
        room.rewind("restore", baseline, "--yes", "--code-only")
        assert room.tree() == {**trees[3], "mine": b"unsaved\n"}
        choose(omp)
        assert go(omp, users[0]["id"]) == "nav cancelled"


def test_where_tree_went_is_where_the_session_goes_on(room: OmpRoom) -> None:
    with room.open(extensions=NAV) as omp:
        three_prompts(room, omp)
        choose(omp, "Keep current files")
        go(omp, omp.entries("user")[1]["id"])
        file = omp.state()["sessionFile"]
    with room.open("--resume", file) as omp:
        omp.prompt("PROBE")
        said = [row for row in room.model.heard() if row.startswith("U:") and "<" not in row]
        assert said == ["U:prompt 1", "U:PROBE"]


# ---- /checkpoints


def browse(omp: Pi, *wanted: str) -> None:
    choose(omp, *wanted)
    command(omp, "/checkpoints", "Rewind: (back at|undone|redone|.*verified)")


def test_rewinds_are_undone_and_redone_over_several_levels(room: OmpRoom) -> None:
    with room.open() as omp:
        trees = three_prompts(room, omp)
        for number in (3, 2, 1):
            browse(omp, f'before "prompt {number}', "Files only")
        seen = [room.tree()]
        for what in ("↩ Undo", "↩ Undo", "↩ Undo", "↪ Redo", "↪ Redo"):
            browse(omp, what)
            seen.append(room.tree())

    assert seen == [trees[0], trees[1], trees[2], trees[3], trees[2], trees[1]]


def test_a_checkpoint_by_hand_has_its_label(room: OmpRoom) -> None:
    with room.open() as omp:
        omp.prompt("hello")
        (room.folder / "mine").write_text("by hand\n")
        command(omp, "/checkpoint before lunch", "Rewind: checkpoint .*before lunch")
        (room.folder / "mine").unlink()
        browse(omp, "before lunch", "Files only")

        assert room.tree()["mine"] == b"by hand\n"


# ---- points


def tree_of(room: OmpRoom, words: str) -> dict[str, bytes]:
    """The files of the one prompt that begins with some words, restored."""
    found = [cp for cp in room.checkpoints()
             if cp["kind"] == "prompt" and cp["prompt"].startswith(words)]
    assert len(found) == 1
    room.rewind("restore", found[0]["id"], "--yes", "--code-only")
    return room.tree()


@pytest.mark.parametrize("how", ["steer", "followUp"])
def test_what_is_said_meanwhile_has_the_files_of_its_moment(room: OmpRoom, how: str) -> None:
    with room.open() as omp:
        omp.prompt("long " + script(room.shell("echo 1 > one; sleep 1"), text("end")), wait=False)
        while not (room.folder / "one").exists():
            time.sleep(0.05)
        before = len(omp.events)
        omp.prompt("SECOND " + script(room.write("two", "2\n"), text("end")), wait=False,
                   streamingBehavior=how)
        omp.wait_until(lambda: (room.folder / "two").exists(), "second prompt")
        omp.settle(before)
        omp.wait_until(lambda: "SECOND" in str(omp.entries("user")[-1]), "second prompt")

    assert set(tree_of(room, "long")) == {"old.txt"}
    assert set(tree_of(room, "SECOND")) == {"old.txt", "one"}


def test_a_compaction_is_a_point_and_points_before_it_stay(room: OmpRoom) -> None:
    room.settings({"compaction": {"enabled": True, "reserveTokens": 100, "keepRecentTokens": 1}})
    with room.open() as omp:
        trees = three_prompts(room, omp)
        users = omp.entries("user")
        assert omp.call("compact")["success"]
        compaction = omp.entries(kind="compaction")[-1]["id"]
        (room.folder / "later").write_text("x\n")
        choose(omp, "Restore all")
        omp.call("branch", entryId=users[0]["id"])
        assert room.tree() == trees[0]

    point = next(cp for cp in room.checkpoints() if cp["entry"] == compaction)
    room.rewind("restore", point["id"], "--yes", "--code-only")
    assert room.tree() == trees[3]


def test_two_in_one_repository_keep_their_points_apart(room: OmpRoom) -> None:
    with room.open() as one, room.open() as two:
        one.prompt("one " + script(room.write("a.txt", "one\n"), text("done")))
        two.prompt("two " + script(room.write("b.txt", "two\n"), text("done")))
        one.prompt("three " + script(room.write("a.txt", "three\n"), text("done")))

    assert [sorted(tree_of(room, words)) for words in ("one", "two", "three")] == [
        ["old.txt"], ["a.txt", "old.txt"], ["a.txt", "b.txt", "old.txt"]]


def test_a_resumed_session_finds_its_points(room: OmpRoom) -> None:
    with room.open() as omp:
        trees = three_prompts(room, omp)
        file, footer = omp.state()["sessionFile"], omp.footer()
    with room.open("--resume", file) as omp:
        omp.state()
        omp.wait_until(lambda: omp.footer() != "", "footer")
        assert omp.footer() == footer == "◆ 9 points / 4 snapshots"
        choose(omp, "Restore all")
        omp.call("branch", entryId=omp.entries("user")[1]["id"])
        assert room.tree() == trees[1]


# ---- odd places and names


def test_in_a_subfolder_the_whole_worktree_is_meant(room: OmpRoom) -> None:
    (room.folder / "deep" / "er").mkdir(parents=True)
    (room.folder / "deep" / "er" / "x").write_text("x\n")
    with room.open(cwd=room.folder / "deep" / "er") as omp:
        before = room.tree()
        omp.prompt("go " + script([room.write("old.txt", "gone\n"), room.shell("rm x")], text("d")))
        assert room.tree() != before
        choose(omp, "Restore all")
        omp.call("branch", entryId=omp.entries("user")[0]["id"])
        assert room.tree() == before


def test_a_folder_without_git_and_odd_names(room: OmpRoom, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    odd = [b'quo"te', b"new\nline", b"-dash", "ünï\u2028code".encode(), b"not-\xff-utf8"]
    for name in odd:
        with open(bytes(plain) + b"/" + name, "wb") as file:
            file.write(b"kept\n")
    with room.open(cwd=plain) as omp:
        omp.prompt("go " + script(room.shell("find . -type f -delete; echo new > b"), text("done")))
        assert os.listdir(plain) == ["b"]
        choose(omp, "Restore all")
        omp.call("branch", entryId=omp.entries("user")[0]["id"])

    assert sorted(os.listdir(bytes(plain))) == sorted(odd)


# ---- failures


def test_a_bridge_that_hangs_calls_a_branch_off_and_is_replaced(room: OmpRoom) -> None:
    with room.open(REWIND_BRIDGE_SILENCE_MS="1500") as omp:
        omp.prompt("one " + script(room.write("a.txt", "1\n"), text("done")))
        pid = omp.bridges()[0]
        os.kill(pid, signal.SIGSTOP)
        user = omp.entries("user")[0]["id"]
        assert omp.call("branch", entryId=user)["data"]["cancelled"] is True
        assert "did not answer" in omp.shown("notify")[-1]
        ended_within(20, pid)
        choose(omp, "Restore all")
        omp.call("branch", entryId=user)
        assert room.tree() == {"old.txt": b"v0\n"}


@pytest.mark.parametrize("whom", ["bridge", "omp"])
def test_killed_in_a_restore_no_file_is_half(room: OmpRoom, whom: str) -> None:
    with room.open() as omp:
        choose(omp, "Restore all")
        bridge, number = in_restore(room, omp, "branch")
        os.kill(bridge if whom == "bridge" else omp.process.pid, signal.SIGKILL)
        if whom == "bridge":
            assert omp.answer_to(number)["data"]["cancelled"] is True
            assert states(room) <= {b"changed\n", b"number\n"}
            browse(omp, "Finish the interrupted restore")
        ended_within(60, bridge)

    assert states(room) == {b"number\n"}
