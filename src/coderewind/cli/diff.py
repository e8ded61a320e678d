"""`rewind diff`: differences of two checkpoints, or of one and now."""

from __future__ import annotations

import os
import shutil

import click

from coderewind.cli.app import App, command, in_colour, on_terminal
from coderewind.cli.ending import printable
from coderewind.cli.offers import PATHS, checkpoints
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.model.paths import to_text, within
from coderewind.store.diff import SnapshotView, compare
from coderewind.store.ignore import UserGit
from coderewind.store.workspace import Workspace


class _PathsAfterDashes(click.Command):
    """As in git: what follows `--` are paths."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[PATHS] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- PATH...]"]


@click.command(cls=_PathsAfterDashes)
@click.argument("a", required=False, shell_complete=checkpoints)
@click.argument("b", required=False, shell_complete=checkpoints)
@click.option("--stat", is_flag=True, help="Only how much changed in each file.")
@click.option("--patch", is_flag=True, help="The changes themselves (the default).")
@command
def diff(app: App, *, a: str | None, b: str | None, stat: bool, patch: bool) -> None:
    """Show what differs between two checkpoints, or one and now.

    Between A and B; with A alone between A and now; with neither between the last checkpoint and
    now. To see only some files, name them after --.
    """
    engine = app.engine()
    paths = click.get_current_context().meta.get(PATHS, [])
    scope = [app.root_path(engine, path) for path in paths]
    old, new = sides(engine, a, b)
    if app.as_json:
        app.out(_as_json(engine, old, new, scope), lambda: None)
        return
    out = patch_of(engine, old, new, scope, stat=stat, patch=patch, columns=_columns(),
                   colour=in_colour())
    app.out(None, lambda: _page(out, engine.workspace))


def sides(engine: Engine, a: str | None, b: str | None) -> tuple[SnapshotView, SnapshotView]:
    """What is compared: A or the last checkpoint, with B or the folder as it is now."""
    if a is None and not engine.timeline().checkpoints:
        raise RewindError("there are no checkpoints yet", hint="rewind save makes the first one")
    old = engine.snapshot_view(engine.resolve(a or "@"))
    if b is None:
        captured = engine.current_snapshot()
        return old, SnapshotView(engine.store.objects, captured.snapshot)
    return old, engine.snapshot_view(engine.resolve(b))


def patch_of(
    engine: Engine,
    old: SnapshotView,
    new: SnapshotView,
    scope: list[bytes],
    *,
    stat: bool = False,
    patch: bool = True,
    columns: int = 120,
    colour: bool = False,
) -> bytes:
    """What differs between two snapshots, as git shows it, and what git does not know."""
    args: list[str | bytes] = ["diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv"]
    args += [f"--stat={columns}"] if stat else []
    args += ["-p"] if patch or not stat else []
    if colour:
        args.append("--color=always")
    args += [old.tree.hex(), new.tree.hex(), "--"]
    args += [b":(literal)" + path for path in scope if path]
    other = "".join(line + "\n" for line in _other_differences(old, new, scope))
    return engine.store.git.run(*args) + other.encode()


def _as_json(
    engine: Engine, old: SnapshotView, new: SnapshotView, scope: list[bytes]
) -> dict[str, object]:
    words = {(False, True): "added", (True, False): "deleted", (True, True): "modified"}
    files = [
        {"path": to_text(d.path), "status": words[bool(d.old_mode), bool(d.new_mode)]}
        for d in compare(engine.store.objects, old.tree, new.tree)
        if within(d.path, tuple(scope))
    ]
    return {"from": old.snapshot.hex(), "to": new.snapshot.hex(), "files": files,
            "other": _other_differences(old, new, scope)}


def _other_differences(old: SnapshotView, new: SnapshotView, scope: list[bytes]) -> list[str]:
    """Modes and empty folders, which git's own diff does not know."""
    lines = []
    for path in sorted(old.manifest.modes.keys() | new.manifest.modes.keys()):
        before, after = old.manifest.modes.get(path), new.manifest.modes.get(path)
        if before != after and within(path, tuple(scope)):
            old_word = f"{before:o}" if before else "usual"
            new_word = f"{after:o}" if after else "usual"
            lines.append(f"mode {old_word} -> {new_word}: {printable(to_text(path))}")
    for path in sorted(old.manifest.folders ^ new.manifest.folders):
        if within(path, tuple(scope)):
            word = "new" if path in new.manifest.folders else "deleted or filled"
            lines.append(f"{word} empty folder: {printable(to_text(path))}")
    return lines


def _columns() -> int:
    """As git does: the terminal's width, or 80."""
    return shutil.get_terminal_size().columns if on_terminal() else 80


def _page(out: bytes, workspace: Workspace) -> None:
    """Through the user's pager on a terminal, as git does."""
    if not out:
        return
    pager = _pager(workspace) if on_terminal() else ""
    if pager in ("", "cat"):
        click.echo(out, nl=False)
        return
    import signal
    import subprocess

    env = {"LESS": "FRX", "LV": "-c", **os.environ}
    # ^C is for the pager: ended before it, we would leave it alone with the terminal.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        done = subprocess.run(["/bin/sh", "-c", pager], input=out, env=env, check=False)
    finally:
        signal.signal(signal.SIGINT, before)
    if done.returncode in (126, 127):  # the shell has said that there is no such program
        click.echo(out, nl=False)


def _pager(workspace: Workspace) -> str:
    """The command that git would use, but for what a repository's own configuration says."""
    chosen = os.environ.get("GIT_PAGER")
    if chosen is None:
        user = UserGit(workspace).run("config", "--global", "--get", "core.pager", ok=(0, 1, 128))
        chosen = os.fsdecode(user.rstrip(b"\n")) or os.environ.get("PAGER", "less")
    return chosen
