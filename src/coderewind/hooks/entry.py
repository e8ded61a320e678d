"""`rewind hook [--agent NAME] EVENT`: the one entry point of Claude Code and Droid.

Whatever happens, the agent goes on: the exit code is 0, and never 2, which would block a tool.
What the user must know is said once, as the agents' `systemMessage`, and logged without any of
the user's words.
"""

from __future__ import annotations

import gc
import os
import sys
import time

from coderewind.errors import RewindError
from coderewind.hooks import alone
from coderewind.hooks.names import AGENTS, event_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.agents.tier import Tier
    from coderewind.engine.settings import Settings
    from coderewind.hooks.payload import Event
    from coderewind.hooks.session import SessionState

# Seconds; below the timeouts that tiers register, so that we end before we are ended.
_LIMITS = {"SessionStart": 110.0, "SessionEnd": 50.0, "UserPromptExpansion": 115.0}
_LIMIT = 27.0
_LARGEST = 256 << 20
_TOO_LONG = "a checkpoint took too long and was left out"
_OF_TOOLS = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch")


class _TimeUp(BaseException):
    """The event's time is over. Not an Exception: nothing on the way may take it for its own."""


def run_hook(argv: list[str]) -> int:
    """Handle one event; the exit code."""
    agent, name = _arguments(argv)
    if not name:
        sys.stderr.write("rewind: usage: rewind hook [--agent claude|droid] EVENT < payload\n")
        return 1
    gc.disable()  # it would look for cycles ten times, in a process that is about to end
    event: Event | None = None
    try:
        payload = sys.stdin.buffer.read(_LARGEST)
        if name == "PostToolBatch" and alone.is_noted(agent, payload):
            return 0
        _limit(_LIMITS.get(name, _LIMIT))
        from coderewind.hooks.payload import read_event

        event = read_event(agent, name, payload)
        if name == "UserPromptExpansion":
            _answer(event)
        else:
            _handle(event)
        _limit(0)
    except RewindError as error:
        _tell(event, agent, name, error.message, error.hint)
    except _TimeUp:
        _tell(event, agent, name, _TOO_LONG,
              "the next prompt or end of a turn tries again; `rewind save` takes its time")
    except KeyboardInterrupt:
        pass
    except Exception as error:  # noqa: BLE001 - the top of the surface: the agent must go on
        from coderewind.hooks.log import where

        _tell(event, agent, name, f"a checkpoint failed ({where(error)})",
              "this is a bug in Rewind; please report it")
    return 0


def _arguments(argv: list[str]) -> tuple[str, str]:
    agent = ""
    words = list(argv)
    if words[:1] == ["--agent"] and words[1:2] and words[1] in AGENTS:
        agent, words = words[1], words[2:]
    return agent, event_name(words[0]) if len(words) == 1 else ""


def _limit(seconds: float) -> None:
    # What `signal` wraps in enums.
    from _signal import (  # type: ignore[import-not-found]
        ITIMER_REAL,
        SIGALRM,
        setitimer,
        signal,
    )

    signal(SIGALRM, _time_up)
    setitimer(ITIMER_REAL, seconds)


def _time_up(_signum: int, _frame: object) -> None:
    raise _TimeUp


def _handle(event: Event) -> None:
    from coderewind.agents import seen
    from coderewind.agents.known import adapter_of
    from coderewind.hooks.session import Sessions

    if not event.session:
        raise RewindError("the agent named no session")
    if event.name == "PostToolBatch" and _only_reads(event):
        return
    seen.note(event.agent, event.name)
    caller = adapter_of(event.agent).caller(event.transcript)
    if caller and not event.becomes_a_subagents(caller):
        return
    sessions = Sessions()
    with sessions.lock(event.agent, event.session, patience=20.0):
        state = sessions.load(event.agent, event.session)
        if event.name == "SessionEnd" and not state.worktree:
            return  # a session that no other event told of: `claude plugin` has such
        if _TOO_LONG in state.said and event.name in _OF_TOOLS:
            return  # not at every tool, as long as it is so
        try:
            _observe(event, state)
            if _TOO_LONG in state.said:
                state.said.remove(_TOO_LONG)
        finally:
            sessions.save(event.agent, event.session, state)
    if event.name == "SessionStart":
        sessions.sweep()


def _answer(event: Event) -> None:
    """Show the answer to a slash command of ours in place of asking the model."""
    import json

    from coderewind.hooks.typed import answer

    words = answer(event)
    if words:
        sys.stdout.write(json.dumps({"decision": "block", "reason": "\n" + words}) + "\n")
        sys.stdout.flush()


