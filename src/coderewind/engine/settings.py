"""Configuration: which keys there are, what they may hold, and where a value comes from.

Four sources, later ones first in force: default, global (`$REWIND_HOME/config.json`), project
(`config.json` in the store's private folder), environment. An unknown key or a wrong type is
named with its file, never ignored.
"""

from __future__ import annotations

import os

from coderewind.errors import RewindError
from coderewind.model import json
from coderewind.store.filters import Filters
from coderewind.store.folders import rewind_home
from coderewind.store.home import Store
from coderewind.store.pack import write_durably


class Key:
    """One setting: its type, its default, and a sentence about it."""

    __slots__ = ("choices", "default", "kind", "says")

    def __init__(
        self, kind: type, default: object, says: str, choices: tuple[str, ...] = ()
    ) -> None:
        self.kind = kind
        self.default = default
        self.says = says
        self.choices = choices


_SOURCES = ("default", "global", "project", "environment")  # weakest first
_TYPED = ""  # where a value comes from that is not in a file

TIERS = ("minimal", "balanced", "aggressive", "exact")
KEYS: dict[str, Key] = {
    "tier": Key(str, "exact", "how often agents' hooks make checkpoints", TIERS),
    "autoInit": Key(bool, True, "protect a folder at the first event of an agent in it"),
    "antiSpam.enabled": Key(bool, False, "leave out checkpoints that follow too soon"),
    "antiSpam.minIntervalSeconds": Key(int, 30, "how soon is too soon"),
    "significance.enabled": Key(bool, False, "leave out checkpoints before small edits"),
    "significance.minChangeSize": Key(int, 50, "smallest edit, in characters, that counts"),
    "retention.maxSnapshots": Key(int, 0, "keep at most this many different states (0: all)"),
    "retention.maxAgeDays": Key(int, 0, "keep checkpoints for this many days (0: for ever)"),
    "retention.maxBytes": Key(int, 0, "keep the store below this size (0: no limit)"),
    "retention.maxPerSession": Key(int, 0, "keep at most this many of one session (0: all)"),
    "retention.pinLabeledEntries": Key(bool, False, "never prune a labelled checkpoint"),
    "retention.scanMode": Key(str, "ancestor-only", "which sessions of an agent a sweep reads",
                              ("ancestor-only", "repo-sessions")),
    "retention.startupBudgetMs": Key(int, 0, "time a sweep may take at start (0: no limit)"),
    "silentCheckpoints": Key(bool, False, "no footer and no notices inside agents"),
    "storage.mode": Key(str, "global", "where new stores go", ("global", "project", "repo")),
    "filters.maxFileBytes": Key(int, 100 << 20,
                                "leave out untracked files above this size (0: no limit)"),
    "filters.directories": Key(list, None, "names of untracked folders to leave out"),
    "filters.maxDirFiles": Key(int, 0,
                               "leave out untracked folders with more files (0: no limit)"),
    "filters.preset": Key(str, "exact", "smart: pi-rewind's limits, 10 MiB and 200 files",
                          ("exact", "smart")),
    "agents.mayRestore": Key(bool, False, "agents may restore and undo, after confirmation"),
    "checkpoint.enabled": Key(bool, False, "agents get the checkpoint and rewind tools"),
    "checkpoint.subagents": Key(bool, False, "agents that an agent starts get them, too"),
}


class Settings:
    """The values in force, each with its source."""

    def __init__(self, values: dict[str, tuple[object, str]]) -> None:
        self._values = values

    def get(self, key: str) -> object:
        return self._values[key][0]

    def source(self, key: str) -> str:
        return self._values[key][1]

    def text(self, key: str) -> str:
        return str(self.get(key))

    def whole(self, key: str) -> int:
        value = self.get(key)
        return value if isinstance(value, int) else 0

    def flag(self, key: str) -> bool:
        return self.get(key) is True

    def filters(self) -> Filters:
        """The limits of a capture."""
        chosen = self.get("filters.directories")
        names = tuple(str(name) for name in chosen) if isinstance(chosen, list) else None
        if self.text("filters.preset") == "smart":
            filters = Filters.smart(names)
            if self.source("filters.maxFileBytes") != "default":
                filters.max_file_bytes = self.whole("filters.maxFileBytes")
            if self.source("filters.maxDirFiles") != "default":
                filters.max_dir_files = self.whole("filters.maxDirFiles")
            return filters
        return Filters(self.whole("filters.maxFileBytes"), self.whole("filters.maxDirFiles"), names)

    def as_json(self) -> dict[str, object]:
        return {key: {"value": value, "source": source}
                for key, (value, source) in self._values.items()}


