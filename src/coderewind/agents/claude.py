"""Claude Code: its session files, and how a conversation is cut and continued.

Facts, each held by a test against the real program: a prefix under a new session id resumes; a
prefix cut inside a turn makes it invent an answer, so cuts are made just before a prompt; a
prefix that ends before a compact_boundary brings the whole conversation back.
"""

from __future__ import annotations

import os

from coderewind.agents import adapter
from coderewind.agents.adapter import Adapter, Cut, Position, write_new
from coderewind.agents.transcript import last_rows, line_of, rows_of, text_of

_MOST_ATTACHED = 200
_COMMAND = "<command-message>"  # a slash command that asks the model


class Claude(Adapter):
    name = "claude"
    title = "Claude Code"
    program = "claude"

    def home(self) -> str:
        configured = os.environ.get("CLAUDE_CONFIG_DIR")
        return configured or os.path.join(os.path.expanduser("~"), ".claude")

    def session_files(self, session: str) -> list[str]:
        projects = os.path.join(self.home(), "projects")
        try:
            names = sorted(os.listdir(projects))
        except OSError:
            return []
        paths = [os.path.join(projects, name, session + ".jsonl") for name in names]
        return [path for path in paths if os.path.isfile(path)]

    def last_entry(self, path: str) -> str:
        for row in reversed(last_rows(path)):
            uuid = row.get("uuid")
            if isinstance(uuid, str) and not row.get("isSidechain"):
                return uuid
        return ""

    def last_prompt(self, path: str) -> tuple[str, str]:
        for row in reversed(last_rows(path)):
            if _is_prompt(row):
                return str(row.get("promptId", "")), _words(row)
        return "", ""

    def attached(self, path: str) -> list[tuple[str, str]]:
        """The transcripts of the session's subagents."""
        folder = os.path.join(path.removesuffix(".jsonl"), "subagents")
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            return []
        names = [name for name in names if name.startswith("agent-") and name.endswith(".jsonl")]
        return [("subagents/" + name, os.path.join(folder, name))
                for name in names[:_MOST_ATTACHED]]

    def cut(self, data: bytes, position: Position) -> Cut | None:
        rows = list(rows_of(data))
        end, next_ = _end([row for row, _ in rows], position)
        if end is None:
            return None
        prompt = ""
        if next_ < len(rows) and position.at != adapter.AT_END and _is_prompt(rows[next_][0]):
            prompt = _words(rows[next_][0])
        kept = rows[:end]
        known = [row.get("uuid") for row, _ in kept]
        while kept and _belongs_to_next(kept[-1][0], known):
            kept.pop()
        has_prompts = any(_is_prompt(row) for row, _ in kept)
        return Cut([line for _, line in kept], prompt, has_prompts=has_prompts)

    def write_fork(
        self, cut: Cut, source: str, old: str, new: str, title: str, archived: dict[str, bytes]
    ) -> str:
        path = os.path.join(os.path.dirname(source), new + ".jsonl")
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        lines = []
        for row, line in rows_of(b"\n".join(cut.lines)):
            if row.get("sessionId") == old:
                row["sessionId"] = new
                line = line_of(row)
            lines.append(line)
        lines.append(line_of({"type": "custom-title", "customTitle": title, "sessionId": new}))
        # What belongs to the session is there before the session can be seen.
        own = path.removesuffix(".jsonl")
        _carry(source.removesuffix(".jsonl"), own, link=False)
        _put_back(archived, own)
        history = os.path.join(self.home(), "file-history")
        _carry(os.path.join(history, old), os.path.join(history, new), link=True)
        write_new(path, b"\n".join(lines) + b"\n")
        return path

    def resume_command(self, new: str, prompt: str) -> list[str]:
        command = ["claude", "--resume", new] if new else ["claude"]
        return [*command, "--prefill", prompt] if prompt else command


def _end(rows: list[dict[str, object]], position: Position) -> tuple[int | None, int]:
    """How many rows a position keeps (None when it is not in this conversation), and where the
    prompt is that comes next."""
    at = position.at
    end: int | None = None
    if at == adapter.AT_START:
        end = _next_prompt(rows, 0)
    elif at in (adapter.AT_ENTRY, adapter.AT_COMPACT):
        found = next((i for i, row in enumerate(rows) if row.get("uuid") == position.entry), None)
        if found is not None and at == adapter.AT_ENTRY:
            end = _next_prompt(rows, found + 1)
        elif found is not None:
            end = next((i for i in range(found + 1, len(rows)) if _is_boundary(rows[i])), len(rows))
    elif position.prompt_id and (own := _own(rows, position)) is not None:
        if at != adapter.AT_END:
            return _before(rows, own), own
        end = _end_of_turn(rows, own)
    return end, end or 0


