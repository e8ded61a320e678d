"""The ledger: one atomic step per record, readable by people, and a copy that may be lost."""

import os
import shutil

import pytest
from corpus.box import Box
from sealed import opened

from coderewind import Rewind, RewindError
from coderewind.engine.health import diagnose, repair
from coderewind.ledger.chain import Ledger
from coderewind.store.pack import PackWriter

from .look import assert_sound, git, store_dir


def _copy(rewind: Rewind) -> str:
    """The ledger's copy as text."""
    return os.fsdecode(rewind.engine._private) + "/ledger.jsonl"


def _take_away_the_packs(rewind: Rewind) -> None:
    pack_dir = os.fsdecode(rewind.engine.store.objects.pack_dir)
    for name in os.listdir(pack_dir):
        os.unlink(f"{pack_dir}/{name}")


def _listed(rewind: Rewind) -> list[tuple[int, str]]:
    return [(cp.number, cp.label) for cp in rewind.timeline().checkpoints]


THREE = [(3, "three"), (2, "two"), (1, "one")]


@pytest.fixture
def rewind(box: Box) -> Rewind:
    """Three checkpoints."""
    rewind = opened(box)
    for label in ("one", "two", "three"):
        box.write("a.txt", label)
        rewind.checkpoint(label)
    return rewind


def test_the_log_reads_like_a_story(rewind: Rewind) -> None:
    said = git(rewind, "log", "--first-parent", "--format=%s", "main").splitlines()

    assert said == ["#3 save three", "#2 save two", "#1 save one",
                    "rewind: here the ledger begins"]


def test_a_record_keeps_its_snapshot_alive(rewind: Rewind) -> None:
    parents = git(rewind, "log", "-1", "--format=%P", "main").split()

    assert parents[1] == rewind.timeline().checkpoints[0].snapshot
    assert_sound(rewind)


@pytest.mark.parametrize(
    "label",
    ["a\0b", "\0", "a\nb\n\nc", "{\"x\": 1}", "\x1b[31mred", "\U0001f600", "\udc80", "x" * 8192,
     "caf\u00e9", "\u2028\u2029\x85\x0b\x0c\x1c", "\r\n", "-n", "#1", "\x01\x7f", "\ufeff\ufffe",
     "\n\n", " ", "end\n"],
    ids=ascii,
)
def test_any_label_is_read_back_from_the_chain_itself(box: Box, label: str) -> None:
    rewind = opened(box)
    rewind.checkpoint(label)
    rewind.engine.label(rewind.checkpoint("x"), label)
    os.unlink(_copy(rewind))

    labels = [cp.label for cp in opened(box).timeline().checkpoints]

    assert labels == [label, label]
    assert_sound(rewind)


# ---- the copy


@pytest.mark.parametrize(
    "damage",
    ["gone", "empty", "torn", "torn-mid-line", "no-newline", "older", "zeros-in-the-middle",
     "garbage", "garbage-line", "another-chains", "blank-lines", "a-line-twice"],
)
def test_a_damaged_copy_is_made_anew_from_the_chain(
    box: Box, rewind: Rewind, damage: str
) -> None:
    path = _copy(rewind)
    with open(path, "rb") as file:
        data = file.read()
    lines = data.splitlines(keepends=True)
    assert len(lines) == 3
    bad = {
        "empty": b"",
        "torn": data[: len(lines[0]) + 40],
        "torn-mid-line": data[:-10],
        "no-newline": data[:-1],
        "older": lines[0] + lines[1],
        "zeros-in-the-middle": lines[0] + bytes(len(lines[1])) + lines[2],
        "garbage": os.urandom(500),
        "garbage-line": lines[0] + b"garbage\n" + lines[2],
        "another-chains": data.replace(b"three", b"other").replace(
            lines[2][:40], b"0" * 40),
        "blank-lines": lines[0] + b"\n\n" + lines[2],
        "a-line-twice": lines[0] + lines[1] + lines[1] + lines[2],
    }
    os.unlink(path)
    if damage != "gone":
        with open(path, "wb") as file:
            file.write(bad[damage])

    again = opened(box)

    assert _listed(again) == THREE
    again.checkpoint("four")
    assert _listed(again) == [(4, "four"), *THREE]
    assert _listed(opened(box)) == [(4, "four"), *THREE]


