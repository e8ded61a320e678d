"""checkpoint and rewind in the real Pi: what its model is sent, now and after a resume."""

from __future__ import annotations

import json

import pytest

from .fake_model import Json, call, script, text
from .pi import Pi, PiRoom

pytestmark = pytest.mark.agent


@pytest.fixture
def room(pi_room: PiRoom) -> PiRoom:
    pi_room.rewind("config", "checkpoint.enabled", "true")
    return pi_room


def look(word: str) -> Json:
    return {"tool": "bash", "input": {"command": f"echo SEEN-{word}"}}


def rewind(report: str, *then: Json | list[Json], **more: object) -> Json:
    """A rewind after which the model goes on with `then`: its report is the newest script."""
    return call("rewind", report=f"{report} {script(*then)}", **more)


def sent(room: PiRoom) -> str:
    """The newest request's messages, without the scripts in their texts."""

    def strip(value: object) -> object:
        if isinstance(value, dict):
            return {key: strip(one) for key, one in value.items()}
        if isinstance(value, list):
            return [strip(one) for one in value]
        if not isinstance(value, str) or "SCRIPT:" not in value:
            return value
        head, _, tail = value.partition("SCRIPT:")
        return head + str(strip(tail[json.JSONDecoder().raw_decode(tail)[1]:]))

    bodies = [body for body in room.model.requests if body.get("tools")]
    return json.dumps(strip(bodies[-1]["messages"]))


def explore(room: PiRoom, pi: Pi, *steps: Json | list[Json], end: str = "answer") -> None:
    pi.prompt("explore " + script(call("checkpoint", goal="find it"), *steps,
                                  rewind("FOUND", text(end))))


def test_the_tools_are_offered_only_when_the_user_turned_them_on(pi_room: PiRoom) -> None:
    offered = []
    for value in ("false", "true"):
        pi_room.rewind("config", "checkpoint.enabled", value)
        with pi_room.open() as pi:
            pi.prompt("hello")
        offered.append([tool["name"] for tool in pi_room.model.requests[-1]["tools"]])

    assert "rewind" not in offered[0]
    assert {"checkpoint", "rewind"} <= set(offered[1])


def test_after_a_rewind_the_model_is_sent_the_report_and_not_the_exploration(
    room: PiRoom
) -> None:
    with room.open() as pi:
        explore(room, pi, look("one"), look("two"))
        said = sent(room)
        last = room.model.heard()

    assert "FOUND" in said
    assert "SEEN" not in said
    assert last[:3] == ["U:explore", "A:<checkpoint>", "U:<result>"]
    assert said.count("<rewind-report") == 1


def test_the_prefix_stays_the_same_for_the_providers_cache(room: PiRoom) -> None:
    with room.open() as pi:
        explore(room, pi, look("one"), look("two"))
    bodies = [body for body in room.model.requests if body.get("tools")]

    before, after = bodies[1]["messages"], bodies[-1]["messages"]

    def plain(message: Json) -> str:  # without the marks that Pi moves along for the cache
        return json.dumps(message).replace(', "cache_control": {"type": "ephemeral"}', "")

    assert [plain(message) for message in after[:2]] == [plain(m) for m in before[:2]]
    assert plain(after[2])[:-2] .startswith(plain(before[2])[:-2])


def test_it_stays_pruned_in_a_pi_without_rewind(room: PiRoom) -> None:
    with room.open() as pi:
        explore(room, pi, look("one"))
        file = pi.state()["sessionFile"]
    with room.open("--session", file, extensions=()) as pi:
        pi.prompt("next")

    said = sent(room)
    assert "FOUND" in said
    assert "SEEN" not in said


def test_the_report_says_which_files_changed(room: PiRoom) -> None:
    with room.open() as pi:
        explore(room, pi, room.write("new.txt", "1\n2\n"))

    assert "A new.txt +2 -0" in sent(room)
    assert (room.folder / "new.txt").read_text() == "1\n2\n"
    labels = [cp["label"] for cp in room.checkpoints()]
    assert "checkpoint: find it" in labels
    assert "rewind: find it" in labels


def test_what_the_user_says_meanwhile_stays(room: PiRoom) -> None:
    with room.open() as pi:
        pi.prompt("explore " + script(call("checkpoint", goal="g"), {**look("one"), "sleep": 1}),
                  wait=False)
        pi.wait_until(lambda: room.model.turns() >= 2, "second turn")
        pi.call("steer", message="never touch mod5.py " + script(
            look("two"), rewind("FOUND", text("answer"))))
        pi.settle()

    said = sent(room)
    assert said.count("never touch mod5.py") == 1
    assert "The user wrote 1 message meanwhile" in said
    assert "toolu" not in said.partition("never touch")[2]


