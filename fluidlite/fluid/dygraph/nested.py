"""Values inside of lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def replaced(value: Any, is_leaf: Callable[[Any], bool], by: Callable[[Any], Any]) -> Any:
    """`value` with `by(leaf)` in place of every leaf in its lists, tuples and dicts."""
    if is_leaf(value):
        return by(value)
    if isinstance(value, tuple):
        items = [replaced(item, is_leaf, by) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [replaced(item, is_leaf, by) for item in value]
    if isinstance(value, dict):
        return type(value)((key, replaced(item, is_leaf, by)) for key, item in value.items())
    return value
