"""ContextRewind on the message lists of hosts, in the three shapes that they have."""

import json
from collections.abc import Sequence

import pytest

from coderewind.context import Call, ContextRewind, Gate, Messages, Result, ToolError, words
from coderewind.context.persist import Json

ON = Gate(enabled=True)


class Chat(Messages[Json]):
    """A reply is one message with all its calls; each result is a message (chat completions)."""

    def said(self, text: str) -> list[Json]:
        return [{"role": "user", "text": text}]

    def reply(self, *calls: Call) -> list[Json]:
        return [{"role": "assistant", "text": "", "calls": list(calls)}]

    def answer(self, *results: Result, user: str = "") -> list[Json]:
        rows: list[Json] = [{"role": "tool", "results": [result]} for result in results]
        return rows + self.said(user) if user else rows

    def calls(self, message: Json) -> Sequence[Call]:
        calls = message.get("calls", [])
        assert isinstance(calls, list)
        return calls

    def results(self, message: Json) -> Sequence[Result]:
        results = message.get("results", [])
        assert isinstance(results, list)
        return results

    def user(self, message: Json) -> Json | None:
        return message if message["role"] == "user" else None

    def text(self, message: Json) -> str:
        return str(message.get("text", ""))

    def report(self, text: str) -> Json:
        return {"role": "user", "text": text}

    def stays(self, message: Json) -> bool:
        return message["role"] == "system"


class Items(Chat):
    """Each call and each result is an item of its own (Responses)."""

    def reply(self, *calls: Call) -> list[Json]:
        return [{"role": "assistant", "calls": [call]} for call in calls]


class Parts(Chat):
    """All results, and what the user says with them, are parts of one message (pydantic-ai)."""

    def answer(self, *results: Result, user: str = "") -> list[Json]:
        return [{"role": "request", "results": list(results), "text": user}]

    def user(self, message: Json) -> Json | None:
        if message["role"] == "request":
            return {**message, "results": []} if message["text"] else None
        return super().user(message)


class Host:
    """A list of messages and the tools, driven by hand."""

    def __init__(self, how: Chat) -> None:
        self.how = how
        self.rewinder = ContextRewind(how, gate=ON)
        self.messages = how.said("go")
        self._calls = 0

    def turn(self, *tools: tuple[str, str], user: str = "") -> "Host":
        """One turn: tools with their argument, all in one reply."""
        calls, results = [], []
        for name, argument in tools:
            self._calls += 1
            key = {"checkpoint": "goal", "rewind": "report"}.get(name, "path")
            call = Call(f"c{self._calls}", name, {key: argument})
            calls.append(call)
            results.append(Result(call.id, self._run(call, argument)))
        self.messages += self.how.reply(*calls) + self.how.answer(*results, user=user)
        self.messages = self.rewinder.turn_end(self.messages)
        return self

    def _run(self, call: Call, argument: str) -> str:
        try:
            if call.name == "checkpoint":
                return self.rewinder.checkpoint(argument, call=call.id)
            if call.name == "rewind":
                return self.rewinder.rewind(argument, call=call.id)
        except ToolError as error:
            return str(error)
        return f"CONTENT {argument}"

    @property
    def all(self) -> str:
        return json.dumps(self.messages)


@pytest.fixture(params=[Chat, Items, Parts], ids=["chat", "items", "parts"])
def host(request: pytest.FixtureRequest) -> Host:
    return Host(request.param())


def pairs(host: Host) -> tuple[list[str], list[str]]:
    calls = [call.id for message in host.messages for call in host.how.calls(message)]
    results = [result.call for message in host.messages for result in host.how.results(message)]
    return calls, results


def test_a_rewind_prunes_the_window(host: Host) -> None:
    host.turn(("checkpoint", "g"))
    head = list(host.messages)
    host.turn(("read", "a")).turn(("read", "b")).turn(("rewind", "FOUND"))

    assert host.messages[:-1] == head
    assert "CONTENT" not in host.all
    assert "FOUND" in host.how.text(host.messages[-1])


def test_calls_beside_the_checkpoint_stay_paired(host: Host) -> None:
    host.turn(("read", "a"), ("checkpoint", "g"), ("read", "b")).turn(("read", "c"))
    host.turn(("rewind", "FOUND"))

    calls, results = pairs(host)
    assert calls == results == ["c1", "c2", "c3"]
    assert "CONTENT c" not in host.all


def test_calls_beside_the_rewind_are_told(host: Host) -> None:
    host.turn(("checkpoint", "g")).turn(("read", "a"), ("rewind", "FOUND"), ("read", "b"))

    calls, results = pairs(host)
    assert calls == results == ["c1"]
    assert "CONTENT a" in host.how.text(host.messages[-1])
    assert "CONTENT b" in host.how.text(host.messages[-1])


