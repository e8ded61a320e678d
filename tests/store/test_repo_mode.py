"""Mode `repo`: our objects in the user's repository, where the user's gc may run at any moment."""

import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from corpus.box import Box
from sealed import opened

from coderewind import Rewind
from coderewind.engine.health import diagnose, quick_check, repair
from coderewind.ledger import chain
from coderewind.store import capture as capturing
from coderewind.store.git import Git
from coderewind.store.home import Store
from coderewind.store.pack import PackWriter
from coderewind.store.scan import TICK_NS


@pytest.fixture
def repo(box: Box) -> Box:
    """A repository with a store inside."""
    box.git_may_change = True
    box.rewind("init", "--mode", "repo", "--yes")
    return box


def _gc(box: Box) -> None:
    box.git("reflog", "expire", "--expire=now", "--all")
    box.git("gc", "-q", "--prune=now")


def _prune(box: Box) -> None:
    box.git("prune", "--expire=now")


def _repack(box: Box) -> None:
    box.git("repack", "-a", "-d", "-q")
    box.git("prune-packed")


def _all_restorable(box: Box, wanted: dict[str, bytes]) -> None:
    for checkpoint, content in wanted.items():
        opened(box).restore(checkpoint)
        assert box.read("a.txt") == content
    box.git("fsck", "--strict", "--no-dangling")


TIDY = [_gc, _prune, _repack]


def test_a_lost_ref_that_keeps_the_checkpoints_is_noticed_and_put_back(repo: Box) -> None:
    rewind = opened(repo)
    repo.write("a.txt", "kept\n")
    wanted = {rewind.checkpoint().id: b"kept\n"}
    repo.git("worktree", "add", "-q", f"{repo.root}/linked", "-b", "linked")
    with Rewind.open(f"{repo.root}/linked") as linked:
        linked.checkpoint()
    assert quick_check(rewind.engine) == diagnose(rewind.engine).problems == []
    repo.git("update-ref", "-d", chain.KEEP_REF)

    for problems in (quick_check(rewind.engine), diagnose(rewind.engine).problems):
        assert any(chain.KEEP_REF in problem for problem in problems)
    repair(rewind.engine, diagnose(rewind.engine))

    assert diagnose(rewind.engine).problems == []
    assert not [name for name in os.listdir(f"{repo.project}/.git/objects/pack")
                if name.endswith(".keep")]
    _gc(repo)
    _all_restorable(repo, wanted)


@pytest.mark.parametrize("tidy", TIDY)
def test_checkpoints_survive_the_users_tidying(repo: Box, tidy: Callable[[Box], None]) -> None:
    rewind = opened(repo)
    wanted = {}
    for number in range(4):
        repo.write("a.txt", f"{number}\n")
        wanted[rewind.checkpoint().id] = repo.read("a.txt")
        tidy(repo)

    _all_restorable(repo, wanted)


@pytest.mark.parametrize("tidy", TIDY)
def test_a_content_that_was_only_loose_in_the_repository(
    repo: Box, monkeypatch: pytest.MonkeyPatch, tidy: Callable[[Box], None]
) -> None:
    """`git add` stored it, nothing refers to it, our capture found it there."""
    repo.write("new", "precious\n").git("add", "new")
    repo.git("reset", "-q")
    monkeypatch.setattr(capturing, "MAPPED_NS", 0)  # as if the file were old
    time.sleep(2.5 * TICK_NS / 1e9)
    rewind = opened(repo)
    rewind.engine.current_snapshot()
    tidy(repo)

    checkpoint = rewind.checkpoint()

    repo.remove("new")
    opened(repo).restore(checkpoint)
    assert repo.read("new") == b"precious\n"
    repo.git("fsck", "--strict", "--no-dangling")


