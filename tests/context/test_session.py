"""checkpoint and rewind as an agent uses them: what its model is really sent."""

import json
from pathlib import Path
from unittest import mock

import pytest

from coderewind.context import Gate, Reply, SessionTree, Tool, words
from coderewind.context.persist import CUT, MOST_CHARACTERS, Json
from coderewind.context.projection import text_of
from coderewind.context.rewinder import MOST_REMINDERS
from coderewind.errors import RewindError
from context.agent import ON, READ, Script, call, calls, checkpoint, read, rewind, session


@pytest.fixture
def tree(tmp_path: Path) -> SessionTree:
    return SessionTree.create(tmp_path / "session.jsonl", cwd="/work")


def answers(model: Script) -> list[str]:
    """What the tools answered, as the last request has it."""
    return [text_of(message) for message in model.requests[-1]
            if message["role"] == "toolResult"]


def roles(model: Script) -> list[object]:
    return [message["role"] for message in model.requests[-1]]


def test_after_a_rewind_the_report_stands_for_the_exploration() -> None:
    agent, model = session(checkpoint(), read(1), read(2), rewind(), "answer")

    assert agent.prompt("investigate") == "answer"

    assert roles(model) == ["user", "assistant", "toolResult", "user"]
    assert "CONTENT" not in "".join(model.last)
    assert "".join(model.last).count("FINDINGS") == 1


def test_the_context_before_the_checkpoint_stays_the_same_to_the_byte() -> None:
    agent, model = session(checkpoint(), read(1), rewind(), "answer")

    agent.prompt("investigate")

    assert model.requests[-1][:3] == model.requests[1]


def test_the_tools_answer_as_oh_my_pis() -> None:
    agent, model = session(checkpoint("find it"), rewind(), "answer")

    agent.prompt("go")

    assert text_of(model.requests[1][-1]) == (
        "Checkpoint: find it\nFinish exploration and formulate findings.")
    entries = [entry for id in agent.tree if (entry := agent.tree.entry(id))["type"] == "message"]
    results = [entry["message"] for entry in entries if "toolCallId" in str(entry["message"])]
    assert isinstance(results[-1], dict)
    assert text_of(results[-1]) == "Rewind requested.\nReport captured for context replacement."
    assert results[-1]["details"] == {"report": "FINDINGS", "rewound": True}


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([rewind()], words.NONE_ACTIVE),
        ([checkpoint(), rewind("  \n")], words.EMPTY_REPORT),
        ([checkpoint(), checkpoint()], words.ALREADY_ACTIVE),
        ([checkpoint(name="a"), checkpoint(name="a")], words.ALREADY_ACTIVE),
        ([checkpoint(), rewind(), rewind()], words.COMPLETED),
        ([checkpoint(name="a"), rewind(to="b")],
         words.UNKNOWN_NAME.format(name="b", active="a")),
        ([checkpoint(), rewind(restore_files=True)], words.MAY_NOT_RESTORE),
        ([calls(call("rewind"))], "report is missing."),
        ([calls(call("checkpoint", goal=7))], "goal must be text."),
        ([calls(call("nothing"))], "There is no tool nothing."),
    ],
)
def test_a_tool_refuses_with_words_for_the_model(steps: list[Reply], says: str) -> None:
    agent, model = session(*steps, "answer", "answer", "answer")

    agent.prompt("go")

    assert any(says in [text_of(message) for message in request] for request in model.requests)


def test_the_messages_that_programs_know_are_those_of_the_seed() -> None:
    assert words.NONE_ACTIVE == "No active checkpoint."
    assert words.ALREADY_ACTIVE == "Checkpoint already active."
    assert words.EMPTY_REPORT == "Report cannot be empty."
    assert words.NOT_IN_SUBAGENTS == "Checkpoint not available in subagents."


@pytest.mark.parametrize(
    ("gate", "offered", "says"),
    [
        (Gate(), ["read"], words.NOT_ENABLED),
        (ON, ["read", "checkpoint", "rewind"], ""),
        (Gate(enabled=True, subagent=True), ["read"], words.NOT_IN_SUBAGENTS),
        (Gate(enabled=True, subagent=True, subagents=True),
         ["read", "checkpoint", "rewind"], ""),
    ],
    ids=["off by default", "on", "subagent", "subagent that may"],
)
def test_the_tools_are_hidden_where_they_are_not_allowed(
    gate: Gate, offered: list[str], says: str
) -> None:
    agent, model = session(checkpoint(), "answer", "answer", "answer", gate=gate)

    agent.prompt("go")

    assert model.offered[0] == offered
    if says:
        assert says in model.last


