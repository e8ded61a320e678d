"""Points in oh-my-pi, where other events are waited for, and none says which entry it is about.

Before a tool runs (`tool_call`), before the model is asked again (`context`) and when the agent
stops, files are what they were when the newest entries were written; so all of these that have no
point yet get it then, from one capture. While tools are under way nothing is bound.
"""

from __future__ import annotations

from coderewind.agents import adapter as at
from coderewind.bridge import turns
from coderewind.bridge.agent import ASSISTANT, USER
from coderewind.bridge.bridge import Bridge
from coderewind.bridge.points import AFTER, BATCH, PROMPT, Place
from coderewind.bridge.turns import Turns
from coderewind.hooks.words import turn_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.bridge.bridge import Data

_RESULT = "toolResult"


class OmpTurns(Turns):
    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self._open: set[str] = set()  # the tool calls that are under way

    def asked(self, _data: Data, leaf: str) -> None:
        self._open.clear()  # the model is asked when all of them are over, or were aborted
        self._look(leaf)

    def tool_called(self, data: Data, leaf: str) -> None:
        if not self._open:
            self._look(leaf)
        super().tool_called(data, leaf)
        self._open.add(str(data.get("toolCallId")))

    def tool_ended(self, data: Data, leaf: str) -> None:
        super().tool_ended(data, leaf)
        self._open.discard(str(data.get("toolCallId")))

    def settled(self, data: Data, leaf: str) -> None:
        self._open.clear()
        super().settled(data, leaf)

    def _look(self, leaf: str) -> None:
        if leaf == self._seen:
            return
        new = self.bridge.agent.branch(leaf, self._seen)[::-1]
        self._seen = leaf
        self._known |= {entry.id for entry in new}
        places = []
        for number, entry in enumerate(new):
            if self.bridge.points.find(entry.id) is not None:
                continue
            if entry.kind == USER:
                self.prompt, self.prompt_id = entry.text, entry.id
                places.append(Place(PROMPT, at.AT_PROMPT, entry.id, prompt=entry.text,
                                    prompt_id=entry.id))
            elif entry.kind == ASSISTANT:
                following = (after.kind for after in new[number + 1 :])
                called = next((kind for kind in following if kind in (_RESULT, ASSISTANT)), "")
                tools, self._tools = list(self._tools.values()), {}
                places.append(Place(BATCH if called == _RESULT else AFTER, at.AT_ENTRY, entry.id,
                                    label=turn_words(self.prompt, tools), prompt=self.prompt,
                                    prompt_id=self.prompt_id))
        if places:
            self._bind(*places)


def register(bridge: Bridge) -> None:
    if bridge.session.agent == "omp":
        turns.listen(bridge, OmpTurns(bridge))
