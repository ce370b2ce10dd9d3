"""Operators that sum parameters up over the steps of training, for averages of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import native
from .registry import Call, OpDef, OpView, register

_SHARE = 16384
"""After so many steps a sum goes into the next one, so that small addends are not lost in a large sum."""

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
    sums = [in_sum_1 + param, in_sum_2, in_sum_3]
    count, old, updates = in_num_accumulates + 1, in_old_num_accumulates, in_num_updates + 1
    zeros = xp.zeros_like(in_sum_1)
    if int(updates[0]) % _SHARE == 0:
        sums = [zeros, in_sum_2 + sums[0], in_sum_3]
    window = min(max_average_window, int(np.float32(updates[0]) * np.float32(average_window)))
    if int(count[0]) >= min_average_window and int(count[0]) >= window:
        sums = [zeros, zeros, sums[0] + sums[1]]
        count, old = xp.zeros_like(count), count
    return (*sums, count, old, updates)


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
    OpDef(
        "average_accumulates",
        inputs=("param", *("in_" + name for name in _STATE)),
        outputs=tuple("out_" + name for name in _STATE),
        attrs={"average_window": 0.0, "min_average_window": 10000, "max_average_window": 10000},
        infer=_infer,
        kernel=_average_accumulates,
        native=_native,
        inplace=tuple(("out_" + name, "in_" + name) for name in _STATE),
        doc=(
            "Adds param to a sum over a window of steps; a full window becomes the old one. The window is "
            "average_window times the number of updates, within min_average_window and max_average_window."
        ),
    )
)
