"""Session trees of Pi and omp, cut and moved without the agent, and continued by the real one."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from coderewind.agents import adapter as places
from coderewind.agents.adapter import Position
from coderewind.agents.branched import Branched
from coderewind.agents.known import adapter_of

from .fake_model import script, text
from .omp import OmpRoom
from .pi import Connected as ConnectedPi
from .pi import PiRoom

pytestmark = pytest.mark.agent


@pytest.fixture(params=["pi", "omp"])
def room(request: pytest.FixtureRequest, tmp_path: Path,
         monkeypatch: pytest.MonkeyPatch) -> Iterator[PiRoom]:
    made = (PiRoom if request.param == "pi" else OmpRoom)(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.delenv("PI_CODING_AGENT_DIR", raising=False)
    yield made
    made.close()


def adapter(room: PiRoom) -> Branched:
    found = adapter_of(room.agent)
    assert isinstance(found, Branched)
    return found


def three_turns(room: PiRoom) -> str:
    session = ""
    for number in (1, 2, 3):
        session = room.run(f"P{number} " + script(room.shell(f"echo {number} > f"),
                                                  text(f"A{number}")), go_on=session)
    return session


def turn(number: int) -> list[str]:
    return [f"U:P{number}", "A:<bash>", "U:<result>", f"A:A{number}"]


def heard(room: PiRoom, session: str) -> list[str]:
    return [row.replace("<_", "<") for row in room.resume_and_ask(session)]


def fork(room: PiRoom, session: str, position: Position) -> tuple[str, str]:
    """A session cut at a position: its id, and the prompt that came next."""
    source = room.session_file(session)
    cut = adapter(room).cut(source.read_bytes(), position)
    assert cut is not None
    new = str(uuid.uuid4())
    adapter(room).write_fork(cut, str(source), session, new, "the title", {})
    return new, cut.prompt


def test_a_session_is_continued_from_each_answer_and_each_prompt(room: PiRoom) -> None:
    session = three_turns(room)
    before = room.session_file(session).read_bytes()
    prompts = room.rows(session, "user")
    answers = [row for row in room.rows(session, "assistant")
               if row["message"]["content"][-1].get("text", "").startswith("A")]

    new, prompt = fork(room, session, Position(places.AT_ENTRY, entry=answers[1]["id"]))
    assert prompt == ""
    assert heard(room, new) == [*turn(1), *turn(2), "U:PROBE"]
    for number in (1, 3):
        new, prompt = fork(room, session, Position(places.AT_PROMPT, prompts[number - 1]["id"]))
        assert prompt.startswith(f"P{number} ")
        said = [row for done in range(1, number) for row in turn(done)]
        assert heard(room, new) == [*said, "U:PROBE"]
    assert room.session_file(session).read_bytes() == before


def test_an_answer_that_calls_tools_is_kept_with_their_results(room: PiRoom) -> None:
    session = three_turns(room)
    calling = room.rows(session, "assistant")[2]
    new, _ = fork(room, session, Position(places.AT_ENTRY, entry=calling["id"]))
    assert heard(room, new) == [*turn(1), "U:P2", "A:<bash>", "U:<result>", "U:PROBE"]


def test_a_fork_names_its_parent_and_bears_its_title(room: PiRoom) -> None:
    session = three_turns(room)
    source = room.session_file(session)
    new, _ = fork(room, session, Position(places.AT_PROMPT, room.rows(session, "user")[1]["id"]))
    made = room.session_file(new)
    heads = [row for row in room.rows(new) if row["type"] == "session"]
    assert heads[0]["parentSession"] == str(source) and heads[0]["id"] == new
    assert b"the title" in made.read_bytes()
    assert made.stat().st_mode & 0o777 == 0o600
    if room.agent == "omp":
        assert len(made.read_bytes().split(b"\n")[0]) == 255
        assert len(source.read_bytes().split(b"\n")[0]) == 255


def test_a_session_in_a_folder_of_its_own_goes_on_from_the_archive(tmp_path: Path) -> None:
    room = ConnectedPi(tmp_path)
    room.connect()
    for number in (1, 2):
        resume = ["--continue"] if number == 2 else []
        room.run(f"P{number} " + script(room.shell(f"echo {number} > f"), text(f"A{number}")),
                 "--session-dir", str(tmp_path / "elsewhere"), *resume)

    resume_with = room.json("restore", str(room.only("prompt", "P2")["number"]), "--yes")["resume"]

    assert resume_with["command"][:2] == ["pi", "--session"]
    assert heard(room, resume_with["session"]) == [*turn(1), "U:PROBE"]
    assert room.tree()["f"] == b"1\n"
    room.close()


def test_a_closed_session_goes_on_where_its_leaf_was_moved(room: PiRoom) -> None:
    session = three_turns(room)
    path = room.session_file(session)
    before = path.read_bytes()
    second = room.rows(session, "user")[1]

    stood = adapter(room).move(str(path), second["parentId"])

    assert path.read_bytes().startswith(before)
    assert path.read_bytes().count(b"\n") == before.count(b"\n") + 1
    assert heard(room, session) == [*turn(1), "U:PROBE"]
    adapter(room).move(str(path), stood)
    assert heard(room, session) == [*turn(1), *turn(2), *turn(3), "U:PROBE"]


def test_a_running_agent_is_noticed(room: PiRoom) -> None:
    session = room.session_file(room.run("hello"))
    mode = ["--mode", "rpc"]
    with subprocess.Popen([*room.program, *mode], cwd=room.folder, env=room.env(),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as agent:
        assert agent.stdin and agent.stdout
        agent.stdin.write(b'{"id":"1","type":"get_state"}\n')
        agent.stdin.flush()
        agent.stdout.readline()
        assert agent.pid in adapter(room).running(str(session))
        agent.terminate()
        agent.wait(30)
    assert agent.pid not in adapter(room).running(str(session))
