"""`rewind gc`: retention and compaction."""

from __future__ import annotations

import click

from coderewind.cli.app import App, command, plural, size_words
from coderewind.engine import retention, settings


@click.command()
@click.option("--keep", type=click.IntRange(min=0), metavar="N",
              help="Keep the newest N, whatever the settings say.")
@command
def gc(app: App, *, keep: int | None) -> None:
    """Drop old checkpoints and compact the store.

    Which are old, the settings retention.* say (by default none), or --keep. Pinned checkpoints,
    the newest, and the states that undo and redo need always stay.
    """
    engine = app.engine()
    result = retention.prune(engine, settings.load(engine.store), keep=keep)

    def show() -> None:
        click.echo(f"{plural(len(result.dropped), 'checkpoint')} dropped, {result.kept} kept")
        if keep is not None and result.kept > keep:
            click.echo("  pinned ones, the newest, and what undo and redo need always stay")
        now = size_words(result.after)
        if result.after < result.before:
            freed = size_words(result.before - result.after)
            click.echo(f"{freed} freed: {size_words(result.before)} before, {now} now")
        else:
            click.echo(f"nothing to free: {now}")

    app.out(result.as_json(), show)
