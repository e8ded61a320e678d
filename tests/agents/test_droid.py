"""Droid beyond the contract: over JSON-RPC, with subagents, among the hooks of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .droid import DroidSession
from .fake_model import call, script, text
from .rooms import DroidRoom

pytestmark = pytest.mark.agent


def files_at(room: DroidRoom, cp: dict[str, Any]) -> list[str]:
    """The files that restoring a checkpoint leaves."""
    room.json("restore", str(cp["number"]), "--yes", "--code-only")
    return sorted(room.tree())


def test_prompts_that_are_announced(droid: DroidRoom) -> None:
    with DroidSession(droid) as session:
        session.say("P1 " + script(droid.write("a.txt", "a\n"), droid.shell("rm old.txt"),
                                   text("A1")))
        session.say("P2 " + script(droid.write("b.txt", "b\n"), text("A2")))

    assert droid.kinds()[:4] == ["start", "prompt", "tool", "after"]
    said = ["U:P1", "A:<Create>", "U:<result>", "A:<Execute>", "U:<result>", "A:A1"]
    resume = droid.json("restore", str(droid.only("prompt", "P2 ")["number"]), "--yes")["resume"]
    assert sorted(droid.tree()) == ["a.txt"]
    assert resume["command"] == ["droid", "--resume", resume["session"]]
    assert resume["prompt"].startswith("P2 ")
    with DroidSession(droid, load=resume["session"]) as session:
        session.say("PROBE")
    assert droid.model.heard() == [*said, "U:PROBE"]


def test_a_subagent_belongs_to_the_session_that_called_it(droid: DroidRoom) -> None:
    inner = script(droid.shell("sleep 0.5; echo s > sub.txt"), text("inner done"))
    task = call("Task", subagent_type="worker", description="d", prompt="do " + inner)
    droid.auto = "high"
    session = droid.run("P1 " + script(task, droid.write("b.txt", "b\n"), text("A1")))

    points = droid.checkpoints()
    assert {cp["session"] for cp in points} == {session}
    assert "prompt" not in droid.kinds()
    assert files_at(droid, points[-1]) == ["b.txt", "old.txt", "sub.txt"]
    assert any("Execute sleep 0.5" in cp["label"] for cp in points)
    heard = droid.model.heard()
    resume = droid.json("restore", str(points[-1]["number"]), "--yes")["resume"]
    assert droid.resume_and_ask(resume["session"])[: len(heard)] == heard


def test_calls_at_once_and_a_command_that_throws_work_away(droid: DroidRoom) -> None:
    first = droid.run("P1 " + script([droid.write("a.txt", "a\n"), droid.write("b.txt", "b\n"),
                                      droid.shell("sleep 0.3; rm old.txt")], text("A1")))
    droid.run("P2 " + script(droid.shell("git add a.txt; git stash; rm -rf b.txt"), text("A2")),
              go_on=first)

    lost = droid.only("before")
    assert lost["flags"] == ["destructive"]
    assert files_at(droid, droid.only("after", '"P2')) == ["old.txt"]
    assert files_at(droid, lost) == ["a.txt", "b.txt"]
    assert files_at(droid, droid.only("after", '"P1')) == ["a.txt", "b.txt"]


def test_hooks_of_others_in_settings_json_go_on(droid: DroidRoom, tmp_path: Path) -> None:
    log = tmp_path / "others.log"
    other = [{"matcher": "Create|Execute", "hooks": [
        {"type": "command", "command": f"cat >> {log}; echo >> {log}"}]}]
    droid.rewind("config", "--unregister-hooks", "--agents", "droid")
    droid.settings({"hooks": {"PreToolUse": other}})
    path = droid.home / ".factory" / "settings.json"
    before = path.read_bytes()
    droid.connect()
    assert not path.with_name("hooks.json").exists(), "it would silence the others"
    droid.run("P1 " + script(droid.write("a.txt", "a\n"), text("A1")))

    heard = [json.loads(line) for line in log.read_text().splitlines()]
    assert [row["tool_name"] for row in heard] == ["Create"]
    assert droid.kinds() == ["start", "after"]
    said = droid.rewind("doctor").stdout
    assert f"Droid 0.225.2: connected in {path}; last heard: SessionEnd" in said
    droid.rewind("config", "--unregister-hooks", "--agents", "droid")
    assert path.read_bytes() == before
