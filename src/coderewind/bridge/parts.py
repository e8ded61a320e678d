"""Everything that takes part in a session, in the order in which it hears of events."""

from __future__ import annotations

from coderewind.bridge import archiving, browser, fork, omp, sweeping, tree, turns

PARTS = (turns.register, omp.register, archiving.register, fork.register, tree.register,
         browser.register, sweeping.register)
