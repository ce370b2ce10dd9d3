"""Sinusoidal position encodings: `add_position_encoding`."""

from __future__ import annotations

from ...framework import Variable
from ...op_functions import run_layer

__all__ = ["add_position_encoding"]


def add_position_encoding(input: Variable, alpha: float, beta: float, name: str | None = None) -> Variable:
    """alpha times `input`, and beta times sines and cosines of the place (`fluid.layers.add_position_encoding`).

    Follows Vaswani et al. (2017): sines in the first half of a row, cosines in the second.

    Args:
        input: floats [batch, time, width], or [rows, width] with sequences; the width is even.
        alpha, beta: what both parts are multiplied by.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    return run_layer("add_position_encoding", locals(), X="input")
