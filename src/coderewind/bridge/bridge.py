"""One agent's session, seen from here: hands its events, commands and tools to the parts.

A part registers what it handles (`register(bridge)`); bridge/parts.py lists them all.
"""

from __future__ import annotations

import time

from coderewind.agents import seen
from coderewind.bridge import marks
from coderewind.bridge.agent import WARNING, Agent
from coderewind.bridge.points import Points
from coderewind.bridge.rpc import Connection, Gone
from coderewind.bridge.session import Session
from coderewind.engine.engine import Engine
from coderewind.engine.settings import Settings, with_agents
from coderewind.errors import RewindError
from coderewind.hooks.place import NotProtected, place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from coderewind.bridge.restores import Moved

    Data = dict[str, object]
    # an event's data and the leaf at that moment -> what the agent is told
    EventHandler = Callable[[Data, str], Data | None]
    CommandHandler = Callable[[str], None]
    ToolHandler = Callable[[str, Data], Data]

PROTOCOL = 1
_HEARD = ("agent_settled", "session_stop", "session_shutdown")  # events that doctor is told of
_ALIVE_EVERY = 1.0  # seconds


class Bridge:
    """What all parts share."""

    agent: Agent
    session: Session
    engine: Engine
    points: Points
    settings: Settings
    when_idle: Callable[[str, Callable[[], None]], None]  # for what can wait

    def __init__(self) -> None:
        self._events: dict[str, list[EventHandler]] = {}
        self._commands: dict[str, CommandHandler] = {}
        self._tools: dict[str, ToolHandler] = {}
        self._at_end: list[Callable[[], None]] = []
        self._said: set[str] = set()
        self.known: set[str] = set()  # entries of the session
        self.navigating: Moved | None = None  # our own navigation: nothing is to be asked
        self.exploring = ""  # the goal of the agent's own checkpoint that is open
        self.is_on = False
        self._alive_at = 0.0

    def connect(self, connection: Connection) -> None:
        self.agent = Agent(connection)
        self.when_idle = connection.when_idle

    # ---- for the parts

    def on(self, event: str, handler: EventHandler) -> None:
        self._events.setdefault(event, []).append(handler)

    def command(self, name: str, handler: CommandHandler) -> None:
        self._commands[name] = handler

    def tool(self, definition: Data, handler: ToolHandler) -> None:
        """Offer the model a tool; its parameters are a JSON Schema."""
        self._tools[str(definition["name"])] = handler
        self.agent.register_tool(definition)

    def at_end(self, handler: Callable[[], None]) -> None:
        """Do something when the agent has gone: nobody waits for it."""
        self._at_end.append(handler)

    def mark(self, custom: str, data: Data) -> None:
        """Write down in the session which snapshots belong where."""
        in_repository = self.engine.store.mode == "repo"
        self.agent.append(custom, marks.apart(data) if in_repository else data)

    def say_once(self, message: str) -> None:
        """A failure that the user should know of, but not at every event."""
        if message not in self._said:
            self._said.add(message)
            self.agent.notify(f"Rewind: {message}", WARNING)

    def say(self, message: str) -> None:
        """What was done, unless the user wants to hear nothing."""
        if not self.session.is_silent:
            self.agent.notify(message)

    def show(self) -> None:
        """The footer."""
        if not self.session.is_silent:
            points, snapshots = self.points.counts(self.known)
            exploring = f" · exploring: {self.exploring}" if self.exploring else ""
            self.agent.set_status(f"◆ {points} points / {snapshots} snapshots{exploring}")

    # ---- for the connection

    def handle(self, method: str, params: Data, call: int) -> object:
        """Answer one request of the agent."""
        before, self.agent.call = self.agent.call, call or self.agent.call
        try:
            if method == "hello":
                return self._hello(params)
            if not self.is_on:
                raise RewindError("the bridge was not greeted, or is off here")
            if method == "event":
                return self._event(params)
            if method == "command":
                self._command(params)
                return None
            if method == "tool":
                return self._tool(params)
            raise RewindError(f"no method {method}")
        finally:
            self.agent.call = before

    def end(self) -> None:
        for handler in self._at_end if self.is_on else []:
            try:
                handler()
            except RewindError:
                continue  # nobody is left who could be told

    def _hello(self, params: Data) -> Data:
        from coderewind import __version__
        from coderewind.bridge.parts import PARTS

        if params.get("protocol") != PROTOCOL:
            raise RewindError("the extension and Rewind are of different versions",
                              hint="rewind init brings them together")
        self.session = Session(params)
        self.agent.has_ui = self.session.has_ui
        try:
            place = place_of(self.session.cwd, "")
        except NotProtected as error:
            return {"protocol": PROTOCOL, "version": __version__, "off": error.message}
        except RewindError as error:
            return {"protocol": PROTOCOL, "version": __version__,
                    "off": f"no checkpoints: {error.message}"}
        self.engine = place.engine
        self.engine.progress = self._progress
        self.settings, problems = with_agents(place.settings, self.session.settings.get("rewind"),
                                              "the agent's settings")
        self.session.is_silent = self.settings.flag("silentCheckpoints")
        self.points = Points(self.engine, self.session)
        self.is_on = True
        for register in PARTS:
            register(self)
        for problem in problems:
            self.say_once(problem)
        # The first prompt waits for this, not for the first capture.
        self.agent.ready(["before_agent_start", "turn_end"] if self._tools else [])
        self._heard("session_start")
        self._emit("hello", {}, self.session.leaf)
        return {"protocol": PROTOCOL, "version": __version__}

    def _progress(self, _what: str, _count: int) -> None:
        """At work; a restore goes on when nobody is left to hear it."""
        now = time.monotonic()
        if now - self._alive_at > _ALIVE_EVERY:
            self._alive_at = now
            try:
                self.agent.alive()
            except Gone:
                pass

    def _event(self, params: Data) -> Data | None:
        name, data, leaf = str(params.get("name")), params.get("data"), params.get("leaf")
        if name in _HEARD:
            self._heard(name)
        return self._emit(name, data if isinstance(data, dict) else {},
                          leaf if isinstance(leaf, str) else "")

    def _heard(self, event: str) -> None:
        try:
            seen.note(self.session.agent, event)
        except (OSError, RewindError):
            pass  # only doctor would know less

    def _emit(self, name: str, data: Data, leaf: str) -> Data | None:
        answer: Data | None = None
        for handler in self._events.get(name, []):
            answer = handler(data, leaf) or answer
        return answer

    def _command(self, params: Data) -> None:
        handler = self._commands.get(str(params.get("name")))
        if handler is None:
            raise RewindError("this command is not known here", hint="rewind init updates both")
        handler(str(params.get("args") or ""))

    def _tool(self, params: Data) -> Data:
        handler = self._tools.get(str(params.get("name")))
        if handler is None:
            raise RewindError("this tool is not known here")
        given = params.get("params")
        return handler(str(params.get("id")), given if isinstance(given, dict) else {})
