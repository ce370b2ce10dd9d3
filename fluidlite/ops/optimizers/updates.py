"""Operators that update parameters element by element or sum them up over steps, and how plans join many into one call.

Each reads a parameter, its gradient and its accumulators and writes them back under the same names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.selected_rows import SelectedRows
from .. import native
from ..kernels.kernel_def import KERNELS
from ..registry import Call, Dispatch, OpView, Planning, RowRule, Sequences, register
from ..tensor import gather as rows
from ..value_checks import forbid

NativeRule = Callable[[OpView], "Call | None"]


def _infer(op: OpView) -> None:
    """Gradient and accumulators fit the parameter; outputs are as the variables they replace."""
    fit_param(op)
    for slot in op.definition.output_slots:
        if op.outputs.get(slot.name):
            source = _SOURCES.get(slot.name, slot.name.removesuffix("Out"))
            op.set(slot.name, op.shape(source), op.dtype(source))


def fit_param(op: OpView) -> None:
    """Raise if an input is neither as large as the parameter nor, as rates and powers are, a single number.

    A parameter that is SelectedRows says nothing about how high the table of its gradient is.
    """
    shape = op.shape("Param")
    for slot in op.definition.input_slots:
        if not op.has(slot.name):
            continue
        found = op.shape(slot.name)
        if slot.name in _SINGLE:
            if math.prod(found) != 1:
                raise op.fail(f"{slot.name} must have one element, got shape {list(found)}")
        elif found != shape and not (op.rows("Param") is not None and found[1:] == shape[1:]):
            raise op.fail(f"{slot.name} must have the shape of Param, {list(shape)}, got {list(found)}")


_SINGLE = (
    *("LearningRate", "Beta1Pow", "Beta2Pow", "Beta1Tensor", "Beta2Tensor"),
    *("current_step", "nranks"),
)
"""Inputs that hold one number."""

_SOURCES = {"SquaredAccumOut": "SquaredAccumulator", "LinearAccumOut": "LinearAccumulator"}
"""The input that an output updates, where it does not follow from the name."""


def native_update(
    kernel: str, state: Sequence[str], floats: Sequence[str], ints: Sequence[str] = ()
) -> NativeRule:
    """The native update of a parameter; None unless all tensors share a float type and stay in place, and the operator
    has no other inputs.
    """

    def select(op: OpView) -> Call | None:
        name = _kernel(op, kernel, state)
        if name is None:
            return None
        operands = [op.name(slot) for slot in ("LearningRate", "Param", "Grad", *state)]
        counts = [*(int(op.attr(i)) for i in ints), native.numel(op, "Param")]
        return Call(name, operands, counts, [float(op.attr(f)) for f in floats])

    return select


def native_rows_update(
    kernel: str, state: Sequence[str], floats: Sequence[str], ints: Sequence[str] = ()
) -> Callable[[OpView], list[Call] | None]:
    """The native update of the rows of a parameter that its gradient names."""

    def select(op: OpView) -> list[Call] | None:
        name = _kernel(op, kernel, state)
        if name is None:
            return None
        operands = [op.name("LearningRate"), op.name("Param"), *rows.parts(op.name("Grad"))]
        operands += [op.name(slot) for slot in state]
        counts = [*rows.extent(op, "Grad"), *(int(op.attr(i)) for i in ints)]
        return [Call(name, operands, counts, [float(op.attr(f)) for f in floats])]

    return select


def _kernel(op: OpView, kernel: str, state: Sequence[str]) -> str | None:
    """The kernel for the type of the tensors; None if they differ, do not stay in place, or others are given, too."""
    kept = ("Param", *state)
    if {slot for slot, names in op.inputs.items() if names} != {*kept, "Grad", "LearningRate"}:
        return None
    if any([op.name(slot) != op.name(slot + "Out") for slot in kept]):
        return None
    return native.typed(op, kernel, (*kept, "Grad", "LearningRate"))


def update_kind(call: Call) -> tuple[Any, ...] | None:
    """The key of updates that one call can make together; None if the kernel updates one parameter at a time."""
    kernel = KERNELS[call.kernel]
    if kernel is None or not kernel.multi_tensor:
        return None
    return (call.kernel, call.operands[0], *call.floats, *call.ints[: kernel.int_places["n"]])


def joined(calls: Sequence[Call]) -> Call:
    """One call for updates of the same kind."""
    first = calls[0]
    if len(calls) == 1:
        return first
    kernel = KERNELS[first.kernel]
    assert kernel is not None
    leading = kernel.int_places["n"]
    operands = [first.operands[0], *(name for call in calls for name in call.operands[1:])]
    sizes = [number for call in calls for number in call.ints[leading:]]
    return Call(first.kernel, operands, [*first.ints[:leading], *sizes], first.floats)


def update(
    op_type: str,
    kernel: Callable[..., Any],
    state: Sequence[str],
    attrs: dict[str, Any],
    doc: str,
    select: NativeRule | None = None,
    **options: Any,
) -> None:
    """Register an update operator with the accumulators in input slots `state`."""
    outputs = options.pop("outputs", ("ParamOut", *(slot + "Out" for slot in state)))
    inputs = options.pop("inputs", ("Param", "Grad", "LearningRate", *state))
    register(
        op_type,
        inputs,
        outputs,
        attrs,
        infer=_infer,
        kernel=kernel,
        native=select,
        sequences=Sequences(source=None),
        doc=doc,
        **options,
    )


def cast_like(value: Any, like: Any) -> Any:
    """Cast `value` to the type of `like`, so that a float32 rate neither widens nor narrows the parameter."""
    return value.astype(like.dtype)


def _sgd(xp: Any, Param: Any, Grad: Any, LearningRate: Any) -> Any:
    return Param - cast_like(LearningRate, Param) * Grad


def _sgd_rows(xp: Any, Param: Any, Grad: SelectedRows, LearningRate: Any) -> Any:
    grad = Grad.merged(xp)
    step = cast_like(LearningRate, Param) * grad.values
    if isinstance(Param, SelectedRows):  # of any height: rows match by number
        places, found = rows.places_of(xp, Param, grad.rows)
        forbid(
            ~found, "operator sgd: Param holds no row", lambda: f" {int(grad.rows[xp.argmin(found)])} of Grad"
        )
        return Param.with_values(rows.updated(xp, Param.values, places, Param.values[places] - step))
    return rows.updated(xp, Param, grad.rows, Param[grad.rows] - step)


update(
    "sgd",
    _sgd,
    (),
    {},
    "Param - LearningRate * Grad.",
    native_update("sgd", (), ()),
    dispatch=Dispatch(
        rows=RowRule(
            _sgd_rows,
            slots=("Grad",),
            native=native_rows_update("sgd_rows", (), ()),
            cuda="updates.sgd",
        ),
        cuda="updates.make:sgd",
    ),
)


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
    native_update("momentum", ("Velocity",), ("mu",), ("use_nesterov",)),
    dispatch=Dispatch(cuda="updates.make:momentum"),
)


MOMENTS = ("Moment1", "Moment2", "Beta1Pow", "Beta2Pow")
"""The accumulator slots of Adam and its kin."""


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
    moment = beta1 * Moment + (1.0 - beta1) * Grad
    norm = xp.maximum(xp.abs(Grad), beta2 * InfNorm + epsilon)
    return Param - cast_like(LearningRate / (1 - Beta1Pow), Param) * (moment / norm), moment, norm


update(
    "adamax",
    _adamax,
    ("Moment", "InfNorm"),
    {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
    "Adam with the infinity norm (Kingma and Ba 2015); another operator carries Beta1Pow on.",
    inputs=("Param", "Grad", "LearningRate", "Moment", "InfNorm", "Beta1Pow"),
    dispatch=Dispatch(cuda="updates.make:adamax"),
)


def _adagrad(
    xp: Any, Param: Any, Grad: Any, Moment: Any, LearningRate: Any, epsilon: float
) -> tuple[Any, Any]:
    moment = Moment + Grad * Grad
    return Param - cast_like(LearningRate, Param) * Grad / (xp.sqrt(moment) + epsilon), moment


def _adagrad_rows(
    xp: Any, Param: Any, Grad: SelectedRows, Moment: Any, LearningRate: Any, epsilon: float
) -> tuple[Any, Any]:
    grad = Grad.merged(xp)
    made = _adagrad(xp, Param[grad.rows], grad.values, Moment[grad.rows], LearningRate, epsilon)
    return rows.updated(xp, Param, grad.rows, made[0]), rows.updated(xp, Moment, grad.rows, made[1])


update(
    "adagrad",
    _adagrad,
    ("Moment",),
    {"epsilon": 1e-6},
    "A step divided by the root of the sum of all squared gradients so far (Duchi et al. 2011).",
    native_update("adagrad", ("Moment",), ("epsilon",)),
    dispatch=Dispatch(
        rows=RowRule(
            _adagrad_rows,
            slots=("Grad",),
            native=native_rows_update("adagrad_rows", ("Moment",), ("epsilon",)),
            cuda="updates.adagrad",
        ),
        cuda="updates.make:adagrad",
    ),
)


def _decayed_adagrad(
    xp: Any, Param: Any, Grad: Any, Moment: Any, LearningRate: Any, decay: float, epsilon: float
) -> tuple[Any, Any]:
    moment = decay * Moment + (1.0 - decay) * Grad * Grad
    return Param - cast_like(LearningRate, Param) * Grad / (xp.sqrt(moment) + epsilon), moment


update(
    "decayed_adagrad",
    _decayed_adagrad,
    ("Moment",),
    {"decay": 0.95, "epsilon": 1e-6},
    "Adagrad whose squared gradients fade by `decay`.",
    dispatch=Dispatch(cuda="updates.make:decayed_adagrad"),
)


def _adadelta(
    xp: Any, Param: Any, Grad: Any, AvgSquaredGrad: Any, AvgSquaredUpdate: Any, rho: float, epsilon: float
) -> tuple[Any, Any, Any]:
    squared = rho * AvgSquaredGrad + (1.0 - rho) * Grad * Grad
    update = xp.sqrt((AvgSquaredUpdate + epsilon) / (squared + epsilon)) * Grad
    updates = rho * AvgSquaredUpdate + (1.0 - rho) * update * update
    # Zeiler's step is `update`; Paddle 1.8 steps by the average that already holds it, and so does this.
    return Param - xp.sqrt((updates + epsilon) / (squared + epsilon)) * Grad, squared, updates


update(
    "adadelta",
    _adadelta,
    ("AvgSquaredGrad", "AvgSquaredUpdate"),
    {"rho": 0.95, "epsilon": 1e-6},
    "Adadelta (Zeiler 2012), which needs no learning rate.",
    inputs=("Param", "Grad", "AvgSquaredGrad", "AvgSquaredUpdate"),
    dispatch=Dispatch(cuda="updates.make:adadelta"),
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
    square = decay * MeanSquare + (1.0 - decay) * Grad * Grad
    mean = decay * MeanGrad + (1.0 - decay) * Grad if centered else MeanGrad
    variance = square - mean * mean if centered else square
    moment = momentum * Moment + cast_like(LearningRate, Param) * Grad / xp.sqrt(variance + epsilon)
    return Param - moment, moment, square, mean


_RMSPROP_STATE = ("Moment", "MeanSquare", "MeanGrad")


update(
    "rmsprop",
    _rmsprop,
    _RMSPROP_STATE,
    {"epsilon": 1e-10, "decay": 0.9, "momentum": 0.0, "centered": False},
    "A step divided by the root of a fading mean of squared gradients, less the squared mean if `centered`.",
    native_update("rmsprop", _RMSPROP_STATE, ("decay", "momentum", "epsilon"), ("centered",)),
    inputs=("Param", "MeanSquare", "MeanGrad?", "LearningRate", "Grad", "Moment"),
    dispatch=Dispatch(cuda="updates.make:rmsprop"),
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
    pulled = (l1 * xp.sign(linear) - linear) / (grown / rate + 2 * l2)
    return xp.where(xp.abs(linear) > l1, pulled, xp.zeros_like(Param)), squared, linear


update(
    "ftrl",
    _ftrl,
    (),
    {"l1": 0.0, "l2": 0.0, "lr_power": -0.5},
    "Follow the regularised leader (McMahan et al. 2013), with penalties `l1` and `l2`.",
    inputs=("Param", "SquaredAccumulator", "LinearAccumulator", "Grad", "LearningRate"),
    outputs=("ParamOut", "SquaredAccumOut", "LinearAccumOut"),
    dispatch=Dispatch(cuda="updates.make:ftrl"),
)


_SHARE = 16384
"""After this many steps a sum is added to the next one, so that small addends are not lost in a large sum."""

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
    count, updates = in_num_accumulates + 1, in_num_updates + 1
    zero = param.dtype.type(0)
    first = in_sum_1 + param
    handed_on = updates % _SHARE == 0
    second = xp.where(handed_on, in_sum_2 + first, in_sum_2)
    first = xp.where(handed_on, zero, first)
    window = (updates.astype("float32") * np.float32(average_window)).astype("int64")
    full = (count >= min_average_window) & (count >= xp.minimum(window, max_average_window))
    third = xp.where(full, first + second, in_sum_3)
    sums = (xp.where(full, zero, first), xp.where(full, zero, second), third)
    old = xp.where(full, count, in_old_num_accumulates)
    return (*sums, xp.where(full, 0, count), old, updates)


def _infer_sums(op: OpView) -> None:
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
    "average_accumulates",
    inputs=("param", *("in_" + name for name in _STATE)),
    outputs=tuple("out_" + name for name in _STATE),
    attrs={"average_window": 0.0, "min_average_window": 10000, "max_average_window": 10000},
    infer=_infer_sums,
    kernel=_average_accumulates,
    native=_native,
    sequences=Sequences(source=None),
    planning=Planning(inplace=tuple(("out_" + name, "in_" + name) for name in _STATE)),
    doc=(
        "Adds param to a sum over a window of steps; a full window becomes the old one. The window is "
        "average_window times the number of updates, within min_average_window and max_average_window."
    ),
)
