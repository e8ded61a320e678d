"""What `rewind save` does, however its words were read (save.py, quick.py)."""

from __future__ import annotations

from coderewind.cli.app import App, plural
from coderewind.cli.ending import printable
from coderewind.model.paths import to_text


def save_now(app: App, label: str) -> None:
    """Make a checkpoint and show it."""
    engine = app.engine(create=True)
    saved = engine.save(label=label)
    cp = saved.checkpoint
    data = {
        "id": cp.id,
        "number": cp.number,
        "snapshot": cp.snapshot,
        "reused": saved.reused,
        "files": cp.files,
        "coverage": [item.as_json() for item in saved.coverage],
    }

    def show() -> None:
        first = cp.number == 1
        if saved.reused:
            what = "nothing changed"
        elif not cp.files and not first:
            what = "only modes or folders changed"
        else:
            what = plural(cp.files, "file") + ("" if first else " changed")
        print(f"checkpoint #{cp.number}: {what}")
        if first:
            store = printable(to_text(engine.store.git_dir))
            print(f"  this folder is protected now; store: {store}")
        notable = [item for item in saved.coverage if item.reason != "ignored"]
        if notable:
            print(f"  {plural(len(notable), 'path')} not held; rewind show {cp.number} lists")

    app.out(data, show)
