"""Normalisation layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....base.dtypes import VarType, to_vartype
from ...layers.checks import FORMATS, check_choice
from ...layers.nn.normalization import (
    batch_normalized,
    create_moving_averages,
    create_scale_and_bias,
    create_singular_vectors,
    normalized,
    normalized_from,
)
from ..layers import Layer, setting

__all__ = ["BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "SpectralNorm"]


class BatchNorm(Layer):
    """Normalises each channel over the batch, then scales and shifts it (`fluid.dygraph.BatchNorm`).

    While training it keeps moving averages of mean and variance, `moving = moving * momentum + batch * (1 -
    momentum)`, and uses those in evaluation mode (`eval`).

    Args:
        num_channels: the number of channels.
        act: the name of an activation.
        is_test: accepted and without effect, as in Fluid: `eval` and `train` decide.
        momentum: how slowly the averages move.
        epsilon: added to the variance.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of scale (ones) and shift (zeros).
        dtype: 'float32' or 'float64'; 'float16' makes float32 parameters.
        data_layout: 'NCHW', or 'NHWC' for channels last.
        in_place: accepted and without effect.
        moving_mean_name, moving_variance_name: names of the averages.
        do_model_average_for_mean_and_var: whether ModelAverage averages them as well.
        use_global_stats: use the averages in training too. Scale and shift with a learning rate of zero are then
            frozen.
        trainable_statistics: use the batch's statistics, and move the averages, in evaluation mode too.

    `weight`, `bias`, `_mean` and `_variance` are [num_channels].

    Raises:
        AssertionError, as in Fluid: `param_attr` or `bias_attr` is False.
    """

    _tested_with_gradients = False
    """Whether evaluation mode records gradients, as in Paddle 2.0, through the averages as constants."""

    def __init__(
        self,
        num_channels: int,
        act: str | None = None,
        is_test: bool = False,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        param_attr: Any = None,
        bias_attr: Any = None,
        dtype: Any = "float32",
        data_layout: str = "NCHW",
        in_place: bool = False,
        moving_mean_name: str | None = None,
        moving_variance_name: str | None = None,
        do_model_average_for_mean_and_var: bool = True,
        use_global_stats: bool = False,
        trainable_statistics: bool = False,
    ) -> None:
        super().__init__(dtype=dtype)
        for name, attr in (("param_attr", param_attr), ("bias_attr", bias_attr)):
            if attr is False:
                raise AssertionError(f"{name} should not be False in BatchNorm")
        check_choice(data_layout, "data_layout", (*FORMATS[2], *FORMATS[3]), "BatchNorm")
        self._param_attr, self._bias_attr = param_attr, bias_attr
        kind = VarType.FP32 if to_vartype(dtype) == VarType.FP16 else to_vartype(dtype)
        create, names = self.create_parameter, (moving_mean_name, moving_variance_name)
        self.weight, self.bias = create_scale_and_bias(create, num_channels, param_attr, bias_attr, kind)
        if use_global_stats:
            for parameter in (self.weight, self.bias):
                if parameter.optimize_attr["learning_rate"] == 0.0:
                    parameter.stop_gradient = True
        averaged = bool(do_model_average_for_mean_and_var)  # Fluid checks no types in dygraph mode
        self._mean, self._variance = create_moving_averages(create, num_channels, names, averaged, kind)
        self._act, self._in_place, self._is_test = act, in_place, is_test
        self._momentum, self._epsilon, self._data_layout = momentum, epsilon, data_layout
        self._use_global_stats, self._trainable_statistics = use_global_stats, trainable_statistics

    def forward(self, input: Any) -> Any:
        """`input` is [N, C, ...] (or [N, ..., C]), two to five axes; the result has its shape."""
        moving = {"Mean": self._mean, "Variance": self._variance}
        parameters = {"Scale": self.weight, "Bias": self.bias, **moving}
        attrs = {
            "epsilon": self._epsilon,
            "is_test": not self.training,
            "trainable_statistics": self._trainable_statistics,
            "data_layout": self._data_layout,
            "use_global_stats": self._use_global_stats or (self._tested_with_gradients and not self.training),
        }
        run, momentum = self._helper.run, self._momentum
        out = batch_normalized(run, "batch_norm", input, parameters, momentum, attrs)
        return self._helper.append_activation(out, self._act)

    def extra_repr(self) -> str:
        return f"num_channels={self.weight.shape[0]}, momentum={self._momentum}, epsilon={self._epsilon}"


class LayerNorm(Layer):
    """Normalises each sample over its last axes (`fluid.dygraph.LayerNorm`).

    Args:
        normalized_shape: the sizes of the axes to normalise over, or the size of the last one.
        scale, shift: whether to scale and shift each element afterwards, by trainable parameters.
        epsilon: added to the variance.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of those parameters.
        act: the name of an activation.
        dtype: 'float32' or 'float64'.

    `weight` and `bias` have one axis, with as many elements as `normalized_shape` together.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        scale: bool = True,
        shift: bool = True,
        epsilon: float = 1e-05,
        param_attr: Any = None,
        bias_attr: Any = None,
        act: str | None = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        sizes = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self._normalized_shape, self._epsilon, self._act = sizes, epsilon, act
        self._scale, self._shift, self._param_attr, self._bias_attr = scale, shift, param_attr, bias_attr
        self.weight, self.bias = create_scale_and_bias(
            self.create_parameter,
            math.prod(sizes),
            param_attr if scale else False,
            bias_attr if shift else False,
            dtype,
        )

    def forward(self, input: Any) -> Any:
        """`input` is [..., *normalized_shape], and so is the result. Raises ValueError for another shape."""
        begin = normalized_from(input.shape, self._normalized_shape)
        attrs = {"epsilon": self._epsilon, "begin_norm_axis": begin}
        out = normalized(self._helper.run, "layer_norm", input, self.weight, self.bias, attrs)
        return self._helper.append_activation(out, self._act)

    def extra_repr(self) -> str:
        return f"normalized_shape={self._normalized_shape}, epsilon={self._epsilon}"


