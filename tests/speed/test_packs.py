"""However many checkpoints there are, there are few packs, and nothing in them is lost."""

import os
import subprocess
import sys

from corpus.box import Box

from .conftest import Watched


def packs(box: Box) -> list[str]:
    folder = f"{box.store()}/objects/pack"
    return sorted(name for name in os.listdir(folder) if name.endswith(".pack"))


def fsck(box: Box) -> str:
    words = ["git", "--git-dir", box.store(), "fsck", "--full", "--strict", "--no-dangling"]
    done = subprocess.run(words, env=box.env, capture_output=True, check=False)
    return done.stdout.decode() + done.stderr.decode()


SAVES = """
import sys
from pathlib import Path
from coderewind import Rewind

for number in range(int(sys.argv[1])):
    path = Path(f"folder{number % 3}/new{number % 7}")
    lines = [f"{i * i * 7919}\\n" for i in range(300 + number % 5 * 100)]
    path.write_text("".join([*lines, str(number)]))
    print(Rewind.open(".").checkpoint().id)
"""


def many_saves(box: Box, count: int) -> list[str]:
    """Checkpoints, each with a changed file, all made by one process; their ids."""
    words = [sys.executable, "-c", SAVES, str(count)]
    done = subprocess.run(words, cwd=box.project, env=box.env, capture_output=True, check=True)
    return done.stdout.decode().split()


def test_forty_checkpoints_make_a_handful_of_packs(watched: Watched) -> None:
    saved = many_saves(watched, 40)

    assert len(packs(watched)) < 10
    listed = [item["id"] for item in watched.checkpoints()]
    assert listed[:40] == saved[::-1]
    assert fsck(watched) == ""


def test_a_pack_that_the_repository_shares_is_left_alone(watched: Watched) -> None:
    shared = set(os.listdir(f"{watched.project}/.git/objects/pack"))

    many_saves(watched, 12)

    assert shared & set(packs(watched)), "nothing was shared: this test has lost its ground"


def test_damage_is_not_copied_into_a_new_pack(watched: Watched) -> None:
    """A pack that is not what its checksum says stays as it is, for doctor to find."""
    watched.write("folder0/x", os.urandom(3000))
    watched.rewind("save", check_git=False)
    before = packs(watched)
    folder = f"{watched.store()}/objects/pack"
    victim = max((name for name in before if os.stat(f"{folder}/{name}").st_nlink == 1),
                 key=lambda name: os.path.getsize(f"{folder}/{name}"))
    with open(f"{folder}/{victim}", "r+b") as file:
        file.seek(1500)
        file.write(b"damage")

    watched.write("folder0/x", os.urandom(9000))
    watched.rewind("save", check_git=False)

    assert victim in packs(watched)
    assert watched.rewind("doctor", ok=False, check_git=False).code == 1


def test_a_pack_with_deltas_is_left_for_gc(watched: Watched) -> None:
    many_saves(watched, 8)
    watched.rewind("gc", check_git=False)
    compact = packs(watched)

    saved = many_saves(watched, 25)
    watched.rewind("restore", saved[3], "--yes", check_git=False)

    assert set(compact) <= set(packs(watched))
    assert fsck(watched) == ""
