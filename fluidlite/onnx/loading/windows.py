"""Pooling that Fluid has no operator for, one window element at a time: dilations, indices of maxima, norms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...base.errors import FormatError
from ...framework import Variable
from .values import Node, imports

_LARGEST_WINDOW = 1024
"""Most elements of a window, each of which becomes operators."""


class _Windows:
    """The windows of a node over the last axes of an input, whose sizes are known."""

    def __init__(self, n: Node) -> None:
        self.n, self.sizes = n, list(n.shape()[2:])
        count = len(self.sizes)
        if not count or min(self.sizes) < 1:
            raise n.fail(f"pools axes of sizes {self.sizes}, expected at least one, and all known")
        self.long = list(n.attr("kernel_shape"))
        self.strides, self.dilations = (
            list(n.attr(name) or [1] * count) for name in ("strides", "dilations")
        )
        if any(len(one) != count or min(one) < 1 for one in (self.long, self.strides, self.dilations)):
            raise FormatError(
                f"node {n.kind} has windows of {self.long}, strides {self.strides} and dilations {self.dilations}"
            )
        if np.prod(self.long) > _LARGEST_WINDOW:
            raise n.fail(f"has windows of {self.long}, expected at most {_LARGEST_WINDOW} elements")
        pads, kind = list(n.attr("pads") or [0] * (2 * count)), n.attr("auto_pad", "NOTSET")
        self.before, self.counts, self.after = [], [], []
        for k, size in enumerate(self.sizes):
            begin, end = pads[k], pads[k + count]
            reach = self.dilations[k] * (self.long[k] - 1) + 1
            if kind.startswith("SAME") and self.dilations[k] != 1:
                raise n.fail("has auto_pad and dilations")
            if kind.startswith("SAME"):
                over = max((-(-size // self.strides[k]) - 1) * self.strides[k] + reach - size, 0)
                begin = over // 2 if kind == "SAME_UPPER" else over - over // 2
                end = over - begin
            left = size + begin + end - reach
            windows = (-(-left // self.strides[k]) if n.attr("ceil_mode", 0) else left // self.strides[k]) + 1
            if n.attr("ceil_mode", 0) and (windows - 1) * self.strides[k] >= size + begin:
                windows -= 1
            if windows < 1:
                raise n.fail(f"has windows of {reach} over an axis of {size}")
            self.before.append(begin)
            self.counts.append(windows)
            self.after.append(max((windows - 1) * self.strides[k] + reach - size - begin, 0))

    def parts(self, fill: float) -> Iterator[tuple[Variable, tuple[int, ...]]]:
        """Yield the input elements at each window offset, and the offset; the input is padded with `fill`."""
        axes = list(range(2, 2 + len(self.sizes)))
        padding = [number for pair in zip(self.before, self.after, strict=True) for number in pair]
        x = self.n.var()
        if any(padding):
            x = self.n.unary("pad", x, paddings=[0, 0, 0, 0, *padding], pad_value=fill)
        for place in itertools.product(*map(range, self.long)):
            starts = [k * dilation for k, dilation in zip(place, self.dilations, strict=True)]
            spans = [(count - 1) * by for count, by in zip(self.counts, self.strides, strict=True)]
            ends = [start + span + 1 for start, span in zip(starts, spans, strict=True)]
            attrs: dict[str, Any] = {"starts": starts, "ends": ends, "strides": self.strides}
            yield (
                self.n.op("strided_slice", {"Input": x}, axes=axes, infer_flags=[1] * len(axes), **attrs),
                place,
            )

    def flat_indices(self, place: tuple[int, ...], by_columns: bool) -> np.ndarray:
        """The flat index within one image of the element at offset `place` of each window."""
        self.n.table(float(np.prod(self.counts)))
        at = [
            np.arange(count) * stride + k * dilation - before
            for count, stride, k, dilation, before in zip(
                self.counts, self.strides, place, self.dilations, self.before, strict=True
            )
        ]
        order = range(len(at)) if by_columns else reversed(range(len(at)))
        total, step = np.zeros(self.counts, "int64"), 1
        for axis in order:
            total = total + step * at[axis].reshape([-1 if k == axis else 1 for k in range(len(at))])
            step *= self.sizes[axis]
        return total[None, None]


def max_pooled(n: Node) -> None:
    """MaxPool with dilations or with indices, which are those of the first maximum."""
    windows, x = _Windows(n), n.var()
    if x.dtype not in (VarType.FP32, VarType.FP64):
        raise n.fail("has dilations or indices, and elements that are no floats")
    wants_indices = len(n.node.output) > 1 and n.node.output[1] != ""
    best: Variable | None = None
    places: Variable | None = None
    for part, place in windows.parts(-np.inf):
        if wants_indices:
            numbers = n.maker.constant(windows.flat_indices(place, bool(n.attr("storage_order", 0))))
            here = n.pair("add", n.filled(part, 0, VarType.INT64), numbers)
            if best is None or places is None:
                places = here
            else:
                places = n.choose(n.pair("greater_than", part, best), here, places)
        best = part if best is None else n.pair("max", best, part)
    assert best is not None
    n.out(best)
    if places is not None:
        n.out(n.pair("add", places, _channel_offsets(n, best, windows.sizes)), 1)


def _channel_offsets(n: Node, like: Variable, sizes: list[int]) -> Variable:
    """The flat index of the first element of each channel of each image: [count, channels, 1, ...]."""
    axes, channels = list(range(2, 2 + len(sizes))), n.shape()[1]
    one = n.sliced(like, axes, [0] * len(axes), [1] * len(axes))
    ones = n.flat(n.filled(one, 1, VarType.INT64))
    count = n.unary("cumsum", ones, axis=0, exclusive=True)
    shape = [-1, channels] + [1] * len(sizes)
    count = n.shaped(count, shape)
    return n.scaled(count, float(np.prod(sizes)))


@imports("MaxUnpool")
def _max_unpool(n: Node) -> None:
    """MaxUnpool: scatter the inputs to the flat indices that MaxPool returned, into zeros."""
    count, sizes = n.rank() - 2, n.shape()[2:]
    window, strides = list(n.attr("kernel_shape")), list(n.attr("strides") or [1] * count)
    pads = list(n.attr("pads") or [0] * (2 * count))
    if n.has(2):
        goal = n.ints(2)[2:]
    elif -1 in sizes:
        raise n.fail("has axes whose sizes are unknown until run time")
    else:
        goal = [
            (size - 1) * strides[k] + window[k] - pads[k] - pads[k + count] for k, size in enumerate(sizes)
        ]
    axes = list(range(2, 2 + count))
    one = n.sliced(n.var(), axes, [0] * count, [1] * count)
    zeros = n.unary("expand", n.filled(one, 0.0, one.dtype), expand_times=[1, 1, *goal])
    inputs = {"X": n.flat(zeros), "Ids": n.flat(n.var(1)), "Updates": n.flat(n.var())}
    out = n.op("scatter", inputs, overwrite=True)
    n.out(n.shaped(out, [-1, n.shape()[1], *goal]))


@imports("Col2Im")
def _col2im(n: Node) -> None:
    """Col2Im: sum the window elements at each position of the image; those in the padding go to an extra position."""
    goal, window, count = n.ints(1), n.ints(2), len(n.ints(1))
    strides, dilations = (list(n.attr(name) or [1] * count) for name in ("strides", "dilations"))
    pads = list(n.attr("pads") or [0] * (2 * count))
    places, inside = np.zeros([1, 1], "int64"), np.ones([1, 1], bool)
    for k in range(count):
        reach = dilations[k] * (window[k] - 1) + 1
        steps = (goal[k] + pads[k] + pads[k + count] - reach) // strides[k] + 1
        n.table(float(places.size) * window[k] * max(steps, 1))
        at = np.arange(window[k])[:, None] * dilations[k] + np.arange(steps) * strides[k] - pads[k]
        fits = (at >= 0) & (at < goal[k])
        here = (
            places[:, None, :, None] * goal[k] + at[None, :, None, :],
            inside[:, None, :, None] & fits[None, :, None, :],
        )
        places, inside = (part.reshape(len(places) * window[k], -1) for part in here)
    size, length = int(np.prod(goal)), places.size
    channels = n.shape()[1] // int(np.prod(window))
    places = np.where(inside, places, size).ravel()
    x = n.shaped(n.var(), [-1, channels, length])
    x = n.transposed(x, [2, 0, 1])
    row = n.sliced(x, [0], [0], [1])
    zeros = n.unary("expand", n.filled(row, 0.0, row.dtype), expand_times=[size + 1, 1, 1])
    index = n.maker.constant(places[:, None])
    out = n.op("scatter_nd_add", {"X": zeros, "Index": index, "Updates": x})
    out = n.transposed(n.sliced(out, [0], [0], [size]), [1, 2, 0])
    n.out(n.shaped(out, [-1, channels, *goal]))


@imports("LpPool")
def _norms(n: Node) -> None:
    power = float(n.attr("p", 2))
    total = None
    for part, _ in _Windows(n).parts(0.0):
        raised = _raised(n, part, power)
        total = raised if total is None else n.pair("add", total, raised)
    assert total is not None
    n.out(_root(n, total, power))


@imports("GlobalLpPool")
def _norm_of_all(n: Node) -> None:
    power = float(n.attr("p", 2))
    axes = list(range(2, n.rank()))
    n.out(_root(n, n.unary("reduce_sum", _raised(n, n.var(), power), dim=axes, keep_dim=True), power))


def _raised(n: Node, x: Variable, power: float) -> Variable:
    size = n.unary("abs", x)
    return size if power == 1 else n.unary("pow", size, factor=power)


def _root(n: Node, x: Variable, power: float) -> Variable:
    return x if power == 1 else n.unary("pow", x, factor=1 / power)


@imports("Det")
def _determinant(n: Node) -> None:
    """By Laplace expansion, for matrices of at most four rows."""
    rows = n.shape()[-1]
    if rows not in (1, 2, 3, 4) or n.rank() < 2:
        raise n.fail(f"has matrices of {rows} rows, expected at most 4")
    x, axes = n.var(), [n.rank() - 2, n.rank() - 1]

    def element(row: int, column: int) -> Variable:
        one = n.op(
            "slice",
            {"Input": x},
            axes=axes,
            starts=[row, column],
            ends=[row + 1, column + 1],
            decrease_axis=[],
        )
        return n.squeezed(one, axes) if n.rank() > 2 else one

    def minor(row: int, columns: tuple[int, ...]) -> Variable:
        if len(columns) == 1:
            return element(row, columns[0])
        total = None
        for place, column in enumerate(columns):
            part = n.pair("mul", element(row, column), below(row + 1, columns[:place] + columns[place + 1 :]))
            total = part if total is None else n.pair("sub" if place % 2 else "add", total, part)
        assert total is not None
        return total

    known: dict[tuple[int, ...], Variable] = {}

    def below(row: int, columns: tuple[int, ...]) -> Variable:
        if columns not in known:
            known[columns] = minor(row, columns)
        return known[columns]

    out = minor(0, tuple(range(rows)))
    if n.rank() == 2:
        out = n.shaped(out, [1])
    n.out(out, scalar=n.rank() == 2)