class GroupNorm(Layer):
    """Normalises each of `groups` groups of channels of each sample (`fluid.dygraph.GroupNorm`).

    Args:
        channels: the number of channels.
        groups: the number of groups.
        epsilon: added to the variance.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of scale and shift of each channel; those left at
            None or set to False do not exist, as in Fluid, so that saved models fit.
        act: the name of an activation.
        data_layout: 'NCHW' only.
        dtype: 'float32' or 'float64'.
    """

    def __init__(
        self,
        channels: int,
        groups: int,
        epsilon: float = 1e-05,
        param_attr: Any = None,
        bias_attr: Any = None,
        act: str | None = None,
        data_layout: str = "NCHW",
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        if data_layout != "NCHW":
            raise ValueError(f"unsupported data layout:{data_layout}")
        self._channels, self._groups, self._epsilon, self._act = channels, groups, epsilon, act
        self._param_attr, self._bias_attr = param_attr, bias_attr
        self.weight, self.bias = create_scale_and_bias(
            self.create_parameter, channels, param_attr or False, bias_attr or False, dtype
        )

    def forward(self, input: Any) -> Any:
        """`input` is [N, C, ...], and so is the result."""
        attrs = {"epsilon": self._epsilon, "groups": self._groups}
        out = normalized(self._helper.run, "group_norm", input, self.weight, self.bias, attrs)
        return self._helper.append_activation(out, self._act)

    def extra_repr(self) -> str:
        return f"channels={self._channels}, groups={self._groups}, epsilon={self._epsilon}"


class InstanceNorm(Layer):
    """Normalises each channel of each sample on its own (`fluid.dygraph.InstanceNorm`).

    Args:
        num_channels: the number of channels.
        epsilon: added to the variance.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of `scale` and `bias`, [num_channels].
        dtype: 'float32' or 'float64'.

    Raises:
        AssertionError, as in Fluid: `param_attr` or `bias_attr` is False.
    """

    def __init__(
        self,
        num_channels: int,
        epsilon: float = 1e-05,
        param_attr: Any = None,
        bias_attr: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        for name, attr in (("param_attr", param_attr), ("bias_attr", bias_attr)):
            if attr is False:
                raise AssertionError(f"{name} should not be False in InstanceNorm.")
        self._epsilon, self._param_attr, self._bias_attr = epsilon, param_attr, bias_attr
        self.scale, self.bias = create_scale_and_bias(
            self.create_parameter, num_channels, param_attr, bias_attr, dtype
        )

    def forward(self, input: Any) -> Any:
        """`input` is [N, C, ...], and so is the result."""
        attrs = {"epsilon": self._epsilon}
        return normalized(self._helper.run, "instance_norm", input, self.scale, self.bias, attrs)

    def extra_repr(self) -> str:
        return f"num_channels={self.scale.shape[0]}, epsilon={self._epsilon}"


class SpectralNorm(Layer):
    """A weight divided by its largest singular value, found by power iteration (`fluid.dygraph.SpectralNorm`).

    Args:
        weight_shape: the shape of the weights.
        dim: the axis that becomes the rows of the matrix; 0, or 1 for transposed convolutions.
        power_iters: how many steps of the iteration each call makes.
        eps: added to lengths before dividing by them.
        dtype: 'float32' or 'float64'.

    `weight_u` and `weight_v` hold the singular vectors from call to call.
    """

    _dim, _power_iters, _eps = setting("dim"), setting("power_iters"), setting("eps")

    def __init__(
        self,
        weight_shape: Sequence[int],
        dim: int = 0,
        power_iters: int = 1,
        eps: float = 1e-12,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        self._weight_shape = list(weight_shape)
        self._attrs = {"dim": dim, "power_iters": power_iters, "eps": eps}
        vectors = create_singular_vectors(self.create_parameter, self._weight_shape, dim, dtype)
        self.weight_u, self.weight_v = vectors

    def forward(self, weight: Any) -> Any:
        """`weight` has shape `weight_shape`, and so has the result."""
        inputs = {"Weight": weight, "U": self.weight_u, "V": self.weight_v}
        return self._helper.run("spectral_norm", inputs, attrs=self._attrs)
