"""Renew what the documentation generates from the code: help pages, settings, JSON examples.

A page holds such a part between `<!-- generated: WHAT -->` and `<!-- end -->`.

    python -m scripts.pages            say which parts are out of date
    python -m scripts.pages --write    renew them
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import click

from coderewind.cli.top import COMMANDS, rewind
from coderewind.engine import settings
from scripts import shapes
from scripts.sealed import ROOT

SCHEMA = ROOT / "docs" / "config.schema.json"
_WIDTH = 78  # what click takes of a terminal of 80 columns
_PART = re.compile(r"^<!-- generated: (.+?) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """The pages with generated parts."""
    return sorted(page for page in (ROOT / "docs").rglob("*.md") if parts(page.read_text("utf-8")))


def parts(text: str) -> list[str]:
    """What the generated parts of a page are made of."""
    return [match[1] for match in _PART.finditer(text)]


def renewed(text: str) -> str:
    """A page's text with its generated parts as they are now."""
    return _PART.sub(lambda match: f"<!-- generated: {match[1]} -->\n{part(match[1], match[2])}"
                                   "<!-- end -->", text)


def part(what: str, old: str) -> str:
    """One generated part; `old` stays when it differs only in values that vary from run to run."""
    kind, _, name = what.partition(" ")
    if kind == "help":
        return f"```text\n{help_page(name)}\n```\n"
    if kind == "settings":
        return settings_table()
    if kind == "json":
        return shapes.example(name, old)
    raise AssertionError(f"nothing is known to generate {what!r}")


def help_page(name: str) -> str:
    """What `rewind NAME --help` prints on a terminal of 80 columns."""
    top = click.Context(rewind, info_name="rewind", terminal_width=_WIDTH,
                        **rewind.context_settings)
    if name == "rewind":
        return rewind.get_help(top)
    command = rewind.get_command(top, name)
    assert command is not None, f"there is no command {name}"
    ctx = click.Context(command, info_name=name, parent=top, terminal_width=_WIDTH)
    return command.get_help(ctx)


def settings_table() -> str:
    """Every setting with its type, default and meaning."""
    types = {bool: "true or false", int: "whole number", str: "text", list: "list of names"}
    lines = ["| setting | type | default | says |", "| --- | --- | --- | --- |"]
    for name, key in settings.KEYS.items():
        kind = " · ".join(f"`{choice}`" for choice in key.choices) or types[key.kind]
        default = "see below" if key.default is None else f"`{json.dumps(key.default)}`"
        lines.append(f"| `{name}` | {kind} | {default} | {key.says} |")
    return "\n".join(lines) + "\n"


def schema() -> str:
    """What `rewind config --schema` prints."""
    return json.dumps(settings.schema(), indent=2) + "\n"


def main() -> None:
    outdated = []
    new = {page: renewed(page.read_text("utf-8")) for page in pages()} | {SCHEMA: schema()}
    for page, text in new.items():
        if not page.exists() or page.read_text("utf-8") != text:
            outdated.append(str(page.relative_to(ROOT)))
            if "--write" in sys.argv:
                page.write_text(text, "utf-8")
    print("\n".join(outdated) or f"all is up to date ({len(COMMANDS)} commands)")
    sys.exit(1 if outdated and "--write" not in sys.argv else 0)


if __name__ == "__main__":
    main()
