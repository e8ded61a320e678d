"""What every framework's adapter must do. A new one goes into DRIVERS and passes these tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus.box import Box
from sealed import opened, sealed_box

from coderewind.context import Gate, words

from .driver import Call, Driver, Request
from .with_google_adk import GoogleADK
from .with_langchain import LangChain
from .with_openai_agents import OpenAIAgents
from .with_pydantic_ai import PydanticAI

DRIVERS: list[type[Driver]] = [PydanticAI, LangChain, OpenAIAgents, GoogleADK]
ON = Gate(enabled=True)
MAY_RESTORE = Gate(enabled=True, may_restore=True)
Make = Callable[..., Driver]


@pytest.fixture
def box() -> Iterator[Box]:
    with sealed_box() as made:
        made.write("a.txt", "a\n")
        yield made


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.name)
def make(request: pytest.FixtureRequest, box: Box) -> Make:
    """A conversation of each framework; by default without a folder, and turned on."""

    def made(workspace: Any = None, gate: Gate | None = ON) -> Driver:
        return request.param(workspace, gate)  # type: ignore[no-any-return]

    return made


def checkpoint(goal: str = "the goal", **more: Any) -> list[Call]:
    return [("checkpoint", {"goal": goal, **more})]


def rewind(report: str = "FINDINGS", **more: Any) -> list[Call]:
    return [("rewind", {"report": report, **more})]


def explore(n: int = 1) -> list[Call]:
    return [("explore", {"n": n})]


def assert_paired(request: Request) -> None:
    """Every call is answered, and every answer was asked for."""
    assert len(request.of("call")) == len(request.of("result")), request.rows


def test_after_a_rewind_the_report_stands_for_the_exploration(make: Make) -> None:
    request = make().run("investigate", checkpoint(), explore(1), explore(2), rewind(), "done")

    assert request.kinds == ["user", "call", "result", "user"]
    assert request.text.count("FINDINGS") == 1
    assert "CONTENT" not in request.text
    assert request.rows[0].text == "investigate"


def test_what_came_before_stays_the_same_to_the_byte(make: Make) -> None:
    driver = make()

    last = driver.run("go", explore(7), checkpoint(), explore(1), rewind(), explore(2), "done")

    before = driver.requests[2]  # the first that has the checkpoint's result
    assert before.of("call") == ["explore", "checkpoint"]
    assert driver.requests[4].raw[: len(before.raw)] == before.raw
    assert last.raw[: len(before.raw)] == before.raw


def test_the_next_turn_goes_on_from_the_report(make: Make) -> None:
    driver = make()
    driver.run("first", checkpoint(), explore(1), rewind(), explore(2), "done one")

    request = driver.run("second", "done two")

    assert request.of("user")[0] == "first"
    assert request.of("user")[-1] == "second"
    assert request.text.count("FINDINGS") == 1
    assert "CONTENT1" not in request.text
    assert "CONTENT2" in request.text
    assert "done one" in request.of("said")
    assert_paired(request)


def test_a_second_window_is_rewound_as_well(make: Make) -> None:
    driver = make()

    driver.run("go", checkpoint("one"), explore(1), rewind("REPORT1"), "fine")
    request = driver.run("on", checkpoint("two"), explore(2), rewind("REPORT2"), "done")

    assert (request.text.count("REPORT1"), request.text.count("REPORT2")) == (1, 1)
    assert "CONTENT" not in request.text
    assert request.of("call") == ["checkpoint", "checkpoint"]
    assert_paired(request)


def test_the_tools_answer_as_oh_my_pis(make: Make) -> None:
    driver = make()

    driver.run("go", checkpoint("find it"), explore(), "done")

    (answer, _) = driver.requests[-1].of("result")
    assert answer == "Checkpoint: find it\nFinish exploration and formulate findings."


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([rewind()], words.NONE_ACTIVE),
        ([checkpoint(), rewind("  \n")], words.EMPTY_REPORT),
        ([checkpoint(), checkpoint()], words.ALREADY_ACTIVE),
        ([checkpoint(), rewind(to="nowhere")],
         words.UNKNOWN_NAME.format(name="nowhere", active="(no name)")),
        ([checkpoint(), rewind(restore_files=True)], words.MAY_NOT_RESTORE),
        ([[("rewind", {})]], "report is missing."),
        ([[("checkpoint", {"goal": 7})]], "goal must be text."),
    ],
    ids=["none", "empty", "twice", "unknown", "files", "missing", "type"],
)
def test_a_refusal_reaches_the_model_in_its_words(
    make: Make, steps: list[list[Call]], says: str
) -> None:
    request = make().run("go", *steps, "done")

    assert says in request.of("result")[-1]
    assert_paired(request)


def test_calls_beside_the_checkpoint_stay_and_those_beside_the_rewind_are_told(make: Make) -> None:
    driver = make()

    request = driver.run("go", [*checkpoint(), *explore(1)], explore(2),
                         [*explore(3), *rewind()], "done")

    assert request.of("call") == ["checkpoint", "explore"]
    assert "CONTENT1" in request.of("result")[1]
    assert "CONTENT2" not in request.text
    assert "CONTENT3" in request.of("user")[-1]
    for each in driver.requests:
        assert_paired(each)


def test_a_new_prompt_suspends_the_checkpoint_and_nothing_is_lost(make: Make) -> None:
    driver = make()
    driver.run("first", checkpoint("it"), explore(1), "I stop here")

    request = driver.run("second: exactly\nthis  text", rewind(), "done")

    assert words.SUSPENDED.format(goal="it", why=words.WHY_PROMPT) in request.of("result")[-1]
    assert request.of("user") == ["first", "second: exactly\nthis  text"]
    assert "CONTENT1" in request.text
    assert "I stop here" in request.of("said")


def test_named_checkpoints_nest(make: Make) -> None:
    request = make().run("go", checkpoint("a", name="outer"), explore(1),
                         checkpoint("b", name="inner"), explore(2), rewind(to="outer"), "done")

    assert request.of("call") == ["checkpoint"]
    assert "CONTENT" not in request.text


def test_without_the_users_leave_the_tools_are_not_there(make: Make) -> None:
    for gate in (None, Gate(), Gate(enabled=True, subagent=True)):
        request = make(gate=gate).run("go", "done")

        assert request.tools == ["explore"]


def test_the_users_configuration_turns_the_tools_on(make: Make, box: Box) -> None:
    box.rewind("config", "checkpoint.enabled", "true")

    request = make(opened(box), gate=None).run("go", "done")

    assert set(request.tools) == {"explore", "checkpoint", "rewind"}


def test_the_files_are_held_where_a_turn_begins_and_ends(make: Make, box: Box) -> None:
    driver = make(opened(box))
    driver.explored.append(lambda: box.write("a.txt", "changed\n"))

    driver.run("do it", explore(), "done")

    rows = box.rewind("list")["checkpoints"][::-1]
    assert [row["kind"] for row in rows] == ["prompt", "after"]
    assert (rows[0]["prompt"], rows[0]["agent"]) == ("do it", driver.name)
    box.rewind("restore", str(rows[0]["number"]), "--yes")
    assert box.read("a.txt") == b"a\n"


def test_a_turn_that_changed_nothing_ends_without_another_checkpoint(make: Make, box: Box) -> None:
    make(opened(box)).run("look", explore(), "done")

    assert [row["kind"] for row in box.rewind("list")["checkpoints"]] == ["prompt"]


def test_the_report_says_which_files_changed_and_they_stay(make: Make, box: Box) -> None:
    driver = make(opened(box))
    driver.explored.append(lambda: box.write("a.txt", "a\nb\n"))

    request = driver.run("do it", checkpoint(), explore(), rewind(), "done")

    assert "  M a.txt +1 -0\n" in request.of("user")[-1]
    assert box.read("a.txt") == b"a\nb\n"


def test_files_are_restored_when_the_user_allows_it(make: Make, box: Box) -> None:
    driver = make(opened(box), gate=MAY_RESTORE)
    driver.explored.append(lambda: box.write("a.txt", "spoiled\n"))

    driver.run("do it", checkpoint(), explore(), rewind(restore_files=True), "done")

    assert box.read("a.txt") == b"a\n"
    kinds = [row["kind"] for row in box.rewind("list")["checkpoints"]]
    assert "restore" in kinds, "the state before is kept"


def test_an_agent_works_on_when_its_files_cannot_be_held(make: Make, box: Box) -> None:
    driver = make(opened(box))
    Path(box.store_home).rename(box.root + "/gone")
    Path(box.store_home).write_text("no folder")

    request = driver.run("go", checkpoint(), explore(), rewind(), "done")

    assert request.text.count("FINDINGS") == 1
    Path(box.store_home).unlink()
    Path(box.root + "/gone").rename(box.store_home)
