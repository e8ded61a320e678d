"""A world to break: see `world.py`."""

from collections.abc import Iterator

import pytest
from sealed import sealed_box

from .world import World


@pytest.fixture(params=["repository", pytest.param("folder", marks=pytest.mark.slow)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Two saved states and unsaved work, in a repository or in a plain folder."""
    with sealed_box(git=request.param == "repository") as box:
        world = World(box)
        yield world
        world.close()
