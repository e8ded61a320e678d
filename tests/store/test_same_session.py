"""A closed session of Pi goes on in itself: its leaf is moved, and moved back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus.box import Box

from coderewind.agents.pi import Pi
from coderewind.engine import conversation
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.model import records as ops
from coderewind.model.records import Anchor, Checkpoint
from coderewind.wiring import open_engine

SESSION = "01a1f041-0cd3-7782-88d6-de26a0fb4522"


class Talk:
    """A session of two prompts with a point at each entry, as the bridge makes them."""

    def __init__(self, box: Box) -> None:
        self.engine: Engine = open_engine(box.project, create=True)
        folder = Path(box.home, ".pi/agent/sessions/--project--")
        folder.mkdir(parents=True)
        self.file = folder / f"2026-04-01T00-00-00-000Z_{SESSION}.jsonl"
        rows: list[dict[str, Any]] = [{"type": "session", "version": 3, "id": SESSION,
                                       "timestamp": "2026-04-01T00:00:00.000Z",
                                       "cwd": box.project}]
        parent = None
        self.points: dict[str, Checkpoint] = {}
        for entry, role in (("u1", "user"), ("a1", "assistant"), ("u2", "user"),
                            ("a2", "assistant")):
            content = [{"type": "text", "text": f"words of {entry}"}]
            rows.append({"type": "message", "id": entry, "parentId": parent,
                         "timestamp": "2026-04-01T00:00:00.000Z",
                         "message": {"role": role, "content": content}})
            parent = entry
        self.file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        for entry, at in (("u1", "prompt"), ("a1", "entry"), ("u2", "prompt"), ("a2", "entry")):
            box.write("a.txt", entry)
            self.points[entry] = self._point(entry, at)

    def _point(self, entry: str, at: str) -> Checkpoint:
        anchor = Anchor("pi", SESSION, entry, entry if at == "prompt" else "",
                        prompt=f"words of {entry}", transcript=str(self.file))
        with self.engine.working() as now_ns:
            record = self.engine.append_state(
                ops.CHECKPOINT, {"kind": "prompt", "at": at, "anchor": anchor.as_json()},
                self.engine.capture(now_ns), now_ns, last=self.engine.ledger.last())
        self.engine.store.objects.close()
        return Checkpoint(record)

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.read_text().splitlines()]


@pytest.fixture
def talk(box: Box) -> Talk:
    return Talk(box)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else runs on the machine of the tests."""
    monkeypatch.setattr(Pi, "running", lambda self, path: [])


@pytest.mark.parametrize(("entry", "leaf"), [("a1", "a1"), ("u2", "a1"), ("u1", None)])
def test_the_leaf_is_moved_and_nothing_else_changes(
    talk: Talk, closed: None, entry: str, leaf: str | None
) -> None:
    before = talk.file.read_bytes()
    prepared = conversation.prepare(talk.engine, talk.points[entry])

    resume = conversation.restore(talk.engine, prepared, same_session=True)

    assert talk.file.read_bytes().startswith(before)
    assert [row["parentId"] for row in talk.rows()[5:]] == [leaf]
    assert resume.session == SESSION
    assert resume.prompt == (f"words of {entry}" if entry.startswith("u") else "")
    assert resume.command == ["pi", "--session", str(talk.file)]
    assert list(talk.file.parent.iterdir()) == [talk.file]


def test_taking_it_back_moves_the_leaf_back(talk: Talk, closed: None) -> None:
    prepared = conversation.prepare(talk.engine, talk.points["a1"])
    conversation.restore(talk.engine, prepared, same_session=True)
    record = conversation.newest(talk.engine)
    assert record is not None

    conversation.take_back(talk.engine, record)

    assert [row["parentId"] for row in talk.rows()[5:]] == ["a1", "a2"]
    assert conversation.newest(talk.engine) is None


def test_a_running_pi_is_left_alone(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pi, "running", lambda self, path: [4711])
    before = talk.file.read_bytes()
    prepared = conversation.prepare(talk.engine, talk.points["a1"])
    with pytest.raises(RewindError, match="4711"):
        conversation.restore(talk.engine, prepared, same_session=True)
    assert talk.file.read_bytes() == before


def test_a_half_written_last_line_is_closed_off(talk: Talk, closed: None) -> None:
    half = talk.file.read_bytes() + b'{"type":"message","id":"x9","parentId":"a2","mess'
    talk.file.write_bytes(half)
    prepared = conversation.prepare(talk.engine, talk.points["a1"])
    conversation.restore(talk.engine, prepared, same_session=True)
    assert talk.file.read_bytes().startswith(half + b"\n")
    assert json.loads(talk.file.read_text().splitlines()[-1])["parentId"] == "a1"


@pytest.fixture
def pi_program(box: Box) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is called pi."""
    folder = Path(box.home, "bin")
    folder.mkdir()
    program = folder / "pi"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "60"]) as process:
        yield process
        process.kill()


def test_the_command_refuses_before_any_file_is_touched(
    box: Box, talk: Talk, pi_program: subprocess.Popen[bytes]
) -> None:
    ended = subprocess.run([sys.executable, "-m", "coderewind", "restore", "1", "--same-session",
                            "--yes"], cwd=box.project, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert f"process {pi_program.pid}" in ended.stderr
    assert box.read("a.txt") == b"a2"


def test_the_command_says_how_to_go_on(box: Box, talk: Talk) -> None:
    number = str(talk.points["a1"].number)
    done = box.rewind("restore", number, "--same-session", "--yes")
    assert box.read("a.txt") == b"a1"
    assert done["resume"]["command"] == ["pi", "--session", str(talk.file)]
    back = box.rewind("undo-restore")
    assert box.read("a.txt") == b"a2"
    assert back["resume"]["session"] == SESSION
    assert [row["parentId"] for row in talk.rows()[5:]] == ["a1", "a2"]


def test_taking_it_back_refuses_before_any_file_is_touched(box: Box, talk: Talk) -> None:
    number = str(talk.points["a1"].number)
    box.rewind("restore", number, "--same-session", "--yes")
    program = Path(box.home, "pi")
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "60"]) as process:
        assert box.rewind("undo-restore", ok=False).code == 1
        process.kill()
    assert box.read("a.txt") == b"a1"
    assert len(talk.rows()) == 6
