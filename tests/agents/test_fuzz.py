"""Payloads and session files that nobody promised to be whole: damaged, cut, unknown, huge."""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coderewind.agents import adapter as at
from coderewind.agents.adapter import Position
from coderewind.agents.known import adapter_of
from coderewind.agents.transcript import Mark, part_since

from .rooms import SRC, HookRoom

HERE = Path(__file__).parent
PAYLOADS = sorted((HERE / "payloads").glob("*/*.json"))
SAMPLES = {
    "claude": HERE / "samples/claude.jsonl",
    "droid": HERE / "samples/droid.jsonl",
    "pi": HERE.parent / "context/samples/pi-whole.jsonl",
    "omp": HERE.parent / "context/samples/omp-whole.jsonl",
}
PLACES = (at.AT_START, at.AT_PROMPT, at.AT_TURN, at.AT_END, at.AT_ENTRY, at.AT_COMPACT)
ODD: tuple[Any, ...] = (
    None, True, -1, 1e300, "", "x" * 5000, "../../etc", "\ud800", "a\0b", [], {}, [[]],
    {"type": "tool_result"}, [{"type": 7}], ["x", None],
)
GARBAGE = (b"", b"{", b"null", b"[]", b"\xff\xfe\0", b'{"type":"user"}', b"[" * 3000,
           b'{"type":"of-next-year","uuid":"n","parentUuid":[],"id":{},"message":3}',
           b'{"type":"user","promptId":"p","uuid":[1],"message":{"content":[3,null]}}',
           b'{"type":"message","id":"m","message":{"role":"user","content":{"text":[]}}}')


