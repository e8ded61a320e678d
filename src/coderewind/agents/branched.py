"""Agents whose session file is a tree, Pi and oh-my-pi: how a conversation is cut and continued.

Facts, each held by a test against the real programs: every row names its parent; on load the
session stands at the file's last row; a new file that holds the path to a row, under a new id and
with `parentSession`, continues there; so does the same file, once a row with an earlier parent is
appended to it while the agent is closed.

A point at a prompt is `AT_PROMPT` with the user entry's id as `prompt_id` (and as `entry`), any
other point is `AT_ENTRY` with its entry's id. A user entry stands for just before it.
"""

from __future__ import annotations

import glob
import json
import os
from errno import EBUSY, ENOSPC, ESTALE

from coderewind.agents import adapter
from coderewind.agents.adapter import Adapter, Cut, Position, write_new
from coderewind.agents.transcript import last_rows, line_of, rows_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

Row = dict[str, object]

_HEADS = ("title", "session")  # rows before the tree
_HIDDEN = ("label", "session_info", "title_change", "custom")


class Branched(Adapter):
    """What Pi and omp have in common."""

    folder = ""  # below the user's home, when PI_CODING_AGENT_DIR does not say otherwise
    has_tree = True
    package = ""  # the npm package, as it shows in a process's command

    def home(self) -> str:
        configured = os.environ.get("PI_CODING_AGENT_DIR")
        if configured:
            return os.path.abspath(os.path.expanduser(configured))
        return os.path.join(os.path.expanduser("~"), self.folder, "agent")

    def is_here(self) -> bool:
        """PI_CODING_AGENT_DIR names a folder for both, so it tells nothing of either."""
        return os.path.isdir(os.path.join(os.path.expanduser("~"), self.folder))

    def session_folders(self) -> list[str]:
        """Where sessions are kept: folders of folders, one for each working directory."""
        return [os.path.join(self.home(), "sessions")]

    def setting(self, key: str) -> object:
        """One of the user's settings of the agent; None when it is not set."""
        try:
            with open(os.path.join(self.home(), "settings.json"), "rb") as file:
                return json.loads(file.read()).get(key)
        except (OSError, ValueError, AttributeError, RecursionError):
            return None

    def session_files(self, session: str) -> list[str]:
        name = "*_" + glob.escape(session) + ".jsonl"
        found: list[str] = []
        for folder in self.session_folders():
            root = glob.escape(folder)
            found += sorted(glob.glob(os.path.join(root, "*", name)))
            found += sorted(glob.glob(os.path.join(root, name)))
        return [path for path in dict.fromkeys(found) if os.path.isfile(path)]

    def last_entry(self, path: str) -> str:
        """The entry that the session stands at."""
        for row in reversed(last_rows(path)):
            if _id(row):
                return _id(row)
        return ""

    def last_prompt(self, path: str) -> tuple[str, str]:
        for row in reversed(last_rows(path)):
            if is_prompt(row):
                return _id(row), words_of(row)
        return "", ""

    def attached(self, path: str) -> list[tuple[str, str]]:
        return []

    def valid_source(self, path: str, session: str) -> bool:
        real = os.path.realpath(path)
        name = os.path.basename(real)
        if not (name == session + ".jsonl" or name.endswith(f"_{session}.jsonl")):
            return False
        return any(real.startswith(os.path.realpath(folder) + "/")
                   for folder in self.session_folders())

    def fresh_source(self, session: str, cwd: str) -> str:
        folder = "--" + cwd.strip("/").replace("/", "-") + "--"
        return os.path.join(self.home(), "sessions", folder, session + ".jsonl")

    def cut(self, data: bytes, position: Position) -> Cut | None:
        tree = Tree(rows_of(data))
        wanted = tree.place(position)
        if wanted is None:
            return None
        leaf, prompt = wanted
        kept = set(tree.path(leaf))
        lines = [line for row, line in tree.heads]
        lines += [tree.lines[entry] for entry in tree.order if entry in kept]
        has_prompts = any(is_prompt(tree.rows[entry]) for entry in kept)
        return Cut([*lines, *tree.labels_of(kept, leaf)], prompt, has_prompts=has_prompts,
                   leaf=leaf)

    def write_fork(
        self, cut: Cut, source: str, old: str, new: str, title: str, archived: dict[str, bytes]
    ) -> str:
        now = _now()
        path = os.path.join(os.path.dirname(source), f"{_in_name(now)}_{new}.jsonl")
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        rows = list(rows_of(b"\n".join(cut.lines)))
        lines = []
        last: str | None = None
        for row, line in rows:
            if row.get("type") == "session" and "parentId" not in row:
                row |= {"id": new, "timestamp": now, "parentSession": source}
                line = line_of(row)
            elif row.get("type") == "title":
                continue
            last = _id(row) or last
            lines.append(line)
        lines = self.titled(lines, title, last, now)
        write_new(path, b"\n".join(lines) + b"\n")
        return path

    def titled(self, lines: list[bytes], title: str, last: str | None, now: str) -> list[bytes]:
        """The lines of a new session with its title, as the agent writes it."""
        raise NotImplementedError

    def move(self, path: str, entry: str) -> str:
        """One line is appended and nothing else changes.

        Raises:
            OSError: the file could not be written, or is not what it was.
        """
        out = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            with os.fdopen(os.dup(out), "rb") as file:
                data = file.read()
            tree = Tree(rows_of(data))
            stood = tree.leaf
            if entry and entry not in tree.rows:
                raise OSError(ESTALE, "the session does not hold that point any more")
            line = line_of({"type": "custom", "customType": "rewind-op",
                            "data": {"v": 2, "snapshots": []}, "id": tree.free_id(),
                            "parentId": entry or None, "timestamp": _now()}) + b"\n"
            if data and not data.endswith(b"\n"):
                line = b"\n" + line  # the last write was cut short: its rest is no row
            if os.fstat(out).st_size != len(data):
                raise OSError(EBUSY, "the session goes on")
            if os.write(out, line) != len(line):
                os.ftruncate(out, len(data))
                raise OSError(ENOSPC, "the disk is full")
            os.fsync(out)
        finally:
            os.close(out)
        return stood

    def running(self, path: str) -> list[int]:
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid() and self._may_have(name, path):
                found.append(int(name))
        return found

    def _may_have(self, pid: str, path: str) -> bool:
        """Whether a process is this agent, and not one that keeps its sessions elsewhere."""
        try:
            if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
                return False
            comm, cmdline, environ = (_read(f"/proc/{pid}/{name}")
                                      for name in ("comm", "cmdline", "environ"))
        except OSError:
            return False  # it has ended
        words = cmdline.split(b"\0")
        program = self.program.encode()
        is_agent = comm.strip() == program or any(
            os.path.basename(word.split(b" ")[0]) == program for word in words[:3])
        if not is_agent and not any(self.package.encode() in word for word in words[:3]):
            return False
        env = dict(row.split(b"=", 1) for row in environ.split(b"\0") if b"=" in row)
        home = env.get(b"PI_CODING_AGENT_DIR") or os.path.join(
            env.get(b"HOME", b""), self.folder.encode(), b"agent")
        same = os.path.realpath(os.fsdecode(home)) == os.path.realpath(self.home())
        return same or not env or os.fsencode(path) in cmdline


