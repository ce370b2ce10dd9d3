"""Operators that update parameters element by element, and how plans join many of them into one call.

Each reads a parameter, its gradient and its accumulators and writes them back under the same names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import native
from .registry import Call, OpDef, OpView, register

NativeRule = Callable[[OpView], "Call | None"]


def rest(beta: float) -> float:
    """1 - beta for a beta kept in single precision, as programs keep their attributes."""
    return 1.0 - float(np.float32(beta))


def _infer(op: OpView) -> None:
    """Accumulators and outputs are as the variables they replace; the gradient fits the parameter."""
    shape = op.shape("Param")
    if op.shape("Grad") != shape:
        raise op.fail(f"Grad must have the shape of Param, {list(shape)}, got {list(op.shape('Grad'))}")
    if op.has("LearningRate") and math.prod(op.shape("LearningRate")) != 1:
        raise op.fail(f"LearningRate must have one element, got shape {list(op.shape('LearningRate'))}")
    for slot in op.definition.output_slots:
        if op.outputs.get(slot.name):
            source = _SOURCES.get(slot.name, slot.name.removesuffix("Out"))
            op.set(slot.name, op.shape(source), op.dtype(source))


_SOURCES = {"SquaredAccumOut": "SquaredAccumulator", "LinearAccumOut": "LinearAccumulator"}
"""Outputs whose name does not tell which input they replace."""


def _native(kernel: str, state: Sequence[str], floats: Sequence[str], ints: Sequence[str] = ()) -> NativeRule:
    """The native update of a parameter; None unless all tensors share a float type and stay in place."""
    slots = ("Param", *state)

    def select(op: OpView) -> Call | None:
        name = native.typed(op, kernel, (*slots, "Grad", "LearningRate"))
        if name is None or any(op.name(slot) != op.name(slot + "Out") for slot in slots):
            return None
        operands = [op.name(slot) for slot in ("LearningRate", "Param", "Grad", *state)]
        counts = [*(int(op.attr(i)) for i in ints), native.numel(op, "Param")]
        return Call(name, operands, counts, [float(op.attr(f)) for f in floats])

    return select


_LEADING_INTS = {"sgd": 0, "momentum": 1, "adam": 0, "adagrad": 0}
"""Kernels that update many parameters in one call, and how many integers they take before the sizes."""


def fuse(calls: list[Call]) -> list[Call]:
    """Join neighbouring updates of the same kind, rate and constants into one call over many parameters."""
    out: list[Call] = []
    for call in calls:
        leading = _LEADING_INTS.get(call.kernel.split(".")[0])
        if leading is not None and out and _alike(out[-1], call, leading):
            before = out[-1]
            operands = [*before.operands, *call.operands[1:]]
            out[-1] = Call(call.kernel, operands, [*before.ints, *call.ints[leading:]], call.floats)
        else:
            out.append(call)
    return out


def _alike(first: Call, second: Call, leading: int) -> bool:
    return (
        first.kernel == second.kernel
        and first.operands[0] == second.operands[0]
        and list(first.floats) == list(second.floats)
        and list(first.ints[:leading]) == list(second.ints[:leading])
    )


def update(
    op_type: str,
    kernel: Callable[..., Any],
    state: Sequence[str],
    attrs: dict[str, Any],
    doc: str,
    select: NativeRule | None = None,
    **options: Any,
) -> None:
    """Register an update operator whose accumulators are the input slots `state`."""
    outputs = options.pop("outputs", ("ParamOut", *(slot + "Out" for slot in state)))
    inputs = options.pop("inputs", ("Param", "Grad", "LearningRate", *state))
    register(
        OpDef(op_type, inputs, outputs, attrs, infer=_infer, kernel=kernel, native=select, doc=doc, **options)
    )


def cast_like(value: Any, like: Any) -> Any:
    """`value` in the type of `like`: a single precision rate must not widen or narrow what it updates."""
    return value.astype(like.dtype)


def _sgd(xp: Any, Param: Any, Grad: Any, LearningRate: Any) -> Any:
    return Param - cast_like(LearningRate, Param) * Grad


update("sgd", _sgd, (), {}, "Param - LearningRate * Grad.", _native("sgd", (), ()))


def _momentum(
    xp: Any, Param: Any, Grad: Any, LearningRate: Any, Velocity: Any, mu: float, use_nesterov: bool
) -> tuple[Any, Any]:
    rate = cast_like(LearningRate, Param)
    velocity = mu * Velocity + Grad
    return Param - rate * (Grad + mu * velocity if use_nesterov else velocity), velocity


update(
    "momentum",
    _momentum,
    ("Velocity",),
    {"mu": 0.0, "use_nesterov": False},
    "A step along a velocity that gathers gradients and fades by `mu`; Nesterov's variant looks ahead.",
    _native("momentum", ("Velocity",), ("mu",), ("use_nesterov",)),
)


def _adam(
    xp: Any,
    Param: Any,
    Grad: Any,
    LearningRate: Any,
    Moment1: Any,
    Moment2: Any,
    Beta1Pow: Any,
    Beta2Pow: Any,
    Beta1Tensor: Any,
    Beta2Tensor: Any,
    beta1: float,
    beta2: float,
    epsilon: float,
) -> tuple[Any, ...]:
    first = beta1 if Beta1Tensor is None else float(Beta1Tensor.reshape(()))
    second = beta2 if Beta2Tensor is None else float(Beta2Tensor.reshape(()))
    moment1 = first * Moment1 + rest(first) * Grad
    moment2 = second * Moment2 + rest(second) * Grad * Grad
    rate = cast_like(LearningRate * xp.sqrt(1 - Beta2Pow) / (1 - Beta1Pow), Param)
    out = Param - rate * (moment1 / (xp.sqrt(moment2) + epsilon))
    return out, moment1, moment2, Beta1Pow * first, Beta2Pow * second


MOMENTS = ("Moment1", "Moment2", "Beta1Pow", "Beta2Pow")


def _adam_native(op: OpView) -> Call | None:
    if op.has("Beta1Tensor") or op.has("Beta2Tensor"):
        return None
    return _native("adam", MOMENTS, ("beta1", "beta2", "epsilon"))(op)


update(
    "adam",
    _adam,
    MOMENTS,
    {
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "lazy_mode": False,
        "min_row_size_to_use_multithread": 1000,
    },
    "Adam (Kingma and Ba 2015); the powers of the betas are carried on for the next step.",
    _adam_native,
    inputs=("Param", "Grad", "LearningRate", *MOMENTS, "Beta1Tensor?", "Beta2Tensor?"),
)


def _adamax(
    xp: Any,
    Param: Any,
    Grad: Any,
    LearningRate: Any,
    Moment: Any,
    InfNorm: Any,
    Beta1Pow: Any,
    beta1: float,
    beta2: float,
    epsilon: float,
) -> tuple[Any, Any, Any]:
    moment = beta1 * Moment + rest(beta1) * Grad
    norm = xp.maximum(xp.abs(Grad), beta2 * InfNorm + epsilon)
    return Param - cast_like(LearningRate / (1 - Beta1Pow), Param) * (moment / norm), moment, norm


update(
    "adamax",
    _adamax,
    ("Moment", "InfNorm"),
    {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
    "Adam with the infinity norm (Kingma and Ba 2015); another operator carries Beta1Pow on.",
    inputs=("Param", "Grad", "LearningRate", "Moment", "InfNorm", "Beta1Pow"),
)


def _adagrad(
    xp: Any, Param: Any, Grad: Any, Moment: Any, LearningRate: Any, epsilon: float
) -> tuple[Any, Any]:
    moment = Moment + Grad * Grad
    return Param - cast_like(LearningRate, Param) * Grad / (xp.sqrt(moment) + epsilon), moment


update(
    "adagrad",
    _adagrad,
    ("Moment",),
    {"epsilon": 1e-6},
    "A step divided by the root of the sum of all squared gradients so far (Duchi et al. 2011).",
    _native("adagrad", ("Moment",), ("epsilon",)),
)


def _decayed_adagrad(
    xp: Any, Param: Any, Grad: Any, Moment: Any, LearningRate: Any, decay: float, epsilon: float
) -> tuple[Any, Any]:
    moment = decay * Moment + rest(decay) * Grad * Grad
    return Param - cast_like(LearningRate, Param) * Grad / (xp.sqrt(moment) + epsilon), moment


update(
    "decayed_adagrad",
    _decayed_adagrad,
    ("Moment",),
    {"decay": 0.95, "epsilon": 1e-6},
    "Adagrad whose squared gradients fade by `decay`.",
)


def _adadelta(
    xp: Any, Param: Any, Grad: Any, AvgSquaredGrad: Any, AvgSquaredUpdate: Any, rho: float, epsilon: float
) -> tuple[Any, Any, Any]:
    squared = rho * AvgSquaredGrad + rest(rho) * Grad * Grad
    update = xp.sqrt((AvgSquaredUpdate + epsilon) / (squared + epsilon)) * Grad
    updates = rho * AvgSquaredUpdate + rest(rho) * update * update
    # Zeiler's step is `update`; Paddle 1.8 steps by the average that already holds it, and so does this.
    return Param - xp.sqrt((updates + epsilon) / (squared + epsilon)) * Grad, squared, updates


update(
    "adadelta",
    _adadelta,
    ("AvgSquaredGrad", "AvgSquaredUpdate"),
    {"rho": 0.95, "epsilon": 1e-6},
    "Adadelta (Zeiler 2012), which needs no learning rate.",
    inputs=("Param", "Grad", "AvgSquaredGrad", "AvgSquaredUpdate"),
)


def _rmsprop(
    xp: Any,
    Param: Any,
    Grad: Any,
    LearningRate: Any,
    MeanSquare: Any,
    MeanGrad: Any,
    Moment: Any,
    epsilon: float,
    decay: float,
    momentum: float,
    centered: bool,
) -> tuple[Any, ...]:
    square = decay * MeanSquare + rest(decay) * Grad * Grad
    mean = decay * MeanGrad + rest(decay) * Grad if centered else MeanGrad
    variance = square - mean * mean if centered else square
    moment = momentum * Moment + cast_like(LearningRate, Param) * Grad / xp.sqrt(variance + epsilon)
    return Param - moment, moment, square, mean


update(
    "rmsprop",
    _rmsprop,
    ("Moment", "MeanSquare", "MeanGrad"),
    {"epsilon": 1e-10, "decay": 0.9, "momentum": 0.0, "centered": False},
    "A step divided by the root of a fading mean of squared gradients, less the squared mean if `centered`.",
    inputs=("Param", "MeanSquare", "MeanGrad?", "LearningRate", "Grad", "Moment"),
)


def _ftrl(
    xp: Any,
    Param: Any,
    SquaredAccumulator: Any,
    LinearAccumulator: Any,
    Grad: Any,
    LearningRate: Any,
    l1: float,
    l2: float,
    lr_power: float,
) -> tuple[Any, Any, Any]:
    rate = cast_like(LearningRate, Param)
    squared = SquaredAccumulator + Grad * Grad
    grown = squared**-lr_power
    linear = LinearAccumulator + Grad - (grown - SquaredAccumulator**-lr_power) / rate * Param
    pulled = (l1 * xp.sign(linear) - linear) / (grown / rate + l2)
    return xp.where(xp.abs(linear) > l1, pulled, xp.zeros_like(Param)), squared, linear


update(
    "ftrl",
    _ftrl,
    (),
    {"l1": 0.0, "l2": 0.0, "lr_power": -0.5},
    "Follow the regularised leader (McMahan et al. 2013), with penalties `l1` and `l2`.",
    inputs=("Param", "SquaredAccumulator", "LinearAccumulator", "Grad", "LearningRate"),
    outputs=("ParamOut", "SquaredAccumOut", "LinearAccumOut"),
)
