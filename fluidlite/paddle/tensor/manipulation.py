"""Shapes and orders of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.dtypes import to_vartype
from ...eager import Tensor, placing
from ...fluid import layers
from ...framework import Variable
from ..modes import axes_of, by_arguments, constant, eager_array, reshaped, run

__all__ = [
    "broadcast_shape",
    "broadcast_to",
    "cast",
    "chunk",
    "concat",
    "crop",
    "expand",
    "expand_as",
    "flatten",
    "flip",
    "gather",
    "gather_nd",
    "moveaxis",
    "rank",
    "repeat_interleave",
    "reshape",
    "reshape_",
    "reverse",
    "roll",
    "scatter",
    "scatter_nd",
    "scatter_nd_add",
    "shape",
    "slice",
    "split",
    "squeeze",
    "squeeze_",
    "stack",
    "strided_slice",
    "t",
    "tile",
    "tolist",
    "transpose",
    "unbind",
    "unique",
    "unsqueeze",
    "unsqueeze_",
    "unstack",
]

_concat = by_arguments(layers.concat)
_crop_tensor = by_arguments(layers.crop_tensor)
_reshape = by_arguments(layers.reshape)
_rank = by_arguments(layers.rank)
_slice = by_arguments(layers.slice)
_split = by_arguments(layers.split)
_strided_slice = by_arguments(layers.strided_slice)
_unstack = by_arguments(layers.unstack)


def cast(x: Any, dtype: Any) -> Any:
    """`x` converted to `dtype` (`paddle.cast`)."""
    attrs = {"in_dtype": int(x.dtype), "out_dtype": int(to_vartype(dtype))}
    if isinstance(x, Tensor):
        return run("cast", {"X": x}, attrs=attrs)
    return layers.cast(x, dtype)


def shape(input: Any) -> Any:
    """The shape as an int32 tensor (`paddle.shape`)."""
    return run("shape", {"Input": input}, stop_gradient=("Out",))


def rank(input: Any) -> Any:
    """The number of axes as an int32 tensor (`paddle.rank`)."""
    return _rank(input)


def reshape(x: Any, shape: Any, name: str | None = None) -> Any:
    """The elements of `x` in another shape (`paddle.reshape`).

    `shape`: integers (or one-element tensors, or a tensor of them); one -1 is worked out, 0 keeps the size of `x`
    there.
    """
    plain = not isinstance(shape, Variable) and not any(isinstance(size, Variable) for size in shape)
    if plain and isinstance(x, Tensor):
        return reshaped("reshape2", x, {"shape": [int(size) for size in shape]})
    return _reshape(x, shape, name=name)


def flatten(x: Any, start_axis: int = 0, stop_axis: int = -1, name: str | None = None) -> Any:
    """Axes `start_axis` to `stop_axis`, both included, as one (`paddle.flatten`)."""
    rank = len(x.shape)
    first, last = start_axis % rank, stop_axis % rank
    if first > last:
        raise ValueError(
            f"start_axis {start_axis} must not come after stop_axis {stop_axis} (the rank is {rank})"
        )
    merged = list(x.shape[first : last + 1])
    whole = -1 if -1 in merged else math.prod(merged)
    # 0 keeps a size that need not be known yet.
    return reshape(x, [*[0] * first, whole, *x.shape[last + 1 :]], name)


def transpose(x: Any, perm: Sequence[int], name: str | None = None) -> Any:
    """The axes of `x` in the order `perm` (`paddle.transpose`)."""
    rank = len(x.shape)
    return reshaped("transpose2", x, {"axis": [axis % rank for axis in perm]}, name)


def t(input: Any, name: str | None = None) -> Any:
    """The transpose of a matrix; vectors as they are (`paddle.t`). Raises ValueError for more axes."""
    if len(input.shape) > 2:
        raise ValueError(f"paddle.t takes vectors and matrices, got shape {list(input.shape)}; use transpose")
    return transpose(input, [1, 0], name) if len(input.shape) == 2 else input


def moveaxis(x: Any, source: Any, destination: Any, name: str | None = None) -> Any:
    """Axes `source` moved to places `destination`, the others in their order (`paddle.moveaxis`)."""
    rank = len(x.shape)
    sources, targets = ([axis % rank for axis in axes_of(axes) or ()] for axes in (source, destination))
    order = [axis for axis in range(rank) if axis not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return transpose(x, order, name)


def squeeze(x: Any, axis: Any = None, name: str | None = None) -> Any:
    """Without those of the axes `axis`, by default all, that have size 1 (`paddle.squeeze`)."""
    axes = range(len(x.shape)) if axis is None else axes_of(axis) or ()
    ones = [one for one in axes if x.shape[one] == 1]
    if not ones:
        return run("assign", {"X": x}, name=name)
    return reshaped("squeeze2", x, {"axes": ones}, name)


def unsqueeze(x: Any, axis: Any, name: str | None = None) -> Any:
    """With axes of size 1 put at the places `axis` of the result (`paddle.unsqueeze`)."""
    return reshaped("unsqueeze2", x, {"axes": axes_of(axis)}, name)


def in_place(x: Any, made: Any) -> Any:
    """`x` with the elements and history of `made`; for Variables of programs `made` itself."""
    if not isinstance(x, Tensor):
        return made
    if not x.stop_gradient and x.is_leaf:
        raise ValueError(
            f"leaf tensor {x.name!r} needs its gradient and cannot be changed in place: do it under paddle.no_grad(), "
            "or to x.clone()"
        )
    x.take_over(made)
    return x


def reshape_(x: Any, shape: Any, name: str | None = None) -> Any:
    """`reshape` in place; returns `x` (`paddle.reshape_`)."""
    return in_place(x, reshape(x, shape, name))


def squeeze_(x: Any, axis: Any = None, name: str | None = None) -> Any:
    """`squeeze` in place; returns `x` (`paddle.squeeze_`)."""
    return in_place(x, squeeze(x, axis, name))


def unsqueeze_(x: Any, axis: Any, name: str | None = None) -> Any:
    """`unsqueeze` in place; returns `x` (`paddle.unsqueeze_`)."""
    return in_place(x, unsqueeze(x, axis, name))


def concat(x: Sequence[Any], axis: Any = 0, name: str | None = None) -> Any:
    """Tensors concatenated along an existing axis (`paddle.concat`)."""
    if isinstance(axis, int):
        return run("concat", {"X": list(x)}, attrs={"axis": axis}, name=name)
    return _concat(list(x), axis, name=name)


def stack(x: Sequence[Any], axis: int = 0, name: str | None = None) -> Any:
    """Tensors of one shape side by side along a new axis (`paddle.stack`)."""
    return run("stack", {"X": list(x)}, ("Y",), {"axis": axis}, name=name)


def split(x: Any, num_or_sections: Any, axis: Any = 0, name: str | None = None) -> list[Any]:
    """`x` cut along `axis` into equal parts, or parts of the sizes given; one may be -1 (`paddle.split`)."""
    return _split(x, num_or_sections, axis, name=name)


def chunk(x: Any, chunks: int, axis: Any = 0, name: str | None = None) -> list[Any]:
    """`x` cut along `axis` into equal parts (`paddle.chunk`)."""
    return split(x, chunks, axis, name)


def unstack(x: Any, axis: int = 0, num: int | None = None) -> list[Any]:
    """The slices of `x` along `axis`, which is gone (`paddle.unstack`)."""
    return _unstack(x, axis, num)


def unbind(input: Any, axis: int = 0) -> list[Any]:
    """The same as `unstack` (`paddle.unbind`)."""
    return unstack(input, axis)


def _times(x: Any, target: Sequence[int], who: str) -> list[int]:
    """The number of repetitions along each axis by which `x` expands to `target`; shapes are aligned at their ends."""
    lead = len(target) - len(x.shape)
    own = [1] * lead + list(x.shape)
    times = []
    for have, want in zip(own, target, strict=True) if lead >= 0 else ():
        if want in (-1, have):
            times.append(1)
        elif have == 1:
            times.append(int(want))
        else:
            break
    if len(times) != len(target):
        raise ValueError(
            f"paddle.{who} cannot repeat shape {list(x.shape)} to {list(target)}: only axes of size 1 can"
        )
    return times


def expand(x: Any, shape: Sequence[int], name: str | None = None) -> Any:
    """`x` with axes of size 1 repeated to `shape`; -1 keeps a size (`paddle.expand`). Raises ValueError if that cannot
    be."""
    target = [int(size) for size in (shape.tolist() if isinstance(shape, Tensor) else shape)]
    return _tiled(x, _times(x, target, "expand"), name)


def _tiled(x: Any, times: list[int], name: str | None) -> Any:
    if len(times) > len(x.shape):
        x = unsqueeze(x, list(range(len(times) - len(x.shape))))
    return run(
        "expand", {"X": x}, attrs={"expand_times": [1] * (len(x.shape) - len(times)) + times}, name=name
    )


def broadcast_to(x: Any, shape: Sequence[int], name: str | None = None) -> Any:
    """The same as `expand` (`paddle.broadcast_to`)."""
    return expand(x, shape, name)


def expand_as(x: Any, y: Any, name: str | None = None) -> Any:
    """`x` with axes of size 1 repeated to the shape of `y` (`paddle.expand_as`)."""
    return expand(x, list(y.shape), name)


def broadcast_shape(x_shape: Sequence[int], y_shape: Sequence[int]) -> list[int]:
    """The shape that `x + y` has (`paddle.broadcast_shape`)."""
    return list(np.broadcast_shapes(tuple(x_shape), tuple(y_shape)))


def tile(x: Any, repeat_times: Any, name: str | None = None) -> Any:
    """`x` repeated as often along each axis; axes counted from the last one (`paddle.tile`)."""
    times = repeat_times.tolist() if isinstance(repeat_times, Tensor) else axes_of(repeat_times) or []
    return _tiled(x, [int(number) for number in times], name)


def repeat_interleave(x: Any, repeats: int, axis: int | None = None, name: str | None = None) -> Any:
    """Each element along `axis` (None: of the flattened `x`) `repeats` times in a row (`paddle.repeat_interleave`)."""
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    return gather(x, constant(np.repeat(np.arange(x.shape[axis]), repeats), x, "int64"), axis)


def flip(x: Any, axis: Any, name: str | None = None) -> Any:
    """The axes `axis` in the other direction (`paddle.flip`)."""
    return run("flip", {"X": x}, attrs={"dims": axes_of(axis)}, name=name)


def reverse(x: Any, axis: Any, name: str | None = None) -> Any:
    """The same as `flip` (`paddle.reverse`)."""
    return flip(x, axis, name)


def roll(x: Any, shifts: Any, axis: Any = None, name: str | None = None) -> Any:
    """Elements moved on by `shifts` along `axis`, those at the end to the start (`paddle.roll`)."""
    dims = axes_of(axis)
    return run("roll", {"X": x}, attrs={"shifts": axes_of(shifts), "dims": dims or []}, name=name)


def gather(x: Any, index: Any, axis: Any = None, name: str | None = None) -> Any:
    """The slices of `x` along `axis`, the first by default, whose numbers are in the vector `index`
    (`paddle.gather`). Gradients of those that come more than once add up."""
    # `overwrite` is about gradients: Fluid 1.8 keeps only one of several.
    attrs = {"overwrite": False}
    axis = int(axis or 0) % len(x.shape)
    if axis == 0:
        return run("gather", {"X": x, "Index": index}, attrs=attrs, name=name)
    order = [axis, *(other for other in range(len(x.shape)) if other != axis)]
    found = run("gather", {"X": transpose(x, order), "Index": index}, attrs=attrs)
    return transpose(found, [order.index(place) for place in range(len(order))], name)


def gather_nd(x: Any, index: Any, name: str | None = None) -> Any:
    """The elements or slices of `x` at the places that the last axis of `index` holds (`paddle.gather_nd`)."""
    return run("gather_nd", {"X": x, "Index": index}, name=name)


def scatter(x: Any, index: Any, updates: Any, overwrite: bool = True, name: str | None = None) -> Any:
    """`x` with rows `index` replaced by `updates`, or by their sums if not `overwrite` (`paddle.scatter`)."""
    if not x.stop_gradient:
        # The operator of Fluid 1.8 lets gradients through to the rows that were replaced.
        kept = run("fill_any_like", {"X": x}, attrs={"value": 1.0}, stop_gradient=("Out",))
        gone = run("fill_any_like", {"X": updates}, attrs={"value": 0.0}, stop_gradient=("Out",))
        x = x * run("scatter", {"X": kept, "Ids": index, "Updates": gone}, stop_gradient=("Out",))
    return run(
        "scatter", {"X": x, "Ids": index, "Updates": updates}, attrs={"overwrite": overwrite}, name=name
    )


def scatter_nd_add(x: Any, index: Any, updates: Any, name: str | None = None) -> Any:
    """`x` with `updates` added at the places that the last axis of `index` holds (`paddle.scatter_nd_add`)."""
    return run("scatter_nd_add", {"X": x, "Index": index, "Updates": updates}, name=name)


def scatter_nd(index: Any, updates: Any, shape: Sequence[int], name: str | None = None) -> Any:
    """Zeros of `shape` with `updates` added as `scatter_nd_add` does (`paddle.scatter_nd`)."""
    return scatter_nd_add(constant(np.zeros(tuple(shape)), updates), index, updates, name)


def slice(input: Any, axes: Sequence[int], starts: Any, ends: Any) -> Any:  # noqa: A001 - Paddle's name
    """`input` from `starts` to, without, `ends` along `axes` (`paddle.slice`)."""
    return _slice(input, axes, starts, ends)


def strided_slice(
    x: Any, axes: Sequence[int], starts: Any, ends: Any, strides: Any, name: str | None = None
) -> Any:
    """As `slice`, every `strides`-th; negative ones backwards (`paddle.strided_slice`)."""
    return _strided_slice(x, axes, starts, ends, strides)


def crop(x: Any, shape: Any = None, offsets: Any = None, name: str | None = None) -> Any:
    """The part of `x` of that shape, from `offsets` on, by default the start (`paddle.crop`)."""
    return _crop_tensor(x, shape, offsets, name=name)


def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    dtype: Any = "int64",
    name: str | None = None,
) -> Any:
    """The different elements of an eager tensor (or slices along `axis`), sorted (`paddle.unique`).

    With them, if asked for, where each comes first, which of them each element is, and how often each comes.
    """
    find: Any = np.unique  # typed for literal flags only
    found = find(eager_array(x, "unique"), return_index, return_inverse, return_counts, axis=axis)

    def tensor(array: np.ndarray) -> Tensor:
        return Tensor(placing.to_device_of(np.ascontiguousarray(array), x.array))

    if not isinstance(found, tuple):
        return tensor(found)
    first, *places = found
    return (tensor(first), *[tensor(part.reshape(-1).astype(dtype)) for part in places])


def tolist(x: Any) -> Any:
    """The elements of an eager tensor as nested lists (`paddle.tolist`)."""
    return x.tolist()
