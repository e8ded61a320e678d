"""The JSON documents that commands print, as examples for docs/format.md, and their shapes.

A shape is a document with its values replaced by their types: what is public about it.
"""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache

from scripts.sealed import sealed_home

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_LONG = 96
_SETUP = """
mkdir shop && cd shop && git init -q
mkdir lib && echo 'print("hello")' > app.py && echo 'def check(): ...' > lib/auth.py
printf '.env\\n' > .gitignore && echo SECRET=1 > .env
git add -A && git commit -q -m "a shop" && echo '# staged' >> app.py && git add app.py
"""
# What is typed to get each command's document. `;` stands between what is typed unseen and it.
SCENES: dict[str, str] = {
    "init": "init",
    "save": "save 'before the agent'",
    "list": "list --limit 1",
    "show": "show @",
    "restore --dry-run": "rm -rf lib; restore @ --dry-run",
    "diff": "diff",
    "restore": "restore @ --yes",
    "undo-restore": "undo-restore",
    "undo": "undo",
    "redo": "redo",
    "status": "status",
    "label": "label 2 'good'",
    "pin": "pin good",
    "unpin": "unpin good",
    "gc": "gc",
    "config": "config",
    "config KEY": "config storage.mode",
    "validate": "config tier exact >/dev/null; validate",
    "doctor": "doctor",
    "store": "store",
    "statusline": "statusline",
    "demo": "demo",
    "completion": "completion fish",
    "an error": "restore nonsense",
}


@cache
def documents() -> dict[str, Json]:
    """The document of every scene, from one real session."""
    script = "exec </dev/null\ncd\n" + _SETUP
    for typed in SCENES.values():
        before, _, words = typed.rpartition("; ")
        if before.startswith("config"):
            before = f"rewind {before}"
        script += f"\n{before}\nprintf '\\036'\nrewind {words} --json\nprintf '\\036'"
    with sealed_home() as (home, env):
        done = subprocess.run(["bash", "-c", script], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        said = done.stdout.decode().replace(str(home), "~")
    printed = said.split("\x1e")[1::2]
    return {name: json.loads(text) for name, text in zip(SCENES, printed, strict=True)}


def example(name: str, old: str) -> str:
    """A scene's document as a block of a page; the old block if its shape is still right."""
    document = documents()[name]
    shown = _abridged(document)
    if (match := re.search(r"```json\n(.*?)```", old, re.DOTALL)) and shape(
        json.loads(match[1])
    ) == shape(shown):
        return old
    return f"```json\n{json.dumps(shown, indent=1, ensure_ascii=False)}\n```\n"


def shape(document: Json) -> Json:
    """The document with its values replaced by their types."""
    if isinstance(document, dict):
        return {key: shape(value) for key, value in document.items()}
    if isinstance(document, list):
        return [shape(document[0])] if document else []
    if isinstance(document, float):
        return "int"  # a time that happens to be whole
    return type(document).__name__


def keys(document: Json) -> set[str]:
    """All keys of a document, at any depth."""
    if isinstance(document, dict):
        return set(document).union(*(keys(value) for value in document.values()))
    if isinstance(document, list):
        return set().union(*(keys(value) for value in document))
    return set()


def _abridged(document: Json) -> Json:
    """Long texts and lists shortened, for people to read."""
    if isinstance(document, dict):
        return {key: _abridged(value) for key, value in document.items()}
    if isinstance(document, list):
        return [_abridged(value) for value in document[:2]]
    if isinstance(document, str) and len(document) > _LONG:
        return document[: _LONG - 1] + "…"
    return document
