"""Products, distances and other functions that came to Fluid with version 1.8."""

from __future__ import annotations

import math
from typing import Any

from ...base import callsite
from ...base.errors import ArgumentAssertion
from ...framework import Variable
from ...layer_helper import LayerHelper, check_variables, run_op
from ...op_functions import run_layer
from ..checks import check_dtype

__all__ = [
    "addcmul",
    "addmm",
    "allclose",
    "bmm",
    "clamp",
    "cos_sim",
    "cross",
    "dist",
    "dot",
    "kron",
    "trace",
]


def bmm(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The products of the matrices of `x` [B, m, k] and `y` [B, k, n] (`fluid.layers.bmm`)."""
    return run_layer("bmm", locals())


def dot(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The scalar product of vectors [k], or of batches of them [B, k]: [1] or [B, 1] (`fluid.layers.dot`)."""
    return run_layer("dot", locals())


def kron(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """The Kronecker product of `x` and `y`, written to `out` if given (`fluid.layers.kron`)."""
    return run_layer("kron", locals())


def cross(input: Variable, other: Variable, dim: int | None = None) -> Variable:
    """The vector products along `dim`, by default the first dimension of size 3 (`fluid.layers.cross`)."""
    return run_layer("cross", locals(), X="input", Y="other")


def dist(x: Variable, y: Variable, p: float = 2) -> Variable:
    """The `p`-norm of `x` - `y`, which broadcast, of shape [1] (`fluid.layers.dist`)."""
    return run_layer("dist", locals())


def cos_sim(X: Variable, Y: Variable) -> Variable:
    """The cosines of the angles between the rows of `X` [N, k] and of `Y` [N or 1, k]: [N, 1]
    (`fluid.layers.cos_sim`).
    """
    return run_layer("cos_sim", locals())[0]


def addmm(
    input: Variable,
    x: Variable,
    y: Variable,
    alpha: float = 1.0,
    beta: float = 1.0,
    name: str | None = None,
) -> Variable:
    """`beta` * `input` + `alpha` * `x` @ `y` for matrices (`fluid.layers.addmm`)."""
    return run_layer("addmm", locals())


def addcmul(
    input: Variable,
    tensor1: Variable,
    tensor2: Variable,
    value: float = 1.0,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """`input` + `value` * `tensor1` * `tensor2`, written to `out` if given (`fluid.layers.addcmul`)."""
    check_variables("addcmul", input=input, tensor1=tensor1, tensor2=tensor2)
    product = run_op("elementwise_mul", {"X": tensor1, "Y": tensor2}) * float(value)
    total = run_op("elementwise_add", {"X": input, "Y": product}, name=name)
    return total if out is None else LayerHelper("addcmul").run("assign", {"X": total}, into={"Out": out})


def clamp(
    input: Variable,
    min: float | Variable | None = None,
    max: float | Variable | None = None,
    output: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """`input` raised to `min` and lowered to `max`, numbers or variables of one element (`fluid.layers.clamp`).

    Written to `output` if given. Without `min` it raises what is below 0 to 0, as Fluid 1.8 does, and warns of that.
    Raises ValueError if both limits are None.
    """
    check_dtype(input, "input", "clamp")
    if min is None and max is None:
        raise ArgumentAssertion("either 'min' or 'max' of clamp must be given")
    if min is None:
        callsite.warn("clamp without min raises what is below 0 to 0, as Fluid 1.8 does; give min as well")
    inputs: dict[str, Any] = {"X": input}
    attrs: dict[str, float] = {"min": 0.0, "max": math.inf}
    for slot, key, limit in (("Min", "min", min), ("Max", "max", max)):
        if isinstance(limit, Variable):
            inputs[slot] = limit
        elif limit is not None:
            attrs[key] = float(limit)
    return LayerHelper("clamp", name=name).run("clip", inputs, attrs=attrs, into={"Out": output})


def allclose(
    input: Variable,
    other: Variable,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
    name: str | None = None,
) -> Variable:
    """Whether all elements of `input` and `other` are as good as equal, bool [1] (`fluid.layers.allclose`).

    That is |input - other| <= atol + rtol * |other|; `equal_nan`: NaN equals NaN.
    """
    return run_layer("allclose", locals())


def trace(
    input: Variable,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """The sum of a diagonal of the matrices over two dimensions (`fluid.layers.trace`).

    `offset`: how far above the main diagonal. Written to `out` if given.
    """
    return run_layer("trace", locals())
