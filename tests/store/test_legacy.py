"""Points of pi-rewind-hook: its sessions, and commits in the user's own repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus.box import Box
from sealed import sealed_box

from coderewind.engine import legacy, retention, settings
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.wiring import open_engine

SESSION = "01a1f041-0cd3-7782-88d6-de26a0fb4522"


class Old:
    """A repository and a Pi session, as pi-rewind-hook leaves them: it snapshots by `git add -A`
    with an index of its own, and keeps the commits alive by one ref."""

    def __init__(self, box: Box) -> None:
        self.home, self.root = Path(box.home), Path(box.project)
        self.rows: list[dict[str, Any]] = []
        self.keep = ""
        self.folder = self.home / ".pi/agent/sessions/--project--"
        self.folder.mkdir(parents=True)
        self.file = self.folder / f"2026-04-01T00-00-00-000Z_{SESSION}.jsonl"
        self.header: dict[str, Any] = {"type": "session", "version": 3, "id": SESSION,
                                       "timestamp": "2026-04-01T00:00:00.000Z",
                                       "cwd": str(self.root)}

    def git(self, *args: str, **env: str) -> str:
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *args],
                              cwd=self.root, env={**os.environ, **env}, check=True,
                              capture_output=True, text=True).stdout.strip()

    def write(self, name: str, content: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def snapshot(self) -> str:
        index = {"GIT_INDEX_FILE": str(self.home / "index")}
        self.git("add", "-A", **index)
        tree = self.git("write-tree", **index)
        os.unlink(self.home / "index")
        commit = self.git("commit-tree", tree, "-m", "pi rewind snapshot")
        empty = self.git("hash-object", "-t", "tree", "-w", "/dev/null")
        parents = ["-p", self.keep] if self.keep else []
        self.keep = self.git("commit-tree", empty, *parents, "-p", commit, "-m", "keepalive")
        self.git("update-ref", "refs/pi-rewind/store", self.keep)
        return commit

    def entry(self, entry: str, role: str, words: str) -> None:
        self.row({"type": "message", "id": entry,
                  "message": {"role": role, "content": [{"type": "text", "text": words}]}})

    def custom(self, kind: str, data: object) -> None:
        self.row({"type": "custom", "id": f"c{len(self.rows)}", "customType": kind, "data": data})

    def row(self, row: dict[str, Any]) -> None:
        parent = self.rows[-1]["id"] if self.rows else None
        self.rows.append({**row, "parentId": parent,
                          "timestamp": f"2026-04-01T00:00:{len(self.rows):02}.000Z"})

    def save(self) -> None:
        rows = [self.header, *self.rows]
        self.file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def turn(self, prompt: str, answer: str, change: dict[str, bytes]) -> tuple[str, str]:
        """A prompt whose answer changes files; the commits before and after."""
        before = self.snapshot()
        for name, content in change.items():
            self.write(name, content)
        after = self.snapshot()
        self.entry(prompt, "user", f"words of {prompt}")
        self.entry(answer, "assistant", f"words of {answer}")
        self.custom("rewind-turn", {"v": 2, "snapshots": [before, after],
                                    "bindings": [[prompt, 0], [answer, 1]]})
        self.save()
        return before, after

    def tree(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.root)): path.read_bytes()
                for path in self.root.rglob("*")
                if path.is_file() and ".git" not in path.relative_to(self.root).parts}

    def engine(self) -> Engine:
        return open_engine(str(self.root), create=True)


@pytest.fixture
def box() -> Iterator[Box]:
    """An empty repository, instead of the other tests' one."""
    with sealed_box(git=True) as box:
        yield box


@pytest.fixture
def old(box: Box) -> Old:
    made = Old(box)
    made.write("f.txt", b"v0\n")
    made.git("add", "-A")
    made.git("commit", "-qm", "first")
    return made


def restore(engine: Engine, entry: str) -> None:
    point = next(point for point in legacy.points(engine) if point.entry == entry)
    engine.restore(legacy.take_over(engine, point))


def test_each_point_gives_back_its_files(old: Old) -> None:
    old.turn("u1", "a1", {"f.txt": b"v1\n", "new.txt": b"new\n"})
    trees = {"u1": {"f.txt": b"v0\n"}, "a1": old.tree()}
    os.unlink(old.root / "new.txt")
    old.turn("u2", "a2", {"sub/g.txt": b"g\n"})
    trees |= {"a2": old.tree()}
    engine = old.engine()
    engine.save()
    assert [point.entry for point in legacy.points(engine)] == ["u1", "a1", "u2", "a2"]

    for entry in ("u1", "a1", "a2"):
        restore(engine, entry)
        assert old.tree() == trees[entry], entry
    taken = next(cp for cp in engine.timeline().checkpoints if cp.anchor.entry == "u1")
    engine.restore(taken)
    assert old.tree() == trees["u1"]
    engine.undo_restore()
    assert old.tree() == trees["a2"]


