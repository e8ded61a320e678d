"""Check a store: quickly at every `status`, down to the objects in `doctor`; and mend it."""

from __future__ import annotations

import os

from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.ledger.chain import KEEP_REF, Ledger, are_kept_alive, keep_alive, ledgers
from coderewind.ledger.rewrite import mend
from coderewind.store.home import lay_out_again
from coderewind.store.objects import DamagedObject, Objects
from coderewind.store.salvage import salvage
from coderewind.store.trust import is_whole
from coderewind.timeline.build import Timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Diagnosis:
    """What `doctor` found, and what it mended."""

    __slots__ = ("checked", "damaged", "lost", "mended", "problems")

    def __init__(self) -> None:
        self.checked = 0  # objects
        self.problems: list[str] = []
        self.damaged: list[int] = []  # numbers of checkpoints that cannot be restored whole
        self.mended: list[str] = []
        self.lost: list[int] = []  # numbers of checkpoints that could not be mended: not listed now

    def as_json(self) -> dict[str, object]:
        return {"objects": self.checked, "problems": self.problems, "damaged": self.damaged,
                "mended": self.mended, "lost": self.lost, "healthy": not self.problems}


def disk_usage(folder: bytes) -> int:
    """What a folder takes on the disk, each inode counted once."""
    seen: set[int] = set()
    total = 0
    for top, _, names in os.walk(folder):
        for name in names:
            try:
                st = os.lstat(os.path.join(top, name))
            except OSError:
                continue
            if st.st_ino not in seen:
                seen.add(st.st_ino)
                total += st.st_blocks * 512
    return total


def quick_check(engine: Engine) -> list[str]:
    """What can be said without reading every object."""
    problems = []
    engine.store.objects.refresh()
    try:
        head = engine.ledger.head()
        if head and not engine.store.objects.has(bytes.fromhex(head)):
            problems.append("the newest record is missing from the store")
        engine.ledger.records()
        problems += _at_the_users_mercy(engine)
    except (RewindError, ValueError) as error:
        problems.append(str(error))
    return problems


def _at_the_users_mercy(engine: Engine) -> list[str]:
    """In mode `repo`: what the user's own gc would take."""
    if engine.store.mode != "repo" or are_kept_alive(engine.store):
        return []
    return [f"{KEEP_REF} does not keep the checkpoints alive: the repository's gc would take them"]


def diagnose(engine: Engine) -> Diagnosis:
    """Read every object that a record keeps alive, and check it against its id."""
    found = Diagnosis()
    engine.store.objects.refresh()
    reader = _Reader(engine.store.objects, engine.progress)
    objects = engine.store.objects
    if engine.store.mode != "repo":
        names = set(os.listdir(objects.pack_dir))
        for pack in sorted(name for name in names if name.endswith(b".pack")):
            # An index alone is what is left of a pack that another one took in. If it was needed
            # all the same, its objects are found missing below.
            index = pack[:-5] + b".idx"
            if index in names and not (is_whole(objects, index) and is_whole(objects, pack)):
                found.problems.append(f"{os.fsdecode(pack[:-5])} is damaged")
    for name in ledgers(engine.store):
        ledger = Ledger(engine.store, name)
        try:
            ledger.chain()
        except RewindError as error:
            found.problems.append(f"the ledger of {name} is broken: {error.message}")
        try:
            timeline = Timeline(ledger.records(), name)
        except RewindError:
            continue  # said already
        for checkpoint in reversed(timeline.checkpoints):
            parts = (checkpoint.snapshot, checkpoint.coverage, checkpoint.staged)
            checks = [reader.is_whole(bytes.fromhex(part)) for part in parts if part]
            if not all(checks):
                found.damaged.append(checkpoint.number)
    engine.store.objects.close()
    found.checked = reader.count
    try:
        found.problems += _at_the_users_mercy(engine)
    except RewindError:
        pass  # said already: a ledger is broken
    for oid in sorted(reader.damaged):
        found.problems.append(f"object {oid.hex()[:12]} is missing or damaged")
    if found.damaged:
        numbers = ", ".join(f"#{number}" for number in found.damaged[:20])
        found.problems.append(f"checkpoints that cannot be restored whole: {numbers}")
    if engine.is_interrupted():
        found.problems.append("a restore was interrupted (rewind restore --continue or --abort)")
    return found


class _Reader:
    """Reads objects with all that they refer to, each of them once."""

    def __init__(
        self, objects: Objects, progress: Callable[[str, int], None] | None
    ) -> None:
        self._objects = objects
        self._progress = progress
        self._below: dict[bytes, list[bytes]] = {}
        self._whole: dict[bytes, bool] = {}
        self.damaged: set[bytes] = set()

    @property
    def count(self) -> int:
        return len(self._below)

    def is_whole(self, oid: bytes) -> bool:
        """Whether an object and all below it can be read and have the content of their ids."""
        stack = [oid]
        while stack:
            current = stack[-1]
            if current not in self._below:
                self._below[current] = self._look(current)
            waiting = [child for child in self._below[current] if child not in self._whole]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            self._whole[current] = current not in self.damaged and all(
                self._whole[child] for child in self._below[current]
            )
        return self._whole[oid]

    def _look(self, oid: bytes) -> list[bytes]:
        """What an object refers to; reading it checks it. A large blob is streamed."""
        objects = self._objects
        if self._progress:
            self._progress("checked", self.count + 1)
        try:
            kind = objects.kind(oid)
            if kind == b"tree":
                return [child for _, _, child in objects.read_tree(oid)]
            if kind == b"commit":
                return [objects.read_commit_tree(oid)]
            for _ in objects.stream(oid):
                pass
        except DamagedObject:
            self.damaged.add(oid)
        return []


def repair(engine: Engine, found: Diagnosis) -> list[str]:
    """Mend what can be mended without losing anything: nothing is deleted, only set aside.

    Notes in `found` what was done; gives what could not be.
    """
    lay_out_again(engine.store)
    with engine.alone():
        damaged = salvage(engine.store)
    if damaged:
        found.mended.append(
            f"damaged packs set aside, and what is whole in them kept: {damaged}")
    left = _store_anew(engine)
    with engine.alone():
        for worktree in ledgers(engine.store):
            lost = mend(engine.store, Ledger(engine.store, worktree))
            if lost is not None:
                found.mended.append(f"the ledger of {worktree} was linked anew")
            found.lost += lost or ()
        if _at_the_users_mercy(engine):
            keep_alive(engine.store, {})
            engine.store.release()
            found.mended.append(f"{KEEP_REF} was put back")
    if engine.journal.exists():
        try:
            interrupted = engine.interrupted()
        except RewindError:
            interrupted = None
        if interrupted is None:
            engine.journal.end()
            found.mended.append("a journal that led nowhere was removed")
    _forget(engine, b"ledger.jsonl")
    if not left:
        saved = engine.save("save", label="after doctor --repair")
        found.mended.append(f"the worktree as it is was stored anew as #{saved.checkpoint.number}")
    return left


def _store_anew(engine: Engine) -> list[str]:
    """Store the worktree's contents again, so that checkpoints of what it holds are whole."""
    _forget(engine, b"state")
    engine.store.objects.refresh()
    try:
        with engine.working() as now_ns:
            engine.finish(engine.capture(now_ns))
    except RewindError as error:
        return [f"the worktree as it is could not be stored anew: {error.message}"]
    return []


def _forget(engine: Engine, cache: bytes) -> None:
    try:
        os.unlink(os.path.join(engine.store.private_dir(engine.workspace.name), cache))
    except FileNotFoundError:
        pass
