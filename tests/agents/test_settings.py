"""Hooks merged into the agents' settings: only ours are touched, and they come out exactly."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from coderewind.agents import bundled, settings, slash, tier
from coderewind.agents.settings import FileChange, hook_command
from coderewind.errors import RewindError

from .rooms import HookRoom

OTHERS = """{
    "model": "opus",
    "permissions": {"allow": ["Bash(ls)"], "deny": []},
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo ä"}]},
            {"hooks": [{"type": "http", "url": "http://localhost/hook rewind"}]}
        ],
        "Stop": [{"hooks": [{"type": "command", "command": "say done", "async": true}]}],
        "SomethingNew": [{"unknown": 1}]
    },
    "zzz": null
}"""


def register(path: Path, name: str = "exact", agent: str = "claude", *, nested: bool = True
             ) -> FileChange:
    change = settings.plan_register(str(path), agent, tier.load(name).hooks[agent], nested=nested,
                                    exec_form=True)
    change.apply()
    return change


def unregister(path: Path, *, nested: bool = True) -> FileChange:
    change = settings.plan_unregister(str(path), nested=nested)
    change.apply()
    return change


def without_ours(data: Any) -> Any:
    for event, groups in list(data.get("hooks", {}).items()):
        kept = [g for g in groups if not any(settings.is_ours(h) for h in g.get("hooks", []))]
        if kept:
            data["hooks"][event] = kept
        else:
            del data["hooks"][event]
    return data


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "settings.json"
    path.write_text(OTHERS)
    path.chmod(0o640)
    return path


def test_everything_else_stays_in_its_place(path: Path) -> None:
    register(path)

    text = path.read_text()
    assert json.loads(text)["hooks"]["PreToolUse"][-1]["hooks"][0]["args"][-1] == "PreToolUse"
    assert list(without_ours(json.loads(text)).items()) == list(json.loads(OTHERS).items())
    assert '\n    "model"' in text, "its own indentation"
    assert "ä" in text
    assert path.stat().st_mode & 0o777 == 0o640


def test_line_ends_stay(path: Path) -> None:
    before = OTHERS.replace("\n", "\r\n").encode()
    path.write_bytes(before)
    register(path)
    assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n") > 20
    unregister(path)

    assert path.read_bytes() == before


def test_registering_again_changes_nothing(path: Path) -> None:
    register(path)
    once = path.read_bytes()

    assert not register(path).is_change
    assert path.read_bytes() == once


def test_unregistering_gives_back_the_same_bytes(path: Path, tmp_path: Path) -> None:
    for name in ("exact", "balanced", "minimal", "aggressive"):
        register(path, name)
    unregister(path)

    assert path.read_text() == OTHERS
    assert os.listdir(tmp_path) == ["settings.json"]


def test_what_was_changed_meanwhile_is_kept(path: Path) -> None:
    register(path)
    data = json.loads(path.read_text())
    data["model"] = "sonnet"
    data["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "late"}]})
    path.write_text(json.dumps(data))
    unregister(path)

    left = json.loads(path.read_text())
    assert left["model"] == "sonnet"
    assert [g["hooks"][0]["command"] for g in left["hooks"]["Stop"]] == ["say done", "late"]
    assert settings.registered_events(str(path), nested=True) == []


def test_a_changed_tier_leaves_nothing_of_the_old_one(path: Path) -> None:
    register(path, "exact")
    register(path, "minimal")

    assert settings.registered_events(str(path), nested=True) == ["SessionStart"]


def test_our_handler_in_a_group_with_others_is_taken_out_alone(path: Path) -> None:
    register(path)
    data = json.loads(path.read_text())
    data["hooks"]["Stop"][-1]["hooks"].append({"type": "command", "command": "joined"})
    path.write_text(json.dumps(data))
    unregister(path)

    assert json.loads(path.read_text())["hooks"]["Stop"][-1]["hooks"] == [
        {"type": "command", "command": "joined"}]


def test_a_file_that_was_not_there_goes_again(tmp_path: Path) -> None:
    path = tmp_path / "config" / "settings.json"
    register(path)
    assert path.stat().st_mode & 0o777 == 0o600
    unregister(path)

    assert not path.exists()


def test_a_link_is_followed(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(path)
    register(link)

    assert link.is_symlink()
    assert settings.registered_events(str(path), nested=True)
    unregister(link)
    assert path.read_text() == OTHERS


@pytest.mark.parametrize(("content", "words"), [
    ('{\n "a": 1,\n "b" 2\n}', "line 3 column 6"),
    ("[]", "does not hold a JSON object"),
    ('{"a": 1, "a": 2}', "twice"),
    ('{"hooks": []}', "not an object"),
    ('{"hooks": {"Stop": {}}}', "hooks.Stop is not a list"),
    ("{", "line 1 column 2"),
    ("\xff", "not valid JSON"),
])
def test_a_file_that_is_not_understood_is_refused(path: Path, content: str, words: str) -> None:
    path.write_text(content)

    with pytest.raises(RewindError, match=words):
        register(path)

    assert path.read_text() == content


def test_a_change_by_somebody_else_in_between_is_not_overwritten(path: Path) -> None:
    change = settings.plan_register(str(path), "claude", tier.load("exact").hooks["claude"],
                                    nested=True, exec_form=True)
    path.write_text("{}")

    with pytest.raises(RewindError, match="meanwhile"):
        change.apply()

    assert path.read_text() == "{}"


def test_the_shell_form_runs_the_same_command(tmp_path: Path) -> None:
    path = tmp_path / "hooks.json"
    change = settings.plan_register(str(path), "droid", tier.load("exact").hooks["droid"],
                                    nested=False, exec_form=False)
    change.apply()

    handler = json.loads(path.read_text())["SessionStart"][0]["hooks"][0]
    assert settings.is_ours(handler)
    ended = subprocess.run(["sh", "-c", handler["command"]], input=b"{", capture_output=True,
                           env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]}, check=False)
    assert ended.returncode == 0
    assert b"rewind" in ended.stdout


def test_a_package_that_is_gone_blocks_no_tool(tmp_path: Path) -> None:
    command = hook_command("claude", "PreToolUse")
    command[4] = command[4].replace("src", "gone")

    ended = subprocess.run(command, input=b"{}", capture_output=True, check=False)

    assert ended.returncode == 1, "2 would block"


# ---- by the commands


def test_slash_commands_come_and_go_and_those_of_the_user_stay(hooks: HookRoom) -> None:
    folder = hooks.home / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "rewind-save.md").write_text("mine\n")
    ended = hooks.rewind("init", "--agents", "claude")
    assert "/rewind-save is a command of yours already" in ended.stderr
    assert sorted(path.stem for path in folder.iterdir()) == sorted(slash.NAMES)

    (folder / "rewind-list.md").write_text("of an older version. A hook of coderewind answers this "
                                           "command\n")
    assert hooks.rewind("config", "--register-hooks", "--agents", "claude").returncode == 0
    assert "List the checkpoints" in (folder / "rewind-list.md").read_text()
    hooks.rewind("init", "--remove", "claude")
    assert [path.name for path in folder.iterdir()] == ["rewind-save.md"]
    assert (folder / "rewind-save.md").read_text() == "mine\n"


def test_the_plugin_and_the_files_offer_the_same_commands() -> None:
    folder = Path(bundled.folder("claude"))
    offered = re.findall(r"\['(rewind-\w+)', '(.+)', '(.*)'\]",
                         (folder / "rewind/hooks/register.ts").read_text())
    assert tuple(name for name, _, _ in offered) == slash.NAMES
    for name, description, hint in offered:
        lines = (folder / "commands" / f"{name}.md").read_text().splitlines()
        assert f"description: {description}" in lines
        assert (f'argument-hint: "{hint}"' in lines) == bool(hint)


def test_droid_hooks_join_those_that_are_in_settings_json(hooks: HookRoom) -> None:
    folder = hooks.home / ".factory"
    folder.mkdir()
    (folder / "settings.json").write_text(OTHERS)
    hooks.rewind("init", "--agents", "droid")

    assert not (folder / "hooks.json").exists(), "it would silence the others"
    assert "coderewind" in (folder / "settings.json").read_text()
    hooks.rewind("config", "--unregister-hooks")
    assert (folder / "settings.json").read_text() == OTHERS


def test_droid_hooks_go_into_hooks_json_otherwise(hooks: HookRoom) -> None:
    folder = hooks.home / ".factory"
    folder.mkdir()
    (folder / "settings.json").write_text("{}")
    hooks.rewind("init", "--agents", "droid")

    assert "SessionStart" in json.loads((folder / "hooks.json").read_text())
    assert (folder / "settings.json").read_text() == "{}"


def test_an_older_agent_gets_no_event_that_it_does_not_know(hooks: HookRoom) -> None:
    """It would skip the whole file: the user's permissions, environment and hooks."""
    program = hooks.home / "bin" / "claude"
    program.parent.mkdir()
    hooks.bin = str(program.parent)
    path = hooks.home / ".claude" / "settings.json"
    new = {"PostToolBatch", "UserPromptExpansion", "CwdChanged"}

    def register(version: str) -> set[str]:
        program.write_text(f"#!/bin/sh\necho '{version} (Claude Code)'\n")
        program.chmod(0o755)
        hooks.rewind("config", "--register-hooks", "--agents", "claude", "--yes")
        return set(settings.registered_events(str(path), nested=True))

    assert register("2.1.280") >= new
    program.write_text("#!/bin/sh\necho 2.1.117\n")
    said = hooks.rewind("doctor", ok=False).stdout
    assert "Claude Code 2.1.117 does not know PostToolBatch and so skips all of" in said
    assert new - register("2.1.117") == {"PostToolBatch"}
    said = hooks.rewind("doctor", ok=False).stdout
    assert "skips" not in said
    assert "conversations cannot" in said
    register("2.1.196")
    assert "problem" not in hooks.rewind("doctor", ok=False).stdout
    assert new & register("2.1.0") == set()
    assert "PostToolUseFailure" not in register("2.0.55")
    assert "PreToolUse" in register("1.0.100")


