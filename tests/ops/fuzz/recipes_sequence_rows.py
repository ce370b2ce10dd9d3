"""Cases of operators that repeat, cut, pad and scatter rows of sequences, and give rows other sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import Case, Chooser, case, recipe
from .recipes_sequence import lengths, offsets, sequence


def deep(c: Chooser, count: int, levels: int, empty: bool = True) -> list[list[int]]:
    """Offsets of several levels, of which the outermost has `count` sequences."""
    made = []
    for _ in range(levels):
        made.append(offsets(lengths(c, count, empty) if count else []))
        count = made[-1][-1]
    return made


@recipe("sequence_expand_as")
def expand_as(c: Chooser, op: str) -> Case:
    count = c.int(1, 4)
    y, of_y = sequence(c, 2, "float32", count)
    x = c.floats((count, *c.shape(0, 2, 1)), c.real())
    own = [offsets([count])] if c.bool() else None
    return case(op, {"X": x, "Y": y}, lods={"X": [own], "Y": [of_y]})


@recipe("sequence_slice")
def cut(c: Chooser, op: str) -> Case:
    x, lod = sequence(c, c.dim(1), c.real())
    counts = np.diff(lod[0])
    begin = [c.int(0, int(n)) for n in counts]
    sizes = [c.int(0, int(n) - b + c.one_in(30)) for n, b in zip(counts, begin, strict=True)]
    inputs = {"X": x, "Offset": np.array(begin).reshape(-1, 1), "Length": np.array(sizes).reshape(-1, 1)}
    return case(op, inputs, lods={"X": [lod], "Offset": [None], "Length": [None]})


@recipe("sequence_reshape")
def reshape(c: Chooser, op: str) -> Case:
    x, lod = sequence(c, c.pick([1, 2, 3, 4, 6]), c.pick(["float32", "float64"]))
    return case(op, {"X": x}, {"new_dim": c.pick([1, 1, 2, 3, x.shape[1]])}, lods={"X": [lod]})


@recipe("sequence_pad")
def pad(c: Chooser, op: str) -> Case:
    dtype, row = c.real(), c.shape(1, 2, 1)
    sizes = lengths(c)
    value = c.floats(c.pick([(1,), row]), dtype)
    longest = max(sizes)
    attrs = {"padded_length": c.pick([-1, -1, max(longest, 1), longest + 2, max(longest - 1, 1)])}
    lods: dict[str, list[Any]] = {"X": [[offsets(sizes)]], "PadValue": [None]}
    return case(op, {"X": c.floats((sum(sizes), *row), dtype), "PadValue": value}, attrs, lods=lods)


@recipe("sequence_unpad")
def unpad(c: Chooser, op: str) -> Case:
    count, padded = c.int(1, 4), c.int(1, 5)
    x = c.floats((count, padded, *c.shape(0, 2, 1)), c.real())
    taken = np.array([c.int(1 if c.one_in(3) else 0, padded + c.one_in(30)) for _ in range(count)])
    return case(op, {"X": x, "Length": taken}, lods={"X": [None], "Length": [None]})


@recipe("sequence_mask")
def mask(c: Chooser, op: str) -> Case:
    x = c.ints(c.shape(1, 2, 1), 0, 6, c.pick(["int32", "int64"]))
    return case(op, {"X": x}, {"maxlen": c.pick([-1, 1, 4, 9]), "out_dtype": c.pick([0, 2, 3, 5, 6])})


@recipe("sequence_scatter")
def scatter(c: Chooser, op: str) -> Case:
    dtype, width = c.real(), c.int(1, 5)
    sizes = lengths(c)
    ids = c.ints((sum(sizes), 1), 0, width - 1)
    inputs = {
        "X": c.floats((len(sizes), width), dtype),
        "Ids": ids,
        "Updates": c.floats((sum(sizes), 1), dtype),
    }
    lod = [offsets(sizes)]
    return case(op, inputs, lods={"X": [None], "Ids": [lod], "Updates": [lod]})


@recipe("sequence_erase")
def erase(c: Chooser, op: str) -> Case:
    lod = deep(c, c.int(1, 3), c.int(1, 3))
    ids = c.ints((lod[-1][-1], 1), 0, 5, c.pick(["int32", "int64"]))
    return case(
        op, {"X": ids}, {"tokens": sorted({c.int(0, 6) for _ in range(c.int(0, 3))})}, lods={"X": [lod]}
    )


@recipe("lod_reset")
def reset(c: Chooser, op: str) -> Case:
    lod = deep(c, c.int(1, 3), c.int(1, 3))
    rows = lod[-1][-1]
    x = c.floats((rows, c.int(1, 3)), c.real())
    own, wanted = c.pick([None, lod]), sorted([0, *[c.int(0, rows) for _ in range(c.int(0, 4))], rows])
    way, append = c.int(0, 2), c.bool()
    if way == 0:
        return case(op, {"X": x}, {"target_lod": wanted, "append": append}, lods={"X": [own]})
    if way == 1:
        y = np.array(wanted, "int32")
        return case(op, {"X": x, "Y": y}, {"append": append}, lods={"X": [own], "Y": [None]})
    y = c.floats((rows, 1), "float32")
    return case(op, {"X": x, "Y": y}, {}, lods={"X": [own], "Y": [lod]})
