"""shuffle_batch: the rows of a tensor in a random order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..infer import grads_like_inputs, product
from ..registry import Effects, OpDef, OpSpec, OpView, Sequences, grad_name, register

DOUT, DX = grad_name("Out"), grad_name("X")


_FACTOR, _PRIME = 16807, 2**31 - 1


def _places(count: int, seed: int) -> tuple[list[int], int]:
    """A random permutation of `count` rows (Fisher-Yates with minstd_rand0, as in Fluid), and the next state."""
    state = seed % 2**64 % _PRIME or 1
    places = list(range(count))
    for last in range(1, count):
        share = (_PRIME - 2) // (last + 1)
        while True:
            state = state * _FACTOR % _PRIME
            if state - 1 < share * (last + 1):
                break
        other = (state - 1) // share
        places[last], places[other] = places[other], places[last]
    return places, state * _FACTOR % _PRIME


@hosted
def _shuffle(xp: Any, X: Any, Seed: Any, startup_seed: int) -> Any:
    seed = startup_seed if Seed is None or not Seed.size else int(Seed.reshape(-1)[0])
    rows = X.reshape(-1, X.shape[-1])
    places, state = _places(len(rows), seed)
    made = np.empty_like(rows)
    made[places] = rows
    return made.reshape(X.shape), np.array(places, np.int64), np.array([state])


def _shuffle_grad(xp: Any, ShuffleIdx: Any, Out_grad: Any) -> Any:
    return Out_grad.reshape(-1, Out_grad.shape[-1])[ShuffleIdx].reshape(Out_grad.shape)


def _infer(op: OpView) -> None:
    shape = op.shape("X")
    op.set("Out", shape, op.dtype("X"))
    op.set("ShuffleIdx", (-1 if min(shape) < 0 else product(shape[:-1]),), VarType.INT64)
    if not op.building:
        op.set("SeedOut", (1,), VarType.INT64)


def _rule(op: OpView) -> list[OpSpec]:
    takes = {"ShuffleIdx": op.names("ShuffleIdx"), DOUT: [grad_name(op.name("Out"))]}
    return [OpSpec("shuffle_batch_grad", takes, {DX: [grad_name(op.name("X"))]}, dict(op.attrs))]


register(
    OpDef(
        "shuffle_batch",
        ("X", "Seed"),
        ("Out", "ShuffleIdx", "SeedOut"),
        {"startup_seed": 0},
        infer=_infer,
        kernel=_shuffle,
        grad=_rule,
        no_grad=("Seed", "ShuffleIdx", "SeedOut"),
        sequences=Sequences(source={"Out": "X", "SeedOut": "Seed"}),
        effects=Effects(random=True, uninitialized=("Seed",)),
        doc="All rows (what the last dimension holds) in another order; SeedOut: the seed of the next run.",
    )
)
register(
    OpDef(
        "shuffle_batch_grad",
        ("ShuffleIdx", DOUT),
        (DX,),
        {"startup_seed": 0},
        infer=grads_like_inputs,
        kernel=_shuffle_grad,
        doc="The gradient of shuffle_batch: rows back where they came from.",
    )
)