def test_the_users_repository_and_session_are_only_read(old: Old) -> None:
    old.turn("u1", "a1", {"f.txt": b"v1\n"})
    engine = old.engine()
    engine.save()
    session, refs = old.file.read_bytes(), old.git("for-each-ref")
    objects = sorted(path for path in (old.root / ".git").rglob("*") if path.is_file())

    restore(engine, "u1")

    assert old.file.read_bytes() == session
    assert old.git("for-each-ref") == refs
    assert sorted(p for p in (old.root / ".git").rglob("*") if p.is_file()) == objects


def test_a_point_taken_over_survives_the_end_of_its_ref(old: Old) -> None:
    old.turn("u1", "a1", {"f.txt": b"v1\n"})
    engine = old.engine()
    engine.save()
    point = legacy.points(engine)[0]
    checkpoint = legacy.take_over(engine, point)
    old.git("update-ref", "-d", "refs/pi-rewind/store")
    old.git("reflog", "expire", "--expire=now", "--all")
    old.git("gc", "-q", "--prune=now")

    engine.restore(checkpoint)

    assert old.tree() == {"f.txt": b"v0\n"}
    assert legacy.points(engine) == []


def test_a_point_is_listed_and_restored_by_its_commit(box: Box, old: Old) -> None:
    before, _ = old.turn("u1", "a1", {"f.txt": b"v1\n"})
    box.rewind("init", "--yes")
    rows = box.rewind("list", "--json")["legacy"]
    assert [(row["entry"], row["label"]) for row in rows] == [("u1", "prompt"), ("a1", "answer")]
    lines = subprocess.run([sys.executable, "-m", "coderewind", "list"], cwd=old.root, check=True,
                           capture_output=True, text=True).stdout
    assert f'{before[:8]}  2026-04-01 00:00  ◇ before "words of u1"' in lines

    done = box.rewind("restore", before[:8], "--yes", "--json")

    assert old.tree() == {"f.txt": b"v0\n"}
    assert done["target"]["kind"] == "legacy"
    assert box.rewind("restore", before[:8], "--dry-run", "--json")["plan"]["changes"] == []
    assert [row["entry"] for row in box.rewind("list", "--json")["legacy"]] == ["a1"]


def test_a_checkpoint_taken_over_is_not_the_latest(old: Old) -> None:
    old.turn("u1", "a1", {"f.txt": b"v1\n"})
    engine = old.engine()
    saved = engine.save().checkpoint
    legacy.take_over(engine, legacy.points(engine)[0])
    assert engine.resolve("@").id == saved.id


def test_a_point_whose_commit_is_gone_is_not_offered(old: Old) -> None:
    old.turn("u1", "a1", {"f.txt": b"v1\n"})
    old.custom("rewind-turn", {"v": 2, "snapshots": ["0" * 39 + "1"], "bindings": [["a1", 0]]})
    old.save()
    assert [point.entry for point in legacy.points(old.engine())] == ["u1"]


def test_ignored_files_stay_also_when_the_old_tree_has_no_ignore_file(old: Old) -> None:
    old.turn("u1", "a1", {".gitignore": b"secret\n", "secret": b"keep me\n"})
    engine = old.engine()
    engine.save()
    restore(engine, "u1")
    assert (old.root / "secret").read_bytes() == b"keep me\n"


def test_windows_line_ends_are_as_they_were(old: Old) -> None:
    old.git("config", "core.autocrlf", "true")
    old.write("dos.txt", b"one\r\ntwo\r\n")
    old.turn("u1", "a1", {"f.txt": b"v1\n"})
    engine = old.engine()
    engine.save()
    restore(engine, "u1")
    assert old.tree() == {"f.txt": b"v0\n", "dos.txt": b"one\r\ntwo\r\n"}


def test_an_lfs_pointer_never_takes_its_contents_place(old: Old) -> None:
    from hashlib import sha256

    same, other = b"large " * 100, b"changed since"
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 600\n"
    for name in ("same.bin", "other.bin", "kept.bin"):
        old.write(name, pointer.format(sha256(same).hexdigest()).encode())
    old.turn("u1", "a1", {"f.txt": b"v1\n"})
    old.write("same.bin", same)
    old.write("other.bin", other)
    os.unlink(old.root / "kept.bin")
    oid = sha256(same).hexdigest()
    old.write(f".git/lfs/objects/{oid[:2]}/{oid[2:4]}/{oid}", same)
    engine = old.engine()
    engine.save()

    restore(engine, "u1")

    assert old.tree() == {"f.txt": b"v0\n", "same.bin": same, "other.bin": same, "kept.bin": same}


