"""Gather, scatter and search nodes: elements by their indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_vartype
from ...framework import Variable
from .values import Node, Size, Value, imports


def gathered(n: Node, x: Variable, places: Variable, axis: int) -> Variable:
    """The slices of `x` at these indices along an axis."""
    order = [axis, *(k for k in range(len(x.shape)) if k != axis)]
    out = n.op("gather", {"X": n.transposed(x, order), "Index": places})
    return n.transposed(out, np.argsort(order).tolist())


def axis_indices(n: Node, like: Variable, axis: int) -> Variable:
    """The index of each element along `axis`, in the shape of `like`."""
    ones = n.filled(like, 1.0, VarType.INT64)
    return n.unary("cumsum", ones, axis=axis, exclusive=True)


def _non_negative(n: Node, index: int, x: Variable, axis: int) -> Variable:
    """An input of indices along an axis of `x`. Negative constants count from the end; computed ones fail in a run."""
    places = n.value(index).array
    if places is None or not (places < 0).any():
        return n.var(index)
    if x.shape[axis] >= 0:
        return n.maker.constant(np.atleast_1d(np.where(places < 0, places + x.shape[axis], places)))
    below = n.maker.constant(np.atleast_1d(places < 0).astype("int64"))
    size = n.maker.size(Size(x.name, axis), "int64")
    return n.pair("add", n.cast(n.var(index), VarType.INT64), n.pair("mul", below, size))


def _non_negative_nd(n: Node, index: int, first: int = 0) -> Variable:
    """As `_non_negative` for an input [..., k] with an index for each axis from `first` on."""
    places = n.value(index).array
    if places is None or not (places < 0).any():
        return n.var(index)
    axes = range(first, first + places.shape[-1])
    sizes = [n.shape()[axis] if n.shape()[axis] >= 0 else Size(n.var().name, axis) for axis in axes]
    if all(isinstance(size, int) for size in sizes):
        return n.maker.constant(np.where(places < 0, places + np.array(sizes), places))
    below = n.maker.constant((places < 0).astype("int64"))
    return n.pair("add", n.cast(n.var(index), VarType.INT64), n.pair("mul", below, n.maker.of_sizes(sizes)))


@imports("Gather")
def _gather(n: Node) -> None:
    found, index, axis = n.value(), n.value(1), n.attr("axis", 0)
    if found.sizes is not None and index.array is not None:
        n.known([found.sizes[place] for place in n.ints(1)], scalar=index.array.ndim == 0)
        return
    axis %= n.rank()
    if index.array is not None and index.array.ndim == 0:
        place = int(index.array)
        end = place + 1 if place != -1 else 2**31 - 1
        n.out(
            n.op("slice", {"Input": n.var()}, axes=[axis], starts=[place], ends=[end], decrease_axis=[axis]),
            scalar=n.rank() == 1,
        )
        return
    if axis == 0 and n.rank() == 2 and not index.scalar:
        ids = n.cast(_non_negative(n, 1, n.var(), 0), VarType.INT64)
        n.out(n.op("lookup_table_v2", {"W": n.var(), "Ids": ids}, padding_idx=-1))
        return
    places = _non_negative(n, 1, n.var(), axis)
    if n.rank(1) < 2:
        out = gathered(n, n.var(), places, axis)
        alone = index.scalar and n.rank() == 1
        if index.scalar and not alone:
            out = n.squeezed(out, [axis])
        n.out(out, scalar=alone)
        return
    # The axes of the indices come first; move them to where the axis was.
    ahead = [axis, *(k for k in range(n.rank()) if k != axis)]
    places = n.unsqueezed(places, [n.rank(1)])
    out = n.op("gather_nd", {"X": n.transposed(n.var(), ahead), "Index": places})
    wide, trailing = n.rank(1), n.rank(1) + axis
    n.out(n.transposed(out, [*range(wide, trailing), *range(wide), *range(trailing, wide + n.rank() - 1)]))


@imports("GatherND")
def _gather_nd(n: Node) -> None:
    count = n.attr("batch_dims", 0)
    index = _non_negative_nd(n, 1, count)
    if count:
        one = n.sliced(index, [n.rank(1) - 1], [0], [1])
        index = n.op(
            "concat", {"X": [*(axis_indices(n, one, axis) for axis in range(count)), index]}, axis=-1
        )
    n.out(n.op("gather_nd", {"X": n.var(), "Index": index}))


@imports("NonZero")
def _non_zero(n: Node) -> None:
    dtype = n.var().dtype
    truth = (
        n.var() if dtype == VarType.BOOL else n.unary("cast", n.var(), in_dtype=dtype, out_dtype=VarType.BOOL)
    )
    places = n.op("where_index", {"Condition": truth})
    n.out(n.op("transpose2", {"X": places}, more=["XShape"], axis=[1, 0]))


@imports("Unique")
def _unique(n: Node) -> None:
    """Fluid's `unique` keeps the order of first occurrence; ONNX's may also sort."""
    if n.attr("axis") is not None:
        raise n.fail("looks for unique slices along an axis")
    flat = n.flat(n.var())
    whole = {"dtype": int(VarType.INT64)}
    outs = {
        name: n.maker.block.create_var(name=n.maker.block._new_name("unique.tmp"))
        for name in ("Out", "Index", "Count")
    }
    n.maker.block.append_op(type="unique_with_counts", inputs={"X": flat}, outputs=outs, attrs=whole)
    found, inverse, count = outs["Out"], outs["Index"], outs["Count"]
    # Of several writes to an index the last one wins: reversed, that is the first occurrence.
    backwards = n.unary("reverse", inverse, axis=[0])
    steps = n.unary("cumsum", n.filled(flat, 1, VarType.INT64), axis=0, reverse=True, exclusive=True)
    first = _overwritten(n, n.filled(count, 0, VarType.INT64), backwards, steps)
    if n.attr("sorted", 1):
        found, order = n.ordered(found)
        _, rank = n.ordered(order)
        inverse = n.op("gather", {"X": rank, "Index": inverse})
        first, count = (n.op("gather", {"X": one, "Index": order}) for one in (first, count))
    for place, made in enumerate((found, first, inverse, count)):
        n.out(n.cast(made, VarType.INT64) if place else made, place)


@imports("OneHot")
def _one_hot(n: Node) -> None:
    """OneHot; negative indices count from the end, others out of range give rows of the off value."""
    depth, (off, on) = int(n.array(1).item()), n.array(2).tolist()
    kind, indices = to_vartype(n.array(2).dtype), n.cast(n.var(), VarType.INT64)
    below = n.cast(n.pair("less_than", indices, n.number(0, VarType.INT64)), VarType.INT64)
    indices = n.pair("add", indices, n.scaled(below, depth))
    attrs: dict[str, Any] = {"depth": depth, "allow_out_of_range": True}
    out = n.unary("one_hot_v2", indices, dtype=int(VarType.FP32), **attrs)
    out = n.scaled(n.cast(out, kind), on - off, off) if (off, on) != (0, 1) else n.cast(out, kind)
    rank = 0 if n.value().scalar else n.rank()
    axis = n.attr("axis", -1) % (rank + 1)
    out = n.transposed(out, [*range(axis), rank, *range(axis, rank)])
    n.out(out)


@imports("GatherElements")
def _gather_elements(n: Node) -> None:
    n.out(n.op("gather_nd", {"X": n.var(), "Index": _full_indices(n)}))


def _full_indices(n: Node) -> Variable:
    """Full indices of the elements of input 1: its values along one axis, their own positions along the others."""
    axis, rank = n.attr("axis", 0) % n.rank(), n.rank()
    places = n.cast(_non_negative(n, 1, n.var(), axis), VarType.INT64)
    whole = [places if k == axis else axis_indices(n, places, k) for k in range(rank)]
    return n.op("stack", {"X": whole}, "Y", axis=rank)


@imports("ScatterND", "ScatterElements", "Scatter")
def _scatter(n: Node) -> None:
    """Scatter updates at the indices; they replace the elements unless a reduction is named."""
    how = n.attr("reduction", "none")
    index = _non_negative_nd(n, 1) if n.kind == "ScatterND" else _full_indices(n)
    x, updates, kind = n.var(), n.var(2), n.var().dtype
    if how in ("max", "min", "mul"):
        n.out(_scatter_reduced(n, how, index))
        return
    if how not in ("none", "add"):
        raise n.fail(f"has reduction {how!r}")
    through = VarType.INT32 if kind == VarType.BOOL else kind
    x, updates = n.cast(x, through), n.cast(updates, through)
    if how == "add":
        n.out(n.cast(_scatter_added(n, x, index, updates), kind))
        return
    there = _scatter_added(n, n.filled(x, 0.0, through), index, n.filled(updates, 1.0, through))
    there = n.pair("greater_than", there, n.number(0.0, through))
    n.out(n.cast(n.choose(there, _scatter_added(n, n.filled(x, 0.0, through), index, updates), x), kind))


def _scatter_added(n: Node, x: Variable, index: Variable, updates: Variable) -> Variable:
    return n.op("scatter_nd_add", {"X": x, "Index": index, "Updates": updates})


def _scatter_reduced(n: Node, how: str, index: Variable) -> Variable:
    """The maximum, minimum or product of each element and the updates to it.

    Of several writes to an index the last one wins, so updates are sorted before a maximum or minimum.
    """
    ids, flat, updates = _flat_indices(n, index), n.flat(n.var()), n.flat(n.var(2))
    if how == "mul":
        one = n.filled(flat, 1.0, flat.dtype)
        out = n.pair("mul", flat, _overwritten(n, one, *_running_products(n, ids, updates)))
    else:
        out, order = n.ordered(n.pair(how, updates, n.op("gather", {"X": flat, "Index": ids})))
        if how == "min":
            out, order = (n.unary("reverse", one, axis=[0]) for one in (out, order))
        out = _overwritten(n, flat, n.op("gather", {"X": ids, "Index": order}), out)
    return n.shaped(out, [-1, *n.shape()[1:]])


def _overwritten(n: Node, x: Variable, ids: Variable, updates: Variable) -> Variable:
    return n.op("scatter", {"X": x, "Ids": ids, "Updates": updates}, overwrite=True)


def _flat_indices(n: Node, index: Variable) -> Variable:
    """Flat indices of the updates' elements in the first input."""
    shape, depth = n.shape(), index.shape[-1]
    if -1 in shape[1:]:
        raise n.fail("has a reduction and sizes that are unknown until run time, other than the first")
    strides = [int(np.prod(shape[axis + 1 :], dtype="int64")) for axis in range(depth)]
    places = n.pair("mul", n.cast(index, VarType.INT64), n.maker.constant(np.array(strides, "int64")))
    rows = n.unary("reduce_sum", places, dim=[len(index.shape) - 1], keep_dim=False, reduce_all=False)
    rows = n.shaped(rows, [-1, 1])
    return n.flat(n.pair("add", rows, n.maker.constant(np.arange(strides[-1], dtype="int64"))))


