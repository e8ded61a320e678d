"""Run programs in a sealed environment and compare them: in turn, several times.

Everything happens in one temporary folder with its own HOME, so that neither the user's
configuration nor an existing store has a say, and nothing is left behind. Rewind is installed
there as install.sh installs it: what is measured is what users start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

REPOSITORY = Path(__file__).resolve().parent.parent
_CONFIG = "[user]\n\tname = Ursula User\n\temail = ursula@example.org\n[gc]\n\tauto = 0\n"


class Usage:
    """What one run of a program cost."""

    def __init__(self, seconds: float, cpu: float, peak: int) -> None:
        self.seconds = seconds
        self.cpu = cpu
        self.peak = peak  # bytes of resident memory


class Lab:
    """A sealed user: a HOME, a place for trees, the `rewind` command and git."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.rewind_home = folder / "rewind-home"
        for path in (self.home, folder / "tmp"):
            path.mkdir()
        (self.home / ".gitconfig").write_text(_CONFIG)
        system = folder / "system"
        subprocess.run([sys.executable, "-m", "venv", system], check=True)
        self.python = system / "bin" / "python"
        self.command = system / "bin" / "rewind"
        subprocess.run([self.python, "-m", "pip", "install", "--quiet",
                        "--disable-pip-version-check", REPOSITORY], check=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": os.fspath(self.home),
            "REWIND_HOME": os.fspath(self.rewind_home),
            "TMPDIR": os.fspath(folder / "tmp"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C.UTF-8",
        }

    def run(self, *words: str | Path, at: Path, env: dict[str, str] | None = None) -> Usage:
        """Run a program to its end; it must succeed. Its output is dropped."""
        argv = [os.fspath(word) for word in words]
        with open(self.folder / "stderr", "w+b") as errors:
            start = time.perf_counter()
            process = subprocess.Popen(
                argv, cwd=at, env=self.env | (env or {}), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=errors,
            )
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                errors.seek(0)
                raise SystemExit(f"{argv} failed: {errors.read().decode(errors='replace')}")
        return Usage(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)

    def rewind(self, *words: str, at: Path) -> Usage:
        return self.run(self.command, *words, at=at)

    def git(self, *words: str, at: Path, env: dict[str, str] | None = None) -> Usage:
        return self.run("git", *words, at=at, env=env)

    def read(self, *words: str, at: Path) -> str:
        """What a program prints."""
        done = subprocess.run(words, cwd=at, env=self.env, check=True, capture_output=True)
        return done.stdout.decode().strip()

    def worker(self, at: Path) -> Worker:
        return Worker(self, at)


class Worker:
    """A Python process that runs the engine when told to, so that start-up is not measured.

    Every run opens its own engine, which remembers nothing of the run before.
    """

    def __init__(self, lab: Lab, at: Path) -> None:
        program = REPOSITORY / "benchmarks" / "worker.py"
        self._process = subprocess.Popen(
            [lab.python, program], cwd=at, env=lab.env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )

    def __call__(self, *words: str) -> Usage:
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(" ".join(words) + "\n")
        process.stdin.flush()
        line = process.stdout.readline().split()
        if not line:
            raise SystemExit(f"the engine failed at {words}")
        return Usage(float(line[0]), float(line[1]), 0)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Contestant:
    """One way to do the work. `rarely` divides how often it runs, for the very slow."""

    def __init__(self, run: Callable[[], Usage], *, rarely: int = 1) -> None:
        self.run = run
        self.rarely = rarely
        self.results: list[Usage] = []

    @property
    def seconds(self) -> float:
        """Wall time: the best, which other work on the machine disturbed least."""
        return min(usage.seconds for usage in self.results)

    @property
    def cpu(self) -> float:
        return median(usage.cpu for usage in self.results)


def contest(
    contestants: dict[str, Contestant], repeat: int, prepare: Callable[[int], None] | None = None
) -> dict[str, Contestant]:
    """Let all run in turn, `repeat` times, each after `prepare`; the round before is not counted.

    What one leaves to be written goes to the disk before the next one's clock starts.
    """
    for turn in range(repeat + 1):
        for contestant in contestants.values():
            if turn > 1 and turn % contestant.rarely:
                continue
            if prepare is not None:
                prepare(time.monotonic_ns())
            os.sync()
            usage = contestant.run()
            if turn:
                contestant.results.append(usage)
    return contestants
