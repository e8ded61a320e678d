"""Restore and undo for agents: the user allowed it, saw the plan, and said yes."""

from collections.abc import Iterator
from typing import Any

import pytest
from corpus.box import Box

from .client import Agent, said

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])
RESTORE: tuple[str, dict[str, Any]] = ("restore_checkpoint", {"checkpoint": 1})
DO_IT: tuple[str, dict[str, Any]] = ("restore_checkpoint", {"checkpoint": 1, "plan": "TOKEN"})


@pytest.fixture
def box(plain: Box) -> Iterator[Box]:
    """Checkpoint #1, then two changes; agents may restore."""
    plain.rewind("save")
    plain.write("a.txt", "spoiled\n").write("new.txt", "new\n")
    plain.rewind("config", "agents.mayRestore", "true")
    yield plain


def test_without_a_plan_nothing_is_changed(box: Box) -> None:
    before = box.picture()

    answer = Agent(box, user="accept").call("restore_checkpoint", checkpoint=1)

    assert answer["plan"]["changes"] == [{"action": "change", "path": "a.txt"},
                                         {"action": "delete", "path": "new.txt"}]
    assert answer["done"] is False
    box.assert_like(before)


@ERAS
def test_a_client_that_cannot_ask_gives_the_token_back(box: Box, mode: str) -> None:
    agent = Agent(box, mode)

    _, done = agent.calls(RESTORE, DO_IT)

    assert done == {"done": True, "changes": 2, "stateBefore": 2}
    assert (box.read("a.txt"), box.exists("new.txt")) == (b"a\n", False)
    box.rewind("undo-restore")
    assert (box.read("a.txt"), box.exists("new.txt")) == (b"spoiled\n", True)


@ERAS
def test_a_client_that_can_ask_shows_the_plan_to_its_user(box: Box, mode: str) -> None:
    agent = Agent(box, mode, user="accept")

    _, done = agent.calls(RESTORE, DO_IT)

    assert done["done"] is True
    assert agent.asked == ["The agent wants to restore files, back to checkpoint #1: 2 changes.\n"
                           "  change a.txt\n  delete new.txt"]
    assert box.read("a.txt") == b"a\n"


@ERAS
@pytest.mark.parametrize("user", ["refuse", "decline", "cancel"])
def test_what_the_user_does_not_agree_to_is_not_done(box: Box, mode: str, user: str) -> None:
    agent = Agent(box, mode, user=user)
    before = box.picture()

    _, answer, again = agent.calls(RESTORE, DO_IT, RESTORE)

    assert answer == {"done": False, "why": "the user did not agree; nothing was changed"}
    assert again["done"] is False
    assert len(agent.asked) == 1
    box.assert_like(before)


def test_undo_is_planned_and_done_the_same_way(box: Box) -> None:
    plan, done = Agent(box).calls(("undo", {}), ("undo", {"plan": "TOKEN"}))

    assert plan["checkpoint"]["number"] == 1
    assert done["done"] is True
    assert box.read("a.txt") == b"a\n"
    box.rewind("redo")
    assert box.read("a.txt") == b"spoiled\n"


def test_a_plan_is_for_one_checkpoint_some_paths_one_tool_and_once(box: Box) -> None:
    agent = Agent(box)

    answers = agent.calls(
        ("restore_checkpoint", {"checkpoint": 1, "paths": ["a.txt"]}), DO_IT,
        RESTORE, ("undo", {"plan": "TOKEN"}),
        ("restore_checkpoint", {"checkpoint": 1, "paths": ["a.txt"]}),
        ("restore_checkpoint", {"checkpoint": 1, "paths": ["a.txt"], "plan": "TOKEN"}),
    )

    assert answers[1] == "this plan is for another checkpoint or other paths"
    assert answers[3].startswith("this plan is not known, or was used already")
    assert answers[5]["done"] is True
    assert (box.read("a.txt"), box.exists("new.txt")) == (b"a\n", True)
    first, invented = agent.calls(("restore_checkpoint", {"checkpoint": 1, "plan": "guess"}),
                                  ("undo", {"plan": ""}))
    assert first.startswith("this plan is not known")
    assert invented["done"] is False


def test_a_plan_falls_when_the_files_change(box: Box) -> None:
    import asyncio

    from mcp import Client

    agent = Agent(box)

    async def what(client: Client) -> str:
        planned = await client.call_tool("restore_checkpoint", {"checkpoint": 1})
        assert planned.structured_content
        token = planned.structured_content["token"]
        await asyncio.to_thread(box.write, "a.txt", "the user's new work\n")
        given = {"checkpoint": 1, "plan": token}
        result = await client.call_tool("restore_checkpoint", given)
        return said(result)

    assert agent.do(what).startswith("the files have changed since the plan; nothing was changed")
    assert box.read("a.txt") == b"the user's new work\n"


def test_the_permission_is_asked_for_at_every_call(box: Box) -> None:
    from mcp import Client

    async def what(client: Client) -> str:
        box.rewind("config", "agents.mayRestore", "false")
        result = await client.call_tool("restore_checkpoint", {"checkpoint": 1})
        return said(result)

    assert Agent(box).do(what) == ("agents may not restore here; only the user can allow it: "
                                   "rewind config agents.mayRestore true")


def test_a_permission_that_lies_in_the_folder_is_none(plain: Box) -> None:
    plain.rewind("init", "--mode", "project")
    plain.write(".agent/rewind/config.json", '{"agents": {"mayRestore": true}}')

    assert "restore_checkpoint" not in Agent(plain).tools()


@pytest.mark.parametrize("mode", ["global", "project"])
def test_the_users_permission_for_one_folder_counts_wherever_its_store_lies(
    plain: Box, mode: str
) -> None:
    plain.rewind("init", "--mode", mode)
    plain.rewind("config", "agents.mayRestore", "true", "--project")

    assert "restore_checkpoint" in Agent(plain).tools()
