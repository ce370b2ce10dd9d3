"""Shapes of arrays of complex numbers (`paddle.complex.tensor.manipulation`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .... import layers
from ....base import missing
from ....framework.complex_variable import ComplexVariable
from .parts import each

__all__ = ["reshape", "transpose"]


def reshape(x: Any, shape: Sequence[int], inplace: bool = False, name: str | None = None) -> ComplexVariable:
    """`x` with another shape, as by `fluid.layers.reshape` (`paddle.complex.reshape`).

    `inplace`: change `x` itself, in programs. Raises ValueError unless `x` is a ComplexVariable.
    """
    return each(x, "reshape", lambda part: layers.reshape(part, shape, inplace=inplace, name=name))


def transpose(x: Any, perm: Sequence[int], name: str | None = None) -> ComplexVariable:
    """`x` with its dimensions in the order `perm` (`paddle.complex.transpose`).

    Raises ValueError unless `x` is a ComplexVariable.
    """
    return each(x, "transpose", lambda part: layers.transpose(part, perm, name))


__getattr__ = missing.reporter(__name__)
