"""Points in the real Pi: at which entries, and with which files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .fake_model import script, text
from .pi import NAV, Connected, Pi, PiRoom

pytestmark = pytest.mark.agent


def points(room: PiRoom) -> dict[str, dict[str, Any]]:
    """The checkpoints that are bound to an entry, by it; those of a start only if alone."""
    rows = [cp for cp in room.checkpoints() if cp["entry"] and cp["kind"] != "save"]
    return {cp["entry"]: cp for cp in sorted(rows, key=lambda cp: cp["kind"] != "start")}


def files_of(room: PiRoom, entry: str) -> dict[str, bytes]:
    """The files that the point of an entry holds, restored."""
    room.rewind("restore", points(room)[entry]["id"], "--yes", "--code-only")
    return room.tree()


def bound(pi: Pi) -> dict[str, str]:
    """What the session's own entries say: entry -> snapshot."""
    found = {}
    for entry in [*pi.entries(kind="rewind-turn"), *pi.entries(kind="rewind-op")]:
        data = entry["data"]
        assert data["v"] == 2
        for name, index in data.get("bindings", []):
            found[name] = data["snapshots"][index]
    return found


def test_prompts_and_turn_ends_are_points(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open() as pi:
        pi.prompt("one " + script(room.write("a.txt", "1\n"), text("done")))
        users, answers = pi.entries("user"), pi.entries("assistant")
        in_session = bound(pi)

    rows = points(room)
    assert set(rows) == {entry["id"] for entry in [*users, *answers]} == set(in_session)
    assert {entry: cp["snapshot"] for entry, cp in rows.items()} == in_session
    assert files_of(room, users[0]["id"]) == {"old.txt": b"v0\n"}
    assert files_of(room, answers[0]["id"]) == {"old.txt": b"v0\n", "a.txt": b"1\n"}


def test_a_point_is_called_by_its_prompt_and_tools(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open() as pi:
        pi.prompt("fix it " + script(
            [room.write("sub/a.txt", "1\n"), room.shell("false")],
            [room.edit("old.txt", "v0", "v1"), room.edit("old.txt", "v9", "v2")], text("done")))
        answers = pi.entries("assistant")

    labels = [points(room)[entry["id"]]["label"].partition(" → ")[2] for entry in answers]
    assert labels == ["write a.txt, bash false (failed)", "edit old.txt, edit old.txt (failed)", ""]


def test_the_same_files_are_one_snapshot(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        for words in ("one", "two", "three"):
            pi.prompt(words)

        assert pi.footer() == "◆ 6 points / 1 snapshots"
    assert len({cp["snapshot"] for cp in pi_room.checkpoints()}) == 1


def test_a_session_starts_with_a_point(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        pi.state()
        pi.wait_until(lambda: pi.footer() != "", "footer")

    assert [cp["kind"] for cp in pi_room.checkpoints()] == ["start"]


def test_a_resumed_session_has_a_point_where_it_goes_on(pi_room: PiRoom) -> None:
    with pi_room.open(extensions=()) as pi:
        pi.prompt("without Rewind")
        file, answer = pi.state()["sessionFile"], pi.entries("assistant")[0]["id"]
    with pi_room.open("--session", file) as pi:
        pi.wait_until(lambda: pi.footer() != "", "footer")

        assert pi.footer() == "◆ 1 points / 1 snapshots"
    assert set(points(pi_room)) == {answer}


def test_a_resumed_session_keeps_the_points_that_it_had(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        pi.prompt("one " + script(pi_room.write("a.txt", "1\n"), text("done")))
        file, before = pi.state()["sessionFile"], pi.footer()
    (pi_room.folder / "a.txt").write_text("by hand\n")
    with pi_room.open("--session", file) as pi:
        pi.wait_until(lambda: pi.footer() != "", "footer")

        assert pi.footer() == before == "◆ 3 points / 2 snapshots"
    assert pi_room.checkpoints()[-1]["kind"] == "start"


def test_a_new_session_over_rpc_is_announced_twice_and_begins_once(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        pi.prompt("one")
        pi.call("new_session")
        pi.prompt("two")
        assert len(pi.bridges()) == 1

    assert [cp["kind"] for cp in pi_room.checkpoints()].count("start") == 2


def test_a_steering_message_has_the_files_of_its_moment(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open() as pi:
        pi.prompt("long " + script(room.shell("echo 1 > one; sleep 1"), text("end")), wait=False)
        pi.wait_for("tool_execution_start")
        pi.prompt("SECOND " + script(room.write("two", "2\n"), text("end")), wait=False,
                  streamingBehavior="steer")
        pi.settle()
        users = pi.entries("user")
        assert set(bound(pi)) == {e["id"] for e in [*users, *pi.entries("assistant")]}

    assert set(room.tree()) == {"old.txt", "one", "two"}
    assert set(files_of(room, users[0]["id"])) == {"old.txt"}
    assert set(files_of(room, users[1]["id"])) == {"old.txt", "one"}


def test_a_follow_up_has_the_files_of_its_moment(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open() as pi:
        pi.prompt("long " + script(room.shell("sleep 1; echo 1 > one"), text("end")), wait=False)
        pi.wait_for("tool_execution_start")
        pi.prompt("SECOND", wait=False, streamingBehavior="followUp")
        pi.settle()
        users = pi.entries("user")

    assert set(files_of(room, users[1]["id"])) == {"old.txt", "one"}
    assert points(room)[users[1]["id"]]["prompt"] == "SECOND"


def test_a_prompt_that_is_tried_again_keeps_its_files(pi_room: PiRoom) -> None:
    room = pi_room
    room.settings({"retry": {"enabled": True, "maxRetries": 3, "baseDelayMs": 50}})
    with room.open() as pi:
        pi.prompt("go " + script(room.write("a.txt", "1\n"), {"text": "after", "fail": 1}))
        users, answers = pi.entries("user"), pi.entries("assistant")

    assert files_of(room, users[0]["id"]) == {"old.txt": b"v0\n"}
    assert points(room)[answers[-1]["id"]]["snapshot"] == points(room)[answers[0]["id"]]["snapshot"]


def test_an_aborted_turn_has_the_files_that_it_left(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open() as pi:
        pi.prompt("go " + script(room.shell("echo half > part; sleep 30"), text("x")), wait=False)
        pi.wait_for("tool_execution_start")
        while not (room.folder / "part").exists():
            pi.state()
        pi.call("abort")
        pi.settle()
        answers = pi.entries("assistant")
        pi.prompt("next")

    assert files_of(room, answers[0]["id"])["part"] == b"half\n"


def test_a_prompt_that_was_aborted_at_once_has_its_point(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        pi.prompt("go " + script({"text": "late", "sleep": 5}), wait=False)
        pi.wait_for("message_start")
        pi.call("abort")
        pi.settle()
        users = pi.entries("user")

    assert set(points(pi_room)) >= {users[0]["id"]}


def test_what_the_user_does_in_a_shell_belongs_to_the_next_point(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        pi.prompt("one")
        pi.call("bash", command="echo mine > by-user")
        pi.prompt("two")
        users, answers = pi.entries("user"), pi.entries("assistant")
        bash = [e["id"] for e in pi.entries("bashExecution")]

    assert set(points(pi_room)) == {e["id"] for e in [*users, *answers]}
    assert bash and set(files_of(pi_room, users[1]["id"])) == {"old.txt", "by-user"}
    assert set(files_of(pi_room, answers[0]["id"])) == {"old.txt"}


def test_a_compaction_is_a_point_and_points_before_it_stay(pi_room: PiRoom) -> None:
    room = pi_room
    room.settings({"compaction": {"enabled": True, "reserveTokens": 100, "keepRecentTokens": 1}})
    with room.open() as pi:
        pi.prompt("one " + script(room.write("a.txt", "1\n"), text("d" * 400)))
        pi.prompt("two " + script(room.write("a.txt", "2\n"), text("d" * 400)))
        assert pi.call("compact")["success"]
        compaction = pi.entries(kind="compaction")[0]["id"]
        first = pi.entries("user")[0]["id"]
        pi.answer = lambda dialog: str(dialog["options"][1])
        (room.folder / "later").write_text("x\n")
        pi.call("fork", entryId=first)
        assert room.tree() == {"old.txt": b"v0\n"}

    assert files_of(room, compaction) == {"old.txt": b"v0\n", "a.txt": b"2\n"}


def test_a_marker_of_another_extension_is_a_point_when_it_asks(pi_room: PiRoom) -> None:
    with pi_room.open(extensions=NAV) as pi:
        pi.prompt("one")
        pi.prompt("/marker")
        marker = pi.entries(kind="custom_message")[0]["id"]
        for source in ("somebody", "pi-custom-compaction"):
            event = f'{{"source": "{source}", "entryId": "{marker}"}}'
            pi.prompt("/emit rewind:checkpoint-entry " + event)
        pi.prompt("two")

        assert [e["data"]["bindings"] for e in pi.entries(kind="rewind-op")] == [[[marker, 0]]]
    assert marker in points(pi_room)


def test_two_agents_in_one_repository_keep_their_points_apart(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open() as one, room.open() as two:
        one.prompt("one " + script(room.write("a.txt", "one\n"), text("done")))
        two.prompt("two " + script(room.write("b.txt", "two\n"), text("done")))
        one.prompt("three " + script(room.write("a.txt", "three\n"), text("done")))
        users = [*one.entries("user"), *two.entries("user")]
        footers = (one.footer(), two.footer())

    trees = [files_of(room, entry["id"]) for entry in users]
    assert [sorted(tree) for tree in trees] == [["old.txt"], ["a.txt", "b.txt", "old.txt"],
                                                ["a.txt", "old.txt"]]
    assert footers == ("◆ 6 points / 4 snapshots", "◆ 3 points / 2 snapshots")


def test_in_a_subfolder_the_whole_worktree_is_meant(pi_room: PiRoom) -> None:
    room = pi_room
    (room.folder / "deep" / "er").mkdir(parents=True)
    (room.folder / "deep" / "er" / "x").write_text("x\n")
    with room.open(cwd=room.folder / "deep" / "er") as pi:
        before = room.tree()
        pi.prompt("go " + script([room.write("old.txt", "gone\n"), room.shell("rm x")], text("d")))
        pi.answer = lambda dialog: str(dialog["options"][1])
        pi.call("fork", entryId=pi.entries("user")[0]["id"])

        assert room.tree() == before


def test_a_folder_without_git_has_points_too(pi_room: PiRoom, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a").write_text("1\n")
    with pi_room.open(cwd=plain) as pi:
        pi.prompt("go " + script(pi_room.shell("echo 2 > a; echo new > b"), text("done")))
        pi.answer = lambda dialog: str(dialog["options"][1])
        pi.call("fork", entryId=pi.entries("user")[0]["id"])

    assert {path.name: path.read_text() for path in plain.iterdir()} == {"a": "1\n"}


def test_odd_names_come_back(pi_room: PiRoom) -> None:
    room = pi_room
    odd = ['quo"te', "back\\slash", "new\nline", "tab\t", " blank ", "-dash", "ünï\u2028code"]
    for name in odd:
        (room.folder / name).write_text("kept\n")
    raw = bytes(room.folder) + b"/not-\xff-utf8"
    with open(raw, "wb") as file:
        file.write(b"raw\n")
    with room.open() as pi:
        pi.prompt("go " + script(room.shell("find . -type f -not -path './.git/*' -delete"),
                                 text("done")))
        pi.answer = lambda dialog: str(dialog["options"][1])
        pi.call("fork", entryId=pi.entries("user")[0]["id"])

    with open(raw, "rb") as file:
        assert file.read() == b"raw\n"
    assert [(room.folder / name).read_text() for name in odd] == ["kept\n"] * len(odd)


def test_doctor_knows_when_pi_was_heard(tmp_path: Path) -> None:
    room = Connected(tmp_path)
    room.connect()
    room.run("hello")
    rows = json.loads(room.rewind("doctor", "--json", ok=False).stdout)["agents"]
    heard = [row for row in rows if row["agent"] == "pi"]
    assert [(row["lastEvent"], row["lastEventTime"] > 0) for row in heard] == [
        ("session_shutdown", True)]
    room.close()
