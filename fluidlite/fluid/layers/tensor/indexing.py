"""Parts of Variables, and elements picked by index, place or difference; random orders and choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base.dtypes import VarType, to_vartype
from ....base.errors import ArgumentError, ArgumentNotMet
from ....eager import Tensor, as_number_list
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variable, check_variables, run_op
from ...op_functions import run_layer
from ..checks import alone
from .constants import fill_constant
from .shapes import check_list, number_inputs, reshape
from .variables import assign

__all__ = [
    "crop",
    "crop_tensor",
    "diag_embed",
    "gather",
    "gather_nd",
    "index_sample",
    "index_select",
    "meshgrid",
    "nonzero",
    "randperm",
    "roll",
    "sampling_id",
    "scatter",
    "scatter_nd",
    "scatter_nd_add",
    "shard_index",
    "slice",
    "strided_slice",
    "t",
    "tril",
    "triu",
    "unique",
    "unique_with_counts",
]

_WHOLE = (VarType.INT32, VarType.INT64)


def index_select(input: Variable, index: Variable, dim: int = 0) -> Variable:
    """The entries of `input` along `dim` that the integers in `index` name (`fluid.layers.index_select`)."""
    return run_layer("index_select", locals(), X="input")


def index_sample(x: Variable, index: Variable) -> Variable:
    """Of each row of `x` [N, m] the elements that that row of `index` [N, k] names (`fluid.layers.index_sample`)."""
    return run_layer("index_sample", locals())


def diag_embed(input: Variable | np.ndarray, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Variable:
    """Matrices whose diagonal is the last dimension of `input`, 0 elsewhere (`fluid.layers.diag_embed`).

    `offset`: how far above the main diagonal; `dim1`, `dim2`: where rows and columns stand in the result.
    """
    if isinstance(input, np.ndarray):
        input = assign(input)
    return run_layer("diag_embed", locals(), stop_gradient=True)


def meshgrid(input: Sequence[Variable], name: str | None = None) -> list[Variable]:
    """Each vector along a dimension of its own, repeated along the others (`fluid.layers.meshgrid`)."""
    if not isinstance(input, (list, tuple)):
        raise TypeError(f"'input' of meshgrid must be a list or a tuple, got {type(input).__name__}")
    for k, var in enumerate(input):
        check_variable(var, f"input[{k}]", "meshgrid")
    made = run_op("meshgrid", {"X": list(input)}, [("Out", len(input))], name=name)
    return list(made) if len(input) > 1 else [made]


def roll(input: Variable, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Variable:
    """`input` moved on by `shifts` along `dims`, or (None) as one long row (`fluid.layers.roll`).

    What leaves at the end comes in at the front.
    """
    check_variable(input, "input", "roll")
    whole = reshape(input, [-1, 1]) if dims is None else input
    attrs = {"shifts": _list(shifts), "dims": [0] if dims is None else _list(dims)}
    moved = run_op("roll", {"X": whole}, attrs=attrs)
    return reshape(moved, list(input.shape), inplace=not isinstance(moved, Tensor))


def _list(value: int | Sequence[int]) -> list[int]:
    return [value] if isinstance(value, int) else [int(n) for n in value]


def _triangle(layer: str, input: Variable, diagonal: int, name: str | None) -> Variable:
    check_variable(input, "input", layer)
    if len(input.shape) < 2:
        raise ArgumentError(
            f"'input' of {layer} must have at least 2 dimensions, got shape {list(input.shape)}"
        )
    attrs = {"diagonal": diagonal, "lower": layer == "tril"}
    helper = LayerHelper(layer, name=name)
    made = None if isinstance(input, Tensor) else helper.create_variable(name=helper.name, dtype=input.dtype)
    return helper.run("tril_triu", {"X": input}, attrs=attrs, into={"Out": made})


def tril(input: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """The matrices in `input` with zeros above a diagonal (`fluid.layers.tril`)."""
    return _triangle("tril", input, diagonal, name)


def triu(input: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """The matrices in `input` with zeros below a diagonal (`fluid.layers.triu`)."""
    return _triangle("triu", input, diagonal, name)


def t(input: Variable, name: str | None = None) -> Variable:
    """The transpose of a matrix; vectors stay as they are (`fluid.layers.t`).

    Raises ValueError for more than two dimensions.
    """
    check_variable(input, "input", "t")
    if len(input.shape) > 2:
        raise ArgumentError(f"'input' of t must have at most 2 dimensions, got shape {list(input.shape)}")
    if len(input.shape) < 2:
        return input
    return run_layer("transpose2", {"x": input, "axis": [1, 0]}, helper=LayerHelper("t", name=name))[0]


def nonzero(input: Variable, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not 0, int64 [count, rank] (`fluid.layers.nonzero`).

    `as_tuple`: one [count, 1] for each dimension.
    """
    check_variable(input, "input", "nonzero")
    found = run_op("where_index", {"Condition": input})
    if not as_tuple:
        return found
    parts = []
    for axis in range(len(input.shape)):
        attrs = {"axes": [1], "starts": [axis], "ends": [axis + 1]}
        parts.append(run_op("slice", {"Input": found}, attrs=attrs))
    return tuple(parts)


