"""The folders of `extensions/` that other programs load, wherever this installation has them."""

from __future__ import annotations

import os

from coderewind.errors import RewindError


def folder(name: str) -> str:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for base in (package, os.path.dirname(os.path.dirname(package))):
        found = os.path.join(base, "extensions", name)
        if os.path.isdir(found):
            return found
    raise RewindError(f"the extension for {name} is not part of this installation",
                      hint="install Rewind again")
