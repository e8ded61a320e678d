"""Our JSON reads and writes exactly what Python's does."""

import json as standard
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coderewind.model import json

texts = st.text(st.characters(exclude_categories=()), max_size=12)  # half surrogate pairs, too
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def test_the_c_code_is_as_it_is_known() -> None:
    assert json._is_known


@given(values, st.booleans())
def test_the_same_texts_are_written(value: object, sort: bool) -> None:
    text = json.dumps(value, sort_keys=sort)

    assert text == standard.dumps(value, separators=(",", ":"), sort_keys=sort)
    assert json.loads(text) == value
    assert json.loads(text.encode()) == value


@given(values, st.integers(0, 40), st.sampled_from(["", "}", " ", '"', "\\", ",1", "\ufeff", "é"]))
def test_broken_texts_are_refused_in_the_same_words(value: object, at: int, more: str) -> None:
    text = standard.dumps(value)
    text = text[:at] + more + text[at + 1 :]
    for given_ in (text, text.encode(), text.encode("latin-1", "replace")):
        try:
            wanted: object = standard.loads(given_)
        except ValueError as error:
            with pytest.raises(type(error)) as refused:
                json.loads(given_)
            assert str(refused.value) == str(error)
        else:
            assert repr(json.loads(given_)) == repr(wanted)


@pytest.mark.parametrize("text", [
    "{", "[", "", " ", '"', '"\\', '"\\u12', '{"a"', '{"a":', '{"a":1', "[1", "[1,", "-", "tru",
    "1 2", '{"a" 1}', "{1:2}", "\0", '"\n"', "nul", "}", '{"a":1,}',
])
def test_broken_texts_without_pythons_json_loaded(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The C code takes the words for what is wrong from there."""
    for name in ("json", "json.decoder", "json.encoder", "json.scanner"):
        monkeypatch.delitem(sys.modules, name)

    with pytest.raises(ValueError):
        json.loads(text)


def test_what_is_beside_the_standard_is_read_all_the_same() -> None:
    assert math.isnan(json.loads("NaN"))
    assert json.loads("\n[-Infinity]\t") == [-math.inf]
    assert json.loads(b'\xef\xbb\xbf{"a":"\xed\xa0\x80"}') == {"a": "\ud800"}
    assert json.loads('{"a":1,"a":2}') == {"a": 2}


def test_what_is_no_value_or_too_deep() -> None:
    with pytest.raises(TypeError):
        json.dumps({"a": object()})
    with pytest.raises(RecursionError):
        json.loads("[" * 200_000)
