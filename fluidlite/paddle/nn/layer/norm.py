"""Normalisation as layers."""

from __future__ import annotations

from typing import Any

from ....fluid.dygraph import nn
from ....fluid.dygraph.layers import Layer
from ....fluid.initializer import ConstantInitializer
from ....fluid.layers.nn.normalization import create_scale_and_bias
from ....fluid.param_attr import ParamAttr
from ...dtypes import get_default_dtype
from .. import functional as F
from .base import layer_of

__all__ = [
    "BatchNorm",
    "BatchNorm1D",
    "BatchNorm2D",
    "BatchNorm3D",
    "GroupNorm",
    "InstanceNorm1D",
    "InstanceNorm2D",
    "InstanceNorm3D",
    "LayerNorm",
    "LocalResponseNorm",
    "SpectralNorm",
    "SyncBatchNorm",
]

BatchNorm = nn.BatchNorm
SpectralNorm = nn.SpectralNorm
LocalResponseNorm = layer_of("LocalResponseNorm", F.local_response_norm, __name__)


def _fixed(attr: Any, value: float) -> Any:
    """The attribute of a parameter that, if `attr` is False, keeps its first value."""
    return ParamAttr(initializer=ConstantInitializer(value), trainable=False) if attr is False else attr


class _BatchNorm(nn.BatchNorm):
    """Normalises each channel over the batch, then scales and shifts it.

    Args:
        num_features: the number of channels.
        momentum: how slowly the running statistics move: running * momentum + batch * (1 - momentum).
        epsilon: added to the variance.
        weight_attr, bias_attr: a ParamAttr, a name or an initializer of scale (ones) and shift (zeros); False: they
            stay at that.
        data_format: where the channels are.
        use_global_stats: True: use the running statistics in training too.
        name: accepted.

    `weight`, `bias`, `_mean` and `_variance` are [num_features]. Evaluation mode uses the running statistics.
    """

    _tested_with_gradients = True
    _ranks: tuple[int, ...]

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            num_features,
            momentum=momentum,
            epsilon=epsilon,
            param_attr=_fixed(weight_attr, 1.0),
            bias_attr=_fixed(bias_attr, 0.0),
            dtype=get_default_dtype(),
            data_layout="NHWC" if len(data_format) > 2 and data_format[-1] == "C" else "NCHW",
            use_global_stats=bool(use_global_stats),
        )

    def forward(self, input: Any) -> Any:
        """`input` has the channels as second axis (or last); the result has its shape. Raises ValueError for ranks
        that the layer is not made for."""
        if len(input.shape) not in self._ranks:
            raise ValueError(
                f"{type(self).__name__} takes inputs with {' or '.join(map(str, self._ranks))} axes, "
                f"got shape {list(input.shape)}"
            )
        return super().forward(input)


class BatchNorm1D(_BatchNorm):
    __doc__ = f"{_BatchNorm.__doc__}\n    For rows [N, C] and sequences [N, C, L] (`paddle.nn.BatchNorm1D`)."
    _ranks = (2, 3)

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name
        )


class BatchNorm2D(_BatchNorm):
    __doc__ = f"{_BatchNorm.__doc__}\n    For images [N, C, H, W] (`paddle.nn.BatchNorm2D`)."
    _ranks = (4,)


class BatchNorm3D(_BatchNorm):
    __doc__ = f"{_BatchNorm.__doc__}\n    For volumes [N, C, D, H, W] (`paddle.nn.BatchNorm3D`)."
    _ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over all processes, of which there is one (`paddle.nn.SyncBatchNorm`)."""

    _ranks = (2, 3, 4, 5)

    @classmethod
    def convert_sync_batchnorm(cls, layer: Any) -> Any:
        """`layer` itself: in one process there is nothing to convert."""
        return layer


class LayerNorm(nn.LayerNorm):
    """Normalises each sample over its last axes (`paddle.nn.LayerNorm`).

    Args:
        normalized_shape: the sizes of those axes, or that of the last one.
        epsilon: added to the variance.
        weight_attr, bias_attr: a ParamAttr, a name or an initializer of scale and shift of each element; False: none.
        name: accepted.
    """

    def __init__(
        self,
        normalized_shape: Any,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        attrs = (weight_attr, bias_attr)
        super().__init__(normalized_shape, True, True, epsilon, *attrs, dtype=get_default_dtype())


class GroupNorm(Layer):
    """Normalises each of `num_groups` groups of channels of each sample (`paddle.nn.GroupNorm`).

    Args:
        num_groups: the number of groups.
        num_channels: the number of channels.
        epsilon: added to the variance.
        weight_attr, bias_attr: a ParamAttr, a name or an initializer of scale and shift of each channel; False: none.
        data_format: 'NCHW'.
        name: accepted.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_groups, self._epsilon, self._data_format = num_groups, epsilon, data_format
        self.weight, self.bias = create_scale_and_bias(
            self.create_parameter, num_channels, weight_attr, bias_attr, get_default_dtype()
        )

    def forward(self, input: Any) -> Any:
        """`input` is [N, C, ...]; the result has its shape."""
        return F.group_norm(input, self._num_groups, self._epsilon, self.weight, self.bias, self._data_format)


class InstanceNorm2D(Layer):
    """Normalises each channel of each sample on its own (`paddle.nn.InstanceNorm2D`).

    Args:
        num_features: the number of channels.
        epsilon: added to the variance.
        momentum: accepted.
        weight_attr, bias_attr: a ParamAttr, a name or an initializer of `scale` and `bias`; False: none.
        data_format: channels come second.
        name: accepted.
    """

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-05,
        momentum: float = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._epsilon = epsilon
        # Paddle's state dicts call it scale here.
        self.scale, self.bias = create_scale_and_bias(
            self.create_parameter, num_features, weight_attr, bias_attr, get_default_dtype()
        )

    def forward(self, input: Any) -> Any:
        """`input` is [N, C, ...]; the result has its shape."""
        return F.instance_norm(input, weight=self.scale, bias=self.bias, eps=self._epsilon)


class InstanceNorm1D(InstanceNorm2D):
    """As `InstanceNorm2D`, for sequences [N, C, L] (`paddle.nn.InstanceNorm1D`)."""


class InstanceNorm3D(InstanceNorm2D):
    """As `InstanceNorm2D`, for volumes [N, C, D, H, W] (`paddle.nn.InstanceNorm3D`)."""
