"""Retention for the sessions of Pi and omp, run from inside them.

A sweep looks at the checkpoints of the session's lineage (`ancestor-only`) or of all sessions of
the agent in this worktree (`repo-sessions`), and at no others: not at those of other agents, not
at those made by hand. It never drops what any session still needs: the states its files stand at
and go back to, its newest point, and entries with a label where these are to be kept. When no
session can be found nothing is dropped.
"""

from __future__ import annotations

import os
import time

from coderewind.agents import rewind_hook
from coderewind.agents.branched import Branched, Tree
from coderewind.agents.known import adapter_of
from coderewind.agents.sessions import files_of, header_of, lineage_of
from coderewind.agents.transcript import read_session, rows_of
from coderewind.engine import retention
from coderewind.engine.engine import Engine
from coderewind.engine.settings import Settings
from coderewind.model.records import Checkpoint
from coderewind.store.workspace import all_roots
from coderewind.timeline.build import Timeline

ANCESTORS = "ancestor-only"
_AGENTS = ("pi", "omp")
_LIMITS = ("retention.maxSnapshots", "retention.maxAgeDays", "retention.maxPerSession")
_LABEL = b'"type":"label"'
_LABEL_SPACED = b'"type": "label"'


class OutOfTime(Exception):
    """The budget is used up; the sweep is left for later."""


class Needs:
    """What sessions still need, by their own entries."""

    def __init__(self) -> None:
        self.snapshots: set[str] = set()
        self.labelled: set[str] = set()

    def add(self, data: bytes) -> None:
        """Learn from a session file."""
        said = rewind_hook.read(data)
        self.snapshots |= {oid for oid in (said.current, said.undo, *said.pending) if oid}
        if _LABEL in data or _LABEL_SPACED in data:
            self.labelled |= Tree(rows_of(data)).labelled()


def is_wanted(settings: Settings) -> bool:
    """Whether any limit is set; without one everything is kept."""
    return any(settings.whole(key) for key in _LIMITS)


def sweep(
    engine: Engine,
    settings: Settings,
    agent: str,
    session: str,
    file: str,
    *,
    within_ms: int = 0,
) -> list[int]:
    """Apply retention to an agent's sessions; the numbers of the checkpoints that went.

    With `within_ms`, reading the sessions may take that long; else all is left for later.
    """
    if not is_wanted(settings) or not session or header_of(file) is None:
        return []
    end = time.monotonic() + within_ms / 1000 if within_ms else 0.0
    try:
        sessions, needs = _look(engine, settings, agent, session, file, end)
    except OutOfTime:
        return []
    if not sessions:
        return []

    def choose(timeline: Timeline) -> set[str]:
        if end and time.monotonic() > end:
            return set()
        return retention.doomed_in(
            timeline, settings, among=lambda cp: _is_theirs(cp, agent, sessions),
            protect=_needed(timeline, settings, needs))

    return retention.drop(engine, choose)


def _look(
    engine: Engine, settings: Settings, agent: str, session: str, file: str, end: float
) -> tuple[set[str], Needs]:
    """The sessions whose points may go, and what all sessions of the repository still need: one
    that goes on in a linked worktree may stand at a point of this one."""
    lineage = [(session, file), *lineage_of(file)]
    all_files = dict.fromkeys(lineage)
    for name in _AGENTS:
        adapter = adapter_of(name)
        assert isinstance(adapter, Branched)
        for root in all_roots(engine.workspace):
            all_files |= dict.fromkeys(files_of(adapter, os.fsdecode(root)))
            _check(end)
    needs = Needs()
    for _, path in all_files:
        needs.add(read_session(path))
        _check(end)
    if settings.text("retention.scanMode") == ANCESTORS:
        return {name for name, _ in lineage}, needs
    return {name for name, _ in all_files}, needs


def _needed(timeline: Timeline, settings: Settings, needs: Needs) -> frozenset[str]:
    """The checkpoints that hold what is needed, and the newest of each session."""
    kept: set[str] = set()
    newest: set[tuple[str, str]] = set()
    labels = needs.labelled if settings.flag("retention.pinLabeledEntries") else set()
    held: set[str] = set()
    for cp in timeline.checkpoints:  # newest first: one checkpoint is enough to keep a state
        owner = (cp.anchor.agent, cp.anchor.session)
        if owner not in newest or cp.anchor.entry in labels:
            kept.add(cp.id)
        if cp.snapshot in needs.snapshots and cp.snapshot not in held:
            held.add(cp.snapshot)
            kept.add(cp.id)
        newest.add(owner)
    return frozenset(kept)


def _is_theirs(cp: Checkpoint, agent: str, sessions: set[str]) -> bool:
    return cp.anchor.agent == agent and cp.anchor.session in sessions and cp.kind != "save"


def _check(end: float) -> None:
    if end and time.monotonic() > end:
        raise OutOfTime
