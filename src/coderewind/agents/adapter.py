"""What every agent's adapter answers. One file per agent holds its facts; this holds the words.

A conversation is cut by the agent's own ids, never by a copied tail, and always into a NEW
session file: the file of a session that may be alive is never written.
"""

from __future__ import annotations

import os

from coderewind.store.pack import write_aside

# Where a checkpoint stands in its conversation (`at` in its record).
AT_START = "start"  # before the session's first prompt
AT_PROMPT = "prompt"  # just before the prompt
AT_TURN = "turn"  # inside the prompt's turn
AT_END = "end"  # after the prompt's turn
AT_ENTRY = "entry"  # after a given row
AT_COMPACT = "compact"  # just before the compaction that follows a given row


class Position:
    """A place in a conversation, in the agent's own ids; `prompt` are the prompt's first words."""

    __slots__ = ("at", "entry", "prompt", "prompt_id")

    def __init__(self, at: str, prompt_id: str = "", entry: str = "", prompt: str = "") -> None:
        self.at = at
        self.prompt_id = prompt_id
        self.entry = entry
        self.prompt = prompt


class Cut:
    """The part of a conversation that a restore keeps."""

    __slots__ = ("has_prompts", "leaf", "lines", "prompt")

    def __init__(
        self, lines: list[bytes], prompt: str, *, has_prompts: bool, leaf: str = ""
    ) -> None:
        self.lines = lines
        self.leaf = leaf  # the entry kept last, for agents whose session is a tree
        self.prompt = prompt  # the prompt that comes next, to be put back into the input box
        self.has_prompts = has_prompts  # without any, there is nothing to resume


class Adapter:
    """One agent. Subclasses answer for each."""

    name = ""
    title = ""
    program = ""
    has_tree = False  # whether a session's file can go on from an earlier entry, too

    def home(self) -> str:
        """The agent's own folder."""
        raise NotImplementedError

    def is_here(self) -> bool:
        """Whether the agent is, or was, used on this machine."""
        return os.path.isdir(self.home())

    def session_files(self, session: str) -> list[str]:
        """The session's file, wherever below the agent's folder it lies now."""
        raise NotImplementedError

    def last_entry(self, path: str) -> str:
        """The id of the last row on disk."""
        raise NotImplementedError

    def last_prompt(self, path: str) -> tuple[str, str]:
        """Id and words of the newest prompt near the end of a session file."""
        raise NotImplementedError

    def caller(self, path: str) -> str:
        """The session that called this one as its subagent; '' for a session of the user's."""
        return ""

    def attached(self, path: str) -> list[tuple[str, str]]:
        """Other files of a session that are to be archived: name and path."""
        raise NotImplementedError

    def cut(self, data: bytes, position: Position) -> Cut | None:
        """The conversation up to a position; None when the position is not in it."""
        raise NotImplementedError

    def write_fork(
        self, cut: Cut, source: str, old: str, new: str, title: str, archived: dict[str, bytes]
    ) -> str:
        """Write a cut as the new session `new`; its path.

        `source` is where the old session's file is or was; the new one comes to lie beside it.
        `archived` are the session's other files, for when the agent has deleted its own.
        """
        raise NotImplementedError

    def fresh_source(self, session: str, cwd: str) -> str:
        """Where a session's file would be that is kept in a folder which is not the agent's own
        (another session folder was set when it ran); '' when there are no such sessions."""
        return ""

    def move(self, path: str, entry: str) -> str:
        """Make a closed session go on from `entry` ('' from its beginning); where it stood."""
        raise NotImplementedError

    def running(self, path: str) -> list[int]:
        """The processes that run the agent and may have this session open.

        Raises:
            OSError: the system does not tell.
        """
        raise NotImplementedError

    def resume_command(self, new: str, prompt: str) -> list[str]:
        """The command that continues in a session ('' begins a fresh one)."""
        raise NotImplementedError

    def valid_source(self, path: str, session: str) -> bool:
        """Whether a recorded path may be this session's file: below the agent's folder only.

        The path comes out of a ledger, which may be somebody else's.
        """
        real = os.path.realpath(path)
        below = os.path.realpath(self.home()) + "/"
        return real.startswith(below) and os.path.basename(real) == session + ".jsonl"


def write_new(path: str, data: bytes) -> None:
    """A private file that was not there before, complete or not at all."""
    temp = write_aside(os.fsencode(path), data)
    try:
        os.link(temp, path)  # unlike a rename, refuses to replace
    finally:
        os.unlink(temp)
