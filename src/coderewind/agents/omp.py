"""oh-my-pi (omp): Pi's session files behind a title of a fixed length."""

from __future__ import annotations

from coderewind.agents.branched import Branched
from coderewind.agents.transcript import line_of

SLOT = 256  # bytes of the first line, rewritten in place when the title changes


class Omp(Branched):
    name = "omp"
    title = "oh-my-pi"
    program = "omp"
    folder = ".omp"
    package = "@oh-my-pi/pi-coding-agent/"

    def titled(self, lines: list[bytes], title: str, last: str | None, now: str) -> list[bytes]:
        return [slot(title, now), *lines]

    def resume_command(self, new: str, prompt: str) -> list[str]:
        return ["omp", "--resume", next(iter(self.session_files(new)), new)] if new else ["omp"]


def slot(title: str, now: str) -> bytes:
    """The title's line, padded to its fixed length; a title that does not fit is cut."""
    while True:
        row: dict[str, object] = {"type": "title", "v": 1, "title": title, "source": "user",
                                  "updatedAt": now, "pad": ""}
        free = SLOT - 1 - len(line_of(row))
        if free >= 0:
            return line_of({**row, "pad": " " * free})
        title = title[:-1]
