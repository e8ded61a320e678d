"""Retention for Pi's sessions: what a sweep drops, and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from corpus.box import Box

from coderewind.engine import settings
from coderewind.engine.engine import Engine
from coderewind.engine.settings import Settings
from coderewind.engine.sweep import sweep
from coderewind.model.records import Anchor
from coderewind.wiring import open_engine


class Sessions:
    """A worktree and Pi's sessions in it."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.engine: Engine = open_engine(box.project, create=True)
        self.folder = Path(box.home, ".pi/agent/sessions/--project--")
        self.folder.mkdir(parents=True)
        self.made = 0

    def file(self, session: str) -> Path:
        return self.folder / f"2026-04-01T00-00-00-000Z_{session}.jsonl"

    def begin(self, session: str, parent: str = "", cwd: str = "") -> None:
        head: dict[str, Any] = {"type": "session", "version": 3, "id": session,
                                "timestamp": "2026-04-01T00:00:00.000Z",
                                "cwd": cwd or self.box.project}
        if parent:
            head["parentSession"] = str(self.file(parent))
        self.file(session).write_text(json.dumps(head) + "\n")

    def row(self, session: str, kind: str, **fields: Any) -> None:
        self.made += 1
        row = {"type": kind, "id": f"r{self.made}", "parentId": None, **fields}
        with open(self.file(session), "a") as file:
            file.write(json.dumps(row) + "\n")

    def point(self, session: str, entry: str, *, agent: str = "pi", change: bool = True) -> str:
        """A point with files of its own; its snapshot."""
        if change:
            self.box.write("a.txt", entry)
        anchor = Anchor(agent, session, entry, transcript=str(self.file(session)))
        self.row(session, "message", message={"role": "user", "content": entry})
        return self.engine.save("prompt", anchor=anchor).checkpoint.snapshot

    def sweep(self, session: str, *, within_ms: int = 0, **own: Any) -> list[str]:
        """Sweep as that session's bridge does; the entries whose points are left, oldest first."""
        in_force, problems = settings.with_agents(
            settings.load(self.engine.store), {"retention": own}, "test")
        assert problems == []
        sweep(self.engine, in_force, "pi", session, str(self.file(session)), within_ms=within_ms)
        return [cp.anchor.entry for cp in self.engine.timeline().checkpoints][::-1]


@pytest.fixture
def sessions(box: Box) -> Sessions:
    made = Sessions(box)
    made.begin("s")
    return made


def test_the_newest_states_of_the_session_stay(sessions: Sessions) -> None:
    for number in range(6):
        sessions.point("s", f"e{number}")
    assert sessions.sweep("s", maxSnapshots=3) == ["e3", "e4", "e5"]


def test_points_of_one_state_count_once(sessions: Sessions) -> None:
    sessions.point("s", "e0")
    for number in range(1, 4):
        sessions.point("s", f"e{number}")
        sessions.point("s", f"e{number}b", change=False)
    assert sessions.sweep("s", maxSnapshots=2) == ["e2", "e2b", "e3", "e3b"]


def test_a_session_keeps_at_most_so_many(sessions: Sessions) -> None:
    for number in range(4):
        sessions.point("s", f"e{number}")
    assert sessions.sweep("s", maxPerSession=2) == ["e2", "e3"]


def test_nothing_goes_without_a_limit(sessions: Sessions) -> None:
    for number in range(4):
        sessions.point("s", f"e{number}")
    assert len(sessions.sweep("s", pinLabeledEntries=True)) == 4


def test_other_sessions_agents_and_saves_are_not_looked_at(sessions: Sessions) -> None:
    sessions.begin("sibling")
    sessions.point("sibling", "x0")
    sessions.point("sibling", "x1")
    sessions.point("claude-session", "c0", agent="claude")
    sessions.engine.save()
    for number in range(4):
        sessions.point("s", f"e{number}")
    assert sessions.sweep("s", maxSnapshots=1) == ["x0", "x1", "c0", "", "e2", "e3"]


