"""`sign`: which side of zero a number is on."""

from __future__ import annotations

from . import native
from .infer import same_as
from .registry import OpDef, OpSpec, OpView, grad_name, register


def _sign_grad(op: OpView) -> list[OpSpec]:
    takes, gives = {"X": [grad_name(op.name("Out"))]}, {"Out": [grad_name(op.name("X"))]}
    return [OpSpec("scale", takes, gives, {"scale": 0.0})]


register(
    OpDef(
        "sign",
        inputs=("X",),
        infer=same_as("X"),
        kernel=lambda xp, X: xp.sign(X),
        grad=_sign_grad,
        native=native.unary("sign"),
        inplace=(("Out", "X"),),
        cuda="activations.forward:sign",
        doc="-1, 0 or 1, as X is negative, zero or positive; its gradient is zero.",
    )
)
