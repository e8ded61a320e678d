"""What a shell is offered where a checkpoint, a path or a setting is to be typed."""

from __future__ import annotations

import os

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PATHS = "coderewind.paths"  # where a command keeps what follows --
_MOST = 50  # of the newest checkpoints


def checkpoints(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What can stand for a CP: numbers and labels, the newest first."""
    from click.shell_completion import CompletionItem

    from coderewind.cli.showing import describe
    from coderewind.errors import RewindError
    from coderewind.wiring import open_engine

    if PATHS in ctx.meta:  # after --
        return files(ctx, param, incomplete)
    above = ctx.parent.params.get("directories") or () if ctx.parent else ()
    folder = os.path.join(".", *above, *(ctx.params.get("directories") or ()))
    try:
        found = open_engine(folder).timeline().checkpoints
    except (RewindError, OSError):
        return []
    items = [CompletionItem(str(cp.number), help=describe(cp) or cp.kind) for cp in found[:_MOST]]
    items += [CompletionItem(cp.label, help=f"#{cp.number}")
              for cp in found if cp.label and cp.label.isprintable() and incomplete]
    return [item for item in items if item.value.startswith(incomplete)]


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


def settings_and_values(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The KEYs, and what the KEY before may be."""
    from click.shell_completion import CompletionItem

    from coderewind.engine.settings import KEYS

    if param.name == "key":
        items = [CompletionItem(key, help=spec.says) for key, spec in KEYS.items()]
    else:
        spec = KEYS.get(ctx.params.get("key") or "")
        usual = ("true", "false") if spec is not None and spec.kind is bool else ()
        items = [CompletionItem(value) for value in (spec.choices if spec else ()) or usual]
    return [item for item in items if item.value.startswith(incomplete)]
