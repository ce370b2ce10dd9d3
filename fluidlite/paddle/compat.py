"""`paddle.compat`: text and bytes, rounding, division and messages, as scripts for Python 2 and 3 ask for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

__all__ = [
    "floor_division",
    "get_exception_message",
    "int_type",
    "long_type",
    "round",
    "to_bytes",
    "to_text",
]

int_type = int
long_type = int


def to_text(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """`obj` with bytes decoded: bytes, or those in a list, a set or a dict; anything else is returned as it is.

    `inplace`: lists, sets and dicts are changed and returned themselves. Raises UnicodeDecodeError. Follows
    `paddle.compat.to_text`.
    """

    def one(item: Any) -> Any:
        return item.decode(encoding) if isinstance(item, bytes) else item

    if isinstance(obj, dict):
        changed = {one(key): one(value) for key, value in obj.items()}
        if not inplace:
            return changed
        obj.clear()
        obj.update(changed)
        return obj
    return _each(one, obj, inplace)


def to_bytes(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """`obj` with text encoded: a string, or those in a list or set; None and bytes stay.

    `inplace`: see `to_text`. Raises AttributeError for what cannot be encoded. Follows `paddle.compat.to_bytes`.
    """

    def one(item: Any) -> Any:
        return item if item is None or isinstance(item, bytes) else item.encode(encoding)

    return _each(one, obj, inplace)


def _each(change: Callable[[Any], Any], obj: Any, inplace: bool) -> Any:
    if not isinstance(obj, (list, set)):
        return change(obj)
    changed = [change(item) for item in obj]
    if not inplace:
        return type(obj)(changed)
    obj.clear()
    obj.extend(changed) if isinstance(obj, list) else obj.update(changed)
    return obj


def round(x: float, d: int = 0) -> float:
    """`x` rounded to `d` decimals, halves away from zero as in Python 2 (`paddle.compat.round`); 0.0 for NaN."""
    scale = 10**d
    if x > 0.0:
        return math.floor(x * scale + 0.5) / scale
    if x < 0.0:
        return math.ceil(x * scale - 0.5) / scale
    return math.copysign(0.0, x)


def floor_division(x: float, y: float) -> float:
    """`x // y` (`paddle.compat.floor_division`)."""
    return x // y


def get_exception_message(exc: BaseException) -> str:
    """The text of an exception (`paddle.compat.get_exception_message`); AssertionError for None."""
    assert exc is not None, "get_exception_message takes an exception, got None"
    return str(exc)
