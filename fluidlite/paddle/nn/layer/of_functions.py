"""Activations, pooling and losses as layers, made from the functions that they are."""

from __future__ import annotations

from typing import Any

from ....fluid.dygraph.layers import Layer
from ....fluid.initializer import ConstantInitializer
from .. import functional as F
from .base import layers_of

_ACTIVATIONS = {
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

_POOLING = {
    "AdaptiveAvgPool1D": F.adaptive_avg_pool1d,
    "AdaptiveAvgPool2D": F.adaptive_avg_pool2d,
    "AdaptiveAvgPool3D": F.adaptive_avg_pool3d,
    "AdaptiveMaxPool1D": F.adaptive_max_pool1d,
    "AdaptiveMaxPool2D": F.adaptive_max_pool2d,
    "AdaptiveMaxPool3D": F.adaptive_max_pool3d,
    "AvgPool1D": F.avg_pool1d,
    "AvgPool2D": F.avg_pool2d,
    "AvgPool3D": F.avg_pool3d,
    "MaxPool1D": F.max_pool1d,
    "MaxPool2D": F.max_pool2d,
    "MaxPool3D": F.max_pool3d,
}


_OF_TWO = {
    "BCELoss": F.binary_cross_entropy,
    "BCEWithLogitsLoss": F.binary_cross_entropy_with_logits,
    "CrossEntropyLoss": F.cross_entropy,
    "HingeEmbeddingLoss": F.hinge_embedding_loss,
    "KLDivLoss": F.kl_div,
    "L1Loss": F.l1_loss,
    "MSELoss": F.mse_loss,
    "NLLLoss": F.nll_loss,
    "SmoothL1Loss": F.smooth_l1_loss,
}
_OF_THREE = {
    "CosineEmbeddingLoss": F.cosine_embedding_loss,
    "MarginRankingLoss": F.margin_ranking_loss,
    "TripletMarginLoss": F.triplet_margin_loss,
}
"""Losses of two and of three tensors, and the functions that they are."""

globals().update(layers_of(_ACTIVATIONS, __name__))
globals().update(layers_of(_POOLING, __name__))
globals().update(layers_of(_OF_TWO, __name__, 2))
globals().update(layers_of(_OF_THREE, __name__, 3))

__all__ = [*_ACTIVATIONS, *_POOLING, *_OF_TWO, *_OF_THREE, "PReLU"]


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
