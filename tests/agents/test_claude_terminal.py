"""Claude Code in a terminal: what headless runs cannot show."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time

import pytest

from .fake_model import call, script, text
from .rooms import ClaudeRoom

pytestmark = [pytest.mark.agent, pytest.mark.slow]


def until(what: object, room: ClaudeRoom, timeout: float = 30) -> None:
    """Wait for what hooks do after the screen has shown an answer."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if what():  # type: ignore[operator]
            return
        time.sleep(0.2)
    raise AssertionError(f"it did not come:\n{room.rewind('list', '--all').stdout}\n{room.log()}")


def turn(room: ClaudeRoom, name: str, content: str) -> str:
    return script(room.write(name, content), text(f"wrote {name} now"))


def test_escape_during_a_tool_is_settled_at_the_next_prompt(claude: ClaudeRoom) -> None:
    with claude.terminal(*claude.allow) as terminal:
        terminal.say("P1 " + script(claude.shell("echo half > half.txt; sleep 300"), text("never")),
                     "half.txt")
        until(lambda: "half.txt" in claude.tree(), claude)
        terminal.keys("Escape")
        terminal.wait("Interrupted")
        terminal.say("P2 " + turn(claude, "b.txt", "b\n"), "wrote b.txt now")
        until(lambda: claude.kinds()[-1] == "after", claude)

    settle = claude.only("settle")
    assert settle["label"].startswith("interrupted: Bash echo half")
    resume = claude.json("restore", str(settle["number"]), "--yes")["resume"]
    assert sorted(claude.tree()) == ["half.txt", "old.txt"]
    assert resume["prompt"].startswith("P2 ")
    heard = claude.resume_and_ask(resume["session"])
    assert heard[0] == "U:P1"
    assert "U:P2" not in heard
    assert heard[-1] == "U:PROBE"


def test_the_users_own_shell_command_is_settled(claude: ClaudeRoom) -> None:
    with claude.terminal(*claude.allow) as terminal:
        terminal.say("P1 " + turn(claude, "a.txt", "a\n"), "wrote a.txt now")
        terminal.say("! echo mine > mine.txt; echo is-done")
        until(lambda: any(cp["label"].startswith('"!') for cp in claude.checkpoints()), claude)
        terminal.say("P2 " + turn(claude, "b.txt", "b\n"), "wrote b.txt now")
        until(lambda: claude.kinds()[-1] == "after", claude)

    P1 = ["U:P1", "A:<Write>", "U:<result>", "A:wrote a.txt now"]
    mine = next(cp for cp in claude.checkpoints() if cp["label"].startswith('"!'))
    claude.rewind("restore", str(mine["number"]), "--yes")
    assert sorted(claude.tree()) == ["a.txt", "mine.txt", "old.txt"]
    first = claude.only("after", '"P1')
    resume = claude.json("restore", str(first["number"]), "--yes")["resume"]
    assert sorted(claude.tree()) == ["a.txt", "old.txt"]
    assert claude.resume_and_ask(resume["session"]) == [*P1, "U:PROBE"]


def test_a_background_command_is_settled_when_it_ends(claude: ClaudeRoom) -> None:
    step = call("Bash", command="sleep 3; echo built > built.txt", description="build",
                run_in_background=True)
    with claude.terminal(*claude.allow) as terminal:
        terminal.say("P1 " + script(step, text("started it")), "started it")
        until(lambda: "built.txt" in claude.tree(), claude)
        until(lambda: any(cp["label"].startswith("in the background: Bash sleep 3")
                          for cp in claude.checkpoints()), claude)

    assert "built.txt" in claude.tree()
    built = claude.only("settle", "in the background")
    resume = claude.json("restore", str(built["number"]), "--yes")["resume"]
    assert resume["prompt"] == ""
    assert claude.resume_and_ask(resume["session"]) == [
        "U:P1", "A:<Bash>", "U:<result>", "A:started it", "U:PROBE"]


def test_what_is_said_while_the_agent_works_belongs_to_the_turn(claude: ClaudeRoom) -> None:
    with claude.terminal(*claude.allow) as terminal:
        terminal.say("P1 " + script(claude.shell("echo a > a.txt; sleep 4"),
                                    claude.write("b.txt", "b\n"), text("wrote b.txt now")))
        until(lambda: "a.txt" in claude.tree(), claude)
        terminal.say("and quickly", "Queued")
        terminal.wait("wrote b.txt now")
        until(lambda: claude.kinds()[-1] == "after", claude)

    assert claude.only("after")["label"].startswith('"P1 SCRIPT')
    said = claude.only("prompt", "and quickly")
    assert said["flags"] == ["parallel"]
    shown = claude.rewind("restore", str(said["number"]), "--dry-run").stdout
    assert "starts fresh" in shown
    resume = claude.json("restore", str(said["number"]), "--yes")["resume"]
    assert resume["prompt"].startswith("P1 ")
    assert sorted(claude.tree()) == ["a.txt", "old.txt"]


