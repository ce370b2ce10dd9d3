"""Operators that sum parameters up over the steps of training, for averages of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import native
from ..registry import Call, OpView, Planning, Sequences, register

_SHARE = 16384
"""After this many steps a sum is added to the next one, so that small addends are not lost in a large sum."""

_STATE = ("sum_1", "sum_2", "sum_3", "num_accumulates", "old_num_accumulates", "num_updates")


def _average_accumulates(
    xp: Any,
    param: Any,
    in_sum_1: Any,
    in_sum_2: Any,
    in_sum_3: Any,
    in_num_accumulates: Any,
    in_old_num_accumulates: Any,
    in_num_updates: Any,
    average_window: float,
    min_average_window: int,
    max_average_window: int,
) -> tuple[Any, ...]:
    count, updates = in_num_accumulates + 1, in_num_updates + 1
    zero = param.dtype.type(0)
    first = in_sum_1 + param
    handed_on = updates % _SHARE == 0
    second = xp.where(handed_on, in_sum_2 + first, in_sum_2)
    first = xp.where(handed_on, zero, first)
    window = (updates.astype("float32") * np.float32(average_window)).astype("int64")
    full = (count >= min_average_window) & (count >= xp.minimum(window, max_average_window))
    third = xp.where(full, first + second, in_sum_3)
    sums = (xp.where(full, zero, first), xp.where(full, zero, second), third)
    old = xp.where(full, count, in_old_num_accumulates)
    return (*sums, xp.where(full, 0, count), old, updates)


def _infer(op: OpView) -> None:
    for name in _STATE:
        like = "param" if name.startswith("sum") else "in_" + name
        if op.shape("in_" + name) != op.shape(like):
            raise op.fail(
                f"in_{name} must have the shape of {like}, {list(op.shape(like))}, got {list(op.shape('in_' + name))}"
            )
        op.set("out_" + name, op.shape("in_" + name), op.dtype("in_" + name))


def _native(op: OpView) -> Call | None:
    slots = ["in_" + name for name in _STATE]
    kernel = native.typed(op, "average_accumulates", ("param", *slots[:3]))
    counts = native.element(op, *slots[3:])
    if kernel is None or counts != "i64" or any(op.name("in_" + n) != op.name("out_" + n) for n in _STATE):
        return None
    ints = [native.numel(op, "param"), op.attr("min_average_window"), op.attr("max_average_window"), _SHARE]
    return Call(kernel, [op.name(slot) for slot in ("param", *slots)], ints, [op.attr("average_window")])


register(
    "average_accumulates",
    inputs=("param", *("in_" + name for name in _STATE)),
    outputs=tuple("out_" + name for name in _STATE),
    attrs={"average_window": 0.0, "min_average_window": 10000, "max_average_window": 10000},
    infer=_infer,
    kernel=_average_accumulates,
    native=_native,
    sequences=Sequences(source=None),
    planning=Planning(inplace=tuple(("out_" + name, "in_" + name) for name in _STATE)),
    doc=(
        "Adds param to a sum over a window of steps; a full window becomes the old one. The window is "
        "average_window times the number of updates, within min_average_window and max_average_window."
    ),
)
