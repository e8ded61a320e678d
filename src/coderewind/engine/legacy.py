"""Points that pi-rewind-hook made: found in Pi's sessions, taken over when they are restored.

Their commits lie in the user's repository, kept alive by a ref of theirs; both are only read. A
point becomes a checkpoint of ours the moment it is restored, so that everything that holds for
checkpoints holds for it. What git could not keep as it was is put right where that is possible:
line endings and LFS contents are taken from the present file, or from LFS's own store, when these
prove to be the same; what is missing is coverage, and stays as it is.
"""

from __future__ import annotations

import os
from hashlib import sha256

from coderewind.agents import adapter as places
from coderewind.agents import rewind_hook
from coderewind.agents.branched import Branched
from coderewind.agents.known import adapter_of
from coderewind.agents.rewind_hook import REF, Point
from coderewind.agents.sessions import files_of, lineage_of
from coderewind.agents.transcript import read_session
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.model import coverage as why
from coderewind.model import records as ops
from coderewind.model.coverage import LeftOut
from coderewind.model.paths import is_safe, to_text
from coderewind.model.records import Anchor, Checkpoint
from coderewind.store import manifest
from coderewind.store.diff import SnapshotView
from coderewind.store.git import Git
from coderewind.store.objects import (
    IDENTITY,
    DamagedObject,
    Objects,
    commit_bytes,
    tree_bytes,
)
from coderewind.store.pack import BLOB, COMMIT, TREE, PackWriter
from coderewind.store.refs import ref_exists

KIND = "legacy"
_FILES = (0o100644, 0o100755, 0o120000)
_LARGE = 16 << 20  # bytes; larger contents are streamed
_POINTER = b"version https://git-lfs.github.com/spec/v1\n"
_PROMPT_KEPT = 4000


def points(engine: Engine, files: list[tuple[str, str]] | None = None) -> list[Point]:
    """The points that can be restored, oldest first; of some session files (id, path), or of all
    of Pi's in this worktree."""
    if not ref_exists(engine.workspace, REF):
        return []
    found: dict[tuple[str, str], Point] = {}
    if files is None:
        root = os.fsdecode(engine.workspace.root)
        files = [pair for agent in ("pi", "omp") for pair in files_of(_branched(agent), root)]
    for session, path in files:
        for point in rewind_hook.points(read_session(path), session, path):
            found.setdefault((point.entry, point.commit), point)
    timelines = engine.all_timelines()
    ours = {cp.snapshot for timeline in timelines for cp in timeline.checkpoints}
    for timeline in timelines:
        for record in timeline.records:
            if record.op == ops.IMPORT and record.id in timeline.by_id:
                entry = record.section("anchor").get("entry")
                found.pop((str(entry), record.text("commit")), None)
    there = _there(engine, {point.commit for point in found.values()} - ours)
    return sorted((point for point in found.values() if point.commit in there),
                  key=lambda point: point.time)


def points_of_lineage(engine: Engine, session: str, path: str) -> dict[str, Point]:
    """The points of one session and of those it was forked from, by entry; the nearest first."""
    if not ref_exists(engine.workspace, REF):
        return {}
    files = [(session, path), *lineage_of(path)]
    found: dict[str, Point] = {}
    by_file = {pair: number for number, pair in enumerate(files)}
    made = points(engine, files)
    for point in sorted(made, key=lambda p: by_file[(p.session, p.file)]):
        found.setdefault(point.entry, point)
    return found


def resolve(engine: Engine, words: str) -> Point | None:
    """The point that a user names by its entry or the beginning of its commit."""
    if len(words) < 4 or not words.isascii():
        return None
    found = [point for point in points(engine)
             if point.entry == words or point.commit.startswith(words)]
    commits = {point.commit for point in found}
    if len(commits) > 1:
        raise RewindError(f"{words!r} matches {len(commits)} points of pi-rewind-hook",
                          hint="name one by more of its commit")
    return found[-1] if found else None


def checkpoint_of(engine: Engine, words: str) -> Checkpoint:
    """The checkpoint that a user's words name, or else the point, made a checkpoint."""
    try:
        return engine.resolve(words)
    except RewindError:
        taken = _taken_over(engine, words)
        if taken is not None:
            return taken
        point = resolve(engine, words)
        if point is None:
            raise
        return take_over(engine, point)


def _taken_over(engine: Engine, words: str) -> Checkpoint | None:
    """The checkpoint that a point, named like one, became before."""
    timeline = engine.timeline()
    found = [timeline.by_id[record.id] for record in timeline.records
             if record.op == ops.IMPORT and record.id in timeline.by_id and len(words) >= 4
             and (record.text("commit").startswith(words)
                  or record.section("anchor").get("entry") == words)]
    return found[-1] if len({cp.snapshot for cp in found}) == 1 else None


