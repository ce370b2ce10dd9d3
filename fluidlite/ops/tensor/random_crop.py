"""Parts of tensors cut out at random places, and rows in a random order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..registry import Effects, OpDef, OpView, Sequences, register

_FACTOR, _PRIME = 48271, 2**31 - 1
"""Factor and modulus of Fluid's random generator here, `std::minstd_rand`."""


def _states(seed: int, count: int) -> np.ndarray:
    """The first `count` numbers that the generator gives."""
    powers, step = np.ones(1, np.int64), _FACTOR
    while len(powers) < count:
        powers = np.concatenate([powers, powers * step % _PRIME])
        step = step * step % _PRIME
    first = (seed % 2**64 % _PRIME or 1) * _FACTOR % _PRIME
    return powers[:count] * first % _PRIME


def _place(state: int, spans: tuple[int, ...]) -> list[int]:
    """A number below each of `spans`, drawn from the stream at `state` by rejection."""
    result = []
    for span in spans:
        scale = (_PRIME - 2) // span
        while (state - 1) // scale >= span:
            state = state * _FACTOR % _PRIME
        result.append((state - 1) // scale)
        state = state * _FACTOR % _PRIME
    return result


@hosted
def _crop(xp: Any, X: Any, Seed: Any, shape: Any, startup_seed: int) -> Any:
    lead, whole = X.shape[: X.ndim - len(shape)], X.shape[X.ndim - len(shape) :]
    flat = X.reshape(-1, *whole)
    made = np.empty((len(flat), *shape), X.dtype)
    spans = tuple(n - m + 1 for n, m in zip(whole, shape, strict=True))
    states = _states(
        startup_seed if Seed is None else int(Seed.reshape(-1)[0]), len(flat) * len(spans) + 1
    ).tolist()
    for part, source, state in zip(made, flat, states[:: len(spans)], strict=False):
        begin = _place(state, spans)
        part[...] = source[tuple(slice(b, b + m) for b, m in zip(begin, shape, strict=True))]
    return made.reshape(*lead, *shape), np.array(states[-1:], np.int64)


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
        no_grad=("Out", "SeedOut"),
        sequences=Sequences(source=None),
        effects=Effects(random=True, uninitialized=("Seed",)),
        doc="A part of the given shape of each element along the leading dimensions; for a seed at Fluid's places.",
    )
)
