"""Register our hooks in the agents' settings files, and take them out again.

Rules: only entries that run our command are touched; everything else keeps its place, unknown
keys included; a file that is not understood is refused, not mended; the file is replaced by a
rename, its first version kept beside it, and a link to it is followed.
"""

from __future__ import annotations

import json
import os
import shlex
import sys

from coderewind.agents.connection import Change
from coderewind.agents.tier import Hook
from coderewind.errors import RewindError
from coderewind.store.pack import write_durably

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "coderewind.__main__"
BACKUP = ".before-rewind"
# What Claude Code leaves empty when it takes a plugin out, as it does with ours.
_LEFT_BY_PLUGINS = ("enabledPlugins", "extraKnownMarketplaces")


class FileChange(Change):
    """What registering or unregistering would make of one file."""

    __slots__ = ("after", "before")

    def __init__(self, path: str, before: bytes | None, after: bytes | None, *, had_ours: bool
                 ) -> None:
        super().__init__(path, had_ours=had_ours)
        self.before = before  # None: there is no such file
        self.after = after  # None: the file is to go

    @property
    def is_change(self) -> bool:
        return self.before != self.after

    def apply(self) -> None:
        """Replace the file: a temporary one beside it, renamed; its first version is kept."""
        if not self.is_change:
            return
        path = os.path.realpath(self.path)
        backup = path + BACKUP
        try:
            if _read(path) != self.before:
                raise RewindError(f"{self.path} was changed by something else meanwhile",
                                  hint="nothing was changed; try again")
            if self.after is None:
                os.unlink(path)
                return
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            mode = os.stat(path).st_mode & 0o777 if self.before is not None else 0o600
            if self.before is not None and not self.had_ours:
                write_durably(os.fsencode(backup), self.before, mode)
            write_durably(os.fsencode(path), self.after, mode)
            if self.had_ours and self.after == _read(backup):
                os.unlink(backup)
        except OSError as error:
            raise RewindError(f"{self.path} cannot be written: {error.strerror}",
                              hint="nothing was changed") from error


def hook_command(agent: str, event: str) -> list[str]:
    """The command that agents run: this very interpreter and package, nothing looked up.

    -I and -S keep the user's PYTHONPATH, site-packages and current folder out of it. Not a script's
    path: Python ends with 2 when a script is gone, and 2 would block every tool of the agent.
    """
    return [*_program(), "hook", "--agent", agent, event]


def bridge_command() -> list[str]:
    """The command that the extension in Pi and omp runs."""
    return [*_program(), "bridge"]


def _program() -> list[str]:
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = f"import sys; sys.path.append({package!r}); from {MARK} import main; main()"
    return [sys.executable, "-I", "-S", "-c", code]


def entry(agent: str, hook: Hook, *, exec_form: bool) -> dict[str, object]:
    """One registration, as the agent's settings spell it."""
    command = hook_command(agent, hook.event)
    handler: dict[str, object] = {"type": "command"}
    if exec_form:
        handler |= {"command": command[0], "args": command[1:]}
    else:
        handler |= {"command": shlex.join(command)}
    handler["timeout"] = hook.timeout
    group: dict[str, object] = {"matcher": hook.matcher} if hook.matcher else {}
    return {**group, "hooks": [handler]}


def is_ours(handler: object) -> bool:
    """Whether a handler runs our command."""
    if not isinstance(handler, dict):
        return False
    args = handler.get("args")
    words = [handler.get("command"), *(args if isinstance(args, list) else [])]
    text = " ".join(word for word in words if isinstance(word, str))
    return MARK in text and " hook " in text


def plan_register(
    path: str, agent: str, hooks: list[Hook], *, nested: bool, exec_form: bool
) -> FileChange:
    """What the file becomes with our hooks. `nested`: events lie below a key `hooks`."""
    data, before, indent = _load(path)
    had_ours = _find_ours(_events(data, path, nested=nested))
    events = _events(data, path, nested=nested, create=True)
    wanted = {hook.event: entry(agent, hook, exec_form=exec_form) for hook in hooks}
    for event in [*events, *(event for event in wanted if event not in events)]:
        groups = events.get(event, [])
        if not isinstance(groups, list):
            if event not in wanted:
                continue
            raise RewindError(f"{path}: hooks.{event} is not a list",
                              hint="mend the file; nothing was changed")
        place = next((i for i, group in enumerate(groups) if _has_ours(group)), len(groups))
        kept = _without_ours(groups)
        if event in wanted:
            kept.insert(min(place, len(kept)), wanted[event])
        if kept:
            events[event] = kept
        elif event in events and _find_ours({event: groups}):
            del events[event]
    if had_ours and data == _load(path)[0]:
        return FileChange(path, before, before, had_ours=True)
    return FileChange(path, before, _dump(data, before, indent), had_ours=had_ours)


def plan_unregister(path: str, *, nested: bool) -> FileChange:
    """What the file becomes without our hooks: its old self, byte for byte, where it can be."""
    data, before, indent = _load(path)
    events = _events(data, path, nested=nested)
    if before is None or not _find_ours(events):
        return FileChange(path, before, before, had_ours=False)
    for event, groups in list(events.items()):
        if isinstance(groups, list) and _find_ours({event: groups}):
            kept = _without_ours(groups)
            if kept:
                events[event] = kept
            else:
                del events[event]
    if nested and not events:
        del data["hooks"]
    original = _read(os.path.realpath(path) + BACKUP)
    first = _parse(original, path) if original is not None else {}
    for key in _LEFT_BY_PLUGINS:
        if data.get(key) == {} and key not in first:
            del data[key]
    if original is None and not data:
        return FileChange(path, before, None, had_ours=True)
    if original is not None and first == data:
        return FileChange(path, before, original, had_ours=True)
    return FileChange(path, before, _dump(data, before, indent), had_ours=True)


