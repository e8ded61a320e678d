"""From entries to the messages that a model gets, by the rules of Pi and omp.

`project` says what the path's entries contribute; `well_formed` takes out what a provider would
refuse; `for_model` puts what only agents know into words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from coderewind.context.persist import Json

COMPACTED = ("The conversation history before this point was compacted into the following "
             "summary:\n\n<summary>\n{}\n</summary>")
BRANCHED = ("The following is a summary of a branch that this conversation came back from:"
            "\n\n<summary>\n{}</summary>")

# In a branch summary's details: the ids of entries of the abandoned path that stay in the
# context, before the summary. The user's messages are carried over so.
CARRIED = "carried"

# In a branch summary's details: the first of the entries that it stands for.
SUMMARIZED = "summarizedFrom"

_FAILED = ("aborted", "error")


class Item:
    """A message of the context, and the entry that it comes from.

    `via` is the entry of the path that brought it: another one for what was carried over.
    """

    __slots__ = ("entry", "message", "via")

    def __init__(self, entry: str, message: Json, via: str = "") -> None:
        self.entry = entry
        self.message = message
        self.via = via or entry


def project(path: Sequence[Json], find: Callable[[str], Json | None]) -> list[Item]:
    """What a path's entries, root first, contribute; `find` knows those beside the path."""
    selected = _since_compaction(path)
    edits = {str(entry.get("targetId")): entry.get("replacement")
             for entry in selected if entry.get("type") == "context_edit"}
    items: list[Item] = []
    for i, entry in enumerate(selected):
        if entry.get("type") == "compaction" and i > 0:
            continue  # an older one that the newest kept
        for id in carried(entry):
            found = find(id)
            if found is not None:
                items += _edited(found, edits, via=str(entry.get("id")))
        items += _edited(entry, edits)
    return items


def well_formed(items: Sequence[Item]) -> list[Item]:
    """The items without half pairs of tool call and result, and without failed replies.

    A result belongs to the nearest call before it with its id: some providers use ids again.
    """
    kept = [item for item in items if not _failed(item.message)]
    open_calls: dict[str, int] = {}
    unanswered: dict[int, set[str]] = {}
    orphans: set[int] = set()
    for i, item in enumerate(kept):
        if item.message.get("role") == "assistant":
            calls = [str(block.get("id")) for block in blocks(item.message) if is_call(block)]
            unanswered[i] = set(calls)
            open_calls |= dict.fromkeys(calls, i)
        elif item.message.get("role") == "toolResult":
            call = str(item.message.get("toolCallId"))
            if call in open_calls:
                unanswered[open_calls.pop(call)].discard(call)
            else:
                orphans.add(i)
    found: list[Item] = []
    for i, item in enumerate(kept):
        message = item.message
        if unanswered.get(i):
            message = without_calls(message, unanswered[i])
        if i not in orphans and not (i in unanswered and not message.get("content")):
            found.append(item if message is item.message else Item(item.entry, message, item.via))
    return found


def for_model(message: Json) -> Json | None:
    """A message in the three roles that providers know (and system); None: not for the model."""
    role = message.get("role")
    if role in ("user", "assistant", "toolResult", "system"):
        return message
    if role in ("custom", "hookMessage"):
        content = message.get("content")
        return _user(message, content if isinstance(content, list) else str(content or ""))
    if role == "branchSummary":
        return _user(message, BRANCHED.format(message.get("summary")))
    if role == "compactionSummary":
        return _user(message, COMPACTED.format(message.get("summary")))
    if role == "bashExecution" and not message.get("excludeFromContext"):
        return _user(message, _bash(message))
    return None


def blocks(message: Json) -> list[Json]:
    """A message's content blocks; a plain text is one block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        return [block for block in content if isinstance(block, dict)]
    return []


def is_call(block: Json) -> bool:
    return block.get("type") == "toolCall"


def text_of(message: Json) -> str:
    """A message's words."""
    return "\n".join(str(block["text"]) for block in blocks(message)
                     if block.get("type") == "text" and isinstance(block.get("text"), str))


