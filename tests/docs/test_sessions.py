"""The sessions that the documentation shows are real."""

from pathlib import Path

import pytest

from scripts import sessions
from scripts.sealed import ROOT


@pytest.mark.parametrize("page", sessions.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_really_happens(page: Path) -> None:
    text = page.read_text("utf-8")

    assert sessions.renewed(text) == text, "python -m scripts.sessions --write renews it"


def test_the_readme_shows_a_session() -> None:
    assert ROOT / "README.md" in sessions.pages()


def test_what_differs_from_run_to_run_is_not_compared() -> None:
    assert sessions.same("#1    3s ago  x\n", "#1   12m ago  x\n")
    assert sessions.same("snapshot 0a1b2c3d4e\n", "snapshot ffffff0aaaaa\n")


def test_anything_else_is_compared() -> None:
    assert not sessions.same("restored #1: 5 changes\n", "restored #1: 4 changes\n")
    assert not sessions.same("~/shop is protected.\n", "~/shop is already protected.\n")
