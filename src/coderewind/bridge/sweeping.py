"""Retention inside the agent: at start, every 50 new snapshots, and when the session ends.

In a thread and with an engine of its own, so that no event waits for it; the locks between
processes hold between the two, too. Only at the end, when nobody waits, the store is compacted.
"""

from __future__ import annotations

import threading

from coderewind.bridge.bridge import Bridge
from coderewind.engine import retention, sweep
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.wiring import open_engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.bridge.bridge import Data

EVERY = 50


class Sweeping:
    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.settings = bridge.settings
        self._thread: threading.Thread | None = None
        self._swept_at = 0
        self._dropped = threading.Event()  # since the points were read last
        self._ever = False

    def begin(self, _data: Data, _leaf: str) -> None:
        self._start(self.settings.whole("retention.startupBudgetMs"))

    def settled(self, _data: Data, _leaf: str) -> None:
        points = self.bridge.points
        if self._dropped.is_set():
            self._dropped.clear()
            points.refresh()
            self.bridge.show()
        if points.made - self._swept_at >= EVERY:
            self._swept_at = points.made
            self._start(0)

    def end(self) -> None:
        """The agent has gone."""
        if self._thread is not None:
            self._thread.join()
        self._sweep(0)
        if self._ever:
            engine = self._engine()
            with engine.alone(0), engine.lock():
                retention.compact(engine.store)

    def _start(self, budget_ms: int) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._sweep, args=(budget_ms,), daemon=True)
            self._thread.start()

    def _sweep(self, budget_ms: int) -> None:
        session = self.bridge.session
        try:
            dropped = sweep.sweep(self._engine(), self.settings, session.agent, session.id,
                                  session.file, within_ms=budget_ms)
        except (RewindError, OSError):
            return  # somebody else is at work, or the disk is full: the next sweep does it
        if dropped:
            self._ever = True
            self._dropped.set()

    def _engine(self) -> Engine:
        return open_engine(self.bridge.engine.workspace.root)


def register(bridge: Bridge) -> None:
    if not sweep.is_wanted(bridge.settings) or not bridge.session.file:
        return
    sweeping = Sweeping(bridge)
    bridge.on("hello", sweeping.begin)
    for name in ("agent_settled", "session_stop"):
        bridge.on(name, sweeping.settled)
    bridge.at_end(sweeping.end)
