"""Every test here runs with a sealed HOME, configuration and clock, in this process."""

from collections.abc import Iterator

import pytest
from corpus.box import Box
from sealed import sealed_box


@pytest.fixture(autouse=True)
def box() -> Iterator[Box]:
    """A repository with one commit of two files."""
    with sealed_box(git=True) as box:
        box.write("a.txt", "a\n").write("sub/b.txt", "b\n").commit()
        yield box


@pytest.fixture
def plain() -> Iterator[Box]:
    """A plain folder with two files, sealed inside the sealing of `box`."""
    with sealed_box() as box:
        box.write("a.txt", "a\n").write("sub/b.txt", "b\n")
        yield box
