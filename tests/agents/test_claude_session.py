"""Whole sessions of the real Claude Code: what is under way at once, elsewhere, or killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from .fake_model import call, script, text
from .rooms import ClaudeRoom

pytestmark = pytest.mark.agent


def tree_at(room: ClaudeRoom, cp: dict[str, Any]) -> list[str]:
    """The files that restoring a checkpoint leaves."""
    room.json("restore", str(cp["number"]), "--yes", "--code-only")
    return sorted(room.tree())


def test_calls_of_one_answer_are_points_of_their_own(claude: ClaudeRoom) -> None:
    claude.run("P1 " + script([claude.write("a.txt", "a\n"), claude.write("b.txt", "b\n"),
                               claude.shell("rm old.txt; echo c > c.txt")], text("A1")))

    assert tree_at(claude, claude.only("tool", "Write a.txt")) == ["a.txt", "old.txt"]
    assert tree_at(claude, claude.only("tool", "Write b.txt")) == ["a.txt", "b.txt", "old.txt"]
    assert tree_at(claude, claude.only("after")) == ["a.txt", "b.txt", "c.txt"]
    assert tree_at(claude, claude.only("prompt")) == ["old.txt"]


def test_subagents_at_work_at_once(claude: ClaudeRoom) -> None:
    """What is captured while another one is at work is marked; nothing of either is missed."""
    def task(name: str) -> dict[str, Any]:
        steps = (claude.shell(f"sleep 0.5; echo {name} > {name}.txt; sleep 0.7"),
                 claude.write(f"{name}2.txt", "x\n"), text("inner done"))
        return call("Agent", description="x", prompt="do " + script(*steps),
                    subagent_type="general-purpose")

    claude.run("P1 " + script([task("a"), task("b")], text("A1")))

    wanted = claude.tree()
    assert sorted(wanted) == ["a.txt", "a2.txt", "b.txt", "b2.txt", "old.txt"]
    points = [cp for cp in claude.checkpoints() if cp["files"] and cp["kind"] != "start"]
    assert any("parallel" in cp["flags"] or cp["kind"] == "batch" for cp in points)
    assert tree_at(claude, claude.only("prompt")) == ["old.txt"]
    claude.rewind("restore", str(points[-1]["number"]), "--yes", "--code-only")
    assert claude.tree() == wanted
    assert {cp["prompt"][:2] for cp in points} <= {"P1", "ba"}


def test_a_worktree_entered_in_the_session(claude: ClaudeRoom) -> None:
    """Each worktree has its own points; both keep the conversation."""
    first = claude.run("P1 " + script(claude.write("a.txt", "a\n"), text("A1")))
    claude.run("P2 " + script({"tool": "EnterWorktree", "input": {"name": "w1"}},
                              claude.shell("echo w > w.txt"), text("A2")), go_on=first)
    linked = claude.folder / ".claude" / "worktrees" / "w1"
    said = ["U:P1", "A:<Write>", "U:<result>", "A:A1"]

    there = json.loads(claude.rewind("-C", str(linked), "list", "--json").stdout)["checkpoints"]
    end = next(cp for cp in there if cp["kind"] == "after")
    (linked / "w.txt").unlink()
    done = claude.rewind("-C", str(linked), "restore", str(end["number"]), "--yes", "--json")
    assert (linked / "w.txt").read_text() == "w\n"
    session = json.loads(done.stdout)["resume"]["session"]
    assert claude.resume_and_ask(session) == [
        *said, "U:P2", "A:<EnterWorktree>", "U:<result>", "A:<Bash>", "U:<result>", "A:A2",
        "U:PROBE"]

    resume = claude.json("restore", str(claude.only("after", "P1")["number"]), "--yes")["resume"]
    assert "a.txt" in claude.tree()
    assert claude.resume_and_ask(resume["session"]) == [*said, "U:PROBE"]


def test_a_turn_that_a_slash_command_began(claude: ClaudeRoom) -> None:
    commands = claude.home / ".claude" / "commands"
    commands.mkdir(exist_ok=True)
    (commands / "mine.md").write_text("---\ndescription: mine\n---\nDo $ARGUMENTS\n")
    first = claude.run("P1 " + script(claude.write("a.txt", "a\n"), text("A1")))
    claude.run("/mine P2 " + script(claude.write("b.txt", "b\n"), text("A2")), go_on=first)
    claude.run("P3 please", go_on=first)
    said = ["U:P1", "A:<Write>", "U:<result>", "A:A1"]
    done = ["U:Do P2", "A:<Write>", "U:<result>", "A:A2"]

    def heard_after(kind: str, words: str) -> list[str]:
        number = str(claude.only(kind, words)["number"])
        resume = claude.json("restore", number, "--yes", "--context-only")["resume"]
        assert resume["prompt"].startswith(words if kind == "prompt" else "")
        return claude.resume_and_ask(resume["session"])

    assert heard_after("after", '"P1') == [*said, "U:PROBE"]
    assert heard_after("prompt", "/mine P2") == [*said, "U:PROBE"]
    assert heard_after("after", '"/mine') == [*said, *done, "U:PROBE"]


def test_a_compaction_in_the_middle_of_a_turn(claude: ClaudeRoom) -> None:
    first = claude.run("P1 " + script(claude.write("a.txt", "a\n"), text("A1")))
    write: dict[str, Any] = {**claude.write("b.txt", "b\n"), "full": True}
    claude.run("P2 " + script(write, text("A2")), go_on=first)
    said = ["U:P1", "A:<Write>", "U:<result>", "A:A1"]

    compact = claude.json("restore", str(claude.only("compact")["number"]), "--yes")["resume"]
    assert compact["prompt"].startswith("P2 ")
    assert claude.resume_and_ask(compact["session"]) == [*said, "U:PROBE"]
    after = claude.only("after", '"P2')
    assert (after["label"].endswith("→ Write b.txt"), after["files"]) == (True, 1)
    end = claude.json("restore", str(after["number"]), "--yes")["resume"]
    heard = claude.resume_and_ask(end["session"])
    assert heard[0].startswith("U:This session is being continued")
    assert heard[-2].startswith("A:ok: This session is being continued")
    assert "A:No response requested." not in heard


def test_a_fork_goes_on_from_its_parent(claude: ClaudeRoom) -> None:
    first = claude.run("P1 " + script(claude.write("a.txt", "a\n"), text("A1")))
    claude.allow = (*claude.allow, "--fork-session")
    fork = claude.run("P2 " + script(claude.write("b.txt", "b\n"), text("A2")), go_on=first)
    claude.allow = ClaudeRoom.allow
    claude.run("P3 please", go_on=fork)
    assert fork != first
    P1, P2 = (["U:P1", "A:<Write>", "U:<result>", "A:A1"],
              ["U:P2", "A:<Write>", "U:<result>", "A:A2"])

    prompt = claude.only("prompt", "P2 ")
    shown = claude.json("show", str(prompt["number"]))
    assert (prompt["session"], shown["anchor"]["parent_session"]) == (fork, first)
    for cp, heard in ((prompt, P1), (claude.only("after", '"P2'), [*P1, *P2]),
                      (claude.only("after", '"P1'), P1)):
        resume = claude.json("restore", str(cp["number"]), "--yes")["resume"]
        assert claude.resume_and_ask(resume["session"]) == [*heard, "U:PROBE"]


_MCP_SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    given = asked.get("params", {})
    result = {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "notes", "version": "1"}}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": "keep", "description": "keep a note", "inputSchema": {
            "type": "object", "properties": {"path": {"type": "string"}}}}]}
    elif asked["method"] == "tools/call":
        open(given["arguments"]["path"], "w").write("kept")
        result = {"content": [{"type": "text", "text": "kept"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def test_files_that_other_tools_write(claude: ClaudeRoom, tmp_path: Path) -> None:
    """A tool of an MCP server, and a notebook's cell."""
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"notes": {
        "command": sys.executable, "args": ["-c", _MCP_SERVER]}}}))
    claude.allow = ("--permission-mode", "acceptEdits", "--mcp-config", str(config),
                    "--allowedTools", "mcp__notes Read NotebookEdit Bash")
    cell: dict[str, Any] = {"cell_type": "code", "id": "c1", "metadata": {}, "outputs": [],
                            "source": ["1\n"], "execution_count": None}
    book = claude.folder / "book.ipynb"
    book.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4,
                                "nbformat_minor": 5}))
    before = claude.tree()
    claude.run("P1 " + script(
        call("mcp__notes__keep", path=claude.path("note.txt")),
        call("Read", file_path=str(book)),
        call("NotebookEdit", notebook_path=str(book), cell_id="c1", new_source="2\n"),
        claude.shell("rm note.txt"), text("A1")))

    assert tree_at(claude, claude.only("tool", "notes keep")) == ["book.ipynb", "note.txt",
                                                                  "old.txt"]
    assert claude.tree() == {**before, "note.txt": b"kept"}
    tree_at(claude, claude.only("tool", "NotebookEdit book.ipynb"))
    assert b"2\\n" in claude.tree()["book.ipynb"]
    assert tree_at(claude, claude.only("after")) == ["book.ipynb", "old.txt"]
    tree_at(claude, claude.only("prompt"))
    assert claude.tree() == before