def unique(x: Variable, dtype: Any = "int32") -> tuple[Variable, Variable]:
    """The different elements of a vector, and which of them each element is (`fluid.layers.unique`).

    They come in the order in which they first appear; `dtype` is that of the second result.
    """
    return run_layer("unique", locals())


def unique_with_counts(x: Variable, dtype: Any = "int32") -> tuple[Variable, Variable, Variable]:
    """As `unique`, and how often each different element is there (`fluid.layers.unique_with_counts`)."""
    if to_vartype(dtype) not in _WHOLE:
        raise TypeError(f"'dtype' of unique_with_counts must be int32 or int64, got {dtype}")
    return run_layer("unique_with_counts", locals())


def shard_index(
    input: Variable, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1
) -> Variable:
    """Indices counted from the start of a shard (`fluid.layers.shard_index`).

    `index_num` indices are cut into `nshards` equal shards; those in `input` (int64 [..., 1]) that are not of shard
    `shard_id` become `ignore_value`.
    """
    if not 0 <= shard_id < nshards:
        raise ArgumentError(f"'shard_id' of shard_index must be in [0, {nshards}), got {shard_id}")
    return run_layer("shard_index", locals(), X="input")


def randperm(
    n: int,
    out: Variable | None = None,
    dtype: Any = "int64",
    device: str | None = None,
    stop_gradient: bool = True,
    seed: int = 0,
) -> Variable:
    """The numbers from 0 to `n` - 1 in random order (`fluid.layers.randperm`).

    `out`: where to write them; `device`: accepted and without effect; `seed` not 0: the same order each time.
    """
    if n < 1:
        raise ArgumentError(f"'n' of randperm must be positive, got {n}")
    out = run_layer("randperm", locals(), without=("device", "stop_gradient"))
    out.stop_gradient = stop_gradient
    return out


def sampling_id(
    x: Variable, min: float = 0.0, max: float = 1.0, seed: int = 0, dtype: Any = "float32"
) -> Variable:
    """A class for each row of probabilities [N, classes], drawn by them: int64 [N] (`fluid.layers.sampling_id`).

    Draws are between `min` and `max`; `seed` not 0: the same each time; `dtype`: accepted and without effect.
    """
    x = alone(x)
    return run_layer("sampling_id", locals(), without=("dtype",), stop_gradient=True)


Numbers = Sequence[int | Variable] | Variable