def test_nothing_is_pruned_before_the_turn_is_over() -> None:
    look = Tool("look", "", {"properties": {}, "required": []},
                lambda arguments, id: f"saw {len(agent.messages)}")
    agent, model = session(checkpoint(), read(1), calls(call("rewind", report="R"), call("look")),
                           "answer", tools=[READ, look])

    agent.prompt("go")

    assert "saw 7" in model.last[-1]


def test_the_abandoned_path_stays_in_the_file(tree: SessionTree) -> None:
    agent, _ = session(checkpoint(), read(1), rewind(), "answer", tree=tree)

    agent.prompt("go")

    assert "CONTENT 1" in Path(tree.path).read_text()
    kinds = [tree.kind(id) for id in SessionTree.open(tree.path).branch_ids()]
    assert kinds == ["message", "message", "message", "branch_summary", "custom", "message"]


def test_the_branch_begins_at_the_checkpoints_result(tree: SessionTree) -> None:
    agent, _ = session(checkpoint(), read(1), rewind(), "answer", tree=tree)

    agent.prompt("go")

    summary = next(tree.entry(id) for id in tree if tree.kind(id) == "branch_summary")
    message = tree.entry(str(summary["parentId"]))["message"]
    assert isinstance(message, dict)
    assert message["toolName"] == "checkpoint"


def test_what_the_user_says_inside_the_window_is_carried_over_word_for_word() -> None:
    image = [{"type": "text", "text": "never touch mod5.py"},
             {"type": "image", "data": "AAAA", "mimeType": "image/png"}]

    def steered() -> Reply:
        agent.steer(image)
        return read(1)

    agent, model = session(checkpoint(), steered, read(2), rewind(), "answer")
    agent.prompt("go")

    assert {"role": "user", "content": image} in model.requests[-1]
    assert roles(model) == ["user", "assistant", "toolResult", "user", "user"]
    assert "The user wrote 1 message meanwhile" in model.last[-1]


def test_even_what_looks_like_a_report_or_a_reminder() -> None:
    pasted = ["<rewind-report> is what it wrote, why?", "<rewind-report>\nall\n</rewind-report>",
              words.REMINDER.format(goal="mine")]

    def steered() -> Reply:
        for text in pasted:
            agent.steer(text)
        return read(1)

    agent, model = session(checkpoint(), steered, read(2), rewind(), "answer")
    agent.prompt("go")

    assert [text for text in model.last if text in pasted] == pasted


def test_they_are_carried_over_again_by_an_outer_rewind() -> None:
    def steered() -> Reply:
        agent.steer("never touch mod5.py")
        return read(1)

    agent, model = session(checkpoint(name="out"), checkpoint("inner"), steered, read(),
                           rewind("INNER"), read(2), rewind("OUTER"), "answer")
    agent.prompt("go")

    assert model.last.count("never touch mod5.py") == 1
    assert "INNER" not in "".join(model.last)
    assert "OUTER" in model.last[-1]


def test_a_new_prompt_suspends_the_checkpoint() -> None:
    agent, model = session(checkpoint(), read(1), "no rewind", "really", "done",
                           rewind(), "second answer")
    agent.prompt("first")
    agent.prompt("second")

    assert "second" in model.last
    assert "CONTENT 1" in model.last
    assert answers(model)[-1].startswith("No active checkpoint. The one for “the goal” was "
                                         "suspended when the user wrote again")


def test_an_abort_suspends_the_checkpoint_and_splits_no_pair() -> None:
    def stopped() -> Reply:
        agent.abort()
        return calls(call("read", n=1), call("read", n=2))

    agent, model = session(checkpoint(), stopped, rewind(), "second answer")
    agent.prompt("first")
    agent.prompt("second")

    assert answers(model)[1:3] == ["Aborted by the user."] * 2
    assert "when the user interrupted" in answers(model)[-1]
    assert "second" in model.last


def test_an_abort_in_the_turn_of_the_rewind_prunes_nothing() -> None:
    def stopped() -> str:
        agent.abort()
        return "ok"

    stop = Tool("stop", "", {"properties": {}, "required": []}, lambda arguments, id: stopped())
    agent, model = session(checkpoint(), read(1),
                           calls(call("rewind", report="R"), call("stop")), "answer",
                           tools=[READ, stop])
    agent.prompt("first")
    agent.prompt("second")

    assert "CONTENT 1" in model.last