def test_what_the_user_said_inside_stays_without_the_results_it_came_with(host: Host) -> None:
    host.turn(("checkpoint", "g")).turn(("read", "a"), user="not mod5.py").turn(("rewind", "F"))

    assert host.all.count("not mod5.py") == 1
    assert "CONTENT" not in host.all
    calls, results = pairs(host)
    assert calls == results == ["c1"]


def test_the_users_words_are_not_taken_for_a_report(host: Host) -> None:
    host.turn(("checkpoint", "g"))
    host.turn(("read", "a"), user="<rewind-report> is what it wrote, why?")
    host.turn(("rewind", "F"))

    assert host.all.count("is what it wrote, why?") == 1


def test_a_report_is_not_taken_for_the_users_words(host: Host) -> None:
    host.rewinder.checkpoint("outer", "out", call="c0")
    call = Call("c0", "checkpoint", {"goal": "outer", "name": "out"})
    host.messages += host.how.reply(call) + host.how.answer(Result("c0", "ok"))
    host.turn(("checkpoint", "inner")).turn(("rewind", "INNER")).turn(("rewind", "OUTER"))

    assert "INNER" not in host.all
    assert host.all.count("OUTER") == 1


def test_the_ids_of_calls_need_not_be_told(host: Host) -> None:
    for name, argument in (("checkpoint", "g"), ("read", "a"), ("rewind", "FOUND")):
        if name != "read":
            getattr(host.rewinder, name)(argument)
        host.messages += host.how.reply(Call(f"x{name}", name, {}))
        host.messages += host.how.answer(Result(f"x{name}", "ok"))
        host.messages = host.rewinder.turn_end(host.messages)

    assert pairs(host)[0] == ["xcheckpoint"]
    assert "FOUND" in host.all


def test_without_the_checkpoint_only_the_users_words_stay(host: Host) -> None:
    host.turn(("checkpoint", "g")).turn(("read", "a"))
    host.messages = [{"role": "system", "text": "SUMMARY"}, *host.how.said("kept words")]
    host.turn(("rewind", "FOUND"))

    assert [host.how.text(message)[:13] for message in host.messages] == [
        "SUMMARY", "kept words", "<rewind-repor"]
    assert "no longer in the context" in host.all


def test_the_state_survives_the_process(host: Host) -> None:
    host.turn(("checkpoint", "g")).turn(("read", "a"))
    state = json.loads(json.dumps(host.rewinder.state()))

    host.rewinder = ContextRewind(host.how, gate=ON)
    host.rewinder.load(state)
    host.turn(("rewind", "FOUND"))

    assert "CONTENT" not in host.all


def test_a_rewind_that_waits_survives_it_too(host: Host) -> None:
    host.turn(("checkpoint", "g")).turn(("read", "a"))
    host.rewinder.rewind("FOUND")

    state = json.loads(json.dumps(host.rewinder.state()))
    host.rewinder = ContextRewind(host.how, gate=ON)
    host.rewinder.load(state)

    assert "CONTENT" not in json.dumps(host.rewinder.turn_end(host.messages))


def test_the_state_can_be_rebuilt_from_the_messages(host: Host) -> None:
    host.turn(("checkpoint", "done")).turn(("rewind", "FIRST"))
    host.turn(("checkpoint", "open")).turn(("read", "a"))

    host.rewinder = ContextRewind(host.how, gate=ON)
    host.rewinder.resume(host.messages)

    assert [window.goal for window in host.rewinder.windows] == ["open"]
    host.turn(("rewind", "SECOND"))
    assert "CONTENT" not in host.all


def test_rebuilt_from_messages_a_prompt_after_the_checkpoint_suspends_it(host: Host) -> None:
    host.turn(("checkpoint", "g")).turn(("read", "a"))
    host.messages += host.how.said("something else")

    host.rewinder.resume(host.messages)

    assert host.rewinder.windows == []


def test_a_checkpoint_that_was_refused_is_not_rebuilt(host: Host) -> None:
    host.turn(("checkpoint", "g")).turn(("checkpoint", "again"))

    host.rewinder.resume(host.messages)

    assert [window.goal for window in host.rewinder.windows] == ["g"]


def test_a_state_that_makes_no_sense_is_an_empty_one(host: Host) -> None:
    for state in ({}, {"windows": 7}, {"windows": [None, 3]}, {"request": {"report": 1}}):
        host.rewinder.load(state)

    with pytest.raises(ToolError, match=words.NONE_ACTIVE):
        host.rewinder.load({})
        host.rewinder.rewind("x")


def test_without_a_rewind_the_messages_are_the_same(host: Host) -> None:
    host.turn(("read", "a"))

    assert host.rewinder.turn_end(host.messages) == host.messages
