"""Run the sessions that the documentation shows, and compare or renew their output.

Every ```console block of a page is one: its lines that start with `$ ` are typed into one shell,
from the page's first block to its last, in a sealed home. What to prepare unseen stands in a
comment `<!-- setup … -->` before the first block. Ages, ids, sizes and times differ from run to
run and are not compared.

    python -m scripts.sessions            say which pages are out of date
    python -m scripts.sessions --write    renew them
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from scripts.sealed import ROOT, sealed_home

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SETUP = re.compile(r"^<!-- setup\n(.*?)^-->$", re.MULTILINE | re.DOTALL)
_VARYING = (
    (re.compile(r" *\b\d+[smhd] ago"), " <age>"),
    (re.compile(r"\b\d+(\.\d+)? (bytes|KiB|MiB|GiB)"), "<size>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "<time>"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{7,64}\b"), "<id>"),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)
_BETWEEN = "\x1e"


def pages() -> list[Path]:
    """The pages that show sessions."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(page for page in found if _BLOCK.search(page.read_text("utf-8")))


def renewed(text: str) -> str:
    """A page's text with the output of its sessions as it is now."""
    blocks = [match[1] for match in _BLOCK.finditer(text)]
    commands = [_commands(block) for block in blocks]
    setup = _SETUP.search(text)
    outputs = iter(_run(setup[1] if setup else "", [line for block in commands for line in block]))
    fresh = iter(["".join(f"$ {line}\n{next(outputs)}" for line in block) for block in commands])

    def replace(match: re.Match[str]) -> str:
        new = next(fresh)
        return match[0] if same(match[1], new) else f"```console\n{new}```"

    return _BLOCK.sub(replace, text)


def same(old: str, new: str) -> bool:
    """Whether two outputs differ only in what differs from run to run."""
    return _masked(old) == _masked(new)


def _masked(text: str) -> str:
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text.strip()


def _commands(block: str) -> list[str]:
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def _run(setup: str, commands: list[str]) -> list[str]:
    """Each command's output, on both channels, typed one after the other into one shell."""
    script = "exec 2>&1 </dev/null\ncd\n" + setup
    for command in commands:
        script += f"\nprintf '{_BETWEEN}'\n{command}"
    with sealed_home() as (home, env):
        done = subprocess.run(["bash", "-c", script], env=env, stdout=subprocess.PIPE, check=False)
        said = done.stdout.decode("utf-8", "replace").replace(str(home), "~")
    prepared, *outputs = said.split(_BETWEEN)
    if len(outputs) != len(commands):
        raise AssertionError(f"the shell ended early; it said: {prepared}{outputs}")
    return [output if output.endswith("\n") or not output else output + "\n" for output in outputs]


def main() -> None:
    outdated = []
    for page in pages():
        text = page.read_text("utf-8")
        new = renewed(text)
        if new != text:
            outdated.append(str(page.relative_to(ROOT)))
            if "--write" in sys.argv:
                page.write_text(new, "utf-8")
    print("\n".join(outdated) or "all sessions are as shown")
    sys.exit(1 if outdated and "--write" not in sys.argv else 0)


if __name__ == "__main__":
    main()
