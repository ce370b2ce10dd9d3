"""Products of matrices and vectors, distances and other functions of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....base import callsite
from ....base.dtypes import FLOATS
from ....base.errors import ArgumentAssertion, ArgumentError
from ....eager import Tensor
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variables, run_op
from ...layer_helper_base import is_eager
from ...op_functions import run_layer
from ..checks import check_dtype, check_dtypes

__all__ = [
    "addcmul",
    "addmm",
    "allclose",
    "bilinear_tensor_product",
    "bmm",
    "clamp",
    "cos_sim",
    "cross",
    "dist",
    "dot",
    "fsp_matrix",
    "kron",
    "matmul",
    "mul",
    "trace",
]


def matmul(
    x: Variable,
    y: Variable,
    transpose_x: bool = False,
    transpose_y: bool = False,
    alpha: float = 1.0,
    name: str | None = None,
) -> Variable:
    """alpha * x @ y for matrices, batches of matrices and vectors (`fluid.layers.matmul`).

    Args:
        x: a float tensor [..., m, k] ([..., k, m] if transposed), or a vector [k], taken as a row.
        y: a tensor [..., k, n] ([..., n, k] if transposed), or a vector [k], taken as a column. Batch
            dimensions of both are equal, or one has none.
        transpose_x: swap the last two dimensions of `x`.
        transpose_y: swap the last two dimensions of `y`.
        alpha: multiplies the product.
        name: the name of the result.

    Returns:
        [..., m, n], without the dimension that a vector stood for; two vectors give [1].

    Raises:
        TypeError: `x` or `y` is not a float Variable.
        AssertionError: the width of `x` is not the height of `y`.
        ValueError: the batch dimensions differ.

    Example:
        >>> import paddle.fluid as fluid
        >>> x, y = fluid.data("x", [None, 5, 3], "float32"), fluid.data("y", [None, 5, 4], "float32")
        >>> fluid.layers.matmul(x, y, transpose_x=True).shape
        (-1, 3, 4)
    """
    given = locals()
    if not is_eager([x, y]):
        _check_product(x, y, transpose_x, transpose_y)
    out: Variable = run_layer("matmul", given)
    if isinstance(out, Tensor):
        out.be_generated()
    return out


def _check_product(x: Any, y: Any, transpose_x: bool, transpose_y: bool) -> None:
    """Raise as `matmul` says it does, where the sizes are known; types and vectors are left to the operator."""
    if not (isinstance(x, Variable) and isinstance(y, Variable) and x.dtype == y.dtype and x.dtype in FLOATS):
        return
    if min(len(x.shape), len(y.shape)) < 2:
        return
    width, height = x.shape[-2 if transpose_x else -1], y.shape[-1 if transpose_y else -2]
    if _differ(width, height):
        problem = f"the width of X and the height of Y must be equal, got {width} and {height}"
        raise ArgumentAssertion(
            _with_operands(x, y, f"{problem} (transpose_x={transpose_x}, transpose_y={transpose_y})")
        )
    if min(len(x.shape), len(y.shape)) > 2 and any(map(_differ, x.shape[:-2], y.shape)):
        raise ArgumentError(_with_operands(x, y, "the batch dimensions of X and Y must be equal"))


def _with_operands(x: Variable, y: Variable, problem: str) -> str:
    """The message for a `problem` of `matmul`, with its operands and the user's line."""
    names = f"X={x.name}{list(x.shape)}, Y={y.name}{list(y.shape)}"
    return f"operator matmul ({names}): {problem}{callsite.describe(callsite.user_line())}"


def _differ(one: Any, other: Any) -> bool:
    """Whether two sizes are known to differ."""
    return type(one) is int and type(other) is int and one >= 0 <= other and one != other


def mul(
    x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: str | None = None
) -> Variable:
    """The product of `x` and `y`, each flattened to a matrix (`fluid.layers.mul`).

    Args:
        x: a float tensor whose first `x_num_col_dims` dimensions are the rows.
        y: a float tensor whose first `y_num_col_dims` dimensions, together as long as a row of `x`, are the
            rows.
        x_num_col_dims: see `x`.
        y_num_col_dims: see `y`.
        name: the name of the result.

    Returns:
        The row dimensions of `x` followed by the column dimensions of `y`.

    Raises:
        TypeError: `x` or `y` is not a float Variable.
        OperatorError: the matrices do not fit.
    """
    return run_layer("mul", locals())


def bilinear_tensor_product(
    x: Variable,
    y: Variable,
    size: int,
    act: Any = None,
    name: str | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
) -> Variable:
    """x W[i] y + b[i] for i below `size`, row by row (`fluid.layers.bilinear_tensor_product`).

    Args:
        x: float [N, m].
        y: float [N, n].
        size: how many products, each with its own m x n weights.
        act: the name of an activation of the result.
        name: the prefix of the variables' names.
        param_attr: ParamAttr of the weights [size, m, n].
        bias_attr: ParamAttr of the bias [1, size]; False for none.

    Returns:
        [N, size].
    """
    check_dtypes("bilinear_tensor_product", x=x, y=y)
    helper = LayerHelper("bilinear_tensor_product", name=name, act=act)
    sizes = (size, x.shape[1], y.shape[1])
    weight, bias = create_bilinear(helper.create_parameter, sizes, param_attr, bias_attr, x.dtype)
    out = helper.run("bilinear_tensor_product", {"X": x, "Y": y, "Weight": weight, "Bias": bias})
    return helper.append_activation(out)


def create_bilinear(
    create_parameter: Callable[..., Any],
    sizes: tuple[int, int, int],
    param_attr: Any,
    bias_attr: Any,
    dtype: Any,
) -> tuple[Any, Any]:
    """The weights of a bilinear product, `sizes` (results, left, right), and its bias [1, results]; None for False."""
    weight = create_parameter(attr=param_attr, shape=list(sizes), dtype=dtype)
    return weight, create_parameter(attr=bias_attr, shape=[1, sizes[0]], dtype=dtype, is_bias=True)


def fsp_matrix(x: Variable, y: Variable) -> Variable:
    """The mean product of each pair of channels of two layers, which distillation compares (`fluid.layers.fsp_matrix`).

    Follows Yim et al. (2017).

    Args:
        x, y: floats [batch, channels, height, width], which may differ in their numbers of channels.

    Returns:
        [batch, channels of x, channels of y].

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    return run_layer("fsp", locals(), helper=LayerHelper("fsp_matrix"))


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
