"""Droid (Factory's CLI): its session files, and how a conversation is cut and continued.

Facts, each held by a test against the real program: the first row, `session_start`, carries the
session's id; a prefix under a new id is continued by `droid exec --fork NEW` and by load_session,
but only with `<id>.settings.json` copied along; rows are read in the order of the file.
"""

from __future__ import annotations

import os

from coderewind.agents import adapter
from coderewind.agents.adapter import Adapter, Cut, Position, write_new
from coderewind.agents.transcript import first_row, last_rows, line_of, rows_of, text_of

SETTINGS = "settings.json"


class Droid(Adapter):
    name = "droid"
    title = "Droid"
    program = "droid"

    def home(self) -> str:
        return os.path.join(os.path.expanduser("~"), ".factory")

    def session_files(self, session: str) -> list[str]:
        sessions = os.path.join(self.home(), "sessions")
        try:
            names = sorted(os.listdir(sessions))
        except OSError:
            return []
        paths = [os.path.join(sessions, name, session + ".jsonl") for name in ("", *names)]
        return [path for path in paths if os.path.isfile(path)]

    def last_entry(self, path: str) -> str:
        for row in reversed(last_rows(path)):
            if _is_said(row) and isinstance(row.get("id"), str):
                return str(row["id"])
        return ""

    def last_prompt(self, path: str) -> tuple[str, str]:
        for row in reversed(last_rows(path)):
            if _is_prompt(row):
                return str(row["id"]), _words(row)
        return "", ""

    def caller(self, path: str) -> str:
        caller = first_row(path).get("callingSessionId")
        return caller if isinstance(caller, str) else ""

    def attached(self, path: str) -> list[tuple[str, str]]:
        """The session's settings: without them no model is known when it is loaded again."""
        settings = path.removesuffix(".jsonl") + ".settings.json"
        return [(SETTINGS, settings)] if os.path.isfile(settings) else []

    def cut(self, data: bytes, position: Position) -> Cut | None:
        rows = list(rows_of(data))
        end = _end([row for row, _ in rows], position)
        if end is None:
            return None
        prompt = ""
        if end < len(rows) and position.at != adapter.AT_END:
            prompt = _words(rows[end][0]) if _is_prompt(rows[end][0]) else ""
        kept = rows[:end]
        while kept and _belongs_to_next(kept[-1][0]):
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
            if row.get("type") == "session_start":
                row |= {"id": new, "title": title, "isSessionTitleManuallySet": True}
                line = line_of(row)
            lines.append(line)
        settings = archived.get(SETTINGS, b"")
        try:
            with open(source.removesuffix(".jsonl") + ".settings.json", "rb") as file:
                settings = file.read()
        except OSError:
            pass
        if settings:
            write_new(path.removesuffix(".jsonl") + ".settings.json", settings)
        write_new(path, b"\n".join(lines) + b"\n")
        return path

    def resume_command(self, new: str, prompt: str) -> list[str]:
        return ["droid", "--resume", new] if new else ["droid"]


def _end(rows: list[dict[str, object]], position: Position) -> int | None:
    at = position.at
    if at == adapter.AT_START:
        return _next_prompt(rows, 0)
    if at == adapter.AT_ENTRY:
        found = next((i for i, row in enumerate(rows) if row.get("id") == position.entry), None)
        return None if found is None else _next_prompt(rows, found + 1)
    if at == adapter.AT_COMPACT:
        return len(rows)  # a compaction goes on in a new session; this one ends there
    own = next((i for i, row in enumerate(rows)
                if _is_prompt(row) and row.get("id") == position.prompt_id), None)
    if own is None:
        return None
    return _next_prompt(rows, own + 1) if at == adapter.AT_END else own


def _next_prompt(rows: list[dict[str, object]], start: int) -> int:
    return next((i for i in range(start, len(rows)) if _is_prompt(rows[i])), len(rows))


def _message(row: dict[str, object]) -> dict[str, object]:
    message = row.get("message")
    return message if row.get("type") == "message" and isinstance(message, dict) else {}


def _is_said(row: dict[str, object]) -> bool:
    """A row of the conversation proper: not a hook's, not context for the model alone."""
    return bool(_message(row)) and "visibility" not in _message(row)


def _is_prompt(row: dict[str, object]) -> bool:
    message = _message(row)
    if message.get("role") != "user" or not _is_said(row) or not isinstance(row.get("id"), str):
        return False
    content = message.get("content")
    if isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in content
    ):
        return False
    return bool(text_of(content)) and not text_of(content).startswith("<system-reminder>")


def _belongs_to_next(row: dict[str, object]) -> bool:
    """Rows that are written just before the prompt that they belong to."""
    if str(row.get("id", "")).startswith("context-"):
        return True
    return _message(row).get("hookEventName") == "UserPromptSubmit"


def _words(row: dict[str, object]) -> str:
    return text_of(_message(row).get("content"))
