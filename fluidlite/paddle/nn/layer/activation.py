"""Activations as layers."""

from __future__ import annotations

from typing import Any

from ....fluid.dygraph.layers import Layer
from ....fluid.initializer import ConstantInitializer
from .. import functional as F
from .base import layers_of

_LAYERS = {
    "CELU": F.celu,
    "ELU": F.elu,
    "GELU": F.gelu,
    "GLU": F.glu,
    "Hardshrink": F.hardshrink,
    "Hardsigmoid": F.hardsigmoid,
    "Hardswish": F.hardswish,
    "Hardtanh": F.hardtanh,
    "LeakyReLU": F.leaky_relu,
    "LogSigmoid": F.log_sigmoid,
    "LogSoftmax": F.log_softmax,
    "Maxout": F.maxout,
    "Mish": F.mish,
    "ReLU": F.relu,
    "ReLU6": F.relu6,
    "SELU": F.selu,
    "Sigmoid": F.sigmoid,
    "Silu": F.silu,
    "Softmax": F.softmax,
    "Softplus": F.softplus,
    "Softshrink": F.softshrink,
    "Softsign": F.softsign,
    "Swish": F.swish,
    "Tanh": F.tanh,
    "Tanhshrink": F.tanhshrink,
    "ThresholdedReLU": F.thresholded_relu,
}
"""Activations without parameters, and the functions that they are."""

globals().update(layers_of(_LAYERS, __name__))

__all__ = [*_LAYERS, "PReLU"]


class PReLU(Layer):
    """relu with a trainable slope below zero (`paddle.nn.PReLU`).

    Args:
        num_parameters: 1, or the number of channels.
        init: where the slopes, `weight`, start.
        weight_attr: a ParamAttr, a name or an initializer of them.
        data_format: channels come second.
        name: accepted.
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.weight = self.create_parameter(
            [num_parameters], weight_attr, default_initializer=ConstantInitializer(init)
        )

    def forward(self, x: Any) -> Any:
        """`x` is [N, C, ...]; the result has its shape."""
        return F.prelu(x, self.weight)