def test_appending_to_a_torn_copy_does_not_hide_the_record(box: Box, rewind: Rewind) -> None:
    with open(_copy(rewind), "ab") as file:
        file.write(b"0123456789 {\"torn\": ")

    opened(box).checkpoint("four")

    assert _listed(opened(box)) == [(4, "four"), *THREE]


def test_a_folder_in_the_place_of_the_copy_is_no_bug(box: Box, rewind: Rewind) -> None:
    os.unlink(_copy(rewind))
    os.mkdir(_copy(rewind))

    assert _listed(opened(box)) == THREE


def test_a_very_long_record_is_found_as_the_newest(box: Box, rewind: Rewind) -> None:
    rewind.checkpoint("x" * 200_000)

    last = opened(box).engine.ledger.last()

    assert last is not None
    assert last.whole("number") == 4


# ---- one step per record


def test_a_record_that_lost_the_race_is_not_published(box: Box, rewind: Rewind) -> None:
    ledger = rewind.engine.ledger
    before = ledger.head()
    facts: dict[str, object] = {"id": "x", "op": "label", "target": "y", "label": "z"}
    pack = PackWriter(rewind.engine.store.objects.pack_dir, "sha1")
    commit = ledger.prepare(pack, facts, "late", parent=before, snapshot=b"", tree=[])
    pack.finish()
    opened(box).checkpoint("four")

    with pytest.raises(RewindError, match="changed meanwhile"):
        ledger.publish(commit, facts, before=before)
    with pytest.raises(RewindError, match="changed meanwhile"):
        ledger.replace(commit, before=before)

    assert _listed(opened(box)) == [(4, "four"), *THREE]


def test_two_handles_of_one_store_take_turns(box: Box) -> None:
    one, other = opened(box), opened(box)
    for number in range(6):
        box.write("a.txt", str(number))
        (one, other)[number % 2].checkpoint(str(number))

    assert [number for number, _ in _listed(one)] == [6, 5, 4, 3, 2, 1]
    assert _listed(one) == _listed(other)


@pytest.mark.parametrize("command", [["pack-refs", "--all"], ["gc", "-q", "--prune=now"],
                                     ["repack", "-a", "-d", "-q"], ["repack", "-A", "-d", "-q"]])
def test_the_users_plain_git_may_tidy_the_store(
    box: Box, rewind: Rewind, command: list[str]
) -> None:
    git(rewind, *command)

    again = opened(box)
    assert _listed(again) == THREE
    box.write("a.txt", "four")
    again.checkpoint("four")
    assert _listed(opened(box)) == [(4, "four"), *THREE]
    again.restore("1")
    assert box.read("a.txt") == b"one"
    assert_sound(again)


def test_a_packed_ref_alone_is_enough(box: Box, rewind: Rewind) -> None:
    git(rewind, "pack-refs", "--all")
    os.unlink(_copy(rewind))
    assert not os.path.exists(f"{store_dir(rewind)}/refs/heads/main")

    assert _listed(opened(box)) == THREE


# ---- damage


@pytest.mark.parametrize("content", [b"", b"\n", b"garbage\n", b"0" * 40 + b"\n", b"f" * 40,
                                     b"ref: refs/heads/other\n", b"\xff\xfe", b"-x\n", b"0" * 39])
def test_a_ref_that_names_nothing_is_an_error_of_one_line(
    box: Box, rewind: Rewind, content: bytes
) -> None:
    """Never a bug, and never an empty list where there were checkpoints."""
    with open(f"{store_dir(rewind)}/refs/heads/main", "wb") as file:
        file.write(content)

    again = opened(box)
    for verb in (again.timeline, again.checkpoint, again.undo, lambda: again.restore("1")):
        with pytest.raises(RewindError):
            verb()

    found = diagnose(again.engine)
    assert found.problems
    repair(again.engine, found)
    assert _listed(opened(box))[1:] == THREE
    assert_sound(again)