def test_auto_mode_among_the_hooks_of_others(claude: ClaudeRoom, tmp_path: Path) -> None:
    log = tmp_path / "others.log"
    path = claude.home / ".claude" / "settings.json"
    claude.rewind("config", "--unregister-hooks", "--agents", "claude")
    other = [{"matcher": "Bash|Write", "hooks": [
        {"type": "command", "command": f"cat >> {log}; echo >> {log}"}]}]
    before = json.dumps({"hooks": {"PreToolUse": other, "PostToolUse": other, "Stop": [
        {"hooks": [{"type": "command", "command": "exit 1", "timeout": 5}]}]}, "cleanupPeriodDays":
        99})
    path.write_text(before)
    claude.connect()
    claude.allow = ("--permission-mode", "auto")
    claude.run("P1 " + script(claude.write("a.txt", "a\n"), claude.shell("echo b > b.txt"),
                              text("A1")))

    heard = [json.loads(line) for line in log.read_text().splitlines() if line]
    assert [row["hook_event_name"] for row in heard] == ["PreToolUse", "PostToolUse"] * 2
    assert {row["permission_mode"] for row in heard} == {"auto"}
    assert claude.kinds() == ["start", "prompt", "tool", "after"]
    assert tree_at(claude, claude.only("tool")) == ["a.txt", "old.txt"]
    assert tree_at(claude, claude.only("after")) == ["a.txt", "b.txt", "old.txt"]
    claude.rewind("config", "--unregister-hooks", "--agents", "claude")
    assert path.read_text() == before