def test_a_tier_reregisters_the_agents_that_are_connected(hooks: HookRoom) -> None:
    hooks.rewind("init", "--agents", "claude")
    path = hooks.home / ".claude" / "settings.json"
    hooks.rewind("config", "--tier", "minimal")

    assert settings.registered_events(str(path), nested=True) == [
        "SessionStart", "UserPromptExpansion"]
    assert not (hooks.home / ".factory" / "hooks.json").exists()


def test_there_are_never_two_registrations(hooks: HookRoom) -> None:
    hooks.rewind("config", "--register-hooks", "--agents", "claude")
    ended = hooks.rewind("config", "--register-hooks", "--agents", "claude", "--scope", "project",
                         ok=False)

    assert ended.returncode == 1
    assert "already" in ended.stderr
    assert not (hooks.folder / ".claude").exists()


def test_project_scope_writes_the_file_that_is_not_committed(hooks: HookRoom) -> None:
    hooks.rewind("config", "--register-hooks", "--agents", "claude", "--scope", "project")

    assert (hooks.folder / ".claude" / "settings.local.json").exists()
    assert not (hooks.home / ".claude").exists()
    hooks.rewind("config", "--unregister-hooks")
    assert not (hooks.folder / ".claude" / "settings.local.json").exists()


def test_nothing_is_connected_without_a_word(hooks: HookRoom) -> None:
    (hooks.home / ".claude").mkdir()
    hooks.rewind("init", "--yes")
    hooks.rewind("init", "--agents", "none")

    assert os.listdir(hooks.home / ".claude") == []