def test_the_reminder_to_rewind_is_capped() -> None:
    agent, model = session(checkpoint(), *["done"] * (MOST_REMINDERS + 1))

    agent.prompt("go")

    assert model.steps == []
    assert sum("still active" in text for text in model.last) == MOST_REMINDERS


def test_reminders_leave_with_the_window() -> None:
    agent, model = session(checkpoint(), "done", rewind(), "answer")

    agent.prompt("go")

    assert "still active" not in "".join(model.last)


def test_calls_beside_the_checkpoint_stay_with_their_results() -> None:
    agent, model = session(calls(call("read", n=1), call("checkpoint", goal="g"),
                                 call("read", n=2)), read(3), rewind(), "answer")
    agent.prompt("go")

    assert answers(model)[0::2] == ["CONTENT 1", "CONTENT 2"]
    assert "CONTENT 3" not in "".join(model.last)


def test_calls_beside_the_rewind_are_told_in_the_report() -> None:
    agent, model = session(checkpoint(), read(1),
                           calls(call("read", n=2), call("rewind", report="R")), "answer")
    agent.prompt("go")

    assert "Called beside rewind: read({\"n\": 2})\nCONTENT 2" in model.last[-1]
    assert "CONTENT 1" not in "".join(model.last)


def test_a_rewind_beside_its_checkpoint_is_refused() -> None:
    agent, model = session(calls(call("checkpoint", goal="g"), call("rewind", report="R")),
                           rewind("later"), "answer")
    agent.prompt("go")

    assert answers(model)[1] == words.NONE_ACTIVE
    assert "later" in model.last[-1]


def test_of_two_rewinds_in_one_reply_the_first_counts() -> None:
    agent, model = session(checkpoint(), calls(call("rewind", report="first"),
                                               call("rewind", report="second")), "answer")
    agent.prompt("go")

    assert "first" in model.last[-1]
    assert "second" not in "".join(model.last)


def test_named_checkpoints_nest_and_one_may_go_back_to_any() -> None:
    agent, model = session(checkpoint("a", name="outer"), read(1), checkpoint("b", name="inner"),
                           read(2), rewind("INNER"), read(3), checkpoint("c", name="other"),
                           rewind("ALL", to="outer"), "answer")
    agent.prompt("go")

    assert "CONTENT" not in "".join(model.last)
    assert "INNER" not in "".join(model.last)
    assert "ALL" in model.last[-1]
    assert agent.rewinder.windows == []


def test_after_an_inner_rewind_the_outer_checkpoint_is_still_active() -> None:
    agent, model = session(checkpoint("a", name="outer"), read(1), checkpoint("b"), read(2),
                           rewind("INNER"), rewind("OUTER"), "answer")
    agent.prompt("go")

    assert roles(model) == ["user", "assistant", "toolResult", "user"]
    assert "OUTER" in model.last[-1]


def test_a_checkpoint_can_be_set_again_after_a_rewind() -> None:
    agent, model = session(checkpoint("a"), read(1), rewind("A"), checkpoint("b"), read(2),
                           rewind("B"), "answer")
    agent.prompt("go")

    assert sum("<rewind-report" in text for text in model.last) == 2
    assert "CONTENT" not in "".join(model.last)


def test_a_long_report_is_the_same_live_and_resumed(tree: SessionTree) -> None:
    agent, model = session(checkpoint(), rewind("x" * (MOST_CHARACTERS + 1)), "answer", tree=tree)

    agent.prompt("go")

    assert CUT in model.last[-1]
    assert SessionTree.open(tree.path).messages()[:-1] == model.requests[-1]


def test_what_is_resumed_is_what_was_live(tree: SessionTree) -> None:
    agent, _ = session(checkpoint(), read(1), rewind(), read(2), "answer", tree=tree)
    agent.prompt("go")

    assert SessionTree.open(tree.path).messages() == agent.messages


def test_a_resumed_session_can_rewind_a_checkpoint_of_the_killed_one(tree: SessionTree) -> None:
    def killed() -> Reply:
        raise KeyboardInterrupt

    agent, _ = session(checkpoint(name="a"), read(1), killed, tree=tree)
    with pytest.raises(KeyboardInterrupt):
        agent.prompt("go")

    resumed, _ = session(tree=SessionTree.open(tree.path))
    assert [window.as_json() for window in resumed.rewinder.windows] == [
        window.as_json() for window in agent.rewinder.windows]


