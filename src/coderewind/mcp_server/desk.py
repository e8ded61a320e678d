"""What the tools share: the folder, one call at a time, and plans that an agent was shown.

What comes from a client is untrusted: names go through the same selection as a user's words,
paths may not leave the folder, and a restore needs a plan that was shown first.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from coderewind.cli.app import App
from coderewind.engine import settings
from coderewind.engine.engine import Engine
from coderewind.errors import RewindError
from coderewind.model.plan import Plan
from coderewind.model.records import Checkpoint
from coderewind.wiring import open_engine

_OFFERS = 16  # plans that can be waited for at once
_NOT_ALLOWED = RewindError(
    "agents may not restore here",
    hint="only the user can allow it: rewind config agents.mayRestore true",
)


class Offer:
    """A plan that an agent was shown: what it may ask to have done, exactly once."""

    def __init__(self, verb: str, checkpoint: Checkpoint, paths: tuple[bytes, ...],
                 plan: Plan) -> None:
        self.verb = verb
        self.checkpoint = checkpoint
        self.paths = paths
        self.plan = plan

    def still_holds(self, plan: Plan) -> bool:
        return _fingerprint(self.plan) == _fingerprint(plan)


class Desk:
    """One folder, served to one client."""

    def __init__(self, directory: str) -> None:
        self._app = App(os.path.abspath(directory), as_json=True)
        self._one_at_a_time = threading.Lock()
        self._offers: dict[str, Offer] = {}

    @contextmanager
    def engine(self, *, create: bool = False) -> Iterator[Engine]:
        """The folder's engine, for one call."""
        with self._one_at_a_time:
            engine = open_engine(self._app.directory, create=create)
            try:
                yield engine
            finally:
                engine.store.objects.close()

    @contextmanager
    def engine_that_may_restore(self) -> Iterator[Engine]:
        with self.engine() as engine:
            if not settings.load(engine.store).flag("agents.mayRestore"):
                raise _NOT_ALLOWED
            yield engine

    def may_restore(self) -> bool:
        try:
            with self.engine_that_may_restore():
                return True
        except RewindError:
            return False

    def may_protect(self) -> bool:
        """Whether an agent's first save may make a store."""
        return settings.load(None).flag("autoInit")

    def scope(self, engine: Engine, paths: list[str]) -> tuple[bytes, ...]:
        """Paths as the agent named them, relative to the folder's root."""
        for path in paths:
            if not path or "\0" in path:
                raise RewindError("a path is empty or has a NUL in it")
        return tuple(self._app.root_path(engine, path) for path in paths)

    # ---- plans

    def offer(self, offer: Offer) -> str:
        """The token that stands for a plan."""
        while len(self._offers) >= _OFFERS:
            del self._offers[next(iter(self._offers))]
        token = secrets.token_urlsafe(12)
        self._offers[token] = offer
        return token

    def offered(self, token: str, verb: str) -> Offer:
        offer = self._offers.get(token)
        if offer is None or offer.verb != verb:
            raise RewindError("this plan is not known, or was used already",
                              hint=f"call {verb} without a plan for a new one")
        return offer

    def withdraw(self, token: str) -> None:
        self._offers.pop(token, None)


def _fingerprint(plan: Plan) -> bytes:
    """What a plan comes to: the same steps with the same contents."""
    digest = hashlib.sha256()
    for step in plan.steps:
        fields = (step.action.encode(), step.path, b"%o %o" % (step.git_mode, step.perm),
                  step.oid, step.old_oid)
        digest.update(b"".join(b"%d:%s" % (len(field), field) for field in fields))
    for kept in (*plan.kept, *plan.blocked):
        digest.update(b"%d=%s" % (len(kept.path), kept.path))
    return digest.digest()