def test_hooks_that_are_killed_cost_points_and_nothing_else(claude: ClaudeRoom) -> None:
    """Every hook is killed at some moment of its life; the agent goes on, and so do we."""
    stop = threading.Event()
    killed: list[bytes] = []

    def kill() -> None:
        while not stop.wait(0.003):
            for number in filter(str.isdigit, os.listdir("/proc")):
                try:
                    words = Path(f"/proc/{number}/cmdline").read_bytes()
                    if b"\0hook\0--agent" not in words or str(claude.home).encode() not in Path(
                        f"/proc/{number}/environ"
                    ).read_bytes():
                        continue
                    stop.wait(random.random() * 0.06)
                    os.kill(int(number), signal.SIGKILL)
                    killed.append(words.split(b"\0")[-2])
                except OSError:
                    continue

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        steps = [claude.shell(f"echo {n} > k{n}.txt") for n in range(6)]
        session = claude.run("P1 " + script(*steps, text("A1")))
    finally:
        stop.set()
        killer.join()
    assert len(killed) >= 6
    between = claude.tree()
    assert len(between) == 7, "every tool did its work"
    claude.run("P2 " + script(claude.write("z.txt", "z\n"), text("A2")), go_on=session)

    resume = claude.json("restore", str(claude.only("prompt", "P2")["number"]), "--yes")["resume"]
    assert claude.tree() == between
    assert claude.resume_and_ask(resume["session"]) == [
        "U:P1", *["A:<Bash>", "U:<result>"] * 6, "A:A1", "U:PROBE"]
    assert "all is well" in claude.rewind("doctor").stdout


def test_an_agent_that_is_killed_in_the_middle_of_a_tool(claude: ClaudeRoom) -> None:
    prompt = "P1 " + script(claude.write("a.txt", "a\n"),
                            claude.shell("echo half > half.txt; sleep 60"), text("never"))
    agent = subprocess.Popen([claude.program, "-p", *claude.allow, "--", prompt],
                             cwd=claude.folder, env=claude.env(), stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 60
    while "half.txt" not in claude.tree() and time.monotonic() < end:
        time.sleep(0.1)
    os.killpg(agent.pid, signal.SIGKILL)
    agent.wait()
    claude.run("P2 please", go_on=claude.checkpoints()[-1]["session"])

    settle = claude.only("settle")
    assert settle["label"].startswith("interrupted: Bash echo half > half.txt")
    assert tree_at(claude, settle) == ["a.txt", "half.txt", "old.txt"]
    assert tree_at(claude, claude.only("tool")) == ["a.txt", "old.txt"]


def test_two_sessions_in_one_folder(claude: ClaudeRoom) -> None:
    def talk(name: str) -> None:
        session = ""
        for turn in (1, 2):
            session = claude.run(f"{name}{turn} " + script(
                claude.write(f"{name}{turn}.txt", "x\n"), claude.shell(f"echo {name} >> both.txt"),
                text(f"{name}{turn} done")), go_on=session)

    threads = [threading.Thread(target=talk, args=(name,)) for name in ("A", "B")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    points = claude.checkpoints()
    assert [cp["number"] for cp in points] == list(range(1, len(points) + 1))
    assert sorted(cp["prompt"][:2] for cp in points if cp["kind"] == "prompt") == [
        "A1", "A2", "B1", "B2"]
    assert tree_at(claude, points[-1]) == ["A1.txt", "A2.txt", "B1.txt", "B2.txt", "both.txt",
                                           "old.txt"]
    for name in ("A", "B"):
        cp = claude.only("prompt", f"{name}2 ")
        resume = claude.json("restore", str(cp["number"]), "--yes", "--context-only")["resume"]
        assert claude.resume_and_ask(resume["session"]) == [
            f"U:{name}1", "A:<Write>", "U:<result>", "A:<Bash>", "U:<result>", f"A:{name}1 done",
            "U:PROBE"]
