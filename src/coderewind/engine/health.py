"""Check a store: quickly at every `status`, down to the objects in `doctor`; and mend it."""

from __future__ import annotations

import os

from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.ledger.chain import Ledger, ledgers
from coderewind.store.git import GitError
from coderewind.store.home import lay_out_again
from coderewind.store.objects import DamagedObject
from coderewind.store.salvage import salvage
from coderewind.timeline.build import Timeline


class Diagnosis:
    """What `doctor` found, and what it mended."""

    __slots__ = ("checked", "damaged", "mended", "problems")

    def __init__(self) -> None:
        self.checked = 0  # objects
        self.problems: list[str] = []
        self.damaged: list[int] = []  # numbers of checkpoints that cannot be restored whole
        self.mended: list[str] = []

    def as_json(self) -> dict[str, object]:
        return {"objects": self.checked, "problems": self.problems, "damaged": self.damaged,
                "mended": self.mended, "healthy": not self.problems}


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
    try:
        head = engine.ledger.head()
        if head and not engine.store.objects.has(bytes.fromhex(head)):
            problems.append("the newest record is missing from the store")
        engine.ledger.records()
    except (RewindError, ValueError) as error:
        problems.append(str(error))
    return problems


def diagnose(engine: Engine) -> Diagnosis:
    """Read every object that a record keeps alive, and check it against its id."""
    found = Diagnosis()
    found.problems += quick_check(engine)
    bad: set[bytes] = set()
    checked: dict[bytes, bool] = {}
    for name in ledgers(engine.store):
        try:
            timeline = Timeline(Ledger(engine.store, name).records(), name)
        except RewindError as error:
            found.problems.append(f"{name}: {error.message}")
            continue
        for checkpoint in reversed(timeline.checkpoints):
            if not _whole(engine, bytes.fromhex(checkpoint.snapshot), checked, bad):
                found.damaged.append(checkpoint.number)
        if engine.progress:
            engine.progress("checked", len(checked))
    engine.store.objects.close()
    found.checked = len(checked)
    for oid in sorted(bad):
        found.problems.append(f"object {oid.hex()[:12]} is missing or damaged")
    if found.damaged:
        numbers = ", ".join(f"#{number}" for number in found.damaged[:20])
        found.problems.append(f"checkpoints that cannot be restored whole: {numbers}")
    if engine.journal.exists():
        found.problems.append("a restore was interrupted (rewind restore --continue or --abort)")
    return found


def _whole(engine: Engine, oid: bytes, checked: dict[bytes, bool], bad: set[bytes]) -> bool:
    """Whether an object and all that it refers to can be read; each is read once."""
    order = [oid]
    parents: dict[bytes, list[bytes]] = {}
    while order:
        current = order.pop()
        if current in checked:
            continue
        try:
            below = _below(engine, current)
        except DamagedObject:
            checked[current] = False
            bad.add(current)
            continue
        checked[current] = True
        parents[current] = below
        order += below
    return _all_good(oid, parents, checked, engine)


def _all_good(
    oid: bytes, known: dict[bytes, list[bytes]], checked: dict[bytes, bool], engine: Engine
) -> bool:
    order, seen = [oid], {oid}
    while order:
        current = order.pop()
        if not checked.get(current, False):
            return False
        below = known.get(current)
        if below is None:
            below = _below(engine, current)
        for child in below:
            if child not in seen:
                seen.add(child)
                order.append(child)
    return True


def _below(engine: Engine, oid: bytes) -> list[bytes]:
    """What an object refers to; reading it checks it. A large blob is streamed."""
    objects = engine.store.objects
    kind = objects.kind(oid)
    if kind == b"tree":
        return [child for _, _, child in objects.read_tree(oid)]
    if kind == b"commit":
        return [objects.read_commit_tree(oid)]
    for _ in objects.stream(oid):
        pass
    return []


def repair(engine: Engine, found: Diagnosis) -> None:
    """Mend what can be mended without losing anything: nothing is deleted, only set aside."""
    lay_out_again(engine.store)
    found.mended.append("the store's skeleton was checked")
    with engine.alone():
        lost = salvage(engine.store)
    if lost:
        found.mended.append(f"{lost} damaged packs were set aside and what is whole in them kept")
    for name in ledgers(engine.store):
        if Ledger(engine.store, name).mend():
            found.mended.append(f"the newest record of {name} was found again")
    if engine.journal.exists():
        try:
            interrupted = engine.journal.read()
        except RewindError:
            interrupted = None
        known = {record.id for record in engine.ledger.records()}
        if interrupted is None or interrupted.record not in known:
            engine.journal.end()
            found.mended.append("a journal that led nowhere was removed")
    private = engine.store.private_dir(engine.workspace.name)
    for name in (b"state", b"ledger.jsonl"):
        try:
            os.unlink(os.path.join(private, name))
        except FileNotFoundError:
            pass
    engine.store.objects.refresh()
    try:
        saved = engine.save("save", label="after doctor --repair")
        found.mended.append(f"the worktree as it is was stored anew as #{saved.checkpoint.number}")
    except GitError as error:
        found.problems.append(error.message)

