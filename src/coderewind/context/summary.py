"""Summarise a part of a conversation: from an entry on, or up to it.

What is summarised stays in the file, on the path that is left. No pair of a tool call and its
result is split: the part begins or ends where none is open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coderewind.context.persist import Json
from coderewind.context.projection import (
    SUMMARIZED,
    Item,
    blocks,
    for_model,
    is_call,
    well_formed,
)
from coderewind.context.tree import SessionTree
from coderewind.errors import RewindError

Summarise = Callable[[list[Json]], str]


def summarize_from(tree: SessionTree, entry: str, summarise: Summarise) -> str:
    """Let a summary stand for an entry and all after it; the id of its branch summary."""
    items = tree.context()
    start = _balanced(items, _index(items, entry))
    if tree.kind(items[start].via) == "compaction":
        raise RewindError(f"entry {entry} is a summary already",
                          hint="summarize_up_to makes one of it and what follows")
    text = _summary(items[start:], summarise)
    first = items[start].via
    return tree.branch_with_summary(tree.parent(first), text, {SUMMARIZED: first})


def summarize_up_to(tree: SessionTree, entry: str, summarise: Summarise) -> str:
    """Let a summary stand for everything up to an entry; the id of its compaction.

    A compaction is what Pi and omp read as a summary before what is kept.
    """
    items = tree.context()
    end = _balanced(items, _index(items, entry) + 1)
    summarised = [item for item in items[:end] if item.message.get("role") != "system"]
    if not summarised:
        raise RewindError(f"there is nothing to summarise up to entry {entry}")
    text = _summary(summarised, summarise)
    kept = items[end].via if end < len(items) else None
    return tree.append_compaction(text, kept, details={"summarizedUpTo": items[end - 1].entry})


def _index(items: Sequence[Item], entry: str) -> int:
    for i, item in enumerate(items):
        if item.entry == entry:
            return i
    raise RewindError(f"entry {entry} is not in the context")


def _balanced(items: Sequence[Item], at: int) -> int:
    """The last place up to `at` over which no tool call waits for its result, and which does not
    part what one entry of the branch brings."""
    waiting: set[str] = set()
    answered = {str(item.message.get("toolCallId")) for item in items
                if item.message.get("role") == "toolResult"}
    found = 0
    for i, item in enumerate(items[:at]):
        if not waiting and (i == 0 or item.via != items[i - 1].via):
            found = i
        if item.message.get("role") == "assistant":
            waiting |= {str(block.get("id")) for block in blocks(item.message)
                        if is_call(block) and str(block.get("id")) in answered}
        elif item.message.get("role") == "toolResult":
            waiting.discard(str(item.message.get("toolCallId")))
    parted = 0 < at < len(items) and items[at].via == items[at - 1].via
    return found if waiting or parted else at


def _summary(items: Sequence[Item], summarise: Summarise) -> str:
    messages = [message for item in well_formed(items)
                if (message := for_model(item.message)) is not None]
    text = summarise(messages).strip()
    if not text:
        raise RewindError("the summary is empty; nothing was changed")
    return text
