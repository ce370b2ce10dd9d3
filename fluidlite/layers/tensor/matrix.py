"""Matrix products: `matmul`, `mul`, `bilinear_tensor_product`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base import callsite
from ...base.dtypes import FLOATS
from ...base.errors import ArgumentAssertion, ArgumentError
from ...eager import Tensor
from ...framework import Variable
from ...layer_helper import LayerHelper
from ...layer_helper_base import is_eager
from ...op_functions import run_layer
from ..checks import check_dtypes

__all__ = ["bilinear_tensor_product", "fsp_matrix", "matmul", "mul"]


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
    if any(map(_differ, x.shape[:-2], y.shape[:-2])):
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
