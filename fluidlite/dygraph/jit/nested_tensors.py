"""Arguments and results of traced functions: tensors inside lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ...eager import Tensor
from ...eager.placing import to_default_device
from ..members import Members

Held = list[Any]


def signature(value: Any, leaves: list[Tensor], held: Held) -> Any:
    """The part of a trace's cache key for `value`: ranks and types of tensors and arrays, everything else by value.

    The tensors, whose shapes count as well, are appended to `leaves`, arrays as tensors that share their memory. What
    cannot be compared by value is compared by identity, and appended to `held`: as long as it is kept, nothing else
    gets its identity. Layers count by identity and mode, also those that are attributes of an object.
    """
    if isinstance(value, Tensor):
        leaves.append(value)
        array = value.array
        return (array.ndim, array.dtype.num)
    if isinstance(value, np.ndarray):
        tensor = Tensor(to_default_device(np.ascontiguousarray(value).reshape(value.shape)))
        return signature(tensor, leaves, held)
    if isinstance(value, (list, tuple)):
        return (type(value), *[signature(item, leaves, held) for item in value])
    if isinstance(value, dict):
        return (dict, *[(key, signature(item, leaves, held)) for key, item in value.items()])
    if isinstance(value, Members):
        held.append(value)
        return modes(value)
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return (type(value), value)
    if isinstance(value, np.generic) or type(value).__hash__ not in (object.__hash__, None):
        return (type(value), value)
    held.append(value)
    inner: dict[str, Any] = getattr(value, "__dict__", {})
    watched: list[Hashable] = [modes(item) for item in inner.values() if isinstance(item, Members)]
    return (type(value), id(value), *watched)


def modes(layer: Any) -> Hashable:
    """The identities and training modes of a layer and all its sublayers."""
    parts: list[Any] = []
    _add_modes(layer, parts)
    return tuple(parts)


def _add_modes(layer: Any, parts: list[Any]) -> None:
    parts += (id(layer), layer.training)
    for inner in layer._sub_layers.values():
        if inner is not None:
            _add_modes(inner, parts)
