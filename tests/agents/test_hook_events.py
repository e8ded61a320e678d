"""What each event becomes: hooks called by hand, in the shapes that agents were seen to send."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from coderewind.agents.settings import hook_command

from .rooms import HookRoom

PAYLOADS = sorted((Path(__file__).parent / "payloads").glob("*/*.json"))


@pytest.mark.parametrize("path", PAYLOADS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_recorded_payload_is_taken_silently(hooks: HookRoom, path: Path) -> None:
    payload = json.loads(path.read_text())
    payload["cwd"] = str(hooks.folder)
    event = payload.get("hook_event_name", "StatusLine")

    ended = hooks.raw(event, json.dumps(payload).encode(), agent=path.parent.name)

    assert ended.stdout == ""
    assert hooks.log() == ""
    registered = event == "UserPromptExpansion" or any(
        row["event"] == event for row in _exact()[path.parent.name])
    assert ended.returncode == (0 if registered else ended.returncode)
    assert ended.returncode in (0, 1), "2 would block a tool"


def _exact() -> dict[str, list[dict[str, str]]]:
    tiers = Path(__file__).parents[2] / "src/coderewind/tiers"
    found: dict[str, list[dict[str, str]]] = json.loads((tiers / "exact.json").read_text())["hooks"]
    return found


def test_a_turn_reads_as_what_was_asked_and_done(hooks: HookRoom) -> None:
    hooks.hook("SessionStart", source="startup")
    hooks.hook("UserPromptSubmit", prompt="use JWT")
    hooks.tool("PreToolUse", "Edit", "t1", file_path="/x/auth.py")
    (hooks.folder / "auth.py").write_text("jwt\n")
    hooks.tool("PostToolUse", "Edit", "t1", file_path="/x/auth.py")
    hooks.tool("PreToolUse", "Bash", "t2", command="pytest")
    hooks.tool("PostToolUse", "Bash", "t2", command="pytest")
    hooks.hook("Stop")

    assert hooks.kinds() == ["start", "prompt", "after"]
    after = hooks.only("after")
    assert after["label"] == '"use JWT" → Edit auth.py, Bash pytest'
    assert after["files"] == 1
    assert after["agent"] == "claude"
    assert hooks.only("prompt")["prompt"] == "use JWT"


def test_unchanged_files_make_no_checkpoint(hooks: HookRoom) -> None:
    hooks.hook("UserPromptSubmit", prompt="look around")
    for number in range(3):
        hooks.tool("PreToolUse", "Bash", f"t{number}", command="ls")
        hooks.tool("PostToolUse", "Bash", f"t{number}", command="ls")
    hooks.hook("SubagentStop", agent_id="a1", agent_type="Explore")
    hooks.hook("SessionEnd", reason="other")

    assert hooks.kinds() == ["settle", "prompt"]
    assert hooks.only("settle")["label"] == "first checkpoint"


def test_what_the_user_changes_between_turns_is_a_checkpoint_of_its_own(hooks: HookRoom) -> None:
    hooks.hook("UserPromptSubmit", prompt="one")
    hooks.hook("Stop")
    (hooks.folder / "mine.txt").write_text("by hand\n")
    hooks.hook("UserPromptSubmit", prompt="two", prompt_id="p2")

    assert hooks.kinds()[-2:] == ["settle", "prompt"]
    assert hooks.checkpoints()[-2]["label"] == "changed outside the agent"
    (hooks.folder / "mine.txt").unlink()
    hooks.rewind("restore", str(hooks.checkpoints()[-2]["number"]), "--yes", "--code-only")
    assert hooks.tree()["mine.txt"] == b"by hand\n"


def test_an_interrupted_tool_is_settled_at_the_next_prompt(hooks: HookRoom) -> None:
    hooks.hook("UserPromptSubmit", prompt="one")
    hooks.tool("PreToolUse", "Bash", "t1", command="make slow")
    (hooks.folder / "half.o").write_text("half\n")
    hooks.hook("UserPromptSubmit", prompt="two", prompt_id="p2")

    assert hooks.checkpoints()[-2]["label"] == "interrupted: Bash make slow"


@pytest.mark.parametrize(("session", "source", "label"), [
    ("s1", "resume", "interrupted: Bash make slow"), ("s2", "startup", "changed outside the agent"),
])
def test_what_a_killed_agent_left_is_settled_when_it_starts_again(
    hooks: HookRoom, session: str, source: str, label: str
) -> None:
    hooks.hook("UserPromptSubmit", prompt="one")
    hooks.tool("PreToolUse", "Bash", "t1", command="make slow")
    (hooks.folder / "half.o").write_text("half\n")
    known = len(hooks.checkpoints())
    hooks.hook("SessionStart", source=source, session_id=session)

    settle, *start = hooks.checkpoints()[known:]
    assert (settle["kind"], settle["label"], settle["files"]) == ("settle", label, 1)
    assert [cp["kind"] for cp in start] == (["start"] if source == "startup" else [])


def test_a_background_command_is_settled_when_its_news_come(hooks: HookRoom) -> None:
    hooks.hook("UserPromptSubmit", prompt="serve")
    hooks.tool("PreToolUse", "Bash", "t1", command="npm run build", run_in_background=True)
    hooks.tool("PostToolUse", "Bash", "t1", command="npm run build", run_in_background=True)
    hooks.hook("Stop")
    (hooks.folder / "built.js").write_text("1\n")
    hooks.hook("UserPromptSubmit", prompt="<task-notification>\n<task-id>x", prompt_id="p2")

    last = hooks.checkpoints()[-1]
    assert (last["kind"], last["label"]) == ("settle", "in the background: Bash npm run build")


def test_calls_that_overlap_are_marked_and_their_batch_is_exact(hooks: HookRoom) -> None:
    hooks.hook("UserPromptSubmit", prompt="both")
    hooks.tool("PreToolUse", "Write", "t1", file_path="/x/a.txt")
    hooks.tool("PreToolUse", "Write", "t2", file_path="/x/b.txt")
    (hooks.folder / "a.txt").write_text("a\n")
    hooks.tool("PostToolUse", "Write", "t1", file_path="/x/a.txt")
    (hooks.folder / "b.txt").write_text("b\n")
    hooks.tool("PostToolUse", "Write", "t2", file_path="/x/b.txt")
    hooks.hook("PostToolBatch", tool_calls=[
        {"tool_name": "Write", "tool_use_id": "t1", "tool_input": {"file_path": "/x/a.txt"}},
        {"tool_name": "Write", "tool_use_id": "t2", "tool_input": {"file_path": "/x/b.txt"}},
    ])

    first, batch = hooks.checkpoints()[-2:]
    assert (first["kind"], first["flags"]) == ("tool", ["parallel"])
    assert (batch["kind"], batch["flags"]) == ("batch", [])
    assert batch["label"] == "Write a.txt, Write b.txt"
    shown = hooks.rewind("list").stdout
    assert f"#{batch['number']} " in shown
    assert f"#{first['number']} " not in shown
    assert f"#{first['number']} " in hooks.rewind("list", "--all").stdout


@pytest.mark.parametrize("ended", ["t1", "other", ""])
def test_a_batch_of_one_call_is_looked_at_unless_that_very_call_was(
    hooks: HookRoom, ended: str
) -> None:
    """Claude Code tells of an edit that it refused, and of one that was denied, only so."""
    hooks.hook("UserPromptSubmit", prompt="one")
    if ended:
        hooks.tool("PreToolUse", "Edit", ended, file_path="/x/a.txt")
        hooks.tool("PostToolUse", "Edit", ended, file_path="/x/a.txt")
    (hooks.folder / "a.txt").write_text("a\n")
    payload = {"session_id": "s1", "cwd": str(hooks.folder), "prompt_id": "p1", "tool_calls": [
        {"tool_name": "Edit", "tool_input": {"file_path": "/x/a.txt",
         "new_string": '"tool_use_id":"other"'}, "tool_use_id": "t1"}]}
    hooks.raw("PostToolBatch", json.dumps(payload, separators=(",", ":")).encode())

    assert ("batch" in hooks.kinds()) == (ended != "t1")


@pytest.mark.parametrize("command", [
    "git reset --hard HEAD~1", "cd x && git checkout -- .", "git clean -fdx", "git stash",
    "rm -rf build", "git -C sub reset --hard", "bash -c 'rm -fr x'", "git branch -D topic",
    "sudo rm -r x", "git restore .", "git checkout .", "find . -name '*.o' -delete",
    "git checkout src/app.py", "git checkout HEAD~2 app.py && make",
])
def test_a_command_that_throws_work_away_is_preceded_by_a_marked_checkpoint(
    hooks: HookRoom, command: str
) -> None:
    hooks.hook("UserPromptSubmit", prompt="tidy up")
    before = len(hooks.checkpoints())
    hooks.tool("PreToolUse", "Bash", "t1", command=command)

    found = hooks.checkpoints()[before:]
    assert [cp["flags"] for cp in found] == [["destructive"]]
    assert "⚠" in hooks.rewind("list").stdout


@pytest.mark.parametrize("command", [
    "git status", "git stash list", "ls -rf", "git checkout -b new", "npm run clean",
    "echo term", "git log --stat", "git commit -m 'reset'", "git checkout main",
    "git checkout v1.2", "git checkout feature/x",
])
def test_other_commands_are_not(hooks: HookRoom, command: str) -> None:
    hooks.hook("UserPromptSubmit", prompt="look")
    before = len(hooks.checkpoints())
    hooks.tool("PreToolUse", "Bash", "t1", command=command)

    assert len(hooks.checkpoints()) == before


def test_what_git_commands_threw_away_is_brought_back_by_the_printed_ones(hooks: HookRoom) -> None:
    (hooks.folder / "new.txt").write_text("2\n")
    hooks.git("add", "new.txt")
    hooks.git("commit", "-qm", "second")
    hooks.git("branch", "topic")
    for content in ("3\n", "4\n"):
        (hooks.folder / "new.txt").write_text(content)
        hooks.git("stash", "-q")
    stashes = hooks.git("log", "-g", "--format=%H %gs", "stash")
    (hooks.folder / "staged.txt").write_text("s\n")
    hooks.git("add", "staged.txt")
    lost = hooks.git("rev-parse", "HEAD").strip()
    hooks.hook("UserPromptSubmit", prompt="tidy up")
    hooks.tool("PreToolUse", "Bash", "t1", command="git reset --hard HEAD~1; git stash clear")
    number = str(hooks.only("before")["number"])
    hooks.git("reset", "-q", "--hard", "HEAD~1")
    hooks.git("stash", "clear")
    hooks.git("branch", "-D", "topic")

    printed = re.findall(r"^  git .*: (git .*)$", hooks.rewind("show", number).stdout, re.M)
    assert len(printed) == 4
    for command in printed:
        subprocess.run(["sh", "-c", command], cwd=hooks.folder, env=hooks.env(), check=True)
    assert hooks.git("rev-parse", "rescued-main", "rescued-topic").split() == [lost, lost]
    assert hooks.git("log", "-g", "--format=%H %gs", "stash") == stashes
    hooks.rewind("restore", number, "--yes", "--index")
    assert hooks.tree()["new.txt"] == b"2\n"
    assert "A  staged.txt" in hooks.git("status", "--porcelain")


def test_commits_that_no_branch_holds_are_named_again(hooks: HookRoom) -> None:
    hooks.git("checkout", "-q", "--detach")
    hooks.git("commit", "-q", "--allow-empty", "-m", "alone")
    lost = hooks.git("rev-parse", "HEAD").strip()
    hooks.hook("UserPromptSubmit", prompt="tidy up")
    hooks.tool("PreToolUse", "Bash", "t1", command="git reset --hard main")
    hooks.git("reset", "-q", "--hard", "main")

    shown = hooks.rewind("show", str(hooks.only("before")["number"])).stdout
    assert f"git branch rescued-HEAD {lost}" in shown


def test_the_newest_compaction_and_clear_are_points(hooks: HookRoom) -> None:
    hooks.hook("UserPromptSubmit", prompt="one")
    hooks.hook("PreCompact", trigger="manual")
    hooks.hook("SessionStart", source="compact")
    hooks.hook("SessionStart", source="clear", session_id="s2")

    assert hooks.kinds() == ["settle", "prompt", "compact", "start"]
    show = json.loads(hooks.rewind("show", "@", "--json").stdout)
    assert show["anchor"]["parent_session"] == "s1"


# ---- commands that are typed inside the agent


def typed(hooks: HookRoom, command: str, arguments: str = "") -> str:
    ended = hooks.hook("UserPromptExpansion", ok=False, command_name=command,
                       command_args=arguments, prompt=f"/{command} {arguments}")
    assert (ended.returncode, ended.stderr) == (0, "")
    if not ended.stdout:
        return ""
    answer = json.loads(ended.stdout)
    assert answer["decision"] == "block"
    return str(answer["reason"])


def test_typed_commands_are_answered(hooks: HookRoom) -> None:
    hooks.hook("UserPromptSubmit", prompt="one")
    (hooks.folder / "old.txt").write_text("v1\n")

    assert "checkpoint #3" in typed(hooks, "rewind-save", "kept -- so")
    assert "kept -- so" in typed(hooks, "rewind-list")
    assert "-v1" in typed(hooks, "rewind-diff", "3 1")
    assert "change  old.txt" in typed(hooks, "rewind-undo")
    assert hooks.tree()["old.txt"] == b"v0\n"
    assert "change  old.txt" in typed(hooks, "rewind-redo")
    assert "the conversation goes on as it is" in typed(hooks, "rewind-restore", "1 files")
    assert hooks.tree()["old.txt"] == b"v0\n"
    assert "/rewind-list" in typed(hooks, "rewind-restore")
    assert "no checkpoint matches" in typed(hooks, "rewind-restore", "77")
    assert typed(hooks, "compact") == ""


def test_a_long_answer_is_cut(hooks: HookRoom) -> None:
    hooks.hook("UserPromptSubmit", prompt="one")
    (hooks.folder / "long.txt").write_text("x\n" * 1000)

    said = typed(hooks, "rewind-diff", "1").splitlines()

    assert len(said) < 210
    assert "in a shell: rewind diff 1" in said[-1]


# ---- tiers and settings


def test_balanced_is_before_edits_and_at_most_one_in_30_seconds(hooks: HookRoom) -> None:
    hooks.rewind("config", "--tier", "balanced")
    hooks.hook("SessionStart", source="startup")
    hooks.hook("UserPromptSubmit", prompt="one")
    (hooks.folder / "a.txt").write_text("1\n")
    hooks.tool("PreToolUse", "Edit", "t1", file_path="/x/a.txt", new_string="x" * 100)
    assert hooks.kinds() == ["start"]

    hooks.rewind("config", "antiSpam.enabled", "false")
    hooks.tool("PreToolUse", "Edit", "t2", file_path="/x/a.txt", new_string="small")
    assert hooks.kinds() == ["start"], "below significance.minChangeSize"
    hooks.tool("PreToolUse", "Edit", "t3", file_path="/x/a.txt", new_string="x" * 100)
    assert hooks.kinds() == ["start", "before"]
    hooks.rewind("config", "antiSpam.enabled", "true")
    hooks.tool("PreToolUse", "Bash", "t4", command="rm -rf a.txt")
    assert hooks.kinds() == ["start", "before", "before"], "never left out"
    hooks.rewind("config", "antiSpam.enabled", "false")
    (hooks.folder / "a.txt").write_text("2\n")
    hooks.tool("PreToolUse", "Edit", "t5", file_path="/x/b.txt", new_string="x" * 100)
    assert [(cp["label"], cp["flags"]) for cp in hooks.checkpoints()[1:]] == [
        ("before Edit a.txt", []), ("before Bash rm -rf a.txt", ["destructive"]),
        ("before Edit b.txt", [])]


def test_aggressive_takes_in_what_it_leaves_out(hooks: HookRoom) -> None:
    hooks.rewind("config", "--tier", "aggressive")
    hooks.rewind("config", "antiSpam.enabled", "false")
    hooks.hook("SessionStart", source="startup")
    hooks.hook("UserPromptSubmit", prompt="one")
    (hooks.folder / "a.txt").write_text("1\n")
    hooks.tool("PreToolUse", "Bash", "t1", command="make")
    hooks.tool("PostToolUse", "Bash", "t1", command="make")
    hooks.hook("Stop")
    (hooks.folder / "a.txt").write_text("2\n")
    hooks.hook("UserPromptSubmit", prompt="two", prompt_id="p2")
    (hooks.folder / "a.txt").write_text("3\n")
    hooks.hook("SessionStart", source="startup", session_id="s2")

    assert [(cp["kind"], cp["label"]) for cp in hooks.checkpoints()[1:]] == [
        ("prompt", ""), ("after", '"one" → Bash make'),
        ("settle", "changed since the last checkpoint"), ("prompt", ""),
        ("start", "session started")]
    assert not any(cp["flags"] for cp in hooks.checkpoints())


def test_minimal_is_the_start_of_sessions(hooks: HookRoom) -> None:
    hooks.rewind("config", "--tier", "minimal")
    hooks.hook("SessionStart", source="startup")
    hooks.hook("UserPromptSubmit", prompt="one")
    hooks.hook("Stop")

    assert hooks.kinds() == ["start"]


def test_without_auto_init_the_user_is_told_once(hooks: HookRoom) -> None:
    hooks.rewind("config", "autoInit", "false")

    first = hooks.hook("SessionStart", source="startup", ok=False)
    second = hooks.hook("UserPromptSubmit", prompt="one", ok=False)

    assert (first.returncode, second.returncode) == (0, 0)
    assert "rewind init" in json.loads(first.stdout)["systemMessage"]
    assert (second.stdout, second.stderr) == ("", "")
    assert "not protected" in hooks.rewind("status").stdout


def test_a_session_that_walks_away_protects_no_strange_folder(
    hooks: HookRoom, tmp_path: Path
) -> None:
    strange = tmp_path / "strange"
    strange.mkdir()
    hooks.hook("UserPromptSubmit", prompt="one")
    (hooks.folder / "a.txt").write_text("1\n")
    hooks.hook("CwdChanged", cwd=str(strange), old_cwd=str(hooks.folder), new_cwd=str(strange))

    assert hooks.kinds()[-1] == "settle"
    ended = hooks.rewind("-C", str(strange), "list", ok=False)
    assert "not protected" in ended.stderr


def test_a_worktree_entered_within_the_session_is_the_one_captured(
    hooks: HookRoom, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    hooks.hook("UserPromptSubmit", prompt="one")
    hooks.git("worktree", "add", "-q", str(linked))
    (linked / "there.txt").write_text("1\n")
    hooks.hook("PostToolUse", cwd=str(linked), tool_name="EnterWorktree", tool_use_id="t",
               tool_input={"name": "linked"})

    listed = json.loads(hooks.rewind("-C", str(linked), "list", "--json").stdout)["checkpoints"]
    assert [cp["kind"] for cp in listed] == ["tool"]


# ---- whatever happens, the agent goes on


@pytest.mark.parametrize("payload", [
    b"", b"{", b"null", b"[]", b'"x"', b"\xff\xfe", b"{}", b'{"session_id": 1}',
    b'{"session_id": "../../etc/passwd"}', b'{"session_id": "s1", "cwd": "/nowhere"}',
    b'{"session_id": "s1", "cwd": 7, "transcript_path": [], "tool_name": {}, "tool_input": 3}',
    b'{"session_id": "s1", "cwd": "relative", "prompt": null, "prompt_id": "a/b"}',
    b"[" * 100_000, b'{"session_id": "s1", "prompt": "\\ud800"}',
], ids=lambda payload: repr(payload[:20]))
@pytest.mark.parametrize("event", ["PreToolUse", "UserPromptSubmit", "PostToolBatch"])
def test_a_broken_payload_never_stops_the_agent(
    hooks: HookRoom, event: str, payload: bytes
) -> None:
    ended = hooks.raw(event, payload)

    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr
    assert "bug" not in ended.stderr
    assert ended.stdout == "" or "systemMessage" in json.loads(ended.stdout)


def test_a_failure_is_logged_without_the_users_words_and_said_once(hooks: HookRoom) -> None:
    hooks.hook("SessionStart", source="startup")
    store = next((hooks.home / ".rewind/storage").iterdir())
    (store / "about.json").write_text("damaged")

    said = [hooks.hook("UserPromptSubmit", prompt="my secret", ok=False) for _ in range(3)]

    assert [ended.returncode for ended in said] == [0, 0, 0]
    assert "damaged" in json.loads(said[0].stdout)["systemMessage"]
    assert [ended.stdout for ended in said[1:]] == ["", ""]
    assert hooks.log().count("UserPromptSubmit") == 3
    assert "secret" not in hooks.log()


def test_captures_that_take_too_long_are_not_tried_at_every_tool(hooks: HookRoom) -> None:
    def too_slow(event: str) -> str:
        command = hook_command("claude", event)
        command[4] = command[4].replace("; main()", "; from coderewind.hooks import entry; "
                                        "entry._observe = lambda *given: entry._time_up(0, None)"
                                        "; main()")
        payload = {"session_id": "s1", "cwd": str(hooks.folder), "prompt_id": "p1",
                   "tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "make"}}
        return subprocess.run(command, input=json.dumps(payload), cwd=hooks.folder, text=True,
                              env=hooks.env(), capture_output=True, check=True).stdout

    def post() -> int:
        hooks.tool("PostToolUse", "Bash", "t1", command="make")
        return len(hooks.checkpoints())

    hooks.hook("UserPromptSubmit", prompt="one")
    before = len(hooks.checkpoints())
    (hooks.folder / "a.txt").write_text("1\n")
    assert "took too long" in json.loads(too_slow("PreToolUse"))["systemMessage"]
    assert too_slow("PreToolUse") == "", "once"
    assert post() == before
    assert too_slow("Stop") == ""
    assert len(hooks.checkpoints()) == before
    hooks.hook("Stop")
    assert len(hooks.checkpoints()) == before + 1
    (hooks.folder / "a.txt").write_text("2\n")
    assert post() == before + 2


def test_an_unknown_event_is_refused_without_blocking(hooks: HookRoom) -> None:
    assert hooks.raw("NoSuchEvent", b"{}").returncode == 1
    assert hooks.raw("pre-tool-use", b"{}").returncode == 0, "the seed's spelling"


def test_a_killed_hook_leaves_nothing_behind_that_stops_the_next(hooks: HookRoom) -> None:
    hooks.hook("SessionStart", source="startup")
    for number in range(400):
        (hooks.folder / f"f{number}.txt").write_text(f"{number}\n" * 200)
    payload = json.dumps({"session_id": "s1", "cwd": str(hooks.folder), "prompt": "x",
                          "prompt_id": "p1"}).encode()
    for pause in (0.0, 0.03, 0.05, 0.07, 0.09, 0.12):
        process = subprocess.Popen(hook_command("claude", "UserPromptSubmit"), env=hooks.env(),
                                   stdin=subprocess.PIPE, cwd=hooks.folder)
        assert process.stdin is not None
        process.stdin.write(payload)
        process.stdin.close()
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.wait()
    hooks.hook("UserPromptSubmit", prompt="again", prompt_id="p2")
    wanted = hooks.tree()

    number = hooks.checkpoints()[-1]["number"]
    for name in os.listdir(hooks.folder):
        if name.startswith("f"):
            (hooks.folder / name).unlink()
    hooks.rewind("restore", str(number), "--yes", "--code-only")
    assert hooks.tree() == wanted
    assert "all is well" in hooks.rewind("doctor").stdout


def test_parallel_hooks_of_two_sessions_lose_nothing(hooks: HookRoom) -> None:
    hooks.hook("SessionStart", source="startup")

    def turn(session: str) -> None:
        for number in range(4):
            hooks.hook("UserPromptSubmit", session_id=session, prompt=f"{session} {number}",
                       prompt_id=f"{session}-{number}")

    threads = [threading.Thread(target=turn, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    prompts = [cp["prompt"] for cp in hooks.checkpoints() if cp["kind"] == "prompt"]
    assert sorted(prompts) == sorted(f"{s} {n}" for s in ("one", "two") for n in range(4))
    assert [cp["number"] for cp in hooks.checkpoints()] == list(range(1, 10))


def test_what_is_kept_of_a_session_is_private(hooks: HookRoom) -> None:
    hooks.hook("UserPromptSubmit", prompt="my secret")

    for top, folders, names in os.walk(hooks.home / ".rewind"):
        for name in [*folders, *names]:
            mode = os.lstat(os.path.join(top, name)).st_mode
            assert mode & 0o077 == 0, os.path.join(top, name)
