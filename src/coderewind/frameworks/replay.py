"""For a framework whose own history keeps everything: the cuts, applied again at each request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple

from coderewind.context import ContextRewind, Messages
from coderewind.context.messages import M, cut, end_of_batch


class Closed(NamedTuple):
    """A window that was rewound: the ids of its two calls, and the report in its frame."""

    checkpoint: str
    rewind: str
    frame: str


class Replay(Generic[M]):
    """One conversation. `closed` may be kept by the host, and given back in another process."""

    def __init__(self, rewinder: ContextRewind[M], closed: Iterable[Closed] = ()) -> None:
        self.rewinder = rewinder
        self.closed = list(closed)

    def request(self, messages: Sequence[M]) -> list[M]:
        """What the model is to be sent for a history; all tools of the last turn have answered."""
        seen = self.seen(messages)
        asked = self.rewinder.state()["request"]
        rewound = self.rewinder.settle(seen)
        if rewound is None:
            return seen
        call = str(asked.get("call", "")) if isinstance(asked, dict) else ""
        self.closed.append(Closed(rewound.window.call, call, rewound.frame))
        return rewound.messages(self.rewinder.how)

    def seen(self, messages: Sequence[M]) -> list[M]:
        """A history as the model saw it."""
        return replayed(messages, self.rewinder.how, self.closed)


def replayed(messages: Sequence[M], how: Messages[M], closed: Iterable[Closed]) -> list[M]:
    """A history without the windows that were closed; what it no longer holds is passed over."""
    seen = list(messages)
    for window in closed:
        end = end_of_batch(seen, how, window.rewind)
        if end:
            parts = cut(seen[:end], how, window.checkpoint, window.rewind)
            seen = [*parts.head, *parts.carried, how.report(window.frame), *seen[end:]]
    return seen