def test_points_around_a_compaction(claude: ClaudeRoom) -> None:
    with claude.terminal(*claude.allow) as terminal:
        for number in (1, 2):
            terminal.say(f"P{number} " + turn(claude, f"f{number}.txt", "x\n"),
                         f"wrote f{number}.txt now")
        terminal.say("/compact", "ompacted")
        time.sleep(2)
        terminal.say("P3 " + turn(claude, "f3.txt", "x\n"), "wrote f3.txt now")
        until(lambda: claude.kinds()[-1] == "after", claude)

    old = [words for n in (1, 2) for words in
           (f"U:P{n}", "A:<Write>", "U:<result>", f"A:wrote f{n}.txt now")]
    compact = claude.only("compact")
    resume = claude.json("restore", str(compact["number"]), "--yes")["resume"]
    title = next(row["customTitle"] for row in map(json.loads, claude.session_file(
        resume["session"]).read_text().splitlines()) if row["type"] == "custom-title")
    assert f"(rewind #{compact['number']})" in title
    assert claude.resume_and_ask(title) == [*old, "U:PROBE"], "found by its title"
    history = claude.home / ".claude" / "file-history"  # for the agent's own /rewind
    assert os.listdir(history / compact["session"])
    assert sorted(os.listdir(history / resume["session"])) == sorted(
        os.listdir(history / compact["session"]))
    third = claude.only("prompt", "P3 ")
    resume = claude.json("restore", str(third["number"]), "--yes")["resume"]
    heard = claude.resume_and_ask(resume["session"])
    assert heard[0].startswith("U:This session is being continued")
    assert not any(words.startswith("U:P3") for words in heard)
    second = claude.only("prompt", "P2 ")
    resume = claude.json("restore", str(second["number"]), "--yes")["resume"]
    assert claude.resume_and_ask(resume["session"]) == [*old[:4], "U:PROBE"]
    assert sorted(claude.tree()) == ["f1.txt", "old.txt"]


def test_points_after_the_agents_own_rewind(claude: ClaudeRoom) -> None:
    """It leaves what it went back behind in the file; that is not in the conversation any more."""
    with claude.terminal(*claude.allow) as terminal:
        for number in (1, 2, 3):
            terminal.say(f"P{number} " + turn(claude, f"f{number}.txt", "x\n"),
                         f"wrote f{number}.txt now")
        terminal.say("/rewind", "Restore the code and/or conversation")
        terminal.keys("Up")
        terminal.keys("Up")
        terminal.wait("❯ P2 ")
        terminal.keys("Enter")
        terminal.wait("2. Restore conversation")
        terminal.keys("2")
        terminal.wait(r"─\n❯.P2 SCRIPT")
        terminal.keys("C-u", "C-c")
        time.sleep(1)
        terminal.say("P4 " + turn(claude, "f4.txt", "x\n"), "wrote f4.txt now")
        until(lambda: claude.kinds()[-1] == "after", claude)

    P1 = ["U:P1", "A:<Write>", "U:<result>", "A:wrote f1.txt now"]
    for words, wanted in (("P4 ", P1), ("P3 ", [*P1, *(w.replace("1", "2") for w in P1)])):
        prompt = str(claude.only("prompt", words)["number"])
        resume = claude.json("restore", prompt, "--yes", "--context-only")["resume"]
        assert resume["prompt"].startswith(words)
        assert claude.resume_and_ask(resume["session"]) == [*wanted, "U:PROBE"]


def test_a_session_that_is_cleared(claude: ClaudeRoom) -> None:
    """The points of the session before are still offered, and both can be gone back to."""
    with claude.terminal(*claude.allow) as terminal:
        terminal.say("P1 " + turn(claude, "f1.txt", "x\n"), "wrote f1.txt now")
        until(lambda: claude.kinds()[-1] == "after", claude)
        terminal.say("/clear")
        until(lambda: claude.kinds()[-1] == "start", claude)
        terminal.say("P2 " + turn(claude, "f2.txt", "x\n"), "wrote f2.txt now")
        until(lambda: claude.kinds()[-1] == "after", claude)

    first, second = claude.only("after", '"P1'), claude.only("after", '"P2')
    cleared = claude.only("start", "session cleared")
    assert first["session"] != second["session"] == cleared["session"]
    shown = claude.json("show", str(second["number"]))
    assert shown["anchor"]["parent_session"] == first["session"]
    for cp, number in ((first, 1), (second, 2)):
        resume = claude.json("restore", str(cp["number"]), "--yes")["resume"]
        assert claude.resume_and_ask(resume["session"]) == [
            f"U:P{number}", "A:<Write>", "U:<result>", f"A:wrote f{number}.txt now", "U:PROBE"]
    resume = claude.json("restore", str(cleared["number"]), "--yes")["resume"]
    assert (resume["session"], resume["prompt"][:3]) == ("", "P2 ")
    assert sorted(claude.tree()) == ["f1.txt", "old.txt"]