def _observe(event: Event, state: SessionState) -> None:
    from coderewind.agents import tier as tiers
    from coderewind.agents.known import adapter_of
    from coderewind.hooks.place import NotProtected, place_of
    from coderewind.hooks.turn import Turn

    try:
        place = place_of(event.cwd, state.worktree)
    except NotProtected as error:
        if error.message not in state.said:
            state.said.append(error.message)
            _say(f"{error.message}: {error.hint}")
        return
    engine, settings = place.engine, place.settings
    state.worktree = state.worktree or os.fsdecode(engine.workspace.root)
    tier = tiers.load(settings.text("tier"))
    if _wants(event, tier, settings, engine.ledger.last_time()):
        done = Turn(engine, adapter_of(event.agent), event, state,
                    exact=tier.name == tiers.EXACT).observe()
        if done:
            alone.note(event.agent, event.session, done)


def _only_reads(event: Event) -> bool:
    """Whether a batch held nothing but tools that no tier looks at: they cannot write."""
    from coderewind.agents import tier as tiers

    hook = tiers.load(tiers.EXACT).hook(event.agent, "PostToolUse")
    return hook is not None and not any(hook.wants(call.name) for call in event.calls)


def _wants(event: Event, tier: Tier, settings: Settings, last_ms: int) -> bool:
    """Whether the tier makes a checkpoint at this event."""
    from coderewind.agents import tier as tiers
    from coderewind.hooks.turn import SHELLS, destroys

    hook = tier.hook(event.agent, event.name)
    if hook is None:
        return False
    exact = tier.name == tiers.EXACT
    if event.name == "PostToolBatch" and not event.calls:
        return False
    if event.calls:
        matcher = hook
        if event.name == "PostToolBatch":
            matcher = tier.hook(event.agent, "PostToolUse") or hook
        if not any(matcher.wants(call.name) for call in event.calls):
            return False
    if event.name == "PreToolUse" and event.call is not None:
        if destroys(event.call):
            return True
        if not exact and event.call.name in SHELLS:
            return False
        if _value(tier, settings, "significance.enabled") is True:
            least = _value(tier, settings, "significance.minChangeSize")
            if isinstance(least, int) and _size(event) < least:
                return False
    if event.name != "SessionStart" and _value(tier, settings, "antiSpam.enabled") is True:
        seconds = _value(tier, settings, "antiSpam.minIntervalSeconds")
        if isinstance(seconds, int) and time.time() * 1000 - last_ms < seconds * 1000:
            return False
    return True


def _value(tier: Tier, settings: Settings, key: str) -> object:
    """A setting: the user's if it was set, else the tier's."""
    if settings.source(key) != "default":
        return settings.get(key)
    return tier.runtime.get(key, settings.get(key))


def _size(event: Event) -> int:
    """How many characters an edit is about; a tool that does not say counts as large."""
    call = event.call
    if call is None:
        return 1 << 30
    edits = call.input.get("edits")
    rows = [call.input, *(edits if isinstance(edits, list) else [])]
    keys = ("content", "new_string", "old_string", "new_source", "new_str", "old_str", "input")
    texts = [row[key] for row in rows if isinstance(row, dict) for key in keys if key in row]
    return sum(len(text) for text in texts if isinstance(text, str)) if texts else 1 << 30


# ---- what is said and written down


def _tell(event: Event | None, agent: str, name: str, message: str, hint: str) -> None:
    """Log a failure, and say it once in a session."""
    try:
        from coderewind.hooks.log import log

        _limit(0)
        log(f"{agent or (event.agent if event else '-')} {name} {message}")
        if not _said_before(event, agent, message):
            _say(f"{message}: {hint}" if hint else message)
    except (OSError, RewindError):
        pass  # nowhere to write: the agent must go on all the same


def _say(words: str) -> None:
    """To the user, through the agent; and for a person who runs this by hand."""
    import json

    sys.stdout.write(json.dumps({"systemMessage": f"rewind: {words}"}) + "\n")
    sys.stdout.flush()
    sys.stderr.write(f"rewind: {words}\n")


def _said_before(event: Event | None, agent: str, message: str) -> bool:
    from coderewind.hooks.session import Sessions

    sessions = Sessions()
    agent = event.agent if event else agent or AGENTS[0]
    session = (event.session if event else "") or "unknown"
    with sessions.lock(agent, session, patience=2.0):
        state = sessions.load(agent, session)
        if message in state.said:
            return True
        state.said.append(message)
        sessions.save(agent, session, state)
    return False