def test_a_ref_that_is_gone_is_not_an_empty_ledger(box: Box, rewind: Rewind) -> None:
    os.unlink(f"{store_dir(rewind)}/refs/heads/main")

    again = opened(box)
    for verb in (again.timeline, again.checkpoint, again.undo, again.prune):
        with pytest.raises(RewindError, match="refs/heads/main is missing"):
            verb()

    found = diagnose(again.engine)
    assert found.problems
    assert repair(again.engine, found) == []
    assert _listed(opened(box))[1:] == THREE
    assert diagnose(opened(box).engine).problems == []
    assert_sound(again)


@pytest.mark.parametrize("content", [None, b"", b"garbage\n", b"f" * 40])
def test_gc_waits_until_the_end_of_every_ledger_is_known(
    box: Box, rewind: Rewind, content: bytes | None
) -> None:
    """What only that ledger reaches would look like what nobody needs."""
    box.git("worktree", "add", "-q", f"{box.root}/linked")
    with Rewind.open(f"{box.root}/linked") as linked:
        linked.checkpoint("theirs")
        ref = f"{store_dir(rewind)}/refs/heads/{linked.engine.workspace.name}"
    os.unlink(ref)
    if content is not None:
        with open(ref, "wb") as file:
            file.write(content)

    with pytest.raises(RewindError, match="end is not known"):
        opened(box).prune()

    repair(rewind.engine, diagnose(rewind.engine))
    opened(box).prune()
    with Rewind.open(f"{box.root}/linked") as linked:
        assert _listed(linked) == [(1, "theirs")]


def test_what_a_packed_ref_leads_to_is_checked(box: Box, rewind: Rewind) -> None:
    read = diagnose(rewind.engine).checked
    git(rewind, "pack-refs", "--all")
    assert diagnose(opened(box).engine).checked == read

    _take_away_the_packs(rewind)
    assert diagnose(opened(box).engine).problems


def test_a_store_that_begins_anew_knows_nothing_of_the_one_before(
    box: Box, rewind: Rewind
) -> None:
    rewind.close()
    shutil.rmtree(store_dir(rewind))

    with pytest.raises(RewindError, match="are gone"):
        opened(box)
    box.rewind("init")

    assert _listed(opened(box)) == [(1, "first checkpoint")]


def test_a_damaged_record_is_named(box: Box, rewind: Rewind) -> None:
    os.unlink(_copy(rewind))
    bad = git(rewind, "-c", "user.name=x", "-c", "user.email=x", "commit-tree", "-p", "main",
              "-m", "no record", "main^{tree}").strip()
    git(rewind, "update-ref", "refs/heads/main", bad)

    with pytest.raises(RewindError, match=f"record {bad[:12]} of the ledger is damaged"):
        opened(box).timeline()


@pytest.mark.parametrize("version", [2, 99, "1", None, [1]])
def test_a_ledger_of_a_newer_version_is_refused(
    box: Box, rewind: Rewind, version: object
) -> None:
    ledger = Ledger(rewind.engine.store, "main")
    before = ledger.head()
    facts: dict[str, object] = {"v": version, "id": "x", "op": "label"}
    pack = PackWriter(rewind.engine.store.objects.pack_dir, "sha1")
    commit = ledger.prepare(pack, facts, "new", parent=before, snapshot=b"", tree=[])
    pack.finish()
    ledger.replace(commit, before=before)

    with pytest.raises(RewindError, match="newer Rewind"):
        opened(box).timeline()


def test_a_lost_object_of_the_chain_is_an_error_of_one_line(box: Box, rewind: Rewind) -> None:
    os.unlink(_copy(rewind))
    git(rewind, "repack", "-a", "-d", "-q")
    _take_away_the_packs(rewind)

    with pytest.raises(RewindError):
        opened(box).timeline()
