"""Masks of the largest elements: `similarity_focus`."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.errors import ArgumentError
from ...framework import Variable
from ...op_functions import run_layer

__all__ = ["similarity_focus"]


def similarity_focus(input: Variable, axis: int, indexes: Sequence[int], name: str | None = None) -> Variable:
    """A mask of the largest elements of some slices (`fluid.layers.similarity_focus`).

    Of each slice the largest element is taken, then the largest one in another row and column, and so on.

    Args:
        input: floats of four dimensions.
        axis: 1, 2 or 3, along which slices are taken.
        indexes: which ones.

    Returns:
        Ones and zeros of the shape of `input`, the same for all places along `axis`.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    if not isinstance(axis, int):
        raise TypeError("axis must be int type.")
    if not isinstance(indexes, list):
        raise TypeError("indexes must be list type.")
    if axis not in (1, 2, 3):
        raise ArgumentError("axis must be 1, 2 or 3.")
    if not indexes:
        raise ArgumentError("indexes can not be empty.")
    return run_layer("similarity_focus", locals(), X="input")
