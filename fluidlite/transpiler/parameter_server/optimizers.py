"""The state of optimizers, and its shapes for blocks of parameters."""

from __future__ import annotations

from collections.abc import Sequence

_LIKE_PARAMETER = {
    "adam": ("Moment1", "Moment2"),
    "adagrad": ("Moment",),
    "adamax": ("Moment", "InfNorm"),
    "momentum": ("Velocity",),
    "lars_momentum": ("Velocity",),
    "rmsprop": ("Moment", "MeanSquare", "MeanGrad"),
    "decayed_adagrad": ("Moment",),
    "ftrl": ("SquaredAccumulator", "LinearAccumulator"),
    "sgd": (),
    "dpsgd": (),
}


def is_known(op_type: str) -> bool:
    """True if parameter servers support an optimizer."""
    return op_type in _LIKE_PARAMETER


def kept_shape(op_type: str, slot: str, shape: Sequence[int], part: Sequence[int]) -> tuple[int, ...]:
    """The shape of an optimizer's state in `slot` for a block of shape `part`; `shape`: that for the whole parameter.

    Raises ValueError for optimizers that Fluid's parameter servers do not support.
    """
    if op_type not in _LIKE_PARAMETER:
        raise ValueError(f"Not supported optimizer for distributed training: {op_type}")
    return tuple(part) if slot in _LIKE_PARAMETER[op_type] else tuple(shape)
