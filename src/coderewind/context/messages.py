"""A host's own list of messages: how it is read, and where a rewind cuts it.

Each host writes messages in its own way; `Messages` is what an adapter says about them. The cut
itself is made here, the same for all: no pair of a tool call and its result is ever split, and
what the user wrote is never dropped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from coderewind.context.words import Sibling, is_frame

M = TypeVar("M")

CHECKPOINT = "checkpoint"
REWIND = "rewind"


class Call(NamedTuple):
    """A tool call that a message makes."""

    id: str
    name: str
    arguments: object = None


class Result(NamedTuple):
    """The result of a tool call that a message brings."""

    call: str
    text: str = ""


class Messages(Generic[M]):
    """What an adapter says about its host's messages. Nothing here may change a message."""

    # Whether the host makes the cut by itself, with a report and nothing else after the
    # checkpoint. There is one checkpoint at a time then, its tools are called alone, and the
    # report repeats what the user said.
    cuts_itself = False

    def calls(self, message: M) -> Sequence[Call]:
        """The tool calls that a message makes."""
        raise NotImplementedError

    def results(self, message: M) -> Sequence[Result]:
        """The tool calls that a message answers."""
        raise NotImplementedError

    def user(self, message: M) -> M | None:
        """The message reduced to what the user wrote; None when that is nothing.

        A message that the user wrote alone is itself. What a host writes in the user's role,
        such as a report, counts as the user's here: it is recognised by its words.
        """
        raise NotImplementedError

    def text(self, message: M) -> str:
        """The words of a message."""
        raise NotImplementedError

    def report(self, text: str) -> M:
        """A new message that gives a report to the model, as if the user had sent it."""
        raise NotImplementedError

    def is_report(self, message: M) -> bool:
        """Whether what `user` gave is a report or a reminder of ours, by its words."""
        return is_frame(self.text(message))

    def stays(self, message: M) -> bool:
        """Whether a message stays in any case: a system prompt, the summary of a compaction."""
        return False


class Cut(Generic[M]):
    """A list of messages taken apart at a checkpoint.

    `head` stays as it is, to the byte; `carried` are the user's messages of the window; the rest
    of the window is left, but the calls beside the rewind are told in the report (`siblings`).
    """

    __slots__ = ("carried", "gone", "head", "siblings")

    def __init__(
        self, head: list[M], carried: list[M], siblings: list[Sibling], *, gone: bool
    ) -> None:
        self.head = head
        self.carried = carried
        self.siblings = siblings
        self.gone = gone  # the checkpoint is no longer in the list


def cut(messages: Sequence[M], how: Messages[M], checkpoint: str, rewind: str = "") -> Cut[M]:
    """Take a list apart at the checkpoint call with an id; `rewind` is the id of the call that
    asks for it, by default the last call of that name."""
    end = end_of_batch(messages, how, checkpoint)
    head = list(messages[:end])
    carried = []
    if end == 0:  # compacted away, or another branch: only what must stay is kept
        head = [message for message in messages if how.stays(message)]
    for message in messages[end:]:
        if how.stays(message):
            if end:
                carried.append(message)
            continue
        own = how.user(message)
        if own is not None and not how.is_report(own):
            carried.append(own)
    return Cut(head, carried, _siblings(messages[end:], how, rewind), gone=end == 0)


def call_of(messages: Sequence[M], how: Messages[M], name: str) -> str:
    """The id of the last call of a tool, "" when there is none."""
    for message in reversed(messages):
        for call in reversed(how.calls(message)):
            if call.name == name:
                return call.id
    return ""


def end_of_batch(messages: Sequence[M], how: Messages[M], checkpoint: str) -> int:
    """After the checkpoint's result, and those of the calls made beside it; 0: it is gone."""
    asked = _last_call(messages, how, checkpoint)
    if asked < 0:
        return 0
    waiting = _batch(messages, how, asked)
    end = asked + 1
    for i in range(end, len(messages)):
        answered = waiting & {result.call for result in how.results(messages[i])}
        if answered:
            waiting -= answered
            end = i + 1
        if not waiting:
            break
    return end


def _last_call(messages: Sequence[M], how: Messages[M], id: str) -> int:
    for i in reversed(range(len(messages))):
        if any(call.id == id for call in how.calls(messages[i])):
            return i
    return -1


def _batch(messages: Sequence[M], how: Messages[M], at: int) -> set[str]:
    """The calls of one reply, where a host writes each as a message of its own."""
    first = at
    while first > 0 and how.calls(messages[first - 1]) and not how.results(messages[first - 1]):
        first -= 1
    found: set[str] = set()
    for message in messages[first:]:
        if not how.calls(message) or how.results(message):
            break
        found |= {call.id for call in how.calls(message)}
    return found


def _siblings(window: Sequence[M], how: Messages[M], rewind: str) -> list[Sibling]:
    at = _last_call(window, how, rewind or call_of(window, how, REWIND))
    if at < 0:
        return []
    batch = _batch(window, how, at)
    calls = {call.id: call for message in window for call in how.calls(message)
             if call.id in batch and call.name not in (CHECKPOINT, REWIND)}
    return [Sibling(_spelled(calls[result.call]), result.text)
            for message in window[at:] for result in how.results(message) if result.call in calls]


def _spelled(call: Call) -> str:
    arguments = call.arguments
    if not isinstance(arguments, str):
        try:
            arguments = json.dumps(arguments, ensure_ascii=False)
        except (TypeError, ValueError):
            arguments = str(arguments)
    return f"{call.name}({arguments})"
