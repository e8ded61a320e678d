"""Which worktree an event is about."""

from __future__ import annotations

import os

from coderewind.engine import settings as configuration
from coderewind.engine.engine import Engine
from coderewind.engine.settings import Settings
from coderewind.errors import RewindError
from coderewind.store import home
from coderewind.store.home import Store
from coderewind.store.workspace import Workspace
from coderewind.wiring import find_workspace, make_store


class NotProtected(RewindError):
    """There is no store and none may be made without being asked."""

    def __init__(self, root: bytes) -> None:
        super().__init__(f"no checkpoints are made in {os.fsdecode(root)}",
                         hint="run `rewind init` there first")


class Place:
    """A worktree with its engine and the settings in force there."""

    __slots__ = ("engine", "settings")

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.engine = engine
        self.settings = settings


def place_of(cwd: str, home_folder: str) -> Place:
    """The worktree around `cwd`, its store made silently when there is none.

    A session may walk into a folder that nobody meant to protect (`cd /usr`): without a
    repository or a store there, the folder it began in (`home_folder`) stays meant.
    """
    workspace, store = _look(cwd, home_folder)
    if store is None:
        if not configuration.load(None).flag("autoInit"):
            raise NotProtected(workspace.root)
        store = make_store(workspace, None)
    settings = configuration.load(store)
    return Place(Engine(store, workspace, settings.filters()), settings)


def _look(cwd: str, home_folder: str) -> tuple[Workspace, Store | None]:
    try:
        workspace = find_workspace(cwd or os.getcwd())
    except (RewindError, OSError):
        if not home_folder:
            raise
        workspace = find_workspace(home_folder)
    store = home.locate(workspace)
    wandered = home_folder and os.fsencode(home_folder) != workspace.root
    if store is None and workspace.git_dir is None and wandered:
        try:
            began = find_workspace(home_folder)
            return began, home.locate(began)
        except RewindError:
            pass
    return workspace, store