def take_over(engine: Engine, point: Point) -> Checkpoint:
    """Make a point a checkpoint of ours; the one made before, if there is one.

    Raises:
        RewindError: its commit is gone or damaged, or holds what may not be written.
    """
    with engine.working() as now_ns:
        for record in engine.ledger.records():
            if (record.op == ops.IMPORT and not record.data.get(ops.PRUNED)
                    and record.text("commit") == point.commit
                    and record.section("anchor").get("entry") == point.entry):
                return Checkpoint(record, engine.workspace.name)
        captured = engine.capture(now_ns)
        engine.finish(captured)
        pack = engine.store.pack()
        theirs = _theirs(engine)
        try:
            now = SnapshotView(engine.store.objects, captured.snapshot)
            work = _TakeOver(engine, theirs, now, pack)
            tree = work.folder(theirs.read_commit_tree(bytes.fromhex(point.commit)), b"")
            snapshot, parts = work.snapshot(tree)
            pack.finish()
        except (ValueError, DamagedObject) as error:
            pack.abandon()
            raise RewindError(f"the commit {point.commit[:12]} of pi-rewind-hook is damaged or "
                              "gone", hint="nothing was changed") from error
        except BaseException:
            pack.abandon()
            raise
        finally:
            theirs.close()
            engine.store.objects.close()
        engine.store.objects.refresh()
        last = engine.ledger.last()
        number = (last.whole("last") if last else 0) + 1
        prompt = point.prompt.encode("utf-8", "replace").decode()[:_PROMPT_KEPT]
        anchor = Anchor(_agent_of(point.file), point.session, point.entry,
                        point.entry if point.is_prompt else "", prompt=prompt,
                        transcript=point.file)
        record = engine.append_note(ops.IMPORT, {
            "kind": KIND,
            "number": number,
            "last": number,
            "snapshot": snapshot.hex(),
            "coverage": parts.hex(),
            "commit": point.commit,
            "label": f"pi-rewind-hook {point.commit[:8]}",
            "at": places.AT_PROMPT if point.is_prompt else places.AT_ENTRY,
            "anchor": anchor.as_json(),
        }, now_ns, trees=work.parts)
        return Checkpoint(record, engine.workspace.name)