def plan_edit(path: str, edit: Callable[[dict[str, object]], None]) -> FileChange:
    """What a file becomes when its object is edited; as it is, when that changes nothing."""
    data, before, indent = _load(path)
    edit(data)
    if before is None or data == _load(path)[0]:
        return FileChange(path, before, before, had_ours=False)
    return FileChange(path, before, _dump(data, before, indent), had_ours=False)


def registered_events(path: str, *, nested: bool) -> list[str]:
    """The events that our command is registered for in a file."""
    events = _events(_load(path)[0], path, nested=nested)
    return [event for event, groups in events.items() if _find_ours({event: groups})]


def broken_commands(path: str, *, nested: bool) -> list[str]:
    """What is wrong with our registrations in a file: an interpreter or package that is gone."""
    problems = []
    events = _events(_load(path)[0], path, nested=nested)
    for event, groups in events.items():
        for group in groups if isinstance(groups, list) else []:
            for handler in group.get("hooks", []) if isinstance(group, dict) else []:
                if is_ours(handler) and not _runs(handler, event):
                    problems.append(f"{event}: its command is not this installation's")
    return problems


def is_switched_off(path: str, *, nested: bool) -> bool:
    """Whether a file switches all hooks off: Claude Code's word for it, or Droid's."""
    data = _load(path)[0]
    return (data.get("disableAllHooks") is True
            or _events(data, path, nested=nested).get("hooksDisabled") is True)


# ---- inside a file


def _runs(handler: dict[str, object], event: str) -> bool:
    args = handler.get("args")
    if isinstance(args, list):
        words = [handler.get("command"), *args]
    else:
        words = [*shlex.split(str(handler.get("command")))]
    agent = str(words[-2]) if len(words) > 2 else ""
    return words == hook_command(agent, event)


def _events(
    data: dict[str, object], path: str, *, nested: bool, create: bool = False
) -> dict[str, object]:
    if not nested and not isinstance(data.get("hooks"), dict):
        return data
    if "hooks" not in data:
        if not create:
            return {}
        data["hooks"] = {}
    events = data["hooks"]
    if not isinstance(events, dict):
        raise RewindError(f"{path}: `hooks` is not an object",
                          hint="mend the file; nothing was changed")
    return events


def _find_ours(events: dict[str, object]) -> bool:
    return any(_has_ours(group) for groups in events.values() if isinstance(groups, list)
               for group in groups)


def _has_ours(group: object) -> bool:
    handlers = group.get("hooks") if isinstance(group, dict) else None
    return isinstance(handlers, list) and any(is_ours(handler) for handler in handlers)


def _without_ours(groups: list[object]) -> list[object]:
    """The groups without our handlers; a group that held nothing else goes."""
    kept: list[object] = []
    for group in groups:
        if not isinstance(group, dict) or not _has_ours(group):
            kept.append(group)
            continue
        others = [handler for handler in group["hooks"] if not is_ours(handler)]
        if others:
            kept.append({**group, "hooks": others})
    return kept


# ---- files


def _load(path: str) -> tuple[dict[str, object], bytes | None, str]:
    """A settings file's object, its bytes, and what it indents with."""
    raw = _read(path)
    if raw is None:
        return {}, None, "  "
    if not raw.strip():
        return {}, raw, "  "
    data = _parse(raw, path)
    lines = raw.decode("utf-8", "replace").split("\n")
    second = next((line for line in lines[1:] if line.strip() not in ("", "}")), "  x")
    indent = second[: len(second) - len(second.lstrip())]
    return data, raw, indent if len(lines) > 1 else ""


def _parse(raw: bytes, path: str) -> dict[str, object]:
    try:
        text = raw.decode("utf-8-sig")
        data = json.loads(text, object_pairs_hook=_no_twice)
    except json.JSONDecodeError as error:
        raise RewindError(
            f"{path} is not valid JSON: {error.msg} at line {error.lineno} column {error.colno}",
            hint="mend the file; nothing was changed") from error
    except (ValueError, RecursionError) as error:
        raise RewindError(f"{path} cannot be understood: {error}",
                          hint="mend the file; nothing was changed") from error
    if not isinstance(data, dict):
        raise RewindError(f"{path} does not hold a JSON object",
                          hint="mend the file; nothing was changed")
    return data


def _no_twice(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose keys are all different: of a key that is there twice, one would be lost."""
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("a key is there twice")
    return data


def _dump(data: dict[str, object], before: bytes | None, indent: str) -> bytes:
    text = json.dumps(data, indent=indent or None, ensure_ascii=False)
    text += "" if before and not before.endswith(b"\n") else "\n"
    if before and b"\r\n" in before:
        text = text.replace("\n", "\r\n")
    return text.encode("utf-8", "surrogatepass")


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RewindError(f"{path} cannot be read: {error.strerror}") from error


def has_hooks(path: str) -> bool:
    """Whether a settings file has a section of hooks, whoever's."""
    return isinstance(_load(path)[0].get("hooks"), dict)
