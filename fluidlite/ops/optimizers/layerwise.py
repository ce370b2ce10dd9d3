"""Updates scaled for a whole parameter, by the norms of its weights and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..registry import Effects
from ..tensor.random_ import fresh_seed
from .updates import MOMENTS, cast_like, update


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
