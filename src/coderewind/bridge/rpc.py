"""JSON-RPC 2.0 over two pipes, one object a line (docs/format.md). No threads.

Messages are handled one after the other, in their order. Only while this side waits for a person,
or for something that the agent does in several steps, what else comes in is handled meanwhile: an
agent goes on working while somebody looks at a dialog. A handler holds no lock when it asks.
"""

from __future__ import annotations

import json
import os
import select

from coderewind.errors import RewindError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    # method, parameters, the call's id or 0 for what nobody waits for
    Handler = Callable[[str, dict[str, object], int], object]

_LARGEST = 1 << 28
_READ = 1 << 16
REFUSED = -32000
INVALID = -32600
BUG = -32603


class Gone(BaseException):
    """The agent has ended. Not an Exception: nothing on the way may take it for its own."""


class CallFailed(Exception):
    """The agent could not do what it was asked for."""


class Connection:
    """This end of the two pipes."""

    def __init__(self, reads: int, writes: int, handler: Handler,
                 report: Callable[[Exception], str]) -> None:
        self._reads = reads
        self._writes = writes
        self._handler = handler
        self._report = report  # takes an unexpected failure down; gives what is said of it
        self._buffer = bytearray()
        self._last = 0
        self._answers: dict[int, dict[str, object]] = {}
        self._open: set[int] = set()
        self._later: list[dict[str, object]] = []
        self._idle: dict[str, Callable[[], None]] = {}

    def serve(self) -> None:
        """Handle what comes until the other side has ended."""
        try:
            while True:
                self._handle(self._later.pop(0) if self._later else self._receive(idle=True))
        except Gone:
            self._do_idle(everything=True)

    def when_idle(self, name: str, task: Callable[[], None]) -> None:
        """Do something when the agent wants nothing, or has ended. Of one name, the last counts."""
        self._idle[name] = task

    def ask(self, method: str, *args: object, call: int = 0, meanwhile: bool = False) -> object:
        """Have the agent do something and wait for what comes of it.

        With `meanwhile`, other messages are handled until then.

        Raises:
            CallFailed: it could not.
            Gone: it has ended.
        """
        self._last += 1
        number = self._last
        self._open.add(number)
        self._send({"id": number, "method": method, "params": {"args": args, "call": call}})
        while number not in self._answers:
            if meanwhile and self._later:
                self._handle(self._later.pop(0))
                continue
            message = self._receive()
            if meanwhile or "method" not in message:
                self._handle(message)
            else:
                self._later.append(message)
        self._open.discard(number)
        answer = self._answers.pop(number)
        error = answer.get("error")
        if isinstance(error, dict):
            raise CallFailed(str(error.get("message", "it failed")))
        return answer.get("result")

    def tell(self, method: str, *args: object) -> None:
        """Have the agent do something that needs no answer."""
        self._send({"method": method, "params": {"args": args}})

    def _handle(self, message: dict[str, object]) -> None:
        method, number = message.get("method"), message.get("id")
        if not isinstance(method, str):
            if isinstance(number, int) and number in self._open:
                self._answers[number] = message
            return
        params = message.get("params")
        call = number if isinstance(number, int) else 0
        given = params if isinstance(params, dict) else {}
        try:
            result = self._handler(method, given, call)
        except RewindError as error:
            text = f"{error.message} ({error.hint})" if error.hint else error.message
            reply: dict[str, object] = {"error": {"code": REFUSED, "message": text}}
        except CallFailed as error:
            reply = {"error": {"code": REFUSED, "message": str(error)}}
        except Exception as error:  # noqa: BLE001 - the top of the surface: the agent must go on
            reply = {"error": {"code": BUG, "message": self._report(error)}}
        else:
            reply = {"result": result}
        if call:
            self._send({"id": call, **reply})

    def _do_idle(self, *, everything: bool) -> None:
        """Do what can wait, until there is something to read."""
        while self._idle:
            if not everything and select.select([self._reads], [], [], 0)[0]:
                return
            task = self._idle.pop(next(iter(self._idle)))
            try:
                task()
            except Gone:
                return
            except Exception as error:  # noqa: BLE001 - as for messages
                self._report(error)

    def _receive(self, *, idle: bool = False) -> dict[str, object]:
        """The next message. Lines end with LF and with nothing else."""
        while True:
            line, found, rest = self._buffer.partition(b"\n")
            if found:
                self._buffer = rest
                try:
                    message = json.loads(line)
                except (ValueError, RecursionError):
                    message = None
                if isinstance(message, dict):
                    return message
                self._send({"id": None, "error": {"code": INVALID, "message": "not an object"}})
                continue
            if idle:
                self._do_idle(everything=False)
            data = self._read()
            if not data or len(self._buffer) > _LARGEST:
                raise Gone
            self._buffer += data

    def _read(self) -> bytes:
        try:
            return os.read(self._reads, _READ)
        except OSError:
            return b""

    def _send(self, message: dict[str, object]) -> None:
        view = memoryview(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        try:
            while view:
                view = view[os.write(self._writes, view) :]
        except OSError:
            raise Gone from None