def test_all_sessions_of_the_worktree_are_looked_at_when_asked(sessions: Sessions) -> None:
    sessions.begin("sibling")
    sessions.point("sibling", "x0")
    sessions.point("sibling", "x1")
    for number in range(3):
        sessions.point("s", f"e{number}")
    # The newest of each session stays, and the state that undo goes back to.
    assert sessions.sweep("s", maxSnapshots=1, scanMode="repo-sessions") == ["x1", "e1", "e2"]


def test_the_sessions_that_one_was_forked_from_are_its_lineage(sessions: Sessions) -> None:
    sessions.point("s", "p0")
    sessions.point("s", "p1")
    sessions.begin("child", parent="s")
    sessions.point("child", "e0")
    sessions.point("child", "e1")
    assert sessions.sweep("child", maxSnapshots=1) == ["p1", "e0", "e1"]


def test_what_a_session_stands_at_and_goes_back_to_stays(sessions: Sessions) -> None:
    first, second = sessions.point("s", "e0"), sessions.point("s", "e1")
    for number in range(2, 6):
        sessions.point("s", f"e{number}")
    sessions.begin("other")
    sessions.row("other", "custom", customType="rewind-op",
                 data={"v": 2, "snapshots": [first, second], "current": 0, "undo": 1})
    assert sessions.sweep("s", maxSnapshots=1) == ["e0", "e1", "e4", "e5"]


def test_what_a_session_in_a_linked_worktree_stands_at_stays(sessions: Sessions) -> None:
    linked = f"{sessions.box.home}/linked"
    sessions.box.git("worktree", "add", "-q", linked)
    first = sessions.point("s", "e0")
    for number in range(1, 4):
        sessions.point("s", f"e{number}")
    sessions.begin("other", parent="s", cwd=linked)
    sessions.row("other", "custom", customType="rewind-op",
                 data={"v": 2, "snapshots": [first], "current": 0})
    assert sessions.sweep("s", maxSnapshots=1) == ["e0", "e2", "e3"]


def test_labelled_entries_stay_when_that_is_set(sessions: Sessions) -> None:
    for number in range(4):
        sessions.point("s", f"e{number}")
    sessions.row("s", "label", targetId="e0", label="keep")
    sessions.row("s", "label", targetId="e1", label="keep")
    sessions.row("s", "label", targetId="e1", label=None)
    assert sessions.sweep("s", maxSnapshots=1, pinLabeledEntries=True) == ["e0", "e2", "e3"]
    assert sessions.sweep("s", maxSnapshots=1) == ["e2", "e3"]


def test_no_session_file_changes_nothing(sessions: Sessions) -> None:
    for number in range(4):
        sessions.point("s", f"e{number}")
    sessions.file("s").unlink()
    assert len(sessions.sweep("s", maxSnapshots=1)) == 4
    sessions.file("s").write_text("no session\n")
    assert len(sessions.sweep("s", maxSnapshots=1)) == 4


def test_a_budget_that_is_used_up_leaves_all(sessions: Sessions,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        sessions.point("s", f"e{number}")
    ticks = iter(range(0, 10_000, 10))
    monkeypatch.setattr("coderewind.engine.sweep.time.monotonic", lambda: next(ticks))
    assert len(sessions.sweep("s", maxSnapshots=1, within_ms=5000)) == 4


def test_what_is_left_can_be_restored(sessions: Sessions) -> None:
    for number in range(4):
        sessions.point("s", f"e{number}")
    sessions.sweep("s", maxSnapshots=2)
    oldest = sessions.engine.timeline().checkpoints[-1]
    sessions.engine.restore(oldest)
    assert sessions.box.read("a.txt") == b"e2"
    sessions.engine.undo_restore()
    assert sessions.box.read("a.txt") == b"e3"


@pytest.mark.parametrize("own", [7, [], {"retention": 7}, {"retention": {"maxSnapshots": "many"}},
                                 {"retention": {"maxSnapshots": -1, "scanMode": "all"}},
                                 {"silentCheckpoints": "yes"}])
def test_a_wrong_value_in_the_agents_settings_is_named_and_left_out(own: object) -> None:
    base: Settings = settings.load(None)
    in_force, problems = settings.with_agents(base, own, "settings.json")
    assert in_force.as_json() == base.as_json()
    assert bool(problems) == (own not in (7, []) and own != {"retention": 7})
    assert all(problem.startswith("settings.json: rewind: ") for problem in problems)