def test_a_nested_repository_stays_whole(old: Old) -> None:
    old.write("inner/x.txt", b"x\n")
    subprocess.run(["git", "init", "-q", "inner"], cwd=old.root, check=True)
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@l", "commit", "-q",
                    "--allow-empty", "-m", "x"], cwd=old.root / "inner",
                   check=True)
    old.turn("u1", "a1", {"f.txt": b"v1\n"})
    engine = old.engine()
    engine.save()
    restore(engine, "u1")
    assert (old.root / "inner/x.txt").read_bytes() == b"x\n"
    assert (old.root / "inner/.git/HEAD").exists()


def test_points_are_found_in_the_sessions_that_one_was_forked_from(old: Old) -> None:
    old.turn("u1", "a1", {"f.txt": b"v1\n"})
    child = old.folder / "2026-04-02T00-00-00-000Z_child.jsonl"
    head = {**old.header, "id": "child", "parentSession": str(old.file)}
    child.write_text(json.dumps(head) + "\n")
    grandchild = old.folder / "2026-04-03T00-00-00-000Z_grandchild.jsonl"
    grandchild.write_text(json.dumps({**head, "id": "grandchild", "parentSession": str(child)}))

    found = legacy.points_of_lineage(old.engine(), "grandchild", str(grandchild))

    assert sorted(found) == ["a1", "u1"]


def test_sessions_that_are_each_others_parents_end(old: Old) -> None:
    old.turn("u1", "a1", {"f.txt": b"v1\n"})
    old.header["parentSession"] = str(old.file)
    old.save()
    assert sorted(legacy.points_of_lineage(old.engine(), SESSION, str(old.file))) == ["a1", "u1"]


@pytest.mark.parametrize("name", ["..", ".git", "a\\b"])
def test_a_commit_with_a_hostile_path_is_refused_or_harmless(old: Old, name: str) -> None:
    blob = old.git("hash-object", "-w", "f.txt")
    raw = b"100644 " + name.encode() + b"\0" + bytes.fromhex(blob)
    tree = subprocess.run(["git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"],
                          input=raw, cwd=old.root, check=True,
                          capture_output=True).stdout.decode().strip()
    commit = old.git("commit-tree", tree, "-m", "x")
    old.turn("u1", "a1", {"f.txt": b"v1\n"})
    old.custom("rewind-turn", {"v": 2, "snapshots": [commit], "bindings": [["u1", 0]]})
    old.save()
    engine = old.engine()
    engine.save()
    if name == "a\\b":
        restore(engine, "u1")
        assert set(old.tree()) == {"a\\b"}
        return
    with pytest.raises(RewindError):
        restore(engine, "u1")
    assert old.tree() == {"f.txt": b"v1\n"}
    assert not (old.root.parent / "f.txt").exists()


@pytest.mark.parametrize("data", [
    None, 7, "x", [], {"v": 1, "snapshots": ["{commit}"], "bindings": [["u1", 0]]},
    {"v": 2, "snapshots": "{commit}", "bindings": [["u1", 0]]},
    {"v": 2, "snapshots": ["{commit}"], "bindings": [["u1", 1], ["u1", -1], ["u1", True], ["u1"],
                                                     [["u1"], 0], [7, 0], "u1", None]},
    {"v": 2, "snapshots": [{"a": 1}, "--help", "HEAD"],
     "bindings": [["u1", 0], ["u1", 1], ["u1", 2]]},
    {"v": 2, "snapshots": ["{commit}"], "bindings": {"u1": 0}},
])
def test_entries_of_a_wrong_shape_are_nobodys_points(old: Old, data: object) -> None:
    commit = old.snapshot()
    old.entry("u1", "user", "words")
    old.custom("rewind-turn", json.loads(json.dumps(data).replace("{commit}", commit)))
    old.save()
    assert legacy.points(old.engine()) == []


def test_a_snapshot_of_ours_in_the_repository_is_not_taken_for_one_of_theirs(old: Old) -> None:
    """In mode repo a dropped snapshot may lie in the repository for a while."""
    old.turn("u1", "a1", {"f.txt": b"v1\n"})
    engine = open_engine(str(old.root), create=True, mode="repo")
    ours = engine.save().checkpoint.snapshot
    old.entry("u2", "user", "words of u2")
    old.custom("rewind-turn", {"v": 2, "snapshots": [ours], "bindings": [["u2", 0]]})
    old.save()
    for content in (b"v2\n", b"v3\n", b"v4\n"):
        old.write("f.txt", content)
        engine.save()
    retention.prune(engine, settings.load(engine.store), keep=0)
    assert ours not in {cp.snapshot for cp in engine.timeline().checkpoints}
    assert old.git("cat-file", "-t", ours) == "commit"

    assert [point.entry for point in legacy.points(engine)] == ["u1", "a1"]
