"""Pooling as layers."""

from __future__ import annotations

from .. import functional as F
from .base import layer_of

__all__ = [
    "AdaptiveAvgPool1D",
    "AdaptiveAvgPool2D",
    "AdaptiveAvgPool3D",
    "AdaptiveMaxPool1D",
    "AdaptiveMaxPool2D",
    "AdaptiveMaxPool3D",
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
]

AdaptiveAvgPool1D = layer_of("AdaptiveAvgPool1D", F.adaptive_avg_pool1d, __name__)
AdaptiveAvgPool2D = layer_of("AdaptiveAvgPool2D", F.adaptive_avg_pool2d, __name__)
AdaptiveAvgPool3D = layer_of("AdaptiveAvgPool3D", F.adaptive_avg_pool3d, __name__)
AdaptiveMaxPool1D = layer_of("AdaptiveMaxPool1D", F.adaptive_max_pool1d, __name__)
AdaptiveMaxPool2D = layer_of("AdaptiveMaxPool2D", F.adaptive_max_pool2d, __name__)
AdaptiveMaxPool3D = layer_of("AdaptiveMaxPool3D", F.adaptive_max_pool3d, __name__)
AvgPool1D = layer_of("AvgPool1D", F.avg_pool1d, __name__)
AvgPool2D = layer_of("AvgPool2D", F.avg_pool2d, __name__)
AvgPool3D = layer_of("AvgPool3D", F.avg_pool3d, __name__)
MaxPool1D = layer_of("MaxPool1D", F.max_pool1d, __name__)
MaxPool2D = layer_of("MaxPool2D", F.max_pool2d, __name__)
MaxPool3D = layer_of("MaxPool3D", F.max_pool3d, __name__)
