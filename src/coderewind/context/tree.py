"""A session as Pi and omp keep it (version 3): a tree of entries in an append-only file.

Rules: each entry names its parent; the leaf is where the conversation stands, on opening the last
entry of the file; going back moves the leaf and leaves the abandoned path in the file. Opening
reads every line's ids and parses nothing else, so that a large session opens at once; an entry is
parsed when it is asked for. Types of entry that are not known are kept and contribute nothing.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from coderewind.context import projection
from coderewind.context.persist import Blobs, Json, line_of, persisted, title_slot, with_images
from coderewind.context.projection import Item
from coderewind.context.sessionfile import TITLE_SLOT, Memory, SessionFile, Spot, spot
from coderewind.errors import RewindError

VERSION = 3
_HEADER = "session"
_TITLE = "title"


class SessionTree:
    """One session. `open` an existing file, `create` a new one, or keep it in `memory`."""

    def __init__(self, file: SessionFile | Memory, blobs: Blobs | None = None) -> None:
        self.header: Json = {}
        self.title = ""
        self.has_title_slot = False  # whether the file's first line is a place for the title
        self.leaf: str | None = None
        self._file = file
        self._blobs = blobs
        self._spots: dict[str, Spot] = {}
        self._parsed: dict[str, Json] = {}
        self._seen = 0  # bytes of the file that the index knows

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, blobs: str | None = None) -> SessionTree:
        """Read a session file; `blobs` is the folder of its images.

        Raises:
            RewindError: there is no such file, or it is no session of version 2 or 3.
        """
        file = SessionFile(os.fspath(path))
        tree = cls(file, Blobs(blobs or os.path.join(os.path.dirname(file.path), "blobs")))
        try:
            tree._catch_up()
        except OSError as error:
            raise RewindError(f"{file.path} cannot be read: {error.strerror}") from error
        if not tree.header:
            raise RewindError(f"{file.path} is not a session file")
        if tree.header.get("version") not in (2, VERSION):
            raise RewindError(f"{file.path} has session version {tree.header.get('version', 1)}",
                              hint="open it in its agent once, which brings it to version 3")
        tree.leaf = tree._last()
        return tree

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], *, cwd: str = "", parent: str = "",
        blobs: str | None = None,
    ) -> SessionTree:
        """Begin a new session file; `parent` is the file of the session it continues."""
        name = os.fspath(path)
        if os.path.exists(name) and os.path.getsize(name):
            raise RewindError(f"{name} exists already", hint="SessionTree.open reads it")
        os.makedirs(os.path.dirname(os.path.abspath(name)), mode=0o700, exist_ok=True)
        file = SessionFile(name)
        folder = blobs or os.path.join(os.path.dirname(file.path), "blobs")
        return cls._begun(cls(file, Blobs(folder)), cwd, parent)

    @classmethod
    def memory(cls, *, cwd: str = "") -> SessionTree:
        """A session that ends with this process."""
        return cls._begun(cls(Memory()), cwd, "")

    @classmethod
    def _begun(cls, tree: SessionTree, cwd: str, parent: str) -> SessionTree:
        tree.header = {"type": _HEADER, "version": VERSION, "id": _uuid7(), "timestamp": now(),
                       "cwd": cwd or os.getcwd()}
        if parent:
            tree.header["parentSession"] = parent
        line = line_of(tree.header)
        tree._seen = tree._file.append(line) + len(line)
        return tree

    # --- reading

    @property
    def path(self) -> str:
        """The session's file; "" when it has none."""
        return self._file.path

    @property
    def id(self) -> str:
        return str(self.header.get("id", ""))

    def __len__(self) -> int:
        return len(self._spots)

    def __contains__(self, id: object) -> bool:
        return id in self._spots

    def __iter__(self) -> Iterator[str]:
        """The ids of all entries, in the file's order."""
        return iter(self._spots)

    def entry(self, id: str) -> Json:
        """One entry, not to be changed.

        Raises:
            KeyError: there is none, or its line is broken.
        """
        if id in self._parsed:
            return self._parsed[id]
        where = self._spots[id]
        entry = _parse(self._file.read(where.offset, where.length))
        if entry is None or entry.get("id") != id:
            del self._spots[id]
            raise KeyError(id)
        self._parsed[id] = entry
        return entry

    def find(self, id: str) -> Json | None:
        """One entry, or None."""
        try:
            return self.entry(id)
        except KeyError:
            return None

    def kind(self, id: str) -> str:
        """An entry's type."""
        return self._spots[id].type

    def role(self, id: str) -> str:
        """Whose message an entry is; "" when it is none."""
        where = self._spots[id]
        if where.type == "message" and not where.role:
            message = (self.find(id) or {}).get("message")
            where.role = str(message.get("role", "")) if isinstance(message, dict) else ""
        return where.role if where.type == "message" else ""

    def parent(self, id: str) -> str | None:
        return self._spots[id].parent or None

    def branch_ids(self, leaf: str | None = None) -> list[str]:
        """The ids from the root to an entry, by default the leaf; nothing is parsed."""
        at = self.leaf if leaf is None else leaf
        found: dict[str, None] = {}
        while at and at in self._spots and at not in found:
            found[at] = None
            at = self._spots[at].parent
        return list(reversed(found))

    def branch_entries(self, leaf: str | None = None) -> list[Json]:
        """The entries from the root to an entry, by default the leaf."""
        while True:
            ids = self.branch_ids(leaf)
            try:
                return [self.entry(id) for id in ids]
            except KeyError:
                continue  # a broken line, now known to be one: nothing leads beyond it

    def context(self, leaf: str | None = None) -> list[Item]:
        """What the path to an entry contributes, message by message, as its agent has it."""
        return projection.project(self.branch_entries(leaf), self.find)

    def messages(self, leaf: str | None = None) -> list[Json]:
        """The context as a model gets it: well-formed, in the providers' roles, with images."""
        found = []
        for item in projection.well_formed(self.context(leaf)):
            message = projection.for_model(item.message)
            if message is not None:
                whole = with_images(message, self._blobs)
                assert isinstance(whole, dict)
                found.append(whole)
        return found

    def labels(self) -> dict[str, str]:
        """The labels that are set, by the entry they are on."""
        found: dict[str, str] = {}
        for id in [id for id, where in self._spots.items() if where.type == "label"]:
            entry = self.find(id) or {}
            target, label = entry.get("targetId"), entry.get("label")
            if isinstance(target, str):
                found.pop(target, None)
                if isinstance(label, str) and label:
                    found[target] = label
        return found

    def lineage(self) -> list[str]:
        """This session's file and those it was forked from, as far as they are there."""
        found = [self.path] if self.path else []
        header = self.header
        while True:
            parent = header.get("parentSession")
            if not isinstance(parent, str) or not parent:
                return found
            path = os.path.realpath(os.path.join(os.path.dirname(found[-1]), parent))
            header = _header_of(path)
            if not header or path in found:
                return found
            found.append(path)

    # --- writing

    def append(self, type: str, fields: Mapping[str, object] | None = None) -> Json:
        """Add an entry after the leaf, which it becomes; the entry as the file holds it.

        Raises:
            OSError: it could not be written; file and tree are as before.
        """
        return self.append_all([(type, fields or {})])[0]

    def append_all(self, entries: Sequence[tuple[str, Mapping[str, object]]]) -> list[Json]:
        """Add entries one after the other, in one write."""
        self._catch_up()
        parent, made = self.leaf, []
        taken: set[str] = set()
        lines: list[bytes] = []
        for type, fields in entries:
            id = _new_id(self._spots, taken)
            entry = {"type": type, "id": id, "parentId": parent, "timestamp": now(),
                     **{key: value for key, value in fields.items() if value is not None
                        or key == "replacement"}}
            whole = persisted(entry, self._blobs)
            assert isinstance(whole, dict)
            lines.append(line_of(whole))
            parsed = _parse(lines[-1])  # what a later process will read, not what was handed in
            assert parsed is not None
            made.append(parsed)
            taken.add(id)
            parent = id
        if not made:
            return []
        self._file.append(b"".join(lines))
        self._catch_up()
        self._parsed |= {str(entry["id"]): entry for entry in made}
        self.leaf = parent
        return made

    def append_message(self, message: Mapping[str, object]) -> str:
        """Add a message of the conversation; its entry's id."""
        return str(self.append("message", {"message": dict(message)})["id"])

    def append_custom(self, custom_type: str, data: object) -> str:
        """Add a program's own note, which no model sees."""
        return str(self.append("custom", {"customType": custom_type, "data": data})["id"])

    def append_custom_message(
        self, custom_type: str, content: object, *, display: bool = True, details: object = None
    ) -> str:
        """Add a program's message to the model."""
        return str(self.append("custom_message", {
            "customType": custom_type, "content": content, "display": display,
            "details": details})["id"])

    def append_compaction(
        self, summary: str, first_kept: str | None = None, *, tokens_before: int = 0,
        details: object = None,
    ) -> str:
        """Let a summary stand for what is before `first_kept`, an entry of the branch.

        Without `first_kept` nothing before it is kept.
        """
        if first_kept is not None:
            self._on_branch(first_kept)
        return str(self.append("compaction", {
            "summary": summary, "firstKeptEntryId": first_kept or "",
            "tokensBefore": tokens_before, "details": details})["id"])

    def edit(self, target: str, content: object = None) -> str:
        """Change what an entry of the branch contributes from here on; None: nothing."""
        self._on_branch(target)
        replacement = None if content is None else {"content": content}
        return str(self.append("context_edit", {"targetId": target,
                                                "replacement": replacement})["id"])

    def label(self, target: str, label: str) -> str:
        """Name an entry; an empty label takes the name away."""
        self._known(target)
        return str(self.append("label", {"targetId": target, "label": label or None})["id"])

    def rename(self, title: str, source: str = "user") -> None:
        """Set the title: in the file's first line where it has a place for it, as omp does."""
        stamp = now()
        if self.has_title_slot:
            self._file.overwrite_title(title_slot(title, source, stamp, TITLE_SLOT))
            self.append("title_change", {"title": title, "source": source})
        else:
            self.append("session_info", {"name": " ".join(title.split())})
        self.title = title

    def branch(self, id: str | None) -> None:
        """Go back to an entry, or to before all of them; what is appended next begins there."""
        if id is not None:
            self._known(id)
        self.leaf = id

    def branch_with_summary(
        self, id: str | None, summary: str, details: object = None
    ) -> str:
        """Go back to an entry with a summary of the path that is left; the summary's id."""
        before = self.leaf
        self.branch(id)
        try:
            return str(self.append("branch_summary", {
                "fromId": before or "root", "summary": summary, "details": details})["id"])
        except OSError:
            self.leaf = before
            raise

    # --- the index

    def _catch_up(self) -> None:
        """Learn what was written since, by this process or another."""
        size = self._file.size()
        if size == self._seen:
            return
        if size < self._seen:  # written anew by its agent
            self._spots, self._parsed, self._seen = {}, {}, 0
        for offset, line in self._file.lines(self._seen):
            if offset + len(line) == size and _parse(line) is None:
                size = offset  # half a line, which its writer may still finish
                break
            where = spot(offset, line)
            if where is None or where.type in (_HEADER, _TITLE):
                self._learn(offset, line)
            elif line.endswith(b"}"):
                self._spots.pop(where.id, None)  # the last of two with one id, in its own place
                self._parsed.pop(where.id, None)
                self._spots[where.id] = where
        self._seen = size

    def _learn(self, offset: int, line: bytes) -> None:
        """A line that its ids alone do not explain."""
        entry = _parse(line)
        if entry is None:
            return
        if entry.get("type") == _TITLE and offset == 0:
            self.title = str(entry.get("title", ""))
            self.has_title_slot = len(line) + 1 == TITLE_SLOT
        elif entry.get("type") == _HEADER:
            if not self.header and not self._spots and isinstance(entry.get("id"), str):
                self.header = entry
        elif isinstance(entry.get("id"), str) and isinstance(entry.get("type"), str):
            id, parent = str(entry["id"]), entry.get("parentId")
            self._spots.pop(id, None)
            self._spots[id] = Spot(offset, len(line), str(entry["type"]), id,
                                   parent if isinstance(parent, str) else "")

    def _last(self) -> str | None:
        for id in reversed(list(self._spots)):
            if self.find(id) is not None:
                return id
        return None

    def _known(self, id: str) -> None:
        if self.find(id) is None:
            raise RewindError(f"this session has no entry {id}")

    def _on_branch(self, id: str) -> None:
        self._known(id)
        if id not in self.branch_ids():
            raise RewindError(f"entry {id} is not on this branch of the session")


def now() -> str:
    """The time as session files have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _parse(line: bytes) -> Json | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _header_of(path: str) -> Json:
    try:
        with open(path, "rb") as file:
            for line in (file.readline(1 << 20), file.readline(1 << 20)):
                entry = _parse(line)
                if entry is not None and entry.get("type") == _HEADER:
                    return entry
    except OSError:
        pass
    return {}


def _new_id(*taken: Container[str]) -> str:
    while any((id := secrets.token_hex(4)) in ids for ids in taken):
        pass
    return id


def _uuid7() -> str:
    """Ids that sort by time, as both agents make them."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 7 << 76
    value = value & ~(3 << 62) | 2 << 62
    text = f"{value:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
