"""The manifest: what a git tree cannot say, written and read back, trusting nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coderewind.errors import RewindError
from coderewind.model.paths import is_safe
from coderewind.store.manifest import Manifest, Source, decode, encode

_PATHS = st.binary(min_size=1, max_size=40).filter(is_safe)
_MODES = st.integers(0, 0o7777)
_SOURCES = st.tuples(
    st.tuples(_MODES, _MODES, _MODES),
    st.lists(st.tuples(_PATHS, _MODES), unique_by=lambda pair: pair[0]),
    st.lists(_PATHS, unique=True),
    st.lists(st.tuples(_PATHS, _MODES), unique_by=lambda pair: pair[0]),
    st.lists(_PATHS, unique=True),
)
EMPTY: Source = ((0o644, 0o755, 0o755), [], [], [], [])


@given(_SOURCES)
def test_what_is_written_is_read_back(source: Source) -> None:
    read = decode(encode(source))

    assert read.base == source[0]
    assert read.modes == dict(source[1])
    assert read.folders == set(source[2])
    assert read.fifos == dict(source[3])
    assert read.repositories == set(source[4])


def test_equal_facts_are_equal_bytes() -> None:
    """Else every capture would make a new snapshot."""
    assert encode(EMPTY) == encode(EMPTY)
    assert encode(EMPTY).endswith(b"}\n")


def test_the_permission_bits_of_a_path() -> None:
    manifest = Manifest(((0o640, 0o750, 0o700), [(b"odd", 0o4711)], [], [], []))

    assert manifest.perm(b"file", 0o100644) == 0o640
    assert manifest.perm(b"program", 0o100755) == 0o750
    assert manifest.perm(b"folder", 0o40000) == 0o700
    assert manifest.perm(b"odd", 0o100644) == 0o4711


def test_the_repository_that_a_path_lies_in() -> None:
    manifest = Manifest((EMPTY[0], [], [], [], [b"sub/repo"]))

    assert manifest.within_repository(b"sub/repo/a") == b"sub/repo"
    assert manifest.within_repository(b"sub/repo") == b""
    assert manifest.within_repository(b"sub/repository/a") == b""


def _hostile(**facts: object) -> bytes:
    data = json.loads(encode(EMPTY))
    return json.dumps(data | facts).encode()


UNSAFE = ["../x", "/etc/passwd", "a/../../x", ".git/config", "a/.git/hooks/x", "", ".", "a\0b",
          "\ud800"]


@pytest.mark.parametrize("path", UNSAFE)
@pytest.mark.parametrize("where", ["modes", "emptyFolders", "fifos", "repositories"])
def test_an_unsafe_path_is_refused(where: str, path: str) -> None:
    value: object = [path] if where in ("emptyFolders", "repositories") else {path: "644"}

    with pytest.raises(RewindError, match="manifest is damaged"):
        decode(_hostile(**{where: value}))


@pytest.mark.parametrize("mode", ["10000", "-1", "9", "x", "", None, 420, ["644"]])
@pytest.mark.parametrize("where", ["modes", "fifos"])
def test_an_impossible_mode_is_refused(where: str, mode: object) -> None:
    with pytest.raises(RewindError, match="manifest is damaged"):
        decode(_hostile(**{where: {"a": mode}}))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"5",
        b'"text"',
        b"{}",
        b'{"version": 1}',
        b"\xff\xfe",
        b"{" * 100_000,
        b"[" * 100_000,
        b'{"a":' * 100_000,
        _hostile(usual=None),
        _hostile(usual={"file": "644"}),
        _hostile(modes=[]),
        _hostile(modes=5),
        _hostile(emptyFolders=5),
        _hostile(emptyFolders=[5]),
        _hostile(repositories=[None]),
        _hostile(fifos="x"),
    ],
)
def test_a_manifest_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(RewindError, match="manifest is damaged"):
        decode(data)


@pytest.mark.parametrize("version", [2, 99, "1", None])
def test_a_manifest_of_another_version_is_refused(version: object) -> None:
    with pytest.raises(RewindError, match="manifest version"):
        decode(_hostile(version=version))


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["version", "usual", "modes", "emptyFolders", "fifos", "repositories",
                         "file", "executable", "folder"]), inner, max_size=6),
    max_leaves=12,
))
def test_any_other_json_is_refused_in_one_line(value: object) -> None:
    with pytest.raises(RewindError):
        decode(json.dumps(value).encode())
