"""Layers that limit values and norms, and `sign`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...eager import as_numbers
from ...framework import Variable
from ...layer_helper import LayerHelper, check_variable
from ...op_functions import run_layer
from ..tensor.variables import assign

__all__ = ["clip", "clip_by_norm", "sign"]


def clip(x: Variable, min: float, max: float, name: str | None = None) -> Variable:
    """`x`, raised to `min` and lowered to `max` where it is beyond them (`fluid.layers.clip`).

    `name` becomes the name of the result.
    """
    return _clip("clip", x, {"min": float(as_numbers(min)), "max": float(as_numbers(max))}, name)


def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Variable:
    """`x`, shortened to the Euclidean norm `max_norm` if it is longer (`fluid.layers.clip_by_norm`).

    `name` becomes the name of the result.
    """
    return _clip("clip_by_norm", x, {"max_norm": float(as_numbers(max_norm))}, name)


def _clip(op_type: str, x: Variable, attrs: dict[str, Any], name: str | None) -> Variable:
    check_variable(x, "x", op_type)
    helper = LayerHelper(op_type, name=name)
    out = None if name is None else helper.create_variable(name=name, dtype=x.dtype, like=x)
    return helper.run(op_type, {"X": x}, attrs=attrs, into={"Out": out})


def sign(x: Variable | np.ndarray) -> Variable:
    """-1, 0 or 1, as the element of `x` is negative, zero or positive (`fluid.layers.sign`)."""
    if isinstance(x, np.ndarray):
        x = assign(x)
    return run_layer("sign", locals())
