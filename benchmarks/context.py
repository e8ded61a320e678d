"""What a rewind takes out of the requests, in each host, and how long it takes.

    python benchmarks/context.py [--calls 5,30,100] [--hosts own,pi,…] [--write]

One exploration is played in each host by a scripted model: a checkpoint, so many calls that each
read 5.5 kB of this repository's source, a rewind. Compared are the last request before the rewind
and the first after it, as the model gets them. Tokens are counted with `o200k_base`, which the
package bpe-openai brings along (pip install --group benchmarks).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[0] = str(REPOSITORY)
sys.path[1:1] = [str(REPOSITORY / "src"), str(REPOSITORY / "tests")]

import bpe_openai  # noqa: E402 - the path above comes first
from agents.fake_model import Json  # noqa: E402
from agents.fake_model import call as called  # noqa: E402
from agents.fake_model import text as said  # noqa: E402
from agents.omp import OmpRoom  # noqa: E402
from agents.pi import PiRoom  # noqa: E402
from frameworks.driver import Driver, Step  # noqa: E402
from sealed import sealed_box  # noqa: E402

from coderewind.context import (  # noqa: E402
    AgentSession,
    Call,
    Gate,
    Reply,
    SessionTree,
    Tool,
)

PAGE = REPOSITORY / "docs" / "context-cost.md"
_READ = 5_500  # bytes that one call of an exploration gives
_ON = Gate(enabled=True)
_GOAL = "where are retries configured?"
_REPORT = ("Retries are configured in net/retry.py:41, `RetryPolicy(max_attempts=3, backoff=2.0)`. "
           "Two callers override it: sync/worker.py:88 and api/client.py:120. The environment "
           "variable RETRY_MAX is read nowhere. Tried to lower it in worker.py: the tests in "
           "tests/sync fail, since they count attempts.")
_ENCODING = bpe_openai.get_encoding("o200k_base")


class Saving:
    """The requests around one rewind, as the model was sent them."""

    def __init__(self, before: list[str], after: list[str], prefix: int) -> None:
        self.before = _Size(before)
        self.after = _Size(after)
        self.kept = before[:prefix] == after[:prefix]  # what the provider's cache may hold

    def cells(self) -> list[str]:
        return [f"{self.before.bytes:,}", f"{self.after.bytes:,}",
                f"{_less(self.before.bytes, self.after.bytes)}", f"{self.before.tokens:,}",
                f"{self.after.tokens:,}", _less(self.before.tokens, self.after.tokens),
                "yes" if self.kept else "**no**"]


class _Size:
    def __init__(self, parts: list[str]) -> None:
        whole = "".join(parts)
        self.bytes = len(whole.encode())
        self.tokens = len(_ENCODING.encode_ordinary(whole))


def _less(before: int, after: int) -> str:
    return f"−{100 * (before - after) // before} %"


def _sources() -> str:
    files = sorted((REPOSITORY / "src").rglob("*.py"))
    return "\n".join(path.read_text() for path in files)


_SOURCES = _sources()


def _found(n: int) -> str:
    """What call number n reads; each something else."""
    start = n * _READ % (len(_SOURCES) - _READ)
    return _SOURCES[start : start + _READ]


# ---- the hosts


def own(calls: int) -> Saving:
    """Our own loop."""
    requests: list[list[str]] = []
    steps = [Reply(calls=[Call("c", "checkpoint", {"goal": _GOAL})]),
             *[Reply(calls=[Call(f"r{n}", "read", {"n": n})]) for n in range(calls)],
             Reply(calls=[Call("w", "rewind", {"report": _REPORT})]), Reply("done")]

    def model(messages: list[Json], tools: list[Tool]) -> Reply:
        requests.append([json.dumps(message) for message in messages])
        return steps[len(requests) - 1]

    read = Tool("read", "Read", {"type": "object", "properties": {"n": {"type": "integer"}}},
                lambda given, _: _found(int(str(given["n"]))))
    AgentSession(model, [read], gate=_ON).prompt("Find out " + _GOAL)
    return Saving(requests[-2], requests[-1], prefix=len(requests[1]))


def framework(make: Callable[[], type[Driver]]) -> Callable[[int], Saving]:
    def run(calls: int) -> Saving:
        with sealed_box():
            driver = make()(None, _ON)
            driver.contents = _found
            steps: list[Step] = [[("checkpoint", {"goal": _GOAL})],
                                 *[[("explore", {"n": n})] for n in range(calls)],
                                 [("rewind", {"report": _REPORT})], "done"]
            driver.run("Find out " + _GOAL, *steps)
            requests = driver.requests
        return Saving(requests[-2].raw, requests[-1].raw, prefix=len(requests[1].raw))

    return run


def agent(make: type[PiRoom]) -> Callable[[int], Saving]:
    def run(calls: int) -> Saving:
        with tempfile.TemporaryDirectory(prefix="rewind-context-") as folder:
            return _in_room(make(Path(folder)), calls)

    return run


def _in_room(room: PiRoom, calls: int) -> Saving:
    """The real agent, whose model answers by the number of the request."""
    _widen(room)
    room.rewind("init", "--yes")
    room.rewind("config", "checkpoint.enabled", "true")
    for n in range(calls):
        (room.folder / f"{n}.txt").write_text(_found(n))
    steps = [called("checkpoint", goal=_GOAL),
             *[room.shell(f"cat {n}.txt") for n in range(calls)],
             called("rewind", report=_REPORT), said("done")]
    bodies: list[Json] = []

    def answer(body: Json) -> list[Json]:
        if not body.get("tools"):
            return [said("A title")]
        bodies.append(body)
        return [steps[len(bodies) - 1]]

    room.model.answer = answer  # type: ignore[method-assign]
    try:
        with room.open() as one:
            one.prompt("Find out " + _GOAL)
    finally:
        room.close()
    assert len(bodies) == len(steps), f"{len(bodies)} requests instead of {len(steps)}"
    marks = len(_parts(bodies[1])) - (room.agent == "omp")  # but for omp's reminder
    return Saving(_parts(bodies[-2]), _parts(bodies[-1]), prefix=marks)


def _widen(room: PiRoom) -> None:
    """A context window that nothing has to be compacted for."""
    for name in ("models.json", "models.yml"):
        path = room.agent_dir / name
        if path.exists():
            words = path.read_text().replace("128000", "9000000").replace("400000", "9000000")
            path.write_text(words)


def _parts(body: Json) -> list[str]:
    """The system prompt, the tools and each message, without what is another at every request:
    the marks for the cache, and omp's own stamp in the system prompt."""
    parts = [_plain(part) for part in (body.get("system"), body["tools"], *body["messages"])]
    return [re.sub(r"\bcch=\w+", "cch=", part) for part in parts]


