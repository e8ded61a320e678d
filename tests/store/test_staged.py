"""What the user had staged is kept, and put back only when asked."""

import json
import os

import pytest
from corpus.box import Box
from sealed import opened

from coderewind import RewindError
from coderewind.store.objects import tree_bytes
from coderewind.store.pack import BLOB, TREE
from coderewind.store.staged import Staged

from .look import assert_sound


def _index(box: Box) -> bytes:
    return box.git("ls-files", "-s", "-z")


def _round_trip(box: Box) -> None:
    """Save, unstage everything and let gc run, restore with the index."""
    wanted, files = _index(box), box.picture()
    rewind = opened(box)
    checkpoint = rewind.checkpoint()
    assert checkpoint.staged
    assert_sound(rewind)
    box.git("read-tree", "HEAD") if box.git("rev-parse", "-q", "--verify", "HEAD", ok=False) else (
        box.git("read-tree", "--empty"))
    box.write("a.txt", "later\n").git("add", "a.txt")
    box.git("gc", "-q", "--prune=now", ok=False)
    before = _index(box)

    rewind.engine.restore(checkpoint, index=True)
    assert _index(box) == wanted
    box.assert_like(files)
    box.git("fsck", "--strict")

    rewind.undo_restore()
    assert _index(box) == before


def test_modified_added_deleted_and_made_executable(box: Box) -> None:
    box.write("a.txt", "staged\n").write("new", "added\n").write("x", "#!\n", 0o755)
    box.symlink("link", "a.txt").git("add", "-A")
    box.git("rm", "-q", "--cached", "sub/b.txt")
    box.write("a.txt", "and changed again\n")

    _round_trip(box)


def test_odd_names(box: Box) -> None:
    for name in (b"\xff\xfe", b"new\nline", b'quo"te', b" space", b":(top)x", b"-rf", b"a\tb"):
        box.write(name, name).git("add", "--", os.fsdecode(b"./" + name))

    _round_trip(box)


def test_a_conflict_with_its_three_stages(box: Box) -> None:
    box.git("checkout", "-q", "-b", "other")
    box.write("a.txt", "theirs\n").commit("theirs")
    box.git("checkout", "-q", "main")
    box.write("a.txt", "ours\n").commit("ours")
    box.git("merge", "other", ok=False)
    assert box.git("ls-files", "-u")

    _round_trip(box)


def test_before_the_first_commit(box: Box) -> None:
    box.git("checkout", "-q", "--orphan", "new")
    assert box.git("rev-parse", "-q", "--verify", "HEAD", ok=False) == b""

    _round_trip(box)


def test_nothing_staged_is_nothing_kept(box: Box) -> None:
    box.write("a.txt", "not staged\n")

    assert opened(box).checkpoint().staged == ""


def test_a_staged_content_that_only_the_index_knows(box: Box) -> None:
    box.write("a.txt", "only staged\n").git("add", "a.txt")
    box.write("a.txt", "a\n")

    _round_trip(box)


def test_the_index_stays_as_it_is_unless_asked(box: Box) -> None:
    box.write("a.txt", "staged\n").git("add", "a.txt")
    rewind = opened(box)
    checkpoint = rewind.checkpoint()
    box.git("reset", "-q")
    before = box.git_state()

    rewind.restore(checkpoint)

    assert box.git_state() == before


def test_a_locked_index_is_left_alone(box: Box) -> None:
    box.write("a.txt", "staged\n").git("add", "a.txt")
    rewind = opened(box)
    checkpoint = rewind.checkpoint()
    box.git("reset", "-q")
    box.write(".git/index.lock", "")
    before = box.git_state()

    with pytest.raises(RewindError, match="locked by another git process"):
        rewind.engine.restore(checkpoint, index=True)

    assert box.git_state() == before
    box.remove(".git/index.lock")
    rewind.engine.restore(checkpoint, index=True)
    assert box.git("show", ":a.txt") == b"staged\n"


@pytest.mark.parametrize("harm", ["corrupt", "truncated", "empty", "a-folder", "unreadable-object"])
def test_an_index_that_cannot_be_read_does_not_stop_a_save(box: Box, harm: str) -> None:
    box.write("a.txt", "staged\n").git("add", "a.txt")
    index = box.path(".git/index")
    if harm == "corrupt":
        box.write(".git/index", b"DIRC garbage" * 20)
    elif harm == "truncated":
        os.truncate(index, 40)
    elif harm == "empty":
        os.truncate(index, 0)
    elif harm == "a-folder":
        os.unlink(index)
        os.mkdir(index)
    else:
        oid = box.git("rev-parse", ":a.txt").decode().strip()
        box.remove(f".git/objects/{oid[:2]}")
    wanted = box.picture()

    rewind = opened(box)
    checkpoint = rewind.checkpoint()

    assert_sound(rewind)
    box.write("a.txt", "x").remove("sub")
    rewind.restore(checkpoint)
    box.assert_like(wanted)


OID = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("harm", [
    {"changes": [["100644", "--output=x", "a.txt"]]},
    {"changes": [["100644", OID, "../a.txt"]]},
    {"changes": [["100644", OID, ".git/config"]]},
    {"changes": [["100644", OID]]},
    {"changes": [["100644 x", OID, "a.txt"]]},
    {"changes": [["40000", OID, "a.txt"]]},
    {"changes": [["100644", OID, "a.txt"]]},
    {"changes": "none"},
    {"changes": ["abc"]},
    {"unmerged": [["100644", OID, "9", "a.txt"]]},
    {"unmerged": [["100644", OID, "a.txt"]]},
    [],
], ids=str)
def test_a_staged_record_that_somebody_forged_changes_nothing(box: Box, harm: object) -> None:
    box.write("a.txt", "staged\n").git("add", "a.txt")
    rewind = opened(box)
    store = rewind.engine.store
    good = {"version": 1, "head": "", "changes": [], "unmerged": []}
    pack = store.pack()
    text = json.dumps(good | harm if isinstance(harm, dict) else harm).encode()
    tree = pack.add(TREE, tree_bytes([(0o100644, b"staged.json", pack.add(BLOB, text))]))
    pack.finish()
    store.objects.refresh()

    with pytest.raises(RewindError):
        Staged.read(store, tree.hex())


def test_a_submodule_and_intent_to_add_do_not_disturb(box: Box) -> None:
    box.init(where=box.mkdir("module").path("module"))
    box.write("module/file", "x").commit(cwd=box.path("module"))
    box.git("add", "module")
    box.write("later", "x").git("add", "-N", "later")
    box.write("a.txt", "staged\n").git("add", "a.txt")

    _round_trip(box)
