"""Parts of tensors cut out at random places, and rows in a random order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..hosting import hosted
from ..registry import OpDef, OpView, register


@hosted
def _crop(xp: Any, X: Any, Seed: Any, shape: Any, startup_seed: int) -> Any:
    rng = np.random.default_rng(abs(startup_seed) if Seed is None else abs(int(Seed.reshape(-1)[0])))
    lead, whole = X.shape[: X.ndim - len(shape)], X.shape[X.ndim - len(shape) :]
    flat = X.reshape(-1, *whole)
    made = np.empty((len(flat), *shape), X.dtype)
    for part, source in zip(made, flat, strict=True):
        begin = [int(rng.integers(0, n - m + 1)) for n, m in zip(whole, shape, strict=True)]
        part[...] = source[tuple(slice(b, b + m) for b, m in zip(begin, shape, strict=True))]
    seed = np.array([rng.integers(0, 2**31)], np.int64)
    return made.reshape(*lead, *shape), seed


def _infer_crop(op: OpView) -> None:
    whole, cut = op.shape("X"), list(op.attr("shape"))
    if not 0 < len(cut) <= len(whole):
        raise op.fail(f"shape must be that of 1 to {len(whole)} dimensions of X, got {cut}")
    lead = len(whole) - len(cut)
    if any(0 <= n < m or m < 1 for n, m in zip(whole[lead:], cut, strict=True)):
        raise op.fail(f"shape must fit into {list(whole[lead:])}, got {cut}")
    op.set("Out", (*whole[:lead], *cut), op.dtype("X"))
    op.set("SeedOut", (1,), VarType.INT64)


register(
    OpDef(
        "random_crop",
        inputs=("X", "Seed?"),
        outputs=("Out", "SeedOut?"),
        attrs={"shape": [], "startup_seed": 0},
        infer=_infer_crop,
        kernel=_crop,
        frozen=("Out", "SeedOut"),
        random=True,
        lod_from={"Out": "X"},
        doc="A part of the given shape, at a place of its own, of each element along the leading dimensions.",
    )
)
