"""Everything that takes part in a session, in the order in which it hears of events."""

from __future__ import annotations

from coderewind.bridge import turns

PARTS = (turns.register,)
