"""Boxes as the corpus has them."""

from corpus.conftest import plain, room

__all__ = ["plain", "room"]