def test_the_printed_command_puts_the_prompt_back_into_the_input_box(claude: ClaudeRoom) -> None:
    first = claude.run("P1 " + turn(claude, "a.txt", "a\n"))
    claude.run("P2 please", go_on=first)
    resume = claude.json("restore", str(claude.only("prompt", "P2 ")["number"]), "--yes")["resume"]

    assert resume["command"][0] == "claude"
    with claude.terminal(*resume["command"][1:]) as terminal:
        terminal.wait("P2 please")
        terminal.keys("Enter")
        terminal.wait("ok: P2 please")
    assert claude.model.heard() == ["U:P1", "A:<Write>", "U:<result>", "A:wrote a.txt now",
                                    "U:P2 please"]


def test_the_first_prompt_starts_fresh(claude: ClaudeRoom) -> None:
    claude.run("P1 please")
    resume = claude.json("restore", str(claude.only("prompt", "P1 ")["number"]), "--yes")["resume"]

    assert (resume["session"], resume["prompt"]) == ("", "P1 please")
    assert resume["command"] == ["claude", "--prefill", "P1 please"]
    with claude.terminal(*resume["command"][1:]) as terminal:
        terminal.wait("P1 please")


def test_restore_inside_the_running_session(claude: ClaudeRoom) -> None:
    assert "/rewind-list" in claude.rewind("init", "--agents", "claude").stdout
    with claude.terminal(*claude.allow) as terminal:
        for number in (1, 2, 3):
            terminal.say(f"P{number} " + turn(claude, f"f{number}.txt", "x\n"),
                         f"wrote f{number}.txt now")
        until(lambda: claude.kinds()[-1] == "after", claude)
        terminal.wait("◆ [0-9]+ checkpoints")
        asked = claude.model.turns()
        terminal.say("/rewind-list", r"▸ prompt +\"P3")
        second = claude.only("prompt", "P2 ")
        terminal.say("/rewind-diff 1", r"\+\+\+ b/f3.txt")
        terminal.say("/rewind-undo", "rewind redo goes back")
        assert "f3.txt" not in claude.tree()
        terminal.say("/rewind-redo", "rewind undo goes back")
        assert "f3.txt" in claude.tree()
        terminal.say(f"/rewind-restore {second['number']} files", "goes on as it is")
        assert "f2.txt" not in claude.tree()
        terminal.say(f"/rewind-restore {second['number']}", "")
        until(lambda: sorted(claude.tree()) == ["f1.txt", "old.txt"], claude)
        terminal.wait(r"─\n❯.P2 SCRIPT")
        assert claude.model.turns() == asked, "the model was asked"
        time.sleep(1)
        terminal.keys("C-u", "C-c")
        time.sleep(1)
        terminal.say("PROBE", "ok: PROBE")
        assert claude.model.heard() == ["U:P1", "A:<Write>", "U:<result>",
                                        "A:wrote f1.txt now", "U:PROBE"]
        terminal.say("/rewind-save kept", "checkpoint #")
        assert claude.checkpoints()[-1]["label"] == "kept"


def test_without_code_of_plugins_the_same_commands_say_what_to_type(claude: ClaudeRoom) -> None:
    """An older version, or a policy; here the plugin is switched off."""
    subprocess.run([claude.program, "plugin", "disable", "rewind@coderewind"], env=claude.env(),
                   cwd=claude.folder, check=True, capture_output=True)
    with claude.terminal(*claude.allow) as terminal:
        for number in (1, 2):
            terminal.say(f"P{number} " + turn(claude, f"f{number}.txt", "x\n"),
                         f"wrote f{number}.txt now")
        until(lambda: claude.kinds()[-1] == "after", claude)
        asked = claude.model.turns()
        terminal.say("/rewind-list", r"▸ prompt +\"P2")
        second = claude.only("prompt", "P2 ")
        screen = terminal.say(f"/rewind-restore {second['number']}", r"/resume [0-9a-f-]{36}")
        assert sorted(claude.tree()) == ["f1.txt", "old.txt"]
        assert "P2 SCRIPT" in screen.partition("and then again")[2]
        what_to_type = re.search(r"/resume [0-9a-f-]{36}", screen)
        assert what_to_type
        terminal.say(what_to_type[0])
        terminal.wait(r"wrote f1.txt now(?s:(?!P2).)*$")
        assert claude.model.turns() == asked, "the model was asked"
        terminal.say("PROBE", "ok: PROBE")
    assert claude.model.heard() == ["U:P1", "A:<Write>", "U:<result>", "A:wrote f1.txt now",
                                    "U:PROBE"]


def test_what_the_user_must_know_is_on_the_screen(claude: ClaudeRoom) -> None:
    claude.rewind("config", "autoInit", "false")
    with claude.terminal(*claude.allow) as terminal:
        terminal.say("P1 " + turn(claude, "a.txt", "a\n"), "wrote a.txt now")
        terminal.wait("no checkpoints are made")
