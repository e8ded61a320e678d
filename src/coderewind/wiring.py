"""The one place that puts an engine together."""

from __future__ import annotations

import os

from coderewind.engine import settings as configuration
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.store import home
from coderewind.store.folders import user_home
from coderewind.store.home import Store
from coderewind.store.seed import seed
from coderewind.store.workspace import Workspace, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def open_engine(
    path: bytes | str = b".",
    *,
    create: bool = False,
    mode: str | None = None,
    force: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> Engine:
    """The engine of the worktree around `path`.

    With `create`, a store is made when there is none.

    Raises:
        RewindError: there is no store, or the folder cannot or may not be protected.
    """
    workspace = find_workspace(path)
    store = home.locate(workspace)
    if store is None:
        if not create:
            raise RewindError("this folder is not protected yet",
                              hint="rewind init protects it and takes the first checkpoint")
        store = make_store(workspace, mode, force=force)
    settings = configuration.load(store)
    return Engine(store, workspace, settings.filters(), progress)


def find_workspace(path: bytes | str = b".") -> Workspace:
    try:
        return find(os.fsencode(path), home.is_protected)
    except FileNotFoundError:
        raise RewindError("the current folder is gone", hint="cd to an existing folder") from None


def make_store(workspace: Workspace, mode: str | None, *, force: bool = False) -> Store:
    """A new store for a worktree, seeded with the packs of its repository."""
    refuse_home(workspace.root, force=force)
    if mode is None:
        mode = home.abandoned_mode(workspace)
    if mode is None:
        mode = configuration.load(None).text("storage.mode")
        if mode == "repo" and workspace.common_dir is None:
            mode = "global"  # a wish for repositories; this folder is none
    store = home.create(workspace, mode)
    seed(store, workspace)
    return store


def refuse_home(root: bytes, *, force: bool = False) -> None:
    """`/` and the home folder are protected only when the user insists."""
    if force or os.environ.get("REWIND_ALLOW_HOME") == "1":
        return
    too_wide = {os.path.realpath(b"/")}
    try:
        too_wide.add(os.path.realpath(user_home()))
    except RewindError:
        pass
    if root in too_wide:
        raise RewindError(f"{os.fsdecode(root)} is too wide to be protected by accident",
                          hint="go to a project folder, or insist with rewind init --force")
