"""Write a ledger's chain anew: without what is pruned, or around what is lost.

A record whose snapshot goes stays as a fact, marked `pruned`: it is no longer listed, but undo,
redo and undo-restore go on as if nothing had happened.
"""

from __future__ import annotations

from coderewind.errors import RewindError
from coderewind.ledger.chain import Ledger
from coderewind.model.records import PRUNED, Record, is_oid
from coderewind.store.home import Store
from coderewind.store.objects import DamagedObject
from coderewind.store.pack import PackWriter


def relink(
    store: Store, ledger: Ledger, pack: PackWriter, record: Record, parent: str, *, keep: bool
) -> str:
    """Add a record of the old chain to the pack, linked to a new parent; its new commit.

    With `keep` it goes on keeping its snapshot alive, else it only stays as a fact.
    """
    data = {key: value for key, value in record.data.items() if key != "v"}
    snapshot = record.oid("snapshot")
    if not keep and snapshot:
        data[PRUNED] = True
    keeps_snapshot = snapshot and not data.get(PRUNED)
    try:
        _, content = store.objects.read(bytes.fromhex(record.commit))
        subject = content.split(b"\n\n", 1)[1].split(b"\n")[0].decode("utf-8", "replace")
        tree = store.objects.read_tree(store.objects.read_commit_tree(bytes.fromhex(record.commit)))
    except DamagedObject:
        subject = f"{record.op} {record.text('label')}"
        tree = _tree_again(store, record)
    if snapshot and not keeps_snapshot:
        tree = []
    return ledger.prepare(pack, data, subject, parent=parent,
                          snapshot=bytes.fromhex(snapshot) if keeps_snapshot else b"", tree=tree)


def mend(store: Store, ledger: Ledger) -> list[int] | None:
    """Make a damaged chain whole again; None if it is whole.

    Otherwise the numbers of the checkpoints that are lost: of them only the record remains.
    """
    if _is_whole(store, ledger):
        return None
    records = _remaining(store, ledger)
    if not records:
        return None
    pack = store.pack()
    lost = []
    parent = ""
    try:
        for record in records:
            keep = _there(store, record.oid("snapshot"))
            if not keep and record.oid("snapshot") and not record.data.get(PRUNED):
                lost.append(record.whole("number"))
            parent = relink(store, ledger, pack, record, parent, keep=keep)
        pack.finish()
    except BaseException:
        pack.abandon()
        raise
    store.objects.refresh()
    store.objects.close()
    ledger.become(parent)
    store.release()
    return lost


def _is_whole(store: Store, ledger: Ledger) -> bool:
    try:
        records = ledger.chain()
    except RewindError:
        return False
    return all(record.data.get(PRUNED) or not record.oid("snapshot")
               or _there(store, record.oid("snapshot")) for record in records)


def _remaining(store: Store, ledger: Ledger) -> list[Record]:
    """What can be read of the chain from its end, and before that what the copy knows."""
    copied = ledger.copied()
    known = {record.commit for record in copied}
    chain: list[Record] = []
    try:
        commit = ledger.head()
    except RewindError:
        commit = ""
    while commit and commit not in known:
        try:
            record, commit = ledger.read_commit(commit)
        except RewindError:
            break
        if record is None:
            return chain[::-1]  # the very beginning: the chain is whole without the copy
        chain.append(record)
    if commit in known:
        at = next(i for i, record in enumerate(copied) if record.commit == commit)
        copied = copied[: at + 1]
    newer = {record.id for record in chain}
    return [record for record in copied if record.id not in newer] + chain[::-1]


def _there(store: Store, oid: str) -> bool:
    try:
        return bool(oid) and store.objects.kind(bytes.fromhex(oid)) != b""
    except DamagedObject:
        return False


def _tree_again(store: Store, record: Record) -> list[tuple[int, bytes, bytes]]:
    """The tree of a record whose commit is lost: the files and what else its facts name."""
    entries = []
    snapshot = record.oid("snapshot")
    if snapshot:
        try:
            commit_tree = store.objects.read_commit_tree(bytes.fromhex(snapshot))
            entries += store.objects.read_tree(commit_tree)
        except DamagedObject:
            pass
    for key, mode, name in (("coverage", 0o100644, b"coverage.json"),
                            ("staged", 0o40000, b"staged")):
        oid = record.oid(key)
        if _there(store, oid):
            entries.append((mode, name, bytes.fromhex(oid)))
    blobs = record.section("blobs")
    for value in blobs.values():
        if isinstance(value, str) and is_oid(value) and _there(store, value):
            entries.append((0o100644, value.encode(), bytes.fromhex(value)))
    return sorted(set(entries))