def _bounds(
    helper: LayerHelper, bounds: dict[str, Numbers], count: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and attributes for starts, ends and strides of `count` axes."""
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {}
    flags = [1] * count
    for name, values in bounds.items():
        if not isinstance(values, Variable) and len(values) != count:
            raise ArgumentNotMet(
                f"'{name}' of {helper.layer_type} must have a number for each of {count} axes, got {values!r}"
            )
        slot = f"{name.capitalize()}Tensor"
        found, numbers = number_inputs(helper, name, values, slot, f"{slot}List")
        inputs.update(found)
        attrs.update(numbers or {name: []})
        given = [values] * count if isinstance(values, Variable) else values
        flags = [-1 if isinstance(one, Variable) else flag for one, flag in zip(given, flags, strict=True)]
    attrs["infer_flags"] = flags
    return inputs, attrs


def slice(input: Variable, axes: Sequence[int], starts: Numbers, ends: Numbers) -> Variable:
    """`input` from `starts` up to and without `ends` along `axes` (`fluid.layers.slice`).

    Args:
        input: a tensor.
        axes: the dimensions that are cut.
        starts: where each begins; negative numbers count from the end. the list may hold Variables or
            for it.
        ends: where each ends; as `starts`, and greater numbers than the size mean the end.

    Raises:
        ValueError: `axes`, `starts` and `ends` do not fit each other.
        TypeError: an argument is of another type.
        OperatorError: nothing would be left.
    """
    check_variable(input, "input", "slice")
    axes, starts, ends = as_number_list(axes), as_number_list(starts), as_number_list(ends)
    if not isinstance(axes, (list, tuple)):
        raise ArgumentError(f"'axes' of slice must be a list or tuple, got {axes!r}")
    for name, value in (("starts", starts), ("ends", ends)):
        if not isinstance(value, (list, tuple, Variable)):
            raise ArgumentError(f"'{name}' of slice must be a Variable, list or tuple, got {value!r}")
    helper = LayerHelper("slice")
    inputs, attrs = _bounds(helper, {"starts": starts, "ends": ends}, len(axes))
    return helper.run("slice", {"Input": input, **inputs}, attrs={"axes": list(axes), **attrs})


def strided_slice(
    input: Variable, axes: Sequence[int], starts: Numbers, ends: Numbers, strides: Numbers
) -> Variable:
    """`input` from `starts` up to `ends` in steps of `strides` along `axes` (`fluid.layers.strided_slice`).

    Arguments and errors as in `slice`; a negative stride goes backwards.
    """
    check_variable(input, "input", "strided_slice")
    axes, starts, ends, strides = (as_number_list(value) for value in (axes, starts, ends, strides))
    for name, value in (("axes", axes), ("starts", starts), ("ends", ends), ("strides", strides)):
        check_list(value, name, "strided_slice")
    helper = LayerHelper("strided_slice")
    inputs, attrs = _bounds(helper, {"starts": starts, "ends": ends, "strides": strides}, len(axes))
    return helper.run("strided_slice", {"Input": input, **inputs}, attrs={"axes": list(axes), **attrs})


def crop(
    x: Variable,
    shape: Sequence[int] | Variable | None = None,
    offsets: Sequence[int] | Variable | None = None,
    name: str | None = None,
) -> Variable:
    """The part of `x` of `shape` that begins at `offsets` (`fluid.layers.crop`).

    Args:
        x: a tensor.
        shape: the sizes of the part, or a Variable of that shape.
        offsets: where it begins in each dimension, or an int32 Variable that tells; zeros by default.
        name: the name of the result.

    Raises:
        ValueError: `shape` is no list, tuple or Variable.
    """
    check_variable(x, "x", "crop")
    if not isinstance(shape, (list, tuple, Variable)):
        raise ArgumentError(f"'shape' of crop must be a list, tuple or Variable, got {shape!r}")
    offsets = [0] * len(x.shape) if offsets is None else offsets
    return run_layer("crop", locals(), Y="shape")


def crop_tensor(
    x: Variable, shape: Numbers | None = None, offsets: Numbers | None = None, name: str | None = None
) -> Variable:
    """The part of `x` of `shape` that begins at `offsets` (`fluid.layers.crop_tensor`).

    Args:
        x: a tensor.
        shape: the sizes of the part; -1 reaches to the end. the list may hold Variables, or be one.
        offsets: where it begins in each dimension, as `shape`; zeros by default.
        name: the name of the result.

    Raises:
        TypeError: `shape` or `offsets` is of another type.
    """
    check_variable(x, "x", "crop_tensor")
    shape, offsets = as_number_list(shape), as_number_list([0] * len(x.shape) if offsets is None else offsets)
    check_list(shape, "shape", "crop_tensor")
    check_list(offsets, "offsets", "crop_tensor")
    helper = LayerHelper("crop_tensor", name=name)
    out = helper.create_variable_for_type_inference(like=x)  # named before those of sizes
    inputs: dict[str, Any] = {"X": [x]}
    attrs: dict[str, Any] = {}
    for key, value, unknown in (("offsets", offsets, -1), ("shape", shape, 0)):
        slot = key.capitalize()
        found, sizes = number_inputs(helper, key, value, slot, f"{slot}Tensor", unknown)
        inputs.update(found)
        attrs.update(sizes or {key: [-1] * len(x.shape) if key == "offsets" else []})
    return helper.run("crop_tensor", inputs, attrs=attrs, into={"Out": out})


def gather(input: Variable, index: Variable, overwrite: bool = True) -> Variable:
    """The rows of `input` that `index` names (`fluid.layers.gather`). A list of one Variable is that Variable.

    Args:
        input: [rows, ...].
        index: int32 or int64 [n] or [n, 1], each a row of `input`.
        overwrite: where a row is taken several times its gradient is the last one, otherwise their sum.

    Returns:
        [n, ...].
    """
    input, index = alone(input), alone(index)
    return run_layer("gather", locals(), X="input")


def gather_nd(input: Variable, index: Variable, name: str | None = None) -> Variable:
    """The elements or slices of `input` at the points in `index` (`fluid.layers.gather_nd`).

    `index`: int32 or int64 [..., depth], depth at most the rank of `input`; gives [...,
    *input.shape[depth:]]. A list of one Variable is that Variable.
    """
    input, index = alone(input), alone(index)
    return run_layer("gather_nd", locals(), X="input")


def scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None, overwrite: bool = True
) -> Variable:
    """`input` with the rows that `index` names replaced by `updates` (`fluid.layers.scatter`).

    Args:
        input: [rows, ...].
        index: int32 or int64 [n] or [n, 1].
        updates: [n, ...].
        name: the name of the result.
        overwrite: the last counts where a row is named several times; otherwise their sum.

    A list of one Variable is that Variable.
    """
    input, index, updates = alone(input), alone(index), alone(updates)
    return run_layer("scatter", locals(), X="input", Ids="index")


def scatter_nd_add(ref: Variable, index: Variable, updates: Variable, name: str | None = None) -> Variable:
    """`ref` with `updates` added at the points in `index` (`fluid.layers.scatter_nd_add`).

    Args:
        ref: a tensor.
        index: int32 or int64 [..., depth].
        updates: [..., *ref.shape[depth:]], of the type of `ref`.
        name: the name of the result.

    Raises:
        ValueError: `ref` and `updates` differ in type.
    """
    index = alone(index)
    check_variables("scatter_nd_add", ref=ref, updates=updates)
    if ref.dtype != updates.dtype:
        raise ArgumentError(
            f"ref and updates of scatter_nd_add must have one data type, got {ref.dtype} and {updates.dtype}"
        )
    return run_layer("scatter_nd_add", locals(), X="ref")


def scatter_nd(index: Variable, updates: Variable, shape: Sequence[int], name: str | None = None) -> Variable:
    """Zeros of `shape` with `updates` added at the points in `index` (`fluid.layers.scatter_nd`)."""
    check_variable(updates, "updates", "scatter_nd")
    return scatter_nd_add(fill_constant(shape, updates.dtype, 0.0), index, updates, name)
