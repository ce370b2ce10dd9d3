"""Activations as layers."""

from __future__ import annotations

from typing import Any

from ....fluid.dygraph.layers import Layer
from ....fluid.initializer import ConstantInitializer
from .. import functional as F
from .base import layer_of

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Maxout",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "Sigmoid",
    "Silu",
    "Softmax",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Swish",
    "Tanh",
    "Tanhshrink",
    "ThresholdedReLU",
]

CELU = layer_of("CELU", F.celu, __name__)
ELU = layer_of("ELU", F.elu, __name__)
GELU = layer_of("GELU", F.gelu, __name__)
GLU = layer_of("GLU", F.glu, __name__)
Hardshrink = layer_of("Hardshrink", F.hardshrink, __name__)
Hardsigmoid = layer_of("Hardsigmoid", F.hardsigmoid, __name__)
Hardswish = layer_of("Hardswish", F.hardswish, __name__)
Hardtanh = layer_of("Hardtanh", F.hardtanh, __name__)
LeakyReLU = layer_of("LeakyReLU", F.leaky_relu, __name__)
LogSigmoid = layer_of("LogSigmoid", F.log_sigmoid, __name__)
LogSoftmax = layer_of("LogSoftmax", F.log_softmax, __name__)
Maxout = layer_of("Maxout", F.maxout, __name__)
Mish = layer_of("Mish", F.mish, __name__)
ReLU = layer_of("ReLU", F.relu, __name__)
ReLU6 = layer_of("ReLU6", F.relu6, __name__)
SELU = layer_of("SELU", F.selu, __name__)
Sigmoid = layer_of("Sigmoid", F.sigmoid, __name__)
Silu = layer_of("Silu", F.silu, __name__)
Softmax = layer_of("Softmax", F.softmax, __name__)
Softplus = layer_of("Softplus", F.softplus, __name__)
Softshrink = layer_of("Softshrink", F.softshrink, __name__)
Softsign = layer_of("Softsign", F.softsign, __name__)
Swish = layer_of("Swish", F.swish, __name__)
Tanh = layer_of("Tanh", F.tanh, __name__)
Tanhshrink = layer_of("Tanhshrink", F.tanhshrink, __name__)
ThresholdedReLU = layer_of("ThresholdedReLU", F.thresholded_relu, __name__)


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
