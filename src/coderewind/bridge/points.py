"""Points: which checkpoint belongs to which entry of the conversation; making new ones."""

from __future__ import annotations

from coderewind.bridge.session import Session
from coderewind.engine import legacy
from coderewind.engine.engine import Engine
from coderewind.model import records as ops
from coderewind.model.records import Anchor, Checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from coderewind.agents.rewind_hook import Point
    from coderewind.store.capture import Captured

PROMPT_KEPT = 4000  # characters; the whole prompt is in the session's file

PROMPT = "prompt"
BATCH = "batch"
AFTER = "after"
COMPACT = "compact"
START = "start"
SETTLE = "settle"
SAVE = "save"
BRANCH = "branch"
# Only these say what an entry's files were. A checkpoint made by hand at an entry comes later.
_POINTS = (PROMPT, BATCH, AFTER, COMPACT, BRANCH, START)


class Place:
    """Where a new checkpoint stands in the conversation, and what it is called."""

    __slots__ = ("at", "entry", "kind", "label", "prompt", "prompt_id")

    def __init__(self, kind: str, at: str, entry: str = "", *, label: str = "",
                 prompt: str = "", prompt_id: str = "") -> None:
        self.kind = kind
        self.at = at
        self.entry = entry
        self.label = label
        self.prompt = prompt
        self.prompt_id = prompt_id


class Points:
    """The points of one conversation."""

    def __init__(self, engine: Engine, session: Session) -> None:
        self.engine = engine
        self.session = session
        self._by_entry: dict[str, Checkpoint] = {}
        self._by_snapshot: dict[str, Checkpoint] = {}
        self.made = 0  # snapshots that were new, since the last sweep
        self.refresh()

    def refresh(self) -> None:
        """Read the ledgers again: other processes write to them, too."""
        timelines = self.engine.all_timelines()
        checkpoints = [cp for timeline in timelines for cp in timeline.checkpoints]
        self.session.find_lineage(checkpoints)
        rank = {session: number for number, session in enumerate(self.session.lineage)}
        found: dict[str, tuple[int, int, Checkpoint]] = {}
        for order, cp in enumerate(reversed(checkpoints)):
            anchor = cp.anchor
            if anchor.entry and anchor.session in rank and cp.kind in _POINTS:
                # The nearest session's word counts; of START only when there is nothing better.
                key = rank[anchor.session] + (_MOST if cp.kind == START else 0)
                old = found.get(anchor.entry)
                if old is None or key <= old[0]:
                    found[anchor.entry] = (key, order, cp)
        self._by_entry = {entry: row[2] for entry, row in found.items()}
        self._by_snapshot = {cp.snapshot: cp for cp in reversed(timelines[0].checkpoints)}

    def find(self, entry: str) -> Checkpoint | None:
        """The point of an entry, wherever in the lineage it was made."""
        return self._by_entry.get(entry)

    def older(self) -> dict[str, Point]:
        """The points of pi-rewind-hook in this lineage, by their entries."""
        return legacy.points_of_lineage(self.engine, self.session.id, self.session.file)

    def with_snapshot(self, snapshot: str) -> Checkpoint | None:
        """The newest checkpoint that holds a snapshot, as long as there is one."""
        return self._by_snapshot.get(snapshot)

    def counts(self, entries: Collection[str]) -> tuple[int, int]:
        """How many of some entries have a point, and how many snapshots these are."""
        found = [self._by_entry[entry] for entry in entries if entry in self._by_entry]
        return len(found), len({cp.snapshot for cp in found})

    def make(self, *places: Place) -> list[Checkpoint]:
        """Capture once, and record a checkpoint for each place.

        Raises:
            RewindError: nothing could be captured or recorded.
        """
        engine = self.engine
        made: list[Checkpoint] = []
        with engine.working() as now_ns:
            last = engine.ledger.last()
            captured = engine.capture(now_ns)
            if last is None or last.text("state") != captured.snapshot.hex():
                self.made += 1
            try:
                for place in places:
                    if made:
                        captured.pack = engine.store.pack()
                    last = engine.append_state(ops.CHECKPOINT, self._facts(place), captured,
                                               now_ns, last=last)
                    made.append(Checkpoint(last, engine.workspace.name))
            finally:
                engine.store.objects.close()
        for cp in made:
            entry = cp.anchor.entry
            if entry and cp.kind == START:
                self._by_entry.setdefault(entry, cp)
            elif entry and cp.kind in _POINTS:
                self._by_entry[entry] = cp
        return made

    def baseline(self, place: Place) -> str:
        """The snapshot of the files as they are; recorded if the ledger stands elsewhere."""
        engine = self.engine
        with engine.working() as now_ns:
            last = engine.ledger.last()
            captured: Captured = engine.capture(now_ns)
            try:
                if last is None or last.text("state") != captured.snapshot.hex():
                    self.made += 1
                    engine.append_state(ops.CHECKPOINT, self._facts(place), captured, now_ns,
                                        last=last)
                else:
                    engine.finish(captured)
            finally:
                engine.store.objects.close()
            return captured.snapshot.hex()

    def _facts(self, place: Place) -> dict[str, object]:
        session = self.session
        anchor = Anchor(
            agent=session.agent,
            session=session.id,
            entry=place.entry,
            prompt_id=place.prompt_id,
            parent_session=session.parent,
            prompt=clean(place.prompt[:PROMPT_KEPT]),
            transcript=session.file,
        )
        data: dict[str, object] = {"kind": place.kind, "at": place.at, "anchor": anchor.as_json()}
        if place.label:
            data["label"] = clean(place.label)
        return data


_MOST = 1 << 20


def clean(text: str) -> str:
    """Text that can be written as UTF-8: JavaScript's may hold half of a character."""
    return text.encode("utf-8", "replace").decode()
