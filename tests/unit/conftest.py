"""No unit test may start a process."""

import subprocess

import pytest


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **_: object) -> None:
        raise AssertionError(f"a unit test started a process: {args}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
