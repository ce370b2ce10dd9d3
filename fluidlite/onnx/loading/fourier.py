"""Fourier transforms, as products with tables of cosines and sines; axes have to be known."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from ...base.dtypes import to_numpy
from ...framework import Variable
from .indexing import gathered
from .values import Node, imports


def _transformed(
    n: Node, parts: list[Variable], count: int, inverse: bool = False, onesided: bool = False
) -> Variable:
    """The transform along the last axis of `count` numbers, [..., found, 2]; `parts`: real, or real and imaginary.

    Numbers beyond the last axis are zero.
    """
    given, found = parts[0].shape[-1], count // 2 + 1 if onesided else count
    if given < 1:
        raise n.fail("transforms an axis whose size is unknown until run time")
    if given > count:
        parts = [
            n.op("slice", {"Input": one}, axes=[len(one.shape) - 1], starts=[0], ends=[count])
            for one in parts
        ]
    n.table(2.0 * min(given, count) * found)
    angles = np.outer(np.arange(min(given, count)), np.arange(found)) % count * (2 * np.pi / count)
    tables = [np.cos(angles), np.sin(angles) if inverse else -np.sin(angles)]
    tables = [(table / count if inverse else table).astype(to_numpy(parts[0].dtype)) for table in tables]
    cosines, sines = (n.maker.constant(table) for table in tables)
    dims: dict[str, Any] = {"x_num_col_dims": len(parts[0].shape) - 1, "y_num_col_dims": 1}

    def times(x: Variable, table: Variable) -> Variable:
        return n.op("mul", {"X": x, "Y": table}, **dims)

    real, imaginary = times(parts[0], cosines), times(parts[0], sines)
    if len(parts) > 1:
        real = n.pair("sub", real, times(parts[1], sines))
        imaginary = n.pair("add", imaginary, times(parts[1], cosines))
    return n.op("stack", {"X": [real, imaginary]}, "Y", axis=len(real.shape))


def _complex_parts(n: Node, x: Variable) -> list[Variable]:
    """Real, or real and imaginary parts along the last axis."""
    last = len(x.shape) - 1
    if x.shape[last] not in (1, 2):
        raise n.fail(f"has numbers of {x.shape[last]} parts, expected real or complex ones")
    return [
        n.op("squeeze2", {"X": part}, more=["XShape"], axes=[last])
        for k in range(x.shape[-1])
        for part in [n.op("slice", {"Input": x}, axes=[last], starts=[k], ends=[k + 1])]
    ]


@imports("DFT")
def _fourier(n: Node) -> None:
    """The axis is an attribute before opset 20."""
    inverse, onesided = bool(n.attr("inverse", 0)), bool(n.attr("onesided", 0))
    if inverse and onesided:
        raise n.fail("is inverse and onesided")
    axis = (n.ints(2)[0] if n.has(2) else -2) if n.maker.opset >= 20 else n.attr("axis", 1)
    rank, axis = n.rank(), axis % n.rank()
    order = [*(k for k in range(rank - 1) if k != axis), axis, rank - 1]
    x = n.transposed(n.var(), order)
    count = n.ints(1)[0] if n.has(1) else x.shape[-2]
    out = _transformed(n, _complex_parts(n, x), count, inverse, onesided)
    n.out(n.transposed(out, np.argsort(order).tolist()))


@imports("STFT")
def _short_time_fourier(n: Node) -> None:
    signal, step = n.var(), n.ints(1)[0]
    parts = _complex_parts(n, signal) if n.rank() == 3 else [signal]
    long = n.ints(3)[0] if n.has(3) else n.shape(2)[0]
    size = n.shape()[1]
    if size < long:
        raise n.fail(
            f"has frames of {long} of a signal of {size}, expected a known size of at least the frame's"
        )
    frames = (size - long) // step + 1
    n.table(float(frames) * long)
    places = n.maker.constant((np.arange(frames)[:, None] * step + np.arange(long)).ravel())
    cut = [
        n.op("reshape2", {"X": gathered(n, one, places, 1)}, more=["XShape"], shape=[-1, frames, long])
        for one in parts
    ]
    if n.has(2):
        cut = [n.pair("mul", one, n.var(2)) for one in cut]
    n.out(_transformed(n, cut, long, onesided=bool(n.attr("onesided", 1)) and len(parts) == 1))


@imports("MelWeightMatrix")
def _mel_weights(n: Node) -> None:
    """MelWeightMatrix is supported for constant inputs only, which constant folding has handled before."""
    raise n.fail("has computed inputs, or is too large")


_WAVES = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


@imports(*_WAVES)
def _window(n: Node) -> None:
    size = n.table(float(n.array(0).item()))
    angles = np.arange(size) * (2 * np.pi / (size if n.attr("periodic", 1) else max(size - 1, 1)))
    level, first, second = _WAVES[n.kind]
    dtype = helper.tensor_dtype_to_np_dtype(n.attr("output_datatype", 1))
    n.known(array=(level - first * np.cos(angles) + second * np.cos(2 * angles)).astype(dtype))
