"""Cases of operators on sequences, which carry levels of detail."""

from __future__ import annotations

import numpy as np

from .cases import Case, Chooser, case, recipe


def lengths(c: Chooser, count: int | None = None, empty: bool = True) -> list[int]:
    return [c.int(0 if empty and c.one_in(5) else 1, 4) for _ in range(count or c.int(1, 4))]


def offsets(sizes: list[int]) -> list[int]:
    return [0, *(int(n) for n in np.cumsum(sizes))]


def sequence(
    c: Chooser, width: int, dtype: str, count: int | None = None, empty: bool = True
) -> tuple[np.ndarray, list[list[int]]]:
    sizes = lengths(c, count, empty)
    return c.floats((sum(sizes), width), dtype), [offsets(sizes)]


@recipe("sequence_pool")
def pool(c: Chooser, op: str) -> Case:
    x, lod = sequence(c, c.dim(1), "float32")
    kind = c.pick(["SUM", "AVERAGE", "SQRT", "MAX", "LAST", "FIRST"])
    outputs = {"MaxIndex": 1} if kind == "MAX" else {}
    return case(
        op, {"X": x}, {"pooltype": kind, "pad_value": c.pick([0.0, -1.0])}, lods={"X": [lod]}, outputs=outputs
    )


@recipe("sequence_softmax")
def softmax(c: Chooser, op: str) -> Case:
    x, lod = sequence(c, 1, c.real())
    return case(op, {"X": x}, lods={"X": [lod]})


@recipe("sequence_reverse")
def reverse(c: Chooser, op: str) -> Case:
    x, lod = sequence(c, c.dim(1), c.real())
    return case(op, {"X": x}, lods={"X": [lod]})


@recipe("sequence_concat")
def concat(c: Chooser, op: str) -> Case:
    dtype, width, count = c.real(), c.dim(1), c.int(1, 4)
    pairs = [sequence(c, width, dtype, count) for _ in range(c.int(1, 3))]
    return case(op, {"X": [x for x, _ in pairs]}, lods={"X": [lod for _, lod in pairs]})


@recipe("sequence_conv")
def conv(c: Chooser, op: str) -> Case:
    dtype, width, length = c.real(), c.int(1, 4), c.int(1, 4)
    x, lod = sequence(c, width, dtype)
    attrs = {"contextLength": length, "contextStart": -c.int(0, length), "contextStride": 1}
    return case(
        op, {"X": x, "Filter": c.floats((length * width, c.int(1, 4)), dtype)}, attrs, lods={"X": [lod]}
    )


@recipe("row_conv")
def row_conv(c: Chooser, op: str) -> Case:
    x, lod = sequence(c, c.int(1, 4), c.real())
    return case(op, {"X": x, "Filter": c.floats((c.int(1, 4), x.shape[1]), str(x.dtype))}, lods={"X": [lod]})


@recipe("sequence_expand")
def expand(c: Chooser, op: str) -> Case:
    dtype, count = c.pick(["float32", "float64", "int32", "int64"]), c.int(1, 4)
    y, of_y = sequence(c, 2, "float32", count)
    if c.bool():
        sizes = lengths(c, count)
        x, of_x = c.values((sum(sizes), 2), dtype), [offsets(sizes)]
    else:
        x, of_x = c.values((count, 2), dtype), None
    return case(op, {"X": x, "Y": y}, {"ref_level": c.pick([-1, 0])}, lods={"X": [of_x], "Y": [of_y]})


@recipe("warpctc")
def ctc(c: Chooser, op: str) -> Case:
    count, classes = c.int(1, 3), c.int(2, 5)
    times, words = [c.int(1, 6) for _ in range(count)], [c.int(1, 3) for _ in range(count)]
    inputs = {
        "Logits": c.floats((sum(times), classes), "float32", "plain"),
        "Label": c.ints((sum(words), 1), 1, classes - 1, "int32"),
    }
    lods = {"Logits": [[offsets(times)]], "Label": [[offsets(words)]]}
    return case(op, inputs, {"blank": 0, "norm_by_times": c.bool()}, lods=lods)