def test_an_aborted_exploration_cannot_take_the_next_prompt_with_it(room: PiRoom) -> None:
    with room.open() as pi:
        pi.prompt("explore " + script(call("checkpoint", goal="g"), look("one"),
                                      room.shell("sleep 20")), wait=False)
        pi.wait_for("tool_execution_start")
        pi.wait_until(lambda: room.model.turns() >= 3, "third turn")
        pi.call("abort")
        pi.settle()
        pi.prompt("never mind " + script(text("as you say"), text("no")))
        pi.prompt("third " + script(call("rewind", report="LATE"), text("end")))

    said = sent(room)
    assert "No active checkpoint. The one for" in said
    assert "as you say" in said
    assert "SEEN-one" in said


def test_the_reminder_to_rewind_is_capped(room: PiRoom) -> None:
    with room.open() as pi:
        pi.prompt("explore " + script(call("checkpoint", goal="g"), *[text("done")] * 9))
        turns = room.model.turns()

    assert turns == 4  # checkpoint, and an answer that is reminded of it twice
    assert sent(room).count("still active") == 2


def test_calls_beside_the_two_tools_keep_their_results(room: PiRoom) -> None:
    with room.open() as pi:
        pi.prompt("explore " + script(
            [look("before"), call("checkpoint", goal="g"), look("beside")], look("inside"),
            [look("last"), rewind("FOUND", text("answer"))]))

    said = sent(room)
    assert "SEEN-before" in said
    assert "SEEN-beside" in said
    assert "SEEN-inside" not in said
    assert "Called beside rewind: bash(" in said
    assert "SEEN-last" in said


def test_named_checkpoints_nest(room: PiRoom) -> None:
    with room.open() as pi:
        pi.prompt("explore " + script(
            call("checkpoint", goal="a", name="outer"), look("one"),
            call("checkpoint", goal="b"), look("two"),
            rewind("INNER", look("three"), rewind("OUTER", text("answer"), to="outer"))))

    said = sent(room)
    assert "SEEN" not in said
    assert "INNER" not in said.partition("OUTER")[0]
    assert said.count("<rewind-report") == 1


def test_the_footer_shows_the_checkpoint_and_the_user_can_drop_it(room: PiRoom) -> None:
    with room.open() as pi:
        pi.prompt("explore " + script(call("checkpoint", goal="find it"), *[text("no")] * 9))
        shown = pi.footer()
        pi.prompt("/checkpoint-drop")
        pi.wait_until(lambda: "exploring" not in pi.footer(), "footer without it")
        pi.prompt("next " + script(call("rewind", report="LATE"), text("end")))

    assert shown.endswith("· exploring: find it")
    assert '"No active checkpoint."' in sent(room)


def test_a_checkpoint_survives_the_bridge(room: PiRoom) -> None:
    with room.open() as pi:
        pi.prompt("hello")
        kill = room.shell(f"kill -9 {pi.bridges()[0]}; echo SEEN-kill")
        pi.prompt("explore " + script(call("checkpoint", goal="g"), look("one"), kill,
                                      look("two"), rewind("FOUND", text("answer"))))

    said = sent(room)
    assert "FOUND" in said
    assert "SEEN" not in said


@pytest.mark.parametrize("beside", ["checkpoint", "rewind"])
def test_a_bridge_that_is_killed_beside_a_tool_loses_nothing(room: PiRoom, beside: str) -> None:
    with room.open() as pi:
        pi.prompt("hello")
        kill = room.shell(f"kill -9 {pi.bridges()[0]}")
        first, last = call("checkpoint", goal="g"), rewind("FOUND", text("answer"))
        pi.prompt("explore " + script([first, kill] if beside == "checkpoint" else first,
                                      look("one"), [last, kill] if beside == "rewind" else last))

    said = sent(room)
    assert "FOUND" in said
    assert "SEEN" not in said


@pytest.mark.parametrize(("answer", "left"), [(False, "after\n"), (True, "before\n")])
def test_files_are_restored_only_on_the_users_word(
    room: PiRoom, answer: bool, left: str
) -> None:
    (room.folder / "a.txt").write_text("before\n")
    room.rewind("config", "agents.mayRestore", "true")
    with room.open(answer=lambda dialog: answer) as pi:
        pi.prompt("explore " + script(
            call("checkpoint", goal="g"), room.write("a.txt", "after\n"),
            rewind("FOUND", text("answer"), restore_files=True), text("refused")))

    assert (room.folder / "a.txt").read_text() == left
    assert ("does not want" in sent(room)) is not answer
