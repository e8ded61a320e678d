"""Pi: where its sessions are, and the command that continues in one."""

from __future__ import annotations

import os

from coderewind.agents.branched import Branched
from coderewind.agents.transcript import line_of


class Pi(Branched):
    name = "pi"
    title = "Pi"
    program = "pi"
    folder = ".pi"
    package = "/pi-coding-agent/"

    def session_folders(self) -> list[str]:
        """The agent's own, and the one that the user set."""
        folders = super().session_folders()
        configured = os.environ.get("PI_CODING_AGENT_SESSION_DIR") or self.setting("sessionDir")
        if isinstance(configured, str) and configured:
            own = os.path.expanduser(configured)
            if os.path.isabs(own):
                folders.append(own)
        return folders

    def titled(self, lines: list[bytes], title: str, last: str | None, now: str) -> list[bytes]:
        name: dict[str, object] = {"type": "session_info", "id": os.urandom(4).hex(),
                                   "parentId": last, "timestamp": now, "name": title}
        return [*lines, line_of(name)]

    def resume_command(self, new: str, prompt: str) -> list[str]:
        # By its path, which holds from every folder; a prompt would be sent, not offered.
        return ["pi", "--session", next(iter(self.session_files(new)), new)] if new else ["pi"]
