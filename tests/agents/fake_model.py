"""A model on loopback that says what the prompt tells it to. Speaks Anthropic's messages API.

    go SCRIPT:[step, step, [step, step], ...]

The newest user text that holds SCRIPT: counts. Step k is answered when k answers follow it, so the
server keeps no state, and a conversation may be cut or resumed at will; a list is one answer with
parallel calls. A step is {"text": words}, {"tool": name, "input": {...}}, or one of these with
"sleep": seconds, or with "fail": times, to be answered with an error so many times first, or with
"full": true, which claims that the context is nearly full. After the last step it says "done",
without a script "ok: <the prompt>".
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
_FULL = 990_000  # tokens, of the million that Claude Code counts with
_REMINDERS = re.compile(r"^\s*(?:<([\w-]+)[^>]*>.*?</\1>\s*)+", re.DOTALL)


def script(*steps: Json | list[Json]) -> str:
    """The words that make the model answer with `steps`.

    Blanks in what it will say are escaped, so that a test that waits for these words on a screen
    does not find them in the prompt.
    """
    text = json.dumps(list(steps))
    return "SCRIPT:" + re.sub(r'("text": ")((?:[^"\\]|\\.)*)',
                              lambda m: m[1] + m[2].replace(" ", "\\u0020"), text)


def call(name: str, /, **given: Any) -> Json:
    return {"tool": name, "input": given}


def text(words: str) -> Json:
    return {"text": words}


class FakeModel:
    """The server, in a thread, on a free port."""

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self.failed: dict[str, int] = {}
        model = self

        class Handler(_Handler):
            fake = model

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def heard(self) -> list[str]:
        """The conversation in the newest request that offered tools, in short."""
        bodies = [body for body in self.requests if body.get("tools")]
        return brief(bodies[-1]) if bodies else []

    def turns(self) -> int:
        """How many requests that offered tools came so far."""
        return sum(1 for body in self.requests if body.get("tools"))

    def answer(self, body: Json) -> list[Json]:
        """The steps that answer a request."""
        return answer(body)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeModel

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._reply({})

    def do_GET(self) -> None:
        self._reply({"data": [], "has_more": False})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        if self.path.split("?")[0].endswith("count_tokens"):
            self._reply({"input_tokens": len(raw) // 4})
            return
        self.fake.requests.append(body)
        steps = self.fake.answer(body)
        if any(self._fails(step) for step in steps):
            self._reply({"type": "error", "error": {"type": "api_error", "message": "no"}}, 500)
            return
        blocks = [_block(step) for step in steps]
        message: Json = {
            "id": "msg_" + secrets.token_hex(11), "type": "message", "role": "assistant",
            "model": body.get("model", "fake"), "content": [], "stop_reason": None,
            "stop_sequence": None, "usage": {"input_tokens": len(raw) // 4, "output_tokens": 20},
        }
        if any(step.get("full") for step in steps):
            message["usage"]["input_tokens"] = _FULL
        calls = any(block["type"] == "tool_use" for block in blocks)
        reason = "tool_use" if calls else "end_turn"
        if body.get("stream"):
            self._stream(message, blocks, reason)
        else:
            self._reply({**message, "content": blocks, "stop_reason": reason})

    def _fails(self, step: Json) -> bool:
        key = json.dumps(step)
        self.fake.failed[key] = self.fake.failed.get(key, 0) + 1
        return self.fake.failed[key] <= int(step.get("fail", 0))

    def _stream(self, message: Json, blocks: list[Json], reason: str) -> None:
        events: list[Json] = [{"type": "message_start", "message": message}]
        for number, block in enumerate(blocks):
            if block["type"] == "text":
                start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                start = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events += [
                {"type": "content_block_start", "index": number, "content_block": start},
                {"type": "content_block_delta", "index": number, "delta": delta},
                {"type": "content_block_stop", "index": number},
            ]
        events += [
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
             "usage": {"output_tokens": 20}},
            {"type": "message_stop"},
        ]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.close_connection = True
        try:
            self.end_headers()
            for event in events:
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the agent was interrupted

    def _reply(self, data: Json, status: int = 200) -> None:
        raw = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)


def answer(body: Json) -> list[Json]:
    """The steps that answer a request."""
    if body.get("output_config", {}).get("format") or body.get("output_format"):
        return [text(json.dumps({"title": "Fake title", "isNewTopic": True}))]
    steps: list[Any] | None = None
    said, answered, plain = False, 0, ""
    for message in body.get("messages", []):
        if message.get("role") == "assistant":
            answered += 0 if said else 1
            said = True
            continue
        if message.get("role") != "user":
            continue
        said = False
        words = _texts(message.get("content"))
        found = next((s for s in map(_script_in, reversed(words)) if s is not None), None)
        mine = [w for w in map(_without_reminders, words) if w]
        if found is not None or (mine and not _has_result(message)):
            steps, answered, plain = found, 0, (mine or [""])[-1]
    if "summary of the conversation" in plain.lower() or "detailed summary" in plain.lower():
        return [text("<analysis>a</analysis>\n<summary>FAKE SUMMARY</summary>")]
    if not body.get("tools"):
        return [text("Fake title")]
    if steps is None:
        return [text("ok: " + plain.strip()[:60])]
    step = steps[answered] if answered < len(steps) else text("done")
    rows = step if isinstance(step, list) else [step]
    time.sleep(max(row.get("sleep", 0) for row in rows))
    return rows


def brief(body: Json) -> list[str]:
    """One short string for each thing in a request: U:words, A:words, A:<Tool>, U:<result>."""
    out = []
    for message in body.get("messages", []):
        if message.get("role") not in ("user", "assistant"):
            continue
        who = "A" if message["role"] == "assistant" else "U"
        content = message.get("content") or []
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block.get("type") == "tool_use":
                out.append(f"A:<{block['name']}>")
            elif block.get("type") == "tool_result":
                out.append("U:<result>")
            elif block.get("text"):
                words = _without_reminders(block["text"].split("SCRIPT:")[0]).strip('" \n')
                if words:
                    out.append(f"{who}:{words[:60]}")
    return out


def _block(step: Json) -> Json:
    if "tool" in step:
        return {"type": "tool_use", "id": "toolu_" + secrets.token_hex(11), "name": step["tool"],
                "input": step.get("input", {})}
    return {"type": "text", "text": step["text"]}


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or [] if isinstance(block.get("text"), str)]


def _has_result(message: Json) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(b.get("type") == "tool_result" for b in content)


def _script_in(words: str) -> list[Any] | None:
    start = words.find("SCRIPT:")
    if start < 0:
        return None
    try:
        found = json.JSONDecoder().raw_decode(words[start + 7 :])[0]
    except ValueError:
        return [text("the script does not parse")]
    return found if isinstance(found, list) else None


def _without_reminders(words: str) -> str:
    words = _REMINDERS.sub("", words).strip()
    return "" if words.startswith("<") else words