class _TakeOver:
    """One commit's files, on their way into our store."""

    def __init__(
        self, engine: Engine, theirs: Objects, now: SnapshotView, pack: PackWriter
    ) -> None:
        self.store = engine.store
        self.common = engine.workspace.common_dir or b""
        self.theirs = theirs
        self.now = now
        self.pack = pack
        self.left_out: list[LeftOut] = [LeftOut(path, why.NOT_RECORDED)
                                        for path in sorted(now.manifest.repositories)]
        self.files: set[bytes] = set()
        self.parts: list[tuple[int, bytes, bytes]] = []

    def folder(self, tree: bytes, prefix: bytes) -> bytes:
        """A folder of theirs as one of ours."""
        rows = []
        for mode, name, oid in self.theirs.read_tree(tree):
            path = prefix + name
            if not is_safe(path):
                raise ValueError("a path that may not be written")
            if mode == 0o40000:
                below = self.folder(oid, path + b"/")
                if below:
                    rows.append((mode, name, below))
            elif mode == 0o160000:
                self.left_out.append(LeftOut(path, why.NOT_RECORDED))
            else:
                mode = 0o100644 if mode == 0o100664 else mode
                if mode not in _FILES:
                    raise ValueError("a type that may not be written")
                kept = self.content(path, mode, oid)
                if kept:
                    self.files.add(path)
                    rows.append((mode, name, kept))
        return self._put(TREE, tree_bytes(rows)) if rows or not prefix else b""

    def content(self, path: bytes, mode: int, oid: bytes) -> bytes:
        """The id of a file's contents in our store; b"" when they are not there."""
        present = self.now.lookup(path)
        if present is not None and present[1] == oid:
            return oid
        size = self._size(oid)
        if size > _LARGE:
            if not self.store.objects.has(oid) and oid not in self.pack:
                self.pack.add_stream(size, self.theirs.stream(oid))
            return oid
        kind, data = self.theirs.read(oid)
        if kind != b"blob":
            raise ValueError("not a file")
        if mode != 0o120000:
            if data.startswith(_POINTER):
                return self._large_file(path, data, present)
            if present is not None and present[0] != 0o40000 and self._same_lines(present[1], data):
                return present[1]
        return self._put(BLOB, data)

    def snapshot(self, tree: bytes) -> tuple[bytes, bytes]:
        """The snapshot of a tree: what theirs could not say is as it is now."""
        now = self.now.manifest
        folders = {path for path in now.folders if path not in self.files
                   and not any(up in self.files for up in _above(path))}
        source: manifest.Source = (
            now.base,
            sorted((path, perm) for path, perm in now.modes.items() if path in self.files),
            sorted(folders),
            sorted((path, perm) for path, perm in now.fifos.items() if path not in self.files),
            sorted(now.repositories),
        )
        import json

        kept = self._put(BLOB, manifest.encode(source))
        rows = sorted((to_text(item.path), item.reason) for item in self.left_out)
        coverage = self._put(BLOB, json.dumps(rows).encode() + b"\n")
        root = self._put(TREE, tree_bytes([(0o40000, b"files", tree),
                                           (0o100644, b"manifest.json", kept)]))
        self.parts = [(0o40000, b"files", tree), (0o100644, b"manifest.json", kept),
                      (0o100644, b"coverage.json", coverage)]
        return self._put(COMMIT, commit_bytes(root, [], 0, b"snapshot\n")), coverage

    def _same_lines(self, oid: bytes, data: bytes) -> bool:
        """Whether the present file is the same one with Windows line ends."""
        present = self.store.objects.read(oid)[1] if self._our_size(oid) <= 2 * _LARGE else b""
        return b"\r\n" in present and present.replace(b"\r\n", b"\n") == data

    def _large_file(
        self, path: bytes, pointer: bytes, present: tuple[int, bytes] | None
    ) -> bytes:
        """What an LFS pointer stands for."""
        wanted = _lfs_id(pointer)
        if present is not None and present[0] in (0o100644, 0o100755):
            digest = sha256()
            for chunk in self.store.objects.stream(present[1]):
                digest.update(chunk)
            if digest.hexdigest() == wanted:
                return present[1]
        if wanted:
            kept = os.path.join(self.common, b"lfs/objects", wanted[:2].encode(),
                                wanted[2:4].encode(), wanted.encode())
            try:
                with open(kept, "rb") as file:
                    data = file.read()
            except OSError:
                data = b""
            if sha256(data).hexdigest() == wanted:
                return self._put(BLOB, data)
        self.left_out.append(LeftOut(path, why.NOT_RECORDED))
        return b""

    def _put(self, kind: int, data: bytes) -> bytes:
        return self.pack.add(kind, data)

    def _size(self, oid: bytes) -> int:
        return self.theirs.size(oid)

    def _our_size(self, oid: bytes) -> int:
        return self.store.objects.size(oid)


def _theirs(engine: Engine) -> Objects:
    """The user's own objects, read by a git that nothing of the repository's can steer."""
    workspace, store = engine.workspace, engine.store
    if workspace.common_dir is None or workspace.algo() != store.algo:
        raise RewindError("the repository that holds this point is not here")
    return Objects(Git(workspace.common_dir), os.path.join(workspace.common_dir, b"objects"),
                   store.algo, own=False)


def _there(engine: Engine, commits: set[str]) -> set[str]:
    """Which commits are in the user's repository, but not by us: in mode `repo` a snapshot of ours
    that was dropped may still lie there."""
    if not commits or engine.workspace.common_dir is None:
        return set()
    git = Git(engine.workspace.common_dir)
    asked = "".join(commit + "\n" for commit in sorted(commits)).encode()
    rows = [line.split() for line in git.run("cat-file", "--batch-check", input=asked).splitlines()]
    there = [row[0] for row in rows if len(row) == 3 and row[1] == b"commit"]
    said = git.run("cat-file", "--batch", input=b"".join(oid + b"\n" for oid in there))
    found = set()
    while said:
        head, _, said = said.partition(b"\n")
        oid, _, size = head.split()
        if b"\nauthor " + IDENTITY not in said[: int(size)]:
            found.add(oid.decode())
        said = said[int(size) + 1 :]
    return found


def _branched(agent: str) -> Branched:
    found = adapter_of(agent)
    assert isinstance(found, Branched)
    return found


def _agent_of(path: str) -> str:
    """Whose session a file is: only omp has a title before the header."""
    return "omp" if read_session(path, 64).startswith(b'{"type":"title"') else "pi"


def _lfs_id(pointer: bytes) -> str:
    for line in pointer.split(b"\n"):
        if line.startswith(b"oid sha256:"):
            oid = line[11:].decode("ascii", "replace")
            return oid if len(oid) == 64 and not oid.strip("0123456789abcdef") else ""
    return ""


def _above(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:i]) for i in range(1, len(parts))]
