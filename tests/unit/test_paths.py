"""Paths: which may be written, and which lie within which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coderewind.model.paths import is_safe, to_bytes, to_text, within


@given(st.binary())
def test_a_path_as_text_turns_back_into_the_same_bytes(path: bytes) -> None:
    assert to_bytes(to_text(path)) == path


@pytest.mark.parametrize(
    "path",
    [b"a", b"a/b", b"a b", b"\xff", b"\n", b"-rf", b".gitignore", b"a/.gitmodules", b"...", b"a..",
     b".GIT", b".Git/config", b"git~1", b".git ", b":(top)", b"a\\b", b"C:", b"x" * 5000],
)
def test_a_path_that_may_be_written(path: bytes) -> None:
    assert is_safe(path)


@pytest.mark.parametrize(
    "path",
    [b"", b"/", b"/etc/passwd", b"..", b"../a", b"a/..", b"a/../b", b".", b"./a", b"a/.", b"a//b",
     b"a/", b".git", b".git/config", b"a/.git", b"a/.git/hooks/post-checkout", b"a\0b"],
)
def test_a_path_that_may_not_be_written(path: bytes) -> None:
    assert not is_safe(path)


@pytest.mark.parametrize(
    ("path", "roots", "inside"),
    [
        (b"a", (), True),
        (b"a", (b"",), True),
        (b"a", (b"a",), True),
        (b"a/b", (b"a",), True),
        (b"ab", (b"a",), False),
        (b"a", (b"a/b",), False),
        (b"a/c", (b"b", b"a"), True),
        (b"a/c", (b"b", b"a/d"), False),
        (b"a/b/c", (b"a/b",), True),
    ],
)
def test_within(path: bytes, roots: tuple[bytes, ...], *, inside: bool) -> None:
    assert within(path, roots) is inside
