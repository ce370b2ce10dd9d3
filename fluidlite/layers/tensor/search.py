"""Layers that look for the largest and smallest elements and that sort."""

from __future__ import annotations

from ...eager import Tensor
from ...framework import Variable
from ...op_functions import run_layer

__all__ = ["argmax", "argmin", "argsort"]


def argmax(x: Variable, axis: int = 0) -> Variable:
    """Where along `axis` the largest element stands, int64 (`fluid.layers.argmax`)."""
    return run_layer("arg_max", locals(), stop_gradient=True)


def argmin(x: Variable, axis: int = 0) -> Variable:
    """Where along `axis` the smallest element stands, int64 (`fluid.layers.argmin`)."""
    return run_layer("arg_min", locals(), stop_gradient=True)


def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """`input` sorted along `axis`, and where each element stood before, int64 (`fluid.layers.argsort`).

    Equal elements keep their order.
    """
    # In Fluid's programs no gradient goes through it.
    return run_layer("argsort", locals(), stop_gradient=not isinstance(input, Tensor), X="input")
