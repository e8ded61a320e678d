"""Every call that changes something, of every verb: killed there, or failing there."""

from collections.abc import Callable

import pytest
from corpus.tree import Picture
from sealed import close_all, opened

from coderewind import RewindError

from .failpoints import DIE, Dead, Failpoint
from .world import World

Verb = Callable[[World], object]
ERRORS = ("EIO", "ENOSPC", "EACCES", "EFBIG")


def _save(world: World) -> object:
    return opened(world.box).checkpoint("now")


def _restore(world: World) -> object:
    return opened(world.box).restore(world.old)


def _undo_restore(world: World) -> object:
    return opened(world.box).undo_restore()


def _label(world: World) -> object:
    rewind = opened(world.box)
    rewind.engine.label(rewind.engine.resolve("1"), "named")
    return None


def _gc(world: World) -> object:
    return opened(world.box).prune(keep=2)


def _status(world: World) -> object:
    rewind = opened(world.box)
    rewind.timeline()
    return rewind.engine.current_snapshot()


VERBS: dict[str, Verb] = {"save": _save, "restore": _restore, "undo-restore": _undo_restore,
                          "label": _label, "gc": _gc, "status": _status}


def _prepare(world: World, verb: str) -> tuple[Picture, Picture]:
    """The files before the verb and after it, when nothing fails."""
    world.reset()
    if verb == "undo-restore":
        opened(world.box).restore(world.old)
        close_all()
        world.expect_move(world.old_files, world.now_files, reverse=True)
        return world.old_files, world.now_files
    if verb == "restore":
        world.expect_move(world.now_files, world.old_files)
        return world.now_files, world.old_files
    world.expect_move(world.now_files, world.now_files)
    return world.now_files, world.now_files


def _break(world: World, verb: str, at: int, how: str) -> str:
    """Run a verb with a fault at its Nth call and check everything; what happened, '' at the end
    of the verb's calls."""
    before, after = _prepare(world, verb)
    outcome = "done"
    most = len(opened(world.box).timeline().checkpoints) + (verb in ("restore", "undo-restore"))
    close_all()
    with Failpoint(at, how) as failpoint:
        try:
            VERBS[verb](world)
        except Dead:
            outcome = "dead"
        except (RewindError, OSError) as error:
            outcome = str(error)
            assert outcome, failpoint.fired
    close_all()
    what = f"{verb}, {failpoint.fired}, {outcome}"
    if outcome == "done":
        world.box.assert_like(after, f"{what}: exit 0, so the project")
    elif outcome != "dead":
        listed = len(opened(world.box).timeline().checkpoints)
        assert listed <= most, f"{what}: not done, but listed"
        close_all()
    files = before if before is after else None
    world.assert_sound(what, files=files)
    return failpoint.fired


def _break_everywhere(world: World, verb: str, *hows: str, step: int = 1) -> None:
    at, tried = 1, 0
    while _break(world, verb, at, hows[tried % len(hows)]):
        tried += 1
        at += step
    assert tried > 1


@pytest.mark.slow
@pytest.mark.parametrize("how", [DIE, *ERRORS])
@pytest.mark.parametrize("verb", VERBS)
def test_at_every_call(world: World, verb: str, how: str) -> None:
    _break_everywhere(world, verb, how)


@pytest.mark.parametrize("verb", VERBS)
def test_killed_at_some_calls(world: World, verb: str) -> None:
    _break_everywhere(world, verb, DIE, step=7)


@pytest.mark.parametrize("verb", VERBS)
def test_failing_at_some_calls(world: World, verb: str) -> None:
    _break_everywhere(world, verb, *ERRORS, step=5)
