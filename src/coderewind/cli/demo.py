"""`rewind demo`: see it work, in a scratch folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

import click

from coderewind.cli.app import App, command
from coderewind.cli.showing import checkpoint_lines, plan_lines
from coderewind.wiring import open_engine

_FILES = {
    "app.py": 'print("hello")\n',
    "lib/auth.py": "def check(user, password):\n    return password == secret(user)\n",
    "lib/secret.key": "not in any repository\n",
    "notes/todo.txt": "ship it\n",
}
_DISASTER = "rm -rf lib && echo 'import jwt' > app.py && touch debug.log"


@click.command()
@command
def demo(app: App) -> None:
    """See it work on a small project in a scratch folder.

    The project is destroyed by shell commands and put back; your own files are not touched.
    """
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="rewind-demo-"))
    before_home = os.environ.get("REWIND_HOME")
    os.environ["REWIND_HOME"] = os.path.join(scratch, "home")
    project = os.path.join(scratch, "project")
    quiet = app.as_json

    def say(words: str = "") -> None:
        if not quiet:
            click.echo(words)

    try:
        _make(project)
        before = _picture(project)
        say("$ rewind init")
        engine = open_engine(project, create=True)
        first = engine.save(label="before the agent").checkpoint
        say(f"protected, checkpoint #{first.number}: {first.files} files")
        say(f"\n$ {_DISASTER}")
        subprocess.run(["/bin/sh", "-c", _DISASTER], cwd=project, check=True)
        after = engine.save(label="the agent was here").checkpoint
        say("\n$ rewind list")
        if not quiet:
            checkpoint_lines(engine.timeline().checkpoints)
        say(f"\n$ rewind restore {first.number}")
        outcome = engine.restore(first)
        if not quiet:
            plan_lines(outcome.plan)
        same = _picture(project) == before
        say(f"\nevery byte is back: {'yes' if same else 'NO'}")
        say("the scratch folder is gone again; rewind init protects a project of yours")
        assert outcome.rescue is not None
        data = {"restored": same, "first": first.number, "after": after.number,
                "rescue": outcome.rescue.number}
        if quiet:
            app.out(data, lambda: None)
    finally:
        if before_home is None:
            del os.environ["REWIND_HOME"]
        else:
            os.environ["REWIND_HOME"] = before_home
        shutil.rmtree(scratch, ignore_errors=True)


def _make(project: str) -> None:
    for name, content in _FILES.items():
        path = os.path.join(project, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    os.chmod(os.path.join(project, "lib/secret.key"), 0o600)


def _picture(project: str) -> list[tuple[str, int, bytes]]:
    found = []
    for top, _, names in os.walk(project):
        for name in names:
            path = os.path.join(top, name)
            with open(path, "rb") as file:
                found.append((path, os.stat(path).st_mode, file.read()))
    return sorted(found)
