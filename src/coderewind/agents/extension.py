"""Pi and omp: connected by a folder of theirs that holds our extension.

Rules: only a folder that is recognised as ours is replaced or removed, and files that others put
into it stay; what belongs to another extension is taken out only when the user said so, and moved
aside, not deleted.
"""

from __future__ import annotations

import json
import os
import re
import shutil

from coderewind.agents import bundled
from coderewind.agents.connection import Change, Connection
from coderewind.agents.settings import MARK, bridge_command, plan_edit
from coderewind.agents.tier import Tier
from coderewind.errors import RewindError

COMMAND = "bridge.json"  # how the extension starts Rewind, and which files are ours
ASIDE = "before-rewind"  # where rivals are moved to, below the agent's folder
_RIVALS = re.compile(r"(?:^|[/:])pi-rewind(?:-hook)?(?:\.git)?(?:@[^/]*)?/?$")
_RIVAL_FOLDER = re.compile(r"(?:^|/)(?:extensions|hooks)/rewind(?:/|$)")
_RIVAL_CODE = (b"refs/pi-rewind/store", b"refs/pi-checkpoints/")
_LARGEST = 4 << 20

Files = dict[str, bytes]


class FolderChange(Change):
    """What connecting or disconnecting makes of the extension's folder."""

    __slots__ = ("after", "before")

    def __init__(self, path: str, before: Files, after: Files, *, had_ours: bool) -> None:
        super().__init__(path, had_ours=had_ours)
        self.before = before
        self.after = after  # empty: the folder is to go

    @property
    def is_change(self) -> bool:
        return self.before != self.after

    def apply(self) -> None:
        """Put a new folder in the old one's place: Pi never finds half of it."""
        if not self.is_change:
            return
        if _files(self.path) != self.before:
            raise RewindError(f"{self.path} was changed by something else meanwhile",
                              hint="nothing was changed; try again")
        agent_dir = os.path.dirname(os.path.dirname(self.path))
        fresh = os.path.join(agent_dir, f"rewind-new.{os.getpid()}")
        old = os.path.join(agent_dir, f"rewind-old.{os.getpid()}")
        try:
            os.makedirs(os.path.dirname(self.path), 0o700, exist_ok=True)
            _write(fresh, self.after)
            if self.before:
                os.rename(self.path, old)
            if self.after:
                os.rename(fresh, self.path)
        except OSError as error:
            if os.path.isdir(old) and not os.path.lexists(self.path):
                os.rename(old, self.path)
            raise RewindError(f"{self.path} cannot be written: {error.strerror}",
                              hint="nothing was changed") from error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


class Aside(Change):
    """Another extension's folder, moved to where the agent does not look."""

    __slots__ = ("_to",)

    def __init__(self, path: str, to: str) -> None:
        super().__init__(path)
        self._to = to

    @property
    def is_change(self) -> bool:
        return True

    def apply(self) -> None:
        target, number = self._to, 1
        while os.path.lexists(target):
            number += 1
            target = f"{self._to}.{number}"
        try:
            os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
            os.rename(self.path, target)
        except OSError as error:
            raise RewindError(f"{self.path} cannot be moved: {error.strerror}",
                              hint="nothing was changed") from error


