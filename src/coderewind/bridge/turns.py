"""Points as the agent works: at prompts, at the end of each of its turns, at compactions.

A prompt's files are captured at `context`, the first moment at which its entry is the leaf, and
before any tool: `tool_call` is waited for, and events are handled in their order. So captures run
while the model thinks. Entries are known by their ids, never by turns, words or times.
"""

from __future__ import annotations

from coderewind.agents import adapter as at
from coderewind.bridge import marks
from coderewind.bridge.agent import ASSISTANT, USER
from coderewind.bridge.bridge import Bridge
from coderewind.bridge.points import AFTER, BATCH, COMPACT, PROMPT, START, Place
from coderewind.bridge.session import RESPAWN
from coderewind.errors import RewindError
from coderewind.hooks.payload import Call
from coderewind.hooks.words import call_words, turn_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.bridge.bridge import Data
    from coderewind.model.records import Checkpoint

_MARKERS_OF = ("pi-custom-compaction",)  # who may ask for a point at an entry of its own
_CHANGES_FILES = ("toolResult", "bashExecution")
_TOOLS_KEPT = 60


class Turns:
    """What the agent is doing."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.prompt = ""
        self.prompt_id = ""
        self._tools: dict[str, str] = {}  # of this turn: id -> words
        self._bindings: list[marks.Binding] = []  # of this prompt
        # The newest entry that was looked at. A bridge that takes over in the middle looks at all.
        self._seen = "" if bridge.session.reason == RESPAWN else bridge.session.leaf
        self._known = bridge.known

    # ---- events

    def begin(self, _data: Data, _leaf: str) -> None:
        """A point when the session starts, so that there is always one to fall back to. Not where
        nobody is there to: the prompt that it is started with has its own at once."""
        bridge, session = self.bridge, self.bridge.session
        branch = bridge.agent.branch(session.leaf)
        self._known.update(entry.id for entry in branch)
        visible = next((entry for entry in branch if entry.has_point), None)
        prompt = next((entry for entry in branch if entry.kind == USER), None)
        if prompt is not None:
            self.prompt, self.prompt_id = prompt.text, prompt.id
        if session.reason == RESPAWN:
            self._look(session.leaf)
        elif session.has_ui or visible:
            entry = visible.id if visible else ""
            where = at.AT_ENTRY if entry else at.AT_START
            self._make(Place(START, where, entry, label="session started"))
        self.bridge.show()

    def asked(self, _data: Data, leaf: str) -> None:
        """The model is about to be asked: new prompts are in the session now."""
        if leaf != self._seen:
            self._look(leaf)

    def tool_called(self, data: Data, _leaf: str) -> None:
        given = data.get("input")
        call = Call(str(data.get("toolName"))[:100], str(data.get("toolCallId")),
                    given if isinstance(given, dict) else {})
        if len(self._tools) < _TOOLS_KEPT:
            self._tools[call.id] = call_words(call)

    def tool_ended(self, data: Data, _leaf: str) -> None:
        key = str(data.get("toolCallId"))
        if data.get("isError") is True and key in self._tools:
            self._tools[key] += " (failed)"

    def turn_ended(self, data: Data, _leaf: str) -> None:
        entry = data.get("messageEntryId")
        tools, self._tools = list(self._tools.values()), {}
        if not isinstance(entry, str) or not entry:
            return
        last = not data.get("toolResultEntryIds")
        label = turn_words(self.prompt, tools)
        self._bind(Place(AFTER if last else BATCH, at.AT_ENTRY, entry, label=label,
                         prompt=self.prompt, prompt_id=self.prompt_id))

    def settled(self, _data: Data, leaf: str) -> None:
        """Nothing more comes: retries and queued prompts are done, too."""
        self._look(leaf)
        self._write_down()
        self.bridge.show()

    def compacted(self, data: Data, _leaf: str) -> None:
        entry = data.get("id")
        if isinstance(entry, str) and entry:
            self._mark(Place(COMPACT, at.AT_ENTRY, entry, label="compaction",
                             prompt_id=self.prompt_id))

    def marked(self, data: Data, _leaf: str) -> None:
        """Another extension asks for a point at an entry of its own."""
        entry = data.get("entryId")
        if data.get("source") not in _MARKERS_OF or not isinstance(entry, str):
            return
        if self.bridge.agent.entry(entry) is not None:
            self._mark(Place(COMPACT, at.AT_ENTRY, entry, label="compaction",
                             prompt_id=self.prompt_id))

    def ended(self, _data: Data, _leaf: str) -> None:
        self._write_down()

    # ---- points

    def _look(self, leaf: str) -> None:
        """Bind the prompts that are new in the branch.

        After a tool has run, or another prompt, it is too late to say what the files were.
        """
        new = self.bridge.agent.branch(leaf, self._seen)
        self._seen = leaf
        self._known |= {entry.id for entry in new}
        places: list[Place] = []
        for entry in new:
            if entry.kind in _CHANGES_FILES or (entry.kind == ASSISTANT and places):
                break
            if entry.kind == USER and self.bridge.points.find(entry.id) is None:
                places.append(Place(PROMPT, at.AT_PROMPT, entry.id, prompt=entry.text,
                                    prompt_id=entry.id))
        prompts = [entry for entry in new if entry.kind == USER]
        if prompts:
            self.prompt, self.prompt_id = prompts[0].text, prompts[0].id
        if places:
            self._bind(*reversed(places))

    def _bind(self, *places: Place) -> list[Checkpoint]:
        made = self._make(*places)
        self._bindings += [(cp.anchor.entry, cp.snapshot) for cp in made]
        self._known |= {cp.anchor.entry for cp in made}
        return made

    def _mark(self, place: Place) -> None:
        """A point that has an entry of its own in the session."""
        for cp in self._make(place):
            self._known.add(cp.anchor.entry)
            self.bridge.mark(marks.OP, marks.op(bindings=[(cp.anchor.entry, cp.snapshot)]))
        self.bridge.show()

    def _make(self, *places: Place) -> list[Checkpoint]:
        """A point that cannot be made is said and left out: the agent goes on."""
        try:
            return self.bridge.points.make(*places)
        except RewindError as error:
            self.bridge.say_once(f"no checkpoint: {error.message}")
            return []

    def _write_down(self) -> None:
        bindings, self._bindings = self._bindings, []
        if bindings:
            self.bridge.mark(marks.TURN, marks.turn(bindings))


def register(bridge: Bridge) -> None:
    if bridge.session.agent != "omp":
        listen(bridge, Turns(bridge))


def listen(bridge: Bridge, turns: Turns) -> None:
    for name, handler in (
        ("hello", turns.begin),
        ("context", turns.asked),
        ("tool_call", turns.tool_called),
        ("tool_result", turns.tool_ended),
        ("turn_end", turns.turn_ended),
        ("agent_settled", turns.settled),
        ("session_stop", turns.settled),
        ("session_compact", turns.compacted),
        ("rewind:checkpoint-entry", turns.marked),
        ("session_shutdown", turns.ended),
    ):
        bridge.on(name, handler)
