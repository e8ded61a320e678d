"""The real agents, installed from npm once into a cache folder.

`REWIND_TEST_AGENTS` names the folder. Where an agent cannot be installed its tests are skipped,
with the reason; on CI that is a failure.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGES = {
    "claude": (["@anthropic-ai/claude-code@2.1.327", "@anthropic-ai/claude-code-linux-x64@2.1.327"],
               "node_modules/@anthropic-ai/claude-code-linux-x64/claude"),
    "droid": (["@factory/cli-linux-x64@0.225.2"], "node_modules/@factory/cli-linux-x64/bin/droid"),
}
OMP, BUN = "@oh-my-pi/pi-coding-agent@18.2.3", "bun@1.4.4"

PI = "@earendil-works/pi-coding-agent@1.5.2"
_PI_NEEDS = ["node@24.21.0", "jiti@2.7.0"]  # its bundle holds the rest


def pi() -> list[str]:
    """The command that starts Pi."""
    folder = _cache() / "pi-coding-agent-1.5.2"
    node, cli = folder / "node_modules/node/bin/node", folder / "package/dist/bundle/cli.js"
    if not (node.exists() and cli.exists() and (folder / "node_modules/jiti").exists()):
        problem = _unpack(folder, PI) or _install(folder, _PI_NEEDS)
        if problem:
            _give_up(f"{PI} could not be installed: {problem}")
    return [str(node), str(cli)]


def omp() -> list[str]:
    """The command that starts omp; its native parts are packages of their own."""
    folder = _cache() / "omp-18.2.3"
    bun = folder / "node_modules/@oven/bun-linux-x64/bin/bun"
    cli = folder / "node_modules/@oh-my-pi/pi-coding-agent/dist/cli.js"
    if not (bun.exists() and cli.exists()):
        problem = _install(folder, ["--ignore-scripts", BUN]) or _add(folder, bun, OMP)
        if problem:
            _give_up(f"{OMP} could not be installed: {problem}")
    return [str(bun), str(cli)]


TYPES = ["typescript@5.9.3", "@types/node@22.19.19", "@biomejs/biome@2.6.7", "typebox@1.3.27"]
_PI_TYPES = ["pi-coding-agent", "pi-ai", "pi-agent-core"]


def typescript() -> Path:
    """A folder with TypeScript, a linter, and Pi's own types."""
    folder = _cache() / "pi-types-1.5.2"
    scope = folder / "node_modules" / "@earendil-works"
    if not (folder / "node_modules/.bin/tsc").exists():
        problem = _install(folder, TYPES)
        if problem:
            _give_up(f"TypeScript could not be installed: {problem}")
    for name in _PI_TYPES:
        if not (scope / name).exists():
            problem = _unpack(folder / name, f"@earendil-works/{name}@1.5.2")
            if problem:
                _give_up(f"Pi's types could not be had: {problem}")
            scope.mkdir(exist_ok=True)
            shutil.copytree(folder / name / "package", scope / name, dirs_exist_ok=True)
    return folder


def program(agent: str) -> str:
    """The path of an agent's program; skips or fails the test when there is none."""
    packages, inside = PACKAGES[agent]
    folder = _cache() / packages[0].rpartition("/")[2].replace("@", "-")
    path = folder / inside
    if not path.exists():
        problem = _install(folder, packages)
        if problem or not path.exists():
            _give_up(f"{packages[0]} could not be installed: {problem or 'its program is missing'}")
    return str(path)


def tmux() -> str:
    path = shutil.which("tmux")
    if path is None:
        _give_up("tmux is not here")
    assert path is not None
    return path


def _cache() -> Path:
    return Path(os.environ.get("REWIND_TEST_AGENTS")
                or Path.home() / ".cache" / "coderewind-test-agents")


def _unpack(folder: Path, package: str) -> str:
    """Unpack a package without what it names: some of that is on no registry."""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not here"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "package").exists():
            return ""
        ended = subprocess.run([npm, "pack", "--silent", package], cwd=folder, timeout=600,
                               capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            return (ended.stderr or ended.stdout).strip()[-300:]
        archive = folder / ended.stdout.split()[-1]
        shutil.unpack_archive(archive, folder / "new", filter="data")
        (folder / "new" / "package").rename(folder / "package")
    return ""


def _install(folder: Path, packages: list[str]) -> str:
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not here"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / "package.json").write_text('{"private": true}\n')
        ended = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--silent", *packages],
            cwd=folder, capture_output=True, text=True, timeout=600, check=False,
        )
    return "" if ended.returncode == 0 else (ended.stderr or ended.stdout).strip()[-300:]


def _add(folder: Path, bun: Path, package: str) -> str:
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended = subprocess.run([bun, "add", "--ignore-scripts", package], cwd=folder, text=True,
                               capture_output=True, timeout=600, check=False)
    return "" if ended.returncode == 0 else (ended.stderr or ended.stdout).strip()[-300:]


def _give_up(why: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)