def _own(rows: list[dict[str, object]], position: Position) -> int | None:
    """Where a position's prompt is. In a session that was forked off, all prompts from before have
    one id, which is the first new prompt's as well: the last one with these words is meant."""
    found = [i for i, row in enumerate(rows)
             if _is_prompt(row) and row.get("promptId") == position.prompt_id]
    said = [i for i in found if position.prompt and _words(rows[i]).startswith(position.prompt)]
    found = said or found
    return found[-1] if found else None


def _before(rows: list[dict[str, object]], own: int) -> int:
    """How many rows come before a prompt. Claude Code's own /rewind leaves what it went back
    behind in the file: the row that the prompt answers to is then further up."""
    answers_to = rows[own].get("parentUuid")
    abandoned = own
    for i in range(own - 1, -1, -1):
        if answers_to is not None and rows[i].get("uuid") == answers_to:
            return own if abandoned == own else i + 1
        if _is_prompt(rows[i]):
            abandoned = i
    return own if answers_to is not None else abandoned


def _end_of_turn(rows: list[dict[str, object]], own: int) -> int:
    """Where a prompt's turn is over. A compaction in the middle of it belongs to it, and so does
    a command that the model gives itself."""
    turn = rows[own].get("promptId")
    for i in range(own + 1, len(rows)):
        own_command = rows[i].get("promptId") == turn and _text(rows[i]).startswith(_COMMAND)
        if _is_prompt(rows[i]) and not own_command:
            return i
        if _is_boundary(rows[i]):
            summary = next((row for row in rows[i:] if row.get("isCompactSummary")), None)
            if summary is None or summary.get("promptId") != turn:
                return i
    return len(rows)


def _next_prompt(rows: list[dict[str, object]], start: int) -> int:
    """Where the next turn begins, or the conversation is compacted."""
    return next((i for i in range(start, len(rows))
                 if _is_prompt(rows[i]) or _is_boundary(rows[i])), len(rows))


def _is_prompt(row: dict[str, object]) -> bool:
    """Whether a row begins a turn: the user's words or `!` command, a slash command that asks the
    model, or a background task's news."""
    if row.get("type") != "user" or row.get("isMeta") or row.get("isSidechain"):
        return False
    if row.get("isCompactSummary") or not isinstance(row.get("promptId"), str):
        return False
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        return bool(content) and not any(
            isinstance(block, dict) and block.get("type") == "tool_result" for block in content
        ) and not text_of(content).startswith("[Request interrupted")
    # Commands like /model and what commands printed are rows of the user too, but begin nothing.
    return isinstance(content, str) and not content.startswith(
        ("<command-name>", "<local-command-", "<bash-stdout>", "<bash-stderr>")
    )


def _is_boundary(row: dict[str, object]) -> bool:
    return row.get("type") == "system" and row.get("subtype") == "compact_boundary"


def _belongs_to_next(row: dict[str, object], known: list[object]) -> bool:
    """Rows that are written just before the prompt that they belong to."""
    if row.get("type") == "file-history-snapshot":
        return row.get("messageId") not in known
    return row.get("type") == "queue-operation"


def _text(row: dict[str, object]) -> str:
    message = row.get("message")
    return text_of(message.get("content")) if isinstance(message, dict) else ""


def _words(row: dict[str, object]) -> str:
    words = _text(row)
    if words.startswith("<bash-input>"):
        return "!" + _between(words, "bash-input")
    if words.startswith(_COMMAND):
        return " ".join((_between(words, "command-name"), _between(words, "command-args"))).strip()
    return words


def _between(words: str, tag: str) -> str:
    return words.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]


def _carry(source: str, target: str, *, link: bool) -> None:
    """Give the new session what the old one has in a folder of its own, as far as it is there."""
    import shutil

    if os.path.isdir(source) and not os.path.lexists(target):
        try:
            shutil.copytree(source, target, symlinks=True,
                            copy_function=_link_or_copy if link else shutil.copy2)
        except (OSError, shutil.Error):
            pass  # the agent's own /rewind and old tool results; the conversation is whole


def _put_back(archived: dict[str, bytes], folder: str) -> None:
    """The subagents' transcripts that are in the archive and no longer on the disk."""
    for name, data in archived.items():
        path = os.path.join(folder, name)
        if name.startswith("subagents/agent-") and name.count("/") == 1:
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            if not os.path.lexists(path):
                write_new(path, data)


def _link_or_copy(source: str, target: str) -> None:
    import shutil

    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
