"""`sign`: which side of zero a number is on."""

from __future__ import annotations

from typing import Any

from .. import native
from ..infer import same_as
from ..registry import Dispatch, OpDef, OpSpec, OpView, Planning, grad_name, register


def sign_of(xp: Any, X: Any) -> Any:
    """-1, 0 or 1 in the type of X; 0 for NaN, as in Fluid."""
    return (X > 0).astype(X.dtype) - (X < 0).astype(X.dtype)


def _sign_grad(op: OpView) -> list[OpSpec]:
    takes, gives = {"X": [grad_name(op.name("Out"))]}, {"Out": [grad_name(op.name("X"))]}
    return [OpSpec("scale", takes, gives, {"scale": 0.0})]


register(
    OpDef(
        "sign",
        inputs=("X",),
        infer=same_as("X"),
        kernel=sign_of,
        grad=_sign_grad,
        native=native.unary("sign"),
        dispatch=Dispatch(cuda="activations.forward:sign"),
        planning=Planning(inplace=(("Out", "X"),)),
        doc="-1, 0 or 1, as X is negative, zero or positive; 0 for NaN; its gradient is zero.",
    )
)
