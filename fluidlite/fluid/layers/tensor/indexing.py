"""Elements picked by index, place or difference; random orders and choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base.dtypes import VarType, to_vartype
from ....base.errors import ArgumentError
from ....eager import Tensor
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variable, run_op
from ...op_functions import run_layer
from ..checks import alone
from .shapes import reshape
from .variables import assign

__all__ = [
    "diag_embed",
    "index_sample",
    "index_select",
    "meshgrid",
    "nonzero",
    "randperm",
    "roll",
    "sampling_id",
    "shard_index",
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
