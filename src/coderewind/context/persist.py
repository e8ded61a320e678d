"""What an entry becomes on its way into the file: texts capped, images put aside.

What is returned is what the file holds, and the tree uses nothing else: a live session and one
that is resumed see the same.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re

from coderewind.store.pack import write_durably

MOST_CHARACTERS = 500_000
CUT = "\n\n[Session persistence truncated large content]"
BLOB = "blob:sha256:"
_SMALL_IMAGE = 1024  # characters of base64; smaller ones stay in the entry
_BLOB_REF = re.compile(BLOB + r"([0-9a-f]{64})\Z")

# A provider checks these byte for byte when they are sent again, so they are never cut.
_SIGNED = {
    "thinking": "thinkingSignature",
    "text": "textSignature",
    "toolCall": "thoughtSignature",
    "redactedThinking": "data",
    "reasoning": "encrypted_content",
}

Json = dict[str, object]


class Blobs:
    """Images beside the session, each under the SHA-256 of its bytes."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def put(self, data: bytes) -> str:
        """Keep bytes; the reference that stands for them in an entry."""
        name = hashlib.sha256(data).hexdigest()
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            write_durably(os.fsencode(path), data)
        return BLOB + name

    def get(self, reference: str) -> bytes | None:
        """The bytes of a reference; None when they are gone, changed, or it is none."""
        match = _BLOB_REF.match(reference)
        if match is None:
            return None
        try:
            with open(os.path.join(self.folder, match[1]), "rb") as file:
                data = file.read()
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == match[1] else None


def persisted(value: object, blobs: Blobs | None) -> object:
    """A value as the file will hold it; the same object when nothing needs changing."""
    if isinstance(value, str):
        return capped(value)
    if isinstance(value, list):
        items = [persisted(item, blobs) for item in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    if value.get(_SIGNED.get(str(value.get("type")), "")):
        return value
    if blobs is not None and _is_image(value):
        return _put_aside(value, blobs)
    fields = {key: persisted(item, blobs) for key, item in value.items()}
    return fields if any(fields[key] is not value[key] for key in value) else value


def with_images(value: object, blobs: Blobs | None) -> object:
    """The same with each image's bytes in its place again; a lost one is said in words."""
    if isinstance(value, list):
        items = [with_images(item, blobs) for item in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    data = value.get("data")
    if value.get("type") == "image" and isinstance(data, str) and data.startswith(BLOB):
        found = blobs.get(data) if blobs is not None else None
        if found is None:
            return {"type": "text", "text": f"[image missing: {data}]"}
        return {**value, "data": base64.b64encode(found).decode()}
    fields = {key: with_images(item, blobs) for key, item in value.items()}
    return fields if any(fields[key] is not value[key] for key in value) else value


def line_of(entry: Json) -> bytes:
    """An entry as Pi and omp write it."""
    try:
        text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which only JSON's escapes can say
        return json.dumps(entry, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def title_slot(title: str, source: str, updated_at: str, size: int) -> bytes:
    """omp's first line: the session's title, padded with blanks to its fixed size."""
    entry: Json = {"type": "title", "v": 1, "title": title}
    if source:
        entry["source"] = source
    entry |= {"updatedAt": updated_at, "pad": ""}
    while len(line := line_of(entry)) > size and entry["title"]:
        entry["title"] = str(entry["title"])[:-1]
    entry["pad"] = " " * (size - len(line))
    return line_of(entry)


def capped(text: str, most: int = MOST_CHARACTERS) -> str:
    """A text, cut and saying so where it is longer than what is kept."""
    return text if len(text) <= most else text[: most - len(CUT)] + CUT


def _is_image(value: Json) -> bool:
    data = value.get("data")
    return (value.get("type") == "image" and isinstance(data, str)
            and len(data) >= _SMALL_IMAGE and not data.startswith(BLOB))


def _put_aside(image: Json, blobs: Blobs) -> Json:
    try:
        data = base64.b64decode(str(image["data"]), validate=True)
    except binascii.Error:
        return image
    if base64.b64encode(data).decode() != image["data"]:
        return image  # another way of writing base64: only the text itself brings it back
    return {**image, "data": blobs.put(data)}
