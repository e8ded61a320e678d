"""The conversation itself, kept in the store: the agent's file may be deleted one day."""

from __future__ import annotations

from coderewind.agents.known import adapter_of
from coderewind.bridge.bridge import Bridge
from coderewind.engine.archive import archive
from coderewind.errors import RewindError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coderewind.bridge.bridge import Data

_AT = ("agent_settled", "session_stop", "session_compact", "session_tree", "session_shutdown")
_AT_ONCE = 8 << 20


def register(bridge: Bridge) -> None:
    session = bridge.session
    if not session.id or not session.file:
        return  # a session that is not kept
    adapter = adapter_of(session.agent)
    marks: dict[str, list[object]] = {}

    def later(_data: Data, _leaf: str) -> None:
        bridge.when_idle("archive", keep)

    def keep() -> None:
        engine = bridge.engine
        try:
            with engine.working() as now_ns:
                archive(engine, adapter, session.id, session.file, marks, now_ns, limit=_AT_ONCE)
        except RewindError as error:
            bridge.say_once(f"the conversation was not archived: {error.message}")
        finally:
            engine.store.objects.close()

    for name in _AT:
        bridge.on(name, later)