def _plain(value: Any) -> str:
    def strip(value: Any) -> Any:
        if isinstance(value, list):
            return [strip(one) for one in value]
        if isinstance(value, dict):
            return {key: strip(one) for key, one in value.items() if key != "cache_control"}
        return value

    return json.dumps(strip(value))


def _pydantic_ai() -> type[Driver]:
    from frameworks.with_pydantic_ai import PydanticAI

    return PydanticAI


def _langchain() -> type[Driver]:
    from frameworks.with_langchain import LangChain

    return LangChain


def _google_adk() -> type[Driver]:
    from frameworks.with_google_adk import GoogleADK

    return GoogleADK


def _openai_agents() -> type[Driver]:
    from frameworks.with_openai_agents import OpenAIAgents

    return OpenAIAgents


def _claude_agent_sdk() -> type[Driver]:
    from frameworks.with_claude_agent_sdk import ClaudeAgentSDK

    return ClaudeAgentSDK


HOSTS: dict[str, tuple[str, Callable[[int], Saving]]] = {
    "own": ("`AgentSession`", own),
    "pi": ("Pi", agent(PiRoom)),
    "omp": ("oh-my-pi", agent(OmpRoom)),
    "pydantic-ai": ("pydantic-ai", framework(_pydantic_ai)),
    "langchain": ("LangChain", framework(_langchain)),
    "google-adk": ("Google ADK", framework(_google_adk)),
    "openai-agents": ("OpenAI Agents SDK", framework(_openai_agents)),
    "claude-agent-sdk": ("Claude Agent SDK", framework(_claude_agent_sdk)),
}


# ---- a large session


