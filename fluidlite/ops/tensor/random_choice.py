"""Random orders and choices: `randperm`, `sampling_id`. For a seed they are those of Paddle 1.8 on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._ext import rng
from ...base.dtypes import VarType, to_numpy, to_vartype
from ..registry import Effects, OpDef, OpView, register
from .random_ import fresh_seed, stream_of

_WORD = 2**32
_PRIME = 2**31 - 1


def _c_rand(seed: int) -> Iterator[int]:
    """The numbers of the C library's `rand` after `srand(seed)`: an additive feedback generator (Knuth)."""
    state = [seed % _WORD or 1]
    for _ in range(30):
        state.append(16807 * state[-1] % _PRIME)
    state += state[:3]
    for k in range(34, 344):
        state.append((state[k - 3] + state[k - 31]) % _WORD)
    recent = state[-31:]
    while True:
        recent.append((recent[-3] + recent[-31]) % _WORD)
        del recent[0]
        yield recent[-1] >> 1


def _randperm(xp: Any, n: int, dtype: int, seed: int) -> Any:
    order = list(range(n))
    draw = _c_rand(seed or fresh_seed())
    for k in range(1, n):
        other = next(draw) % (k + 1)
        order[k], order[other] = order[other], order[k]
    return xp.asarray(order, dtype=to_numpy(dtype))


def _infer_randperm(op: OpView) -> None:
    if op.attr("n") < 1:
        raise op.fail(f"n must be positive, got {op.attr('n')}")
    op.set("Out", (op.attr("n"),), to_vartype(op.attr("dtype")))


register(
    OpDef(
        "randperm",
        attrs={"n": -1, "dtype": int(VarType.INT64), "seed": 0},
        infer=_infer_randperm,
        kernel=_randperm,
        effects=Effects(random=True),
        doc="The numbers from 0 to n - 1 in random order.",
    )
)


def _sampling_id(xp: Any, X: Any, min: float, max: float, seed: int) -> Any:
    drawn = np.asarray(rng.uniform(stream_of(seed), min, max, len(X), False)).reshape(-1, 1)
    below = xp.asarray(drawn) >= xp.cumsum(X, axis=1)
    return xp.minimum(below.sum(axis=1), X.shape[1] - 1).astype("int64")


def _infer_sampling_id(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) != 2:
        raise op.fail(f"X must be [rows, classes], got shape {list(shape)}")
    op.set("Out", (shape[0],), VarType.INT64)


register(
    OpDef(
        "sampling_id",
        inputs=("X",),
        attrs={"min": 0.0, "max": 1.0, "seed": 0},
        infer=_infer_sampling_id,
        kernel=_sampling_id,
        no_grad=("Out",),
        effects=Effects(random=True),
        doc="A class for each row of probabilities, drawn by them.",
    )
)
