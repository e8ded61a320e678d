"""Looking into a store with plain git, as a user may."""

import os
import subprocess

from coderewind import Rewind


def store_dir(rewind: Rewind) -> str:
    return os.fsdecode(rewind.engine.store.git_dir)


def git(rewind: Rewind, *args: str, ok: bool = True) -> str:
    """Plain git on the store."""
    done = subprocess.run(["git", f"--git-dir={store_dir(rewind)}", *args], capture_output=True,
                          check=False, stdin=subprocess.DEVNULL)
    assert not ok or done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape")


def assert_sound(rewind: Rewind) -> None:
    """git finds no fault with the store: every pack verifies, every object is well-formed,
    everything that a ledger reaches is there."""
    pack_dir = os.path.join(os.fsdecode(rewind.engine.store.objects.dir), "pack")
    for name in sorted(os.listdir(pack_dir)):
        assert name.startswith("pack-"), f"litter: {name}"
        if name.endswith(".idx"):
            git(rewind, "verify-pack", os.path.join(pack_dir, name))
    said = git(rewind, "fsck", "--strict", "--full", "--no-dangling", "--no-progress")
    assert said == "", said


def tree(rewind: Rewind, snapshot: str) -> str:
    """The id of the tree of a snapshot's files."""
    return git(rewind, "rev-parse", f"{snapshot}:files").strip()
