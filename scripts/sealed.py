"""A sealed home to run documentation in: nothing of the real user is read or written."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def sealed_home() -> Iterator[tuple[Path, dict[str, str]]]:
    """An empty home folder, and the environment of a user who lives there and has `rewind`."""
    with tempfile.TemporaryDirectory(prefix="rewind-docs-") as folder:
        home = Path(folder).resolve() / "home"
        programs = home.parent / "bin"
        home.mkdir()
        programs.mkdir()
        for name in ("rewind", "coderewind"):
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m coderewind "$@"\n')
            program.chmod(0o755)
        (home / ".gitconfig").write_text(
            "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
            "[core]\n\tpager = cat\n[advice]\n\tdetachedHead = false\n"
        )
        yield home, {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(home),
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "100",
            "TERM": "dumb",
            "GIT_CONFIG_NOSYSTEM": "1",
        }