class Extension(Connection):
    """The connection of Pi or omp."""

    has_tiers = False

    @property
    def folder(self) -> str:
        return os.path.join(self.adapter.home(), "extensions", "rewind")

    def plan(self, tier: Tier, root: str, scope: str) -> Change:
        self.check_scope(scope)
        before = _files(self.folder)
        if os.path.islink(self.folder) or (before and not _is_ours(before)
                                           and not _is_rival(before)):
            raise RewindError(f"{self.folder} is there already and not of Rewind",
                              hint="move it away; nothing was changed")
        if _is_rival(before):
            before = {}  # taken out first
        after = _wanted(self.adapter.name)
        ours = _listed(before)
        after |= {name: data for name, data in before.items()
                  if name not in ours and name not in after}
        return FolderChange(self.folder, before, after, had_ours=_is_ours(before))

    def plan_removal(self, root: str) -> list[Change]:
        before = _files(self.folder)
        if not _is_ours(before):
            return []
        ours = _listed(before)
        kept = {name: data for name, data in before.items() if name not in ours}
        return [FolderChange(self.folder, before, kept, had_ours=True)]

    def places(self, root: str) -> list[str]:
        return [self.folder] if _is_ours(_files(self.folder)) else []

    def problems(self, root: str) -> list[str]:
        found = []
        before = _files(self.folder)
        if _is_ours(before):
            wanted = _wanted(self.adapter.name)
            if before.get(COMMAND) != wanted[COMMAND]:
                found.append("its command is not this installation's")
            elif any(before.get(name) != data for name, data in wanted.items()):
                found.append("the extension is another version's: "
                             f"rewind init --agents {self.adapter.name} replaces it")
            found += [f"another checkpoint extension is active as well: {rival.path}"
                      for rival in self.rivals()]
        return found

    def rivals(self) -> list[Change]:
        """pi-rewind-hook and pi-rewind, wherever they are registered or lie."""
        home = self.adapter.home()
        found: list[Change] = []
        settings = os.path.join(home, "settings.json")
        change = plan_edit(settings, _without_rivals)
        if change.is_change:
            found.append(change)
        for kind in ("extensions", "hooks"):
            folder = os.path.join(home, kind, "rewind")
            if not os.path.islink(folder) and _is_rival(_files(folder)):
                found.append(Aside(folder, os.path.join(home, ASIDE, f"{kind}-rewind")))
        return found


def _wanted(agent: str) -> Files:
    """The extension's folder as this installation has it."""
    source = bundled.folder("pi")
    files = {name: data for name, data in _files(source).items() if _is_loaded(name)}
    command: dict[str, object] = {"command": bridge_command(), "agent": agent,
                                  "files": sorted([*files, COMMAND])}
    files[COMMAND] = json.dumps(command, indent=2).encode() + b"\n"
    return files


def _is_loaded(name: str) -> bool:
    """Whether a file is part of the extension, and not of its development."""
    top = name.split("/")[0]
    return top not in ("node_modules", "types", "tsconfig.json", "package-lock.json",
                       "biome.json", "eslint.config.js", COMMAND)


def _is_ours(files: Files) -> bool:
    return any(isinstance(word, str) and MARK in word for word in _said(files, "command"))


def _listed(files: Files) -> set[str]:
    """The files that we put there."""
    return {name for name in _said(files, "files") if isinstance(name, str)}


def _said(files: Files, key: str) -> list[object]:
    try:
        value = json.loads(files.get(COMMAND, b"{}"))[key]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def _is_rival(files: Files) -> bool:
    """Whether a folder is pi-rewind-hook's or pi-rewind's."""
    if _is_ours(files):
        return False
    try:
        name = json.loads(files.get("package.json", b"{}")).get("name")
    except (ValueError, AttributeError, RecursionError):
        name = None
    if isinstance(name, str) and _RIVALS.search(name):
        return True
    return any(mark in data for path, data in files.items() if path.endswith((".ts", ".js"))
               for mark in _RIVAL_CODE)


def _without_rivals(data: dict[str, object]) -> None:
    """Take the entries of rivals out of an agent's settings; ours are not in there."""
    for key in ("packages", "extensions", "hooks"):
        rows = data.get(key)
        if not isinstance(rows, list):
            continue
        kept = [row for row in rows if not _names_rival(row)]
        if kept == rows:
            continue
        if kept:
            data[key] = kept
        else:
            del data[key]


def _names_rival(row: object) -> bool:
    source = row.get("source") if isinstance(row, dict) else row
    if not isinstance(source, str):
        return False
    source = source.replace("\\", "/")
    return bool(_RIVALS.search(source) or _RIVAL_FOLDER.search(source))


def _files(folder: str) -> Files:
    """The files below a folder by their names in it; links and what is too large stay out."""
    found: Files = {}
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "node_modules")
        for name in names:
            path = os.path.join(top, name)
            try:
                if not os.path.islink(path) and os.path.getsize(path) <= _LARGEST:
                    with open(path, "rb") as file:
                        found[os.path.relpath(path, folder)] = file.read()
            except OSError as error:
                raise RewindError(f"{path} cannot be read: {error.strerror}") from error
    return found


def _write(folder: str, files: Files) -> None:
    os.mkdir(folder, 0o700)
    for name, data in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