AGENTS_OWN = ("silentCheckpoints", "retention.maxSnapshots", "retention.maxAgeDays",
              "retention.maxPerSession", "retention.pinLabeledEntries", "retention.scanMode",
              "retention.startupBudgetMs")


def with_agents(base: Settings, own: object, source: str) -> tuple[Settings, list[str]]:
    """The settings in force inside an agent that has some of ours in its own (`rewind`), and what
    is wrong with these: a wrong value is left out, because the agent's file is not ours to refuse.
    """
    values = {key: (base.get(key), base.source(key)) for key in KEYS}
    problems = []
    for key in AGENTS_OWN:
        section: object = own
        for word in key.split("."):
            section = section.get(word) if isinstance(section, dict) else None
        if section is None:
            continue
        try:
            values[key] = (_checked(key, section, f"{source}: rewind"), source)
        except RewindError as error:
            problems.append(error.message)
    return Settings(values), problems


def load(store: Store | None) -> Settings:
    """The settings of a worktree.

    Raises:
        RewindError: a file has an unknown key, a wrong type, or is no JSON; it is named.
    """
    values: dict[str, tuple[object, str]] = {
        key: (spec.default, "default") for key, spec in KEYS.items()
    }
    for source, path in files(store).items():
        for key, value in read(path).items():
            values[key] = (value, source)
    tier = os.environ.get("REWIND_TIER")
    if tier:
        values["tier"] = (_checked("tier", tier, "REWIND_TIER"), "environment")
    return Settings(values)


def files(store: Store | None) -> dict[str, bytes]:
    """The configuration files, weakest first.

    None lies in the folder itself, whatever the store's mode: an agent that may only edit files
    there could give itself permissions, and they might come with the folder.
    """
    found = {"global": os.path.join(rewind_home(), b"config.json")}
    if store is not None:
        found["project"] = os.path.join(store.home, b"config.json")
    return found


def is_stronger(source: str, other: str) -> bool:
    """Whether a value of one source outranks that of another."""
    return _SOURCES.index(source) > _SOURCES.index(other)


def read(path: bytes) -> dict[str, object]:
    """One file's settings under their dotted names.

    Raises:
        RewindError: the first thing that is wrong with it.
    """
    found, problems = examine(path)
    if problems:
        first = problems[0]
        first.hint = first.hint or "mend that file; rewind validate names all that is wrong with it"
        raise first
    return found


def examine(path: bytes) -> tuple[dict[str, object], list[RewindError]]:
    """One file's settings under their dotted names, and all that is wrong with it."""
    name = os.fsdecode(path)
    found: dict[str, object] = {}
    problems: list[RewindError] = []
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read())
    except FileNotFoundError:
        return found, problems
    except OSError as error:
        return found, [RewindError(f"{name} cannot be read: {error.strerror}")]
    except (ValueError, RecursionError) as error:
        return found, [RewindError(f"{name} is not valid JSON: {error}",
                                   hint="mend it, or delete it for the defaults")]
    if not isinstance(data, dict):
        return found, [RewindError(f"{name} must hold one JSON object")]
    _flatten(data, "", found, problems, name)
    return found, problems


def write(path: bytes, key: str, value: object) -> None:
    """Set one key in a file (None removes it), leaving the others as they are."""
    data: dict[str, object] = {}
    read(path)  # refuses a file that is not understood
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read())
    except FileNotFoundError:
        pass
    _drop(data, key)
    if value is not None:
        section = data
        *above, last = key.split(".")
        for name in above:
            below = section.setdefault(name, {})
            assert isinstance(below, dict)
            section = below
        section[last] = value
    import json as standard

    write_durably(path, standard.dumps(data, indent=2).encode() + b"\n")