def carried(entry: Json) -> list[str]:
    """The entries that a branch summary has carried over, oldest first."""
    details = entry.get("details")
    if entry.get("type") != "branch_summary" or not isinstance(details, dict):
        return []
    ids = details.get(CARRIED)
    return [str(id) for id in ids] if isinstance(ids, list) else []


def _since_compaction(path: Sequence[Json]) -> list[Json]:
    at = max((i for i, entry in enumerate(path) if entry.get("type") == "compaction"), default=-1)
    if at < 0:
        return list(path)
    selected = [path[at]]
    keep = False
    for entry in path[:at]:
        keep = keep or entry.get("id") == path[at].get("firstKeptEntryId")
        message = entry.get("message")
        system = isinstance(message, dict) and message.get("role") == "system"
        if keep and not system:
            selected.append(entry)
    return selected + list(path[at + 1 :])


def _edited(entry: Json, edits: dict[str, object], via: str = "") -> list[Item]:
    id = str(entry.get("id"))
    messages = _contribution(entry)
    if id in edits:
        replacement = edits[id]
        if not isinstance(replacement, dict):
            return []
        messages = [_replaced(message, replacement.get("content")) for message in messages]
    return [Item(id, message, via) for message in messages]


def _contribution(entry: Json) -> list[Json]:
    kind = entry.get("type")
    if kind == "message":
        message = entry.get("message")
        if not isinstance(message, dict):
            return []
        if message.get("content") is None and message.get("role") in (
            "system", "user", "assistant", "toolResult"
        ):
            return [{**message, "content": "" if message["role"] == "system" else []}]
        return [message]
    at = _milliseconds(entry.get("timestamp"))
    if kind == "custom_message":
        return [{"role": "custom", "customType": entry.get("customType"),
                 "content": entry.get("content") or [], "display": entry.get("display"),
                 "details": entry.get("details"), "timestamp": at}]
    if kind == "branch_summary" and entry.get("summary"):
        return [{"role": "branchSummary", "summary": entry["summary"],
                 "fromId": entry.get("fromId"), "timestamp": at}]
    if kind == "compaction":
        summary: Json = {"role": "compactionSummary", "summary": entry.get("summary"),
                         "tokensBefore": entry.get("tokensBefore"), "timestamp": at}
        system = entry.get("systemMessage")
        return [system, summary] if isinstance(system, dict) else [summary]
    return []


def _replaced(message: Json, content: object) -> Json:
    role = message.get("role")
    if role not in ("user", "assistant", "toolResult", "custom"):
        return message
    if role in ("assistant", "toolResult") and isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return {**message, "content": content}


def _failed(message: Json) -> bool:
    return message.get("role") == "assistant" and message.get("stopReason") in _FAILED


def without_calls(message: Json, calls: set[str]) -> Json:
    """A reply without some of its calls, and without what only the whole reply may carry.

    A provider refuses signed reasoning in a changed message, so its signature goes.
    """
    kept: list[Json] = []
    for block in blocks(message):
        if is_call(block) and str(block.get("id")) in calls:
            continue
        if block.get("type") == "redactedThinking":
            continue
        kept.append({key: value for key, value in block.items() if key != "thinkingSignature"})
    return {**message, "content": kept}


def _bash(message: Json) -> str:
    output = message.get("output")
    text = f"Ran `{message.get('command')}`\n"
    text += f"```\n{output}\n```" if output else "(no output)"
    code = message.get("exitCode")
    if message.get("cancelled"):
        text += "\n\n(command cancelled)"
    elif code:
        text += f"\n\nCommand exited with code {code}"
    if message.get("truncated") and message.get("fullOutputPath"):
        text += f"\n\n[Output truncated. Full output: {message['fullOutputPath']}]"
    return text


def _user(message: Json, content: str | list[object]) -> Json:
    whole = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {"role": "user", "content": whole, "timestamp": message.get("timestamp")}


def _milliseconds(stamp: object) -> int:
    try:
        return round(datetime.fromisoformat(str(stamp)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0
