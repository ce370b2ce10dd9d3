"""Shapes and slices of tensors; sizes are propagated through the nodes that compute shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from ...base.dtypes import VarType, to_vartype
from ...framework import Variable
from .indexing import gathered
from .values import Node, Size, imports


def reshaped(n: Node, x: Variable, sizes: list[int | Size]) -> Variable:
    """`x` reshaped. A single size that is unknown until run time becomes -1."""
    open_sizes = [size for size in sizes if isinstance(size, Size)]
    if len(open_sizes) == 1 and -1 not in sizes:
        sizes = [-1 if isinstance(size, Size) else size for size in sizes]
        open_sizes = []
    shape = [size if isinstance(size, int) else -1 for size in sizes]
    inputs = {"X": x}
    if open_sizes:
        inputs["ShapeTensor"] = [n.maker.size(size) for size in sizes]  # type: ignore[assignment]
    return n.op("reshape2", inputs, more=["XShape"], shape=shape)


def sizes_of(n: Node) -> list[int | Size]:
    """The sizes of the first input; a `Size` where one is unknown until run time."""
    x = n.var()
    return [size if size >= 0 else Size(x.name, axis) for axis, size in enumerate(n.shape())]


@imports("Shape")
def _shape(n: Node) -> None:
    sizes = sizes_of(n)
    n.known(sizes[n.attr("start", 0) : n.attr("end", len(sizes))])


@imports("Reshape")
def _reshape(n: Node) -> None:
    value = n.value(1)
    if value.sizes is None and value.array is None:
        n.out(
            n.op("reshape2", {"X": n.var(), "Shape": n.var(1)}, more=["XShape"], shape=[-1] * n.shape(1)[0])
        )
        return
    sizes = value.sizes if value.sizes is not None else [int(k) for k in n.ints(1)]
    if n.attr("allowzero", 0) and 0 in sizes:
        raise n.fail("has allowzero=1 and a size of 0")
    own = n.shape()
    sizes = [size if size != 0 or own[axis] < 0 else own[axis] for axis, size in enumerate(sizes)]
    n.out(reshaped(n, n.var(), sizes or [1]), scalar=not sizes)


@imports("Flatten")
def _flatten(n: Node) -> None:
    n.out(n.op("flatten2", {"X": n.var()}, more=["XShape"], axis=n.attr("axis", 1) % max(n.rank(), 1)))


@imports("Transpose")
def _transpose(n: Node) -> None:
    axis = list(n.attr("perm") or range(n.rank())[::-1])
    n.out(n.op("transpose2", {"X": n.var()}, more=["XShape"], axis=axis))


@imports("Squeeze")
def _squeeze(n: Node) -> None:
    axes = n.list_of("axes", 1)
    if n.value().sizes is not None or n.value().scalar:
        found = n.value()
        n.maker.values[n.node.output[0]] = type(found)(found.var, found.array, found.sizes, scalar=True)
        return
    axes = [axis for axis, size in enumerate(n.shape()) if size == 1] if axes is None else axes
    left = n.rank() - len(axes)
    n.out(n.squeezed(n.var(), axes) if left else n.var(), scalar=not left)


@imports("Unsqueeze")
def _unsqueeze(n: Node) -> None:
    axes, found = n.list_of("axes", 1) or [], n.value()
    if found.scalar:
        if len(axes) > 1:
            n.out(reshaped(n, n.var(), [1] * len(axes)))
        else:
            n.maker.values[n.node.output[0]] = type(found)(found.var, found.array, found.sizes)
        return
    rank = n.rank() + len(axes)
    n.out(n.unsqueezed(n.var(), sorted(axis % rank for axis in axes)))


@imports("Concat")
def _concat(n: Node) -> None:
    parts = [n.value(i) for i in range(len(n))]
    if any(part.sizes is not None for part in parts) and all(
        p.sizes is not None or p.array is not None for p in parts
    ):
        sizes: list[int | Size] = []
        for i, part in enumerate(parts):
            sizes += part.sizes if part.sizes is not None else n.ints(i)
        n.known(sizes)
        return
    n.out(n.op("concat", {"X": [n.var(i) for i in range(len(n))]}, axis=n.attr("axis")))


@imports("Split")
def _split(n: Node) -> None:
    axis, sections = n.attr("axis", 0) % n.rank(), n.list_of("split", 1)
    count = len(n.node.output)
    if sections is None:
        size = n.shape()[axis]
        if size < 0:
            raise n.fail("splits an axis whose size is unknown until run time")
        part = -(-size // count)
        sections = [part] * (count - 1) + [size - part * (count - 1)]
    start = 0
    for index, length in enumerate(sections):
        n.out(n.sliced(n.var(), [axis], [start], [start + length]), index)
        start += length


@imports("Slice")
def _slice(n: Node) -> None:
    computed = [i for i in (1, 2) if n.has(i) and n.value(i).array is None]
    if computed:
        _slice_by_sizes(n)
        return
    starts, ends = n.list_of("starts", 1) or [], n.list_of("ends", 2) or []
    axes = n.list_of("axes", 3) or list(range(len(starts)))
    steps = (n.ints(4) if n.has(4) else None) or [1] * len(starts)
    found = n.value()
    if found.sizes is not None:
        n.known(found.sizes[starts[0] : ends[0] : steps[0]])
        return
    far = 2**31 - 1
    starts, ends = ([max(-far, min(far, k)) for k in part] for part in (starts, ends))
    axes = [axis % n.rank() for axis in axes]
    if steps == [1] * len(steps):
        n.out(n.sliced(n.var(), axes, starts, ends))
    else:
        n.out(n.op("strided_slice", {"Input": n.var()}, axes=axes, starts=starts, ends=ends, strides=steps))


def _slice_by_sizes(n: Node) -> None:
    """Slice up to an end computed from sizes that are unknown until run time."""
    axes = [axis % n.rank() for axis in (n.ints(3) if n.has(3) else range(n.shape(1)[0]))]
    if n.has(4) and set(n.ints(4)) != {1}:
        raise n.fail("has steps other than 1 and a computed end")
    inputs = {"Input": n.var()}
    for slot, index in (("Starts", 1), ("Ends", 2)):
        kind = n.var(index).dtype
        whole = n.unary("cast", n.var(index), in_dtype=kind, out_dtype=to_vartype("int32"))
        inputs[slot + "Tensor"] = whole
    n.out(
        n.op(
            "slice",
            inputs,
            axes=axes,
            starts=[-1] * len(axes),
            ends=[-1] * len(axes),
            infer_flags=[-1] * len(axes),
        )
    )


def _filled_shape(n: Node, index: int) -> tuple[dict[str, Any], list[int]]:
    """Inputs and attribute `shape` of `fill_constant` for the shape in input `index`."""
    value = n.value(index)
    if value.sizes is None and value.array is None:
        return {"ShapeTensor": n.var(index)}, [-1] * n.shape(index)[0]
    sizes = value.sizes if value.sizes is not None else list(n.ints(index))
    inputs = (
        {}
        if all(isinstance(k, int) for k in sizes)
        else {"ShapeTensorList": [n.maker.size(k) for k in sizes]}
    )
    return inputs, [size if isinstance(size, int) else -1 for size in sizes]


@imports("Range")
def _range(n: Node) -> None:
    n.out(n.op("range", {"Start": n.var(0), "End": n.var(1), "Step": n.var(2)}))


@imports("Expand")
def _expand(n: Node) -> None:
    """Broadcast by adding zeros of the target shape."""
    dtype, (inputs, shape) = n.var().dtype, _filled_shape(n, 1)
    kind = n.dtype().kind
    through = to_vartype("int32") if kind == "b" else dtype
    x = n.var() if kind != "b" else n.unary("cast", n.var(), in_dtype=dtype, out_dtype=through)
    zeros = n.op("fill_constant", inputs, shape=shape, value=0.0, dtype=through)
    out = n.op("elementwise_add", {"X": x, "Y": zeros}, axis=-1)
    n.out(out if kind != "b" else n.unary("cast", out, in_dtype=through, out_dtype=dtype))


@imports("Tile")
def _tile(n: Node) -> None:
    value = n.value(1)
    if value.array is None and (value.sizes is None or not all(isinstance(k, int) for k in value.sizes)):
        times = n.cast(n.var(1), VarType.INT32)
        n.out(n.op("expand", {"X": n.var(), "ExpandTimes": times}, expand_times=[-1] * n.rank()))
        return
    n.out(n.unary("expand", n.var(), expand_times=n.ints(1)))


@imports("Pad")
def _pad(n: Node) -> None:
    pads, mode, x = n.list_of("pads", 1) or [], n.attr("mode", "constant"), n.var()
    value = float(n.array(2).item()) if n.has(2) else float(n.attr("value", 0.0))
    half = len(pads) // 2
    pairs = [(pads[k], pads[k + half]) for k in range(half)]
    if n.has(3):
        named = {axis % n.rank(): pair for axis, pair in zip(n.ints(3), pairs, strict=True)}
        pairs = [named.get(axis, (0, 0)) for axis in range(n.rank())]
    for axis, pair in enumerate(pairs):
        if min(pair) < 0:
            ends = [-min(pair[0], 0), pair[1] if pair[1] < 0 else 2**31 - 1]
            x = n.sliced(x, [axis], ends[:1], ends[1:])
    pairs = [(max(before, 0), max(after, 0)) for before, after in pairs]
    if mode == "constant":
        n.out(n.unary("pad", x, paddings=[k for pair in pairs for k in pair], pad_value=value))
    elif len(pairs) == 4 and pairs[:2] == [(0, 0), (0, 0)] and mode in ("reflect", "edge"):
        n.out(n.unary("pad2d", x, paddings=[*pairs[2], *pairs[3]], mode=mode))
    else:
        for axis, pair in enumerate(pairs):
            if pair != (0, 0):
                size = x.shape[axis]
                if size < 0:
                    raise n.fail(f"has mode {mode!r} along an axis whose size is unknown until run time")
                n.table(float(size) + sum(pair))
                order = np.pad(np.arange(size), pair, mode=mode)
                x = gathered(n, x, n.maker.constant(order), axis)
        n.out(x)


@imports("Size")
def _size(n: Node) -> None:
    x = n.var()
    if -1 not in n.shape():
        n.known(array=np.array(np.prod(n.shape(), dtype="int64")), scalar=True)
        return
    total = n.maker.size(1, "int64")
    for axis, size in enumerate(n.shape()):
        total = n.pair("mul", total, n.maker.size(size if size >= 0 else Size(x.name, axis), "int64"))
    n.out(total, scalar=True)


@imports("Trilu")
def _trilu(n: Node) -> None:
    x, kind = n.var(), n.var().dtype
    through = VarType.INT32 if kind == VarType.BOOL else kind
    diagonal = int(n.array(1).item()) if n.has(1) else 0
    part = n.unary("tril_triu", n.cast(x, through), diagonal=diagonal, lower=not n.attr("upper", 1))
    n.out(n.cast(part, kind))


@imports("EyeLike")
def _eye_like(n: Node) -> None:
    if -1 in n.shape():
        raise n.fail("has a size that is unknown until run time")
    given = n.attr("dtype")
    kind = to_vartype(n.dtype() if given is None else helper.tensor_dtype_to_np_dtype(given))
    if n.attr("k", 0):
        raise n.fail("has another diagonal than the main one")
    rows, columns = n.shape()
    n.out(n.op("eye", {}, num_rows=rows, num_columns=columns, dtype=int(kind)))


@imports("ConstantOfShape")
def _constant_of_shape(n: Node) -> None:
    tensor = n.attr("value")
    filling = numpy_helper.to_array(tensor).ravel()[0] if tensor is not None else np.float32(0)
    inputs, shape = _filled_shape(n, 0)
    n.out(n.op("fill_constant", inputs, shape=shape, value=float(filling), dtype=to_vartype(filling.dtype)))


@imports("CumSum")
def _cumsum(n: Node) -> None:
    ends: dict[str, Any] = {"exclusive": bool(n.attr("exclusive", 0)), "reverse": bool(n.attr("reverse", 0))}
    n.out(n.unary("cumsum", n.var(), axis=int(n.array(1)), **ends))
