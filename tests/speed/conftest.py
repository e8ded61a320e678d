"""A box whose git writes down how it is called."""

import os
import shutil
from collections.abc import Iterator

import pytest
from corpus.box import Box
from corpus.conftest import box as box
from corpus.conftest import room as room

_WRAPPER = """#!/bin/sh
echo "$@" >> "{log}"
exec {git} "$@"
"""


class Watched(Box):
    """A box that knows which git commands Rewind ran."""

    @property
    def _log(self) -> str:
        return f"{self.root}/git-calls"

    def watch(self) -> "Watched":
        """From now on, the box's own git calls are written down, too."""
        git = shutil.which("git")
        os.makedirs(f"{self.root}/bin")
        wrapper = f"{self.root}/bin/git"
        with open(wrapper, "w") as file:
            file.write(_WRAPPER.format(log=self._log, git=git))
        os.chmod(wrapper, 0o755)
        self.env["PATH"] = f"{self.root}/bin:{self.env['PATH']}"
        return self

    def calls(self) -> list[str]:
        """The git commands since the last question."""
        try:
            with open(self._log) as file:
                lines = file.read().splitlines()
            os.remove(self._log)
        except FileNotFoundError:
            return []
        return lines


@pytest.fixture
def watched(room: str) -> Iterator[Watched]:
    """A committed and packed repository of 60 files, saved once."""
    box = Watched(room)
    box.init()
    for number in range(60):
        box.write(f"folder{number % 6}/file{number}", f"content {number}\n")
    box.write(".gitignore", "ignored/\n").write("ignored/file", "x")
    box.commit()
    box.git("gc", "-q")
    box.watch()
    box.rewind("save", check_git=False)
    box.calls()
    yield box
