"""Updates beyond one rule for each element: Adam, steps scaled by norms of the parameter, proximal and compressed
ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.selected_rows import SelectedRows
from ..infer import same_as
from ..registry import Dispatch, Effects, OpView, RowRule, Sequences, kernel_of, register
from ..tensor import gather as rows
from ..tensor.random_ import fresh_seed
from .updates import MOMENTS, cast_like, fit_param, native_rows_update, native_update, update


def _beta(tensor: Any, number: float) -> float:
    return number if tensor is None else float(tensor.reshape(()))


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
    first, second = _beta(Beta1Tensor, beta1), _beta(Beta2Tensor, beta2)
    moment1 = first * Moment1 + (1.0 - first) * Grad
    moment2 = second * Moment2 + (1.0 - second) * Grad * Grad
    rate = cast_like(LearningRate * xp.sqrt(1 - Beta2Pow) / (1 - Beta1Pow), Param)
    out = Param - rate * (moment1 / (xp.sqrt(moment2) + epsilon))
    return out, moment1, moment2, Beta1Pow * first, Beta2Pow * second


def _adam_rows(
    xp: Any,
    Param: Any,
    Grad: SelectedRows,
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
    lazy_mode: bool,
) -> tuple[Any, ...]:
    first, second = _beta(Beta1Tensor, beta1), _beta(Beta2Tensor, beta2)
    # Paddle 1.8 carries the powers on before it uses them, where the gradient is sparse.
    power1, power2 = Beta1Pow * first, Beta2Pow * second
    grad = Grad.merged(xp)
    chosen = grad.rows if lazy_mode else slice(None)
    tables = (Param, Moment1, Moment2)
    param, moment1, moment2 = (table[chosen] for table in tables)
    values = grad.values if lazy_mode else grad.dense(xp)
    made = _adam(
        xp, param, values, LearningRate, moment1, moment2, power1, power2, None, None, first, second, epsilon
    )
    if not lazy_mode:
        return (*made[:3], power1, power2)
    new = [rows.updated(xp, table, grad.rows, part) for table, part in zip(tables, made, strict=False)]
    return (*new, power1, power2)


_ADAM_FLOATS = ("beta1", "beta2", "epsilon")

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
    (
        "Adam (Kingma and Ba 2015); the powers of the betas are carried on for the next step. With `lazy_mode` "
        "rows that a sparse gradient does not name stay as they are, moments and all."
    ),
    native_update("adam", MOMENTS, _ADAM_FLOATS),
    inputs=("Param", "Grad", "LearningRate", *MOMENTS, "Beta1Tensor?", "Beta2Tensor?"),
    dispatch=Dispatch(
        rows=RowRule(
            _adam_rows,
            slots=("Grad",),
            native=native_rows_update("adam_rows", MOMENTS, _ADAM_FLOATS, ("lazy_mode",)),
            cuda="updates.adam",
        ),
        cuda="updates.make:adam",
    ),
)


def _norm(xp: Any, value: Any) -> Any:
    return xp.sqrt(xp.sum(value * value))


def _lars_momentum(
    xp: Any,
    Param: Any,
    Grad: Any,
    Velocity: Any,
    LearningRate: Any,
    mu: float,
    lars_coeff: float,
    lars_weight_decay: float,
) -> tuple[Any, Any]:
    rate = cast_like(LearningRate, Param)
    param_norm, grad_norm = _norm(xp, Param), _norm(xp, Grad)
    size = grad_norm + lars_weight_decay * param_norm
    # A layer that is still zero, or without a gradient, takes the plain rate.
    scaled = rate * lars_coeff * param_norm / xp.where(size > 0, size, 1)
    local = xp.where((param_norm > 0) & (grad_norm > 0), scaled, rate)
    velocity = mu * Velocity + local * (Grad + lars_weight_decay * Param)
    return Param - velocity, velocity


update(
    "lars_momentum",
    _lars_momentum,
    ("Velocity",),
    {"mu": 0.0, "lars_coeff": 0.001, "lars_weight_decay": 0.0005},
    "Momentum with a rate for each layer after the norms of its weights and gradient (You et al. 2017).",
)


def _lamb(
    xp: Any,
    Param: Any,
    Grad: Any,
    LearningRate: Any,
    Moment1: Any,
    Moment2: Any,
    weight_decay: float,
    beta1: float,
    beta2: float,
    epsilon: float,
) -> tuple[Any, Any, Any]:
    moment1 = beta1 * Moment1 + (1.0 - beta1) * Grad
    moment2 = beta2 * Moment2 + (1.0 - beta2) * Grad * Grad
    update = moment1 / (xp.sqrt(moment2) + epsilon) + weight_decay * Param
    param_norm, update_norm = _norm(xp, Param), _norm(xp, update)
    trusted = (param_norm > 0) & (update_norm > 0)
    trust = xp.where(
        trusted, param_norm / xp.where(update_norm > 0, update_norm, 1), xp.ones_like(param_norm)
    )
    return Param - cast_like(LearningRate, Param) * trust * update, moment1, moment2


update(
    "lamb",
    _lamb,
    ("Moment1", "Moment2"),
    {"weight_decay": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-6},
    "Adam's direction scaled to each layer's norm (You et al. 2020), without bias correction.",
    inputs=("Param", "Grad", "LearningRate", *MOMENTS),
)


def _dpsgd(
    xp: Any,
    Param: Any,
    Grad: Any,
    LearningRate: Any,
    clip: float,
    batch_size: float,
    sigma: float,
    seed: int,
) -> Any:
    scale = xp.maximum(_norm(xp, Grad) / clip, 1)
    draw = np.random.default_rng(seed or fresh_seed()).standard_normal(Param.shape) * (sigma * clip)
    noise = xp.asarray(draw, dtype=Param.dtype)
    return Param - cast_like(LearningRate, Param) * (Grad / scale + noise / batch_size)


update(
    "dpsgd",
    _dpsgd,
    (),
    {"clip": 10.0, "batch_size": 16.0, "sigma": 1.0, "seed": 0},
    "SGD on gradients clipped to norm `clip`, plus noise of deviation sigma * clip / batch_size.",
    effects=Effects(random=True),
)


def _shrunk(xp: Any, moved: Any, rate: Any, l1: float, l2: float) -> Any:
    kind = moved.dtype.type
    if l1 > 0:
        moved = xp.sign(moved) * xp.maximum(xp.abs(moved) - rate * kind(l1), 0)
    return moved / (1 + rate * kind(l2))


def _gd(xp: Any, Param: Any, Grad: Any, LearningRate: Any, l1: float, l2: float) -> Any:
    rate = LearningRate.reshape(-1)[0]
    return _shrunk(xp, Param - rate * Grad, rate, l1, l2)


def _adagrad(xp: Any, Param: Any, Moment: Any, Grad: Any, LearningRate: Any, l1: float, l2: float) -> Any:
    rate, moment = LearningRate.reshape(-1)[0], Moment + Grad * Grad
    return _shrunk(xp, Param - rate * Grad / xp.sqrt(moment), rate, l1, l2), moment


_ATTRS = {"l1": 0.0, "l2": 0.0}

update(
    "proximal_gd",
    _gd,
    (),
    _ATTRS,
    "A step of gradient descent, then the step that the penalties l1 and l2 ask for.",
    inputs=("Param", "Grad", "LearningRate"),
)
update(
    "proximal_adagrad",
    _adagrad,
    ("Moment",),
    _ATTRS,
    "A step of Adagrad, then the step that the penalties l1 and l2 ask for.",
    inputs=("Param", "Moment", "Grad", "LearningRate"),
)


def _begun(xp: Any, current_step: Any, rampup_begin_step: float) -> Any:
    return xp.trunc(current_step.reshape(())) >= int(rampup_begin_step)


def _momentum(
    xp: Any,
    Param: Any,
    Grad: Any,
    Velocity: Any,
    LearningRate: Any,
    current_step: Any,
    nranks: Any,
    rampup_begin_step: float,
    **attrs: Any,
) -> Any:
    """Momentum until compression begins, which has a momentum of its own; plain steps from then on."""
    grad = Grad / cast_like(nranks, Grad)
    step = kernel_of("momentum")
    param, velocity = step(xp, Param, grad, LearningRate, Velocity, **attrs)
    begun = _begun(xp, current_step, rampup_begin_step)
    plain = Param - cast_like(LearningRate, Param) * grad
    return grad, xp.where(begun, plain, param), xp.where(begun, Velocity, velocity)


def _infer_momentum(op: OpView) -> None:
    fit_param(op)
    for slot in ("Param", "Velocity"):
        op.set(slot + "Out", op.shape(slot), op.dtype(slot))
    op.set("Grad_out", op.shape("Grad"), op.dtype("Grad"))


def _clip(xp: Any, X: Any, current_step: Any, max_norm: float, rampup_begin_step: float) -> Any:
    if rampup_begin_step < 0:
        return X.copy()
    shorten = kernel_of("clip_by_norm")
    return xp.where(_begun(xp, current_step, rampup_begin_step), shorten(xp, X=X, max_norm=max_norm), X)


register(
    "dgc_momentum",
    ("current_step", "nranks", "Param", "Grad", "Velocity", "LearningRate"),
    ("Grad_out", "ParamOut", "VelocityOut"),
    {"mu": 0.0, "use_nesterov": False, "rampup_begin_step": -1.0},
    infer=_infer_momentum,
    kernel=_momentum,
    no_grad=("Grad_out", "ParamOut", "VelocityOut"),
    sequences=Sequences(source=None),
    doc="momentum with the gradient divided by nranks; from rampup_begin_step on a step of gradient descent.",
)
register(
    "dgc_clip_by_norm",
    ("current_step", "X"),
    ("Out",),
    {"max_norm": 1.0, "rampup_begin_step": -1.0},
    infer=same_as("X"),
    kernel=_clip,
    no_grad=("Out",),
    sequences=Sequences(source="X"),
    doc="clip_by_norm from rampup_begin_step on; X before, and if that is negative.",
)
