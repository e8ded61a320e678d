"""Everything that takes part in a session, in the order in which it hears of events."""

from __future__ import annotations

from coderewind.bridge import archiving, browser, fork, omp, sweeping, tree, turns
from coderewind.bridge.bridge import Bridge


def _context(bridge: Bridge) -> None:
    """The agent's own checkpoints, where the user has turned them on."""
    if not bridge.settings.flag("checkpoint.enabled"):
        return
    if bridge.session.agent == "omp":
        from coderewind.bridge import omp_context

        omp_context.register(bridge)
    else:
        from coderewind.bridge import context

        context.register(bridge)


PARTS = (turns.register, omp.register, archiving.register, fork.register, tree.register,
         browser.register, sweeping.register, _context)
