"""The append-only chain of records of one worktree.

Each record is a commit: its first parent is the previous record, its second the snapshot that it
keeps alive, its tree what else belongs to it; its message starts with a line for people and
carries the record as one line of JSON. The chain's end is `refs/heads/<worktree>` of the store.

Beside it, below $REWIND_HOME, lies the same chain as lines of text, so that reading it starts no
process; it is made anew from the commits whenever its end is not the ref's.
"""

from __future__ import annotations

import os

from coderewind.errors import RewindError
from coderewind.model import json
from coderewind.model.records import VERSION, Record
from coderewind.store.git import Git, GitError
from coderewind.store.home import Store
from coderewind.store.lock import Lock
from coderewind.store.objects import commit_bytes, tree_bytes
from coderewind.store.pack import COMMIT, TREE, PackWriter, fsync_dir, write_durably
from coderewind.store.workspace import read_file

_TAIL = 65536  # more than nearly every record takes
KEEP_REF = "refs/rewind/store"
_GENESIS = b"rewind: here the ledger begins"
_ALIVE = b"rewind keeps its ledgers alive\n"


class Ledger:
    """One worktree's chain. Writing needs the worktree's lock."""

    def __init__(self, store: Store, worktree: str) -> None:
        self.name = worktree
        self._store = store
        self._ref = os.path.join(store.git_dir, b"refs/heads", os.fsencode(worktree))
        self._ref_name = "refs/heads/" + worktree
        self._copy = os.path.join(store.private_dir(worktree), b"ledger.jsonl")

    def head(self) -> str:
        """The newest record's commit, '' for an empty ledger.

        Raises:
            RewindError: the ref names no commit, or is gone although the copy knows records; that
                must not pass for an empty ledger.
        """
        try:
            with open(self._ref, "rb") as file:
                head = file.read(100).strip()
        except FileNotFoundError:
            packed = self._packed_head()
            if not packed and self._copied_lines():
                raise self._end_unknown("is missing") from None
            return packed
        if len(head) not in (40, 64) or head.strip(b"0123456789abcdef"):
            raise self._end_unknown("is damaged")
        return head.decode()

    def check_end(self) -> None:
        """Refuse to go on when the newest record is not there: what only the ledger reaches would
        look like what nobody needs.

        Raises:
            RewindError: the ref, or the commit that it names, is missing or damaged.
        """
        head = self.head()
        if head and not self._store.objects.has(bytes.fromhex(head)):
            raise self._end_unknown("leads nowhere")

    def _end_unknown(self, how: str) -> RewindError:
        return RewindError(f"the ledger's end is not known: {self._ref_name} {how}",
                           hint="rewind doctor --repair finds it again")

    def last(self) -> Record | None:
        """The newest record, without reading the others."""
        head = self.head()
        if not head:
            return None
        try:
            with open(self._copy, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
                line = file.read().rstrip(b"\n").rpartition(b"\n")[2]
        except OSError:
            line = b""
        commit, _, text = line.partition(b" ")
        if commit.decode("ascii", "replace") == head and text.endswith(b"}"):
            try:
                return _parsed([line])[0]
            except (ValueError, RecursionError):
                pass  # a damaged copy
        records = self.records()
        return records[-1] if records else None

    def last_time(self) -> int:
        """When the newest record was made, in milliseconds; 0 for an empty ledger."""
        last = self.last()
        return last.time if last else 0

    def records(self) -> list[Record]:
        """All records, oldest first.

        Raises:
            RewindError: the chain cannot be read to its beginning.
        """
        head = self.head()
        if not head:
            return []
        lines = self._copied_lines()
        if lines and lines[-1].startswith(head.encode() + b" "):
            try:
                return _parsed(lines)
            except (ValueError, RecursionError):
                pass  # a damaged copy
        lines = self._read_chain(head)
        try:
            write_durably(self._copy, b"".join(line + b"\n" for line in lines))
        except OSError:
            pass  # it only makes the next reading faster
        try:
            return _parsed(lines)
        except (ValueError, RecursionError) as error:
            raise RewindError("the ledger is damaged",
                              hint="rewind doctor shows what is damaged") from error

    def chain(self) -> list[Record]:
        """All records as the commits say, without the copy."""
        head = self.head()
        return _parsed(self._read_chain(head)) if head else []

    def copied(self) -> list[Record]:
        """The records that the copy knows, whatever the chain says."""
        found = []
        for line in self._copied_lines():
            try:
                found += _parsed([line])
            except (ValueError, RecursionError, RewindError):
                continue
        return found

    def read_commit(self, commit: str) -> tuple[Record | None, str]:
        """One record of the chain and the commit before it; None for the chain's beginning."""
        _, content = self._store.objects.read(bytes.fromhex(commit))
        header, _, message = content.partition(b"\n\n")
        parents = [line[7:].decode() for line in header.split(b"\n") if line.startswith(b"parent ")]
        subject, _, body = message.partition(b"\n")
        if subject == _GENESIS and not body.strip():
            return None, ""
        try:
            record = _parsed([commit.encode() + b" " + body.strip()])[0]
        except (ValueError, RecursionError) as error:
            raise _damaged_record(commit) from error
        return record, parents[0] if parents else ""

    def prepare(
        self,
        pack: PackWriter,
        data: dict[str, object],
        subject: str,
        *,
        parent: str,
        snapshot: bytes,
        tree: list[tuple[int, bytes, bytes]],
    ) -> str:
        """Add a record's commit to a pack; nothing is published yet."""
        text = json.dumps({"v": VERSION, **data})
        # The first record has a parent too: its first parent must not be its snapshot.
        if parent:
            parents = [bytes.fromhex(parent)]
        else:
            first = commit_bytes(pack.add(TREE, b""), [], 0, _GENESIS + b"\n")
            parents = [pack.add(COMMIT, first)]
        if snapshot:
            parents.append(snapshot)
        tree_oid = pack.add(TREE, tree_bytes(tree))
        time = data.get("time")
        seconds = time // 1000 if isinstance(time, int) else 0
        # A NUL would end the message for git, and the record with it.
        subject = " ".join(subject.replace("\0", " ").split())[:200]
        message = f"{subject}\n\n{text}\n".encode("utf-8", "replace")
        return pack.add(COMMIT, commit_bytes(tree_oid, parents, seconds, message)).hex()

    def publish(self, commit: str, data: dict[str, object], *, before: str) -> Record:
        """Make a prepared record the newest one: one atomic change of the ref.

        Raises:
            RewindError: somebody else's record came in between; nothing was published.
        """
        if self.head() != before:
            raise RewindError("the ledger changed meanwhile", hint="try again")
        try:
            self._set_ref(commit)
        except OSError:
            self._go_back(before)
            raise
        line = commit.encode() + b" " + json.dumps({"v": VERSION, **data}).encode() + b"\n"
        try:
            self._append_copy(line, before)
        except OSError:
            pass  # only a copy; the next reader makes it anew
        return _record(dict(data), commit)

    def replace(self, commit: str, *, before: str) -> None:
        """Put a rewritten chain in the place of the old one."""
        if self.head() != before:
            raise RewindError("the ledger changed meanwhile", hint="try again")
        self._set_ref(commit)
        self._forget_copy()

    def become(self, commit: str) -> None:
        """Put a mended chain in the place of a damaged one, whatever its end was."""
        self._set_ref(commit)
        self._forget_copy()

    def _forget_copy(self) -> None:
        try:
            os.unlink(self._copy)
        except FileNotFoundError:
            pass

    def _set_ref(self, commit: str) -> None:
        if self._store.mode != "repo":
            self._write_ref(commit)
            return
        # The ledgers of other worktrees must not move between being read and being kept alive.
        with Lock(os.path.join(self._store.home, b"keep.lock")):
            keep_alive(self._store, {self.name: commit})
            self._write_ref(commit)

    def _write_ref(self, commit: str) -> None:
        write_durably(self._ref, commit.encode() + b"\n")
        fsync_dir(os.path.dirname(self._ref))

    def _go_back(self, before: str) -> None:
        """What failed must not be listed, also when only its durability is in doubt."""
        try:
            if before:
                write_durably(self._ref, before.encode() + b"\n")
            else:
                os.unlink(self._ref)
        except OSError:
            pass

    def _append_copy(self, line: bytes, before: str) -> None:
        fd = os.open(self._copy, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(fd, 0o600)
            end = os.lseek(fd, 0, os.SEEK_END)
            tail = os.pread(fd, _TAIL, max(0, end - _TAIL))
            last = tail.rstrip(b"\n").rpartition(b"\n")[2]
            if (end or before) and not (
                tail.endswith(b"\n") and before and last.startswith(before.encode() + b" ")
            ):
                os.ftruncate(fd, 0)  # torn, or of another chain: the next reader fills it in
                end = 0
            if end or not before:
                os.write(fd, line)
        finally:
            os.close(fd)

    def _copied_lines(self) -> list[bytes]:
        """The whole lines of the copy."""
        try:
            with open(self._copy, "rb") as file:
                return file.read().split(b"\n")[:-1]
        except OSError:
            return []

    def _read_chain(self, head: str) -> list[bytes]:
        try:
            out = self._store.git.run(
                "log", "--first-parent", "--reverse", "--no-show-signature", "-z",
                "--format=%H%n%s%n%b", head, "--",
            )
        except GitError as error:
            raise RewindError(f"the ledger cannot be read to its beginning ({error.message})",
                              hint="rewind doctor --repair keeps what is left") from error
        lines = []
        for entry in out.split(b"\0"):
            if not entry:
                continue
            commit, _, message = entry.partition(b"\n")
            subject, _, body = message.partition(b"\n")
            text = body.strip()
            if subject == _GENESIS and not text:
                continue
            if not text.startswith(b"{") or b"\n" in text:
                raise _damaged_record(commit.decode())
            lines.append(commit + b" " + text)
        return lines

    def _packed_head(self) -> str:
        """The ref after somebody ran `git pack-refs` in the store."""
        if not os.path.exists(os.path.join(self._store.git_dir, b"packed-refs")):
            return ""
        out = self._store.git.run("rev-parse", "--verify", "-q", self._ref_name, ok=(0, 1))
        return out.strip().decode()


def new_id() -> str:
    """The id of a record to be."""
    return "c" + os.urandom(8).hex()


def ledgers(store: Store) -> list[str]:
    """The names of all worktrees that have a ledger in this store, or had one: a ref that was
    lost is known by the copy that is left, and must not be forgotten with what it kept alive."""
    found = {name for name in _listed(os.path.join(store.git_dir, b"refs/heads"))
             if b".tmp" not in name}
    for line in read_file(os.path.join(store.git_dir, b"packed-refs")).split(b"\n"):
        _, _, ref = line.partition(b" refs/heads/")
        found.add(ref)
    worktrees = os.path.join(store.home, b"worktrees")
    for name in _listed(worktrees):
        if read_file(os.path.join(worktrees, name, b"ledger.jsonl"), 1):
            found.add(name)
    return sorted(os.fsdecode(name) for name in found if name)


def _listed(folder: bytes) -> list[bytes]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def keep_alive(store: Store, new: dict[str, str]) -> None:
    """In mode `repo`: one ref of the repository that reaches every ledger of the store.

    Moved before a ledger is, so that what is listed is never the user's gc's to take. What it
    names is in a pack with a guard: a loose commit could be pruned before the ref is there.
    """
    heads = [new[name] if name in new else Ledger(store, name).head()
             for name in sorted({*ledgers(store), *new})]
    parents = [bytes.fromhex(head) for head in dict.fromkeys(heads) if head]
    kept = parents[0]
    if len(parents) > 1:
        pack = store.pack()
        kept = pack.add(COMMIT, commit_bytes(pack.add(TREE, b""), parents, 0, _ALIVE))
        pack.finish()
    _users_git(store).run("update-ref", "--no-deref", KEEP_REF, kept.hex())


def are_kept_alive(store: Store) -> bool:
    """Whether, in mode `repo`, that ref is there and reaches every ledger.

    Raises:
        RewindError: the end of a ledger is not known.
    """
    out = _users_git(store).run("rev-list", "--parents", "-n1", KEEP_REF, "--", ok=(0, 128))
    heads = {Ledger(store, name).head() for name in ledgers(store)} - {""}
    return heads <= set(out.decode().split())


def _users_git(store: Store) -> Git:
    return Git(os.path.dirname(store.git_dir), config=("core.hooksPath=/dev/null",
                                                       "core.fsmonitor=false"))


def _parsed(lines: list[bytes]) -> list[Record]:
    """The records of the copy's lines, read as one document, which is three times as fast."""
    commits, texts = [], []
    for line in lines:
        commit, _, text = line.partition(b" ")
        commits.append(commit.decode())
        texts.append(text)
    loaded = json.loads(b"[" + b",".join(texts) + b"]")
    return [_record(data, commit) for data, commit in zip(loaded, commits, strict=True)]


def _damaged_record(commit: str) -> RewindError:
    return RewindError(f"record {commit[:12]} of the ledger is damaged",
                       hint="rewind doctor --repair keeps what is left")


def _record(data: object, commit: str) -> Record:
    if not isinstance(data, dict):
        raise _damaged_record(commit)
    version = data.get("v", 0)
    if not isinstance(version, int) or version > VERSION:
        raise RewindError("this ledger was written by a newer Rewind", hint="upgrade Rewind")
    return Record(data, commit)
