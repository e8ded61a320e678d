"""Records: read from a ledger that may be anybody's."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coderewind.model.records import CHECKPOINT, RESTORE, Anchor, Checkpoint, Record
from coderewind.timeline.build import Timeline

from .ledger_text import oid

_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner,
                                                                max_size=3),
    max_leaves=4,
)
_KEYS = st.sampled_from([
    "id", "op", "time", "number", "last", "snapshot", "parent", "state", "files", "coverage",
    "head", "branch", "staged", "cursor", "kind", "label", "anchor", "flags", "target", "paths",
    "v", "pruned",
])
_OPS = st.sampled_from(["checkpoint", "restore", "undo", "redo", "undo-restore", "abort", "label",
                        "pin", "unpin", "bind", "prune", "other"])
_RECORDS = st.builds(
    lambda facts, op, name: {**facts, "op": op, "id": name},
    st.dictionaries(_KEYS, _ANYTHING | st.sampled_from(["a", "b", oid("a")]), max_size=8),
    _OPS,
    st.sampled_from(["a", "b", "c"]),
)


@given(st.lists(_RECORDS, max_size=8))
def test_a_hostile_ledger_makes_a_timeline_that_can_be_used(rows: list[dict[str, object]]) -> None:
    timeline = Timeline([Record(row) for row in rows])

    json.dumps([cp.as_json() for cp in timeline.checkpoints])
    for cp in timeline.checkpoints:
        assert len(bytes.fromhex(cp.snapshot)) in (20, 32)
        for text in (cp.coverage, cp.staged, cp.moved_to):
            assert text == "" or len(bytes.fromhex(text)) in (20, 32)
        assert 0 <= cp.time < 1 << 53
    list(timeline.history(timeline.position.cursor))
    assert len(timeline.position.moves) <= len(rows)
    assert len(timeline.position.redo) <= len(rows)


@pytest.mark.parametrize("snapshot", ["", "zz" * 20, "ab" * 19, "AB" * 20, "ab" * 20 + "\n", 5,
                                      "../../x", "-" * 40])
def test_a_snapshot_id_that_is_none_is_not_listed(snapshot: object) -> None:
    record = Record({"id": "a", "op": CHECKPOINT, "snapshot": snapshot, "number": 1})

    assert Timeline([record]).checkpoints == []


@pytest.mark.parametrize("time", [-1, 1 << 60, 10**30, "now", None, 1.5, True])
def test_a_time_out_of_range_counts_as_unknown(time: object) -> None:
    record = Record({"id": "a", "op": CHECKPOINT, "snapshot": oid("a"), "time": time})

    assert Checkpoint(record).time == 0


def test_a_rescue_knows_where_the_worktree_was_moved_to() -> None:
    facts: dict[str, object] = {"id": "r", "snapshot": oid("a"), "state": oid("b")}

    assert Checkpoint(Record({**facts, "op": RESTORE})).moved_to == oid("b")
    assert Checkpoint(Record({**facts, "op": CHECKPOINT})).moved_to == ""


def test_an_anchor_takes_only_texts() -> None:
    anchor = Anchor.from_json({"agent": "pi", "session": 5, "entry": None, "other": "x"})

    assert anchor.as_json() == {"agent": "pi"}


@pytest.mark.parametrize("data", [None, [], "x", 5])
def test_an_anchor_of_something_else_is_empty(data: object) -> None:
    assert Anchor.from_json(data).as_json() == {}


def test_the_json_of_a_checkpoint_has_the_documented_keys() -> None:
    record = Record({"id": "a", "op": CHECKPOINT, "snapshot": oid("a"), "number": 1,
                     "time": 1_700_000_000_500})

    data = Checkpoint(record).as_json()

    assert set(data) >= {"id", "number", "time", "kind", "label", "prompt", "agent", "session",
                         "entry", "files", "pinned", "snapshot", "current"}
    assert data["time"] == 1_700_000_000.5
