"""Tensors from nothing and from data: `to_tensor`, `zeros`, `arange`, `tril`, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base import unique_name
from ...base.dtypes import to_numpy, to_vartype
from ...base.place import as_place
from ...eager import Tensor, placing
from ...executor import LoDTensor
from ...fluid import layers
from ...fluid.initializer import Initializer
from ...fluid.layer_helper import LayerHelper
from ...fluid.param_attr import ParamAttr
from ...framework import Variable, mode
from ..dtypes import get_default_dtype
from ..modes import constant, follows, in_mode_of, reshaped, run

__all__ = [
    "arange",
    "assign",
    "create_parameter",
    "diag",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "to_tensor",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

Shape = Sequence[Any] | Any


def to_tensor(data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True) -> Any:
    """A new tensor with the elements of `data` (`paddle.to_tensor`).

    Args:
        data: a number, nested lists of numbers, an array of NumPy or CuPy, or a tensor. A single number gives shape
            [1].
        dtype: its element type; by default that of `data`, where Python's floats take the default type of floats and
            its integers int64.
        place: where to make it, a place or a name as `paddle.set_device` takes them; by default where that said.
        stop_gradient: False: gradients with respect to it are kept.

    Raises:
        ValueError: the lists are ragged, or there is no such place. TypeError: elements that are no numbers.

    Example:
        >>> import paddle
        >>> paddle.disable_static()
        >>> x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> (x @ x).numpy()
        array([[ 7., 10.],
               [15., 22.]], dtype=float32)
        >>> paddle.enable_static()
    """
    if isinstance(data, Variable) and not isinstance(data, Tensor):
        return data
    if not mode.eager_by_default():
        return layers.assign(_as_array(data, dtype))
    array = _as_array(Tensor(placing.adopt(data)) if placing.on_device(data) else data, dtype)
    put = placing.to_default_device(array) if place is None else placing.at(array, as_place(place))
    return Tensor(put, stop_gradient=stop_gradient)


def _as_array(data: Any, dtype: Any) -> np.ndarray:
    if isinstance(data, (Tensor, LoDTensor)):
        found = np.array(placing.read(data.array))
    elif isinstance(data, (list, tuple)) and any(isinstance(item, Tensor) for item in data):
        found = np.array([np.array(item) for item in data])
    else:
        try:
            found = np.array(data)
        except ValueError as error:
            raise ValueError(
                f"to_tensor needs lists of one length on each level, as the axes of a tensor have: {error}"
            ) from None
        if dtype is None and not isinstance(data, (np.ndarray, np.generic)) and found.dtype == np.float64:
            found = found.astype(get_default_dtype())
    if found.dtype.kind not in "biuf":
        raise TypeError(
            f"to_tensor takes numbers, lists of numbers, arrays and tensors, got {type(data).__name__}"
        )
    kind = to_numpy(to_vartype(found.dtype if dtype is None else dtype))
    return np.array(found, kind, order="C", ndmin=1)


def _float(dtype: Any) -> Any:
    return get_default_dtype() if dtype is None else dtype


def full(shape: Shape, fill_value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A tensor of `shape` filled with a number (`paddle.full`). `dtype`: by default that of floats."""
    size, kind = _shape(shape), _float(dtype)
    if follows(shape, fill_value):
        if not isinstance(size, Variable) and isinstance(fill_value, (int, float, np.generic)):
            array = np.full([int(one) for one in size], fill_value, to_numpy(kind))
            return Tensor(placing.to_default_device(array))
        with mode.guard(True):
            return layers.fill_constant(size, kind, fill_value)
    with mode.guard(False):
        return layers.fill_constant(size, kind, fill_value)


def _shape(shape: Shape) -> Any:
    if isinstance(shape, Variable):
        return shape
    return [shape] if isinstance(shape, int) else list(shape)


def zeros(shape: Shape, dtype: Any = None, name: str | None = None) -> Any:
    """A tensor of zeros (`paddle.zeros`); arguments as in `full`."""
    return full(shape, 0.0, dtype, name)


def ones(shape: Shape, dtype: Any = None, name: str | None = None) -> Any:
    """A tensor of ones (`paddle.ones`); arguments as in `full`."""
    return full(shape, 1.0, dtype, name)


def empty(shape: Shape, dtype: Any = None, name: str | None = None) -> Any:
    """An uninitialized tensor; here of zeros (`paddle.empty`)."""
    return full(shape, 0.0, dtype, name)


def full_like(x: Any, fill_value: float, dtype: Any = None, name: str | None = None) -> Any:
    """A tensor shaped as `x` filled with a number (`paddle.full_like`). `dtype`: by default that of `x`."""
    attrs = {"value": float(fill_value), "dtype": int(to_vartype(x.dtype if dtype is None else dtype))}
    return run("fill_any_like", {"X": x}, attrs=attrs, name=name, stop_gradient=("Out",))