def _drop(data: dict[str, object], key: str) -> None:
    """Take a key out, however it is spelt: nested, dotted, or half of each."""
    data.pop(key, None)
    words = key.split(".")
    for i in range(1, len(words)):
        below = data.get(".".join(words[:i]))
        if isinstance(below, dict):
            _drop(below, ".".join(words[i:]))


def parse(key: str, text: str) -> object:
    """A value typed by a user, as its key's type."""
    spec = _spec(key, _TYPED)
    if spec.kind is bool:
        if text.lower() not in ("true", "false"):
            raise RewindError(f"{key} is true or false, not {text!r}", exit_code=2)
        return text.lower() == "true"
    if spec.kind is int:
        try:
            return _checked(key, int(text), _TYPED)
        except ValueError:
            raise RewindError(f"{key} is a whole number, not {text!r}", exit_code=2) from None
    if spec.kind is list:
        return _checked(key, [name for name in text.split(",") if name], _TYPED)
    return _checked(key, text, _TYPED)


def schema() -> dict[str, object]:
    """The JSON Schema of a configuration file."""
    top: dict[str, object] = {}
    for key, spec in KEYS.items():
        section = top
        *above, last = key.split(".")
        for name in above:
            below = section.setdefault(
                name, {"type": "object", "additionalProperties": False, "properties": {}}
            )
            assert isinstance(below, dict)
            section = below["properties"]
        names = {bool: "boolean", int: "integer", str: "string", list: "array"}
        entry: dict[str, object] = {"type": names[spec.kind], "description": spec.says}
        if spec.choices:
            entry["enum"] = list(spec.choices)
        if spec.kind is int:
            entry["minimum"] = 0
        if spec.kind is list:
            entry["items"] = {"type": "string", "pattern": "^[^/]+$"}
        if spec.default is not None:
            entry["default"] = spec.default
        section[last] = entry
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Rewind configuration",
        "type": "object",
        "additionalProperties": False,
        "properties": {"$schema": {"type": "string"}, **top},
    }


def _flatten(
    data: dict[str, object],
    prefix: str,
    found: dict[str, object],
    problems: list[RewindError],
    name: str,
) -> None:
    for key, value in data.items():
        full = prefix + key
        if full == "$schema":
            continue
        try:
            if full in KEYS:
                found[full] = _checked(full, value, name)
            elif not _inside(full):
                _spec(full, name)
            elif isinstance(value, dict):
                _flatten(value, full + ".", found, problems, name)
            else:
                raise RewindError(f"{name}: {full} must be an object, not {json.dumps(value)}")
        except RewindError as error:
            problems.append(error)


def _inside(group: str) -> list[str]:
    """The settings whose dotted names begin like this."""
    return [key for key in KEYS if key.startswith(group + ".")]


def _spec(key: str, where: str) -> Key:
    spec = KEYS.get(key)
    if spec is None:
        import difflib

        near = _inside(key) or difflib.get_close_matches(key, KEYS, 1)
        meant = " or ".join(map(repr, near))
        raise RewindError(f"{_from(where)}there is no setting {key!r}",
                          hint=f"did you mean {meant}?" if near else "rewind config lists all",
                          exit_code=1 if where else 2)
    return spec


def _checked(key: str, value: object, where: str) -> object:
    spec = _spec(key, where)
    code = 1 if where else 2
    right = isinstance(value, spec.kind) and not (spec.kind is int and isinstance(value, bool))
    if spec.kind is list and isinstance(value, list):
        right = all(isinstance(item, str) and item and "/" not in item for item in value)
    if not right:
        names = {bool: "true or false", int: "a whole number", str: "text", list: "a list of names"}
        raise RewindError(f"{_from(where)}{key} must be {names[spec.kind]}, "
                          f"not {json.dumps(value)}", exit_code=code)
    if spec.choices and value not in spec.choices:
        raise RewindError(f"{_from(where)}{key} must be one of {', '.join(spec.choices)}, "
                          f"not {json.dumps(value)}", exit_code=code)
    if isinstance(value, int) and not isinstance(value, bool) and value < 0:
        raise RewindError(f"{_from(where)}{key} must not be negative", exit_code=code)
    return value


def _from(where: str) -> str:
    return f"{where}: " if where else ""
