"""Rooms with real agents, and a hook that is called by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .omp import Connected as ConnectedOmp
from .pi import Connected as ConnectedPi
from .pi import PiRoom
from .rooms import ClaudeRoom, DroidRoom, HookRoom, Room

ROOMS: dict[str, type[Room]] = {"claude": ClaudeRoom, "droid": DroidRoom, "pi": ConnectedPi,
                                "omp": ConnectedOmp}


@pytest.fixture(params=["claude", "droid", "pi", "omp"])
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Room]:
    """Each agent in turn, connected."""
    made = ROOMS[request.param](tmp_path)
    made.connect()
    yield made
    made.close()
    assert made.log() == "", "a hook failed"


@pytest.fixture
def hooks(tmp_path: Path) -> Iterator[HookRoom]:
    """A project, and hooks that are called by hand."""
    made = HookRoom(tmp_path)
    yield made
    made.close()


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[ClaudeRoom]:
    made = ClaudeRoom(tmp_path)
    made.connect()
    yield made
    made.close()
    assert made.log() == "", "a hook failed"


@pytest.fixture
def droid(tmp_path: Path) -> Iterator[DroidRoom]:
    made = DroidRoom(tmp_path)
    made.connect()
    yield made
    made.close()
    assert made.log() == "", "a hook failed"


@pytest.fixture
def pi_room(tmp_path: Path) -> Iterator[PiRoom]:
    made = PiRoom(tmp_path)
    yield made
    made.close()
    assert made.log() == "", "the bridge failed"
