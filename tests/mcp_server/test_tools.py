"""`rewind mcp`: what an agent may do, with the SDK's own client over stdio."""

import json

import pytest
from corpus.box import Box

from .client import Agent, said

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])  # with a handshake; without
LOOK = {"list_checkpoints", "show_checkpoint", "diff_checkpoints"}
HARMLESS = LOOK | {"save_checkpoint", "label_checkpoint"}


def allow(box: Box) -> None:
    box.rewind("config", "agents.mayRestore", "true")


def test_an_agent_can_look_save_and_label_and_nothing_else(plain: Box) -> None:
    tools = Agent(plain).tools()

    assert tools.keys() == HARMLESS
    assert {name for name, tool in tools.items() if tool.annotations.read_only_hint} == LOOK


def test_restoring_is_offered_when_the_user_allowed_it_and_deleting_never(plain: Box) -> None:
    plain.rewind("init")
    allow(plain)

    assert Agent(plain).tools().keys() == HARMLESS | {"restore_checkpoint", "undo"}


@ERAS
def test_save_holds_the_folder_and_says_who_saved(plain: Box, mode: str) -> None:
    Agent(plain, mode).call("save_checkpoint", description="it  works\nnow")

    (row,) = plain.rewind("list")["checkpoints"]
    assert (row["label"], row["agent"], row["kind"]) == ("it works now", "mcp", "save")
    before = plain.picture()
    plain.write("a.txt", "spoiled")
    plain.rewind("restore", "1", "--yes")
    plain.assert_like(before)


def test_saving_what_is_saved_already_gives_the_same_checkpoint(plain: Box) -> None:
    first, second = Agent(plain).calls(("save_checkpoint", {}), ("save_checkpoint", {}))

    assert (first["number"], first["reused"]) == (1, False)
    assert (second["number"], second["reused"]) == (1, True)


def test_saving_protects_no_folder_when_the_user_forbade_that(plain: Box) -> None:
    plain.rewind("config", "autoInit", "false")

    words = Agent(plain).refused("save_checkpoint")

    assert words == ("this folder is not protected yet; "
                     "rewind init protects it and takes the first checkpoint")


def test_list_show_and_diff_say_what_changed(plain: Box) -> None:
    plain.rewind("save", "one")
    plain.write("a.txt", "b\n").write(b"odd\xff", "x\n")
    plain.rewind("save")

    listed, shown, compared, short = Agent(plain).calls(
        ("list_checkpoints", {"limit": 1}), ("show_checkpoint", {"checkpoint": 2}),
        ("diff_checkpoints", {"since": "one", "until": "@", "paths": ["a.txt"]}),
        ("diff_checkpoints", {"since": 1, "stat": True}))

    assert [row["number"] for row in listed["checkpoints"]] == [2]
    assert listed["older"] == 1
    assert shown["changes"] == [{"path": "a.txt", "status": "M"},
                                {"path": "odd\\udcff", "status": "A"}]
    assert "-a\n+b\n" in compared
    assert "odd" not in compared
    assert "2 files changed" in short


def test_a_large_diff_is_cut_and_says_so(plain: Box) -> None:
    plain.rewind("save")
    plain.write("large.txt", "".join(f"line {n}\n" for n in range(20_000)))

    answer = Agent(plain).call("diff_checkpoints")

    assert len(answer) < 61_000
    assert answer.splitlines()[-1].startswith("… cut: 60000 of ")


def test_an_agent_names_what_has_no_name_and_renames_nothing(plain: Box) -> None:
    plain.rewind("save")

    Agent(plain).call("label_checkpoint", checkpoint="@", label="works")

    assert plain.rewind("list")["checkpoints"][0]["label"] == "works"
    again = Agent(plain).refused("label_checkpoint", checkpoint=1, label="fails")
    assert again == ("checkpoint #1 has a name already: works; "
                     "only the user can change it: rewind label")
    assert Agent(plain).refused("label_checkpoint", checkpoint=1, label=" ") \
        == "a label needs words"


def test_what_cannot_be_is_refused_in_one_line(plain: Box) -> None:
    plain.rewind("save")
    cases: list[tuple[str, dict[str, object], str]] = [
        ("show_checkpoint", {"checkpoint": "nothing"}, "no checkpoint matches 'nothing'"),
        ("show_checkpoint", {"checkpoint": ["1"]}, "checkpoint.int: Input should be a valid"),
        ("show_checkpoint", {}, "checkpoint: Field required"),
        ("show_checkpoint", {"checkpoint": "9" * 5000}, "no checkpoint"),
        ("diff_checkpoints", {"paths": ["../outside"]}, "../outside is outside"),
        ("diff_checkpoints", {"paths": ["/etc/passwd"]}, "/etc/passwd is outside"),
        ("diff_checkpoints", {"paths": ["a\0b"]}, "NUL"),
        ("diff_checkpoints", {"since": "--output=x"}, "no checkpoint matches"),
        ("list_checkpoints", {"limit": -1}, "limit: Input should be greater than"),
        ("save_checkpoint", {"description": "x" * 501}, "description: String should have at most"),
        ("restore_checkpoint", {"checkpoint": 1}, "Unknown tool: restore_checkpoint"),
        ("prune", {}, "Unknown tool: prune"),
    ]

    said = Agent(plain).refusals(*((tool, given) for tool, given, _ in cases))

    wrong = [(case, words) for case, words in zip(cases, said, strict=True)
             if case[2] not in words]
    assert wrong == []


def test_resources_show_the_timeline_and_differences(plain: Box) -> None:
    plain.rewind("save", "one")
    plain.write("a.txt", "b\n")
    plain.rewind("save")
    agent = Agent(plain)

    assert [row["number"] for row in json.loads(agent.read("rewind://timeline"))["checkpoints"]] \
        == [2, 1]
    assert json.loads(agent.read("rewind://checkpoint/2"))["changes"][0]["path"] == "a.txt"
    assert "-a\n+b\n" in agent.read("rewind://diff/one")
    assert agent.read("rewind://diff/2/2") == "no differences"
    assert agent.read("rewind://diff/9").startswith("refused: no checkpoint")
    assert agent.read("rewind://nothing").startswith("refused: ")


def test_a_bug_reaches_the_agent_as_one_line_and_leaves_a_report(
    plain: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    from mcp import Client

    from coderewind.mcp_server.server import server
    from coderewind.mcp_server.tools import Tools

    def broken(self: Tools, limit: int = 20) -> str:
        raise ZeroDivisionError("sec" + "ret")

    monkeypatch.setattr(Tools, "list_checkpoints", broken)
    monkeypatch.setenv("REWIND_HOME", plain.store_home)

    async def talk() -> str:
        async with Client(server(plain.project)) as client:
            result = await client.call_tool("broken", {})
            assert result.is_error
            return said(result)

    words = asyncio.run(talk())
    assert words.startswith("this is a bug in Rewind (ZeroDivisionError); a report is in ")
    with open(words.rpartition(" ")[2]) as file:
        report = file.read()
    assert "in broken" in report
    assert "secret" not in report
