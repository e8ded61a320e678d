"""A sealed user with an empty home, and a checkout to install from."""

import contextlib
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class User:
    """Somebody with an empty home folder, whose path has a space and a quote in it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "Ada's home"
        self.home.mkdir()
        self.bin = self.home / ".local" / "bin"
        self.system = self.home / ".rewind" / "system"
        self.checkout = folder / "a checkout"
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "PYTHON": sys.executable,
            "LC_ALL": "C.UTF-8",
        }
        # How packages are reached from here: the index, its certificate, its cache.
        self.env |= {name: value for name, value in os.environ.items()
                     if name.startswith("PIP_") or name.lower().endswith("_proxy")}

    def clone(self) -> None:
        """What a checkout holds: the files that git knows or would know."""
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True,
        ).stdout.decode().split("\0")[:-1]
        for name in names:
            if (ROOT / name).is_file():
                target = self.checkout / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target)

    def install(
        self, *words: str, cwd: Path | None = None, **env: str
    ) -> "subprocess.CompletedProcess[str]":
        return self.run([str(self.checkout / "install.sh"), *words], cwd=cwd, **env)

    def run(
        self, command: list[str], *, cwd: Path | None = None, **env: str
    ) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            command, cwd=cwd or self.home, env={**self.env, **env}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=300,
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done

    def asked(self, *words: str, answer: str) -> str:
        """What install.sh says to somebody at a terminal who answers every question like this."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [str(self.checkout / "install.sh"), *words], cwd=self.home, env=self.env,
            stdin=theirs, stdout=theirs, stderr=theirs,
        )
        os.close(theirs)
        os.write(ours, answer.encode() * 3)
        said = b""
        with contextlib.suppress(OSError):  # how Linux says that the other side is closed
            while piece := os.read(ours, 4096):
                said += piece
        os.close(ours)
        process.wait(timeout=60)
        return said.decode()

    def everything(self) -> set[str]:
        """All paths below the home folder, but what pip and tools around it keep there."""
        return {
            str(path.relative_to(self.home)) for path in self.home.rglob("*")
            if path.relative_to(self.home).parts[0] not in (".cache", ".rustup", ".cargo")
        }


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    user = User(tmp_path)
    user.clone()
    yield user
