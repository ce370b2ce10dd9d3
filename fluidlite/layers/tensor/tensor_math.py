"""Products, distances and other functions that came to Fluid with version 1.8."""

from __future__ import annotations

from typing import Any

from ...base.errors import ArgumentAssertion
from ...framework import Variable
from ...layer_helper import LayerHelper, check_variable, check_variables, run_op
from ..checks import check_dtype, check_dtypes

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


def _pair(
    op_type: str, x: Variable, y: Variable, name: str | None = None, attrs: dict[str, Any] | None = None
) -> Variable:
    check_variables(op_type, x=x, y=y)
    return run_op(op_type, {"X": x, "Y": y}, attrs=attrs, name=name)


def bmm(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The products of the matrices of `x` [B, m, k] and `y` [B, k, n] (`fluid.layers.bmm`)."""
    return _pair("bmm", x, y, name)


def dot(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The scalar product of vectors [k], or of batches of them [B, k]: [1] or [B, 1] (`fluid.layers.dot`)."""
    return _pair("dot", x, y, name)


def kron(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """The Kronecker product of `x` and `y`, written to `out` if given (`fluid.layers.kron`)."""
    if out is None:
        return _pair("kron", x, y, name)
    check_variables("kron", x=x, y=y)
    LayerHelper("kron", name=name).append_op(type="kron", inputs={"X": [x], "Y": [y]}, outputs={"Out": [out]})
    return out


def cross(input: Variable, other: Variable, dim: int | None = None) -> Variable:
    """The vector products along `dim`, by default the first dimension of size 3 (`fluid.layers.cross`)."""
    return _pair("cross", input, other, attrs={} if dim is None else {"dim": dim})


def dist(x: Variable, y: Variable, p: float = 2) -> Variable:
    """The `p`-norm of `x` - `y`, which broadcast, of shape [1] (`fluid.layers.dist`)."""
    check_dtypes("dist", x=x, y=y)
    return _pair("dist", x, y, attrs={"p": float(p)})


def cos_sim(X: Variable, Y: Variable) -> Variable:
    """The cosines of the angles between the rows of `X` [N, k] and of `Y` [N or 1, k]: [N, 1]
    (`fluid.layers.cos_sim`).
    """
    check_variables("cos_sim", X=X, Y=Y)
    outputs = ("Out", "XNorm", "YNorm")
    out, _, _ = run_op("cos_sim", {"X": X, "Y": Y}, outputs)
    return out


def addmm(
    input: Variable,
    x: Variable,
    y: Variable,
    alpha: float = 1.0,
    beta: float = 1.0,
    name: str | None = None,
) -> Variable:
    """`beta` * `input` + `alpha` * `x` @ `y` for matrices (`fluid.layers.addmm`)."""
    check_variables("addmm", input=input, x=x, y=y)
    attrs = {"Alpha": float(alpha), "Beta": float(beta)}
    return run_op("addmm", {"Input": input, "X": x, "Y": y}, attrs=attrs, name=name)


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
    product = _pair("elementwise_mul", tensor1, tensor2) * float(value)
    total = _pair("elementwise_add", input, product, name)
    if out is None:
        return total
    LayerHelper("addcmul").append_op(type="assign", inputs={"X": [total]}, outputs={"Out": [out]})
    return out


def clamp(
    input: Variable,
    min: float | Variable | None = None,
    max: float | Variable | None = None,
    output: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """`input` raised to `min` and lowered to `max`, numbers or variables of one element (`fluid.layers.clamp`).

    Written to `output` if given. Raises ValueError if both limits are None.
    """
    check_dtype(input, "input", "clamp")
    if min is None and max is None:
        raise ArgumentAssertion("either 'min' or 'max' of clamp must be given")
    inputs: dict[str, Any] = {"X": [input]}
    attrs: dict[str, float] = {"min": -3.4028234663852886e38, "max": 3.4028234663852886e38}
    for slot, key, limit in (("Min", "min", min), ("Max", "max", max)):
        if isinstance(limit, Variable):
            inputs[slot] = [limit]
        elif limit is not None:
            attrs[key] = float(limit)
    helper = LayerHelper("clamp", name=name)
    if output is None:
        return helper.run("clip", inputs, attrs=attrs)
    helper.append_op(type="clip", inputs=inputs, outputs={"Out": [output]}, attrs=attrs)
    return output


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
    check_dtypes("allclose", input=input, other=other)
    attrs = {"rtol": float(rtol), "atol": float(atol), "equal_nan": equal_nan}
    return run_op("allclose", {"Input": input, "Other": other}, attrs=attrs, name=name)


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
    check_variable(input, "input", "trace")
    helper, attrs = LayerHelper("trace", name=name), {"offset": offset, "dim1": dim1, "dim2": dim2}
    if out is None:
        return helper.run("trace", {"Input": input}, attrs=attrs)
    helper.append_op(type="trace", inputs={"Input": [input]}, outputs={"Out": [out]}, attrs=attrs)
    return out