def test_an_existing_registration_is_changed_only_when_asked(hooks: HookRoom) -> None:
    hooks.rewind("config", "--register-hooks", "--agents", "claude")
    path = hooks.home / ".claude" / "settings.json"
    before = path.read_text()
    said = hooks.rewind("config", "tier", "minimal").stdout
    assert "the hooks of claude stay as they are" in said
    ended = hooks.rewind("config", "--register-hooks", "--agents", "claude", ok=False)

    assert ended.returncode == 2
    assert path.read_text() == before
    hooks.rewind("config", "--register-hooks", "--agents", "claude", "--yes")
    assert settings.registered_events(str(path), nested=True) == [
        "SessionStart", "UserPromptExpansion"]


def test_an_unknown_agent_is_named(hooks: HookRoom) -> None:
    ended = hooks.rewind("init", "--agents", "claude,cursor", ok=False)

    assert ended.returncode == 2
    assert "'cursor'" in ended.stderr


def test_doctor_says_how_each_agent_is_connected(hooks: HookRoom) -> None:
    (hooks.home / ".factory").mkdir()
    hooks.rewind("init", "--agents", "claude")
    said = hooks.rewind("doctor", ok=False).stdout
    assert f"connected in {hooks.home}/.claude/settings.json; last heard: no event yet" in said
    assert "Droid: not connected: rewind init --agents droid" in said
    assert "claude is not in PATH" in said

    hooks.hook("SessionStart", source="startup")
    path = hooks.home / ".claude" / "settings.json"
    path.write_text(path.read_text().replace("-I", "-E"))
    agents = {row["agent"]: row
              for row in json.loads(hooks.rewind("doctor", "--json", ok=False).stdout)["agents"]}

    assert agents["claude"]["lastEvent"] == "SessionStart"
    assert any("not this installation's" in words for words in agents["claude"]["problems"])
    assert agents["droid"] == {"agent": "droid", "program": "", "version": "", "connected": [],
                               "lastEvent": "", "lastEventTime": 0.0, "problems": []}


def test_doctor_says_that_hooks_are_switched_off(hooks: HookRoom) -> None:
    hooks.rewind("init", "--agents", "claude,droid")
    committed = hooks.folder / ".claude" / "settings.json"
    committed.parent.mkdir()
    committed.write_text('{"disableAllHooks": true}')
    path = hooks.home / ".factory" / "hooks.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "hooksDisabled": True}))

    said = hooks.rewind("doctor", ok=False).stdout

    assert f"hooks are switched off in {committed}" in said
    assert f"hooks are switched off in {path}" in said
    hooks.rewind("config", "--register-hooks", "--agents", "droid")
    assert json.loads(path.read_text())["hooksDisabled"] is True


def test_doctor_names_settings_that_cannot_be_read(hooks: HookRoom) -> None:
    hooks.rewind("init", "--agents", "claude")
    (hooks.home / ".claude" / "settings.json").write_text("{\n oops")
    ended = hooks.rewind("doctor", ok=False)

    assert ended.returncode == 1
    assert "line 2 column 2" in ended.stdout
