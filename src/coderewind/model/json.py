"""JSON by the C code that Python's own `json` stands on, without its Python half, which loads `re`
and `enum`: a quarter of all that a hook costs (benchmarks/hook.py).

The same texts are read and written. Where that C code is missing or not as it is known here,
`json` itself serves.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BLANKS = " \t\n\r"


class _Rules:
    """What the scanner asks for."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"NaN": float("nan"), "Infinity": float("inf"),
                      "-Infinity": float("-inf")}.__getitem__


try:
    import _json

    _C: Any = _json
    _scan = _C.make_scanner(_Rules())
    _rules = (None, None, _C.encode_basestring_ascii, None, ":", ",")
    _C.make_encoder(*_rules, False, False, True)
    _is_known = True
except (ImportError, AttributeError, TypeError):
    _is_known = False


def loads(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is not JSON; as `json` says it.
        RecursionError: it is too deep.
    """
    if _is_known:
        try:
            words = text.decode("utf-8", "surrogatepass") if isinstance(text, bytes) else text
            value, end = _scan(words, len(words) - len(words.lstrip(_BLANKS)))
            if not words[end:].strip(_BLANKS):
                return value
        except (StopIteration, ValueError, SystemError):
            pass  # SystemError: it has no words of its own for what is wrong
    import json

    return json.loads(text)


def dumps(value: object, *, sort_keys: bool = False) -> str:
    """A JSON text in ASCII without blanks.

    Raises:
        TypeError: something in it is no JSON value.
    """
    if not _is_known:
        import json

        return json.dumps(value, separators=(",", ":"), sort_keys=sort_keys)
    return "".join(_C.make_encoder(*_rules, sort_keys, False, True)(value, 0))
