"""Everything that checkpoint and rewind say to a model.

The first lines of the tools' results, and their errors, are those of oh-my-pi, word for word:
models and programs know them.
"""

from __future__ import annotations

from collections.abc import Sequence

from coderewind.model.changes import ADDED, DELETED, FileChange

CHECKPOINT = "Checkpoint: {goal}\nFinish exploration and formulate findings."
REWIND = "Rewind requested.\nReport captured for context replacement."

NOT_IN_SUBAGENTS = "Checkpoint not available in subagents."
NOT_ENABLED = "Checkpoint is not enabled. The user can: rewind config checkpoint.enabled true"
ALREADY_ACTIVE = "Checkpoint already active."
NONE_ACTIVE = "No active checkpoint."
EMPTY_REPORT = "Report cannot be empty."
SUSPENDED = (NONE_ACTIVE + " The one for “{goal}” was suspended {why}; nothing was removed from "
             "the context. Answer the user; set a new checkpoint if you explore again.")
COMPLETED = (NONE_ACTIVE + " The last one is rewound already: continue from its report.")
NOT_ALONE = ("Call {tool} alone: what is called beside it would be lost. Nothing was changed; the "
             "other calls have run.")
UNKNOWN_NAME = NONE_ACTIVE + " Nothing is named {name!r}; active: {active}."
ALREADY_REQUESTED = "Rewind already requested."
REWIND_UNDER_WAY = "A rewind was just requested. Set the next checkpoint after it."
MAY_NOT_RESTORE = ("Only the user can allow restoring files: rewind config "
                   "agents.mayRestore true. Call rewind without restore_files.")
NOTHING_TO_RESTORE = "This checkpoint has no files to restore. Call rewind without restore_files."

WHY_PROMPT = "when the user wrote again"
WHY_ABORT = "when the user interrupted"

NOTICE = "<system-notice>\n{}\n</system-notice>"
DROPPED = NONE_ACTIVE + " The user dropped it; nothing was removed from the context."
REMINDER = ("<system-notice>\nThe checkpoint for “{goal}” is still active. Call rewind with your "
            "findings before you answer; only your report stays in your context.\n"
            "</system-notice>")

CHECKPOINT_TOOL = """\
Mark this point of the conversation before exploring with many tool calls. Call rewind afterwards: \
everything since then leaves your context and only your report stays, so further work costs less.

- Call rewind before you answer the user.
- One checkpoint at a time; for one inside another, give each a name."""
CHECKPOINT_ALONE_TOOL = """\
Mark this point of the conversation before exploring with many tool calls. Call rewind afterwards: \
everything since then leaves your context and only your report stays, so further work costs less.

- Call rewind before you answer the user.
- One checkpoint at a time. Call checkpoint and rewind alone, not beside other tools."""
REWIND_TOOL = """\
End the active checkpoint: the exploration since then leaves your context, your report takes its \
place. Put into it all that further work needs: findings, file names and lines, decisions, what \
failed. Files stay as they are; the report is completed with a list of those that changed."""
GOAL = "what you want to find out"
NAME = "a name, to have one checkpoint inside another"
REPORT = "your findings"
TO = "the name of the checkpoint to go back to; by default the latest"
RESTORE_FILES = "also put the files back as they were at the checkpoint"

OPENING = "<rewind-report checkpoint="
CLOSING = "</rewind-report>"
_MOST_FILES = 40
_MOST_OF_A_RESULT = 2_000

KEPT = "kept"
RESTORED = "restored"


class Sibling:
    """A call made in the same reply as rewind, which has run and whose result is told."""

    __slots__ = ("call", "result")

    def __init__(self, call: str, result: str) -> None:
        self.call = call
        self.result = result


def frame(
    goal: str,
    report: str,
    *,
    files: str,
    siblings: Sequence[Sibling] = (),
    users: int = 0,
    said: Sequence[str] = (),
    gone: bool = False,
) -> str:
    """The report as the model gets it, with what it must know besides.

    `users` is how many messages of the user stay before it; `said` are the words of those that
    do not.
    """
    parts = [f"{OPENING}\"{_attribute(goal)}\">\n"
             "You explored from this checkpoint and rewound: the exploration is no longer in your "
             "context, your report stands for it. To explore again, set a new checkpoint.",
             f"Report:\n{report}"]
    if gone:
        parts.append("The checkpoint itself was no longer in the context, so everything before "
                     "this report is gone, too, except the user's messages.")
    if users:
        parts.append(f"The user wrote {count(users, 'message')} meanwhile; "
                     f"{'it stands' if users == 1 else 'they stand'} above, word for word.")
    if said:
        parts.append("The user wrote meanwhile, word for word:")
        parts += [f"<user>\n{message}\n</user>" for message in said]
    if files:
        parts.append(files)
    for sibling in siblings:
        parts.append(f"Called beside rewind: {sibling.call}\n{_shortened(sibling.result)}")
    return "\n\n".join(parts) + "\n" + CLOSING


def is_frame(text: str) -> bool:
    """Whether a text is a report as `frame` makes it, or a reminder."""
    opening, _, closing = REMINDER.partition("{goal}")
    return is_report(text) or (text.startswith(opening) and text.endswith(closing))


def is_report(text: str) -> bool:
    return text.startswith(OPENING) and text.endswith(CLOSING)


def files_changed(changes: Sequence[FileChange], *, what: str = KEPT) -> str:
    """The diff stat of a window, in words."""
    if not changes:
        return "No file changed since the checkpoint."
    head = ("Files changed since the checkpoint, and left as they are now:" if what == KEPT else
            "Files changed since the checkpoint; they are restored, these changes are undone:")
    marks = {ADDED: "A", DELETED: "D"}
    lines = [f"  {marks.get(change.status, 'M')} {change.name}{_lines_of(change)}"
             for change in changes[:_MOST_FILES]]
    if len(changes) > _MOST_FILES:
        lines.append(f"  and {len(changes) - _MOST_FILES} more")
    added = sum(change.added or 0 for change in changes)
    removed = sum(change.removed or 0 for change in changes)
    return "\n".join([head, *lines, f"  {count(len(changes), 'file')}, +{added} -{removed}"])


def files_unknown(why: str) -> str:
    return f"Which files changed since the checkpoint is not known: {why}"


def not_restored(why: str) -> str:
    return f"The files could not be restored and are as they were before: {why}"


def _lines_of(change: FileChange) -> str:
    if change.added is None or change.removed is None:
        return " (binary)"
    return f" +{change.added} -{change.removed}"


def count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def _attribute(text: str) -> str:
    return " ".join(text.split()).replace('"', "'")


def _shortened(text: str) -> str:
    more = len(text) - _MOST_OF_A_RESULT
    return text if more <= 0 else f"{text[:_MOST_OF_A_RESULT]}\n[{more} more characters]"
