"""Settings: what may be set, where it comes from, and the published schema."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coderewind.engine import settings
from coderewind.errors import RewindError
from coderewind.store.filters import PLAIN_FOLDERS, REPOSITORY_FOLDERS


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REWIND_HOME", str(tmp_path))
    monkeypatch.delenv("REWIND_TIER", raising=False)
    return tmp_path


def _configure(home: Path, data: object) -> None:
    (home / "config.json").write_text(json.dumps(data))


# ---- reading


def test_without_files_everything_has_its_default() -> None:
    loaded = settings.load(None)

    for key, spec in settings.KEYS.items():
        assert loaded.get(key) == spec.default
        assert loaded.source(key) == "default"


def test_a_file_and_the_environment_override(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _configure(home, {"tier": "minimal", "retention": {"maxSnapshots": 5}, "autoInit": False})
    monkeypatch.setenv("REWIND_TIER", "balanced")

    loaded = settings.load(None)

    assert (loaded.text("tier"), loaded.source("tier")) == ("balanced", "environment")
    assert (loaded.whole("retention.maxSnapshots"), loaded.source("retention.maxSnapshots")) == (
        5, "global")
    assert loaded.flag("autoInit") is False


def test_dotted_and_nested_names_mean_the_same(home: Path) -> None:
    _configure(home, {"retention.maxSnapshots": 5, "storage": {"mode": "project"}})

    loaded = settings.load(None)

    assert loaded.whole("retention.maxSnapshots") == 5
    assert loaded.text("storage.mode") == "project"


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"teir": "exact"}, "'teir'"),
        ({"retention": {"maxSnapshot": 5}}, "'retention.maxSnapshot'"),
        ({"retention": 5}, "retention must be an object, not 5"),
        ({"tier": "extreme"}, "tier must be one of"),
        ({"tier": 5}, "tier must be text"),
        ({"tier": None}, "tier must be text"),
        ({"autoInit": "yes"}, "autoInit must be true or false"),
        ({"autoInit": 1}, "autoInit must be true or false"),
        ({"retention": {"maxSnapshots": "5"}}, "maxSnapshots must be a whole number"),
        ({"retention": {"maxSnapshots": 5.5}}, "maxSnapshots must be a whole number"),
        ({"retention": {"maxSnapshots": True}}, "maxSnapshots must be a whole number"),
        ({"retention": {"maxSnapshots": -1}}, "must not be negative"),
        ({"filters": {"directories": "node_modules"}}, "must be a list of names"),
        ({"filters": {"directories": [""]}}, "must be a list of names"),
        ({"filters": {"directories": ["a/b"]}}, "must be a list of names"),
        ({"filters": {"directories": [5]}}, "must be a list of names"),
        ([], "must hold one JSON object"),
        ("x", "must hold one JSON object"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(home: Path, data: object, named: str) -> None:
    _configure(home, data)

    with pytest.raises(RewindError) as raised:
        settings.load(None)

    assert named in raised.value.message
    assert str(home / "config.json") in raised.value.message
    assert raised.value.hint
    assert raised.value.exit_code == 1


def test_a_misspelt_key_comes_with_the_right_one(home: Path) -> None:
    _configure(home, {"retention": {"maxSnapshot": 5}})

    with pytest.raises(RewindError) as raised:
        settings.load(None)

    assert raised.value.hint == "did you mean 'retention.maxSnapshots'?"


def test_a_group_is_answered_with_what_is_in_it() -> None:
    with pytest.raises(RewindError) as raised:
        settings.parse("antiSpam", "x")

    assert raised.value.hint == (
        "did you mean 'antiSpam.enabled' or 'antiSpam.minIntervalSeconds'?")


@pytest.mark.parametrize("text", ["", "{", "{]", "nan", '{"tier": "exact"', "\xff", "[" * 100_000,
                                  '{"a":' * 100_000])
def test_a_file_that_is_no_json_is_named(home: Path, text: str) -> None:
    (home / "config.json").write_bytes(text.encode("latin-1"))

    with pytest.raises(RewindError) as raised:
        settings.load(None)

    assert str(home / "config.json") in raised.value.message


def test_a_wrong_tier_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWIND_TIER", "extreme")

    with pytest.raises(RewindError, match="REWIND_TIER: tier must be one of"):
        settings.load(None)


# ---- values typed by a user


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("tier", "minimal", "minimal"),
        ("autoInit", "false", False),
        ("autoInit", "TRUE", True),
        ("retention.maxSnapshots", "12", 12),
        ("filters.directories", "a,b", ["a", "b"]),
        ("filters.directories", "", []),
    ],
)
def test_a_typed_value_has_its_keys_type(key: str, text: str, value: object) -> None:
    assert settings.parse(key, text) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("tier", "extreme"),
        ("tier", ""),
        ("autoInit", "yes"),
        ("autoInit", ""),
        ("retention.maxSnapshots", "many"),
        ("retention.maxSnapshots", "-1"),
        ("retention.maxSnapshots", "1.5"),
        ("filters.directories", "a/b"),
        ("nothing.at.all", "x"),
    ],
)
def test_a_wrong_typed_value_is_a_usage_error(key: str, text: str) -> None:
    with pytest.raises(RewindError) as raised:
        settings.parse(key, text)
    assert raised.value.exit_code == 2


# ---- writing


def test_setting_a_key_keeps_the_others_and_what_is_not_ours(home: Path) -> None:
    _configure(home, {"$schema": "x", "tier": "minimal", "retention": {"maxAgeDays": 3}})
    path = os.fsencode(home / "config.json")

    settings.write(path, "retention.maxSnapshots", 7)

    assert json.loads((home / "config.json").read_text()) == {
        "$schema": "x", "tier": "minimal", "retention": {"maxAgeDays": 3, "maxSnapshots": 7}}


def test_taking_a_key_out_gives_its_default_back(home: Path) -> None:
    path = os.fsencode(home / "config.json")
    settings.write(path, "retention.maxSnapshots", 7)
    settings.write(path, "retention.maxSnapshots", None)

    assert settings.load(None).source("retention.maxSnapshots") == "default"


@pytest.mark.parametrize("value", [9, None])
def test_setting_a_key_that_the_file_has_under_its_dotted_name(home: Path, value: object) -> None:
    _configure(home, {"retention.maxSnapshots": 5})

    settings.write(os.fsencode(home / "config.json"), "retention.maxSnapshots", value)

    assert settings.load(None).get("retention.maxSnapshots") == (value or 0)


def test_a_file_that_is_not_understood_is_not_written_over(home: Path) -> None:
    (home / "config.json").write_text('{"tier": "minimal",}')

    with pytest.raises(RewindError):
        settings.write(os.fsencode(home / "config.json"), "tier", "exact")

    assert (home / "config.json").read_text() == '{"tier": "minimal",}'


@given(st.dictionaries(st.sampled_from(sorted(settings.KEYS)), st.integers(0, 3), max_size=5))
def test_what_is_written_is_read_back(chosen: dict[str, int]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.fsencode(folder) + b"/config.json"
        wanted = {key: _a_value(key, number) for key, number in chosen.items()}
        for key, value in wanted.items():
            settings.write(path, key, value)
        assert settings.read(path) == wanted


def _a_value(key: str, number: int) -> object:
    spec = settings.KEYS[key]
    if spec.choices:
        return spec.choices[number % len(spec.choices)]
    return {bool: number % 2 == 0, int: number, list: ["x"] * number, str: str(number)}[spec.kind]


# ---- filters


def test_filters_of_the_defaults() -> None:
    filters = settings.load(None).filters()

    assert filters.max_file_bytes == 100 << 20
    assert filters.max_dir_files == 0
    assert filters.repository == {name.encode() for name in REPOSITORY_FOLDERS}
    assert filters.plain == {name.encode() for name in PLAIN_FOLDERS}
    assert len(PLAIN_FOLDERS) == 13


@pytest.mark.parametrize("maximum", [None, 5])
def test_the_smart_preset_and_a_limit_of_ones_own(home: Path, maximum: int | None) -> None:
    chosen: dict[str, object] = {"preset": "smart"}
    if maximum is not None:
        chosen["maxFileBytes"] = maximum
    _configure(home, {"filters": chosen})

    filters = settings.load(None).filters()

    assert filters.max_file_bytes == (maximum if maximum is not None else 10 << 20)
    assert filters.max_dir_files == 200
    assert filters.folder(b"target", in_repository=True)


def test_an_empty_list_of_directories_filters_none(home: Path) -> None:
    _configure(home, {"filters": {"directories": []}})

    filters = settings.load(None).filters()

    assert not filters.folder(b"node_modules", in_repository=True)
    assert not filters.folder(b"node_modules", in_repository=False)


# ---- the schema


def _errors(schema: dict[str, Any], value: object, where: str = "$") -> list[str]:
    """The few words of JSON Schema that ours uses."""
    types: dict[str, tuple[type, ...]] = {
        "object": (dict,), "string": (str,), "boolean": (bool,), "integer": (int,),
        "array": (list,)}
    known = {"$schema", "title", "description", "default", "type", "enum", "minimum", "pattern",
             "items", "properties", "additionalProperties"}
    assert set(schema) <= known, f"a word that this test does not know: {set(schema) - known}"
    kind = schema["type"]
    if not isinstance(value, types[kind]) or (kind == "integer" and isinstance(value, bool)):
        return [f"{where} is no {kind}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where} is none of {schema['enum']}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{where} is too small")
    if "pattern" in schema and not re.search(schema["pattern"], str(value)):
        found.append(f"{where} does not match")
    if isinstance(value, list):
        for i, item in enumerate(value):
            found += _errors(schema["items"], item, f"{where}[{i}]")
    if isinstance(value, dict):
        for key, item in value.items():
            if key in schema["properties"]:
                found += _errors(schema["properties"][key], item, f"{where}.{key}")
            elif not schema["additionalProperties"]:
                found.append(f"{where}.{key} is unknown")
    return found


def _at(schema: dict[str, Any], key: str) -> dict[str, Any]:
    for name in key.split("."):
        schema = schema["properties"][name]
    return schema


def test_the_schema_knows_every_key_and_its_default() -> None:
    schema = settings.schema()
    json.dumps(schema)

    for key, spec in settings.KEYS.items():
        entry = _at(schema, key)
        assert entry["description"] == spec.says
        if spec.default is not None:
            assert _errors(entry, spec.default) == []


_VALUES: tuple[object, ...] = (True, False, 0, 1, 30, -1, 1.5, "exact", "smart", "repo", "x", "",
                               None, [], ["x"], [1], ["a/b"], [""], {}, {"x": 1})


@pytest.mark.parametrize("key", settings.KEYS)
def test_the_schema_and_the_reader_agree(home: Path, key: str) -> None:
    for value in _VALUES:
        data: dict[str, Any] = {}
        section = data
        *above, last = key.split(".")
        for name in above:
            section = section.setdefault(name, {})
        section[last] = value
        _configure(home, data)
        try:
            settings.load(None)
            accepted = True
        except RewindError:
            accepted = False

        assert accepted == (_errors(settings.schema(), data) == []), data


def test_the_schema_refuses_unknown_keys() -> None:
    assert _errors(settings.schema(), {"teir": "exact"}) == ["$.teir is unknown"]
