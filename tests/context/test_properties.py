"""Whatever is done to a session, in whatever order and wherever it is killed: it holds together."""

import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from coderewind import RewindError
from coderewind.context import Reply, SessionTree
from coderewind.context.projection import blocks, is_call, text_of
from context.agent import call as call_of
from context.agent import calls, session


def check_well_formed(tree: SessionTree) -> None:
    """Every result follows its call, every call has its result, in what a model is sent."""
    waiting: set[str] = set()
    for message in tree.messages():
        if message["role"] == "toolResult":
            assert message["toolCallId"] in waiting
            waiting.discard(str(message["toolCallId"]))
            continue
        assert not waiting, "a message between a call and its result"
        waiting = {str(block["id"]) for block in blocks(message) if is_call(block)}
        assert message["role"] != "assistant" or message["content"]
    assert not waiting


class Sessions(RuleBasedStateMachine):
    """An agent that explores, rewinds, is interrupted and killed, and a user who speaks."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        tree = SessionTree.create(Path(self.folder.name) / "session.jsonl")
        self.agent, self.model = session(tree=tree)
        self.told: list[str] = []  # what the user said on the branch that is in force
        self.count = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    @property
    def tree(self) -> SessionTree:
        return self.agent.tree

    def say(self, word: str) -> str:
        self.count += 1
        self.told.append(f"{word} {self.count}")
        return self.told[-1]

    def act(self, *steps: Reply, stop: bool = False) -> None:
        """Let the agent do some turns of tools in one prompt, and then answer."""
        words = self.say("prompt")

        def last() -> str:
            if stop:
                self.agent.abort()
            return "done"

        self.model.steps = [*steps, *[last] * 4]
        self.agent.prompt(words)

    @rule(
        turns=st.lists(
            st.lists(
                st.sampled_from(["read", "checkpoint", "named", "rewind", "outer", "steer"]),
                min_size=1, max_size=3),
            max_size=6),
        stop=st.booleans(),
    )
    def work(self, turns: list[list[str]], stop: bool) -> None:
        steps = []
        for turn in turns:
            made = []
            for what in turn:
                if what == "checkpoint":
                    made.append(call_of("checkpoint", goal="g"))
                elif what == "named":
                    made.append(call_of("checkpoint", goal="g", name="outer"))
                elif what == "rewind":
                    made.append(call_of("rewind", report="r"))
                elif what == "outer":
                    made.append(call_of("rewind", report="r", to="outer"))
                else:
                    made.append(call_of("read", n=1))
                if what == "steer":
                    self.agent.steer(self.say("steer"))
            steps.append(calls(*made))
        self.act(*steps, stop=stop)
        if self.agent._steering:  # said to an agent that was stopped: it comes with the next prompt
            self.agent._steering.clear()
            self.told = [words for words in self.told
                         if words.startswith("prompt") or words in self.everything()]

    @precondition(lambda self: len(self.tree) > 0)
    @rule(data=st.data())
    def go_back(self, data: st.DataObject) -> None:
        to = data.draw(st.sampled_from(self.tree.branch_ids()))
        self.tree.branch(to)
        self.tree.append_custom("here", {})  # the leaf of a file is its last entry
        self.agent.reload()
        self.told = [words for words in self.told if words in self.everything()]

    @precondition(lambda self: len(self.tree) > 0)
    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        replies = [item.entry for item in self.tree.context()
                   if item.message["role"] == "assistant" and
                   not any(is_call(block) for block in blocks(item.message))]
        if replies:
            self.tree.edit(data.draw(st.sampled_from(replies)), data.draw(
                st.sampled_from([None, "shorter"])))

    @rule()
    def compact(self) -> None:
        users = [item.entry for item in self.tree.context() if item.message["role"] == "user"
                 and item.entry in self.tree.branch_ids()]
        if users:
            self.tree.append_compaction("SUMMARY " + " ".join(self.told), users[-1])

    @rule(data=st.data(), end=st.booleans())
    def summarise(self, data: st.DataObject, end: bool) -> None:
        """A part of the conversation becomes a summary that tells all that the user said in it."""
        entries = [item.entry for item in self.tree.context() if item.message["role"] != "system"
                   and item.entry in self.tree.branch_ids()]
        if not entries:
            return
        at = data.draw(st.sampled_from(entries))
        try:
            (self.agent.summarize_from if end else self.agent.summarize_up_to)(
                at, lambda messages: "SUMMARY " + " ".join(map(text_of, messages)))
        except RewindError:
            pass  # there is nothing to summarise

    @rule(cut=st.integers(0, 300))
    def crash(self, cut: int) -> None:
        """The file loses its last bytes, as after a crash; a new process opens what is left."""
        size = os.path.getsize(self.tree.path)
        header = len(Path(self.tree.path).read_bytes().split(b"\n", 1)[0]) + 1
        os.truncate(self.tree.path, max(header, size - cut))
        self.agent, self.model = session(tree=SessionTree.open(self.tree.path))
        self.told = [words for words in self.told if words in self.everything()]

    @rule()
    def resume(self) -> None:
        before = self.agent.rewinder.state()
        self.agent, self.model = session(tree=SessionTree.open(self.tree.path))
        assert {**self.agent.rewinder.state(), "ended": ""} == {**before, "ended": ""}

    def everything(self) -> str:
        """All that the branch says, with what a compaction or a rewind carries."""
        return "\n".join(text_of(message) for message in self.tree.messages())

    @invariant()
    def holds_together(self) -> None:
        if not hasattr(self, "agent"):
            return
        check_well_formed(self.tree)
        resumed = SessionTree.open(self.tree.path)
        assert resumed.messages(self.tree.leaf) == self.tree.messages()
        said = self.everything()
        assert [words for words in self.told if words not in said] == []


TestSessions = Sessions.TestCase
TestSessions.settings = settings(stateful_step_count=12, max_examples=settings().max_examples // 2)


@given(st.binary(max_size=400), st.integers(0, 3))
def test_no_bytes_in_a_file_break_it(noise: bytes, at: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = SessionTree.create(Path(folder) / "session.jsonl")
        for word in "abc":
            tree.append_message({"role": "user", "content": word})
        lines = Path(tree.path).read_bytes().splitlines(keepends=True)
        lines.insert(at + 1, noise + b"\n")
        Path(tree.path).write_bytes(b"".join(lines))

        reopened = SessionTree.open(tree.path)
        reopened.append_message({"role": "user", "content": "d"})

        check_well_formed(reopened)
        assert text_of(SessionTree.open(tree.path).messages()[-1]) == "d"
