"""Everything that takes part in a session, in the order in which it hears of events."""

from __future__ import annotations

from coderewind.bridge import archiving, browser, fork, omp, sweeping, tree, turns
from coderewind.bridge.bridge import Bridge


def _context(bridge: Bridge) -> None:
    """The agent's own checkpoints, where the user has turned them on."""
    if bridge.session.agent == "pi" and bridge.settings.flag("checkpoint.enabled"):
        from coderewind.bridge import context

        context.register(bridge)


PARTS = (turns.register, omp.register, archiving.register, fork.register, tree.register,
         browser.register, sweeping.register, _context)
