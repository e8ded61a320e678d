"""A world to break: see `world.py`."""

import os
from collections.abc import Iterator

import pytest
from sealed import sealed_box

from .world import World

# These tests write through to the disk tens of thousands of times, and look at files, not at the
# disk: in memory they take a fraction of the time.
_MEMORY = "/dev/shm"


@pytest.fixture(params=["repository", pytest.param("folder", marks=pytest.mark.slow)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Two saved states and unsaved work, in a repository or in a plain folder."""
    within = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with sealed_box(git=request.param == "repository", within=within) as box:
        world = World(box)
        yield world
        world.close()