class Tree:
    """The rows of a session file by their ids; hostile files give odd trees, never an error."""

    def __init__(self, rows: Iterator[tuple[Row, bytes]]) -> None:
        self.heads: list[tuple[Row, bytes]] = []
        self.rows: dict[str, Row] = {}
        self.lines: dict[str, bytes] = {}
        self.order: list[str] = []
        for row, line in rows:
            entry = _id(row) if "parentId" in row else ""
            if not entry:
                if row.get("type") in _HEADS and not self.rows:
                    self.heads.append((row, line))
                continue
            if entry not in self.rows:
                self.order.append(entry)
            self.rows[entry] = row
            self.lines[entry] = line

    @property
    def header(self) -> Row:
        return next((row for row, _ in self.heads if row.get("type") == "session"), {})

    @property
    def leaf(self) -> str:
        """Where the session stands: the last row of the file."""
        return self.order[-1] if self.order else ""

    def parent(self, entry: str) -> str:
        parent = self.rows[entry].get("parentId")
        return parent if isinstance(parent, str) and parent in self.rows else ""

    def path(self, entry: str) -> list[str]:
        """From the root to an entry."""
        found: list[str] = []
        seen: set[str] = set()
        while entry and entry in self.rows and entry not in seen:
            seen.add(entry)
            found.append(entry)
            entry = self.parent(entry)
        return found[::-1]

    def place(self, position: Position) -> tuple[str, str] | None:
        """The entry that a position keeps last ('' for none), and the prompt that comes next."""
        if position.at == adapter.AT_START:
            first = next((entry for entry in self.order if is_prompt(self.rows[entry])), None)
            return (self.parent(first), words_of(self.rows[first])) if first else ("", "")
        entry = position.entry
        if position.at in (adapter.AT_PROMPT, adapter.AT_TURN):
            entry = position.prompt_id or entry
        elif position.at == adapter.AT_END and not entry:
            entry = self._end_of_turn(position.prompt_id)
        if entry not in self.rows:
            return None
        if is_prompt(self.rows[entry]):
            return self.parent(entry), words_of(self.rows[entry])
        return self._with_results(entry), ""

    def labels_of(self, kept: set[str], leaf: str) -> list[bytes]:
        """The names that kept entries bear, said again behind them where that was elsewhere."""
        named: dict[str, Row] = {}
        for entry in self.order:
            row = self.rows[entry]
            if row.get("type") == "label" and row.get("targetId") in kept:
                named[str(row["targetId"])] = row
        lines = []
        for target, row in named.items():
            if _id(row) not in kept and isinstance(row.get("label"), str) and target in kept:
                lines.append(line_of({**row, "parentId": leaf or None}))
                leaf = _id(row)
        return lines

    def labelled(self) -> set[str]:
        """The entries that bear a label now."""
        found: set[str] = set()
        for entry in self.order:
            row = self.rows[entry]
            target = row.get("targetId")
            if row.get("type") == "label" and isinstance(target, str):
                (found.add if row.get("label") else found.discard)(target)
        return found

    def free_id(self) -> str:
        """A new entry id, as the agents make them."""
        while True:
            entry = os.urandom(4).hex()
            if entry not in self.rows:
                return entry

    def _end_of_turn(self, prompt: str) -> str:
        """The last entry that follows a prompt before the next one, on the newest branch."""
        if prompt not in self.rows:
            return ""
        last = prompt
        below = {prompt}
        for entry in self.order[self.order.index(prompt) + 1 :]:
            if self.parent(entry) in below and not is_prompt(self.rows[entry]):
                below.add(entry)
                last = entry
        return last

    def _with_results(self, entry: str) -> str:
        """An answer that calls tools is kept with their results: without them it is unfinished."""
        waiting = _calls(self.rows[entry])
        at = entry
        start = self.order.index(entry) + 1
        for child in self.order[start:] if waiting else ():
            row = self.rows[child]
            if self.parent(child) != at or not waiting:
                continue
            message = row.get("message")
            call = message.get("toolCallId") if isinstance(message, dict) else None
            if call in waiting:
                waiting.discard(call)
                at, entry = child, child
            elif row.get("type") in _HIDDEN:
                at = child
        return entry


def is_prompt(row: Row) -> bool:
    """Whether an entry is the user's words to the agent."""
    message = row.get("message")
    return (row.get("type") == "message" and isinstance(message, dict)
            and message.get("role") == "user")


def words_of(row: Row) -> str:
    message = row.get("message")
    return text_of(message.get("content")) if isinstance(message, dict) else ""


def _calls(row: Row) -> set[object]:
    """The tool calls of an answer."""
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return {block.get("id") for block in content if isinstance(block, dict)
            and block.get("type") == "toolCall" and isinstance(block.get("id"), str)} \
        if isinstance(content, list) else set()


def _id(row: Row) -> str:
    entry = row.get("id")
    return entry if isinstance(entry, str) and "parentId" in row else ""


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _now() -> str:
    """The time as JavaScript writes it."""
    import datetime

    now = datetime.datetime.now(datetime.UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03}Z"


def _in_name(now: str) -> str:
    return now.replace(":", "-").replace(".", "-")
