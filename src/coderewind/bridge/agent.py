"""What the agent's side does for us: dialogs, the session, the commands of its own."""

from __future__ import annotations

from coderewind.bridge.rpc import CallFailed, Connection

INFO = "info"
WARNING = "warning"
ERROR = "error"

MESSAGE = "message"
USER = "user"
ASSISTANT = "assistant"
COMPACTION = "compaction"
SUMMARY = "branch_summary"


class Entry:
    """One entry of the session: its place, what it is, a prompt's words. Never its contents."""

    __slots__ = ("custom", "data", "id", "kind", "parent", "text")

    def __init__(self, row: dict[str, object]) -> None:
        self.id = _text(row.get("id"))
        self.parent = _text(row.get("parentId"))
        # "user" and "assistant" for these two, else the entry's type or the message's role
        kind = _text(row.get("type"))
        message = row.get("message")
        role = row.get("role") or (message.get("role") if isinstance(message, dict) else "")
        self.kind = _text(role) if kind == MESSAGE else kind
        self.text = _text(row.get("text"))
        self.custom = _text(row.get("customType"))
        data = row.get("data")
        self.data: dict[str, object] = data if isinstance(data, dict) else {}

    @property
    def has_point(self) -> bool:
        """Whether files can be restored to this entry by itself."""
        return self.kind in (USER, ASSISTANT, COMPACTION, SUMMARY) or (
            self.kind == "custom_message")


class Agent:
    """Pi or omp, on the other end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.call = 0  # the call that is being answered: it decides what the agent allows
        self.has_ui = False

    # ---- the user

    def select(self, title: str, options: list[str]) -> str:
        """What the user chose, '' for nothing."""
        answer = self._wait_for("ui.select", title, options) if self.has_ui else None
        return answer if isinstance(answer, str) and answer in options else ""

    def confirm(self, title: str, message: str) -> bool:
        return self.has_ui and self._wait_for("ui.confirm", title, message) is True

    def notify(self, message: str, kind: str = INFO) -> None:
        if self.has_ui:
            self._connection.tell("ui.notify", message, kind)

    def set_status(self, text: str) -> None:
        if self.has_ui:
            self._connection.tell("ui.setStatus", text)

    def set_editor_text(self, text: str) -> None:
        if self.has_ui:
            self._connection.tell("ui.setEditorText", text)

    def listen_to_keys(self) -> None:
        self._connection.tell("keys.listen")

    def set_setting(self, key: str, value: object) -> None:
        """Change one of the agent's own settings, where no file of ours to edit holds them."""
        self._ask("settings.set", key, value)

    def alive(self) -> None:
        """Say that we are still at work."""
        self._connection.tell("alive")

    def ready(self, waits: list[str]) -> None:
        """Everything is registered; which of the events that may be waited for are."""
        self._connection.tell("ready", waits)

    # ---- the session

    def leaf(self) -> str:
        return _text(self._ask("session.leaf"))

    def entry(self, id_: str) -> Entry | None:
        row = self._ask("session.entry", id_)
        return Entry(row) if isinstance(row, dict) else None

    def message(self, id_: str) -> dict[str, object]:
        """The whole message of an entry; empty when there is none."""
        row = self._ask("session.entry", id_)
        message = row.get("message") if isinstance(row, dict) else None
        return message if isinstance(message, dict) else {}

    def entries(self) -> list[Entry]:
        """The whole tree, in the order of the file."""
        return _entries(self._ask("session.entries"))

    def branch(self, leaf: str, known: str = "") -> list[Entry]:
        """From an entry up to one that is known, or to the root; newest first."""
        return _entries(self._ask("session.branch", leaf, known)) if leaf else []

    def append(self, custom: str, data: dict[str, object]) -> None:
        """Append an entry that the model never sees."""
        self._ask("session.appendEntry", custom, data)

    def set_label(self, entry: str, label: str) -> None:
        self._ask("session.setLabel", entry, label)

    # ---- the agent

    def is_idle(self) -> bool:
        return self._ask("agent.isIdle") is True

    def register_tool(self, tool: dict[str, object]) -> None:
        self._ask("agent.registerTool", tool)

    def register_command(self, name: str, description: str) -> None:
        self._ask("agent.registerCommand", name, description)

    def send_message(self, message: dict[str, object]) -> None:
        """Give the model a message, without asking it to answer; it appears in its own time."""
        self._ask("agent.sendMessage", message, {"triggerTurn": False})

    def navigate(self, entry: str) -> bool:
        """Move the leaf; only while a command is being answered. False when it was called off.

        Raises:
            CallFailed: the agent refuses, with its reason.
        """
        answer = self._wait_for("command.navigateTree", entry, {"summarize": False})
        if not isinstance(answer, dict):
            raise CallFailed("the conversation can only be moved by a command")
        return answer.get("cancelled") is not True

    def wait_for_idle(self) -> None:
        """Until the agent has stopped; only while a command is being answered."""
        self._wait_for("command.waitForIdle")

    def _ask(self, method: str, *args: object) -> object:
        return self._connection.ask(method, *args, call=self.call)

    def _wait_for(self, method: str, *args: object) -> object:
        """Ask for what takes its time; other events are handled meanwhile."""
        return self._connection.ask(method, *args, call=self.call, meanwhile=True)


def _entries(answer: object) -> list[Entry]:
    rows = answer if isinstance(answer, list) else []
    found = [Entry(row) for row in rows if isinstance(row, dict)]
    return [entry for entry in found if entry.id]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
