"""Pooling as layers."""

from __future__ import annotations

from .. import functional as F
from .base import layers_of

_LAYERS = {
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

globals().update(layers_of(_LAYERS, __name__))

__all__ = [*_LAYERS]