@pytest.mark.parametrize("tidy", TIDY)
def test_tidying_while_a_checkpoint_is_made(
    repo: Box, monkeypatch: pytest.MonkeyPatch, tidy: Callable[[Box], None]
) -> None:
    """After the objects are written, before the ledger refers to them."""
    repo.write("new", "precious\n").git("add", "new")
    repo.git("reset", "-q")
    repo.write("other", "packed\n")
    publish = chain.Ledger.publish

    def late(self: chain.Ledger, *args: object, **facts: object) -> object:
        tidy(repo)
        return publish(self, *args, **facts)  # type: ignore[arg-type]

    rewind = opened(repo)
    with monkeypatch.context() as patch:
        patch.setattr(chain.Ledger, "publish", late)
        checkpoint = rewind.checkpoint()
    tidy(repo)

    repo.remove("new").remove("other")
    opened(repo).restore(checkpoint)
    assert repo.read("new") == b"precious\n"
    assert repo.read("other") == b"packed\n"
    repo.git("fsck", "--strict", "--no-dangling")
    assert not [n for n in os.listdir(repo.path(".git/objects/pack")) if n.endswith(".keep")]


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("tidy", TIDY)
def test_tidying_just_before_the_repository_refers_to_the_ledger(
    repo: Box, monkeypatch: pytest.MonkeyPatch, tidy: Callable[[Box], None], linked: bool
) -> None:
    """Nothing but the user's tidying is done between the writing of objects and of the ref."""
    if linked:
        repo.git("worktree", "add", "-q", f"{repo.root}/side", "-b", "side")
        with Rewind.open(f"{repo.root}/side") as side:
            side.checkpoint()
    run = Git.run

    def late(self: Git, *args: str | bytes, **facts: Any) -> bytes:
        if args[0] == "update-ref":
            tidy(repo)
        return run(self, *args, **facts)

    wanted = {}
    with monkeypatch.context() as patch:
        patch.setattr(Git, "run", late)
        for number in range(2):
            repo.write("a.txt", f"{number}\n")
            wanted[opened(repo).checkpoint().id] = repo.read("a.txt")
    _gc(repo)

    _all_restorable(repo, wanted)


def test_tidying_while_a_large_pack_is_written(
    repo: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal = PackWriter._seal

    def late(self: PackWriter) -> bytes:
        _gc(repo)
        return seal(self)

    repo.write("big", os.urandom(9 << 20))
    with monkeypatch.context() as patch:
        patch.setattr(PackWriter, "_seal", late)
        checkpoint = opened(repo).checkpoint()
    content = repo.read("big")
    repo.remove("big")

    opened(repo).restore(checkpoint)
    assert repo.read("big") == content


def test_killed_before_the_repository_refers_to_the_ledger(
    repo: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is listed must survive the user's gc."""
    rewind = opened(repo)
    wanted = {}
    for number in range(2):
        repo.write("a.txt", f"{number}\n")
        wanted[rewind.checkpoint().id] = repo.read("a.txt")
    repo.write("a.txt", "last\n")

    def killed(_store: Store, *_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(chain, "keep_alive", killed)
        with pytest.raises(KeyboardInterrupt):
            opened(repo).checkpoint()
    _gc(repo)

    again = opened(repo)
    listed = again.timeline().checkpoints
    for cp in listed:
        again.restore(cp)
    _all_restorable(repo, wanted)


@pytest.mark.parametrize("tidy", TIDY)
def test_prune_and_the_users_tidying(repo: Box, tidy: Callable[[Box], None]) -> None:
    rewind = opened(repo)
    for number in range(6):
        repo.write("a.txt", f"{number}\n")
        rewind.checkpoint()
    rewind.prune(keep=2)
    tidy(repo)

    left = {cp.id: str(cp.number - 2).encode() + b"\n" for cp in rewind.timeline().checkpoints}
    assert len(left) == 2
    _all_restorable(repo, left)
    oid = repo.git("hash-object", "--stdin", ok=True).decode()
    assert oid
    sizes = repo.git("count-objects", "-v").decode()
    assert "garbage: 0" in sizes


def test_a_linked_worktree_shares_the_store(repo: Box) -> None:
    repo.git("worktree", "add", "-q", f"{repo.root}/side", "-b", "side")
    main, side = opened(repo), Rewind.open(f"{repo.root}/side")
    repo.write(f"{repo.root}/side/a.txt", "side\n")
    there = side.checkpoint()
    repo.write("a.txt", "main\n")
    here = main.checkpoint()
    _gc(repo)

    repo.write("a.txt", "x").write(f"{repo.root}/side/a.txt", "x")
    main.restore(here)
    side.restore(there)

    assert repo.read("a.txt") == b"main\n"
    assert repo.read(f"{repo.root}/side/a.txt") == b"side\n"
    side.close()