def _running_products(n: Node, ids: Variable, updates: Variable) -> tuple[Variable, Variable]:
    """Sorted indices, and the running product of the updates of each index."""
    count = int(np.prod(n.shape(2), dtype="int64"))
    if -1 in n.shape(2):
        raise n.fail("has products of updates whose number is unknown until run time")
    ids, order = n.ordered(ids)
    total, far = n.op("gather", {"X": updates, "Index": order}), 2**31 - 1

    def part(x: Variable, start: int, end: int) -> Variable:
        return n.sliced(x, [0], [start], [end])

    step = 1
    while step < count:
        same = n.pair("equal", part(ids, step, far), part(ids, 0, -step))
        before = part(total, 0, -step)
        times = n.choose(same, before, n.filled(before, 1.0, before.dtype))
        more = n.pair("mul", part(total, step, far), times)
        total = n.op("concat", {"X": [part(total, 0, step), more]}, axis=0)
        step *= 2
    return ids, total


@imports("Compress")
def _compress(n: Node) -> None:
    places = n.flat(n.op("where_index", {"Condition": n.var(1)}))
    axis = n.attr("axis")
    flat = axis is None
    x = n.flat(n.var()) if flat else n.var()
    n.out(gathered(n, x, places, 0 if flat else axis % n.rank()))


