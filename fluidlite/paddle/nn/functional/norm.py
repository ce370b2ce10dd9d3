"""Normalisation with given scales, shifts and statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....fluid.layers.checks import check_choice
from ....fluid.layers.nn.normalization import batch_normalized, normalized, normalized_from
from ...modes import constant, reshaped, run
from ...tensor.manipulation import squeeze, unsqueeze

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm"]


def _filled(given: Any, x: Any, count: int, value: float) -> Any:
    return constant(np.full(count, value), x) if given is None else given


def batch_norm(
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-05,
    data_format: str = "NCHW",
    use_global_stats: bool | None = None,
    name: str | None = None,
) -> Any:
    """Each channel normalised over the batch, scaled and shifted (`paddle.nn.functional.batch_norm`).

    When `training`, the running statistics, [channels], are moved in place towards those of the batch by 1 - momentum;
    otherwise, or with `use_global_stats`, they are used.
    """
    last = len(data_format) > 2 and data_format[-1] == "C"
    count = x.shape[-1 if last else 1]
    parameters = {
        "Scale": _filled(weight, x, count, 1.0),
        "Bias": _filled(bias, x, count, 0.0),
        "Mean": running_mean,
        "Variance": running_var,
    }
    attrs = {
        "epsilon": epsilon,
        "is_test": not training,
        "data_layout": "NHWC" if last else "NCHW",
        "use_global_stats": not training if use_global_stats is None else use_global_stats,
    }
    return batch_normalized(run, "batch_norm", x, parameters, momentum, attrs, name=name)


def layer_norm(
    x: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    epsilon: float = 1e-05,
    name: str | None = None,
) -> Any:
    """Each sample normalised over its last axes, of sizes `normalized_shape` (`paddle.nn.functional.layer_norm`).

    `weight` and `bias` have one element for each element of those axes.
    """
    sizes: Sequence[int] = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    begin = normalized_from(x.shape, sizes)
    scale, shift = (_flat(value, math.prod(sizes)) for value in (weight, bias))
    attrs = {"epsilon": epsilon, "begin_norm_axis": begin}
    return normalized(run, "layer_norm", x, scale, shift, attrs, name=name)


def _flat(value: Any, count: int) -> Any:
    if value is None or len(value.shape) == 1:
        return value
    return reshaped("reshape2", value, {"shape": [count]})


def instance_norm(
    x: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.9,
    eps: float = 1e-05,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Any:
    """Each channel of each sample normalised on its own (`paddle.nn.functional.instance_norm`).

    Running statistics and momentum are accepted and without effect, as in Paddle.
    """
    count = x.shape[1]
    scale, shift = _filled(weight, x, count, 1.0), _filled(bias, x, count, 0.0)
    return normalized(run, "instance_norm", x, scale, shift, {"epsilon": eps}, name=name)


def group_norm(
    x: Any,
    num_groups: int,
    epsilon: float = 1e-05,
    weight: Any = None,
    bias: Any = None,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Any:
    """Each of `num_groups` groups of channels of each sample normalised (`paddle.nn.functional.group_norm`)."""
    check_choice(data_format, "data_format", ("NCHW", "NCL", "NCDHW"), "group_norm")
    attrs = {"groups": num_groups, "epsilon": epsilon}
    return normalized(run, "group_norm", x, weight, bias, attrs, name=name)


def local_response_norm(
    x: Any,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Any:
    """x divided by (k + alpha * mean of the squares of `size` neighbouring channels) ** beta
    (`paddle.nn.functional.local_response_norm`)."""
    check_choice(data_format, "data_format", ("NCL", "NCHW"), "local_response_norm")
    if len(x.shape) == 3:
        return squeeze(local_response_norm(unsqueeze(x, 2), size, alpha, beta, k, "NCHW", name), 2)
    attrs = {"n": size, "alpha": alpha / size, "beta": beta, "k": k}
    return run("lrn", {"X": x}, ("Out", "MidOut"), attrs, name, stop_gradient=("MidOut",))[0]