def zeros_like(x: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A tensor of zeros shaped as `x` (`paddle.zeros_like`)."""
    return full_like(x, 0.0, dtype, name)


def ones_like(x: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A tensor of ones shaped as `x` (`paddle.ones_like`)."""
    return full_like(x, 1.0, dtype, name)


def empty_like(x: Any, dtype: Any = None, name: str | None = None) -> Any:
    """An uninitialized tensor shaped as `x`; here of zeros (`paddle.empty_like`)."""
    return full_like(x, 0.0, dtype, name)


def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None, name: str | None = None) -> Any:
    """The numbers from `start` up to, without, `end`, `step` apart; from 0 if only one is given (`paddle.arange`).

    `dtype`: by default int64 for integers, that of floats otherwise.
    """
    if end is None:
        start, end = 0, start
    if dtype is None:
        tensors = [item.dtype for item in (start, end, step) if isinstance(item, Variable)]
        whole = all(isinstance(item, (int, np.integer)) for item in (start, end, step))
        dtype = tensors[0] if tensors else "int64" if whole else get_default_dtype()
    with in_mode_of(start, end, step):
        return layers.range(start, end, step, dtype)


def linspace(start: Any, stop: Any, num: Any, dtype: Any = None, name: str | None = None) -> Any:
    """`num` numbers evenly spaced from `start` to `stop`, both included (`paddle.linspace`)."""
    with in_mode_of(start, stop, num):
        return layers.linspace(start, stop, num, _float(dtype))


def eye(num_rows: int, num_columns: int | None = None, dtype: Any = None, name: str | None = None) -> Any:
    """The identity matrix, or its first columns (`paddle.eye`)."""
    with in_mode_of():
        return layers.eye(num_rows, num_columns, dtype=_float(dtype))


def assign(x: Any, output: Any = None) -> Any:
    """A copy of a tensor, array or list, into `output` if given (`paddle.assign`)."""
    if not isinstance(x, Variable):
        with in_mode_of(output):
            return layers.assign(np.asarray(_as_array(x, None)), output)
    if output is None:
        return run("assign", {"X": x})
    LayerHelper("assign").append_op(type="assign", inputs={"X": [x]}, outputs={"Out": [output]})
    return output


def diag(x: Any, offset: int = 0, padding_value: float = 0.0, name: str | None = None) -> Any:
    """A matrix with the vector `x` on diagonal `offset` and `padding_value` elsewhere, or that diagonal of the
    matrix `x` (`paddle.diag`)."""
    if len(x.shape) == 1:
        found = x * constant(np.eye(x.shape[0]), x)
        below, right = max(offset, 0), max(-offset, 0)
        found = run("pad", {"X": found}, attrs={"paddings": [right, below, below, right], "pad_value": 0.0})
        elsewhere = 1 - np.eye(found.shape[0], k=offset)
        return found + constant(elsewhere * padding_value, x) if padding_value else found
    return diagonal_of(x, offset)


def diagonal_of(x: Any, offset: int) -> Any:
    """The elements x[i, i + offset], slices where there are more than two axes."""
    rows, columns = x.shape[:2]
    count = min(rows + min(offset, 0), columns - max(offset, 0))
    places = (np.arange(count) - min(offset, 0)) * columns + np.arange(count) + max(offset, 0)
    flat = reshaped("reshape2", x, {"shape": [rows * columns, *x.shape[2:]]})
    return run("gather", {"X": flat, "Index": constant(places, x, "int64")}, attrs={"overwrite": False})


def tril(x: Any, diagonal: int = 0, name: str | None = None) -> Any:
    """The lower triangles of the matrices `x` [..., m, n]: elements above `diagonal` become 0 (`paddle.tril`)."""
    return run("tril_triu", {"X": x}, attrs={"diagonal": diagonal, "lower": True}, name=name)


def triu(x: Any, diagonal: int = 0, name: str | None = None) -> Any:
    """The upper triangles of the matrices `x` [..., m, n]: elements below `diagonal` become 0 (`paddle.triu`)."""
    return run("tril_triu", {"X": x}, attrs={"diagonal": diagonal, "lower": False}, name=name)


def meshgrid(*args: Any, **kwargs: Any) -> list[Any]:
    """From vectors of sizes n, m, ...: as many tensors [n, m, ...], each varying along its own axis
    (`paddle.meshgrid`)."""
    given = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    sizes = [x.shape[0] for x in given]
    grids = []
    for axis, x in enumerate(given):
        lone = [-1 if place == axis else 1 for place in range(len(sizes))]
        times = [1 if place == axis else size for place, size in enumerate(sizes)]
        column = reshaped("reshape2", x, {"shape": lone})
        grids.append(run("expand", {"X": column}, attrs={"expand_times": times}))
    return grids


def create_parameter(
    shape: Sequence[int],
    dtype: Any,
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Any:
    """A trainable parameter (`paddle.create_parameter`); arguments as in `Layer.create_parameter`."""
    with mode.guard(follows()):
        helper = LayerHelper("create_parameter", name=unique_name.generate(name or "create_parameter"))
        if attr is None and name is not None:
            attr = name
        made = helper.create_parameter(attr, shape, dtype, is_bias, default_initializer)
    if isinstance(attr, ParamAttr) and not attr.trainable and not mode.in_dygraph_mode():
        made.stop_gradient = True
    return made
