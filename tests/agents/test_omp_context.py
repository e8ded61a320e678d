"""checkpoint and rewind in the real omp: our tools in the place of its own, and its own cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from coderewind.context.persist import MOST_CHARACTERS

from .fake_model import Json, call, script, text
from .omp import OmpRoom
from .pi import Pi
from .test_pi_context import rewind, sent

pytestmark = pytest.mark.agent


@pytest.fixture
def room(tmp_path: Path) -> Iterator[OmpRoom]:
    made = OmpRoom(tmp_path)
    made.rewind("init", "--yes")
    made.rewind("config", "checkpoint.enabled", "true")
    yield made
    made.close()
    assert made.log() == "", "the bridge failed"


def look(word: str) -> Json:
    return {"tool": "_bash", "input": {"command": f"echo SEEN-{word}"}}


def explore(room: OmpRoom, omp: Pi, *steps: Json | list[Json], end: str = "answer") -> None:
    omp.prompt("explore " + script(call("checkpoint", goal="find it"), *steps,
                                   rewind("FOUND", text(end))))


def tools(room: OmpRoom) -> dict[str, str]:
    """The tools that the newest request offers, by their names, as their descriptions."""
    body = [body for body in room.model.requests if body.get("tools")][-1]
    return {tool["name"].lstrip("_"): tool["description"] for tool in body["tools"]}


@pytest.mark.parametrize("omps_own", [False, True])
def test_the_tools_are_ours_when_the_user_turned_them_on(room: OmpRoom, omps_own: bool) -> None:
    if omps_own:
        with open(room.agent_dir / "config.yml", "a") as file:
            file.write("checkpoint:\n  enabled: true\n")
    with room.open() as omp:
        omp.prompt("hello")

    assert {"checkpoint", "rewind"} <= tools(room).keys()
    assert "your report takes its place" in tools(room)["rewind"]


def test_the_tools_are_not_there_when_the_user_did_not(room: OmpRoom) -> None:
    room.rewind("config", "checkpoint.enabled", "false")
    with room.open() as omp:
        omp.prompt("hello")

    assert not {"checkpoint", "rewind"} & tools(room).keys()


def test_after_a_rewind_the_model_is_sent_the_report_once_and_not_the_exploration(
    room: OmpRoom
) -> None:
    with room.open() as omp:
        explore(room, omp, look("one"), look("two"))
        last = room.model.heard()

    assert last[:3] == ["U:explore", "A:<_checkpoint>", "U:<result>"]
    assert sent(room).count("FOUND") == 1
    assert "SEEN" not in sent(room)


def test_the_prefix_stays_the_same_for_the_providers_cache(room: OmpRoom) -> None:
    with room.open() as omp:
        explore(room, omp, look("one"), look("two"))
    bodies = [body["messages"] for body in room.model.requests if body.get("tools")]

    def plain(message: Json) -> str:  # without the marks that omp moves along for the cache
        return json.dumps(message).replace(', "cache_control": {"type": "ephemeral"}', "")

    assert [plain(m) for m in bodies[-1][:3]] == [plain(m) for m in bodies[1][:3]]


def test_it_stays_pruned_in_an_omp_without_rewind(room: OmpRoom) -> None:
    with room.open() as omp:
        explore(room, omp, look("one"))
        file = omp.state()["sessionFile"]
    with room.open("--resume", file, extensions=()) as omp:
        omp.prompt("next")

    assert "FOUND" in sent(room)
    assert "SEEN" not in sent(room)


def test_the_report_says_which_files_changed(room: OmpRoom) -> None:
    with room.open() as omp:
        explore(room, omp, room.write("new.txt", "1\n2\n"))

    assert "A new.txt +2 -0" in sent(room)
    assert (room.folder / "new.txt").read_text() == "1\n2\n"
    labels = [cp["label"] for cp in room.checkpoints()]
    assert "checkpoint: find it" in labels
    assert "rewind: find it" in labels


def test_what_the_user_says_meanwhile_is_told_word_for_word(room: OmpRoom) -> None:
    with room.open() as omp:
        omp.prompt("explore " + script(call("checkpoint", goal="g"), {**look("one"), "sleep": 1}),
                   wait=False)
        omp.wait_until(lambda: room.model.turns() >= 2, "second turn")
        before = len(omp.events)
        omp.call("steer", message="never  touch\nmod5.py " + script(
            look("two"), rewind("FOUND", text("answer"))))
        omp.settle(before)

    said = sent(room)
    assert said.count(json.dumps("never  touch\nmod5.py")[1:-1]) == 1
    assert "<user>" in said
    assert "SEEN" not in said


def test_an_aborted_exploration_cannot_take_the_next_prompt_with_it(room: OmpRoom) -> None:
    with room.open() as omp:
        omp.prompt("explore " + script(call("checkpoint", goal="g"), look("one"),
                                       room.shell("sleep 20")), wait=False)
        omp.wait_until(lambda: room.model.turns() >= 3, "third turn")
        before = len(omp.events)
        omp.call("abort")
        omp.settle(before)
        omp.prompt("never mind " + script(call("rewind", report="LATE"), text("as you say")))
        said, turns = sent(room), room.model.turns()
        omp.prompt("and now " + script(text("yes")))

    assert "No active checkpoint. The one for" in said
    assert "never mind" in said
    assert "SEEN-one" in said
    assert turns == 5, "omp's own reminder reached the model"
    assert "as you say" in sent(room)
    assert "/checkpoint-drop ends that" in "".join(omp.shown("notify"))


def test_the_reminder_to_rewind_is_capped(room: OmpRoom) -> None:
    with room.open() as omp:
        omp.prompt("explore " + script(call("checkpoint", goal="g"), *[text("done")] * 9))

    assert room.model.turns() == 4  # checkpoint, and an answer that is reminded of it twice


def test_the_two_tools_are_called_alone_so_that_no_result_is_lost(room: OmpRoom) -> None:
    with room.open() as omp:
        omp.prompt("explore " + script(
            [look("before"), call("checkpoint", goal="g"), look("beside")],
            call("checkpoint", goal="g"), look("inside"),
            [look("last"), call("rewind", report="EARLY")],
            rewind("FOUND", text("answer"))))
        requests = [json.dumps(body["messages"]) for body in room.model.requests]

    assert "Call checkpoint alone" in requests[1]
    assert "Call rewind alone" in requests[4]
    assert "SEEN-last" in requests[4]
    said = sent(room)
    assert "SEEN-before" in said
    assert "SEEN-beside" in said
    assert "SEEN-inside" not in said
    assert "FOUND" in said


def test_there_is_one_checkpoint_at_a_time(room: OmpRoom) -> None:
    with room.open() as omp:
        omp.prompt("explore " + script(
            call("checkpoint", goal="a"), call("checkpoint", goal="b", name="inner"),
            call("rewind", report=" "), look("one"), rewind("FOUND", call("rewind", report="x"),
                                                           text("answer"))))
        requests = [json.dumps(body["messages"]) for body in room.model.requests]

    assert "Checkpoint already active." in requests[2]
    assert "Report cannot be empty." in requests[3]
    assert "No active checkpoint. The last one is rewound already" in sent(room)
    assert "SEEN" not in sent(room)


def test_the_footer_shows_the_checkpoint_and_the_user_can_drop_it(room: OmpRoom) -> None:
    with room.open() as omp:
        omp.prompt("explore " + script(call("checkpoint", goal="find it"), look("one"),
                                       *[text("no")] * 9))
        shown = omp.footer()
        omp.prompt("/checkpoint-drop")
        omp.wait_until(lambda: "exploring" not in omp.footer(), "footer without it")
        omp.wait_until(lambda: any("forgotten" in words for words in omp.shown("notify")), "words")
        turns = room.model.turns()
        omp.prompt("next " + script(call("rewind", report="LATE"), text("end")))

    assert shown.endswith("· exploring: find it")
    assert room.model.turns() == turns + 2, "omp asks for a rewind still"
    assert "No active checkpoint. The user dropped it" in sent(room)
    assert "SEEN-one" in sent(room)


def test_a_checkpoint_survives_the_bridge(room: OmpRoom) -> None:
    with room.open() as omp:
        omp.prompt("hello")
        kill = room.shell(f"kill -9 {omp.bridges()[0]}; echo SEEN-kill")
        omp.prompt("explore " + script(call("checkpoint", goal="g"), look("one"), kill,
                                       look("two"), rewind("FOUND", text("answer"))))

    assert "FOUND" in sent(room)
    assert "SEEN" not in sent(room)


def test_a_killed_omp_suspends_the_checkpoint_when_it_goes_on(room: OmpRoom) -> None:
    with room.open() as omp:
        omp.prompt("explore " + script(call("checkpoint", goal="g"), look("one"),
                                       {**text("never"), "sleep": 9}), wait=False)
        omp.wait_until(lambda: room.model.turns() >= 3, "third turn")
        file = omp.state()["sessionFile"]
        omp.process.kill()
        omp.process.wait()
    with room.open("--resume", file) as omp:
        omp.prompt("go on " + script(call("rewind", report="LATE"), text("end")))

    assert "No active checkpoint. The one for" in sent(room)
    assert "SEEN-one" in sent(room)


def test_a_giant_report_is_the_same_live_and_resumed(
    room: OmpRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = room.model.answer

    def giant(body: Json) -> list[Json]:
        steps = answer(body)
        for step in steps:
            if step.get("tool") == "rewind":
                step["input"]["report"] += "x" * MOST_CHARACTERS
        return steps

    monkeypatch.setattr(room.model, "answer", giant)
    with room.open() as omp:
        explore(room, omp, look("one"))
        live = reports(room)
        file = omp.state()["sessionFile"]
    with room.open("--resume", file) as omp:
        omp.prompt("next")

    assert len(live) == 1
    assert len(live[0]) <= MOST_CHARACTERS
    assert reports(room) == live


def reports(room: OmpRoom) -> list[str]:
    bodies = [body for body in room.model.requests if body.get("tools")]
    return [message["content"] for message in bodies[-1]["messages"]
            if isinstance(message["content"], str) and "<rewind-report" in message["content"]]


@pytest.mark.parametrize(("answer", "left"), [(False, "after\n"), (True, "before\n")])
def test_files_are_restored_only_on_the_users_word(
    room: OmpRoom, answer: bool, left: str
) -> None:
    (room.folder / "a.txt").write_text("before\n")
    room.rewind("config", "agents.mayRestore", "true")
    with room.open(answer=lambda dialog: answer) as omp:
        omp.prompt("explore " + script(
            call("checkpoint", goal="g"), room.write("a.txt", "after\n"),
            rewind("FOUND", text("answer"), restore_files=True),
            rewind("KEPT", text("answer"))))

    assert (room.folder / "a.txt").read_text() == left
    assert ("they are restored" in sent(room)) is answer
    assert ("left as they are now" in sent(room)) is not answer


@pytest.mark.parametrize("allowed", [False, True])
def test_subagents_get_the_tools_only_where_the_user_allows_it(
    room: OmpRoom, allowed: bool
) -> None:
    room.rewind("config", "checkpoint.subagents", str(allowed).lower())
    with room.open("--tools", "read,bash,write,task") as omp:
        below = "do it " + script(text("sub"))
        omp.prompt("go " + script({"tool": "_task", "input": {
            "agent": "task", "context": "c", "tasks": [{"name": "T1", "task": below}]}},
            text("done")), wait=False)
        omp.wait_until(lambda: any("_yield" in json.dumps(body.get("tools"))
                                   for body in room.model.requests), "a subagent")
    body = next(body for body in room.model.requests if "_yield" in json.dumps(body.get("tools")))

    names = {tool["name"] for tool in body["tools"]}
    assert ({"_checkpoint", "_rewind"} <= names) is allowed