class Spent:
    """Wall and processor time of a stretch of work, and what it read and wrote."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0
        self.read = self.written = 0

    @contextmanager
    def here(self) -> Iterator[None]:
        self.start()
        yield
        self.stop()

    def start(self) -> None:
        read, written = _moved()
        self._at = time.perf_counter(), time.process_time(), read, written

    def stop(self) -> None:
        wall, cpu, read, written = self._at
        self.wall = 1000 * (time.perf_counter() - wall)
        self.cpu = 1000 * (time.process_time() - cpu)
        now = _moved()
        self.read, self.written = now[0] - read, now[1] - written

    def __str__(self) -> str:
        return f"{self.wall:.0f} ({self.cpu:.0f})"


def _moved() -> tuple[int, int]:
    """The bytes that this process has read and written."""
    with open("/proc/self/io") as file:
        rows = dict(line.split(": ") for line in file.read().splitlines())
    return int(rows["rchar"]), int(rows["wchar"])


def large(folder: Path, megabytes: int) -> list[list[str]]:
    """Rows about a session of so many megabytes, nearly all of it inside the window."""
    path, killed = folder / "large.jsonl", folder / "killed.jsonl"
    calls, beside = (megabytes << 20) // (_READ + 450), 100
    spent = Spent()
    steps: list[Reply | str] = [
        Reply(calls=[Call("c", "checkpoint", {"goal": _GOAL})]),
        *[Reply(calls=[Call(f"r{n}", "read", {"n": n}) for n in range(at, at + beside)])
          for at in range(0, calls, beside)],
        Reply(calls=[Call("w", "rewind", {"report": _REPORT}), Call("k", "copy")]), "done"]

    def model(messages: list[Json], tools: list[Tool]) -> Reply | str:
        if len(steps) == 1:
            spent.stop()
        return steps.pop(0)

    def copy(given: object, id: str) -> str:
        """What a process leaves that is killed before the turn is over."""
        killed.write_bytes(path.read_bytes())
        spent.start()
        return ""

    nothing: Json = {"type": "object", "properties": {}, "required": []}
    tools = [Tool("read", "Read", nothing, lambda given, id: _found(int(str(given["n"])))),
             Tool("copy", "Copy", nothing, copy)]
    AgentSession(model, tools, tree=SessionTree.create(path), gate=_ON, max_turns=10_000).prompt(
        "Find out " + _GOAL)
    limit = 200
    rows = [["apply a rewind when its turn is over, and have the next request", str(spent),
             f"≤ {limit}", _met(spent.cpu <= limit)]]
    opening = Spent()
    with opening.here():
        tree = SessionTree.open(killed)
    rows.append(["open the session", str(opening), "", ""])
    again = AgentSession(lambda messages, tools: "done", gate=_ON, tree=tree)
    with spent.here():
        again.prompt("go on")
    rows.append(["apply the rewind of a process that was killed before that, and answer a prompt",
                 str(spent), f"≤ {limit}", _met(spent.cpu <= limit)])
    message = {"role": "user", "content": "x" * 1000}
    with spent.here():
        tree.append_message(message)
    line = len(json.dumps(tree.entry(str(tree.leaf)), separators=(",", ":"))) + 1
    rows.append([f"append an entry of {line:,} bytes: {spent.written:,} written, "
                 f"{spent.read:,} read", str(spent), f"{line:,} written",
                 _met(spent.written == line)])
    return rows


def _met(met: bool) -> str:
    return "yes" if met else "**no**"


# ---- the page


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--calls", default="5,30,100")
    options.add_argument("--hosts", default=",".join(HOSTS))
    options.add_argument("--megabytes", type=int, default=50)
    options.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    chosen = options.parse_args()
    logging.disable(logging.WARNING)  # of the frameworks
    rows = []
    for name in chosen.hosts.split(","):
        says, run = HOSTS[name]
        for calls in map(int, chosen.calls.split(",")):
            print(f"{says}, {calls} calls …", file=sys.stderr, flush=True)
            rows.append([says, str(calls), *run(calls).cells()])
    with tempfile.TemporaryDirectory(prefix="rewind-context-") as folder:
        times = large(Path(folder), chosen.megabytes)
    page = (
        "# What a rewind saves\n\n"
        "Written by `python benchmarks/context.py --write`. One exploration, played in each host "
        "by a scripted model: a checkpoint, so many calls that each read 5.5 kB of source, a "
        "rewind with a report of four lines. *Before* is the request that the model answered with "
        "`rewind`, *after* the next one: whole requests for Pi and oh-my-pi, with their system "
        "prompts and tools, the list of messages for the others. Tokens are those of "
        "`o200k_base`. The prefix is everything up to the checkpoint's result: the same to the "
        "byte, so that a provider's cache still holds it.\n\n"
        + _table(["host", "calls", "bytes before", "after", "", "tokens before", "after", "",
                  "same prefix"], rows)
        + f"\n## A session of {chosen.megabytes} MB\n\n"
        "Milliseconds of wall time, in brackets of processor time, which is what is wanted of: "
        f"the load was {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.\n\n"
        + _table(["what", "took", "wanted", "met"], times))
    print(page)
    if chosen.write:
        PAGE.write_text(page)
    return 0


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
