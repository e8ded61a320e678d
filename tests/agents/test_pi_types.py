"""The extension's TypeScript: checked against Pi's own types, and linted."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from .install import typescript
from .pi import EXTENSION

pytestmark = pytest.mark.agent


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The extension beside the node_modules that its checks need."""
    folder = tmp_path / "pi"
    shutil.copytree(Path(EXTENSION).parent, folder)
    (folder / "node_modules").symlink_to(typescript() / "node_modules")
    return folder


def check(folder: Path, *command: str) -> str:
    ended = subprocess.run([f"node_modules/.bin/{command[0]}", *command[1:]], cwd=folder,
                           capture_output=True, text=True, check=False)
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


def test_the_extension_fits_the_types_of_pi(checkout: Path) -> None:
    (checkout / "wrong.ts").write_text(
        'import type { ExtensionContext } from "@earendil-works/pi-coding-agent";\n'
        "export const wrong = (ctx: ExtensionContext) => ctx.ui.noSuchThing();\n")

    found = check(checkout, "tsc", "--noEmit").splitlines()

    assert len(found) == 1
    assert found[0].startswith("wrong.ts(2,") and "noSuchThing" in found[0]


def test_the_extension_is_linted(checkout: Path) -> None:
    assert check(checkout, "biome", "lint", "--error-on-warnings", ".") == ""
