"""Keep what agents write about their conversations, because they delete it after some weeks.

Each transcript record holds what a session file gained since the one before it, so appending
costs only the new bytes. A record that starts at 0 begins the file anew.
"""

from __future__ import annotations

import os

from coderewind.agents.adapter import Adapter
from coderewind.agents.transcript import Mark, Part, open_session, part_since
from coderewind.engine.engine import Engine
from coderewind.model import records as ops

MAIN = "session.jsonl"
_WHOLE_LIMIT = 1 << 20


def archive(
    engine: Engine,
    adapter: Adapter,
    session: str,
    path: str,
    marks: dict[str, list[object]],
    now_ns: int,
    *,
    limit: int,
) -> None:
    """Append what a session's files gained; the caller holds the lock. `marks` is updated.

    At most `limit` bytes: what is left comes with the next event.
    """
    prefix = f"{engine.store.id}/{engine.workspace.name}/"
    if prefix + MAIN not in marks:
        marks |= _recorded_marks(engine, adapter, session, prefix)
    for name, file in [(MAIN, path), *adapter.attached(path)]:
        mark = Mark.from_json(marks.get(prefix + name))
        part = part_since(file, mark, limit) if name.endswith(".jsonl") else _whole(file, mark)
        if part is None:
            continue
        limit -= sum(map(len, part.chunks))
        _append(engine, adapter, session, name, file, part, now_ns)
        marks[prefix + name] = part.end.as_json()
        if limit <= 0:
            return


def archived(engine: Engine, agent: str, session: str) -> dict[str, bytes]:
    """The files of a session, as far as they are whole in the archive, by name."""
    found: dict[str, list[str]] = {}
    lengths: dict[str, int] = {}
    for record in engine.notes(ops.TRANSCRIPT):
        if record.text("agent") != agent or record.text("session") != session:
            continue
        name, start = record.text("name"), record.whole("start")
        if start == 0:
            found[name], lengths[name] = [], 0
        if lengths.get(name) != start:
            found.pop(name, None)  # a part is missing: better nothing than a gap
            lengths.pop(name, None)
            continue
        blobs = record.section("blobs")
        order = sorted((key for key in blobs if key.isdigit()), key=int)
        found[name] += [oid for key in order if isinstance(oid := blobs[key], str)]
        lengths[name] = record.whole("end")
    return {name: b"".join(engine.read_blob(oid) for oid in oids) for name, oids in found.items()}


def _append(
    engine: Engine,
    adapter: Adapter,
    session: str,
    name: str,
    file: str,
    part: Part,
    now_ns: int,
) -> None:
    data: dict[str, object] = {
        "agent": adapter.name,
        "session": session,
        "name": name,
        "path": file,
        "start": part.start,
        "end": part.end.offset,
        "check": part.end.check,
    }
    keep = {str(number): chunk for number, chunk in enumerate(part.chunks)}
    engine.append_note(ops.TRANSCRIPT, data, now_ns, keep=keep)


def _recorded_marks(
    engine: Engine, adapter: Adapter, session: str, prefix: str
) -> dict[str, list[object]]:
    """The marks of a session whose own memory was lost, from the ledger."""
    marks: dict[str, list[object]] = {}
    for record in engine.notes(ops.TRANSCRIPT):
        if record.text("agent") == adapter.name and record.text("session") == session:
            mark = Mark(record.whole("end"), record.text("check"))
            marks[prefix + record.text("name")] = mark.as_json()
    return marks


def _whole(path: str, mark: Mark) -> Part | None:
    """A small file that is replaced, not appended to; None when it is as it was."""
    fd = open_session(path)
    if fd < 0:
        return None
    try:
        data = os.read(fd, _WHOLE_LIMIT)
    except OSError:
        return None
    finally:
        os.close(fd)
    from hashlib import sha1

    check = sha1(data, usedforsecurity=False).hexdigest()
    return Part(0, [data], Mark(len(data), check)) if data and check != mark.check else None