def test_a_rewind_that_was_killed_before_it_was_applied_is_applied_on_resume(
    tree: SessionTree
) -> None:
    agent, _ = session(checkpoint(), read(1), rewind(), "never", tree=tree)
    with (
        mock.patch("coderewind.context.session.branch_from", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        agent.prompt("go")

    resumed, model = session("answer", tree=SessionTree.open(tree.path))
    resumed.prompt("next")

    assert "CONTENT 1" not in "".join(model.last)
    assert "FINDINGS" in model.last[-2]
    assert model.last[-1] == "next"


def test_a_rewind_on_resume_reads_no_exploration(
    tree: SessionTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, _ = session(checkpoint(), *[read(n) for n in range(20)], rewind(), tree=tree)
    with (
        mock.patch("coderewind.context.session.branch_from", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        agent.prompt("go")
    reopened = SessionTree.open(tree.path)
    parsed: list[str] = []
    entry = SessionTree.entry

    def counted(self: SessionTree, id: str) -> Json:
        parsed.append(id)
        return entry(self, id)

    monkeypatch.setattr(SessionTree, "entry", counted)
    resumed, model = session("answer", tree=reopened)
    resumed.prompt("go on")

    assert "FINDINGS" in model.last[-2]
    results = [id for id in tree if tree.role(id) == "toolResult"]
    assert len(set(parsed) & set(results)) == 2  # of the checkpoint and of the rewind


def test_a_compaction_inside_the_window_is_undone_by_the_rewind(tree: SessionTree) -> None:
    def compacted() -> Reply:
        tree.append_compaction("SUMMARY OF IT ALL")
        return read(2)

    agent, model = session("earlier answer", checkpoint(), compacted, rewind(), "answer",
                           tree=tree)
    agent.prompt("earlier")
    agent.prompt("go")

    assert "SUMMARY" not in "".join(model.last)
    assert model.last[:3] == ["earlier", "earlier answer", "go"]
    assert "FINDINGS" in model.last[-1]


def test_a_checkpoint_that_is_gone_falls_back_to_the_root(
    tree: SessionTree, caplog: pytest.LogCaptureFixture
) -> None:
    def elsewhere() -> Reply:
        tree.branch(None)
        tree.append_message({"role": "user", "content": "a root of its own"})
        return rewind()

    agent, model = session(checkpoint(), elsewhere, "answer", tree=tree)
    agent.prompt("go")

    assert model.last[0] == "a root of its own"
    assert "no longer in the context" in model.last[1]
    assert "falling back to root" in caplog.text
    assert len(model.last) == 2


def test_dropping_a_checkpoint_keeps_the_context(tree: SessionTree) -> None:
    agent, model = session(checkpoint(), read(1), "x", "x", "x", rewind(), "answer", tree=tree)
    agent.prompt("go")

    agent.drop_checkpoint()
    agent.reload()
    agent.prompt("on")

    assert answers(model)[-1] == words.NONE_ACTIVE
    assert "CONTENT 1" in model.last


def test_summarize_from_lets_a_summary_stand_for_the_rest(tree: SessionTree) -> None:
    agent, model = session("one", read(1), "two", "three", tree=tree)
    agent.prompt("first")
    agent.prompt("second")
    items = tree.context()

    agent.summarize_from(items[4].entry,
                         lambda messages: "SHORT: " + "|".join(map(text_of, messages)))
    agent.prompt("third")

    assert model.last[:3] == ["first", "one", "second"]
    assert "SHORT: |CONTENT 1|two" in model.last[3]
    assert model.last[4:] == ["third"]


def test_summarize_up_to_lets_a_summary_stand_for_the_beginning(tree: SessionTree) -> None:
    agent, model = session("one", read(1), "two", "three", tree=tree)
    agent.prompt("first")
    agent.prompt("second")
    items = tree.context()

    agent.summarize_up_to(items[3].entry, lambda messages: f"{len(messages)} MESSAGES")
    agent.prompt("third")

    assert "3 MESSAGES" in model.last[0]
    assert model.last[1:] == ["", "CONTENT 1", "two", "third"]


@pytest.mark.parametrize("at", ["carried", "report"])
def test_a_summary_takes_what_a_rewind_carried_over_together_with_its_report(
    tree: SessionTree, at: str
) -> None:
    def steered() -> Reply:
        agent.steer("never touch mod5.py")
        return read(1)

    agent, model = session(checkpoint(), steered, rewind(), "one", "two", tree=tree)
    agent.prompt("go")
    carried, report, *_ = [item.entry for item in tree.context()][-3:]

    agent.summarize_from(carried if at == "carried" else report,
                         lambda part: "SUM " + " ".join(map(text_of, part)))

    assert [text_of(message).count("mod5.py") for message in agent.messages][-1] == 1
    assert [message["role"] for message in agent.messages] == [
        "user", "assistant", "toolResult", "user"]
    agent.prompt("and now?")
    assert "CONTENT 1" not in "".join(model.last)


def test_a_rewind_carries_over_what_a_summary_inside_the_window_stood_for(
    tree: SessionTree
) -> None:
    def steered() -> Reply:
        agent.steer("never touch mod5.py")
        return read(1)

    def summarised() -> Reply:
        entry = next(item.entry for item in tree.context()
                     if text_of(item.message) == "never touch mod5.py")
        agent.summarize_from(entry, lambda part: "SUM")
        return rewind()

    agent, model = session(checkpoint(), steered, read(2), summarised, "one", tree=tree)
    agent.prompt("go")

    assert model.last.count("never touch mod5.py") == 1
    assert "SUM" not in "".join(model.last)


def test_summaries_that_point_at_each_other_do_not_hang_a_rewind(tree: SessionTree) -> None:
    agent, _ = session(checkpoint(), rewind(), "one", tree=tree)
    agent.tree.append_message({"role": "user", "content": "go"})
    root = tree.leaf
    forged = [{"type": "branch_summary", "id": a, "parentId": root, "timestamp": "", "fromId": b,
               "summary": "x", "details": {"summarizedFrom": "x"}}
              for a, b in (("aaaaaaaa", "bbbbbbbb"), ("bbbbbbbb", "aaaaaaaa"))]
    with open(tree.path, "a") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in forged)

    agent, model = session(checkpoint(), rewind(), "one", tree=SessionTree.open(tree.path))
    agent.prompt("on")

    assert "FINDINGS" in model.last[-1]


def test_a_summary_of_all_is_one_up_to_the_end(tree: SessionTree) -> None:
    agent, _ = session("one", "two", tree=tree)
    agent.prompt("go")
    agent.summarize_up_to(tree.context()[-1].entry, lambda part: "SUM")
    agent.prompt("on")

    with pytest.raises(RewindError, match="is a summary already"):
        agent.summarize_from(tree.context()[0].entry, lambda part: "AGAIN")


def test_a_summary_up_to_a_rewind_does_not_part_it_from_what_it_carried_over(
    tree: SessionTree
) -> None:
    def steered() -> Reply:
        agent.steer("never touch mod5.py")
        return read(1)

    agent, _ = session(checkpoint(), steered, rewind(), "one", tree=tree)
    agent.prompt("go")
    carried = next(item.entry for item in tree.context()
                   if text_of(item.message) == "never touch mod5.py")

    agent.summarize_up_to(carried, lambda part: f"SUM {len(part)}")

    said = [text_of(message) for message in agent.messages]
    assert "SUM 3" in said[0]
    assert said[1] == "never touch mod5.py"
    assert "FINDINGS" in said[2]


def test_an_empty_summary_changes_nothing(tree: SessionTree) -> None:
    agent, _ = session("one", tree=tree)
    agent.prompt("first")
    before = Path(tree.path).read_bytes()

    with pytest.raises(RewindError, match="empty"):
        agent.summarize_from(tree.context()[0].entry, lambda messages: " ")
    assert Path(tree.path).read_bytes() == before


def test_a_tool_that_fails_is_told_to_the_model() -> None:
    def fails(arguments: object, id: str) -> str:
        raise ValueError("out of cheese")

    agent, model = session(calls(call("eat")), "answer",
                           tools=[Tool("eat", "", {"properties": {}, "required": []}, fails)])
    agent.prompt("go")

    assert answers(model) == ["ValueError: out of cheese"]


def test_an_agent_that_never_ends_is_stopped() -> None:
    agent, _ = session(*[read()] * 10)
    agent.max_turns = 3

    with pytest.raises(RewindError, match="within 3 turns"):
        agent.prompt("go")