@imports("ReverseSequence")
def _reverse_sequence(n: Node) -> None:
    x, along, batch = n.var(), n.attr("time_axis", 0), n.attr("batch_axis", 1)
    shape = [1] * n.rank()
    shape[batch] = -1
    lengths = n.shaped(n.cast(n.var(1), VarType.INT64), shape)
    step = axis_indices(n, x, along)
    lengths = n.pair("add", lengths, n.filled(x, 0.0, VarType.INT64))
    back = n.scaled(n.pair("sub", lengths, step), 1.0, -1.0)
    reversed_step = n.choose(n.pair("less_than", step, lengths), back, step)
    places = [reversed_step if k == along else axis_indices(n, x, k) for k in range(n.rank())]
    n.out(n.op("gather_nd", {"X": x, "Index": n.op("stack", {"X": places}, "Y", axis=n.rank())}))


@imports("TopK")
def _top_k(n: Node) -> None:
    """TopK by a full stable sort: of equal elements the first comes first, unlike in Fluid's `top_k`.

    Before opset 10 k is an attribute.
    """
    axis = n.attr("axis", -1) % n.rank()
    found, places = n.ordered(n.var(), axis, bool(n.attr("largest", 1)))
    count = n.value(1) if n.has(1) else Value(sizes=[n.attr("k")])
    inputs: dict[str, Variable] = {}
    attrs: dict[str, Any] = {"axes": [axis], "starts": [0], "ends": [-1], "infer_flags": [-1]}
    if count.array is None and (count.sizes is None or not isinstance(count.sizes[0], int)):
        ends = n.cast(n.var(1), VarType.INT32)
        inputs = {"StartsTensor": n.number(0, VarType.INT32), "EndsTensor": ends}
    else:
        attrs |= {"ends": [n.ints(1)[0] if n.has(1) else n.attr("k")], "infer_flags": [1]}
    for index, var in enumerate((found, places)):
        n.out(n.op("slice", {"Input": var, **inputs}, **attrs), index)


@imports("ArgMax", "ArgMin")
def _arg(n: Node) -> None:
    x, axis, kind = n.var(), n.attr("axis", 0), "arg_max" if n.kind == "ArgMax" else "arg_min"
    last = n.attr("select_last_index", 0)
    if last:
        x = n.unary("reverse", x, axis=[axis % n.rank()])
    out = n.unary(kind, x, axis=axis, keepdims=bool(n.attr("keepdims", 1)))
    if last:
        size = n.shape()[axis]
        most = n.maker.size(size if size >= 0 else Size(n.var().name, axis % n.rank()), "int64")
        out = n.pair("sub", n.scaled(most, 1.0, -1.0), out)
    n.out(out)
