"""Everything that takes part in a session, in the order in which it hears of events."""

from __future__ import annotations

from coderewind.bridge import browser, fork, tree, turns

PARTS = (turns.register, fork.register, tree.register, browser.register)