def odd(value: Any, rng: random.Random) -> Any:
    """A JSON value with something in it gone, or something else in its place."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.3:
            return {name: value[name] for name in value if name != key}
        return {**value, key: odd(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        return [*value[:place], odd(value[place], rng), *value[place + 1 :]]
    return rng.choice(ODD)


def damaged(lines: list[bytes], rng: random.Random) -> list[bytes]:
    """The lines of a session file after some accident."""
    lines = list(lines)
    place = rng.randrange(len(lines))
    accident = rng.randrange(6)
    if accident == 0:
        lines[place:place] = [rng.choice(GARBAGE)]
    elif accident == 1:
        lines[place] = lines[place][: rng.randrange(len(lines[place]) + 1)]
    elif accident == 2:
        del lines[place]
    elif accident == 3:
        lines.insert(rng.randrange(len(lines)), lines[place])
    elif accident == 4:
        lines[place] = lines[place].replace(b'"', rng.choice((b"", b"'", b'\\"')), 1)
    else:
        try:
            row = json.loads(lines[place])
        except (ValueError, RecursionError):
            row = {}
        lines[place] = json.dumps(odd(row, rng)).encode()
    return lines


def ids(lines: list[bytes]) -> list[str]:
    """What a position in a session may name."""
    found = [""]
    for line in lines:
        row = json.loads(line)
        found += [row[key] for key in ("uuid", "id", "promptId") if isinstance(row.get(key), str)]
    return found


@pytest.mark.parametrize("agent", SAMPLES)
@given(seed=st.integers(0, 1 << 32))
def test_a_damaged_session_is_cut_to_whole_lines_of_it(agent: str, seed: int) -> None:
    rng = random.Random(seed)
    adapter = adapter_of(agent)
    whole = SAMPLES[agent].read_bytes().splitlines()
    known = ids(whole)
    lines = whole
    for _ in range(rng.randrange(4)):
        lines = damaged(lines, rng)
    end = rng.choice((b"", b"\n", lines[-1][: len(lines[-1]) // 2], b"\xc3"))
    data = b"\n".join(lines) + b"\n" + end
    position = Position(rng.choice(PLACES), rng.choice(known), rng.choice(known))

    cut = adapter.cut(data, position)

    if cut is not None:
        assert all(isinstance(json.loads(line), dict) for line in cut.lines)
        if not adapter.has_tree:  # there labels are said again elsewhere
            rest = iter(data.split(b"\n"))
            assert all(line in rest for line in cut.lines), "lines of the session, in their order"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.jsonl")
        Path(path).write_bytes(data)
        assert isinstance(adapter.last_entry(path), str)
        assert all(isinstance(word, str) for word in adapter.last_prompt(path))


@given(lines=st.lists(st.binary(max_size=40), min_size=1, max_size=12),
       stops=st.lists(st.integers(0, 400), max_size=6), limit=st.integers(1, 300))
def test_what_is_archived_piece_by_piece_is_the_file(
    lines: list[bytes], stops: list[int], limit: int
) -> None:
    """However the agent's writes and our events fall: whole lines, nothing twice, nothing lost."""
    data = b"".join(line.replace(b"\n", b" ") + b"\n" for line in lines)
    kept, mark = b"", Mark()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.jsonl")
        for stop in [*sorted(stops), *[len(data)] * (len(data) // limit + len(lines) + 1)]:
            Path(path).write_bytes(data[:stop])
            part = part_since(path, mark, limit)
            if part is not None:
                assert part.start == len(kept)
                kept += b"".join(part.chunks)
                mark = part.end
            assert data.startswith(kept)
    assert kept == data


_CHILD = """
import base64, io, json, sys
from coderewind.hooks import entry
for row in [json.loads(line) for line in sys.stdin]:
    sys.stdin = io.TextIOWrapper(io.BytesIO(base64.b64decode(row["payload"])))
    sys.stdout = io.StringIO()
    code = entry.run_hook(["--agent", row["agent"], row["event"]])
    assert code == 0, row
    if sys.stdout.getvalue():
        assert isinstance(json.loads(sys.stdout.getvalue()), dict), row
"""


def test_damaged_payloads_and_session_files_never_stop_the_agent(hooks: HookRoom) -> None:
    """Every recorded payload with accidents, in one process; none of them is a bug of ours."""
    rng = random.Random(7)
    hooks.hook("SessionStart", source="startup")
    session = hooks.transcript().with_name("damaged.jsonl")
    session.write_bytes(b"\n".join(damaged(SAMPLES["claude"].read_bytes().splitlines(), rng)))
    rows = []
    for number in range(300):
        path = rng.choice(PAYLOADS)
        payload = json.loads(path.read_text())
        event = payload.get("hook_event_name", "StatusLine")
        if event not in _EVENTS:
            continue
        payload |= {"cwd": str(hooks.folder), "transcript_path": str(session),
                    "session_id": f"s{number % 3}"}
        if event == "UserPromptExpansion":
            payload["command_name"] = rng.choice(("x", "rewind-x"))
        for _ in range(rng.randrange(1, 4)):
            payload = odd(payload, rng)
        raw = json.dumps(payload).encode()
        if rng.random() < 0.1:
            raw = raw[: rng.randrange(len(raw))]
        rows.append({"agent": path.parent.name, "event": event,
                     "payload": base64.b64encode(raw).decode()})

    ended = subprocess.run([sys.executable, "-c", _CHILD], cwd=hooks.folder, text=True,
                           env={**hooks.env(), "PYTHONPATH": SRC}, check=False, timeout=300,
                           input="\n".join(json.dumps(row) for row in rows), capture_output=True)

    assert ended.returncode == 0, ended.stderr[-3000:]
    assert "failed (" not in hooks.log()
    assert "all is well" in hooks.rewind("doctor").stdout


_EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure",
           "PostToolBatch", "Stop", "SubagentStop", "SessionEnd", "PreCompact", "CwdChanged",
           "UserPromptExpansion")


@pytest.mark.slow
def test_a_line_of_100_megabytes(hooks: HookRoom) -> None:
    """It is archived a part at a time, and the prompt after it can be gone back to, from the file
    and from the archive."""

    def row(kind: str, uuid: str, parent: str | None, prompt: str, content: object) -> str:
        return json.dumps({"type": kind, "uuid": uuid, "parentUuid": parent, "promptId": prompt,
                           "sessionId": "s1", "message": {"role": kind, "content": content}})

    hooks.hook("UserPromptSubmit", prompt="one", prompt_id="p1")
    result = [{"type": "tool_result", "tool_use_id": "t", "content": "x" * (100 << 20)}]
    lines = [row("user", "u1", None, "p1", "one"), row("user", "u2", "u1", "p1", result)]
    hooks.transcript().write_text("\n".join(lines) + "\n")
    hooks.hook("PreCompact", trigger="manual")
    assert json.loads(hooks.rewind("show", "@", "--json").stdout)["anchor"]["entry"] == "u2"
    (hooks.folder / "a.txt").write_text("1\n")
    hooks.hook("UserPromptSubmit", prompt="two", prompt_id="p2")
    with hooks.transcript().open("a") as file:
        half = row("assistant", "u4", "u3", "p2", "")[:90]
        file.write(row("user", "u3", "u2", "p2", "two") + "\n" + half)
    for _ in range(14):
        hooks.hook("UserPromptSubmit", prompt="two", prompt_id="p2")

    number = str(hooks.checkpoints()[-1]["number"])
    for _ in ("from the file", "from the archive"):
        resume = hooks.json("restore", number, "--context-only", "--yes")["resume"]
        assert resume["prompt"] == "two"
        new = hooks.transcript().with_name(resume["session"] + ".jsonl").read_text().splitlines()
        assert [json.loads(line).get("uuid") for line in new] == ["u1", "u2", None]
        assert json.loads(new[1])["message"]["content"] == result
        hooks.transcript().unlink(missing_ok=True)
