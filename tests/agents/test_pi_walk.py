"""A walk at random through the real Pi and omp: whatever was done before, each prompt's point gives
back exactly its files, and undo exactly those of before."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from .fake_model import Json, script, text
from .omp import OmpRoom
from .pi import NAV, Pi, PiRoom

pytestmark = [pytest.mark.agent, pytest.mark.slow]

Files = dict[str, tuple[bytes, int]]  # contents and mode


class Walk:
    """What was seen: the files at each prompt."""

    def __init__(self, room: PiRoom, seed: int) -> None:
        self.room = room
        self.chance = random.Random(seed)
        self.known: dict[str, Files] = {}
        self.steps = (self.prompt, self.prompt, self.prompt, self.edit, self.fork, self.code_only,
                      self.tree, self.rewind)

    def go(self, pi: Pi, steps: int) -> None:
        self.pi = pi
        for _ in range(steps):
            self.chance.choice(self.steps)()
            assert not [said for said in pi.shown("notify") if "no checkpoint" in said]

    # ---- steps

    def prompt(self) -> None:
        """One more prompt; its tools change files, or not."""
        before, known = self.files(), set(self.prompts(known=False))
        turns = [[self.change() for _ in range(self.chance.randrange(1, 3))]
                 for _ in range(self.chance.randrange(3))]
        self.pi.prompt(f"p{len(self.known)} " + script(*turns, text("done")))
        new = set(self.prompts(known=False)) - known
        assert len(new) == 1
        self.known[new.pop()] = before

    def edit(self) -> None:
        """Something that no agent did."""
        (self.room.folder / "mine").write_text(f"{self.chance.random()}\n")

    def fork(self) -> None:
        if entry := self.any_prompt():
            self.forked(entry, "Restore all")
            assert self.files() == self.known[entry]

    def code_only(self) -> None:
        if entry := self.any_prompt():
            before, said = self.files(), self.prompts(known=False)
            self.forked(entry, "Code only")
            assert (self.files(), self.prompts(known=False)) == (self.known[entry], said)
            if self.files() != before:
                self.forked(entry, "Undo last file rewind")
                assert self.files() == before

    def tree(self) -> None:
        if entry := self.any_prompt():
            self.choose("Restore files")
            self.command(f"/nav {entry}", "nav done")
            assert self.files() == self.known[entry]

    def rewind(self) -> None:
        if not (entry := self.any_prompt()):
            return
        number = next(cp["number"] for cp in self.room.checkpoints()
                      if cp["entry"] == entry and cp["kind"] == "prompt")
        before = self.files()
        self.choose(f"#{number} ", self.chance.choice(("Files + conversation", "Files only")),
                    "Files only")
        self.browse("back at")
        assert self.files() == self.known[entry]
        if self.files() != before:
            self.choose("↩ Undo")
            self.browse("undone")
            assert self.files() == before
            self.choose("↪ Redo")
            self.browse("redone")
            assert self.files() == self.known[entry]

    # ----

    def change(self) -> Json:
        name = self.chance.choice(("a", "b", "c/d", "c/e", "x y", "é"))
        return self.room.shell(self.chance.choice((
            f"mkdir -p $(dirname '{name}'); echo {self.chance.random()} > '{name}'",
            f"rm -rf '{name}'", f"rm -rf c; echo {self.chance.random()} > c; mv c 'x y'",
            f"test ! -e '{name}' || chmod {self.chance.choice(('755', '644', '600'))} '{name}'")))

    def files(self) -> Files:
        return {name: (content, os.stat(self.room.folder / name).st_mode & 0o777)
                for name, content in self.room.tree().items()}

    def prompts(self, *, known: bool = True) -> list[str]:
        return [entry["id"] for entry in self.pi.entries("user")
                if not known or entry["id"] in self.known]

    def any_prompt(self) -> str:
        return self.chance.choice(self.prompts() or [""])

    def choose(self, *wanted: str) -> None:
        """Take the first option of a dialog that begins with one of these words."""
        self.pi.answer = lambda dialog: next((
            option for word in wanted for option in dialog["options"]
            if option.removeprefix("● ").strip().startswith(word)), None)

    def forked(self, entry: str, how: str) -> None:
        self.choose(how)
        self.pi.call("fork" if self.room.agent == "pi" else "branch", entryId=entry)

    def browse(self, until: str) -> None:
        self.command("/rewind" if self.room.agent == "pi" else "/checkpoints", until)

    def command(self, words: str, until: str) -> None:
        before = len(self.pi.shown("notify"))
        self.pi.prompt(words)
        self.pi.wait_until(
            lambda: any(until in said for said in self.pi.shown("notify")[before:]), until)


@pytest.fixture(params=[PiRoom, OmpRoom], ids=["pi", "omp"])
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PiRoom]:
    made = request.param(tmp_path)
    yield made
    made.close()
    assert made.log() == "", "the bridge failed"


@pytest.mark.parametrize("seed", [1, 2])
def test_points_and_undo_are_exact_wherever_one_has_been(room: PiRoom, seed: int) -> None:
    walk = Walk(room, seed)
    with room.open(extensions=NAV) as pi:
        pi.prompt("hello")
        walk.go(pi, 20)
        file = str(pi.state()["sessionFile"])
    resume = [room.resume_option, file] if Path(file).exists() else []
    with room.open(*resume, extensions=NAV) as pi:
        pi.prompt("hello again")
        walk.go(pi, 15)
