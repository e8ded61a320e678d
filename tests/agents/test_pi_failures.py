"""What happens in Pi when Rewind cannot do its work: the agent goes on, files are never half."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .fake_model import script, text
from .pi import EXTENSION, NAV, Connected, Pi, PiRoom, alive

pytestmark = pytest.mark.agent

_MANY = 4000


def until(done: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.002)


def in_restore(room: PiRoom, pi: Pi, fork: str = "fork") -> tuple[int, str]:
    """Fill the folder, let the agent change it all, begin a fork that restores it; the process
    that is at it, and the number of the answer."""
    for name in range(_MANY):
        (room.folder / f"f{name}").write_text(f"{name}\n")
    pi.prompt("one " + script(room.shell("for f in f*; do echo changed > $f; done"), text("done")))
    user, bridge = pi.entries("user")[0]["id"], pi.bridges()[0]
    number = pi.send(fork, entryId=user)
    until(lambda: (room.folder / "f0").read_bytes() == b"0\n", "no restore began")
    return bridge, number


def states(room: PiRoom) -> set[bytes]:
    """Every content there is, of files that are numbered."""
    return {b"changed\n" if content == b"changed\n" else b"number\n"
            if content == name[1:].encode() + b"\n" else content
            for name, content in room.tree().items() if name.startswith("f")}


def test_a_bridge_killed_in_a_restore_leaves_no_file_half_and_the_next_one_finishes(
    pi_room: PiRoom,
) -> None:
    room = pi_room
    with room.open() as pi:
        pi.answer = lambda dialog: str(dialog["options"][1])
        pid, number = in_restore(room, pi)
        os.kill(pid, signal.SIGKILL)

        assert pi.answer_to(number)["data"]["cancelled"] is True
        assert "called off" in pi.shown("notify")[-1]
        assert states(room) <= {b"changed\n", b"number\n"}
        pi.answer = lambda dialog: "Finish the interrupted restore"
        pi.prompt("/rewind")
        assert states(room) == {b"number\n"}
        pi.prompt("and on")
        assert pi.footer().startswith("◆")
        pi.answer = lambda dialog: "Undo last file rewind"
        pi.call("fork", entryId=pi.entries("user")[-1]["id"])
        assert states(room) == {b"changed\n"}


def test_an_interrupted_restore_is_taken_back_in_pi(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open() as pi:
        pi.answer = lambda dialog: str(dialog["options"][1])
        pid, number = in_restore(room, pi)
        os.kill(pid, signal.SIGKILL)
        pi.answer_to(number)
        pi.answer = lambda dialog: "Go back to before it"
        pi.prompt("/rewind")
        assert states(room) == {b"changed\n"}


def test_pi_killed_in_a_restore_leaves_no_file_half_and_no_process(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open() as pi:
        pi.answer = lambda dialog: str(dialog["options"][1])
        pid, _ = in_restore(room, pi)
        pi.process.kill()
        until(lambda: not alive(pid), "the bridge goes on without Pi")

    # Nobody interrupted the bridge: it came to the end of what it was doing.
    assert states(room) == {b"number\n"}
    assert room.json("status")


def test_without_python_pi_goes_on_with_a_note(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open(extensions=NAV, REWIND_BRIDGE=json.dumps(["/nowhere/python"])) as pi:
        pi.prompt("one " + script(room.write("a.txt", "1\n"), text("done")))
        user = pi.entries("user")[0]["id"]
        pi.prompt("/nav " + user)
        assert pi.shown("notify") == ["nav done"]
        pi.prompt("/rewind")
        answer = pi.call("fork", entryId=user)

        assert answer["data"]["cancelled"] is False
        assert room.tree()["a.txt"] == b"1\n"
        assert "/nowhere/python" in pi.footer() and pi.footer().startswith("◇")


def test_a_program_that_is_no_bridge_is_taken_for_missing(pi_room: PiRoom) -> None:
    with pi_room.open(REWIND_BRIDGE=json.dumps(["cat", "/etc/hostname"])) as pi:
        pi.prompt("one")

        assert pi.footer().startswith("◇ no checkpoints")
        assert len(pi.entries("assistant")) == 1


def test_an_extension_of_another_version_is_told(pi_room: PiRoom, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(Path(EXTENSION).parent, other)
    text_of = (other / "index.ts").read_text()
    (other / "index.ts").write_text(text_of.replace("PROTOCOL = 1", "PROTOCOL = 2"))
    with pi_room.open(extensions=(str(other / "index.ts"),)) as pi:
        pi.prompt("one")

        assert "different versions" in pi.footer() and "rewind init" in pi.footer()
        assert len(pi.entries("assistant")) == 1


@pytest.mark.parametrize("damage", ['{"command": 7}', '{"command": []}', "{}", "no json", None])
def test_without_its_command_the_extension_lets_pi_go_on(
    tmp_path: Path, damage: str | None
) -> None:
    room = Connected(tmp_path)
    room.connect()
    command = room.agent_dir / "extensions" / "rewind" / "bridge.json"
    command.unlink()
    if damage is not None:
        command.write_text(damage)
    with room.open() as pi:
        pi.prompt("one")

        assert pi.footer().startswith("◇ no checkpoints") and "rewind" in pi.footer()
        assert len(pi.entries("assistant")) == 1
    room.close()


def test_a_bridge_that_hangs_calls_a_fork_off_and_is_replaced(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open(REWIND_BRIDGE_SILENCE_MS="700") as pi:
        pi.prompt("one " + script(room.write("a.txt", "1\n"), text("done")))
        pid = pi.bridges()[0]
        os.kill(pid, signal.SIGSTOP)
        answer = pi.call("fork", entryId=pi.entries("user")[0]["id"])

        assert answer["data"]["cancelled"] is True
        assert "did not answer" in pi.shown("notify")[-1]
        until(lambda: not alive(pid), "a hung bridge was left")
        pi.prompt("two " + script(room.write("a.txt", "2\n"), text("done")))
        pi.answer = lambda dialog: str(dialog["options"][1])
        pi.call("fork", entryId=pi.entries("user")[1]["id"])
        assert room.tree()["a.txt"] == b"1\n"


def test_a_bridge_that_hangs_calls_a_move_in_the_tree_off(pi_room: PiRoom) -> None:
    with pi_room.open(extensions=NAV, REWIND_BRIDGE_SILENCE_MS="700") as pi:
        pi.prompt("one " + script(pi_room.write("a.txt", "1\n"), text("done")))
        leaf = pi.leaf()
        os.kill(pi.bridges()[0], signal.SIGSTOP)
        pi.prompt("/nav " + pi.entries("user")[0]["id"])

        assert "did not answer" in pi.shown("notify")[-2]
        assert (pi.shown("notify")[-1], pi.leaf()) == ("nav cancelled", leaf)


def test_a_bridge_that_hangs_in_a_turn_lets_the_agent_go_on(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open(REWIND_BRIDGE_SILENCE_MS="500") as pi:
        pi.prompt("one")
        os.kill(pi.bridges()[0], signal.SIGSTOP)
        pi.prompt("two " + script(room.write("a.txt", "2\n"), text("done")))
        assert room.tree()["a.txt"] == b"2\n"
        pi.prompt("three")

        assert len(pi.bridges()) == 1
    assert [cp["prompt"] for cp in room.checkpoints() if cp["kind"] == "prompt"][-1] == "three"


def test_a_killed_bridge_is_replaced_and_its_points_are_known(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open() as pi:
        pi.prompt("one " + script(room.write("a.txt", "1\n"), text("done")))
        os.kill(pi.bridges()[0], signal.SIGKILL)
        pi.prompt("two " + script(room.write("a.txt", "2\n"), text("done")))

        assert pi.footer() == "◆ 6 points / 3 snapshots"
        pi.answer = lambda dialog: str(dialog["options"][1])
        pi.call("fork", entryId=pi.entries("user")[0]["id"])
        assert room.tree() == {"old.txt": b"v0\n"}


def test_the_bridge_ends_with_pi(pi_room: PiRoom) -> None:
    with pi_room.open() as pi:
        pi.prompt("one")
        pid = pi.bridges()[0]

    until(lambda: not alive(pid), "the bridge goes on without Pi")


def test_the_home_folder_is_not_protected_and_says_so_in_the_footer(pi_room: PiRoom) -> None:
    with pi_room.open(cwd=pi_room.home) as pi:
        pi.prompt("one")
        pi.prompt("/rewind")

        assert pi.footer().startswith("◇ no checkpoints") and "too wide" in pi.footer()
        assert pi.bridges() == []
    assert not (pi_room.home / ".rewind" / "storage").exists()


def test_a_prompt_that_fails_to_be_captured_is_sent_all_the_same(pi_room: PiRoom) -> None:
    room = pi_room
    with room.open() as pi:
        pi.prompt("one")
        storage = room.home / ".rewind" / "storage"
        storage.rename(room.home / "elsewhere")
        Path(storage).write_text("not a folder\n")
        pi.prompt("two")

        assert len(pi.entries("assistant")) == 2
        assert any("no checkpoint" in words for words in pi.shown("notify"))
