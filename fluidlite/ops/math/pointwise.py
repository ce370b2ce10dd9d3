"""Functions of one array, element by element: how they, their gradients and second derivatives are declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.dtypes import FLOATS, to_numpy
from .. import batchable
from ..grad_pairs import Rule, self_adjoint_double_grad
from ..infer import grads_like_inputs
from ..native import unary, unary_grad
from ..registry import Dispatch, Effects, OpDef, OpSpec, OpView, Planning, grad_name, register, standard_grad

DOUT, DX = grad_name("Out"), grad_name("X")
Kernel = Callable[..., Any]


def _double_grad_rule(kept: str) -> Callable[[OpView], list[OpSpec]]:
    """The rule that makes `<type>_grad_grad` from a gradient operator that keeps slot `kept`."""

    def rule(op: OpView) -> list[OpSpec]:
        takes = {kept: [op.name(kept)], "DOut": [op.name(DOUT)], "DDX": [grad_name(op.name(DX))]}
        gives = {"D" + kept: [grad_name(op.name(kept))], "DDOut": [grad_name(op.name(DOUT))]}
        return [OpSpec(op.type + "_grad", takes, gives, dict(op.attrs))]

    return rule


def _nothing(op: OpView) -> list[OpSpec]:
    """The gradient rule of a step function's gradient operator: 0."""
    return []


def _register_double_grad(op_type: str, kept: str, attrs: dict[str, Any], second: Kernel) -> None:
    """`<type>_grad_grad`: the gradients of `<type>_grad` for its saved tensor and for Out@GRAD."""

    def infer(op: OpView) -> None:
        op.set("D" + kept, op.shape(kept), op.dtype(kept))
        op.set("DDOut", op.shape("DDX"), op.dtype("DDX"))

    register(
        OpDef(
            op_type + "_grad_grad",
            inputs=(kept, "DOut", "DDX"),
            outputs=("D" + kept, "DDOut"),
            attrs=attrs,
            infer=infer,
            kernel=second,
            doc=f"Gradients of {op_type}_grad with respect to {kept} and Out@GRAD.",
        )
    )


def _same_type(kernel: Kernel, attrs: dict[str, Any]) -> Callable[[OpView], None]:
    """Out is as X; refuses integers for functions with float results, as Fluid does."""

    def infer(op: OpView) -> None:
        kind = op.dtype("X")
        if kind not in FLOATS and kernel(np, np.zeros(0, to_numpy(kind)), **attrs).dtype != to_numpy(kind):
            raise op.fail(f"X must be of a float type, got {kind}")
        op.set("Out", op.shape("X"), kind)

    return infer


def register_function(
    op_type: str,
    kernel: Kernel,
    grad: Kernel,
    doc: str,
    attrs: dict[str, Any] | None = None,
    native: bool = True,
    linear: bool = False,
    second: Kernel | None = None,
    effects: Effects = Effects(),
    **planning: Any,
) -> None:
    """Declare `op_type` and `<op_type>_grad`.

    As in Fluid the gradient operator keeps the output where that is enough and the input otherwise: the parameters of
    `grad` say which. `native`: there are C kernels that take the attributes in this order, as those for GPUs do.
    `linear`: piecewise linear. `second(xp, kept, DOut, DDX)`: the gradients of the gradient operator for what it keeps
    and for Out@GRAD, where DOut is Out@GRAD and DDX the gradient of X@GRAD. `planning`: what else `Planning` says of
    `op_type`.
    """
    attrs = attrs or {}
    named = grad.__code__.co_varnames[: grad.__code__.co_argcount]
    kept = next((slot for slot in ("Out", "X") if slot in named), None)
    floats = tuple(attrs)
    register(
        OpDef(
            op_type,
            inputs=("X",),
            attrs=attrs,
            infer=_same_type(kernel, attrs),
            kernel=kernel,
            grad=standard_grad(
                inputs=("X",) if kept == "X" else (), outputs=("Out",) if kept == "Out" else ()
            ),
            native=unary(op_type, floats) if native else None,
            dispatch=Dispatch(cuda=f"activations.forward:{op_type}"),
            effects=effects,
            planning=Planning(inplace=(("Out", "X"),), batchable=batchable.all_batched, **planning),
            doc=doc,
        )
    )
    double_grad: Rule | None = (
        self_adjoint_double_grad
        if linear
        else _double_grad_rule(kept)
        if second is not None and kept
        else None
    )
    if kept is None:
        double_grad = _nothing
    register(
        OpDef(
            op_type + "_grad",
            inputs=(kept, DOUT) if kept else (DOUT,),
            outputs=(DX,),
            attrs=attrs,
            infer=grads_like_inputs,
            kernel=grad,
            grad=double_grad,
            native=unary_grad(op_type, floats, out_as_x=op_type == "leaky_relu") if native else None,
            dispatch=Dispatch(cuda=f"activations.grad:{op_type}"),
            planning=Planning(inplace=((DX, DOUT),), batchable=batchable.all_batched),
            doc=f"Gradient of {op_type}.",
        )
    )
    if second is not None and kept:
        _register_double_grad(op_type, kept, attrs, second)
